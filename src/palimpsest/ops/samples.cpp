// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/samples.hpp"

#include "palimpsest/ops/create_op.hpp"
#include "palimpsest/ops/elementwise_op.hpp"
#include "palimpsest/ops/fft_op.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/ops/shape_op.hpp"

namespace palimpsest::ops {
namespace {

using Vars = std::span<const Variable>;

// The sample of an op of one input.
OpSample unary(std::string name, Tensor input, std::function<Variable(const Variable&)> build) {
  return {std::move(name), {std::move(input)}, [build = std::move(build)](Vars v) {
            return build(v[0]);
          }};
}

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
    sample.inputs.push_back(sample_values(shapes[i], dtypes[i], i + 1));
  }
  sample.build = [op](Vars v) { return elementwise(op, v); };
  return sample;
}

}  // namespace

Tensor sample_values(Extents shape, DType dtype, std::uint64_t seed) {
  const index_t n = element_count(shape);
  if (is_inexact(dtype)) {
    const DType wide = is_complex(dtype) ? DType::complex128 : DType::float64;
    Tensor result = Tensor::random_uniform(shape, wide, {seed, 0});
    auto* numbers = static_cast<double*>(result.raw_mutable_data());
    for (index_t i = 0; i < (is_complex(dtype) ? 2 * n : n); ++i) {
      numbers[i] = 0.2 + 0.7 * numbers[i];
    }
    return result.to(dtype);
  }
  std::vector<index_t> numbers;
  for (index_t i = 0; i < n; ++i) {
    const index_t k = i + static_cast<index_t>(seed);
    numbers.push_back(is_bool(dtype) ? (k % 3 == 0 ? 1 : 0) : k % 7 - (is_unsigned(dtype) ? 0 : 2));
  }
  return Tensor::from(numbers, shape).to(dtype);
}

// -- elementwise -------------------------------------------------------------------------------

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
  const std::pair<D, D> kPairs[] = {{D::float64, D::float32},      {D::float32, D::float64},
                                    {D::float64, D::complex64},    {D::complex128, D::complex64},
                                    {D::complex64, D::complex128}, {D::int32, D::float64},
                                    {D::int64, D::int8},           {D::float64, D::int64},
                                    {D::float32, D::int32},        {D::int8, D::bool_}};
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

// -- reductions and products -------------------------------------------------------------------

std::vector<OpSample> reduce_samples() {
  std::vector<OpSample> result;
  const auto with = [](auto function, Axes axes) {
    return [=](const Variable& x) { return function(x, {axes, false}); };
  };
  const Extents shape{3, 4, 2};
  for (DType dtype : {DType::float32, DType::float64, DType::complex128, DType::int32}) {
    const std::string name(name_of(dtype));
    result.push_back(unary("sum 0 " + name, sample_values(shape, dtype), with(sum, {0})));
    result.push_back(unary("sum 1, 2 " + name, sample_values(shape, dtype), with(sum, {1, 2})));
    result.push_back(unary("sum of all " + name, sample_values(shape, dtype),
                           [](const Variable& x) { return sum(x); }));
    result.push_back(unary("prod " + name, sample_values(shape, dtype), with(prod, {1})));
  }
  for (DType dtype : {DType::float64, DType::int64}) {
    const std::string name(name_of(dtype));
    result.push_back(unary("max " + name, sample_values(shape, dtype), with(max, {0, 2})));
    result.push_back(unary("min " + name, sample_values(shape, dtype), with(min, {1})));
  }
  result.push_back(unary("any", sample_values(shape, DType::bool_), with(any, {1})));
  result.push_back(unary("all", sample_values(shape, DType::bool_), with(all_of, {2})));
  result.push_back(unary("sum of nothing", sample_values({3, 0}, DType::float64), with(sum, {1})));
  return result;
}

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

std::vector<OpSample> norm2_samples() {
  std::vector<OpSample> result;
  for (DType dtype :
       {DType::float32, DType::float64, DType::complex64, DType::complex128, DType::int32}) {
    result.push_back(unary(std::string(name_of(dtype)), sample_values({3, 4, 2}, dtype), norm2));
  }
  return result;
}

// -- transforms --------------------------------------------------------------------------------

std::vector<OpSample> fft_samples() {
  std::vector<OpSample> result;
  for (DType dtype : {DType::complex64, DType::complex128}) {
    for (bool centered : {false, true}) {
      for (FftNorm norm : {FftNorm::backward, FftNorm::ortho, FftNorm::forward}) {
        const FftOptions options{norm, centered};
        const std::string name = std::string(name_of(dtype)) + (centered ? " centered" : "") +
                                 " norm " + std::to_string(static_cast<int>(norm));
        result.push_back(
            unary("fft 0, 2 " + name, sample_values({4, 3, 5}, dtype), [=](const Variable& x) {
              return fft(x, {0, 2}, options);
            }));
        result.push_back(unary("ifft 1 " + name, sample_values({2, 6}, dtype),
                               [=](const Variable& x) { return ifft(x, {1}, options); }));
        result.push_back(
            unary("adjoint " + name, sample_values({2, 6}, dtype), [=](const Variable& x) {
              return fft_adjoint(x, {-1, 0}, options);
            }));
      }
    }
  }
  return result;
}

// -- shapes ------------------------------------------------------------------------------------

std::vector<OpSample> reshape_samples() {
  const auto to = [](const Extents& shape) {
    return [=](const Variable& x) { return reshape(x, shape); };
  };
  return {unary("merge", sample_values({3, 4, 2}, DType::float64), to({12, 2})),
          unary("split", sample_values({12, 2}, DType::complex128), to({3, -1, 2})),
          unary("across", sample_values({4, 6}, DType::float32), to({3, 8})),
          unary("to 0-d", sample_values({1, 1}, DType::int64), to({})),
          unary("of nothing", sample_values({0, 3}, DType::float64), to({3, 0, 2}))};
}

std::vector<OpSample> transpose_samples() {
  return {unary("2, 0, 1", sample_values({2, 3, 4}, DType::complex128),
                [](const Variable& x) {
                  return transpose(x, {2, 0, 1});
                }),
          unary("matrix", sample_values({2, 3}, DType::float32), [](const Variable& x) {
            return transpose(x, {-1, 0});
          })};
}

std::vector<OpSample> expand_dims_samples() {
  return {unary("first, last", sample_values({2, 3}, DType::complex128),
                [](const Variable& x) {
                  return expand_dims(x, {0, -1});
                }),
          unary("of 0-d", sample_values({}, DType::float64),
                [](const Variable& x) { return expand_dims(x, {0}); })};
}

std::vector<OpSample> squeeze_samples() {
  return {unary("some", sample_values({1, 3, 1, 2}, DType::complex64), [](const Variable& x) {
    return squeeze(x, {0, -2});
  })};
}

std::vector<OpSample> broadcast_to_samples() {
  return {unary("inner", sample_values({3, 1}, DType::complex128),
                [](const Variable& x) {
                  return broadcast_to(x, {3, 4});
                }),
          unary("leading", sample_values({1, 2}, DType::float64),
                [](const Variable& x) {
                  return broadcast_to(x, {5, 3, -1});
                }),
          unary("0-d", sample_values({}, DType::float64), [](const Variable& x) {
            return broadcast_to(x, {2, 2});
          })};
}

std::vector<OpSample> broadcast_like_samples() {
  const auto like = [](Vars v) {
    return std::make_shared<BroadcastLike>()->make_node(v).output(0);
  };
  return {{"inner",
           {sample_values({3, 1}, DType::complex128), sample_values({3, 4}, DType::float32)},
           like}};
}

std::vector<OpSample> specify_shape_samples() {
  const auto as = [](Vars v) {
    return std::make_shared<SpecifyShape>(Extents{3, kUnknown})->make_node(v).output(0);
  };
  return {{"first axis", {sample_values({3, 4}, DType::complex64)}, as}};
}

std::vector<OpSample> flip_samples() {
  return {unary("one", sample_values({3, 4}, DType::complex128),
                [](const Variable& x) { return flip(x, {1}); }),
          unary("two", sample_values({2, 3, 4}, DType::float32),
                [](const Variable& x) {
                  return flip(x, {0, 2});
                }),
          unary("of nothing", sample_values({0, 4}, DType::float64), [](const Variable& x) {
            return flip(x, {0, 1});
          })};
}

std::vector<OpSample> pad_samples() {
  std::vector<OpSample> result;
  for (DType dtype : {DType::float32, DType::complex128, DType::int32}) {
    const std::string name(name_of(dtype));
    result.push_back(unary("zeros " + name, sample_values({2, 3}, dtype), [](const Variable& x) {
      return pad(x, {{1, 0}, {2, 3}});
    }));
    result.push_back(unary("threes " + name, sample_values({2, 3}, dtype), [](const Variable& x) {
      return pad(x, {{0, 0}, {2, 1}}, 3);
    }));
    result.push_back(unary("fours " + name, sample_values({2, 3}, dtype), [](const Variable& x) {
      return pad(x, {{0, 0}, {2, 1}}, 4);
    }));
  }
  return result;
}

std::vector<OpSample> roll_samples() {
  return {unary("forward", sample_values({3, 5}, DType::complex64),
                [](const Variable& x) { return roll(x, 2, 1); }),
          unary("backward", sample_values({3, 5}, DType::float64),
                [](const Variable& x) { return roll(x, -7, 0); }),
          unary("of nothing", sample_values({0}, DType::float64),
                [](const Variable& x) { return roll(x, 3, 0); })};
}

std::vector<OpSample> join_samples() {
  const auto along = [](index_t axis) { return [=](Vars v) { return join(axis, v); }; };
  return {
      {"first axis",
       {sample_values({2, 3}, DType::complex128, 1), sample_values({1, 3}, DType::complex128, 2)},
       along(0)},
      {"last axis, three",
       {sample_values({2, 3}, DType::float32, 1), sample_values({2, 0}, DType::float32, 2),
        sample_values({2, 2}, DType::float32, 3)},
       along(-1)}};
}

// -- indexing ----------------------------------------------------------------------------------

std::vector<OpSample> subtensor_samples() {
  const auto at = [](const std::vector<Index>& where) {
    return [=](const Variable& x) { return index(x, where); };
  };
  return {unary("element", sample_values({3, 4}, DType::complex128), at({index_t{-1}})),
          unary("block", sample_values({5, 4}, DType::float64), at({slice(1, 4), slice({}, -1)})),
          unary("steps", sample_values({5, 6}, DType::complex64),
                at({slice({}, {}, -2), slice(1, {}, 3)})),
          unary("new axes", sample_values({3, 4}, DType::float32),
                at({newaxis, ellipsis, index_t{2}, newaxis})),
          unary("nothing", sample_values({3, 4}, DType::float64), at({slice(2, 2)}))};
}

std::vector<OpSample> update_subtensor_samples() {
  std::vector<OpSample> result;
  struct Case {
    const char* name;
    std::vector<Index> where;
    Extents value;
  };
  const Case kCases[] = {{"block", {slice(1, 3)}, {2, 5}},
                         {"broadcast", {slice({}, {}, -2), slice(1, 4)}, {1, 3}},
                         {"element", {index_t{0}, index_t{-1}}, {}},
                         {"everything", {}, {4, 5}}};
  for (const Case& c : kCases) {
    for (DType dtype : {DType::float64, DType::complex128, DType::int32}) {
      const std::string name = std::string(c.name) + " " + std::string(name_of(dtype));
      const std::vector<Tensor> inputs{sample_values({4, 5}, dtype, 1),
                                       sample_values(c.value, dtype, 2)};
      result.push_back({"set " + name, inputs,
                        [where = c.where](Vars v) { return set_subtensor(v[0], where, v[1]); }});
      result.push_back({"inc " + name, inputs,
                        [where = c.where](Vars v) { return inc_subtensor(v[0], where, v[1]); }});
    }
  }
  return result;
}

namespace {

Tensor points(const std::vector<index_t>& values, Extents shape) {
  return Tensor::from(values, std::move(shape));
}

}  // namespace

std::vector<OpSample> gather_samples() {
  const Tensor rows = points({0, 2, 2, -1}, {4}), columns = points({1, 0, 3, -4}, {4});
  const auto read = [](Vars v) { return gather(v[0], v.subspan(1)); };
  const auto read_constants = [=](Vars v) {
    const Variable indices[] = {constant(rows), constant(columns)};
    return gather(v[0], indices);
  };
  const Tensor x = sample_values({2, 3, 4}, DType::complex128);
  return {{"last axis", {x, points({3, 1, 1, 0}, {2, 2})}, read},
          {"two axes", {x, rows, columns}, read},
          {"grid", {x, points({0, 2}, {2, 1}), points({1, 3, 0}, {1, 3})}, read},
          {"constants", {sample_values({2, 3, 4}, DType::float32)}, read_constants},
          {"no points", {x, points({}, {0})}, read}};
}

std::vector<OpSample> scatter_add_samples() {
  const Tensor rows = points({0, 2, 2, -1}, {4}), columns = points({1, 0, 0, -4}, {4});
  const auto add_at = [](const Extents& sizes) {
    return [=](Vars v) { return scatter_add(v[0], v.subspan(1), sizes); };
  };
  const auto add_at_constants = [=](Vars v) {
    const Variable indices[] = {constant(rows), constant(columns)};
    return scatter_add(v[0], indices, {3, 4});
  };
  const Tensor y = sample_values({2, 4}, DType::complex128);
  return {{"one axis", {y, rows}, add_at({3})},
          {"two axes", {y, rows, columns}, add_at({3, 4})},
          {"constants", {sample_values({2, 4}, DType::float32)}, add_at_constants},
          {"no points", {sample_values({2, 0}, DType::float64), points({}, {0})}, add_at({3})}};
}

// -- creation ----------------------------------------------------------------------------------

std::vector<OpSample> full_samples() {
  return {unary("f64", sample_values({}, DType::float64),
                [](const Variable& x) {
                  return full({2, 3}, x);
                }),
          unary("c64", sample_values({}, DType::complex64),
                [](const Variable& x) { return full({5}, x); }),
          unary("nothing", sample_values({}, DType::int32), [](const Variable& x) {
            return full({0, 2}, x);
          })};
}

std::vector<OpSample> full_like_samples() {
  const auto like = [](Vars v) { return std::make_shared<FullLike>()->make_node(v).output(0); };
  return {
      {"c128", {sample_values({}, DType::complex128), sample_values({2, 3}, DType::int8)}, like}};
}

std::vector<OpSample> axis_count_samples() {
  const auto count = [](Vars v) {
    return std::make_shared<AxisCount>(Axes{0, 2}, DType::float64)->make_node(v).output(0);
  };
  return {{"two axes", {sample_values({2, 3, 4}, DType::complex64)}, count}};
}

}  // namespace palimpsest::ops
