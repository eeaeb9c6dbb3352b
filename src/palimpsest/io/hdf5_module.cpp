// SPDX-License-Identifier: Apache-2.0
// The one file that knows HDF5, a module of its own: the library loads it when a raw file is read
// or written, so that programs that do neither map none of HDF5's many shared objects. Layout of an
// ISMRMRD file: a group `dataset` that holds `xml`, one string, and `data`, one compound {head,
// traj, data} per readout, the last two of variable length.
#include <fcntl.h>
#include <fmt/format.h>
#include <hdf5.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "palimpsest/io/ismrmrd_hdf5.hpp"

namespace palimpsest::io_detail {

namespace {

static_assert(sizeof(FloatSequence) == sizeof(hvl_t));
static_assert(offsetof(FloatSequence, length) == offsetof(hvl_t, len));
static_assert(offsetof(FloatSequence, data) == offsetof(hvl_t, p));

// Deflate cannot shrink more than this.
constexpr std::uint64_t kLargestRatio = 1032;
constexpr std::uint64_t kLongestXml = std::uint64_t{16} << 20;
// Small enough to show progress, large enough to be read in bulk.
constexpr hsize_t kBatch = 4096;

/// Thrown and caught in this file.
struct Hdf5Failure {
  std::string what;
};

herr_t note_first_description(unsigned n, const H5E_error2_t* entry, void* text) {
  if (n == 0 && entry->desc != nullptr) *static_cast<std::string*>(text) = entry->desc;
  return 0;
}

[[noreturn]] void fail(std::string_view doing) {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, note_first_description, &reason);
  throw Hdf5Failure{reason.empty() ? std::string(doing)
                                   : fmt::format("{} (HDF5: {})", doing, reason)};
}

/// An HDF5 identifier that closes itself.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t), std::string_view doing) : id_(id), close_(close) {
    if (id_ < 0) fail(doing);
  }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

void check(herr_t status, std::string_view doing) {
  if (status < 0) fail(doing);
}

/// One member of the standard's header: its type in memory and how many of it, 0 for no array.
struct Member {
  const char* name;
  std::size_t offset;
  hid_t type;
  hsize_t count = 0;
};

Handle array_type(const Member& member) {
  if (member.count == 0) return {H5Tcopy(member.type), H5Tclose, "no type"};
  return {H5Tarray_create2(member.type, 1, &member.count), H5Tclose, "no array type"};
}

Handle compound_type(std::size_t size, std::initializer_list<Member> members) {
  Handle type(H5Tcreate(H5T_COMPOUND, size), H5Tclose, "no compound type");
  for (const Member& member : members) {
    check(H5Tinsert(type, member.name, member.offset, array_type(member)), "no member");
  }
  return type;
}

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

struct Budget {
  Arena* arena;
  RawFileResult* result;
};

void* allocate_from(std::size_t n_bytes, void* budget) {
  auto* from = static_cast<Budget*>(budget);
  from->result->progress.fetch_add(1, std::memory_order_relaxed);
  return from->arena->allocate(n_bytes);
}

void free_nothing(void*, void*) {}

/// A link that leads into another file would read what the caller did not name.
void require_hard_link(hid_t group, const char* name) {
  H5L_info_t info = {};
  if (H5Lexists(group, name, H5P_DEFAULT) <= 0 ||
      H5Lget_info(group, name, &info, H5P_DEFAULT) < 0) {
    throw Hdf5Failure{fmt::format("it has no '{}' where ISMRMRD keeps one", name)};
  }
  if (info.type != H5L_TYPE_HARD) {
    throw Hdf5Failure{fmt::format("'{}' leads into another file", name)};
  }
}

/// Opens a dataset whose bytes lie in this file; the number of its elements.
std::pair<Handle, std::uint64_t> open_dataset(hid_t group, const char* name,
                                              std::uint64_t file_bytes) {
  require_hard_link(group, name);
  Handle dataset(H5Dopen2(group, name, H5P_DEFAULT), H5Dclose, "a dataset cannot be opened");
  const Handle plist(H5Dget_create_plist(dataset), H5Pclose, "no properties");
  const Handle space(H5Dget_space(dataset), H5Sclose, "no extent");
  const Handle type(H5Dget_type(dataset), H5Tclose, "no type");
  const H5D_layout_t layout = H5Pget_layout(plist);
  const bool inside =
      (layout == H5D_COMPACT || layout == H5D_CONTIGUOUS || layout == H5D_CHUNKED) &&
      H5Pget_external_count(plist) == 0;
  if (!inside) throw Hdf5Failure{fmt::format("'{}' keeps its bytes in another file", name)};
  const hssize_t n = H5Sget_simple_extent_npoints(space);
  const std::uint64_t stored = H5Dget_storage_size(dataset);
  const std::uint64_t item = H5Tget_size(type);
  const bool filtered = H5Pget_nfilters(plist) != 0;
  const std::uint64_t most = (filtered ? kLargestRatio : 1) * stored;
  if (n < 0 || stored > file_bytes || item == 0 || static_cast<std::uint64_t>(n) > most / item) {
    throw Hdf5Failure{fmt::format("'{}' announces {} elements of {} bytes, but {} bytes are stored",
                                  name, n, item, stored)};
  }
  return {std::move(dataset), static_cast<std::uint64_t>(n)};
}

bool has_member(hid_t type, const char* name, H5T_class_t wanted) {
  const int index = H5Tget_member_index(type, name);
  return index >= 0 && H5Tget_member_class(type, static_cast<unsigned>(index)) == wanted;
}

bool is_float_sequence(hid_t compound, const char* name) {
  if (!has_member(compound, name, H5T_VLEN)) return false;
  const auto index = static_cast<unsigned>(H5Tget_member_index(compound, name));
  const Handle member(H5Tget_member_type(compound, index), H5Tclose, "no member type");
  const Handle element(H5Tget_super(member), H5Tclose, "no element type");
  return H5Tget_class(element) == H5T_FLOAT && H5Tget_size(element) == 4;
}

/// HDF5 converts what it can and leaves the rest unset; what is counted on must be there.
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
  if (!right) throw Hdf5Failure{"its readouts are no ISMRMRD acquisitions {head, traj, data}"};
}

void read_xml(hid_t group, std::uint64_t file_bytes, hid_t transfer, Arena& arena,
              RawFileResult& result) {
  const auto [dataset, n] = open_dataset(group, "xml", file_bytes);
  const Handle type(H5Dget_type(dataset), H5Tclose, "no type");
  if (n != 1 || H5Tget_class(type) != H5T_STRING) throw Hdf5Failure{"its header is not one string"};
  const char* text = nullptr;
  if (H5Tis_variable_str(type) > 0) {
    const Handle string(H5Tcopy(H5T_C_S1), H5Tclose, "no string type");
    check(H5Tset_size(string, H5T_VARIABLE), "no string type");
    check(H5Tset_cset(string, H5Tget_cset(type)), "no string type");
    check(H5Dread(dataset, string, H5S_ALL, H5S_ALL, transfer, &text), "its header is damaged");
  } else {
    const std::size_t size = H5Tget_size(type);
    auto* fixed = size < kLongestXml ? static_cast<char*>(arena.allocate(size + 1)) : nullptr;
    if (fixed == nullptr) throw Hdf5Failure{"its header is too long"};
    check(H5Dread(dataset, type, H5S_ALL, H5S_ALL, transfer, fixed), "its header is damaged");
    fixed[size] = '\0';
    text = fixed;
  }
  if (text == nullptr) throw Hdf5Failure{"its header is empty"};
  result.xml_offset = arena.offset_of(text);
  result.xml_length = ::strnlen(text, kLongestXml);
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

// Why the system refuses to open the file, which HDF5 does not tell from damage; else 0.
int errno_of_opening(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  ::close(descriptor);
  return 0;
}

void parse(const std::string& path, std::uint64_t file_bytes, const RawFilePart& part, Arena& arena,
           RawFileResult& result) {
  check(H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr), "HDF5 does not start");
  // A file may name a filter that HDF5 would load from a shared library.
  check(H5PLset_loading_state(0), "plugins cannot be switched off");
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "no properties");
  check(H5Pset_fclose_degree(access, H5F_CLOSE_STRONG), "no properties");
#if H5_VERSION_GE(1, 10, 7)
  // Readers need no lock, and network file systems may refuse one.
  check(H5Pset_file_locking(access, false, true), "no properties");
#endif
  const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), H5Fclose,
                    "it cannot be opened as HDF5");
  require_hard_link(file, "dataset");
  const Handle group(H5Gopen2(file, "dataset", H5P_DEFAULT), H5Gclose, "'dataset' is no group");
  Budget budget = {&arena, &result};
  const Handle transfer(H5Pcreate(H5P_DATASET_XFER), H5Pclose, "no properties");
  check(H5Pset_vlen_mem_manager(transfer, allocate_from, &budget, free_nothing, &budget),
        "no properties");
  read_xml(group, file_bytes, transfer, arena, result);
  read_records(group, file_bytes, part, transfer, arena, result);
}

// -- writing -------------------------------------------------------------------------------------

void write_xml(hid_t group, const std::string& xml) {
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose, "no string type");
  check(H5Tset_size(type, H5T_VARIABLE), "no string type");
  const hsize_t one = 1;
  const Handle space(H5Screate_simple(1, &one, nullptr), H5Sclose, "no extent");
  const Handle dataset(H5Dcreate2(group, "xml", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                       H5Dclose, "no dataset");
  const char* text = xml.c_str();
  check(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &text), "no header");
}

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

void build(const std::string& xml, std::span<const AcquisitionRecord> records,
           const std::function<void(const void*, std::size_t)>& use_image) {
  constexpr std::size_t kGrowBytes = std::size_t{4} << 20;
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "no properties");
  check(H5Pset_fapl_core(access, kGrowBytes, false), "no file in memory");
  check(H5Pset_fclose_degree(access, H5F_CLOSE_STRONG), "no properties");
  const Handle file(H5Fcreate("in-memory.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access), H5Fclose,
                    "no file in memory");
  {
    const Handle group(H5Gcreate2(file, "dataset", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose,
                       "no group");
    write_xml(group, xml);
    write_records(group, records);
  }
  check(H5Fflush(file, H5F_SCOPE_GLOBAL), "no flush");
  // Without a buffer, this tells how many bytes the file has; the memory it lies in has more.
  const ssize_t size = H5Fget_file_image(file, nullptr, 0);
  void* image = nullptr;
  if (size < 0) fail("no size");
  check(H5Fget_vfd_handle(file, access, &image), "no image");
  use_image(*static_cast<unsigned char**>(image), static_cast<std::size_t>(size));
}

/// Switches HDF5's printing off for as long as it lives.
class QuietHdf5 {
 public:
  QuietHdf5() {
    H5Eget_auto2(H5E_DEFAULT, &printer_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  QuietHdf5(const QuietHdf5&) = delete;
  QuietHdf5& operator=(const QuietHdf5&) = delete;
  ~QuietHdf5() { H5Eset_auto2(H5E_DEFAULT, printer_, data_); }

 private:
  H5E_auto2_t printer_ = nullptr;
  void* data_ = nullptr;
};

void parse_file(const std::string& path, std::uint64_t file_bytes, const RawFilePart& part,
                Arena& arena, RawFileResult& result) {
  try {
    result.open_error = errno_of_opening(path);
    if (result.open_error != 0) return;
    parse(path, file_bytes, part, arena, result);
    result.complete = true;
  } catch (const Hdf5Failure& failure) {
    failure.what.copy(result.error, sizeof(result.error) - 1);
  }
}

std::string build_file(const std::string& xml, std::span<const AcquisitionRecord> records,
                       const std::function<void(const void*, std::size_t)>& use_image) {
  const QuietHdf5 quiet;
  try {
    build(xml, records, use_image);
  } catch (const Hdf5Failure& failure) {
    return failure.what;
  }
  return {};
}

}  // namespace

}  // namespace palimpsest::io_detail

extern "C" [[gnu::visibility(
    "default")]] const palimpsest::io_detail::Hdf5Functions palimpsest_hdf5_functions = {
    palimpsest::io_detail::parse_file, palimpsest::io_detail::build_file};
