// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/control/device.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/ops/shape/contiguous_op.hpp"
#include "palimpsest/ops/shape/rearrange_op.hpp"
#include "palimpsest/ops/shape/shape_op.hpp"
#include "palimpsest/ops/shape/strided_op.hpp"
#include "samples/op_samples.hpp"

namespace palimpsest::ops {

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

std::vector<OpSample> contiguous_samples() {
  const auto dense = [](const Variable& x) {
    return std::make_shared<Contiguous>()->make_node({&x, 1}).output(0);
  };
  return {unary("matrix", sample_values({3, 4}, DType::complex128), dense),
          unary("number", sample_values({}, DType::float64), dense)};
}

std::vector<OpSample> reshape_to_samples() {
  const auto like = [](Vars v) {
    const ExtentPrograms shape{ExtentProgram::of_input(1, 1), ExtentProgram(-1)};
    return std::make_shared<ReshapeTo>(shape)->make_node(v).output(0);
  };
  return {{"columns",
           {sample_values({4, 6}, DType::complex128), sample_values({2, 3}, DType::int8)},
           like},
          {"of real numbers",
           {sample_values({4, 6}, DType::float64), sample_values({2, 8}, DType::int8)},
           like}};
}

std::vector<OpSample> transpose_samples() {
  return {unary("2, 0, 1", sample_values({2, 3, 4}, DType::complex128),
                [](const Variable& x) {
                  return transpose(x, {2, 0, 1});
                }),
          unary("matrix", sample_values({2, 3}, DType::float64), [](const Variable& x) {
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

std::vector<OpSample> strided_samples() {
  const auto view = [](Extents extents, Strides strides, index_t offset,
                       std::optional<DType> dtype = {}) {
    return [=](const Variable& x) { return as_strided(x, extents, strides, offset, dtype); };
  };
  return {
      unary("part", sample_values({12}, DType::complex128), view({2, 3}, {6, 1}, 1)),
      unary("backwards", sample_values({9}, DType::float64), view({3, 2}, {-2, 3}, 4)),
      unary("overlapping", sample_values({7}, DType::float64), view({5, 3}, {1, 1}, 0)),
      unary("stretched", sample_values({4}, DType::complex64), view({3, 2}, {0, 2}, 1)),
      unary("real parts", sample_values({5}, DType::complex128), view({4}, {2}, 2, DType::float64)),
      unary("pairs", sample_values({8}, DType::float32), view({2}, {2}, 1, DType::complex64)),
      unary("bytes", sample_values({3}, DType::int32), view({2, 2}, {4, 1}, 1, DType::uint8)),
      unary("number", sample_values({3}, DType::float64), view({}, {}, 2)),
      unary("of nothing", sample_values({3}, DType::float64), view({0, 2}, {5, 1}, 9))};
}

std::vector<OpSample> strided_adjoint_samples() {
  const auto sum = [](DType dtype, index_t n, Strides strides, index_t offset) {
    return [=](const Variable& w) {
      return std::make_shared<StridedAdjoint>(dtype, n, strides, offset)
          ->make_node({&w, 1})
          .output(0);
    };
  };
  return {
      unary("part", sample_values({2, 3}, DType::complex128),
            sum(DType::complex128, 12, {6, 1}, 1)),
      unary("overlapping", sample_values({5, 3}, DType::float64),
            sum(DType::float64, 7, {1, 1}, 0)),
      unary("real parts", sample_values({4}, DType::float64), sum(DType::complex128, 5, {2}, 2)),
      unary("pairs", sample_values({2}, DType::complex64), sum(DType::float32, 8, {2}, 1)),
      unary("of nothing", sample_values({0}, DType::float64), sum(DType::float64, 2, {1}, 0))};
}

std::vector<OpSample> squeeze_samples() {
  std::vector<OpSample> result;
  for (DType dtype : {DType::float64, DType::complex128}) {
    result.push_back(unary("some", sample_values({1, 3, 1, 2}, dtype), [](const Variable& x) {
      return squeeze(x, {0, -2});
    }));
  }
  return result;
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
           like},
          {"leading",
           {sample_values({1, 4}, DType::float64), sample_values({3, 4}, DType::int8)},
           like}};
}

std::vector<OpSample> specify_shape_samples() {
  const auto as = [](Vars v) {
    return std::make_shared<SpecifyShape>(Extents{3, kUnknown})->make_node(v).output(0);
  };
  return {{"first axis", {sample_values({3, 4}, DType::complex128)}, as},
          {"of real numbers", {sample_values({3, 2}, DType::float64)}, as}};
}

std::vector<OpSample> stop_gradient_samples() {
  return {unary("c128", sample_values({3, 4}, DType::complex128), stop_gradient)};
}

std::vector<OpSample> to_device_samples() {
  const auto there = [](const Variable& x) { return to_device(x, Device{DeviceType::cpu, 1}); };
  return {unary("c128", sample_values({3, 4}, DType::complex128), there),
          unary("of one axis", sample_values({5}, DType::float64), there),
          unary("of nothing", sample_values({0, 2}, DType::int16), there)};
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
  for (DType dtype : {DType::float32, DType::float64, DType::complex128, DType::int32}) {
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

std::vector<OpSample> pad_around_samples() {
  std::vector<OpSample> result;
  const auto fold = [](PadRule rule) {
    return [=](const Variable& w) {
      return std::make_shared<PadAround>(Extents{2, 0}, Extents{3, 7}, rule, w.dtype(), true)
          ->make_node({&w, 1})
          .output(0);
    };
  };
  const std::pair<PadMode, PadRule> kModes[] = {{PadMode::edge, PadRule::edge},
                                                {PadMode::wrap, PadRule::wrap},
                                                {PadMode::reflect, PadRule::reflect}};
  for (const auto& [mode, rule] : kModes) {
    const std::string name = std::to_string(static_cast<int>(mode));
    for (DType dtype : {DType::float64, DType::complex128, DType::int16}) {
      const std::string what = name + " " + std::string(name_of(dtype));
      result.push_back(
          unary("around " + what, sample_values({3, 2}, dtype), [mode = mode](const Variable& x) {
            return pad(x, {{1, 2}, {7, 0}}, mode);
          }));
      result.push_back(unary("fold " + what, sample_values({8, 9}, dtype), fold(rule)));
    }
    result.push_back(unary("one element " + name, sample_values({1, 2}, DType::float32),
                           [mode = mode](const Variable& x) {
                             return pad(x, {{2, 2}, {0, 0}}, mode);
                           }));
  }
  return result;
}

std::vector<OpSample> part_of_samples() {
  const auto piece = [](Vars v) { return std::make_shared<PartOf>(1, 1)->make_node(v).output(0); };
  return {{"middle",
           {sample_values({2, 6}, DType::complex128), sample_values({2, 1}, DType::float32),
            sample_values({2, 3}, DType::float32), sample_values({2, 2}, DType::float32)},
           piece},
          {"last",
           {sample_values({2, 3}, DType::float64), sample_values({2, 2}, DType::int8),
            sample_values({2, 1}, DType::int8)},
           piece}};
}

std::vector<OpSample> roll_samples() {
  return {unary("forward", sample_values({3, 5}, DType::complex64),
                [](const Variable& x) { return roll(x, 2, 1); }),
          unary("backward", sample_values({3, 5}, DType::float64),
                [](const Variable& x) { return roll(x, -7, 0); }),
          unary("by half", sample_values({5, 4}, DType::complex128),
                [](const Variable& x) { return fftshift(x, Axes{0}); }),
          unary("back by half", sample_values({5, 4}, DType::complex128),
                [](const Variable& x) { return ifftshift(x, Axes{0}); }),
          unary("several axes", sample_values({3, 2, 5}, DType::float32),
                [](const Variable& x) {
                  return roll(x, {4, -1}, Axes{2, 0});
                }),
          unary("by half along all axes", sample_values({3, 2, 5}, DType::int16),
                [](const Variable& x) { return fftshift(x); }),
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
       {sample_values({2, 3}, DType::float64, 1), sample_values({2, 0}, DType::float64, 2),
        sample_values({2, 2}, DType::float64, 3)},
       along(-1)}};
}

}  // namespace palimpsest::ops
