// SPDX-License-Identifier: Apache-2.0
// Internal: common parts of the sources of the HDF5 module; the one file that includes HDF5.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <hdf5.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "palimpsest/io/ismrmrd_hdf5.hpp"

namespace palimpsest::io_detail {

// Deflate cannot shrink more than this.
inline constexpr std::uint64_t kLargestRatio = 1032;
inline constexpr std::uint64_t kLongestXml = std::uint64_t{16} << 20;

/// Thrown and caught in the module.
struct Hdf5Failure {
  std::string what;
  /// The file is whole, and of another kind: `what` says all about it.
  bool is_other = false;
};

inline herr_t note_first_description(unsigned n, const H5E_error2_t* entry, void* text) {
  if (n == 0 && entry->desc != nullptr) *static_cast<std::string*>(text) = entry->desc;
  return 0;
}

[[noreturn]] inline void fail(std::string_view doing) {
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

inline void check(herr_t status, std::string_view doing) {
  if (status < 0) fail(doing);
}

/// A member of the standard's header: its type in memory and how many of it, 0 for no array.
struct Member {
  const char* name;
  std::size_t offset;
  hid_t type;
  hsize_t count = 0;
};

inline Handle array_type(const Member& member) {
  if (member.count == 0) return {H5Tcopy(member.type), H5Tclose, "no type"};
  return {H5Tarray_create2(member.type, 1, &member.count), H5Tclose, "no array type"};
}

inline Handle compound_type(std::size_t size, std::initializer_list<Member> members) {
  Handle type(H5Tcreate(H5T_COMPOUND, size), H5Tclose, "no compound type");
  for (const Member& member : members) {
    check(H5Tinsert(type, member.name, member.offset, array_type(member)), "no member");
  }
  return type;
}

inline Handle variable_string_type() {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose, "no string type");
  check(H5Tset_size(type, H5T_VARIABLE), "no string type");
  return type;
}

struct Budget {
  Arena* arena;
  std::atomic<std::uint64_t>* progress;
};

inline void* allocate_from(std::size_t n_bytes, void* budget) {
  auto* from = static_cast<Budget*>(budget);
  from->progress->fetch_add(1, std::memory_order_relaxed);
  return from->arena->allocate(n_bytes);
}

inline void free_nothing(void*, void*) {}

/// Refuses links into other files: the caller named only this one.
inline void require_hard_link(hid_t group, const char* name) {
  H5L_info_t info = {};
  if (H5Lexists(group, name, H5P_DEFAULT) <= 0 ||
      H5Lget_info(group, name, &info, H5P_DEFAULT) < 0) {
    throw Hdf5Failure{fmt::format("it has no '{}' where ISMRMRD keeps one", name)};
  }
  if (info.type != H5L_TYPE_HARD) {
    throw Hdf5Failure{fmt::format("'{}' leads into another file", name)};
  }
}

/// Opens a dataset with all its bytes in this file. Returns it with the number of its elements.
inline std::pair<Handle, std::uint64_t> open_dataset(hid_t group, const char* name,
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

inline bool has_member(hid_t type, const char* name, H5T_class_t wanted) {
  const int index = H5Tget_member_index(type, name);
  return index >= 0 && H5Tget_member_class(type, static_cast<unsigned>(index)) == wanted;
}

inline void read_xml(hid_t group, std::uint64_t file_bytes, hid_t transfer, Arena& arena,
                     std::uint64_t& offset, std::uint64_t& length) {
  const auto [dataset, n] = open_dataset(group, "xml", file_bytes);
  const Handle type(H5Dget_type(dataset), H5Tclose, "no type");
  if (n != 1 || H5Tget_class(type) != H5T_STRING) throw Hdf5Failure{"its header is not one string"};
  const char* text = nullptr;
  if (H5Tis_variable_str(type) > 0) {
    const Handle string = variable_string_type();
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
  offset = arena.offset_of(text);
  length = ::strnlen(text, kLongestXml);
}

// The errno of opening the file; 0 if it opens. HDF5 does not tell a refusal from damage.
inline int errno_of_opening(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  ::close(descriptor);
  return 0;
}

/// Runs a parser. A failure ends up as text in its result.
template <class Result>
void parse_into(Result& result, const std::string& path, const std::function<void()>& parse) {
  try {
    result.open_error = errno_of_opening(path);
    if (result.open_error != 0) return;
    parse();
    result.complete = true;
  } catch (const Hdf5Failure& failure) {
    failure.what.copy(result.error, sizeof(result.error) - 1);
    result.is_other = failure.is_other;
  }
}

inline void write_xml(hid_t group, const std::string& xml) {
  const Handle type = variable_string_type();
  const hsize_t one = 1;
  const Handle space(H5Screate_simple(1, &one, nullptr), H5Sclose, "no extent");
  const Handle dataset(H5Dcreate2(group, "xml", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                       H5Dclose, "no dataset");
  const char* text = xml.c_str();
  check(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &text), "no header");
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

/// A file for reading, with nothing that would load or lock anything.
inline Handle open_file(const std::string& path) {
  check(H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr), "HDF5 does not start");
  // A file may name a filter that HDF5 would load from a shared library.
  check(H5PLset_loading_state(0), "plugins cannot be switched off");
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "no properties");
  check(H5Pset_fclose_degree(access, H5F_CLOSE_STRONG), "no properties");
#if H5_VERSION_GE(1, 10, 7)
  // Readers need no lock, and network file systems may refuse one.
  check(H5Pset_file_locking(access, false, true), "no properties");
#endif
  return {H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), H5Fclose, "it cannot be opened as HDF5"};
}

/// Builds a file in memory: `fill` gets it, `use_image` its bytes. Returns the text of a failure.
inline std::string build_in_memory(
    const std::function<void(hid_t)>& fill,
    const std::function<void(const void*, std::size_t)>& use_image) try {
  const QuietHdf5 quiet;
  constexpr std::size_t kGrowBytes = std::size_t{4} << 20;
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "no properties");
  check(H5Pset_fapl_core(access, kGrowBytes, false), "no file in memory");
  check(H5Pset_fclose_degree(access, H5F_CLOSE_STRONG), "no properties");
  const Handle file(H5Fcreate("in-memory.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access), H5Fclose,
                    "no file in memory");
  fill(file);
  check(H5Fflush(file, H5F_SCOPE_GLOBAL), "no flush");
  // Without a buffer, this tells how many bytes the file has; the memory it lies in has more.
  const ssize_t size = H5Fget_file_image(file, nullptr, 0);
  void* image = nullptr;
  if (size < 0) fail("no size");
  check(H5Fget_vfd_handle(file, access, &image), "no image");
  use_image(*static_cast<unsigned char**>(image), static_cast<std::size_t>(size));
  return {};
} catch (const Hdf5Failure& failure) {
  return failure.what;
}

inline Handle make_group(hid_t parent, const char* name) {
  return {H5Gcreate2(parent, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose, "no group"};
}

/// Failure unless the file has the group `dataset` with these parts: says what is there instead.
void require_parts(hid_t file, std::initializer_list<const char*> parts);

// -- images, in a source of their own ----------------------------------------------------------

void parse_images(const std::string& path, std::uint64_t file_bytes, const std::string& series,
                  Arena& arena, ImageFileResult& result);
std::string build_images(const ImageFileParts& parts,
                         const std::function<void(const void*, std::size_t)>& use_image);

}  // namespace palimpsest::io_detail
