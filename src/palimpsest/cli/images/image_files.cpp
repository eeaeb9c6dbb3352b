// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/images/image_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "palimpsest/cli/failure.hpp"
#include "palimpsest/imaging/inputs.hpp"
#include "palimpsest/imaging/results/image_formats.hpp"
#include "palimpsest/imaging/results/montage.hpp"
#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/format.hpp"
#include "palimpsest/io/ismrmrd_images.hpp"
#include "palimpsest/io/nifti.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/io/png.hpp"

namespace palimpsest::cli {
namespace {

Image from_png(const Tensor& pixels) {
  Image image;
  if (pixels.rank() != 2) throw ValueError("is a colour picture, expected gray values");
  image.data = pixels;
  image.names = usual_names(2);
  return image;
}

Image from_npy(const Tensor& array) {
  if (array.rank() < 2) {
    throw ValueError(fmt::format("wrong rank: got the shape {}, expected an image (.., y, x)",
                                 to_string(array.shape())));
  }
  Image image;
  image.data = array;
  image.names = usual_names(array.rank());
  return image;
}

Image read_any(const std::string& path) {
  switch (detect_format(path)) {
    case FileFormat::npy:
      return from_npy(read_npy(path));
    case FileFormat::cfl:
      return from_bart(read_cfl(path));
    case FileFormat::nifti:
      return from_nifti(read_nifti(path));
    case FileFormat::png:
      return from_png(read_png(path));
    case FileFormat::image:
      return from_nifti(detect_image_format(path)->read(path));
    case FileFormat::ismrmrd:
      break;
  }
  return from_ismrmrd(read_ismrmrd_images(path));
}

bool ends_in_any(const std::string& path, std::initializer_list<const char*> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](const char* ending) { return ends_in(path, ending); });
}

// The format of files that end so; null: none.
const ImageFormat* image_format_of(const std::string& path) {
  for (const ImageFormat* format : image_formats()) {
    for (const std::string_view ending : format->endings) {
      if (ends_in(path, std::string(ending).c_str())) return format;
    }
  }
  return nullptr;
}

// The image with real values where they are wanted; NIfTI and others keep complex ones.
Image with_part(const Image& image, const WriteImageOptions& options) {
  if (!options.part) return image;
  Image result = image;
  result.data = part_of(image.data, *options.part);
  return result;
}

// Each slice of a volume, or of several ones, as it is looked at; with zeros around smaller ones.
std::vector<Panel> panels_of(const std::vector<Image>& volumes, bool signed_values) {
  std::vector<Tensor> shown;
  index_t rows = 0, columns = 0;
  for (const Image& volume : volumes) {
    const Tensor& one = shown.emplace_back(radiological(volume).data);
    rows = std::max(rows, one.shape(-2));
    columns = std::max(columns, one.shape(-1));
  }
  std::vector<Panel> panels;
  for (std::size_t k = 0; k < shown.size(); ++k) {
    for (Panel& panel : planes_of(shown[k], signed_values)) {
      if (panel.image.shape() != Extents{rows, columns}) {
        panel.image = center_pad(panel.image, rows, columns);
      }
      if (shown.size() > 1) {
        panel.label = fmt::format("{}{}{}", k, panel.label.empty() ? "" : ", ", panel.label);
      }
      panels.push_back(std::move(panel));
    }
  }
  return panels;
}

// `to`: the file to write, in place of `path`.
void write_picture(const std::string& path, const std::string& to, const Image& image,
                   const WriteImageOptions& options) {
  Image real = image;
  real.data = part_of(image.data, options.part.value_or(ImagePart::magnitude)).contiguous();
  check_finite(path, real.data, image_values());
  const bool is_signed = options.part && *options.part != ImagePart::magnitude;
  const double white = white_level(real.data);
  const double high = options.window_high.value_or(white);
  const double low = options.window_low.value_or(is_signed ? -high : 0.0);
  if (!(high > low)) {
    throw UsageError(
        fmt::format("[--window] got {} to {}, expected numbers that increase", low, high));
  }
  const bool is_phase = options.part == ImagePart::phase;
  real = with_square_pixels(real, /*nearest=*/is_phase);
  const bool is_single = is_single_plane(real.data.shape());
  if (is_single && options.columns > 0) {
    throw UsageError("[--columns] has no effect on a single plane. Try to leave it out");
  }
  if (!is_single && options.bits != 8) {
    throw UsageError(
        "[--bits] got 16 for planes side by side, expected 8. Try to leave it out, or one plane");
  }
  if (is_single) {
    const Tensor shown = radiological(real).data;
    const Tensor plane = shown.reshape({shown.shape(-2), shown.shape(-1)});
    return write_png(
        to, plane,
        {.bits = static_cast<int>(options.bits), .window_low = low, .window_high = high});
  }
  const std::vector<Panel> panels = panels_of(volumes_of(real), /*signed_values=*/is_signed);
  write_png(to, montage(panels, {.columns = options.columns, .low = low, .high = high}));
}

// Bytes of a PNG with this many points: those of its planes, and of the picture made of them.
SortingBytes picture_bytes(const Extents& extents, const WriteImageOptions& options) {
  const index_t points = element_count(extents), as_float = 4 * points;
  // The part, and a copy of it: to find the window, or turned.
  SortingBytes bytes{2 * as_float, as_float};
  index_t pixels = points;
  if (!is_single_plane(extents)) {
    pixels = element_count(montage_extents(extents, {.columns = options.columns}));
    bytes.tensors += pixels;
    bytes.others = std::max(bytes.others, 3 * pixels);
  } else {
    // The pixels as double, as samples and compressed.
    bytes.others = std::max(bytes.others, (8 + 2 * options.bits / 8) * pixels);
  }
  return bytes;
}

void write_file_of(const std::string& path, const std::string& to, const Image& image,
                   const WriteImageOptions& options) {
  const Image result = ends_in(path, ".png") ? image : with_part(image, options);
  if (ends_in_any(path, {".nii", ".nii.gz"})) return write_nifti(to, to_nifti(result));
  if (ends_in_any(path, {".h5", ".mrd"})) return write_ismrmrd_images(to, to_ismrmrd(result));
  if (ends_in_any(path, {".cfl", ".hdr"})) return write_cfl(to, to_bart(result));
  if (ends_in(path, ".png")) return write_picture(path, to, image, options);
  if (const ImageFormat* format = image_format_of(path)) {
    return format->write(to, to_nifti(result));
  }
  write_npy(to, result.data);
}

}  // namespace

void add_written_image(Command& command, std::string& part, index_t& bits, index_t& columns) {
  command
      .choice(
          "--part", {"magnitude", "phase", "real", "imag"}, part,
          "Part of complex values; default: complex if the format supports it, else the magnitude")
      .option("--bits", "N", bits, "PNG bit depth of a single plane: 8 or 16")
      .option("--columns", "N", columns, "Planes in a row of a PNG; 0: as many as fit");
}

bool is_png(const std::string& path) { return ends_in_any(path, {".png"}); }

bool is_single_plane(const Extents& extents) {
  return element_count(extents) == extents.back() * extents[extents.size() - 2];
}

SortingBytes image_writing_bytes(const std::string& path, const Dims& names, const Extents& extents,
                                 const WriteImageOptions& options,
                                 const std::array<double, 3>& voxel_mm, bool is_one_volume) {
  if (path.empty()) return {};
  if (ends_in_any(path, {".png"})) {
    Extents shown = square_extents(names, extents, voxel_mm);
    // Slices that are turned each in its own way have room for either.
    index_t &rows = shown[shown.size() - 2], &columns = shown.back();
    if (!is_one_volume) rows = columns = std::max(rows, columns);
    return picture_bytes(shown, options);
  }
  const index_t element = options.part ? 4 : 8, stored = element * element_count(extents);
  SortingBytes bytes{options.part ? stored : 0, 0};
  const bool is_images = ends_in_any(path, {".h5", ".mrd"});
  // Frames and coefficients come before slices there.
  const bool is_turned =
      names.contains(ND("S")) && (names.contains(ND("T")) || names.contains(ND("B")));
  if (is_turned && (is_images || ends_in_any(path, {".gz"}))) bytes.tensors += stored;
  // The file is built in memory, by a process of its own.
  if (is_images) bytes.others += 3 * stored;
  return bytes;
}

const std::vector<std::string>& image_endings() {
  static const std::vector<std::string> endings = [] {
    std::vector<std::string> all = {".png", ".nii", ".nii.gz", ".h5",
                                    ".mrd", ".npy", ".cfl",    ".hdr"};
    for (const ImageFormat* format : image_formats()) {
      all.insert(all.end(), format->endings.begin(), format->endings.end());
    }
    return all;
  }();
  return endings;
}

const std::vector<std::string>& array_endings() {
  static const std::vector<std::string> endings(image_endings().begin() + 1, image_endings().end());
  return endings;
}

Image read_image(const std::string& path) {
  return read_input(path, [&] { return read_any(path); });
}

void name_axes(Image& image, const std::string& axes) {
  if (axes.empty()) return;
  Dims names;
  try {
    names = Dims(axes);
  } catch (const ValueError& error) {
    throw UsageError(fmt::format("[--axes] {}", error.what()));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names.count(names[i]) == 1 && names[i].is_concrete()) continue;
    throw UsageError(fmt::format("[--axes] got {}, expected names, each once", names.str()));
  }
  if (names.size() != image.data.rank()) {
    throw UsageError(fmt::format("[--axes] got {} for an array of {} axes, {}", names.str(),
                                 image.data.rank(), to_string(image.data.shape())));
  }
  image.names = names;
}

void announce_image(Outputs& outputs, const std::string& path,
                    const std::vector<std::string>& endings) {
  outputs.announce(path, endings);
}

std::string written_elements(const std::string& path, const Image& image,
                             const WriteImageOptions& options) {
  if (ends_in(path, ".png")) return fmt::format("gray values of {} bits", options.bits);
  if (ends_in_any(path, {".cfl", ".hdr"})) return std::string(name_of(DType::complex64));
  return std::string(name_of(options.part ? DType::float32 : image.data.dtype()));
}

void write_image(Outputs& outputs, const std::string& path, const Image& image,
                 const WriteImageOptions& options) {
  if (!ends_in(path, ".png") && (options.bits != 8 || options.columns > 0)) {
    throw UsageError(fmt::format("[{}] is of pictures: got the output {}, expected .png",
                                 options.bits != 8 ? "--bits" : "--columns", path));
  }
  const std::vector<std::string> files = files_of_image(path, image.facts, slices_of(image));
  const std::vector<Image> volumes =
      files.size() > 1 ? volumes_of(image) : std::vector<Image>{image};
  for (std::size_t k = 0; k < files.size(); ++k) {
    outputs.write(files[k], [&](const std::string& to) {
      write_file_of(path, to, volumes[std::min(k, volumes.size() - 1)], options);
    });
  }
}

std::vector<std::string> files_of_image(const std::string& path, std::span<const ImageFacts> images,
                                        index_t n_slices) {
  const bool has_heads = ends_in_any(path, {".png", ".npy", ".cfl", ".hdr", ".h5", ".mrd"});
  if (path.empty() || has_heads || are_one_volume(images, n_slices)) return {path};
  const bool is_packed = ends_in(path, ".nii.gz");
  const std::size_t dot = is_packed ? path.size() - 7 : path.rfind('.');
  const std::size_t n_frames = images.size() / static_cast<std::size_t>(n_slices);
  std::vector<std::string> files;
  for (std::size_t i = 0; i < images.size(); i += n_frames) {
    files.push_back(
        fmt::format("{}_slice{}{}", path.substr(0, dot), images[i].slice, path.substr(dot)));
  }
  return files;
}

std::vector<std::string> notes_of_image(const std::string& path, std::span<const ImageFacts> images,
                                        index_t n_slices) {
  std::vector<std::string> notes;
  if (files_of_image(path, images, n_slices).size() > 1) {
    notes.push_back(fmt::format(
        "slices are not parallel and equally spaced: a file for each in place of {}", path));
  }
  const bool is_volume = ends_in_any(path, {".nii", ".nii.gz"}) || image_format_of(path) != nullptr;
  const std::vector<std::string> lost =
      is_volume ? facts_lost_in_a_volume(images, n_slices) : std::vector<std::string>{};
  if (!lost.empty()) {
    notes.push_back(
        fmt::format("{} has no place for {}: .mrd keeps them", path, fmt::join(lost, ", ")));
  }
  return notes;
}

}  // namespace palimpsest::cli
