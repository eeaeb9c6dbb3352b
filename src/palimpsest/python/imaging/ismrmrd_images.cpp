// SPDX-License-Identifier: Apache-2.0
// Imaging: images of ISMRMRD files.
#include "palimpsest/io/ismrmrd_images.hpp"

#include <nanobind/stl/array.h>

#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/families.hpp"

namespace palimpsest::python {
namespace {

using Head = IsmrmrdImageHead;

void bind_head(nb::module_& m) {
  nb::class_<Head>(m, "IsmrmrdImageHead", "Position and kind of an image of an ISMRMRD file.")
      .def(nb::init<>())
      .def_rw("field_of_view_mm", &Head::field_of_view_mm, "Of the whole image, along x, y, z.")
      .def_rw("position_mm", &Head::position_mm, "Middle of the image: left, posterior, superior.")
      .def_rw("read_direction", &Head::read_direction, "Unit vector along x.")
      .def_rw("phase_direction", &Head::phase_direction, "Unit vector along y.")
      .def_rw("slice_direction", &Head::slice_direction, "Unit vector along z.")
      .def_rw("patient_table_position_mm", &Head::patient_table_position_mm, "Of the table.")
      .def_rw("average", &Head::average, "Counter of averages.")
      .def_rw("slice", &Head::slice, "Counter of slices.")
      .def_rw("contrast", &Head::contrast, "Counter of contrasts.")
      .def_rw("phase", &Head::phase, "Counter of cardiac phases.")
      .def_rw("repetition", &Head::repetition, "Counter of repetitions.")
      .def_rw("set", &Head::set, "Counter of sets.")
      .def_rw("acquisition_time_stamp", &Head::acquisition_time_stamp, "Ticks of the clock.")
      .def_rw("physiology_time_stamp", &Head::physiology_time_stamp, "Ticks of three triggers.")
      .def_rw("image_type", &Head::image_type,
              "1 magnitude, 2 phase, 3 real, 4 imaginary, 5 complex.")
      .def_rw("image_index", &Head::image_index, "Number of the image.")
      .def_rw("series_index", &Head::series_index, "Number of the series.")
      .def_rw("flags", &Head::flags, "Flags of the standard.")
      .def_rw("attributes", &Head::attributes, "Names and values of the standard's attributes.");
}

// A head for each image; where none are given, heads with the number alone.
std::vector<Head> heads_of(const Tensor& data, const std::vector<Head>& given) {
  if (!given.empty() || data.rank() == 0) return given;
  std::vector<Head> heads(static_cast<std::size_t>(data.shape()[0]));
  for (std::size_t i = 0; i < heads.size(); ++i) {
    heads[i].image_index = static_cast<index_t>(i);
    heads[i].image_type = is_complex(data.dtype()) ? 5 : 3;
  }
  return heads;
}

}  // namespace

void bind_ismrmrd_images(nb::module_& m) {
  bind_head(m);
  nb::class_<IsmrmrdImages>(m, "IsmrmrdImages", "A series of images of an ISMRMRD file.")
      .def_prop_ro(
          "data", [](const IsmrmrdImages& images) -> Shown<"Array"> {
            return export_in_place(Tensor(images.data), Kind::numpy);
          },
          "(image, channel, z, y, x).")
      .def_ro("heads", &IsmrmrdImages::heads, "A head for each image.")
      .def_ro("series", &IsmrmrdImages::series, "Name of the series in the file.")
      .def_ro("header", &IsmrmrdImages::header, "Header of the scan, XML.");
  nb::class_<IsmrmrdContents>(m, "IsmrmrdContents", "Contents of an ISMRMRD file.")
      .def_ro("has_scan", &IsmrmrdContents::has_scan, "The file has a raw scan.")
      .def_ro("image_series", &IsmrmrdContents::image_series, "Names of its series of images.");
  m.def(
      "ismrmrd_contents",
      [](const std::string& path) { return released([&] { return ismrmrd_contents(path); }); },
      "path"_a);
  m.def(
      "read_ismrmrd_images",
      [](const std::string& path, const std::string& series) {
        return released([&] { return read_ismrmrd_images(path, series); });
      },
      "path"_a, "series"_a = "");
  m.def(
      "write_ismrmrd_images",
      [](const std::string& path, Tensor images, const std::vector<Head>& heads,
         const std::string& series, const std::string& header) {
        released([&] {
          write_ismrmrd_images(path, {.series = series,
                                      .header = header,
                                      .heads = heads_of(images, heads),
                                      .data = images});
        });
      },
      "path"_a, "images"_a, nb::kw_only(), "heads"_a = nb::make_tuple(), "series"_a = "image_0",
      "header"_a = "");
}

}  // namespace palimpsest::python
