// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/fft.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/transforms/weighted_fft_op.hpp"

namespace palimpsest::ops {

std::string written(const WeightedFftParameters& value) {
  return written(value.there) + ", back=" + written(value.back) +
         (value.zeros.empty() ? "" : ", " + parameter("zeros", value.zeros));
}

void read(ParameterText& text, WeightedFftParameters& value) {
  read(text, value.there);
  text.expect(", back=");
  read(text, value.back);
  if (text.take(", zeros=")) value.zeros = text.integers();
}

namespace {

void check_zeros(const Extents& zeros, const Axes& axes, std::size_t rank, const std::string& who) {
  bool fits = zeros.empty() || zeros.size() == rank;
  for (std::size_t k = 0; fits && k < zeros.size(); ++k) {
    const bool is_transformed =
        std::find(axes.begin(), axes.end(), static_cast<index_t>(k)) != axes.end();
    fits = zeros[k] == 0 || (zeros[k] > 0 && is_transformed);
  }
  if (fits) return;
  throw ValueError("[" + who + "] zeros: got " + to_string(zeros) +
                   ", expected a number for each " + "of " + std::to_string(rank) +
                   " axes, 0 but along transformed ones " + to_string(axes));
}

Extents extents_of_spectrum(const WeightedFftParameters& parameters, std::span<const index_t> x) {
  Extents result(x);
  for (std::size_t k = 0; k < parameters.zeros.size(); ++k) {
    if (result[k] != kUnknown) result[k] += parameters.zeros[k];
  }
  return result;
}

FftParameters transform_back(const WeightedFftParameters& parameters) {
  FftParameters result = parameters.there;
  result.forward = !result.forward;
  result.scale = parameters.back;
  return result;
}

}  // namespace

bool WeightedFft::takes(const TensorType& spectrum, const TensorType& weights) {
  if (weights.dtype != spectrum.dtype && weights.dtype != real_of(spectrum.dtype)) return false;
  if (weights.rank() != spectrum.rank()) return false;
  for (std::size_t k = 0; k < weights.rank(); ++k) {
    const index_t n = weights.shape[k];
    if (n != 1 && (n == kUnknown || n != spectrum.shape[k])) return false;
  }
  return true;
}

void check_weights(const WeightedFftParameters& parameters, const TensorType& x,
                   const TensorType& w, const std::string& who) {
  const Axes axes = normalize_axes(parameters.there.axes, x.rank(), who);
  check_zeros(parameters.zeros, axes, x.rank(), who);
  const TensorType spectrum{x.dtype, extents_of_spectrum(parameters, x.shape), x.device};
  if (WeightedFft::takes(spectrum, w)) return;
  throw ShapeError("[" + who + "] weights: got " + w.str() + ", expected real or complex " +
                   "ones of the precision and rank of " + spectrum.str() +
                   ", with its known extents or one element along each axis. Try specify_shape");
}

void check_weights(const WeightedFftParameters& parameters, std::span<const index_t> x,
                   std::span<const index_t> w, const std::string& who) {
  const Extents spectrum = extents_of_spectrum(parameters, x);
  for (std::size_t k = 0; k < spectrum.size(); ++k) {
    if (w[k] == 1 || w[k] == spectrum[k]) continue;
    throw ShapeError("[" + who + "] weights: got " + to_string(w) + " for " + to_string(spectrum) +
                     ", expected the same extents or 1");
  }
}

Apply WeightedFft::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 2, name());
  const TensorType& x = inputs[0].type();
  normalize_axes(parameters_.there.axes, x.rank(), name());
  if (!is_complex(x.dtype)) {
    throw DTypeError("[" + name() + "] got " + x.str() + ", expected a complex array. Try astype");
  }
  check_weights(parameters_, x, inputs[1].type(), name());
  if (in_place_) expect_own_elements(inputs[0], name());
  return node(inputs, {x});
}

std::vector<Extents> WeightedFft::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  check_weights(parameters_, inputs[0], inputs[1], name());
  return {inputs[0]};
}

// The adjoint of C F' w F P has the transforms in the other order: C F^H conj(w) F'^H P.
std::vector<Variable> WeightedFft::pullback(const Apply& apply, CotangentSpan cotangents) const {
  PadWidths widths;
  std::vector<Index> entries;
  for (const index_t zeros : parameters_.zeros) {
    widths.emplace_back(0, zeros);
    entries.emplace_back(zeros == 0 ? Index(All()) : Index(slice(0, -zeros)));
  }
  const auto padded = [&](const Variable& v) { return widths.empty() ? v : pad(v, widths); };
  const Variable x = padded(apply.input(0)), w = apply.input(1);
  const Variable of_spectrum =
      transform(padded(cotangents[0]), Fft(transform_back(parameters_)).adjoint());
  const Variable of_x = transform(of_spectrum * conj(w), Fft(parameters_.there).adjoint());
  const Variable of_w = of_spectrum * conj(transform(x, parameters_.there));
  return {entries.empty() ? of_x : index(of_x, entries), as_cotangent_of(w, of_w)};
}

FftSpec spec_of(const WeightedFftParameters& parameters, bool in_place, const Layout& x,
                const Layout& weights, std::span<const index_t> out_strides) {
  const Extents spectrum = extents_of_spectrum(parameters, x.extents);
  const auto spec_with = [&](const FftParameters& transform) {
    return spec_of(transform, in_place, x.dtype, spectrum, x.strides, out_strides);
  };
  FftSpec spec = spec_with(parameters.there);
  spec.scale *= spec_with(transform_back(parameters)).scale;
  spec.extents = x.extents;
  spec.weights = {is_complex(weights.dtype), weights.strides,
                  parameters.zeros.empty() ? Extents() : spectrum};
  for (std::size_t k = 0; k < weights.extents.size(); ++k) {
    if (weights.extents[k] == 1) spec.weights->strides[k] = 0;
  }
  return spec;
}

Layout layout_of(const ConstView& view) { return {view.dtype, view.extents, view.strides}; }

std::size_t WeightedFft::scratch_bytes(const Apply&, std::span<const Layout> inputs) const {
  if (parameters_.zeros.empty()) return 0;
  return fft_workspace_bytes(
      spec_of(parameters_, in_place_, inputs[0], inputs[1], inputs[0].strides));
}

std::size_t WeightedFft::library_bytes(const Apply&, std::span<const Layout> inputs,
                                       std::span<const Layout> outputs) const {
  if (element_count(inputs[0].extents) == 0) return 0;
  return fft_plan(spec_of(parameters_, in_place_, inputs[0], inputs[1], outputs[0].strides))
      .external_bytes(planned_threads());
}

void WeightedFft::run(RunContext& context) const {
  const ConstView &x = context.input(0), &weights = context.input(1);
  const MutableView& out = context.output(0);
  if (element_count(x.extents) == 0) return;
  execute(fft_plan(spec_of(parameters_, in_place_, layout_of(x), layout_of(weights), out.strides)),
          x.data, out.data, {.weights = weights.data, .workspace = context.scratch()});
}

void register_ops_of_weighted_fft() { register_type<WeightedFft>(); }

}  // namespace palimpsest::ops
