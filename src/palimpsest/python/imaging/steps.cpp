// SPDX-License-Identifier: Apache-2.0
// Imaging: single steps between k-space and images.
#include <nanobind/stl/tuple.h>

#include "palimpsest/imaging/corrections/epi.hpp"
#include "palimpsest/imaging/partial_fourier.hpp"
#include "palimpsest/imaging/phantom.hpp"
#include "palimpsest/imaging/quality/g_factor.hpp"
#include "palimpsest/imaging/transforms.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/imaging/number_lists.hpp"
#include "palimpsest/python/imaging/reconstruct_options.hpp"
#include "palimpsest/python/transform_options.hpp"

namespace palimpsest::python {

PALIMPSEST_OPTIONS(TransformOptions)
PALIMPSEST_OPTIONS(InverseTransformOptions)
PALIMPSEST_OPTIONS(HomodyneOptions)
PALIMPSEST_OPTIONS(PocsOptions)

/// The options of g_factor() with those of its images as keywords beside them.
template <>
struct Fields<GFactorOptions> {
  template <class V, class O>
  static void visit(V& v, O& o) {
    v("replicas", o.replicas);
    v("seed", o.seed);
    v("regularizers", o.reconstruct.regularizers);
    v("method", o.reconstruct.method);
    v("iterations", o.reconstruct.iterations);
    v("tolerance", o.reconstruct.tolerance);
    v("scale", o.reconstruct.scale);
    v("budget_bytes", o.reconstruct.budget_bytes);
  }
};

namespace {

using MaybeTensor = std::optional<Tensor>;

void bind_transforms_of_images(nb::module_& m) {
  def_with_options(
      m, "transform",
      +[](ArrayGiven x, const std::vector<index_t>& axes, const TransformOptions& options) {
        const Tensor given = from_python<Tensor>(x);
        return array_like(x, released([&] { return transform(given, axes, options); }));
      },
      {"x", "axes"}, "Array");
  m.def(
      "coil_images",
      [](ArrayGiven kspace) {
        const Tensor given = from_python<Tensor>(kspace);
        return array_like(kspace, released([&] { return coil_images(given); }));
      },
      "kspace"_a);
  m.def("trajectory_transform", &trajectory_transform, "trajectory"_a, "image"_a,
        "toeplitz"_a = false);
  def_with_options(
      m, "inverse_trajectory_transform",
      +[](ArrayGiven kspace, Tensor trajectory, Extents image,
          const InverseTransformOptions& options) {
        const Tensor given = from_python<Tensor>(kspace);
        return array_like(kspace, released([&] {
                            return inverse_trajectory_transform(given, trajectory, image, options);
                          }));
      },
      {"kspace", "trajectory", "image"}, "Array");
  m.def(
      "adjoint_image",
      [](NamedLinop model, ArrayGiven kspace, MaybeTensor weights) {
        const Tensor given = from_python<Tensor>(kspace);
        return array_like(kspace, released([&] { return adjoint_image(model, given, weights); }));
      },
      "model"_a, "kspace"_a, "weights"_a.none() = nb::none());
  m.def(
      "fake_kspace",
      [](NamedLinop model, ArrayGiven image, MaybeTensor replace) {
        const Tensor given = from_python<Tensor>(image);
        return array_like(image, released([&] { return fake_kspace(model, given, replace); }));
      },
      "model"_a, "image"_a, "replace"_a.none() = nb::none());
}

void bind_partial_fourier(nb::module_& m) {
  nb::class_<PartialLines>(m, "PartialLines", "Lines of an axis of k-space that were measured.")
      .def_ro("axis", &PartialLines::axis, "Axis of k-space with a missing side.")
      .def_ro("extent", &PartialLines::extent, "Number of all lines.")
      .def_ro("acquired", &PartialLines::acquired, "Number of measured lines, from one end.")
      .def_ro("from_end", &PartialLines::from_end, "Counted from the last line down.")
      .def_prop_ro("beyond_middle", &PartialLines::beyond_middle,
                   "Lines that were measured on both sides of the middle.");
  m.def(
      "partial_lines",
      [](Tensor measured) { return released([&] { return partial_lines(measured); }); },
      "measured"_a);
  def_with_options(
      m, "homodyne",
      +[](ArrayGiven kspace, index_t axis, double fraction, const HomodyneOptions& options) {
        const Tensor given = from_python<Tensor>(kspace);
        return array_like(kspace,
                          released([&] { return homodyne(given, axis, fraction, options); }));
      },
      {"kspace", "axis", "fraction"}, "Array");
  def_with_options(
      m, "pocs",
      +[](ArrayGiven kspace, Tensor mask, const PocsOptions& options) {
        const Tensor given = from_python<Tensor>(kspace);
        return array_like(kspace, released([&] { return pocs(given, mask, options); }));
      },
      {"kspace", "mask"}, "Array");
}

void bind_echoes(nb::module_& m) {
  m.def(
      "echo_phase",
      [](Tensor forward, Tensor reversed) {
        const EchoPhase found = released([&] { return echo_phase(forward, reversed); });
        return std::tuple(found.constant, found.slope);
      },
      "forward"_a, "reversed"_a);
  m.def(
      "aligned_echoes",
      [](ArrayGiven kspace, Tensor is_reversed, MaybeTensor forward, MaybeTensor reversed) {
        const Tensor given = from_python<Tensor>(kspace);
        return array_like(kspace, released([&] {
                            return aligned_echoes(given, is_reversed, forward, reversed);
                          }));
      },
      "kspace"_a, "is_reversed"_a, "forward"_a.none() = nb::none(),
      "reversed"_a.none() = nb::none());
}

struct GFactorObject {
  GFactor result;
  Kind kind;
};

void bind_noise_amplification(nb::module_& m) {
  const auto shown = [](const Tensor& t, Kind kind) {
    return Shown<"Array">(export_in_place(Tensor(t), kind));
  };
  nb::class_<GFactorObject>(m, "GFactor", "Amplification of noise by a reconstruction.")
      .def_prop_ro(
          "g", [shown](const GFactorObject& o) { return shown(o.result.g, o.kind); },
          "float32: loss of signal to noise beyond sqrt(acceleration); 0 where the full pattern "
          "has "
          "no noise.")
      .def_prop_ro(
          "deviation",
          [shown](const GFactorObject& o) { return shown(o.result.deviation, o.kind); },
          "Standard deviation of the complex values with the pattern.")
      .def_prop_ro(
          "full_deviation",
          [shown](const GFactorObject& o) { return shown(o.result.full_deviation, o.kind); },
          "Standard deviation of the complex values without the pattern.")
      .def_prop_ro(
          "acceleration", [](const GFactorObject& o) { return o.result.acceleration; },
          "Points of the grid per sample.")
      .def_prop_ro(
          "warning", [](const GFactorObject& o) { return o.result.warning; },
          "Why noise alone does not tell, for a reconstruction that is not linear; else empty.");
  def_with_options(
      m, "g_factor",
      +[](ArrayGiven maps, Tensor mask, const GFactorOptions& options) {
        const Tensor given = from_python<Tensor>(maps);
        return GFactorObject{released([&] { return g_factor(given, mask, options); }),
                             is_array(maps) ? kind_of(maps) : Kind::numpy};
      },
      {"maps", "mask"}, "GFactor");
}

void bind_ellipses(nb::module_& m) {
  m.def(
      "ellipse_kspace",
      [](const std::vector<Ellipse>& ellipses, index_t ny, index_t nx, MaybeTensor trajectory) {
        return ArrayObject(export_array(released([&] {
                                          return trajectory
                                                     ? ellipse_kspace(ellipses, *trajectory, ny, nx)
                                                     : ellipse_kspace(ellipses, ny, nx);
                                        }),
                                        kind_returned(Kind::numpy)));
      },
      "ellipses"_a, "ny"_a, "nx"_a, nb::kw_only(), "trajectory"_a.none() = nb::none());
}

}  // namespace

void bind_imaging_steps(nb::module_& m) {
  bind_transforms_of_images(m);
  bind_partial_fourier(m);
  bind_echoes(m);
  bind_noise_amplification(m);
  bind_ellipses(m);
}

}  // namespace palimpsest::python
