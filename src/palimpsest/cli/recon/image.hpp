// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "palimpsest/imaging/results/image.hpp"

namespace palimpsest::cli {

/// A 2-D image out of a file: NIfTI or NPY; one slice of a volume, its rows turned so that the top
/// is anterior (superior in coronal and sagittal slices), as float32 or complex64.
///
/// Errors   UsageError: no such axis or slice, wrong rank, values that are not finite, an image of
/// 0
Tensor read_slice(const std::string& path, const std::string& axis, std::optional<index_t> slice);

}  // namespace palimpsest::cli
