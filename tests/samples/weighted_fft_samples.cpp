// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "palimpsest/ops/ops.hpp"
#include "palimpsest/ops/transforms/weighted_fft_op.hpp"
#include "samples/op_samples.hpp"

namespace palimpsest::ops {
namespace {

Variable weighted(const WeightedFftParameters& parameters, Vars inputs) {
  return std::make_shared<const WeightedFft>(parameters)->make_node(inputs).output(0);
}

}  // namespace

std::vector<OpSample> weighted_fft_samples() {
  struct Case {
    const char* name;
    Extents x, w;
    Axes axes;
    bool centered = false, forward = true;
    FftScale there = FftScale::root, back = FftScale::root;
    Extents zeros = {};
  };
  std::vector<OpSample> result;
  for (const Case& c :
       {Case{"all", {4, 3, 5}, {4, 3, 5}, {0, 2}}, Case{"mask", {2, 4, 5}, {1, 4, 5}, {1, 2}, true},
        Case{"line", {3, 6}, {1, 6}, {1}, false, false, FftScale::inverse, FftScale::one},
        Case{"number", {5, 3}, {1, 1}, {0}, true, true, FftScale::one, FftScale::inverse},
        Case{"no axes", {2, 3}, {2, 1}, {}}, Case{"no elements", {0, 4}, {1, 4}, {1}},
        Case{"zeros",
             {2, 3, 4},
             {1, 5, 8},
             {1, 2},
             true,
             true,
             FftScale::root,
             FftScale::root,
             {0, 2, 4}},
        Case{"zeros along one axis",
             {3, 4},
             {5, 1},
             {0, 1},
             false,
             false,
             FftScale::one,
             FftScale::inverse,
             {2, 0}}}) {
    for (const DType dtype : {DType::complex64, DType::complex128}) {
      for (const DType of_weights : {dtype, real_of(dtype)}) {
        const WeightedFftParameters parameters{
            {c.axes, c.forward, c.there, c.centered}, c.back, c.zeros};
        result.push_back({std::string(c.name) + " " + std::string(name_of(dtype)) + " " +
                              std::string(name_of(of_weights)),
                          {sample_values(c.x, dtype), sample_values(c.w, of_weights, 2)},
                          [parameters](Vars v) { return weighted(parameters, v); }});
      }
    }
  }
  return result;
}

std::vector<testing::Refusal> weighted_fft_refusals() {
  const auto with = [](const TensorType& x, const TensorType& w, const Extents& zeros = {}) {
    return [=] {
      const Variable inputs[] = {make_input(x), make_input(w)};
      weighted({{{0}, true, FftScale::one, false}, FftScale::inverse, zeros}, inputs);
    };
  };
  const TensorType z{DType::complex64, {4, 3}, {}}, m{DType::float32, {4, 3}, {}};
  using testing::refusal;
  return {refusal<DTypeError>("[WeightedFft] got float32 (4, 3), expected a complex", with(m, m)),
          refusal<ShapeError>("weights: got float32 (3,)", with(z, {DType::float32, {3}, {}})),
          refusal<ShapeError>("weights: got float32 (4, 2)", with(z, {DType::float32, {4, 2}, {}})),
          refusal<ShapeError>("weights: got float32 (4, ?)",
                              with(z, {DType::float32, {4, kUnknown}, {}})),
          refusal<ShapeError>("expected real or complex ones of the precision",
                              with(z, {DType::float64, {4, 3}, {}})),
          refusal<ShapeError>("rank of complex64 (6, 3)", with(z, m, {2, 0})),
          refusal<ValueError>("zeros: got (0, 2)", with(z, {DType::float32, {4, 5}, {}}, {0, 2})),
          refusal<ValueError>("zeros: got (-1, 0)", with(z, {DType::float32, {3, 3}, {}}, {-1, 0})),
          refusal<ValueError>("zeros: got (2,)", with(z, m, {2}))};
}

}  // namespace palimpsest::ops
