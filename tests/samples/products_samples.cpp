// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/ops/products/contract_op.hpp"
#include "palimpsest/ops/products/sparse_op.hpp"
#include "palimpsest/ops/products/svd_op.hpp"
#include "samples/op_samples.hpp"

namespace palimpsest::ops {

std::vector<OpSample> contract_samples() {
  struct Case {
    const char* text;
    Extents a, b;
  };
  const Case kCases[] = {
      {"mn,n->m", {3, 4}, {4}},
      {"mk,kn->mn", {3, 4}, {4, 5}},
      {"km,kn->mn", {4, 3}, {4, 5}},
      {"bmk,bkn->bmn", {2, 3, 4}, {2, 4, 2}},
      {"m,n->mn", {3}, {4}},
      {"mn,mn->", {3, 4}, {3, 4}},
      {"cyx,yx->cyx", {2, 3, 4}, {3, 4}},
      {"cyx,cyx->yx", {2, 3, 4}, {2, 3, 4}},
      {"mn,k->k", {3, 4}, {2}},
      {"mnk,n->km", {2, 3, 4}, {3}},
  };
  std::vector<OpSample> result;
  for (const Case& c : kCases) {
    for (DType dtype : {DType::float64, DType::complex64, DType::complex128}) {
      for (int conj = 0; conj < (is_complex(dtype) ? 4 : 1); ++conj) {
        const EinsumOptions options{(conj & 1) != 0, (conj & 2) != 0};
        OpSample sample{std::string(c.text) + " " + std::string(name_of(dtype)) + " conj " +
                            std::to_string(conj),
                        {sample_values(c.a, dtype, 1), sample_values(c.b, dtype, 2)},
                        {}};
        sample.build = [text = c.text, options](Vars v) {
          return einsum(text, v[0], v[1], options);
        };
        result.push_back(std::move(sample));
      }
    }
  }
  const auto product = [](Vars v) { return matmul(v[0], v[1]); };
  result.push_back(
      {"matmul int64",
       {sample_values({3, 4}, DType::int64, 1), sample_values({4, 2}, DType::int64, 2)},
       product});
  result.push_back(
      {"matmul of bigger matrices",
       {sample_values({40, 50}, DType::complex64, 1), sample_values({50, 30}, DType::complex64, 2)},
       product});
  return result;
}

std::vector<OpSample> add_contract_samples() {
  struct Case {
    const char* name;
    Contraction contraction;
    Extents z, x, y;
  };
  const Case kCases[] = {
      {"gemm", {{0, 1}, {1, 2}, {0, 2}}, {3, 5}, {3, 4}, {4, 5}},
      {"big gemm", {{1, 0}, {1, 2}, {0, 2}, true}, {20, 17}, {18, 20}, {18, 17}},
      {"gemm to the left", {{0, 1}, {1, 2}, {2, 0}}, {17, 20}, {20, 18}, {18, 17}},
      {"gemv", {{0, 1}, {1}, {0}}, {3}, {3, 4}, {4}},
      {"ger", {{0}, {1}, {0, 1}}, {3, 5}, {3}, {5}},
      {"conjugated ger", {{0}, {1}, {0, 1}, false, true}, {3, 5}, {3}, {5}},
      {"of nothing", {{0, 1}, {1, 2}, {0, 2}}, {3, 5}, {3, 0}, {0, 5}},
  };
  std::vector<OpSample> result;
  for (const Case& c : kCases) {
    for (DType dtype : {DType::float32, DType::float64, DType::complex128}) {
      if (!is_complex(dtype) && (c.contraction.conj_a || c.contraction.conj_b)) continue;
      OpSample sample{
          std::string(c.name) + " " + std::string(name_of(dtype)),
          {sample_values(c.z, dtype, 1), sample_values({}, dtype, 2), sample_values(c.x, dtype, 3),
           sample_values(c.y, dtype, 4), sample_values({}, dtype, 5)},
          {}};
      sample.build = [contraction = c.contraction, dtype](Vars v) {
        return std::make_shared<AddContract>(contraction, dtype)->make_node(v).output(0);
      };
      result.push_back(std::move(sample));
    }
  }
  return result;
}

std::vector<OpSample> diagonal_samples() {
  const auto at = [](index_t offset, index_t a, index_t b) {
    return [=](const Variable& x) { return diagonal(x, offset, a, b); };
  };
  return {unary("main", sample_values({3, 4}, DType::complex128), at(0, 0, 1)),
          unary("above", sample_values({3, 2, 4}, DType::float64), at(2, 0, 2)),
          unary("below", sample_values({3, 2, 4}, DType::float32), at(-1, -1, 0)),
          unary("outside", sample_values({3, 2}, DType::float64), at(7, 0, 1))};
}

std::vector<OpSample> diagonal_into_samples() {
  const auto into = [](index_t offset) {
    return [=](Vars v) {
      return std::make_shared<DiagonalInto>(offset, 0, 2)->make_node(v).output(0);
    };
  };
  return {{"above",
           {sample_values({2, 2}, DType::complex128), sample_values({3, 2, 4}, DType::int8)},
           into(2)},
          {"below",
           {sample_values({2, 1}, DType::float64), sample_values({3, 2, 4}, DType::int8)},
           into(-2)}};
}

namespace {

struct MatricesCase {
  const char* name;
  Extents shape, axes, threshold;
  std::vector<index_t> shift;
  DType dtype;
};

std::vector<MatricesCase> matrices_cases() {
  return {{"one matrix", {3, 4}, {100, -1}, {1, 1}, {0}, DType::float64},
          {"tall", {9, 2}, {100, -1}, {1, 1}, {0}, DType::complex64},
          {"shifted blocks", {2, 5, 6, 3}, {0, 2, 4, -1}, {2, 1, 1, 1}, {1, -3}, DType::complex128},
          {"columns in front", {3, 2, 70}, {-1, 0, 100}, {1, 2, 1}, {69}, DType::float32},
          {"nothing", {0, 4}, {2, -1}, {1, 1}, {0}, DType::float32}};
}

}  // namespace

std::vector<OpSample> soften_singular_values_samples() {
  std::vector<OpSample> result;
  for (const MatricesCase& c : matrices_cases()) {
    result.push_back({c.name,
                      {sample_values(c.shape, c.dtype),
                       sample_values(c.threshold, real_of(c.dtype)), Tensor::from(c.shift)},
                      [c](Vars v) { return soften_singular_values(v[0], v[1], v[2], c.axes); }});
  }
  return result;
}

std::vector<OpSample> nuclear_norms_samples() {
  std::vector<OpSample> result;
  for (const MatricesCase& c : matrices_cases()) {
    result.push_back(unary(c.name, sample_values(c.shape, c.dtype),
                           [c](const Variable& x) { return nuclear_norms(x, c.axes); }));
  }
  return result;
}

std::vector<OpSample> svd_samples() {
  const auto triplets = [](const Variable& a) {
    return std::make_shared<Svd>()->make_node({&a, 1}).output(0);
  };
  return {unary("wide", sample_values({3, 5}, DType::float64), triplets),
          unary("tall", sample_values({5, 2}, DType::complex64), triplets),
          unary("batch", sample_values({2, 3, 4, 4}, DType::float32), triplets),
          unary("complex", sample_values({2, 6, 3}, DType::complex128), triplets),
          unary("nothing", sample_values({2, 0, 3}, DType::float64), triplets)};
}

namespace {

// 4 rows of 2, 0, 3 and 1 values in 5 columns; one column occurs twice in a row.
std::vector<OpSample> sparse_samples(bool adjoint) {
  std::vector<OpSample> result;
  const Tensor column = Tensor::from<index_t>({4, 0, 2, 2, 1, 3}),
               start = Tensor::from<index_t>({0, 2, 2, 5, 6});
  struct Case {
    const char* name;
    DType values, data;
    Extents batch;
  };
  const Case kCases[] = {{"float32", DType::float32, DType::float32, {}},
                         {"float64 batch", DType::float64, DType::float64, {2, 3}},
                         {"complex64", DType::complex64, DType::complex64, {2}},
                         {"complex128", DType::complex128, DType::complex128, {}},
                         {"real values", DType::float64, DType::complex128, {2}},
                         {"no batch elements", DType::float64, DType::float64, {0}}};
  for (const Case& c : kCases) {
    Extents shape = c.batch;
    shape.push_back(adjoint ? 4 : 5);
    const DType index = c.values == c.data ? DType::int64 : DType::int32;
    result.push_back(
        {c.name,
         {sample_values({6}, c.values, 1), column.to(index), start,
          sample_values(shape, c.data, 2)},
         [adjoint](Vars v) { return sparse_product(v[0], v[1], v[2], v[3], 5, adjoint); }});
  }
  return result;
}

}  // namespace

std::vector<OpSample> sparse_product_samples() { return sparse_samples(false); }
std::vector<OpSample> sparse_adjoint_samples() { return sparse_samples(true); }

}  // namespace palimpsest::ops
