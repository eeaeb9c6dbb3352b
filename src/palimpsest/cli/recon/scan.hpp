// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "palimpsest/cli/recon/memory_ledger.hpp"
#include "palimpsest/cli/recon/place.hpp"
#include "palimpsest/io/cartesian.hpp"
#include "palimpsest/io/format.hpp"

namespace palimpsest::cli {

struct ScanOptions {
  /// Of a raw file; must be named where it has several.
  std::optional<index_t> slice, contrast, phase, set;
  /// Of a raw file with several; all are averaged where none is named.
  std::optional<index_t> repetition;
  /// Decorrelates the coils by the noise readouts of a raw file.
  bool prewhiten = false;
};

/// Which part of the grid is solved for at a time: all of a 2-D grid; the planes (z, y) of a volume
/// that is measured completely along x; or a whole volume.
enum class Division { plane, planes, volume };

/// What is known of a scan before it is sorted.
struct ScanLayout {
  FileFormat format = FileFormat::npy;
  /// Extents of k-space as measured: coil, z, y, x.
  Extents grid;
  /// Columns along x that are kept: all, but where readouts are oversampled.
  index_t columns = 0;
  Division division = Division::plane;
  /// Repetitions and averages of a raw file that became one image.
  index_t n_repetitions = 1, n_averages = 1;
  /// bool, extents of an item: the measured points.
  Tensor mask;
  /// Extents z, y, x of the wanted image: at most those of the grid.
  Extents wanted;

  index_t n_coils() const { return grid[0]; }
  bool is_cut() const { return columns < grid[3]; }
  /// Number of the items that are solved one by one, and the extents of each: (row, column), or
  /// (z, y, x) of a whole volume.
  index_t n_items() const { return division == Division::planes ? columns : 1; }
  Extents item_shape() const;
  /// (coil, ..) of k-space or maps of one item.
  Extents item_array_shape() const;
  /// Extents of the wanted part of an item, in its middle, and of the whole image.
  Extents wanted_of_item() const;
  Extents image_shape() const;
  /// Extents of coil maps: (coil, z, y, x), and without the axes of one point.
  Extents maps_shape() const;
  Extents short_maps_shape() const;
  /// Points of an item per sample.
  double acceleration() const;
  index_t samples_per_coil() const;
};

/// An array in a file as a grid (coil, z, y, x): mapped where its elements allow it.
struct GridFile {
  std::string path;
  Tensor array;  // complex64 or complex128, any strides
  /// Held for what cannot be mapped.
  index_t held_bytes() const { return is_mapped(array) ? 0 : array.nbytes(); }
  bool is_dense() const { return array.dtype() == DType::complex64 && array.is_contiguous(); }
  /// Held while a dense copy is made, beside it.
  index_t copying_bytes() const;
  Tensor dense_copy(const Place& place) const;
};

/// A scan in a file: raw (ISMRMRD), or an array (NPY, BART CFL) (coil, y, x) or (coil, z, y, x)
/// with zeros at points that were not measured. Headers are read at once, and of arrays which
/// points are measured; samples when they are asked for.
///
/// Errors   UsageError: another format or rank, real numbers, NaN, nothing measured
class Scan {
 public:
  Scan(const std::string& path, const ScanOptions& options, MemoryLedger& ledger);

  const ScanLayout& layout() const { return layout_; }
  /// Held at most by the constructor, and from then on until k-space is taken.
  index_t opening_bytes() const { return opening_bytes_; }
  index_t held_bytes() const;
  /// Of them the masks, which stay.
  index_t mask_bytes() const;
  /// Does taking k-space make an array? Else the file's is shown.
  bool makes_array() const { return raw_.has_value() || !file_.is_dense(); }
  /// Is that which is shown in a file?
  bool is_mapped() const { return !raw_ && cli::is_mapped(file_.array); }
  /// Held beside the array while it is made, if at most so much is read at a time.
  SortingBytes making_bytes(index_t piece_bytes) const;
  /// k-space, complex64 (coil, z, y, x), dense. The file is closed.
  Tensor take_kspace(const Place& place, index_t piece_bytes, MemoryLedger& ledger);

  /// bool, extents of an item: the points of separate calibration lines; undefined where the scan
  /// has none on the grid of the image.
  const Tensor& calibration_mask() const { return calibration_mask_; }
  /// k-space of these lines, in the same form, and what is held beside it while it is made. Before
  /// take_kspace().
  Tensor calibration_kspace(const Place& place, index_t piece_bytes, MemoryLedger& ledger) const;
  SortingBytes calibration_bytes(index_t piece_bytes) const;

 private:
  CartesianOptions cartesian_options(bool calibration = false) const;
  void check_named();
  void check_is_raw() const;
  void open_raw(MemoryLedger& ledger);
  void open_calibration();
  Tensor sorted(const CartesianOptions& options, const Place& place, index_t piece_bytes) const;
  void open_array();

  std::string path_;
  ScanOptions options_;
  ScanLayout layout_;
  std::optional<RawScanFile> raw_;
  MemoryLedger::Charge raw_charge_;
  GridFile file_;
  Tensor calibration_mask_;
  index_t opening_bytes_ = 0;
};

/// Coil maps for a scan in an array file, (coil, z, y, x); axes of one point may be left out.
///
/// Errors   UsageError: another format, real numbers, maps that do not fit the scan
GridFile open_maps(const std::string& path, const ScanLayout& layout);

}  // namespace palimpsest::cli
