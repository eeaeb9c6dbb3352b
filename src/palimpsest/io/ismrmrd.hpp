// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// A grid in k-space or in the image: along readout x, phase encoding y, partition or slice z.
struct EncodingSpace {
  std::array<index_t, 3> matrix = {1, 1, 1};
  std::array<double, 3> field_of_view_mm = {1, 1, 1};
};

/// The range of an encoding counter; `center` is the step through the centre of k-space.
struct EncodingLimit {
  index_t minimum = 0, maximum = 0, center = 0;
};

/// The facts of a scan's header that reconstruction needs, of its first encoding.
struct RawScanHeader {
  EncodingSpace encoded;
  EncodingSpace recon;
  std::optional<EncodingLimit> step_0_limit, step_1_limit, step_2_limit;
  /// Undersampling along encoding steps 1 and 2, as the scanner planned it.
  std::array<index_t, 2> acceleration = {1, 1};
  /// `embedded`, `interleaved`, `separate`, `external`, `other`, or empty.
  std::string calibration_mode;
  /// `cartesian`, `epi`, `radial`, `goldenangle`, `spiral` or `other`.
  std::string trajectory = "cartesian";
  index_t n_coils = 1;
  double h1_frequency_hz = 0;
  std::string institution;
  /// The whole header as the file has it. Writing makes its own from the facts above.
  std::string xml;

  /// Samples along a readout for each pixel that is wanted there, usually 1 or 2.
  double readout_oversampling() const;
};

/// Bits of Readout::flags, counted from 1 as in the standard.
enum class ReadoutFlag : int {
  noise = 19,
  calibration = 20,
  calibration_and_imaging = 21,
  reverse = 22,
  navigation = 23,
  phase_correction = 24,
  last_in_measurement = 25,
  hp_feedback = 26,
  dummy = 27,
  rt_feedback = 28,
  surface_coil_correction = 29,
  phase_stabilization_reference = 30,
  phase_stabilization = 31,
};

/// A readout of all coils: where in k-space it lies, and where in RawScan::samples.
struct Readout {
  std::uint64_t flags = 0;
  index_t n_samples = 0, n_coils = 0;
  /// The sample through the centre of k-space.
  index_t center_sample = 0;
  /// Samples at both ends that are not to be used.
  index_t discard_pre = 0, discard_post = 0;
  index_t step_1 = 0, step_2 = 0;
  index_t average = 0, slice = 0, contrast = 0, phase = 0, repetition = 0, set = 0, segment = 0;
  /// Index of the header's encoding that it belongs to, from 0.
  index_t encoding_space = 0;
  double sample_time_us = 0;
  /// Time of the scanner's clock, in its own ticks, and of three triggers of physiology.
  index_t time_stamp = 0;
  std::array<std::uint32_t, 3> physiology_time_stamp = {0, 0, 0};
  /// Centre of the slice or slab, and of the patient table, mm, in the patient's left, posterior,
  /// superior; unit vectors along readout, phase encoding and slice.
  std::array<float, 3> position = {0, 0, 0}, table_position = {0, 0, 0};
  std::array<float, 3> read_direction = {1, 0, 0}, phase_direction = {0, 1, 0};
  std::array<float, 3> slice_direction = {0, 0, 1};
  index_t n_trajectory_axes = 0;
  /// First element in RawScan::samples, and in RawScan::trajectory.
  index_t first_sample = 0, first_coordinate = 0;

  bool has(ReadoutFlag flag) const;
  void set_flag(ReadoutFlag flag);
};

/// A raw scan: header, readouts in the order of measurement, and their samples in one array.
struct RawScan {
  RawScanHeader header;
  std::vector<Readout> readouts;
  /// complex64, one axis; readout i has n_coils * n_samples elements from first_sample on.
  Tensor samples;
  /// float32, one axis; readout i has n_samples * n_trajectory_axes elements. Undefined if none.
  Tensor trajectory;

  /// Samples of one readout, (coil, sample): a view.
  Tensor samples_of(std::size_t readout) const;
};

/// A raw scan in an ISMRMRD file: HDF5 with the group `dataset`, in it `xml` and `data`.
///
/// The file is parsed in a child process: the HDF5 library does not survive every damaged file.
///
/// Errors   IoError: the file cannot be read, or no process started; FormatError: no HDF5 file, not
///          ISMRMRD, damaged, truncated
/// Cost     one read; memory of at most a few times the file's size
/// Source   Inati et al. 2017, doi:10.1002/mrm.26089
RawScan read_ismrmrd(const std::string& path);

/// The same file a part at a time, for scans that are larger than memory.
///
/// Errors   as read_ismrmrd; FormatError as well when the file changes between two reads
/// Cost     the constructor: memory for the readouts' headers; read(): one pass, memory of a batch
class RawScanFile {
 public:
  explicit RawScanFile(const std::string& path);

  /// Header and readouts; the arrays are undefined.
  const RawScan& contents() const { return contents_; }
  /// Receives the number of a readout, its samples, (coil, sample) row-major, and its coordinates,
  /// (sample, axis), null without any. The pointers are valid during the call only.
  using Visit = std::function<void(std::size_t readout, const std::complex<float>* samples,
                                   const float* coordinates)>;
  /// Reads these readouts, in increasing order of their numbers, at most so many bytes at a time,
  /// but at least one readout.
  void read(std::span<const std::size_t> readouts, index_t batch_bytes, const Visit& visit) const;
  /// Bytes that read() holds at a time.
  index_t reading_bytes(std::span<const std::size_t> readouts, index_t batch_bytes) const;
  /// Peak bytes of the constructor, those of contents(), which contents_bytes() gives, included.
  index_t opening_bytes() const;
  index_t contents_bytes() const;

 private:
  /// Consecutive readouts of the file that are read at a time.
  struct Batch {
    std::size_t first = 0, last = 0;
    index_t n_floats = 0;
    index_t count() const { return static_cast<index_t>(last - first + 1); }
  };
  /// From the wanted readout `next` on, as many as fit; those between them are read along.
  Batch batch_at(std::span<const std::size_t> readouts, std::size_t next,
                 index_t batch_bytes) const;

  std::string path_;
  RawScan contents_;
};

/// Writes an ISMRMRD file that the standard's own tools read.
///
/// Errors   ValueError: no readouts, samples that do not fit them, no sizes in the header;
///          OverflowError: a number above the format's range; IoError as AtomicFile, no file is
///          left behind
/// Cost     the whole file is built in memory first, so that a full disk cannot leave a part of it
void write_ismrmrd(const std::string& path, const RawScan& scan);

}  // namespace palimpsest
