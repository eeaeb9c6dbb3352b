// SPDX-License-Identifier: Apache-2.0
// Imaging: calibration, noise, coils and their sensitivities.
// Options of solvers come first: `automatic` of sensitivities.hpp hides an enumerator of theirs.
// clang-format off
#include "palimpsest/python/options.hpp"
// clang-format on

#include <nanobind/stl/array.h>

#include "palimpsest/imaging/coil_compression.hpp"
#include "palimpsest/imaging/coil_maps.hpp"
#include "palimpsest/imaging/noise.hpp"
#include "palimpsest/imaging/scale.hpp"
#include "palimpsest/imaging/sensitivities.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/imaging/area_object.hpp"

namespace palimpsest::python {

PALIMPSEST_NAMES(CompressionMethod, "method", "svd", "geometric")
PALIMPSEST_OPTIONS(EspiritOptions)
PALIMPSEST_OPTIONS(WalshOptions)
PALIMPSEST_OPTIONS(DirectOptions)
PALIMPSEST_OPTIONS(NoiseOptions)
PALIMPSEST_OPTIONS(WhitenOptions)
PALIMPSEST_OPTIONS(CompressOptions)

CalibrationArea From<CalibrationArea>::from(nb::handle object) {
  if (nb::isinstance<CalibrationArea>(object)) return nb::cast<CalibrationArea>(object);
  throw TypeError("[area] got " + class_name(object) + ", expected a CalibrationArea.");
}

Extents shape_of(nb::handle object) {
  if (is_array(object)) return import_array(object).shape();
  return from_python<Extents>(object);
}

namespace {

// An array, and the object of Python that it came from.
struct Given {
  explicit Given(nb::handle from) : object(from), tensor(from_python<Tensor>(from)) {}
  ArrayObject back(Tensor&& result) const { return array_like(object, std::move(result)); }

  nb::handle object;
  Tensor tensor;
};

struct MapsObject {
  MapsResult result;
  Kind kind;
};
struct CompressedObject {
  CompressedKspace result;
  Kind kind;
};

Kind kind_given(nb::handle array) { return is_array(array) ? kind_of(array) : Kind::numpy; }

void bind_areas(nb::module_& m) {
  nb::class_<CalibrationArea>(m, "CalibrationArea",
                              "A block of the k-space grid in which every point is measured.")
      .def(
          "__init__",
          [](CalibrationArea* self, std::array<index_t, 3> start, std::array<index_t, 3> extent) {
            new (self) CalibrationArea{start, extent};
          },
          "start"_a, "extent"_a)
      .def_ro("start", &CalibrationArea::start, "Of the axes z, y, x.")
      .def_ro("extent", &CalibrationArea::extent, "Of the axes z, y, x.")
      .def(
          "__eq__",
          [](const CalibrationArea& a, nb::handle b) {
            return nb::isinstance<CalibrationArea>(b) && nb::cast<CalibrationArea>(b) == a;
          },
          "other"_a.none())
      .def("__repr__", [](const CalibrationArea& a) {
        return nb::str("CalibrationArea(start={}, extent={})")
            .format(nb::tuple(nb::cast(a.start)), nb::tuple(nb::cast(a.extent)));
      });
  m.def(
      "calibration_area",
      [](Tensor measured, index_t largest) { return calibration_area(measured, largest); },
      "measured"_a, "largest"_a = 24);
  m.def(
      "calibration_area_of",
      [](Tensor kspace, index_t largest) {
        return released([&] { return calibration_area_of(kspace, largest); });
      },
      "kspace"_a, "largest"_a = 24);
  m.def(
      "calibration_samples",
      [](ArrayGiven kspace, const CalibrationArea& area) {
        const Given given(kspace);
        return given.back(calibration_samples(given.tensor, area));
      },
      "kspace"_a, "area"_a);
  m.def(
      "calibration_from",
      [](ArrayGiven kspace, Tensor trajectory, index_t size) {
        const Given given(kspace);
        return given.back(
            released([&] { return calibration_from(given.tensor, trajectory, size); }));
      },
      "kspace"_a, "trajectory"_a, "size"_a = 24);
}

void bind_preparation(nb::module_& m) {
  def_with_options(
      m, "noise_covariance",
      +[](ArrayGiven noise, const NoiseOptions& options) {
        const Given given(noise);
        return given.back(released([&] { return noise_covariance(given.tensor, options); }));
      },
      {"noise"}, "Array");
  def_with_options(
      m, "whiten",
      +[](ArrayGiven kspace, std::optional<Tensor> covariance, const WhitenOptions& options) {
        const Given given(kspace);
        return given.back(released([&] { return whiten(given.tensor, covariance, options); }));
      },
      {"kspace", "covariance"}, "Array");
  nb::class_<CompressedObject>(m, "CompressedKspace", "K-space of virtual coils.")
      .def_prop_ro(
          "kspace",
          [](CompressedObject& c) { return export_in_place(Tensor(c.result.kspace), c.kind); },
          "(V, ..), V virtual coils.")
      .def_prop_ro(
          "operator", [](const CompressedObject& c) { return c.result.compression.kspace; },
          "For k-space, noise and calibration data on the same readout.")
      .def_prop_ro(
          "image_operator", [](const CompressedObject& c) { return c.result.compression.image; },
          "For images and maps.")
      .def_prop_ro(
          "matrices",
          [](const CompressedObject& c) { return export_read_only(c.result.compression.matrices); },
          "complex64 (V, C), or (x, V, C) with the geometric method; rows are orthonormal.")
      .def_prop_ro(
          "energies", [](const CompressedObject& c) { return c.result.compression.energies; },
          "The part of the energy that each virtual coil has, in descending order.");
  def_with_options(
      m, "compress_coils",
      +[](ArrayGiven kspace, const CompressOptions& options) {
        const Tensor given = from_python<Tensor>(kspace);
        return CompressedObject{released([&] { return compress_coils(given, options); }),
                                kind_given(kspace)};
      },
      {"kspace"}, "CompressedKspace");
  m.def(
      "remove_oversampling",
      [](ArrayGiven kspace, index_t n_x) {
        const Given given(kspace);
        return given.back(released([&] { return remove_oversampling(given.tensor, n_x); }));
      },
      "kspace"_a, "n_x"_a);
}

void bind_maps(nb::module_& m) {
  nb::class_<MapsObject>(m, "MapsResult", "Coil sensitivities, and how they were found.")
      .def_prop_ro(
          "maps", [](MapsObject& r) { return export_in_place(Tensor(r.result.maps), r.kind); },
          "complex64 (M, C, z, y, x), or (M, C, y, x).")
      .def_prop_ro(
          "eigenvalues",
          [](MapsObject& r) {
            return r.result.eigenvalues.defined()
                       ? export_in_place(Tensor(r.result.eigenvalues), r.kind)
                       : nb::none();
          },
          "float32 (M, z, y, x), not cropped; None unless kept.")
      .def_prop_ro(
          "area", [](const MapsObject& r) { return r.result.area; }, "The calibration area.")
      .def_prop_ro(
          "vectors", [](const MapsObject& r) { return r.result.vectors; },
          "Singular vectors that were kept.")
      .def_prop_ro(
          "of_vectors", [](const MapsObject& r) { return r.result.of_vectors; }, "All of them.")
      .def_prop_ro(
          "crop", [](const MapsObject& r) { return r.result.crop; },
          "The crop value that was used.");
  def_with_options(
      m, "espirit",
      +[](ArrayGiven kspace, const EspiritOptions& options) {
        const Tensor given = from_python<Tensor>(kspace);
        return MapsObject{released([&] { return espirit(given, options); }), kind_given(kspace)};
      },
      {"kspace"}, "MapsResult");
  nb::class_<EspiritPlan>(m, "EspiritPlan", "Bytes that espirit() will hold.")
      .def_ro("work_bytes", &EspiritPlan::work_bytes, "Beside k-space, maps and eigenvalues.")
      .def_ro("maps_bytes", &EspiritPlan::maps_bytes, "Of the maps.")
      .def_ro("eigenvalue_bytes", &EspiritPlan::eigenvalue_bytes, "Of the eigenvalues.")
      .def_prop_ro("peak_bytes", &EspiritPlan::peak_bytes, "The sum of them.");
  def_with_options(
      m, "plan_espirit",
      +[](TypeGiven kspace, const EspiritOptions& options) {
        const Extents shape = shape_of(kspace);
        return released([&] { return plan_espirit(shape, options); });
      },
      {"kspace"}, "EspiritPlan");
  def_with_options(
      m, "walsh",
      +[](ArrayGiven coil_images, const WalshOptions& options) {
        const Given given(coil_images);
        return given.back(released([&] { return walsh(given.tensor, options); }));
      },
      {"coil_images"}, "Array");
  def_with_options(
      m, "direct_maps",
      +[](ArrayGiven kspace, const DirectOptions& options) {
        const Given given(kspace);
        return given.back(released([&] { return direct_maps(given.tensor, options); }));
      },
      {"kspace"}, "Array");
  m.def(
      "adaptive_combine",
      [](ArrayGiven coil_images, Tensor maps) {
        const Given given(coil_images);
        return given.back(released([&] { return adaptive_combine(given.tensor, maps); }));
      },
      "coil_images"_a, "maps"_a);
  m.def(
      "apply_mask",
      [](ArrayGiven maps, Tensor support) {
        const Given given(maps);
        return given.back(apply_mask(given.tensor, support));
      },
      "maps"_a, "support"_a);
  m.def(
      "ring_coil_maps",
      [](index_t n_coils, index_t ny, index_t nx, double radius) -> ArrayObject {
        return export_array(released([&] { return ring_coil_maps(n_coils, ny, nx, radius); }),
                            kind_returned(Kind::numpy));
      },
      "n_coils"_a, "ny"_a, "nx"_a, "radius"_a = 1.5);
}

void bind_brightness(nb::module_& m) {
  nb::class_<Brightness>(m, "Brightness", "How bright an image is.")
      .def_ro("median", &Brightness::median, "Of the magnitudes.")
      .def_ro("p90", &Brightness::p90, "The 90th percentile of the magnitudes.")
      .def_ro("largest", &Brightness::largest, "The largest magnitude.")
      .def_prop_ro("scale", &Brightness::scale,
                   "The unit in which weights of regularizers are meant.");
  m.def(
      "brightness", [](Tensor images) { return released([&] { return brightness(images); }); },
      "coil_images"_a);
  m.def(
      "brightness_of",
      [](Tensor kspace, const CalibrationArea& area) {
        return released([&] { return brightness_of(kspace, area); });
      },
      "kspace"_a, "area"_a);
  m.def(
      "brightness_area",
      [](Tensor kspace) { return released([&] { return brightness_area(kspace); }); }, "kspace"_a);
  m.def("brightness_bytes", &brightness_bytes, "area"_a);
  m.def(
      "rss_image",
      [](ArrayGiven coil_images) {
        const Given given(coil_images);
        return given.back(released([&] { return rss_image(given.tensor); }));
      },
      "coil_images"_a);
}

}  // namespace

void bind_maps_and_coils(nb::module_& m) {
  bind_areas(m);
  bind_preparation(m);
  bind_maps(m);
  bind_brightness(m);
}

}  // namespace palimpsest::python
