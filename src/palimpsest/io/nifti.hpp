// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

struct NiftiImage {
  /// (.., t, z, y, x): the file's axes reversed, since its first one is the fastest.
  Tensor data;
  /// Distance between voxels along z, y, x.
  std::array<double, 3> spacing_mm = {1, 1, 1};
  std::string description = {};
  /// From voxel (i, j, k) along x, y, z to millimetres to the right, anterior, superior: rows of
  /// x, y, z, offset. From sform, else from qform; absent: the file has neither.
  std::optional<std::array<std::array<double, 4>, 3>> affine_ras = {};
  /// Seconds along t, 0 if not known.
  double time_step_s = 0;
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

/// Writes an image; compressed where the name ends in .gz.
///
/// The affine becomes the sform (code 1), and where its columns are orthogonal the qform too.
/// NIfTI-1; NIfTI-2 for extents above 32767.
///
/// Shapes   data of one to seven axes
/// DTypes   all; bool as uint8
/// Errors   ShapeError: no axes, more than seven, an empty array; ValueError: spacing or affine
///          that are not finite; IoError as AtomicFile, nothing is left behind
void write_nifti(const std::string& path, const NiftiImage& image);

}  // namespace palimpsest
