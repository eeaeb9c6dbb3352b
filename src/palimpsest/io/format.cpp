// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/format.hpp"

#include <unistd.h>

#include "palimpsest/io/image_format_list.hpp"
#include "palimpsest/io/prelude.hpp"

namespace palimpsest {

namespace {

bool is_cfl_stem(const std::string& path) {
  return ::access(path.c_str(), F_OK) != 0 && ::access((path + ".hdr").c_str(), F_OK) == 0 &&
         ::access((path + ".cfl").c_str(), F_OK) == 0;
}

const ImageFormat* format_that_begins(std::string_view start) {
  for (const ImageFormat* format : image_formats()) {
    if (format->begins(start)) return format;
  }
  return nullptr;
}

/// The first bytes of a file, as far as magic numbers reach.
std::string first_bytes(const io_detail::InputFile& file) {
  std::string bytes(static_cast<std::size_t>(std::min<index_t>(file.size(), 1024)), '\0');
  file.read_at(0, bytes.data(), std::ssize(bytes));
  return bytes;
}

}  // namespace

std::string_view name_of(FileFormat format) {
  switch (format) {
    case FileFormat::npy:
      return "NPY";
    case FileFormat::cfl:
      return "BART CFL";
    case FileFormat::ismrmrd:
      return "ISMRMRD";
    case FileFormat::nifti:
      return "NIfTI";
    case FileFormat::png:
      return "PNG";
    case FileFormat::image:
      return "image";
  }
  throw InternalError("[name_of] no such file format");
}

FileFormat detect_format(const std::string& path) {
  using namespace std::string_view_literals;
  if (is_cfl_stem(path)) return FileFormat::cfl;
  const io_detail::InputFile file(path);
  const std::string bytes = first_bytes(file);
  const std::string_view start = bytes;
  if (start.starts_with("\x93NUMPY"sv)) return FileFormat::npy;
  if (start.starts_with("\x89HDF\r\n\x1a\n"sv)) return FileFormat::ismrmrd;
  if (start.starts_with("\x89PNG\r\n\x1a\n"sv)) return FileFormat::png;
  const bool nifti1 = start.size() >= 348 && (start.substr(344, 4) == "n+1\0"sv);
  if (nifti1 || (start.size() > 8 && start.substr(4, 4) == "n+2\0"sv)) return FileFormat::nifti;
  if (start.starts_with("\x1f\x8b"sv)) return FileFormat::nifti;
  if (format_that_begins(start)) return FileFormat::image;
  if (path.ends_with(".cfl")) return FileFormat::cfl;
  if (path.ends_with(".hdr") && start.find("# Dimensions") != std::string_view::npos) {
    return FileFormat::cfl;
  }
  if (file.size() == 0) io_detail::fail_format(path, "is empty.");
  std::string names = "NPY, BART CFL, NIfTI";
  for (const ImageFormat* format : image_formats()) names += ", " + std::string(format->name);
  io_detail::fail_format(
      path,
      "is in none of the formats known here. Try an ISMRMRD raw file (.h5), " + names + " or PNG.");
}

std::string_view format_name(const std::string& path) {
  const FileFormat format = detect_format(path);
  return format == FileFormat::image ? detect_image_format(path)->name : name_of(format);
}

std::vector<const ImageFormat*> image_formats() {
  std::vector<const ImageFormat*> formats;
  for (const auto format : image_format_types::list()) formats.push_back(&format());
  return formats;
}

const ImageFormat* detect_image_format(const std::string& path) {
  return format_that_begins(first_bytes(io_detail::InputFile(path)));
}

}  // namespace palimpsest
