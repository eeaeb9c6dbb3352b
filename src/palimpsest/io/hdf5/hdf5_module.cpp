// SPDX-License-Identifier: Apache-2.0
// HDF5 in a module of its own: the library loads it when a raw file is read
// or written, so that programs that do neither map none of HDF5's many shared objects. Layout of an
// ISMRMRD file: a group `dataset` that holds `xml`, one string, and `data`, one compound {head,
// traj, data} per readout, the last two of variable length.
#include <algorithm>

#include "palimpsest/io/hdf5/hdf5_handles.hpp"

namespace palimpsest::io_detail {

namespace {

static_assert(sizeof(FloatSequence) == sizeof(hvl_t));
static_assert(offsetof(FloatSequence, length) == offsetof(hvl_t, len));
static_assert(offsetof(FloatSequence, data) == offsetof(hvl_t, p));

// Small enough to show progress, large enough to be read in bulk.
constexpr hsize_t kBatch = 4096;

Handle counters_type() {
  using C = HeadRecord::Counters;
  const hid_t u16 = H5T_NATIVE_UINT16;
  return compound_type(sizeof(C), {{"kspace_encode_step_1", offsetof(C, kspace_encode_step_1), u16},
                                   {"kspace_encode_step_2", offsetof(C, kspace_encode_step_2), u16},
                                   {"average", offsetof(C, average), u16},
                                   {"slice", offsetof(C, slice), u16},
                                   {"contrast", offsetof(C, contrast), u16},
                                   {"phase", offsetof(C, phase), u16},
                                   {"repetition", offsetof(C, repetition), u16},
                                   {"set", offsetof(C, set), u16},
                                   {"segment", offsetof(C, segment), u16},
                                   {"user", offsetof(C, user), u16, 8}});
}

Handle head_type() {
  using R = HeadRecord;
  const hid_t u16 = H5T_NATIVE_UINT16, u32 = H5T_NATIVE_UINT32, u64 = H5T_NATIVE_UINT64;
  const hid_t f32 = H5T_NATIVE_FLOAT;
  const Handle counters = counters_type();
  return compound_type(sizeof(R),
                       {{"version", offsetof(R, version), u16},
                        {"flags", offsetof(R, flags), u64},
                        {"measurement_uid", offsetof(R, measurement_uid), u32},
                        {"scan_counter", offsetof(R, scan_counter), u32},
                        {"acquisition_time_stamp", offsetof(R, acquisition_time_stamp), u32},
                        {"physiology_time_stamp", offsetof(R, physiology_time_stamp), u32, 3},
                        {"number_of_samples", offsetof(R, number_of_samples), u16},
                        {"available_channels", offsetof(R, available_channels), u16},
                        {"active_channels", offsetof(R, active_channels), u16},
                        {"channel_mask", offsetof(R, channel_mask), u64, 16},
                        {"discard_pre", offsetof(R, discard_pre), u16},
                        {"discard_post", offsetof(R, discard_post), u16},
                        {"center_sample", offsetof(R, center_sample), u16},
                        {"encoding_space_ref", offsetof(R, encoding_space_ref), u16},
                        {"trajectory_dimensions", offsetof(R, trajectory_dimensions), u16},
                        {"sample_time_us", offsetof(R, sample_time_us), f32},
                        {"position", offsetof(R, position), f32, 3},
                        {"read_dir", offsetof(R, read_dir), f32, 3},
                        {"phase_dir", offsetof(R, phase_dir), f32, 3},
                        {"slice_dir", offsetof(R, slice_dir), f32, 3},
                        {"patient_table_position", offsetof(R, patient_table_position), f32, 3},
                        {"idx", offsetof(R, idx), counters},
                        {"user_int", offsetof(R, user_int), H5T_NATIVE_INT32, 8},
                        {"user_float", offsetof(R, user_float), f32, 8}});
}

Handle acquisition_type(bool heads_only = false) {
  using R = AcquisitionRecord;
  const Handle floats(H5Tvlen_create(H5T_NATIVE_FLOAT), H5Tclose, "no sequence type");
  const Handle head = head_type();
  if (heads_only) return compound_type(sizeof(R), {{"head", offsetof(R, head), head}});
  return compound_type(sizeof(R), {{"head", offsetof(R, head), head},
                                   {"traj", offsetof(R, trajectory), floats},
                                   {"data", offsetof(R, samples), floats}});
}

// -- reading -------------------------------------------------------------------------------------

bool is_float_sequence(hid_t compound, const char* name) {
  if (!has_member(compound, name, H5T_VLEN)) return false;
  const auto index = static_cast<unsigned>(H5Tget_member_index(compound, name));
  const Handle member(H5Tget_member_type(compound, index), H5Tclose, "no member type");
  const Handle element(H5Tget_super(member), H5Tclose, "no element type");
  return H5Tget_class(element) == H5T_FLOAT && H5Tget_size(element) == 4;
}

/// HDF5 converts the members that it finds and leaves the others unset: checks that all needed
/// members are there.
void require_acquisition_type(hid_t dataset) {
  const Handle type(H5Dget_type(dataset), H5Tclose, "no type");
  bool right = H5Tget_class(type) == H5T_COMPOUND && has_member(type, "head", H5T_COMPOUND) &&
               is_float_sequence(type, "traj") && is_float_sequence(type, "data");
  if (right) {
    const auto index = static_cast<unsigned>(H5Tget_member_index(type, "head"));
    const Handle head(H5Tget_member_type(type, index), H5Tclose, "no header type");
    for (const char* name :
         {"flags", "number_of_samples", "active_channels", "discard_pre", "discard_post",
          "center_sample", "encoding_space_ref", "trajectory_dimensions"}) {
      right = right && has_member(head, name, H5T_INTEGER);
    }
    right = right && has_member(head, "idx", H5T_COMPOUND);
    right = right && has_member(head, "sample_time_us", H5T_FLOAT);
  }
  if (!right) throw Hdf5Failure{"its readouts are not ISMRMRD acquisitions {head, traj, data}"};
}

void read_records(hid_t group, std::uint64_t file_bytes, const RawFilePart& part, hid_t transfer,
                  Arena& arena, RawFileResult& result) {
  const auto [dataset, n_all] = open_dataset(group, "data", file_bytes);
  require_acquisition_type(dataset);
  const Handle space(H5Dget_space(dataset), H5Sclose, "no extent");
  const int rank = H5Sget_simple_extent_ndims(space);
  hsize_t extents[2] = {1, 1};
  // Files of other writers may have a second axis of one element.
  if (rank < 1 || rank > 2) throw Hdf5Failure{"its readouts have more than one axis"};
  check(H5Sget_simple_extent_dims(space, extents, nullptr), "no extent");
  if (extents[0] != n_all) throw Hdf5Failure{"its readouts have more than one axis"};
  if (part.first > n_all) throw Hdf5Failure{"it has fewer readouts than before"};
  const std::uint64_t n = std::min<std::uint64_t>(part.count, n_all - part.first);
  auto* records =
      n > file_bytes
          ? nullptr
          : static_cast<AcquisitionRecord*>(arena.allocate(n * sizeof(AcquisitionRecord)));
  if (records == nullptr) throw Hdf5Failure{fmt::format("it announces {} readouts", n)};
  const Handle type = acquisition_type(part.heads_only);
  for (hsize_t first = 0; first < n; first += kBatch) {
    const hsize_t start[2] = {part.first + first, 0};
    const hsize_t count[2] = {std::min<hsize_t>(kBatch, n - first), 1};
    const Handle memory(H5Screate_simple(1, count, nullptr), H5Sclose, "no extent");
    check(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, count, nullptr), "no slab");
    check(H5Dread(dataset, type, memory, space, transfer, records + first),
          "its readouts are damaged, or hold more samples than the file has bytes");
    result.progress.fetch_add(1, std::memory_order_relaxed);
  }
  result.records_offset = arena.offset_of(records);
  result.n_records = n;
}

void parse(const std::string& path, std::uint64_t file_bytes, const RawFilePart& part, Arena& arena,
           RawFileResult& result) {
  const Handle file = open_file(path);
  require_parts(file, {"xml", "data"});
  const Handle group(H5Gopen2(file, "dataset", H5P_DEFAULT), H5Gclose, "'dataset' is not a group");
  Budget budget = {&arena, &result.progress};
  const Handle transfer(H5Pcreate(H5P_DATASET_XFER), H5Pclose, "no properties");
  check(H5Pset_vlen_mem_manager(transfer, allocate_from, &budget, free_nothing, &budget),
        "no properties");
  read_xml(group, file_bytes, transfer, arena, result.xml_offset, result.xml_length);
  read_records(group, file_bytes, part, transfer, arena, result);
}

// -- writing -------------------------------------------------------------------------------------

void write_records(hid_t group, std::span<const AcquisitionRecord> records) {
  const Handle type = acquisition_type();
  const Handle packed(H5Tcopy(type), H5Tclose, "no type");
  check(H5Tpack(packed), "no type");
  // Other tools append readouts, which takes chunks and an open end.
  const hsize_t n = records.size(), open_end = H5S_UNLIMITED;
  const hsize_t chunk = std::clamp<hsize_t>(n, 1, 256);
  const Handle space(H5Screate_simple(1, &n, &open_end), H5Sclose, "no extent");
  const Handle plist(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "no properties");
  check(H5Pset_chunk(plist, 1, &chunk), "no chunks");
  const Handle dataset(H5Dcreate2(group, "data", packed, space, H5P_DEFAULT, plist, H5P_DEFAULT),
                       H5Dclose, "no dataset");
  check(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, records.data()), "no readouts");
}

void parse_file(const std::string& path, std::uint64_t file_bytes, const RawFilePart& part,
                Arena& arena, RawFileResult& result) {
  parse_into(result, path, [&] { parse(path, file_bytes, part, arena, result); });
}

std::string build_file(const std::string& xml, std::span<const AcquisitionRecord> records,
                       const std::function<void(const void*, std::size_t)>& use_image) {
  const auto fill = [&](hid_t file) {
    const Handle group = make_group(file, "dataset");
    write_xml(group, xml);
    write_records(group, records);
  };
  return build_in_memory(fill, use_image);
}

}  // namespace

}  // namespace palimpsest::io_detail

extern "C" [[gnu::visibility(
    "default")]] const palimpsest::io_detail::Hdf5Functions palimpsest_hdf5_functions = {
    palimpsest::io_detail::parse_file, palimpsest::io_detail::build_file,
    palimpsest::io_detail::parse_images, palimpsest::io_detail::build_images};
