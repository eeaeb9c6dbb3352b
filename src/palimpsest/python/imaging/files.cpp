// SPDX-License-Identifier: Apache-2.0
// Files of other programs. NumPy reads its own; here are the formats of images and of BART.
#include <nanobind/stl/array.h>

#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/format.hpp"
#include "palimpsest/io/nifti.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/io/png.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/options.hpp"

namespace palimpsest::python {

PALIMPSEST_OPTIONS(PngOptions)

namespace {

ArrayObject array(Tensor&& made) { return export_array(std::move(made), Kind::numpy); }

// A text or an object of pathlib.
std::string path_of(nb::handle path) {
  if (PyUnicode_Check(path.ptr())) return str_of(path);
  return text_of(nb::object(nb::module_::import_("os").attr("fspath")(path)), "a path");
}

struct NiftiObject {
  NiftiImage image;
};

template <Tensor (*read)(const std::string&)>
void def_read(nb::module_& m, const char* name) {
  m.def(
      name,
      [](nb::handle path) {
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
      [](nb::handle path) {
        const std::string from = path_of(path);
        return released([&] { return map(from); });
      },
      "path"_a);
}
template <void (*write)(const std::string&, const Tensor&)>
void def_write(nb::module_& m, const char* name) {
  m.def(
      name,
      [](nb::handle path, Tensor tensor) {
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
  def_with_options<PngOptions>(
      m, "write_png", "None", {"path", "image"},
      +[](const PngOptions& options, std::string path, Tensor image) {
        released([&] { write_png(path, image, options); });
      });
  nb::class_<NiftiObject>(m, "NiftiImage", "An image of a NIfTI file.")
      .def_prop_ro(
          "data", [](NiftiObject& n) { return export_in_place(Tensor(n.image.data), Kind::numpy); },
          "(.., t, z, y, x).")
      .def_prop_ro(
          "spacing_mm", [](const NiftiObject& n) { return n.image.spacing_mm; },
          "Distance between voxels along z, y, x.")
      .def_prop_ro(
          "description", [](const NiftiObject& n) { return n.image.description; },
          "The description in the file.");
  m.def(
      "read_nifti",
      [](nb::handle path) {
        const std::string from = path_of(path);
        return NiftiObject{released([&] { return read_nifti(from); })};
      },
      "path"_a);
  m.def(
      "detect_format", [](nb::handle path) { return std::string(format_name(path_of(path))); },
      "path"_a);
}

}  // namespace palimpsest::python
