// SPDX-License-Identifier: Apache-2.0
// Imaging: raw scans of files, and how much images differ.
#include <nanobind/stl/array.h>
#include <nanobind/stl/complex.h>

#include "palimpsest/imaging/quality/metrics.hpp"
#include "palimpsest/imaging/scan.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/imaging/number_lists.hpp"
#include "palimpsest/python/options.hpp"

namespace palimpsest::python {

PALIMPSEST_NAMES(FrameCounter, "as_", "none", "contrast", "phase", "set", "repetition")
PALIMPSEST_OPTIONS(ScanOptions)
PALIMPSEST_OPTIONS(QualityOptions)

namespace {

struct ScanObject {
  static constexpr const char* kName = "Scan";
  Scan scan;
};
using Self = const ScanObject&;

nb::object shown(const std::optional<Tensor>& part) {
  return part ? export_in_place(Tensor(*part), Kind::numpy) : nb::none();
}

void bind_scan(nb::module_& m) {
  nb::class_<ScanObject>(m, "Scan", "One scan, sorted and in memory.")
      .def_prop_ro(
          "kspace", [](Self s) { return export_in_place(Tensor(s.scan.kspace), Kind::numpy); },
          "complex64 (S, T, C, z, y, x), or along a trajectory (S, C, readouts, samples).")
      .def_prop_ro(
          "mask", [](Self s) { return shown(s.scan.mask); },
          "bool (S, T, z, y, x): the measured points; None along a trajectory.")
      .def_prop_ro(
          "trajectory", [](Self s) { return shown(s.scan.trajectory); },
          "float32 (readouts, samples, D), in cycles per field of view; None on a grid.")
      .def_prop_ro(
          "noise", [](Self s) { return shown(s.scan.noise); },
          "complex64 (C, samples) of noise alone, or None.")
      .def_prop_ro(
          "calibration", [](Self s) { return shown(s.scan.calibration); },
          "complex64 (S, C, z, y, x) of separate calibration lines, or None.")
      .def_prop_ro(
          "voxel_mm", [](Self s) { return s.scan.geometry.voxel_mm; }, "Along x, y, z.")
      .def_prop_ro(
          "directions", [](Self s) { return s.scan.geometry.directions; },
          "Unit vectors of x, y, z in the patient's left, posterior, superior.")
      .def_prop_ro(
          "position_mm", [](Self s) { return s.scan.geometry.position_mm; },
          "Centre of the slice or slab, left posterior superior.")
      .def_prop_ro(
          "time_step_us", [](Self s) { return s.scan.geometry.time_step_us; },
          "Between two frames, the mean; 0: not known.")
      .def_prop_ro(
          "slices", [](Self s) { return s.scan.layout.slices; },
          "Values of the counter that are slices.")
      .def_prop_ro(
          "frames", [](Self s) { return s.scan.layout.frames; },
          "Values of the counter that are frames.")
      .def_prop_ro(
          "image_shape", [](Self s) { return s.scan.layout.image_shape(); },
          "Extents of one image that is wanted of it.")
      .def_prop_ro(
          "acceleration", [](Self s) { return s.scan.layout.acceleration(); },
          "Points of an image per sample.")
      .def_prop_ro(
          "notes", [](Self s) { return s.scan.layout.notes; }, "Notes for the user.")
      .def_prop_ro(
          "header_xml", [](Self s) { return s.scan.header.xml; },
          "Header of a raw file, as it has it.");
  def_with_options(
      m, "read_scan",
      +[](std::string path, const ScanOptions& options) {
        return ScanObject{released([&] { return read_scan(path, options); })};
      },
      {"path"}, "Scan");
}

void bind_quality(nb::module_& m) {
  nb::class_<Quality>(m, "Quality", "How much an image differs from a known one.")
      .def_ro("factor", &Quality::factor, "The factor of the image.")
      .def_ro("nrmse", &Quality::nrmse, "|a x - r| / |r|.")
      .def_ro("psnr_db", &Quality::psnr_db, "Peak over error; infinite without one.")
      .def_ro("ssim", &Quality::ssim, "Structural similarity of the magnitudes.")
      .def_ro("points", &Quality::points, "Points that were compared.");
  def_with_options(
      m, "image_quality",
      +[](Tensor reference, Tensor image, const QualityOptions& options) {
        return released([&] { return image_quality(reference, image, options); });
      },
      {"reference", "image"}, "Quality");
  m.def(
      "quality_mask",
      [](ArrayGiven reference) {
        const Tensor given = from_python<Tensor>(reference);
        return array_like(reference, released([&] { return quality_mask(given); }));
      },
      "reference"_a);
  m.def(
      "ssim_map",
      [](Tensor reference, ArrayGiven image) {
        const Tensor given = from_python<Tensor>(image);
        return array_like(image, released([&] { return ssim_map(reference, given); }));
      },
      "reference"_a, "image"_a);
}

}  // namespace

void bind_raw_scans(nb::module_& m) {
  bind_scan(m);
  bind_quality(m);
}

}  // namespace palimpsest::python
