// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/transforms/radon.hpp"

#include <cmath>

#include "palimpsest/kernels/arrays/radon.hpp"
#include "palimpsest/ops/prelude.hpp"

namespace palimpsest::ops {
namespace {

// Bounds within which positions on the detector are exact to much less than a pixel.
constexpr double kSmallestSpacing = 1e-9, kLargestSpacing = 1e9, kFarthestCenter = 1e12;
// Elements up to which they are counted exactly as double.
constexpr double kMostDetectors = 1e12;

/// Inputs x (b.., ny, nx) and angles (a): sinograms (b.., a, n_detectors). `adjoint`: inputs
/// sinograms and angles, output images.
class Radon final : public Declared<Radon> {
 public:
  Radon(Extents image, index_t n_detectors, double spacing, double center, bool adjoint)
      : image_(std::move(image)),
        n_detectors_(n_detectors),
        spacing_(spacing),
        center_(center),
        adjoint_(adjoint) {}
  static std::string misfit(const Extents& image, index_t n_detectors, double spacing,
                            double center, bool adjoint);

  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  std::size_t scratch_bytes(const Apply& apply, std::span<const Layout> inputs) const override;
  Linearity linear_in(const Apply&, int in) const override {
    return in == 0 ? Linearity::complex : Linearity::no;
  }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  double tolerance(const Apply&) const override { return 0; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("Radon", field("image", &Radon::image_),
                   field("n_detectors", &Radon::n_detectors_), field("spacing", &Radon::spacing_),
                   field("center", &Radon::center_),
                   named<Radon, bool>(&Radon::adjoint_, {{"", false}, {"Adjoint", true}}));
  }

 private:
  const char* who() const { return adjoint_ ? "radon_adjoint" : "radon"; }
  RadonGeometry geometry() const { return {image_[0], image_[1], n_detectors_, spacing_, center_}; }

  Extents image_;
  index_t n_detectors_;
  double spacing_, center_;
  bool adjoint_;
};

std::string Radon::misfit(const Extents& image, index_t n_detectors, double spacing, double center,
                          bool) {
  if (image.size() != 2 || image[0] < 0 || image[1] < 0) {
    return "image: got " + to_string(image) + ", expected two extents";
  }
  if (n_detectors < 0 || static_cast<double>(n_detectors) > kMostDetectors) {
    return "n_detectors: got " + std::to_string(n_detectors) + ", expected 0 to 1e12";
  }
  if (!(spacing >= kSmallestSpacing && spacing <= kLargestSpacing)) {
    return "spacing: got " + written(spacing) + ", expected 1e-9 to 1e9 pixels";
  }
  if (!(std::abs(center) <= kFarthestCenter)) {
    return "center: got " + written(center) + ", expected a number between -1e12 and 1e12";
  }
  return {};
}

Apply Radon::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 2, who());
  const TensorType &x = inputs[0].type(), &angles = inputs[1].type();
  const std::string tag = "[" + std::string(who()) + "] ";
  if (!is_inexact(x.dtype)) {
    throw DTypeError(tag + "got " + x.str() + ", expected floating or complex data");
  }
  if (!is_floating(angles.dtype)) {
    throw DTypeError(tag + "angles: got " + angles.str() + ", expected float32 or float64");
  }
  if (angles.rank() != 1) {
    throw ShapeError(tag + "angles: got " + angles.str() + ", expected one axis");
  }
  const Device device = common_device(inputs, who());
  const Extents shapes[] = {x.shape, angles.shape};
  return node(inputs, {{x.dtype, infer_shapes({}, shapes)[0], device}});
}

std::vector<Extents> Radon::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  Extents result = inputs[0];
  const Extents rays{inputs[1][0], n_detectors_};
  const Extents &from = adjoint_ ? rays : image_, &to = adjoint_ ? image_ : rays;
  const std::size_t n = result.size();
  for (std::size_t d = 0; d < 2; ++d) {
    const bool fits = n >= 2 && (result[n - 2 + d] == from[d] || result[n - 2 + d] == kUnknown ||
                                 from[d] == kUnknown);
    if (!fits) {
      throw ShapeError("[" + std::string(who()) + "] got " + to_string(inputs[0]) +
                       ", expected the last axes to be " + to_string(from));
    }
  }
  for (std::size_t d = 0; d < 2; ++d) result[n - 2 + d] = to[d];
  return {std::move(result)};
}

std::size_t Radon::scratch_bytes(const Apply& apply, std::span<const Layout> inputs) const {
  const std::span<const index_t> x = inputs[0].extents;
  return radon_scratch_bytes(geometry(), apply.input(0).dtype(), inputs[1].extents[0],
                             element_count(x.first(x.size() - 2)));
}

std::vector<Variable> Radon::pullback(const Apply& apply, CotangentSpan cotangents) const {
  const Variable inputs[] = {cotangents[0], apply.input(1)};
  const auto transposed =
      std::make_shared<Radon>(image_, n_detectors_, spacing_, center_, !adjoint_);
  return {transposed->make_node(inputs).output(0),
          refused_cotangent(cotangents[0], apply.input(1),
                            "[radon] angles: got a derivative with respect to the angles, "
                            "expected one with respect to the data only")};
}

void Radon::run(RunContext& context) const {
  (adjoint_ ? run_radon_adjoint : run_radon)(geometry(), context.input(0), context.input(1),
                                             context.output(0), context.scratch(), who());
}

Variable applied(const Variable& x, const Variable& angles, const Extents& image,
                 index_t n_detectors, const RadonOptions& options, bool adjoint) {
  const double center = options.center.value_or(0.5 * static_cast<double>(n_detectors - 1));
  const std::string reason = Radon::misfit(image, n_detectors, options.spacing, center, adjoint);
  if (!reason.empty()) {
    throw ValueError((adjoint ? "[radon_adjoint] " : "[radon] ") + reason);
  }
  const Variable inputs[] = {x, angles};
  return std::make_shared<Radon>(image, n_detectors, options.spacing, center, adjoint)
      ->make_node(inputs)
      .output(0);
}

// Elements that see all of an image, whose corners are up to half its diagonal from its middle; too
// many of them, and spacings that are refused, are left to misfit().
index_t covering(const Extents& image, double spacing) {
  if (!(spacing > 0)) return 0;
  const double diagonal = std::hypot(static_cast<double>(image[0]), static_cast<double>(image[1]));
  const double n = std::ceil(diagonal / spacing);
  return static_cast<index_t>(std::min(n, kMostDetectors + 1));
}

void expect_axes(const Variable& x, const char* who) {
  if (x.rank() >= 2) return;
  throw ShapeError("[" + std::string(who) + "] got " + x.type().str() +
                   ", expected two axes or more");
}

}  // namespace

Variable radon(const Variable& x, const Variable& angles, RadonOptions options) {
  expect_axes(x, "radon");
  const Extents image = std::span<const index_t>(x.type().shape).last(2);
  if (image[0] == kUnknown || image[1] == kUnknown) {
    throw ShapeError("[radon] got " + x.type().str() +
                     ", expected known extents of the image. Try specify_shape");
  }
  const index_t n_detectors = options.n_detectors.value_or(covering(image, options.spacing));
  return applied(x, angles, image, n_detectors, options, false);
}

Variable radon_adjoint(const Variable& y, const Variable& angles, const Extents& image_size,
                       RadonOptions options) {
  expect_axes(y, "radon_adjoint");
  const index_t given = y.type().shape[y.rank() - 1];
  const index_t n_detectors = options.n_detectors.value_or(given);
  if (n_detectors == kUnknown) {
    throw ShapeError("[radon_adjoint] got " + y.type().str() +
                     ", expected a known number of detector elements. Try specify_shape");
  }
  return applied(y, angles, image_size, n_detectors, options, true);
}

void register_ops_of_radon() { register_type<Radon>(); }

}  // namespace palimpsest::ops
