// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/ops.hpp"
#include "samples/op_samples.hpp"

namespace palimpsest::ops {
namespace {

bool takes(ScalarOp op, std::span<const DType> dtypes) {
  try {
    scalar_op_types(op, dtypes);
    return true;
  } catch (const DTypeError&) {
    return false;
  }
}

OpSample elementwise_sample(ScalarOp op, std::vector<DType> dtypes, std::vector<Extents> shapes,
                            std::string_view what) {
  OpSample sample{std::string(name_of(op)) + " " + std::string(what), {}, {}};
  for (std::size_t i = 0; i < dtypes.size(); ++i) {
    Tensor values = sample_values(shapes[i], dtypes[i], i + 1);
    if (op == ScalarOp::arccosh && is_floating(dtypes[i])) {  // defined from 1 on
      std::vector<double> numbers = values.to_vector<double>();
      for (double& x : numbers) x += 1;
      values = Tensor::from(numbers, shapes[i]).to(dtypes[i]);
    }
    sample.inputs.push_back(values);
  }
  sample.build = [op](Vars v) { return elementwise(op, v); };
  return sample;
}

}  // namespace

std::vector<OpSample> elementwise_samples() {
  std::vector<OpSample> result;
  const Extents shape{3, 4};
  for (int i = 0; i < kScalarOpCount; ++i) {
    const auto op = static_cast<ScalarOp>(i);
    if (op == ScalarOp::identity) continue;
    const auto n = static_cast<std::size_t>(arity(op));
    for (DType dtype : {DType::float32, DType::float64, DType::complex64, DType::complex128,
                        DType::int32, DType::bool_}) {
      std::vector<DType> dtypes(n, dtype);
      if (op == ScalarOp::where) dtypes[0] = DType::bool_;
      if (!takes(op, dtypes)) continue;
      result.push_back(
          elementwise_sample(op, dtypes, std::vector<Extents>(n, shape), name_of(dtype)));
    }
    if (n == 2 && takes(op, std::vector<DType>(2, DType::float64))) {
      result.push_back(
          elementwise_sample(op, {DType::float64, DType::float64}, {{3, 1}, {3, 4}}, "broadcast"));
    }
  }
  using D = DType;
  result.push_back(elementwise_sample(ScalarOp::mul, {D::float64, D::complex128}, {shape, {1, 4}},
                                      "of real and complex"));
  result.push_back(
      elementwise_sample(ScalarOp::add, {D::int64, D::float64}, {shape, shape}, "of mixed dtypes"));
  result.push_back(elementwise_sample(ScalarOp::sub, {D::float32, D::float64}, {{1, 1}, shape},
                                      "of mixed precisions"));
  result.push_back(
      elementwise_sample(ScalarOp::mul, {D::float64, D::float64}, {{2, 1, 3}, {1, 4, 3}}, "outer"));
  result.push_back(elementwise_sample(ScalarOp::mul, {D::complex128, D::complex128},
                                      {{3, 2, 4}, {1, 2, 4}}, "by coil maps"));
  result.push_back(elementwise_sample(ScalarOp::mul, {D::float64, D::complex128},
                                      {{1, 4, 1}, {3, 1, 2}}, "outer of real and complex"));
  result.push_back(elementwise_sample(ScalarOp::where, {D::bool_, D::float64, D::complex128},
                                      {{1, 4}, {3, 1}, shape}, "broadcast"));
  result.push_back(elementwise_sample(ScalarOp::add, {D::float64, D::float64}, {{}, {}}, "of 0-d"));
  result.push_back(elementwise_sample(ScalarOp::add, {D::float64, D::float64}, {{0, 3}, {1, 3}},
                                      "of no elements"));
  result.push_back(elementwise_sample(ScalarOp::abs2, {D::complex64}, {{40, 50}}, "in tiles"));
  return result;
}

std::vector<OpSample> cast_samples() {
  std::vector<OpSample> result;
  using D = DType;
  const std::pair<D, D> kPairs[] = {{D::float64, D::float32},
                                    {D::float32, D::float64},
                                    {D::float64, D::complex64},
                                    {D::float64, D::complex128},
                                    {D::complex128, D::complex64},
                                    {D::complex64, D::complex128},
                                    {D::int32, D::float64},
                                    {D::int64, D::int8},
                                    {D::float64, D::int64},
                                    {D::float32, D::int32},
                                    {D::int8, D::bool_}};
  for (const auto& [from, to] : kPairs) {
    result.push_back(unary(std::string(name_of(from)) + " to " + std::string(name_of(to)),
                           sample_values({3, 4}, from),
                           [to = to](const Variable& x) { return astype(x, to); }));
  }
  return result;
}

std::vector<OpSample> complex_part_samples() {
  return {unary("real c64", sample_values({3, 4}, DType::complex64), real),
          unary("imag c64", sample_values({3, 4}, DType::complex64), imag),
          unary("real c128", sample_values({2, 3, 2}, DType::complex128), real),
          unary("imag c128 0-d", sample_values({}, DType::complex128), imag)};
}

std::vector<OpSample> view_as_real_samples() {
  return {unary("c64", sample_values({3, 4}, DType::complex64), view_as_real),
          unary("c128 0-d", sample_values({}, DType::complex128), view_as_real)};
}

std::vector<OpSample> view_as_complex_samples() {
  return {unary("f32", sample_values({3, 4, 2}, DType::float32), view_as_complex),
          unary("f64", sample_values({2}, DType::float64), view_as_complex)};
}

}  // namespace palimpsest::ops
