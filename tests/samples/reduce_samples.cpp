// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "palimpsest/ops/elementwise/elementwise_sums.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/ops/reduce/reduce_op.hpp"
#include "palimpsest/ops/transforms/real_fft_op.hpp"
#include "samples/op_samples.hpp"

namespace palimpsest::ops {

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
  result.push_back(
      unary("max of nothing", sample_values({3, 0}, DType::float64), [](const Variable& x) {
        const auto op = std::make_shared<Reduce>(ReduceOp::max, Axes{1}, true);
        return op->make_node({&x, 1}).output(0);
      }));
  return result;
}

std::vector<OpSample> fused_reduce_samples() {
  std::vector<OpSample> result;
  const auto add = [&](std::string name, ScalarOp first, ScalarOp second, ReduceOp reduction,
                       Axes axes, std::vector<Tensor> inputs) {
    ElementwiseProgram program;
    std::vector<int> registers;
    for (const Tensor& x : inputs) registers.push_back(program.input(x.dtype()));
    const int product = program.apply(first, {registers[0], registers[1]});
    program.output(program.apply(second, {product, registers[0]}));
    const auto op = std::make_shared<const FusedReduce>(std::move(program), reduction, axes);
    result.push_back(
        {std::move(name), std::move(inputs), [op](Vars v) { return op->make_node(v).output(0); }});
  };
  const Extents shape{3, 4, 2}, row{1, 4, 1};
  for (DType dtype : {DType::float32, DType::float64, DType::complex128, DType::int32}) {
    const std::string name(name_of(dtype));
    const Tensor x = sample_values(shape, dtype), y = sample_values(shape, dtype, 2);
    add("sum 0 " + name, ScalarOp::mul, ScalarOp::add, ReduceOp::sum, {0}, {x, y});
    add("sum of all " + name, ScalarOp::mul, ScalarOp::sub, ReduceOp::sum, {0, 1, 2}, {x, y});
    add("prod " + name, ScalarOp::add, ScalarOp::mul, ReduceOp::prod, {1},
        {x, sample_values(row, dtype, 3)});
  }
  add("max of mixed", ScalarOp::mul, ScalarOp::sub, ReduceOp::max, {0, 2},
      {sample_values(shape, DType::float64), sample_values(row, DType::int16)});
  add("any", ScalarOp::lt, ScalarOp::logical_or, ReduceOp::any, {2},
      {sample_values(shape, DType::float64), sample_values(shape, DType::float64, 2)});
  add("of nothing", ScalarOp::mul, ScalarOp::add, ReduceOp::sum, {1},
      {sample_values({3, 0}, DType::float64), sample_values({3, 0}, DType::float64)});
  return result;
}

std::vector<OpSample> elementwise_sums_samples() {
  std::vector<OpSample> result;
  using Kind = SumOfOutputs::Kind;
  // x + 2 y, stored or not, and sums of it and of its product with x.
  const auto add = [&](const std::string& name, std::size_t n_arrays,
                       const std::vector<SumOfOutputs>& sums, Tensor x, Tensor y) {
    ElementwiseProgram program;
    const int a = program.input(x.dtype()), b = program.input(y.dtype());
    const int twice = program.apply(ScalarOp::add, {b, b});
    program.output(program.apply(ScalarOp::add, {a, twice}));
    program.output(a);
    const auto op = std::make_shared<const ElementwiseSums>(std::move(program), n_arrays, sums);
    result.push_back({name + " " + std::string(name_of(x.dtype())),
                      {std::move(x), std::move(y)},
                      [op](Vars v) { return op->make_node(v).output(0); }});
  };
  const SumOfOutputs norm{Kind::norm2, 0}, inner{Kind::conj_product, 0, 1},
      product{Kind::product, 1, 0}, plain{Kind::plain, 0};
  for (DType dtype : {DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    const Tensor x = sample_values({3, 4, 2}, dtype), y = sample_values({3, 4, 2}, dtype, 2);
    add("stored", 1, {norm, inner}, x, y);
    add("norm", 0, {norm}, x, y);
    add("inner product", 0, {inner, product}, x, y);
    add("product", 0, {product}, x, y);
    add("sum", 0, {plain}, x, y);
  }
  add("of a row", 1, {norm}, sample_values({3, 4}, DType::float64),
      sample_values({1, 4}, DType::float64));
  add("of nothing", 0, {plain}, sample_values({0, 4}, DType::float64),
      sample_values({0, 4}, DType::float64));
  return result;
}

std::vector<OpSample> arg_reduce_samples() {
  std::vector<OpSample> result;
  const auto with = [](auto function, Axes axes) {
    return [=](const Variable& x) { return function(x, {axes, false}); };
  };
  for (DType dtype : {DType::float32, DType::float64, DType::int8, DType::uint64, DType::bool_}) {
    const std::string name(name_of(dtype));
    const Tensor x = sample_values({3, 4, 5}, dtype);
    result.push_back(unary("max 1 " + name, x, with(argmax, {1})));
    result.push_back(unary("min 0, 2 " + name, x, with(argmin, {0, 2})));
  }
  result.push_back(unary("max of all", sample_values({3, 4}, DType::float64),
                         [](const Variable& x) { return argmax(x); }));
  result.push_back(unary("of no lines", sample_values({0, 4}, DType::float64), with(argmin, {1})));
  return result;
}

std::vector<OpSample> scan_samples() {
  std::vector<OpSample> result;
  for (DType dtype :
       {DType::float32, DType::float64, DType::complex128, DType::int32, DType::int64}) {
    const std::string name(name_of(dtype));
    for (index_t axis : {0, 1, 2}) {
      const Tensor x = sample_values({3, 4, 2}, dtype);
      result.push_back(unary("sum " + std::to_string(axis) + " " + name, x,
                             [=](const Variable& v) { return cumsum(v, axis); }));
      result.push_back(unary("product " + std::to_string(axis) + " " + name, x,
                             [=](const Variable& v) { return cumprod(v, axis); }));
    }
  }
  result.push_back(unary("of nothing", sample_values({0, 3}, DType::float64),
                         [](const Variable& x) { return cumsum(x, 0); }));
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

// Lines of n real elements along an axis. The op is built directly, since the extent may be
// unknown.
OpSample real_fft_sample(const Extents& extents, std::size_t axis, index_t n, FftScale scale,
                         DType dtype) {
  const auto op = std::make_shared<RealFft>(RealFftParameters{axis, n, scale}, is_complex(dtype));
  return unary(
      to_string(extents) + " axis " + std::to_string(axis) + " " + std::string(name_of(dtype)),
      sample_values(extents, dtype), [op](const Variable& x) {
        return op->make_node({&x, 1}).output(0);
      });
}

std::vector<OpSample> real_fft_samples() {
  std::vector<OpSample> result;
  for (DType dtype : {DType::float32, DType::float64}) {
    result.push_back(real_fft_sample({3, 12}, 1, 12, FftScale::one, dtype));
    result.push_back(real_fft_sample({6, 3}, 0, 6, FftScale::root, dtype));
    result.push_back(real_fft_sample({2, 34, 2}, 1, 34, FftScale::inverse, dtype));
    result.push_back(real_fft_sample({2, 2}, 1, 2, FftScale::one, dtype));
    result.push_back(real_fft_sample({0, 4}, 1, 4, FftScale::one, dtype));
  }
  return result;
}

std::vector<OpSample> real_fft_back_samples() {
  std::vector<OpSample> result;
  for (DType dtype : {DType::complex64, DType::complex128}) {
    result.push_back(real_fft_sample({3, 7}, 1, 12, FftScale::one, dtype));
    result.push_back(real_fft_sample({4, 3}, 0, 6, FftScale::root, dtype));
    result.push_back(real_fft_sample({2, 18, 2}, 1, 34, FftScale::inverse, dtype));
    result.push_back(real_fft_sample({2, 2}, 1, 2, FftScale::one, dtype));
  }
  return result;
}

}  // namespace palimpsest::ops
