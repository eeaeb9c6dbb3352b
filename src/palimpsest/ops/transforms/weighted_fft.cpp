// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/fft.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/transforms/weighted_fft_op.hpp"

namespace palimpsest::ops {

std::string written(const WeightedFftParameters& value) {
  return written(value.there) + ", back=" + written(value.back);
}

void read(ParameterText& text, WeightedFftParameters& value) {
  read(text, value.there);
  text.expect(", back=");
  read(text, value.back);
}

bool WeightedFft::takes(const TensorType& spectrum, const TensorType& weights) {
  if (weights.dtype != spectrum.dtype && weights.dtype != real_of(spectrum.dtype)) return false;
  if (weights.rank() != spectrum.rank()) return false;
  for (std::size_t k = 0; k < weights.rank(); ++k) {
    const index_t n = weights.shape[k];
    if (n != 1 && (n == kUnknown || n != spectrum.shape[k])) return false;
  }
  return true;
}

Apply WeightedFft::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 2, name());
  const TensorType &x = inputs[0].type(), &w = inputs[1].type();
  normalize_axes(parameters_.there.axes, x.rank(), name());
  if (!is_complex(x.dtype)) {
    throw DTypeError("[" + name() + "] got " + x.str() + ", expected a complex array. Try astype");
  }
  if (!takes(x, w)) {
    throw ShapeError("[" + name() + "] weights: got " + w.str() + ", expected real or complex " +
                     "ones of the precision and rank of " + x.str() +
                     ", with its known extents or one element along each axis. Try specify_shape");
  }
  if (in_place_) expect_own_elements(inputs[0], name());
  return node(inputs, {x});
}

std::vector<Extents> WeightedFft::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  for (std::size_t k = 0; k < inputs[0].size(); ++k) {
    if (inputs[1][k] == 1 || inputs[1][k] == inputs[0][k]) continue;
    throw ShapeError("[" + name() + "] weights: got " + to_string(inputs[1]) + " for " +
                     to_string(inputs[0]) + ", expected the same extents or 1");
  }
  return {inputs[0]};
}

FftParameters WeightedFft::back() const {
  FftParameters result = parameters_.there;
  result.forward = !result.forward;
  result.scale = parameters_.back;
  return result;
}

// The adjoint of F' w F has the transforms in the other order: F^H conj(w) F'^H.
std::vector<Variable> WeightedFft::pullback(const Apply& apply, CotangentSpan cotangents) const {
  const Variable x = apply.input(0), w = apply.input(1);
  const Variable of_spectrum = transform(cotangents[0], Fft(back()).adjoint());
  const Variable of_x = transform(of_spectrum * conj(w), Fft(parameters_.there).adjoint());
  const Variable of_w = of_spectrum * conj(transform(x, parameters_.there));
  return {of_x, as_cotangent_of(w, of_w)};
}

namespace {

FftPlan plan_of(const WeightedFftParameters& parameters, const FftParameters& back, bool in_place,
                const Layout& x, const Layout& weights, std::span<const index_t> out_strides) {
  FftSpec spec = spec_of(parameters.there, in_place, x.dtype, x.extents, x.strides, out_strides);
  spec.scale *= spec_of(back, in_place, x.dtype, x.extents, x.strides, out_strides).scale;
  spec.weights = {is_complex(weights.dtype), weights.strides};
  for (std::size_t k = 0; k < weights.extents.size(); ++k) {
    if (weights.extents[k] == 1) spec.weights->strides[k] = 0;
  }
  return fft_plan(spec);
}

Layout layout_of(const ConstView& view) { return {view.dtype, view.extents, view.strides}; }

}  // namespace

std::size_t WeightedFft::library_bytes(const Apply&, std::span<const Layout> inputs,
                                       std::span<const Layout> outputs) const {
  if (element_count(inputs[0].extents) == 0) return 0;
  return plan_of(parameters_, back(), in_place_, inputs[0], inputs[1], outputs[0].strides)
      .external_bytes();
}

void WeightedFft::run(RunContext& context) const {
  const ConstView &x = context.input(0), &weights = context.input(1);
  const MutableView& out = context.output(0);
  if (element_count(x.extents) == 0) return;
  execute(plan_of(parameters_, back(), in_place_, layout_of(x), layout_of(weights), out.strides),
          x.data, out.data, weights.data);
}

void register_ops_of_weighted_fft() { register_type<WeightedFft>(); }

}  // namespace palimpsest::ops
