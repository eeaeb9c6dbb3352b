// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "palimpsest/base/api.hpp"

namespace PALIMPSEST_API palimpsest {

/// Formats of files that this library reads.
enum class FileFormat { npy, cfl, ismrmrd, nifti, png };

/// `NPY`, `BART CFL`, `ISMRMRD`, `NIfTI`, `PNG`.
std::string_view name_of(FileFormat format);

/// The format of a file, by its content; the ending decides only where content cannot (.cfl, .gz).
/// A stem without ending, beside which STEM.hdr and STEM.cfl lie, is a BART CFL.
///
/// Errors   IoError: no such file; FormatError: none of these formats
FileFormat detect_format(const std::string& path);

}  // namespace palimpsest
