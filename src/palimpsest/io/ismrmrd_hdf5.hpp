// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "palimpsest/base/call_lock.hpp"

namespace palimpsest::io_detail {

/// The standard's header of a readout, member by member.
struct HeadRecord {
  std::uint16_t version = 1;
  std::uint64_t flags = 0;
  std::uint32_t measurement_uid = 0, scan_counter = 0, acquisition_time_stamp = 0;
  std::uint32_t physiology_time_stamp[3] = {};
  std::uint16_t number_of_samples = 0, available_channels = 0, active_channels = 0;
  std::uint64_t channel_mask[16] = {};
  std::uint16_t discard_pre = 0, discard_post = 0, center_sample = 0, encoding_space_ref = 0;
  std::uint16_t trajectory_dimensions = 0;
  float sample_time_us = 0;
  float position[3] = {}, read_dir[3] = {1, 0, 0}, phase_dir[3] = {0, 1, 0};
  float slice_dir[3] = {0, 0, 1}, patient_table_position[3] = {};
  struct Counters {
    std::uint16_t kspace_encode_step_1 = 0, kspace_encode_step_2 = 0, average = 0, slice = 0;
    std::uint16_t contrast = 0, phase = 0, repetition = 0, set = 0, segment = 0, user[8] = {};
  } idx;
  std::int32_t user_int[8] = {};
  float user_float[8] = {};
};

/// Floats somewhere in memory; laid out as HDF5 lays out a sequence of variable length.
struct FloatSequence {
  std::size_t length = 0;
  const void* data = nullptr;
};

struct AcquisitionRecord {
  HeadRecord head;
  FloatSequence trajectory, samples;
};

/// Result of the parser of a raw file, at the start of the arena. A hostile file may have misled
/// the parser: check every value before use.
struct RawFileResult {
  std::atomic<std::uint64_t> progress{0};
  bool complete = false;
  /// The text in `error` is about the module with HDF5, which could not be loaded.
  bool lacks_module = false;
  /// The text in `error` is about a whole HDF5 file of another kind.
  bool is_other = false;
  /// errno, if the system did not let the parser open the file.
  int open_error = 0;
  char error[600] = {};
  std::uint64_t xml_offset = 0, xml_length = 0;
  std::uint64_t records_offset = 0, n_records = 0;
};

/// Memory handed out piece by piece and never taken back: a file cannot make it larger than it is.
class Arena {
 public:
  Arena(unsigned char* data, std::size_t size) : data_(data), size_(size) {}
  /// nullptr when it is used up.
  void* allocate(std::size_t n_bytes) {
    constexpr std::size_t kAlignment = 16;
    if (n_bytes > size_ - used_) return nullptr;
    void* piece = data_ + used_;
    used_ = std::min(size_, (used_ + n_bytes + kAlignment - 1) / kAlignment * kAlignment);
    return piece;
  }
  std::uint64_t offset_of(const void* piece) const {
    return static_cast<std::uint64_t>(static_cast<const unsigned char*>(piece) - data_);
  }

 private:
  unsigned char* data_;
  std::size_t size_;
  std::size_t used_ = 0;
};

/// The part of a file to read.
struct RawFilePart {
  std::uint64_t first = 0, count = UINT64_MAX;  // readouts
  bool heads_only = false;                      // sequences are empty
};

/// Parses header text and acquisitions of an ISMRMRD file into the arena. Problems end up as text
/// in the result. Damaged files can crash the HDF5 library: to be called in a process of its own.
void parse_raw_file(const std::string& path, std::uint64_t file_bytes, const RawFilePart& part,
                    Arena& arena, RawFileResult& result);

/// Builds an ISMRMRD file in memory and hands its bytes on. IoError naming the path.
void build_raw_file(const std::string& path, const std::string& xml,
                    std::span<const AcquisitionRecord> records,
                    const std::function<void(const void*, std::size_t)>& use_image);

/// The standard's header of an image, member by member.
struct ImageHeadRecord {
  std::uint16_t version = 1, data_type = 0;
  std::uint64_t flags = 0;
  std::uint32_t measurement_uid = 0;
  std::uint16_t matrix_size[3] = {};
  float field_of_view[3] = {};
  std::uint16_t channels = 0;
  float position[3] = {}, read_dir[3] = {1, 0, 0}, phase_dir[3] = {0, 1, 0};
  float slice_dir[3] = {0, 0, 1}, patient_table_position[3] = {};
  std::uint16_t average = 0, slice = 0, contrast = 0, phase = 0, repetition = 0, set = 0;
  std::uint32_t acquisition_time_stamp = 0, physiology_time_stamp[3] = {};
  std::uint16_t image_type = 0, image_index = 0, image_series_index = 0;
  std::int32_t user_int[8] = {};
  float user_float[8] = {};
  std::uint32_t attribute_string_len = 0;
};

/// Elements of images; the numbers are the standard's.
inline constexpr int kImageTypes = 8;

/// Result of the parser of an image file; see RawFileResult.
struct ImageFileResult {
  std::atomic<std::uint64_t> progress{0};
  bool complete = false, lacks_module = false, is_other = false, has_scan = false;
  int open_error = 0;
  char error[600] = {};
  /// Texts: the header, empty if there is none; names of all series, each ended by a line feed; the
  /// attributes of all images, each ended by a zero.
  std::uint64_t xml_offset = 0, xml_length = 0, names_offset = 0, names_length = 0;
  std::uint64_t attributes_offset = 0, attributes_length = 0;
  std::uint64_t heads_offset = 0, data_offset = 0;
  /// Images, channels, z, y, x.
  std::uint64_t extents[5] = {};
  int data_type = 0;
};

/// Parts of an image file: one series.
struct ImageFileParts {
  const std::string& xml;
  const std::string& series;
  std::span<const ImageHeadRecord> heads;
  std::span<const std::string> attributes;
  const void* data = nullptr;
  int data_type = 0;
  std::uint64_t extents[5] = {};
};

/// Like parse_raw_file() in a process of its own. Without a name the first series is parsed, if
/// there is one.
void parse_image_file(const std::string& path, std::uint64_t file_bytes, const std::string& series,
                      Arena& arena, ImageFileResult& result);
/// Builds a file in memory and hands its bytes on. Returns the text of the error, empty on success.
std::string build_image_file(const ImageFileParts& parts,
                             const std::function<void(const void*, std::size_t)>& use_image);

/// The functions of the module libpalimpsest_hdf5.so, exported as `palimpsest_hdf5_functions`.
struct Hdf5Functions {
  void (*parse)(const std::string& path, std::uint64_t file_bytes, const RawFilePart& part,
                Arena& arena, RawFileResult& result);
  /// Returns the text of the error, empty on success.
  std::string (*build)(const std::string& xml, std::span<const AcquisitionRecord> records,
                       const std::function<void(const void*, std::size_t)>& use_image);
  void (*parse_images)(const std::string& path, std::uint64_t file_bytes, const std::string& series,
                       Arena& arena, ImageFileResult& result);
  std::string (*build_images)(const ImageFileParts& parts,
                              const std::function<void(const void*, std::size_t)>& use_image);
};

/// Lock of HDF5 in this process. Exclusive for callers of HDF5; shared for threads that split off a
/// process that calls it.
CallLock& hdf5_lock();
/// StateError if a thread that this process lacks was calling HDF5 when it was forked. The caller
/// holds the lock.
void check_hdf5_is_whole();

}  // namespace palimpsest::io_detail
