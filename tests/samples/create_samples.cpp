// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/create/create_op.hpp"
#include "palimpsest/ops/loop/run_time_extent_op.hpp"
#include "palimpsest/ops/ops.hpp"
#include "samples/op_samples.hpp"

namespace palimpsest::ops {

std::vector<OpSample> alloc_samples() {
  const auto like = [](Vars v) { return alloc(v[0], {shape(v[1], 1), 2, shape(v[1], 0) * 2}); };
  return {unary("f64", sample_values({}, DType::float64),
                [](const Variable& x) {
                  return full({2, 3}, x);
                }),
          unary("c64", sample_values({}, DType::complex64),
                [](const Variable& x) { return full({5}, x); }),
          unary("nothing", sample_values({}, DType::int32),
                [](const Variable& x) {
                  return full({0, 2}, x);
                }),
          unary("broadcast", sample_values({3, 1}, DType::complex128),
                [](const Variable& x) {
                  return alloc(x, {2, 3, 4});
                }),
          {"computed extents",
           {sample_values({2, 1}, DType::complex128), sample_values({2, 3}, DType::int8)},
           like}};
}

std::vector<OpSample> axis_count_samples() {
  const auto count = [](Vars v) {
    return std::make_shared<AxisCount>(Axes{0, 2}, DType::float64)->make_node(v).output(0);
  };
  return {{"two axes", {sample_values({2, 3, 4}, DType::complex64)}, count}};
}

std::vector<OpSample> shape_samples() {
  const auto of = [](Vars v) { return std::make_shared<ShapeOf>()->make_node(v).output(0); };
  return {{"matrix", {sample_values({2, 3}, DType::complex64)}, of},
          {"0-d", {sample_values({}, DType::float64)}, of}};
}

std::vector<OpSample> run_time_extent_samples() {
  const auto of = [](const Variable& n) {
    return std::make_shared<RunTimeExtent>()->make_node({&n, 1}).output(0);
  };
  return {unary("some", Tensor::scalar<index_t>(3), of),
          unary("none", Tensor::scalar<index_t>(0), of)};
}

std::vector<OpSample> arange_samples() {
  const auto as_long_as = [](Vars v) { return arange(v[0].shape(0)); };
  const auto from = [](Vars) { return arange(2.5, -1, -0.5); };
  const auto integers = [](Vars) { return arange(-3, 9, 4, DType::int8); };
  const auto between = [](Vars) { return linspace(0, 1, 7, DType::complex64); };
  const auto nothing = [](Vars) { return arange(0); };
  return {{"numbers", {}, from},
          {"integers", {}, integers},
          {"linspace", {}, between},
          {"nothing", {}, nothing},
          {"computed", {sample_values({3, 2}, DType::float64)}, as_long_as}};
}

std::vector<OpSample> eye_samples() {
  const auto of = [](index_t n, index_t m, index_t k, DType dtype) {
    return [=](Vars) { return eye(n, Operand(m), k, dtype); };
  };
  const auto computed = [](Vars v) { return eye(v[0].shape(0)); };
  return {{"square", {}, of(3, 3, 0, DType::float64)},
          {"above", {}, of(2, 5, 2, DType::complex64)},
          {"below", {}, of(4, 2, -1, DType::int32)},
          {"outside", {}, of(2, 2, 5, DType::bool_)},
          {"computed", {sample_values({3, 2}, DType::float64)}, computed}};
}

}  // namespace palimpsest::ops
