// SPDX-License-Identifier: Apache-2.0
// Files of other programs. NumPy reads its own; here are the formats of images and of BART.
#include <nanobind/stl/array.h>

#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/format.hpp"
#include "palimpsest/io/mrc.hpp"
#include "palimpsest/io/nifti.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/io/png.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/options.hpp"

namespace palimpsest::python {

PALIMPSEST_OPTIONS(PngOptions)

namespace {

ArrayObject array(Tensor&& made) {
  return export_array(std::move(made), kind_returned(Kind::numpy));
}

// A text or an object of pathlib.
using Path = Shown<"str | PathLike[str]">;
std::string path_of(nb::handle path) {
  if (PyUnicode_Check(path.ptr())) return str_of(path);
  return text_of(nb::object(nb::module_::import_("os").attr("fspath")(path)), "a path");
}

struct NiftiObject {
  NiftiImage image;
};

struct MrcObject {
  MrcImage image;
  bool is_mapped = false;

  // A mapped array stays a Tensor, as with map_npy.
  nb::object data() const {
    if (is_mapped) return nb::cast(image.data);
    return export_in_place(Tensor(image.data), Kind::numpy);
  }
};

template <Tensor (*read)(const std::string&)>
void def_read(nb::module_& m, const char* name) {
  m.def(
      name,
      [](Path path) {
        const std::string from = path_of(path);
        return array(released([&] { return read(from); }));
      },
      "path"_a);
}
// Mapped arrays stay Tensors: the pages of the file are copied when they are written.
template <Tensor (*map)(const std::string&)>
void def_map(nb::module_& m, const char* name) {
  m.def(
      name,
      [](Path path) {
        const std::string from = path_of(path);
        return released([&] { return map(from); });
      },
      "path"_a);
}
template <void (*write)(const std::string&, const Tensor&)>
void def_write(nb::module_& m, const char* name) {
  m.def(
      name,
      [](Path path, Tensor tensor) {
        const std::string to = path_of(path);
        released([&] { write(to, tensor); });
      },
      "path"_a, "array"_a);
}

}  // namespace

void bind_files(nb::module_& m) {
  def_read<&read_npy>(m, "read_npy");
  def_map<&map_npy>(m, "map_npy");
  def_write<&write_npy>(m, "write_npy");
  def_read<&read_cfl>(m, "read_cfl");
  def_map<&map_cfl>(m, "map_cfl");
  def_write<&write_cfl>(m, "write_cfl");
  def_read<&read_png>(m, "read_png");
  def_with_options(
      m, "write_png",
      +[](std::string path, Tensor image, const PngOptions& options) {
        released([&] { write_png(path, image, options); });
      },
      {"path", "image"}, "None");
  nb::class_<NiftiObject>(m, "NiftiImage", "An image of a NIfTI file.")
      .def_prop_ro(
          "data", [](NiftiObject& n) { return export_in_place(Tensor(n.image.data), Kind::numpy); },
          "(.., t, z, y, x).")
      .def_prop_ro(
          "spacing_mm", [](const NiftiObject& n) { return n.image.spacing_mm; },
          "Distance between voxels along z, y, x.")
      .def_prop_ro(
          "description", [](const NiftiObject& n) { return n.image.description; },
          "The description in the file.")
      .def_prop_ro(
          "affine_ras", [](const NiftiObject& n) { return n.image.affine_ras; },
          "Rows of x, y, z, offset: from voxel (i, j, k) along x, y, z to millimetres to the "
          "right, "
          "anterior, superior; None if the file has none.")
      .def_prop_ro(
          "time_step_s", [](const NiftiObject& n) { return n.image.time_step_s; },
          "Seconds along t; 0 if not known.");
  m.def(
      "read_nifti",
      [](Path path) {
        const std::string from = path_of(path);
        return NiftiObject{released([&] { return read_nifti(from); })};
      },
      "path"_a);
  m.def(
      "write_nifti",
      [](Path path, Tensor image, std::array<double, 3> spacing, const std::string& description,
         const std::optional<std::array<std::array<double, 4>, 3>>& affine, double time_step) {
        const std::string to = path_of(path);
        released([&] {
          write_nifti(to, {.data = image,
                           .spacing_mm = spacing,
                           .description = description,
                           .affine_ras = affine,
                           .time_step_s = time_step});
        });
      },
      "path"_a, "image"_a, nb::kw_only(), "spacing_mm"_a = std::array<double, 3>{1, 1, 1},
      "description"_a = "", "affine_ras"_a.none() = nb::none(), "time_step_s"_a = 0.0);
  nb::class_<MrcObject>(m, "MrcImage", "An image of an MRC file.")
      .def_prop_ro("data", &MrcObject::data, "(section, row, column).")
      .def_prop_ro(
          "spacing_angstrom", [](const MrcObject& o) { return o.image.spacing_angstrom; },
          "Distance between voxels along sections, rows and columns; 0 where the file gives none.")
      .def_prop_ro(
          "origin_angstrom", [](const MrcObject& o) { return o.image.origin_angstrom; },
          "Position of the first voxel along x, y, z.")
      .def_prop_ro(
          "is_stack", [](const MrcObject& o) { return o.image.is_stack; },
          "Sections are images of their own and no volume.")
      .def_prop_ro(
          "description", [](const MrcObject& o) { return o.image.description; },
          "Lines of the labels.");
  // Example of read_mrc, map_mrc, write_mrc, MrcImage:
  //   >>> import os, tempfile
  //   >>> path = os.path.join(tempfile.mkdtemp(), "a.mrc")
  //   >>> ps.write_mrc(path, np.ones((2, 3, 4), np.float32), spacing_angstrom=(5, 2, 2))
  //   >>> image = ps.read_mrc(path)
  //   >>> image.data.shape, image.spacing_angstrom, ps.map_mrc(path).data.dtype == "float32"
  //   ((2, 3, 4), [5.0, 2.0, 2.0], True)
  m.def(
      "read_mrc",
      [](Path path) {
        const std::string from = path_of(path);
        return MrcObject{released([&] { return read_mrc(from); })};
      },
      "path"_a);
  m.def(
      "map_mrc",
      [](Path path) {
        const std::string from = path_of(path);
        return MrcObject{released([&] { return map_mrc(from); }), true};
      },
      "path"_a);
  m.def(
      "write_mrc",
      [](Path path, Tensor image, std::array<double, 3> spacing, std::array<double, 3> origin,
         bool is_stack, const std::string& description) {
        const std::string to = path_of(path);
        released([&] {
          write_mrc(to, {.data = image,
                         .spacing_angstrom = spacing,
                         .origin_angstrom = origin,
                         .is_stack = is_stack,
                         .description = description});
        });
      },
      "path"_a, "image"_a, nb::kw_only(), "spacing_angstrom"_a = std::array<double, 3>{},
      "origin_angstrom"_a = std::array<double, 3>{}, "is_stack"_a = false, "description"_a = "");
  m.def(
      "detect_format", [](Path path) { return std::string(format_name(path_of(path))); }, "path"_a);
}

}  // namespace palimpsest::python
