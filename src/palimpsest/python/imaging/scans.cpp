// SPDX-License-Identifier: Apache-2.0
// Imaging: patterns, trajectories, phantoms, and from k-space to images.
#include <nanobind/stl/map.h>
#include <nanobind/stl/tuple.h>

#include "palimpsest/imaging/corrections/radial_delays.hpp"
#include "palimpsest/imaging/patterns.hpp"
#include "palimpsest/imaging/phantom.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/imaging/reconstruct_options.hpp"
#include "palimpsest/python/solve/result_object.hpp"

namespace palimpsest::python {

PALIMPSEST_NAMES(PatternKind, "kind", "poisson", "random", "uniform", "full")
PALIMPSEST_NAMES(TrajectoryConvention, "convention", "plain", "bart")
PALIMPSEST_NAMES(DensityMethod, "method", "analytic", "pipe")
PALIMPSEST_OPTIONS(PatternOptions)
PALIMPSEST_OPTIONS(LineOptions)
PALIMPSEST_OPTIONS(RadialOptions)
PALIMPSEST_OPTIONS(StackOptions)
PALIMPSEST_OPTIONS(SpiralOptions)
PALIMPSEST_OPTIONS(EpiOptions)
PALIMPSEST_OPTIONS(KspaceSampling)
PALIMPSEST_OPTIONS(ReconstructOptions)

}  // namespace palimpsest::python

PALIMPSEST_ARGUMENT(DensityMethod)

namespace palimpsest::python {
namespace {

ArrayObject array(Tensor&& made) {
  return export_array(std::move(made), kind_returned(Kind::numpy));
}

void bind_patterns(nb::module_& m) {
  def_with_options(
      m, "sampling_pattern",
      +[](index_t ny, index_t nx, const PatternOptions& options) {
        return array(released([&] { return sampling_pattern(ny, nx, options); }));
      },
      {"ny", "nx"}, "Array");
  def_with_options(
      m, "volume_pattern",
      +[](Extents shape, const PatternOptions& options) {
        return array(released([&] { return volume_pattern(shape, options); }));
      },
      {"shape"}, "Array");
  m.def(
      "caipi_pattern",
      [](index_t ny, index_t nz, index_t dy, index_t dz, index_t shift, index_t center) {
        return array(caipi_pattern(ny, nz, dy, dz, shift, center));
      },
      "ny"_a, "nz"_a, "dy"_a, "dz"_a, "shift"_a, "center"_a = 0);
  m.def(
      "partial_pattern",
      [](Extents shape, double fraction, index_t axis) {
        return array(partial_pattern(shape, fraction, axis));
      },
      "shape"_a, "fraction"_a, "axis"_a);
  def_with_options(
      m, "line_patterns",
      +[](index_t n, const LineOptions& options) { return array(line_patterns(n, options)); },
      {"n"}, "Array");
  m.def(
      "interleaved",
      [](ArrayGiven pattern, index_t frames, index_t center) {
        return array_like(pattern, interleaved(from_python<Tensor>(pattern), frames, center));
      },
      "pattern"_a, "frames"_a, "center"_a = 0);
  m.def(
      "count_samples", [](Tensor mask) { return count_samples(mask); }, "mask"_a);
  m.def(
      "measured_points",
      [](ArrayGiven kspace, bool is_series) {
        const Tensor given = from_python<Tensor>(kspace);
        return array_like(kspace, released([&] { return measured_points(given, is_series); }));
      },
      "kspace"_a, "is_series"_a = false);
}

void bind_trajectories(nb::module_& m) {
  def_with_options(
      m, "radial_trajectory",
      +[](const RadialOptions& options) { return array(radial_trajectory(options)); }, {}, "Array");
  m.def("golden_angle", &golden_angle, "golden"_a);
  def_with_options(
      m, "stack_of_stars",
      +[](const Both<RadialOptions, StackOptions>& options) {
        return array(stack_of_stars(options.first, options.second));
      },
      {}, "Array");
  def_with_options(
      m, "koosh_ball", +[](const RadialOptions& options) { return array(koosh_ball(options)); }, {},
      "Array");
  def_with_options(
      m, "spiral_trajectory",
      +[](const SpiralOptions& options) {
        return array(released([&] { return spiral_trajectory(options); }));
      },
      {}, "Array");
  def_with_options(
      m, "epi_trajectory",
      +[](const EpiOptions& options) { return array(epi_trajectory(options)); }, {}, "Array");
  m.def(
      "coordinates_of_grid",
      [](ArrayGiven trajectory) {
        return array_like(trajectory, coordinates_of_grid(from_python<Tensor>(trajectory)));
      },
      "trajectory"_a);
  m.def(
      "density_compensation",
      [](ArrayGiven trajectory, DensityMethod method) {
        const Tensor given = from_python<Tensor>(trajectory);
        return array_like(trajectory,
                          released([&] { return density_compensation(given, method); }));
      },
      "trajectory"_a, "method"_a);
}

void bind_delays(nb::module_& m) {
  m.def(
      "estimate_delays",
      [](ArrayGiven kspace, ArrayGiven trajectory) {
        const Tensor data = from_python<Tensor>(kspace), along = from_python<Tensor>(trajectory);
        const RadialDelays found = released([&] { return estimate_delays(data, along); });
        return std::tuple(found.xx, found.yy, found.xy);
      },
      "kspace"_a, "trajectory"_a);
  m.def(
      "corrected",
      [](ArrayGiven trajectory, const std::tuple<double, double, double>& delays) {
        const auto [xx, yy, xy] = delays;
        return array_like(trajectory, corrected(from_python<Tensor>(trajectory), {xx, yy, xy}));
      },
      "trajectory"_a, "delays"_a);
}

void bind_phantoms(nb::module_& m) {
  nb::class_<Ellipse>(m, "Ellipse", "An ellipse of constant value; the field is [-1, 1]^2.")
      .def(
          "__init__",
          [](Ellipse* self, double value, double a, double b, double x, double y, double angle) {
            new (self) Ellipse{value, a, b, x, y, angle};
          },
          "value"_a = 0.0, "semi_axis_x"_a = 1.0, "semi_axis_y"_a = 1.0, "center_x"_a = 0.0,
          "center_y"_a = 0.0, "angle_degrees"_a = 0.0)
      .def_rw("value", &Ellipse::value, "Added inside.")
      .def_rw("semi_axis_x", &Ellipse::semi_axis_x, "In half fields of view.")
      .def_rw("semi_axis_y", &Ellipse::semi_axis_y, "In half fields of view.")
      .def_rw("center_x", &Ellipse::center_x, "In half fields of view.")
      .def_rw("center_y", &Ellipse::center_y, "In half fields of view.")
      .def_rw("angle_degrees", &Ellipse::angle_degrees, "Counterclockwise, y up.");
  m.def("modified_shepp_logan", [] {
    const std::span<const Ellipse> all = modified_shepp_logan();
    return std::vector<Ellipse>(all.begin(), all.end());
  });
  m.def(
      "ellipse_image",
      [](const std::vector<Ellipse>& ellipses, index_t ny, index_t nx) {
        return array(released([&] { return ellipse_image(ellipses, ny, nx); }));
      },
      "ellipses"_a, "ny"_a, "nx"_a);
}

struct ReconstructionObject {
  Reconstruction result;
  Kind kind;
};

void bind_reconstruction(nb::module_& m) {
  using Sampled = Both<KspaceSampling, ReconstructOptions>;
  def_with_options(m, "sense_model", &sense_model, {"maps"});
  def_with_options(m, "image_dimensions", &image_dimensions, {"maps"}, "Dims");
  nb::class_<ReconstructionObject>(m, "Reconstruction", "An image, and how it was found.")
      .def_prop_ro(
          "image",
          [](ReconstructionObject& r) { return export_in_place(Tensor(r.result.image), r.kind); },
          "complex64, in the units of the data.")
      .def_prop_ro(
          "scale", [](const ReconstructionObject& r) { return r.result.scale; },
          "Unit of the weights of functions proportional to |x|.")
      .def_prop_ro(
          "method", [](const ReconstructionObject& r) { return name_of(r.result.method); },
          "The method that was used.")
      .def_prop_ro(
          "solve",
          [](const ReconstructionObject& r) {
            return ResultObject{r.result.solve, r.kind};
          },
          "How the solve ended; its x is None.");
  def_with_options(
      m, "reconstruct",
      +[](ArrayGiven kspace, Tensor maps, const Sampled& options) {
        const Tensor data = from_python<Tensor>(kspace);
        return ReconstructionObject{
            released([&] { return reconstruct(data, maps, options.first, options.second); }),
            is_array(kspace) ? kind_of(kspace) : Kind::numpy};
      },
      {"kspace", "maps"}, "Reconstruction");
  def_with_options(
      m, "plan_reconstruct",
      +[](Tensor kspace, Tensor maps, const Sampled& options) {
        return released(
            [&] { return plan_reconstruct(kspace, maps, options.first, options.second); });
      },
      {"kspace", "maps"}, "SolvePlan");
}

}  // namespace

void bind_scans(nb::module_& m) {
  bind_patterns(m);
  bind_trajectories(m);
  bind_delays(m);
  bind_phantoms(m);
  bind_reconstruction(m);
}

}  // namespace palimpsest::python
