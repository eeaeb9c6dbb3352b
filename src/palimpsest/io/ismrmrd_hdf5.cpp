// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/ismrmrd_hdf5.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <mutex>

#include "palimpsest/base/error.hpp"
#include "palimpsest/io/isolated_parse.hpp"

namespace palimpsest::io_detail {
namespace {

struct Module {
  const Hdf5Functions* functions = nullptr;
  std::string problem;
};

// It stays loaded: HDF5 has exit handlers.
void* open_module(const std::string& path) {
  return ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

// Beside the library, by its full path: a sanitizer that stands between the caller and dlopen()
// hides the run path. Programs that contain the library's objects find it as they find shared
// objects.
Module load_module() {
  const std::string name = "libpalimpsest_hdf5.so";
  Dl_info self{};
  void* module = nullptr;
  if (::dladdr(reinterpret_cast<const void*>(&load_module), &self) != 0 && self.dli_fname) {
    const std::string path = self.dli_fname;
    module = open_module(path.substr(0, path.rfind('/') + 1) + name);
  }
  if (!module) module = open_module(name);
  const void* const found = module ? ::dlsym(module, "palimpsest_hdf5_functions") : nullptr;
  if (found) return {static_cast<const Hdf5Functions*>(found), {}};
  const char* const reason = ::dlerror();
  return {nullptr, fmt::format("the HDF5 module cannot be loaded ({})", reason ? reason : "")};
}

// Hands the functions of the module on, or the reason why there is none.
template <class Result, class F>
void use_module(Result& result, F use) {
  const Module module = load_module();
  if (module.functions) return use(*module.functions);
  module.problem.copy(result.error, sizeof(result.error) - 1);
  result.lacks_module = true;
}

}  // namespace

void parse_raw_file(const std::string& path, std::uint64_t file_bytes, const RawFilePart& part,
                    Arena& arena, RawFileResult& result) {
  use_module(result, [&](const Hdf5Functions& module) {
    module.parse(path, file_bytes, part, arena, result);
  });
}

void parse_image_file(const std::string& path, std::uint64_t file_bytes, const std::string& series,
                      Arena& arena, ImageFileResult& result) {
  use_module(result, [&](const Hdf5Functions& module) {
    module.parse_images(path, file_bytes, series, arena, result);
  });
}

std::string build_image_file(const ImageFileParts& parts,
                             const std::function<void(const void*, std::size_t)>& use_image) {
  const Module module = load_module();
  return module.functions ? module.functions->build_images(parts, use_image) : module.problem;
}

void check_hdf5_signature(const InputFile& file) {
  constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
  char start[8] = {};
  file.read_at(0, start, std::min<index_t>(file.size(), 8));
  if (std::string_view(start, 8) != kSignature) {
    fail_format(file.path(), "is not an HDF5 file: it lacks the signature.");
  }
}

void fail_parsing(const std::string& path, ChildEnd end, int open_error, bool lacks_module,
                  bool is_other, std::string problem) {
  if (open_error != 0) fail_io(path, "cannot be read", open_error);
  if (lacks_module) throw IoError(fmt::format("[{}] cannot be read: {}", path, problem));
  if (end == ChildEnd::finished && is_other) fail_format(path, problem);
  if (end == ChildEnd::stalled) problem = "the HDF5 library does not come to an end with it";
  if (problem.empty()) problem = "the HDF5 library does not survive it";
  fail_format(path, fmt::format("is damaged or no ISMRMRD file: {}. Try to copy it again from "
                                "where it was made.",
                                problem));
}

CallLock& hdf5_lock() {
  static constinit CallLock lock;
  return lock;
}

void check_hdf5_is_whole() {
  if (!hdf5_lock().is_torn()) return;
  throw StateError(
      "[ISMRMRD] another thread was writing such a file when this process was forked: the "
      "HDF5 library cannot be used here. Try to fork while no thread writes one");
}

void build_raw_file(const std::string& path, const std::string& xml,
                    std::span<const AcquisitionRecord> records,
                    const std::function<void(const void*, std::size_t)>& use_image) {
  const std::lock_guard lock(hdf5_lock());
  check_hdf5_is_whole();
  const Module module = load_module();
  const std::string problem =
      module.functions ? module.functions->build(xml, records, use_image) : module.problem;
  if (problem.empty()) return;
  throw IoError(fmt::format("[{}] cannot be built in memory: {}.", path, problem));
}

}  // namespace palimpsest::io_detail
