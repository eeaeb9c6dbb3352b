// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/io/nifti.hpp"

namespace PALIMPSEST_API palimpsest {

/// Formats of files that this library reads.
enum class FileFormat {
  npy,
  cfl,
  ismrmrd,
  nifti,
  png,
  image,  ///< one of image_formats()
};

/// `NPY`, `BART CFL`, `ISMRMRD`, `NIfTI`, `PNG`, `image`.
std::string_view name_of(FileFormat format);

/// A format of files with one image each, of which nothing else knows but this.
struct ImageFormat {
  std::string_view name;
  /// Of the names of files, such as `.mrc`.
  std::vector<std::string_view> endings;
  /// True for the first 1,024 bytes, or all, of a file of this format.
  bool (*begins)(std::string_view start);
  NiftiImage (*read)(const std::string& path);
  void (*write)(const std::string& path, const NiftiImage& image);
};
/// All `const ImageFormat& image_format_types::<name>()` of this layer, which the build lists.
std::vector<const ImageFormat*> image_formats();
/// Format of a file, by its content; null: none of them.
///
/// Errors   IoError: no such file
const ImageFormat* detect_image_format(const std::string& path);

/// The format of a file, by its content; the ending decides only where content cannot (.cfl, .gz).
/// A stem without ending, beside which STEM.hdr and STEM.cfl lie, is a BART CFL.
///
/// Errors   IoError: no such file; FormatError: none of these formats
FileFormat detect_format(const std::string& path);
/// The name of a file's format, such as `NIfTI`.
///
/// Errors   as detect_format()
std::string_view format_name(const std::string& path);

}  // namespace palimpsest
