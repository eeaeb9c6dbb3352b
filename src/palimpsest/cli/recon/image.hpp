// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest::cli {

/// |x| as float32, dense; any real or complex dtype.
Tensor magnitude(const Tensor& x);

/// The middle part of the last two axes, element floor(n/2) staying the middle; larger sizes are no
/// change. A view.
Tensor center_crop(const Tensor& x, index_t ny, index_t nx);
/// Zeros around the last two axes, element floor(n/2) staying the middle.
Tensor center_pad(const Tensor& x, index_t ny, index_t nx);

/// The value that the given part of all elements does not exceed; 0 <= part <= 1. float32 only.
double quantile(const Tensor& x, double part);

struct Comparison {
  /// Best factor from image to reference: it minimizes the error.
  double scale = 1;
  /// |scale * |image| - |reference|| / |reference|, Euclidean norms over all pixels.
  double nrmse = 0;
};
/// Compares magnitudes. UsageError: shapes differ, or the reference is 0 everywhere.
Comparison compare_magnitudes(const Tensor& reference, const Tensor& image);

/// Images of one size in a row, `gap` pixels of a middle gray between and around them.
///
/// Shapes   panels (ny, nx) float32, 0 is black and 1 white -> uint8
Tensor panels_in_a_row(const std::vector<Tensor>& panels, index_t gap);

/// A 2-D image out of a file: NIfTI or NPY; one slice of a volume, its rows turned so that the top
/// is anterior (superior in coronal and sagittal slices), as float32 or complex64.
///
/// Errors   UsageError: no such axis or slice, wrong rank, values that are not finite, an image of
/// 0
Tensor read_slice(const std::string& path, const std::string& axis, std::optional<index_t> slice);

}  // namespace palimpsest::cli
