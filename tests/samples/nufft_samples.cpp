// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/transforms/gridding_op.hpp"
#include "samples/op_samples.hpp"

namespace palimpsest::ops {
namespace {

// A grid, points around it, and their order.
struct GriddingSample {
  GriddingSample(Extents grid, Extents points, DType real, InterpolateOptions options = {})
      : plan(gridding_spec(grid, options, "interpolate")), extents(std::move(points)) {
    Extents shape = extents;
    shape.push_back(static_cast<index_t>(grid.size()));
    locs = Tensor::random_uniform(shape, DType::float64, {3, 0});
    auto* numbers = static_cast<double*>(locs.raw_mutable_data());
    for (index_t i = 0; i < locs.numel(); ++i) numbers[i] = 14 * numbers[i] - 4;
    locs = locs.to(real);
    order = Tensor::empty({plan.order_size(element_count(extents))}, DType::int32);
    std::vector<index_t> scratch(plan.sort_scratch_bytes() / sizeof(index_t));
    sort_points(plan, locs.view_of(), order.mutable_view(),
                reinterpret_cast<std::byte*>(scratch.data()), "interpolate");
  }

  GriddingPlan plan;
  Extents extents;
  Tensor locs, order;
};

struct Case {
  const char* name;
  Extents batch, grid, points;
  DType dtype;
  InterpolateOptions options = {};
};

std::vector<Case> cases() {
  const KaiserBessel bessel{.beta = 6.0};
  return {{"1-D", {2}, {40}, {7}, DType::complex128, {.width = 5.0, .kernel = bessel}},
          {"2-D c64", {}, {24, 30}, {3, 2}, DType::complex64, {.kernel = bessel}},
          {"3-D", {}, {9, 10, 20}, {4}, DType::complex128, {.width = 3.0}},
          {"real", {2}, {8, 9}, {5}, DType::float32},
          {"spline", {}, {8}, {5}, DType::float64, {.width = 2.5, .kernel = Spline{.order = 2}}},
          {"radial", {}, {8, 7}, {5}, DType::complex128, {.norm = 2, .pad_mode = PadMode::zero}},
          {"no points", {2}, {8}, {0}, DType::complex64}};
}

std::vector<OpSample> interpolation_samples(bool adjoint) {
  std::vector<OpSample> result;
  for (const Case& c : cases()) {
    const GriddingSample sample(c.grid, c.points, real_of(c.dtype), c.options);
    Extents data = c.batch;
    for (const index_t n : adjoint ? c.points : c.grid) data.push_back(n);
    result.push_back({c.name,
                      {sample_values(data, c.dtype), sample.locs, sample.order},
                      [plan = sample.plan, adjoint](std::span<const Variable> v) {
                        return adjoint ? interpolate_adjoint(plan, v[0], v[1], v[2])
                                       : interpolate(plan, v[0], v[1], v[2]);
                      }});
  }
  return result;
}

}  // namespace

std::vector<OpSample> interpolate_samples() { return interpolation_samples(false); }
std::vector<OpSample> interpolate_adjoint_samples() { return interpolation_samples(true); }

std::vector<OpSample> point_order_samples() {
  std::vector<OpSample> result;
  for (const Case& c : cases()) {
    const GriddingSample sample(c.grid, c.points, real_of(c.dtype), c.options);
    result.push_back({c.name, {sample.locs}, [plan = sample.plan](std::span<const Variable> v) {
                        return point_order(plan, v[0]);
                      }});
  }
  return result;
}

}  // namespace palimpsest::ops
