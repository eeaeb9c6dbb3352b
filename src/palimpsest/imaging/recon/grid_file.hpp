// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <string>

#include "palimpsest/imaging/recon/place.hpp"
#include "palimpsest/imaging/scan.hpp"

namespace palimpsest {

/// An array in a file as a grid (coil, z, y, x), or (frame, coil, z, y, x): mapped where its
/// elements allow it.
struct GridFile {
  std::string path;
  Tensor array;  // complex64 or complex128, any strides
  /// Of k-space: the first axis counts slices, not frames.
  bool has_slices = false;
  /// Of coil maps: sets, one after the other along the axis of the coils.
  index_t sets = 1;
  /// Bytes in memory: 0 for a mapped array.
  index_t held_bytes() const { return is_mapped(array) ? 0 : array.nbytes(); }
  bool is_dense() const { return array.dtype() == DType::complex64 && array.is_contiguous(); }
};

/// Bytes held beside such an array while a dense copy of it is made.
index_t copying_bytes(const Tensor& array);
/// Writes an array of any layout as complex64, from element `first` on.
void copy_dense(const Tensor& array, ScratchArray& into, index_t first);
Tensor dense_copy(const Tensor& array, const Place& place);

/// (coil, z, y, x) or (frame, coil, z, y, x), with BART's dimension 13 (slice, coil, z, y, x); a
/// coil axis that a BART CFL lacks has one element.
///
/// Errors   ValueError: real numbers, empty, another rank than 3, 4 or 5
GridFile open_kspace(const std::string& path, FileFormat format);

/// bool (z, y, x): where any coil has a value other than 0.
///
/// Errors   ValueError: NaN or infinite values
Tensor measured_points_of(const std::string& path, const Tensor& grid);

/// Coil maps for a scan in an array file, ([slice], [set], coil, z, y, x), as (set * coil, z, y, x)
/// or (slice, set * coil, z, y, x); axes of one point may be left out.
///
/// Errors   ValueError: another format, real numbers, maps that do not fit the scan
GridFile open_maps(const std::string& path, const ScanLayout& layout);

/// A trajectory in a file, NPY (readouts, samples, D) or (frames, readouts, samples, D), or BART's:
/// float32 (frames * readouts, samples, D), D = 2 or 3; kz that is 0 everywhere is left out.
///
/// Errors   ValueError: another format, rank or dtype, NaN
Tensor open_trajectory(const std::string& path);

/// Extents without those of 1.
Extents without_ones(const Extents& shape);
/// Extents without those of 1 from axis 1 on, but two at least.
Extents without_single_axes(const Extents& shape);

/// An array that an option names, mapped: NPY as it is, BART's without axes of one point.
///
/// Errors   ValueError naming the option: another format
Tensor open_array(const std::string& option, const std::string& path);

/// Reads values line by line.
///
/// Errors   ValueError naming the option, the file and the first NaN or infinite value
void check_finite_lines(const std::string& option, const std::string& path, const Tensor& values);

/// The phase of an image in a file, NPY or BART's, axes of one point left out or not: numbers of
/// these extents, mapped where its elements allow it.
///
/// Errors   ValueError "phase": another format, other extents, NaN
Tensor open_phase(const std::string& path, const Extents& image);

/// A basis of a series, NPY (frames, coefficients) or BART's with frames at dimension 5 and
/// coefficients at 6: complex64 (frames, coefficients), dense.
///
/// Errors   ValueError "basis": another format; those of checked_basis()
Tensor open_basis(const std::string& path, index_t frames);

}  // namespace palimpsest
