// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <complex>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/io/ismrmrd.hpp"
#include "palimpsest/io/scratch_array.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// The counters of the imaging readouts of a scan, each value once, sorted; and the number of
/// readouts of each kind.
struct ScanContents {
  std::vector<index_t> slices, contrasts, phases, sets, repetitions, averages, segments;
  /// calibration_readouts: with the flag of calibration, also those that image as well.
  index_t imaging_readouts = 0, calibration_readouts = 0, noise_readouts = 0;
  /// Number of the lines among them that only calibrate and lie on the grid of the image: see
  /// CartesianOptions::calibration.
  index_t separate_calibration_readouts = 0;
};
/// Selection of one of a scan's images.
struct CartesianOptions {
  /// Must be named where the scan has several.
  std::optional<index_t> slice = {}, contrast = {}, phase = {}, set = {};
  /// All repetitions are averaged where none is named.
  std::optional<index_t> repetition = {};
  /// Makes the coils' noise uncorrelated and of variance 1, by the scan's own noise readouts.
  bool prewhiten = false;
  /// Takes the lines of the slice that only calibrate (separate or external calibration) in place
  /// of those of the image; other counters than the slice do not matter then.
  bool calibration = false;
  /// Takes contrasts, phases and sets that are not named together, as repetitions are.
  bool mean_of_all = false;
};

/// `named` restricts it to the readouts that have its counters, where it names some.
ScanContents contents_of(const RawScan& scan, const CartesianOptions& named = {});
/// Numbers of the readouts of one image, or of its separate calibration, increasing.
///
/// Errors   FormatError: no imaging readouts; ValueError: none with these counters, or several
///          slices, contrasts, phases or sets and no choice of one
std::vector<std::size_t> imaging_readouts(const RawScan& scan, const CartesianOptions& options);

/// Samples on the grid of k-space, its centre at index n/2 of each axis.
struct CartesianKspace {
  /// complex64 (coil, kz, ky, kx); zero where nothing was measured. kz and kx may have one element.
  Tensor kspace;
  /// bool (kz, ky): was there a readout? Parts that a readout leaves out (partial echoes) are zero.
  Tensor mask;
  /// Extent along x and field of view, encoded over wanted; 1: nothing to remove.
  double readout_oversampling = 1;
  /// Extent of the wanted image along x, y, z.
  std::array<index_t, 3> recon_matrix = {1, 1, 1};
};

/// Sorts the imaging readouts of a scan onto the grid and averages repeated measurements.
///
/// Rows are placed by encode_step_1 and _2 and the centres of the header's encoding limits;
/// readouts of the full length as they are, shorter ones by their centre sample; reversed ones are
/// turned. Left out: noise, navigators, corrections, dummies, other encodings than the first, and
/// lines that only calibrate, unless the header calls the calibration embedded or interleaved.
///
/// Errors   NotSupported: another trajectory than Cartesian; ValueError: no such slice, .., or
///          several and no choice of one; prewhitening without noise readouts; FormatError:
///          positions outside the grid, a grid that the data do not fill
CartesianKspace cartesian_kspace(const RawScan& scan, const CartesianOptions& options = {});

/// Positions of a file's imaging readouts in k-space, found from their headers alone.
struct CartesianLayout {
  /// Extents of k-space: coil, kz, ky, kx.
  Extents grid;
  /// bool (kz, ky, kx): the measured points; (kz, ky, 1) where every readout is complete.
  Tensor measured;
  bool has_full_readouts = true;
  double readout_oversampling = 1;
  std::array<index_t, 3> recon_matrix = {1, 1, 1};
  /// Numbers of the readouts, increasing.
  std::vector<std::size_t> readouts;
};
/// Errors   those of cartesian_kspace
CartesianLayout cartesian_layout(const RawScanFile& file, const CartesianOptions& options = {});

/// Looks at `n_readouts` readouts in the middle of a layout of complete readouts. Columns in which
/// all their samples are 0 count as not measured: some scanners fill partial echoes with zeros.
/// Empty if there are none.
std::vector<bool> measured_columns(const RawScanFile& file, const CartesianLayout& layout,
                                   std::size_t n_readouts);

/// cartesian_kspace() of a file that may be larger than memory.
struct SortOptions {
  /// The result is held in memory, else in a file without a name in `folder`.
  bool in_memory = false;
  std::string folder = ".";
  /// Bytes of the scan's file that are held at a time.
  index_t batch_bytes = index_t{16} << 20;
  /// Changes a readout on its way: (coil, kx) on the grid, turned where it was reversed, and the
  /// row kz * ny + ky that it goes to.
  std::function<void(const Readout& readout, index_t row, std::complex<float>* line)> change = {};
  /// Coils of the result, the first ones that `change` leaves; unset: all. With 0 nothing is
  /// written.
  std::optional<index_t> coils = {};
};
/// complex64 (coil, kz, ky, kx); zero where nothing was measured.
///
/// Errors   those of cartesian_kspace and ScratchArray; FormatError: a sample that is NaN or
///          infinite
/// Cost     one pass over the file, and a second one over readouts of noise
ScratchArray sorted_kspace(const RawScanFile& file, const CartesianOptions& options = {},
                           const SortOptions& how = {});
/// The same into a part of an array: elements from `first` on.
void sort_kspace(const RawScanFile& file, const CartesianOptions& options, const SortOptions& how,
                 ScratchArray& into, index_t first);
/// Bytes that sorted_kspace() holds beside the file's contents and the result.
struct SortingBytes {
  index_t tensors = 0;  ///< from the allocator
  index_t others = 0;
};
SortingBytes sorting_bytes(const RawScanFile& file, const CartesianOptions& options,
                           index_t batch_bytes);

/// The opposite: a scan of one readout for each true element of the mask, in the order (kz, ky).
///
/// The header's number of coils, and encoding limits and matrix where these differ from the shape,
/// are set; fields of view, recon matrix and the rest stay as given.
///
/// Shapes   kspace (coil, kz, ky, kx), complex64; mask (kz, ky), bool
/// Errors   ShapeError, DTypeError: not such; OverflowError: an axis above 65535
RawScan cartesian_scan(const Tensor& kspace, const Tensor& mask, RawScanHeader header);

/// Appends readouts of pure noise, (coil, sample) complex64, as scanners measure them for
/// whitening.
void add_noise_readout(RawScan& scan, const Tensor& noise);

/// Covariance of the coils' noise, (coil, coil) complex128, out of the noise readouts, per sample.
/// Undefined where the scan has none. FormatError where they differ in their number of coils.
Tensor noise_covariance(const RawScan& scan);
/// The same for a file, with a limit of bytes read at a time.
Tensor noise_covariance(const RawScanFile& file, index_t batch_bytes);

/// L^-1 x for covariance = L L^H: the coils' noise becomes uncorrelated, of variance 1.
///
/// Shapes   kspace (coil, ..) complex64; covariance (coil, coil) complex128
/// Errors   ShapeError: they do not fit; ValueError: the covariance is not positive definite
/// Source   Pruessmann et al. 2001, doi:10.1002/mrm.1241
Tensor prewhitened(const Tensor& kspace, const Tensor& covariance);

}  // namespace palimpsest
