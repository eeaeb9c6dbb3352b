// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "palimpsest/ops/ops.hpp"
#include "palimpsest/ops/transforms/sense_normal_op.hpp"
#include "samples/op_samples.hpp"

namespace palimpsest::ops {
namespace {

Variable normal_of(const WeightedFftParameters& parameters, Vars inputs) {
  return std::make_shared<const SenseNormal>(parameters)->make_node(inputs).output(0);
}

}  // namespace

std::vector<OpSample> sense_normal_samples() {
  constexpr auto kRoot = FftScale::root;
  struct Case {
    const char* name;
    Extents x, maps, w;
    WeightedFftParameters parameters;
  };
  std::vector<OpSample> result;
  for (const Case& c :
       {Case{"mask", {4, 5}, {3, 4, 5}, {1, 4, 5}, {{{1, 2}, true, kRoot, true}, kRoot}},
        Case{"weights of each coil",
             {4, 3},
             {2, 4, 3},
             {2, 4, 3},
             {{{1, 2}, true, kRoot, false}, kRoot}},
        Case{"slices",
             {2, 3, 4},
             {2, 2, 3, 4},
             {1, 1, 3, 1},
             {{{2, 3}, false, FftScale::inverse, false}, FftScale::one}},
        Case{"untransformed axis last",
             {3, 4, 2},
             {1, 3, 4, 2},
             {1, 3, 4, 1},
             {{{1, 2}, true, kRoot, true}, kRoot}},
        Case{
            "zeros", {3, 4}, {2, 3, 4}, {1, 5, 8}, {{{1, 2}, true, kRoot, true}, kRoot, {0, 2, 4}}},
        Case{"one element", {1, 1}, {2, 1, 1}, {1, 1, 1}, {{{1, 2}, true, kRoot, false}, kRoot}},
        Case{"no elements", {0, 4}, {2, 0, 4}, {1, 1, 4}, {{{1, 2}, true, kRoot, false}, kRoot}}}) {
    for (const DType dtype : {DType::complex64, DType::complex128}) {
      for (const DType of_weights : {dtype, real_of(dtype)}) {
        result.push_back(
            {std::string(c.name) + " " + std::string(name_of(dtype)) + " " +
                 std::string(name_of(of_weights)),
             {sample_values(c.x, dtype), sample_values(c.maps, dtype, 3),
              sample_values(c.w, of_weights, 2)},
             [parameters = c.parameters](Vars v) { return normal_of(parameters, v); }});
      }
    }
  }
  return result;
}

std::vector<testing::Refusal> sense_normal_refusals() {
  const auto with = [](const TensorType& x, const TensorType& maps, const TensorType& w,
                       const Axes& axes = {1, 2}) {
    return [=] {
      const Variable inputs[] = {make_input(x), make_input(maps), make_input(w)};
      normal_of({{axes, true, FftScale::one, false}, FftScale::inverse}, inputs);
    };
  };
  const TensorType z{DType::complex64, {4, 3}, {}}, maps{DType::complex64, {2, 4, 3}, {}},
      mask{DType::float32, {1, 4, 3}, {}};
  using testing::refusal;
  return {
      refusal<ShapeError>("[SenseNormal] maps: got (2, 4, 3), expected one coil or more",
                          with(maps, maps, mask)),
      refusal<ShapeError>("[SenseNormal] maps: got (2, 4, 5)",
                          with(z, {DType::complex64, {2, 4, 5}, {}}, mask)),
      refusal<ShapeError>("[SenseNormal] maps: got (0, 4, 3)",
                          with(z, {DType::complex64, {0, 4, 3}, {}}, mask)),
      refusal<ValueError>("[SenseNormal] axes: got (2,), expected two", with(z, maps, mask, {2})),
      refusal<ValueError>("[SenseNormal] axes: got (0, 1)", with(z, maps, mask, {0, 1})),
      refusal<DTypeError>("[SenseNormal] got complex64 (4, 3) and maps complex128",
                          with(z, {DType::complex128, {2, 4, 3}, {}}, mask)),
      refusal<ShapeError>("[SenseNormal] weights: got float32 (1, 4, 5)",
                          with(z, maps, {DType::float32, {1, 4, 5}, {}}))};
}

}  // namespace palimpsest::ops
