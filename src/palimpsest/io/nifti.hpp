// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

struct NiftiImage {
  /// (.., t, z, y, x): the file's axes reversed, since its first one is the fastest.
  Tensor data;
  /// Distance between voxels along z, y, x.
  std::array<double, 3> spacing_mm = {1, 1, 1};
  std::string description;
};

/// An image as NIfTI-1 or NIfTI-2, in one file (.nii), plain or compressed (.nii.gz).
///
/// Math     value = scl_slope * stored + scl_inter, where the file gives a slope other than 0
/// Shapes   at least the file's first three axes as (z, y, x), a 2-D image as (y, x); later axes
/// come
///          before them, those of 1 at the file's end are dropped
/// Units    spacing in mm, converted from m or um where the file says so
/// DTypes   that of the file; scaled integers of up to 16 bits become float32, of more float64
/// Errors   IoError: the file cannot be read; FormatError: not such a file, damaged, truncated
/// Source   https://nifti.nimh.nih.gov
NiftiImage read_nifti(const std::string& path);

}  // namespace palimpsest
