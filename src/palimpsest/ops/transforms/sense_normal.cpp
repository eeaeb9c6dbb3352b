// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/fft.hpp"
#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/transforms/sense_normal_op.hpp"

namespace palimpsest::ops {
namespace {

// An array of one axis less, repeated along a new axis 0.
Extents behind_coils(index_t first, std::span<const index_t> others) {
  Extents result{first};
  for (const index_t n : others) result.push_back(n);
  return result;
}

}  // namespace

void SenseNormal::check_maps(std::span<const index_t> x, std::span<const index_t> maps) const {
  bool fits = maps.size() == x.size() + 1 && maps[0] != 0;
  for (std::size_t k = 0; fits && k < x.size(); ++k) {
    fits = maps[k + 1] == x[k] || maps[k + 1] == kUnknown || x[k] == kUnknown;
  }
  if (fits) return;
  throw ShapeError("[SenseNormal] maps: got " + to_string(maps) + ", expected one coil or more, " +
                   "and the extents " + to_string(x) + " of the image behind them");
}

Apply SenseNormal::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 3, name());
  const TensorType &x = inputs[0].type(), &maps = inputs[1].type();
  check_maps(x.shape, maps.shape);
  const Axes axes = normalize_axes(parameters_.there.axes, maps.rank(), name());
  if (axes.size() < 2 || std::find(axes.begin(), axes.end(), 0) != axes.end()) {
    throw ValueError("[SenseNormal] axes: got " + to_string(axes) +
                     ", expected two or more, without axis 0 of the coils");
  }
  if (!is_complex(x.dtype) || maps.dtype != x.dtype) {
    throw DTypeError("[SenseNormal] got " + x.str() + " and maps " + maps.str() +
                     ", expected one complex dtype. Try astype");
  }
  check_weights(parameters_, maps, inputs[2].type(), name());
  return node(inputs, {x});
}

std::vector<Extents> SenseNormal::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  check_maps(inputs[0], inputs[1]);
  check_weights(parameters_, inputs[1], inputs[2], name());
  return {inputs[0]};
}

// In x the adjoint is the same with F'^H, conj(w), F^H. The others are those of the products, the
// WeightedFft and the sum, one by one.
std::vector<Variable> SenseNormal::pullback(const Apply& apply, CotangentSpan cotangents) const {
  const Variable &x = apply.input(0), &maps = apply.input(1), &w = apply.input(2);
  const Variable& y = cotangents[0];
  Parameters adjoint = parameters_;
  std::swap(adjoint.there.scale, adjoint.back);
  const Variable of_x_from[] = {y, maps, conj(w)};
  const auto weighed = std::make_shared<const WeightedFft>(parameters_);
  const Variable image = expand_dims(x, {0}), of_image = expand_dims(y, {0});
  const Variable weighed_from[] = {maps * image, w};
  const Apply step = weighed->make_node(weighed_from);
  const Variable of_step[] = {maps * of_image};
  const std::vector<Variable> of_weighed = weighed->pullback(step, of_step);
  return {std::make_shared<const SenseNormal>(adjoint)->make_node(of_x_from).output(0),
          step.output(0) * conj(of_image) + of_weighed[0] * conj(image), of_weighed[1]};
}

FftSpec SenseNormal::spec(const Layout& x, const Layout& maps, const Layout& weights,
                          std::span<const index_t> out_strides) const {
  const Layout repeated{x.dtype, maps.extents, behind_coils(0, x.strides)};
  FftSpec spec = spec_of(parameters_, false, repeated, weights, behind_coils(0, out_strides));
  spec.factors = FftFactors{maps.strides};
  return spec;
}

std::size_t SenseNormal::scratch_bytes(const Apply&, std::span<const Layout> inputs) const {
  return fft_workspace_bytes(spec(inputs[0], inputs[1], inputs[2], inputs[0].strides),
                             planned_threads());
}

std::size_t SenseNormal::library_bytes(const Apply&, std::span<const Layout> inputs,
                                       std::span<const Layout> outputs) const {
  if (element_count(inputs[0].extents) == 0) return 0;
  return fft_plan(spec(inputs[0], inputs[1], inputs[2], outputs[0].strides))
      .external_bytes(planned_threads());
}

void SenseNormal::run(RunContext& context) const {
  const ConstView &x = context.input(0), &maps = context.input(1), &weights = context.input(2);
  const MutableView& out = context.output(0);
  if (element_count(x.extents) == 0) return;
  const FftPlan plan =
      fft_plan(spec(layout_of(x), layout_of(maps), layout_of(weights), out.strides));
  execute(plan, x.data, out.data,
          {.weights = weights.data, .factors = maps.data, .workspace = context.scratch()});
}

void register_ops_of_sense_normal() { register_type<SenseNormal>(); }

}  // namespace palimpsest::ops
