// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "palimpsest/imaging/corrections/epi.hpp"
#include "palimpsest/imaging/recon/coil_mixer.hpp"
#include "palimpsest/imaging/recon/grid_file.hpp"
#include "palimpsest/imaging/recon/memory_ledger.hpp"
#include "palimpsest/imaging/recon/place.hpp"
#include "palimpsest/imaging/scan.hpp"
#include "palimpsest/io/cartesian.hpp"

namespace palimpsest {

/// A counter of readouts that may number the frames, and the option that names one value of it.
struct CounterFields {
  index_t Readout::*of_readout = nullptr;
  std::optional<index_t> CartesianOptions::*of_options = nullptr;
};
/// By FrameCounter; null for none.
inline constexpr CounterFields kCounters[] = {
    {},
    {&Readout::contrast, &CartesianOptions::contrast},
    {&Readout::phase, &CartesianOptions::phase},
    {&Readout::set, &CartesianOptions::set},
    {&Readout::repetition, &CartesianOptions::repetition}};

/// A scan in a file: raw (ISMRMRD), or an array (NPY, BART CFL) (coil, y, x), (coil, z, y, x) or
/// (frame or slice, coil, z, y, x) with zeros at points that were not measured; along a trajectory
/// (coil, readout, sample). Headers are read at once, and of arrays which points are measured;
/// samples when they are asked for.
///
/// Errors   ValueError: another format or rank, real numbers, NaN, nothing measured
class ScanFile {
 public:
  /// `whole`: a volume is one item, also if its planes could be solved one by one.
  ScanFile(const std::string& path, const ScanOptions& options, MemoryLedger& ledger, bool whole);

  const ScanLayout& layout() const { return layout_; }
  /// The peak bytes of the constructor, and the bytes held from then on until close().
  index_t opening_bytes() const { return opening_bytes_; }
  index_t held_bytes() const;
  /// The part of these bytes that stays: the masks of an image, and the trajectory.
  index_t kept_bytes() const;
  /// True if taking k-space makes an array; false if the file's own array is shown.
  bool makes_array() const { return makes_array_; }
  /// True if the shown array lies in a mapped file.
  bool is_mapped() const { return is_mapped_; }
  /// Bytes held beside the array while it is made, for a limit of bytes read at a time.
  SortingBytes making_bytes(index_t piece_bytes) const;

  /// k-space of consecutive frames of a slice, complex64 (frame * coil, z, y, x), dense; along a
  /// trajectory (coil, 1, readout, sample) of all frames.
  Tensor kspace(index_t slice, index_t frame, index_t n_frames, const Place& place,
                index_t piece_bytes, MemoryLedger& ledger) const;
  /// The mean of all frames; of arrays, that over those which measured a point.
  Tensor mean_kspace(index_t slice, const Place& place, index_t piece_bytes,
                     MemoryLedger& ledger) const;
  /// bool, extents of an item: the measured points of an image.
  Tensor mask(index_t slice, index_t frame) const;
  /// bool: those of any frame.
  Tensor mean_mask(index_t slice) const;
  /// The list of readouts is not needed any more.
  void close();

  /// bool, extents of an item: the points of separate calibration lines of a slice; undefined where
  /// it has none on the grid of the image.
  Tensor calibration_mask(index_t slice) const;
  bool has_calibration(index_t slice) const { return calibration_mask(slice).defined(); }
  /// k-space of the calibration lines, in the same form; and the bytes held beside it while it is
  /// made.
  Tensor calibration_kspace(index_t slice, const Place& place, index_t piece_bytes,
                            MemoryLedger& ledger) const;
  SortingBytes calibration_bytes(index_t piece_bytes) const;

  const std::optional<RawScanFile>& raw() const { return raw_; }

  /// Compresses to this number of virtual coils, in layout() too: leading left singular vectors of
  /// the samples of the calibration area, or of all samples without one.
  ///
  /// Errors   ValueError "virtual_coils": more than the physical coils, or 0
  void compress_to(index_t coils);
  void note(const std::string& text) { layout_.notes.push_back(text); }
  index_t physical_coils() const { return mixer_ ? mixer_->coils() : layout_.n_coils(); }
  /// The mixer of the coils; null before compress_to().
  CoilMixer* mixer() const { return mixer_.get(); }
  /// From now on coefficients take the place of the frames of the image.
  void project_to(index_t coefficients) { layout_.coefficients = coefficients; }
  /// Finds the matrix: before k-space is asked for. Of all slices and frames together.
  void find_virtual_coils(index_t piece_bytes, MemoryLedger& ledger);
  SortingBytes finding_bytes(index_t piece_bytes) const;

 private:
  CartesianOptions options_of(index_t slice, std::optional<index_t> frame = {},
                              bool calibration = false) const;
  void check_named();
  void check_is_raw() const;
  void open_raw(MemoryLedger& ledger);
  CartesianLayout layout_of(index_t slice, std::optional<index_t> frame) const;
  void open_raw_grid();
  void note_lines(index_t fewest, index_t most);
  void note_navigators();
  void open_raw_trajectory();
  Tensor raw_trajectory(const std::vector<std::size_t>& readouts, std::string& unit) const;
  void note_unit_of_array();
  void check_readouts(index_t slice, std::size_t n_readouts) const;
  void check_trajectories();
  std::vector<std::size_t> ordered_readouts(index_t slice) const;
  void note_pixels();
  double voxel_mm(std::size_t axis) const;
  std::vector<std::size_t> readouts_from_middle(index_t slice, index_t frame) const;
  void open_images();
  void open_geometry();
  void open_array();
  void take_slice_of_array(index_t slice);
  void refuse_for_array(const char* option, const char* what) const;
  index_t image_of_array(index_t slice, index_t frame) const {
    return slice * layout_.n_frames() + frame;
  }
  void open_array_trajectory();
  void set_frames_of_readouts();
  SortOptions sorting(index_t slice, const Place& place, index_t piece_bytes) const;
  void sort_trajectory(index_t slice, ScratchArray& into, index_t piece_bytes) const;
  Tensor frames_of_array(index_t frame, index_t n_frames, const Place& place) const;
  Tensor mean_line(index_t coil, index_t z, index_t y) const;
  Tensor mean_of_array(const Place& place) const;
  void count_raw_grid(index_t piece_bytes);
  void count_array_grid();
  void count_along(const Tensor& line, index_t readout);
  using Line = std::function<void(std::size_t place, const Tensor& line)>;
  void read_along(index_t slice, index_t piece_bytes, const Line& visit) const;
  const std::optional<EchoPhase>& echo_phase(index_t slice, index_t piece_bytes) const;

  std::string path_;
  ScanOptions options_;
  bool whole_ = false, makes_array_ = true, is_mapped_ = false;
  ScanLayout layout_;
  std::optional<RawScanFile> raw_;
  MemoryLedger::Charge raw_charge_;
  GridFile file_;  // of several frames (frame, coil, z, y, x)
  // Of each slice: columns that its scanner filled with zeros; empty: none.
  std::vector<std::vector<bool>> measured_columns_;
  std::unique_ptr<CoilMixer> mixer_;
  index_t opening_bytes_ = 0;
  // The slice of the last request, and its phase.
  mutable index_t phase_slice_ = -1;
  mutable std::optional<EchoPhase> phase_;
};

}  // namespace palimpsest
