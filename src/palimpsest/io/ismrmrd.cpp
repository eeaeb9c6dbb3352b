// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/ismrmrd.hpp"

#include <limits>
#include <new>

#include "palimpsest/io/ismrmrd_hdf5.hpp"
#include "palimpsest/io/ismrmrd_header.hpp"
#include "palimpsest/io/isolated_parse.hpp"
#include "palimpsest/io/prelude.hpp"

namespace palimpsest {

namespace {

using io_detail::AcquisitionRecord;
using io_detail::fail_format;
using io_detail::FloatSequence;
using io_detail::HeadRecord;
using io_detail::RawFileResult;

std::uint64_t bit_of(ReadoutFlag flag) { return std::uint64_t{1} << (static_cast<int>(flag) - 1); }

/// The result of a file's parser in the shared memory. All offsets are checked against that
/// memory's bounds.
class ParsedFile {
 public:
  ParsedFile(const std::string& path, const io_detail::SharedMemory& memory)
      : path_(path),
        memory_(memory),
        result_(*std::launder(reinterpret_cast<const RawFileResult*>(memory.data()))) {}

  std::string xml() const {
    const auto* text = piece(result_.xml_offset, result_.xml_length);
    return {reinterpret_cast<const char*>(text), static_cast<std::size_t>(result_.xml_length)};
  }

  std::uint64_t n_records() const { return result_.n_records; }

  AcquisitionRecord record(std::uint64_t i) const {
    constexpr std::uint64_t kSize = sizeof(AcquisitionRecord);
    if (i >= memory_.size() / kSize) damaged();
    AcquisitionRecord record;
    std::memcpy(&record, piece(result_.records_offset, (i + 1) * kSize) + i * kSize, kSize);
    return record;
  }

  /// The floats of a sequence, which must be as many as its readout says.
  const unsigned char* floats(const FloatSequence& sequence, index_t expected,
                              std::uint64_t readout) const {
    if (sequence.length != static_cast<std::uint64_t>(expected)) {
      fail_format(path_, fmt::format("holds {} numbers for readout {}, its header says {}.",
                                     sequence.length, readout, expected));
    }
    if (expected == 0) return memory_.data();
    const auto offset = reinterpret_cast<std::uintptr_t>(sequence.data) -
                        reinterpret_cast<std::uintptr_t>(memory_.data());
    return piece(offset, sequence.length * sizeof(float));
  }

 private:
  [[noreturn]] void damaged() const { fail_format(path_, "is damaged: its parts do not fit."); }

  const unsigned char* piece(std::uint64_t offset, std::uint64_t n_bytes) const {
    if (offset > memory_.size() || n_bytes > memory_.size() - offset) damaged();
    return memory_.data() + offset;
  }

  const std::string& path_;
  const io_detail::SharedMemory& memory_;
  const RawFileResult& result_;
};

/// Parses the file in a child process, which may crash.
void parse_isolated(const io_detail::InputFile& file, io_detail::SharedMemory& memory,
                    const io_detail::RawFilePart& part = {}) {
  io_detail::parse_in_child<RawFileResult>(
      file, memory, [&](io_detail::Arena& arena, RawFileResult& result) {
        io_detail::parse_raw_file(file.path(), static_cast<std::uint64_t>(file.size()), part, arena,
                                  result);
        // Offsets count from the start of all shared memory.
        result.xml_offset += io_detail::kResultBytes;
        result.records_offset += io_detail::kResultBytes;
      });
}

Readout readout_of(const HeadRecord& head) {
  Readout readout;
  readout.flags = head.flags;
  readout.n_samples = head.number_of_samples;
  readout.n_coils = head.active_channels;
  readout.center_sample = head.center_sample;
  readout.discard_pre = head.discard_pre;
  readout.discard_post = head.discard_post;
  readout.step_1 = head.idx.kspace_encode_step_1;
  readout.step_2 = head.idx.kspace_encode_step_2;
  readout.average = head.idx.average;
  readout.slice = head.idx.slice;
  readout.contrast = head.idx.contrast;
  readout.phase = head.idx.phase;
  readout.repetition = head.idx.repetition;
  readout.set = head.idx.set;
  readout.segment = head.idx.segment;
  readout.encoding_space = head.encoding_space_ref;
  readout.sample_time_us = static_cast<double>(head.sample_time_us);
  readout.n_trajectory_axes = head.trajectory_dimensions;
  readout.time_stamp = head.acquisition_time_stamp;
  std::copy_n(head.physiology_time_stamp, 3, readout.physiology_time_stamp.begin());
  std::copy_n(head.position, 3, readout.position.begin());
  std::copy_n(head.patient_table_position, 3, readout.table_position.begin());
  std::copy_n(head.read_dir, 3, readout.read_direction.begin());
  std::copy_n(head.phase_dir, 3, readout.phase_direction.begin());
  std::copy_n(head.slice_dir, 3, readout.slice_direction.begin());
  return readout;
}

index_t n_values(const Readout& readout) { return readout.n_coils * readout.n_samples; }

index_t n_coordinates(const Readout& readout) {
  return readout.n_samples * readout.n_trajectory_axes;
}

/// Gives every readout its place in the two arrays; the lengths of these.
std::pair<index_t, index_t> place_readouts(std::vector<Readout>& readouts) {
  index_t n_all = 0, n_all_coordinates = 0;
  for (Readout& readout : readouts) {
    readout.first_sample = n_all;
    readout.first_coordinate = n_all_coordinates;
    n_all += n_values(readout);
    n_all_coordinates += n_coordinates(readout);
  }
  return {n_all, n_all_coordinates};
}

constexpr auto kSampleBytes = static_cast<index_t>(sizeof(std::complex<float>));

/// Header and readouts, each with its place in the two arrays; the lengths of these.
std::pair<index_t, index_t> take_contents(const ParsedFile& parsed, index_t file_bytes,
                                          const std::string& path, RawScan& scan) {
  scan.header = io_detail::parse_ismrmrd_header(path, parsed.xml());
  scan.readouts.reserve(parsed.n_records());
  for (std::uint64_t i = 0; i < parsed.n_records(); ++i) {
    scan.readouts.push_back(readout_of(parsed.record(i).head));
  }
  if (scan.header.n_coils == 0) {
    for (const Readout& readout : scan.readouts) {
      scan.header.n_coils = std::max(scan.header.n_coils, readout.n_coils);
    }
  }
  const auto [n_all, n_all_coordinates] = place_readouts(scan.readouts);
  if (n_all > file_bytes / kSampleBytes || n_all_coordinates > file_bytes / 4) {
    fail_format(path, fmt::format("announces {} samples and {} coordinates, more than its {} bytes "
                                  "can hold.",
                                  n_all, n_all_coordinates, file_bytes));
  }
  return {n_all, n_all_coordinates};
}

void gather(const ParsedFile& parsed, index_t file_bytes, const std::string& path, RawScan& scan) {
  const auto [n_all, n_all_coordinates] = take_contents(parsed, file_bytes, path, scan);
  scan.samples = Tensor::empty({n_all}, DType::complex64);
  if (n_all_coordinates > 0) scan.trajectory = Tensor::empty({n_all_coordinates}, DType::float32);
  auto* samples = n_all > 0 ? static_cast<char*>(scan.samples.raw_overwrite_data()) : nullptr;
  auto* coordinates =
      n_all_coordinates > 0 ? static_cast<char*>(scan.trajectory.raw_overwrite_data()) : nullptr;
  for (std::uint64_t i = 0; i < parsed.n_records(); ++i) {
    const AcquisitionRecord record = parsed.record(i);
    const Readout& readout = scan.readouts[i];
    const index_t n = n_values(readout), n_axes = n_coordinates(readout);
    const auto* from = parsed.floats(record.samples, 2 * n, i);
    if (n > 0) {
      std::memcpy(samples + readout.first_sample * kSampleBytes, from,
                  static_cast<std::size_t>(n * kSampleBytes));
    }
    if (n_axes > 0) {
      std::memcpy(coordinates + readout.first_coordinate * 4,
                  parsed.floats(record.trajectory, n_axes, i),
                  static_cast<std::size_t>(n_axes * 4));
    }
  }
}

void check_space(const EncodingSpace& space, std::string_view name) {
  for (std::size_t i = 0; i < 3; ++i) {
    const double fov = space.field_of_view_mm[i];
    const bool fits = space.matrix[i] >= 1 && space.matrix[i] <= 65535 && fov >= 0 && fov <= 1e9;
    if (fits) continue;
    throw ValueError(fmt::format(
        "[write_ismrmrd] header.{} has {} points over {} mm along axis {}, expected 1 to "
        "65535 over 0 to 1e9.",
        name, space.matrix[i], fov, i));
  }
}

std::uint16_t narrow(index_t value, std::string_view name, std::size_t readout) {
  if (value < 0 || value > std::numeric_limits<std::uint16_t>::max()) {
    throw OverflowError(fmt::format("[write_ismrmrd] readout {} has {} {}, expected 0 to 65535.",
                                    readout, name, value));
  }
  return static_cast<std::uint16_t>(value);
}

HeadRecord head_of(const Readout& readout, std::size_t i) {
  HeadRecord head;
  head.flags = readout.flags;
  head.scan_counter = static_cast<std::uint32_t>(i);
  head.number_of_samples = narrow(readout.n_samples, "n_samples", i);
  head.active_channels = narrow(readout.n_coils, "n_coils", i);
  head.available_channels = head.active_channels;
  head.center_sample = narrow(readout.center_sample, "center_sample", i);
  head.discard_pre = narrow(readout.discard_pre, "discard_pre", i);
  head.discard_post = narrow(readout.discard_post, "discard_post", i);
  head.idx.kspace_encode_step_1 = narrow(readout.step_1, "step_1", i);
  head.idx.kspace_encode_step_2 = narrow(readout.step_2, "step_2", i);
  head.idx.average = narrow(readout.average, "average", i);
  head.idx.slice = narrow(readout.slice, "slice", i);
  head.idx.contrast = narrow(readout.contrast, "contrast", i);
  head.idx.phase = narrow(readout.phase, "phase", i);
  head.idx.repetition = narrow(readout.repetition, "repetition", i);
  head.idx.set = narrow(readout.set, "set", i);
  head.idx.segment = narrow(readout.segment, "segment", i);
  head.encoding_space_ref = narrow(readout.encoding_space, "encoding_space", i);
  head.sample_time_us = static_cast<float>(readout.sample_time_us);
  head.trajectory_dimensions = narrow(readout.n_trajectory_axes, "n_trajectory_axes", i);
  if (readout.time_stamp < 0 || readout.time_stamp > std::numeric_limits<std::uint32_t>::max()) {
    throw OverflowError(
        fmt::format("[write_ismrmrd] readout {} has time_stamp {}, expected 0 to 4294967295.", i,
                    readout.time_stamp));
  }
  head.acquisition_time_stamp = static_cast<std::uint32_t>(readout.time_stamp);
  std::copy_n(readout.physiology_time_stamp.begin(), 3, head.physiology_time_stamp);
  std::copy_n(readout.position.begin(), 3, head.position);
  std::copy_n(readout.table_position.begin(), 3, head.patient_table_position);
  std::copy_n(readout.read_direction.begin(), 3, head.read_dir);
  std::copy_n(readout.phase_direction.begin(), 3, head.phase_dir);
  std::copy_n(readout.slice_direction.begin(), 3, head.slice_dir);
  for (index_t coil = 0; coil < std::min<index_t>(readout.n_coils, 1024); ++coil) {
    head.channel_mask[coil / 64] |= std::uint64_t{1} << (coil % 64);
  }
  return head;
}

/// Address of `count` elements from `first` on; ValueError where an array does not have them.
const void* elements_at(const Tensor& array, DType dtype, index_t first, index_t count,
                        std::string_view name) {
  if (count == 0) return nullptr;
  const bool fits = array.defined() && array.dtype() == dtype && array.rank() == 1 &&
                    array.is_contiguous() && first >= 0 && first <= array.numel() - count;
  if (!fits) {
    throw ValueError(
        fmt::format("[write_ismrmrd] the array '{}' does not hold elements {} to {} "
                    "that a readout names; expected dense {} of one axis.",
                    name, first, first + count, name_of(dtype)));
  }
  return static_cast<const char*>(array.raw_data()) +
         first * static_cast<index_t>(item_size(dtype));
}

}  // namespace

double RawScanHeader::readout_oversampling() const {
  const double same = static_cast<double>(encoded.matrix[0]) / static_cast<double>(recon.matrix[0]);
  const double fov = encoded.field_of_view_mm[0], fov_recon = recon.field_of_view_mm[0];
  return fov > 0 && fov_recon > 0 ? fov / fov_recon : same;
}

bool Readout::has(ReadoutFlag flag) const { return (flags & bit_of(flag)) != 0; }

void Readout::set_flag(ReadoutFlag flag) { flags |= bit_of(flag); }

Tensor RawScan::samples_of(std::size_t readout) const {
  const Readout& r = readouts.at(readout);
  return samples.narrow(0, r.first_sample, n_values(r)).view({r.n_coils, r.n_samples});
}

RawScan read_ismrmrd(const std::string& path) {
  const io_detail::InputFile file(path);
  io_detail::check_hdf5_signature(file);
  io_detail::SharedMemory memory(io_detail::arena_bytes(file.size()));
  parse_isolated(file, memory);
  const ParsedFile parsed(file.path(), memory);
  RawScan scan;
  gather(parsed, file.size(), path, scan);
  return scan;
}

// -- a part at a time
// ------------------------------------------------------------------------------

namespace {

// Bytes that HDF5 allocates beside records and samples: the header, and the alignment of each
// sequence.
constexpr index_t kSlackBytes = index_t{1} << 20, kSlackPerReadout = 64;

// Records and samples of a part of a file, as this process reads them.
index_t part_bytes(index_t n_readouts, index_t n_floats) {
  const auto record = static_cast<index_t>(sizeof(AcquisitionRecord)) + kSlackPerReadout;
  return checked_add(checked_multiply(n_readouts, record), checked_multiply(n_floats, 4));
}

index_t n_floats(const Readout& readout) { return 2 * n_values(readout) + n_coordinates(readout); }

}  // namespace

RawScanFile::RawScanFile(const std::string& path) : path_(path) {
  const io_detail::InputFile file(path);
  io_detail::check_hdf5_signature(file);
  io_detail::SharedMemory memory(io_detail::arena_bytes(file.size()));  // headers use a part of it
  parse_isolated(file, memory, {.heads_only = true});
  take_contents(ParsedFile(file.path(), memory), file.size(), path, contents_);
}

RawScanFile::Batch RawScanFile::batch_at(std::span<const std::size_t> readouts, std::size_t next,
                                         index_t batch_bytes) const {
  Batch batch{readouts[next], readouts[next], n_floats(contents_.readouts.at(readouts[next]))};
  for (std::size_t k = next + 1; k < readouts.size(); ++k) {
    Batch more = batch;
    more.last = readouts[k];
    for (std::size_t i = batch.last + 1; i <= readouts[k]; ++i) {
      more.n_floats += n_floats(contents_.readouts.at(i));
    }
    if (part_bytes(more.count(), more.n_floats) > batch_bytes) break;
    batch = more;
  }
  return batch;
}

index_t RawScanFile::reading_bytes(std::span<const std::size_t> readouts,
                                   index_t batch_bytes) const {
  index_t most = 0;
  for (std::size_t next = 0; next < readouts.size();) {
    const Batch batch = batch_at(readouts, next, batch_bytes);
    most = std::max(most, part_bytes(batch.count(), batch.n_floats));
    while (next < readouts.size() && readouts[next] <= batch.last) ++next;
  }
  return most;
}

index_t RawScanFile::contents_bytes() const {
  return static_cast<index_t>(contents_.readouts.capacity() * sizeof(Readout));
}

index_t RawScanFile::opening_bytes() const {
  return contents_bytes() + part_bytes(static_cast<index_t>(contents_.readouts.size()), 0);
}

void RawScanFile::read(std::span<const std::size_t> readouts, index_t batch_bytes,
                       const Visit& visit) const {
  const io_detail::InputFile file(path_);
  std::size_t next = 0;
  while (next < readouts.size()) {
    const Batch batch = batch_at(readouts, next, batch_bytes);
    const std::size_t first = batch.first, last = batch.last;
    const auto count = static_cast<std::uint64_t>(batch.count());
    io_detail::SharedMemory memory(static_cast<std::size_t>(
        checked_add(part_bytes(batch.count(), batch.n_floats), kSlackBytes)));
    parse_isolated(file, memory, {.first = first, .count = count});
    const ParsedFile parsed(file.path(), memory);
    if (parsed.n_records() != count) {
      fail_format(path_, "has other readouts than before. Try again when no program writes it.");
    }
    for (; next < readouts.size() && readouts[next] <= last; ++next) {
      const std::size_t i = readouts[next];
      const AcquisitionRecord record = parsed.record(i - first);
      const index_t n = n_values(contents_.readouts[i]);
      const Readout now = readout_of(record.head);
      const index_t n_axes = n_coordinates(contents_.readouts[i]);
      if (n_values(now) != n || n_coordinates(now) != n_axes) {
        fail_format(path_, fmt::format("has another readout {} than before.", i));
      }
      const auto* values = parsed.floats(record.samples, 2 * n, i);
      const auto* places = n_axes > 0 ? parsed.floats(record.trajectory, n_axes, i) : nullptr;
      visit(i, reinterpret_cast<const std::complex<float>*>(values),
            reinterpret_cast<const float*>(places));
    }
  }
}

void write_ismrmrd(const std::string& path, const RawScan& scan) {
  if (scan.readouts.empty()) {
    throw ValueError("[write_ismrmrd] the scan has no readouts, expected at least one.");
  }
  check_space(scan.header.encoded, "encoded");
  check_space(scan.header.recon, "recon");
  std::vector<AcquisitionRecord> records(scan.readouts.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Readout& readout = scan.readouts[i];
    const index_t n = n_values(readout), n_axes = n_coordinates(readout);
    records[i].head = head_of(readout, i);
    records[i].samples = {
        static_cast<std::size_t>(2 * n),
        elements_at(scan.samples, DType::complex64, readout.first_sample, n, "samples")};
    records[i].trajectory = {static_cast<std::size_t>(n_axes),
                             elements_at(scan.trajectory, DType::float32, readout.first_coordinate,
                                         n_axes, "trajectory")};
  }
  AtomicFile file(path);
  io_detail::build_raw_file(
      path, io_detail::make_ismrmrd_header(scan.header), records,
      [&](const void* image, std::size_t n_bytes) { file.write(image, n_bytes); });
  file.commit();
}

}  // namespace palimpsest
