// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/transforms/fft.hpp"

#include <cmath>

#include "palimpsest/base/config.hpp"
#include "palimpsest/kernels/fft/fft.hpp"
#include "palimpsest/kernels/fft/real_lines.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"
#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/shape/rearrange_op.hpp"
#include "palimpsest/ops/transforms/fft_op.hpp"
#include "palimpsest/ops/transforms/real_fft_op.hpp"

namespace palimpsest::ops {
namespace {

FftScale scale_of(FftNorm norm) {
  switch (norm) {
    case FftNorm::backward:
      return FftScale::one;
    case FftNorm::ortho:
      return FftScale::root;
    case FftNorm::forward:
      return FftScale::inverse;
  }
  throw InternalError("[fft] not a norm");
}

Fft::Parameters parameters_of(const Variable& x, const Axes& axes, const FftOptions& options) {
  return {normalize_axes(axes, x.rank(), "fft"), true, scale_of(options.norm), options.centered};
}

}  // namespace

double factor_of(FftScale scale, double n) {
  return scale == FftScale::one ? 1 : scale == FftScale::root ? 1 / std::sqrt(n) : 1 / n;
}

bool Fft::is_opposite_of(const Fft& other) const {
  return forward() != other.forward() && axes() == other.axes() && centered() == other.centered();
}

Fft::Parameters Fft::inverse() const {
  Parameters result = adjoint();
  if (scale() == FftScale::one) result.scale = FftScale::inverse;
  if (scale() == FftScale::inverse) result.scale = FftScale::one;
  return result;
}

Fft::Parameters Fft::adjoint() const {
  Parameters result = parameters_;
  result.forward = !result.forward;
  return result;
}

std::string written(FftScale value) {
  static constexpr const char* kScales[] = {"1", "1/sqrt(n)", "1/n"};
  return kScales[static_cast<int>(value)];
}

void read(ParameterText& text, FftScale& value) {
  value = text.take("1/sqrt(n)") ? FftScale::root
          : text.take("1/n")     ? FftScale::inverse
                                 : FftScale::one;
  if (value == FftScale::one) text.expect("1");
}

std::string written(const FftParameters& value) {
  return parameter("axes", value.axes) + ", " + parameter("forward", value.forward ? 1 : 0) +
         ", scale=" + written(value.scale) + ", " + parameter("centered", value.centered ? 1 : 0);
}

void read(ParameterText& text, FftParameters& value) {
  text.expect("axes=");
  value.axes = text.integers();
  check_axes(value.axes);
  text.expect(", forward=");
  value.forward = text.flag();
  text.expect(", scale=");
  read(text, value.scale);
  text.expect(", centered=");
  value.centered = text.flag();
}

Apply Fft::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  const TensorType& type = inputs[0].type();
  normalize_axes(axes(), type.rank(), "fft");
  if (!is_complex(type.dtype)) {
    throw DTypeError("[Fft] got " + type.str() + ", expected a complex array. Try astype");
  }
  if (in_place_) expect_own_elements(inputs[0], "FftInPlace");
  return node(inputs, {type});
}

std::vector<Variable> Fft::pullback(const Apply&, CotangentSpan cotangents) const {
  return {transform(cotangents[0], adjoint())};
}

FftSpec spec_of(const FftParameters& parameters, bool in_place, DType dtype,
                std::span<const index_t> extents, std::span<const index_t> in_strides,
                std::span<const index_t> out_strides) {
  double n = 1;
  for (index_t axis : parameters.axes) {
    n *= static_cast<double>(extents[static_cast<std::size_t>(axis)]);
  }
  FftSpec spec;
  spec.dtype = dtype;
  spec.extents = extents;
  spec.in_strides = in_strides;
  spec.out_strides = out_strides;
  spec.axes = parameters.axes;
  spec.forward = parameters.forward;
  spec.centered = parameters.centered;
  spec.scale = factor_of(parameters.scale, n);
  spec.in_place = in_place;
  return spec;
}

int planned_threads() { return static_cast<int>(config().threads.value_or(pool_threads())); }

std::size_t Fft::scratch_bytes(const Apply&, std::span<const Layout> inputs) const {
  const Layout& in = inputs[0];
  if (element_count(in.extents) == 0) return 0;
  return fft_workspace_bytes(
      spec_of(parameters_, in_place_, in.dtype, in.extents, in.strides, in.strides),
      planned_threads());
}

std::size_t Fft::library_bytes(const Apply&, std::span<const Layout> inputs,
                               std::span<const Layout> outputs) const {
  const Layout &in = inputs[0], &out = outputs[0];
  if (element_count(in.extents) == 0) return 0;
  return fft_plan(spec_of(parameters_, in_place_, in.dtype, in.extents, in.strides, out.strides))
      .external_bytes(planned_threads());
}

void Fft::run(RunContext& context) const {
  const ConstView& in = context.input(0);
  const MutableView& out = context.output(0);
  if (element_count(in.extents) == 0) return;
  execute(fft_plan(spec_of(parameters_, in_place_, in.dtype, in.extents, in.strides, out.strides)),
          in.data, out.data, {.workspace = context.scratch()});
}

Variable transform(const Variable& x, Fft::Parameters parameters) {
  Variable z = astype(x, complex_of(x.dtype()));
  if (parameters.axes.empty()) return z;
  return std::make_shared<Fft>(std::move(parameters))->make_node({&z, 1}).output(0);
}

Variable fft(const Variable& x, const Axes& axes, FftOptions options) {
  return transform(x, parameters_of(x, axes, options));
}
Variable ifft(const Variable& x, const Axes& axes, FftOptions options) {
  return transform(x, Fft(parameters_of(x, axes, options)).inverse());
}
Variable fft_adjoint(const Variable& x, const Axes& axes, FftOptions options) {
  return transform(x, Fft(parameters_of(x, axes, options)).adjoint());
}

// -- real transforms ---------------------------------------------------------------------------

namespace {

// The last axis is transformed first, so that the others work on half as much.
struct RealAxes {
  Axes others;
  std::size_t last;
};

RealAxes real_axes(const Variable& x, const Axes& axes, const FftOptions& options,
                   std::string_view who) {
  if (axes.empty()) throw ValueError("[" + std::string(who) + "] got no axes");
  if (options.centered) {
    throw NotSupported("[" + std::string(who) +
                       "] centered: half of a spectrum has no middle. Try fft");
  }
  normalize_axes(axes, x.rank(), who);
  RealAxes result;
  for (std::size_t k = 0; k + 1 < axes.size(); ++k) result.others.push_back(axes[k]);
  result.last = static_cast<std::size_t>(normalize_axis(axes.back(), x.rank(), who));
  return result;
}

std::vector<Index> along(std::size_t axis, const Slice& part) {
  std::vector<Index> result(axis, Index(all));
  result.emplace_back(part);
  return result;
}

Variable real_lines(const Variable& x, const RealFftParameters& parameters, bool back) {
  return std::make_shared<RealFft>(parameters, back)->make_node({&x, 1}).output(0);
}

Variable shifted(const Variable& x, const std::optional<Axes>& axes, bool back) {
  Axes every(x.rank());
  for (std::size_t k = 0; k < x.rank(); ++k) every[k] = static_cast<index_t>(k);
  const auto half = back ? AxisRoll::Half::back : AxisRoll::Half::there;
  AxisRolls rolls;
  for (index_t axis :
       normalize_axes(axes.value_or(every), x.rank(), back ? "ifftshift" : "fftshift")) {
    rolls.push_back({.axis = static_cast<std::size_t>(axis), .half = half});
  }
  return rolled(x, std::move(rolls));
}

}  // namespace

Variable rfft(const Variable& x, const Axes& axes, FftOptions options) {
  if (is_complex(x.dtype())) {
    throw DTypeError("[rfft] got " + x.type().str() + ", expected a real array. Try fft");
  }
  const RealAxes real = real_axes(x, axes, options, "rfft");
  const index_t n = x.type().shape[real.last], axis = static_cast<index_t>(real.last);
  const Variable x_float = is_inexact(x.dtype()) ? x : astype(x, real_of(complex_of(x.dtype())));
  Variable half;
  if (is_real_line(n)) {
    half = real_lines(x_float, {real.last, n, scale_of(options.norm)}, false);
  } else {
    const Variable lines = fft(x_float, {axis}, options);
    half = n == kUnknown ? take(lines, arange(floor_div(x.shape(axis), 2) + 1), axis)
                         : index(lines, along(real.last, slice(0, n / 2 + 1)));
  }
  return fft(half, real.others, options);
}

// The elements 1 .. (n-1)/2 each stand also for their mirror image, the complex conjugate: their
// contribution is twice the real part.
Variable irfft(const Variable& y, index_t n, const Axes& axes, FftOptions options) {
  const RealAxes parts = real_axes(y, axes, options, "irfft");
  const index_t m = y.type().shape[parts.last];
  if (n < 1 || (m != kUnknown && m != n / 2 + 1)) {
    throw ShapeError("[irfft] last axis: got " + y.type().str() + " for " + std::to_string(n) +
                     " elements, expected " + std::to_string(n / 2 + 1));
  }
  Extents whole(y.rank(), kUnknown);
  whole[parts.last] = n / 2 + 1;
  const Variable half = ifft(specify_shape(y, whole), parts.others, options);
  if (is_real_line(n)) {
    const FftParameters inverse = Fft(parameters_of(y, {0}, options)).inverse();
    return real_lines(half, {parts.last, n, inverse.scale}, true);
  }
  std::vector<std::pair<index_t, index_t>> widths(y.rank());
  widths[parts.last].second = n - (n / 2 + 1);
  return real(ifft(pad(half * mirror_weights(half, parts.last, n, 1), widths),
                   {static_cast<index_t>(parts.last)}, options));
}

Variable fftshift(const Variable& x, const std::optional<Axes>& axes) {
  return shifted(x, axes, false);
}
Variable ifftshift(const Variable& x, const std::optional<Axes>& axes) {
  return shifted(x, axes, true);
}

void register_ops_of_fft() { register_type<Fft>(); }

}  // namespace palimpsest::ops
