// SPDX-License-Identifier: Apache-2.0
// Internal: a file is parsed by a process that may die of it.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <new>
#include <shared_mutex>
#include <string>

#include "palimpsest/base/failure.hpp"
#include "palimpsest/base/shape.hpp"
#include "palimpsest/io/input_file.hpp"
#include "palimpsest/io/ismrmrd_hdf5.hpp"
#include "palimpsest/io/isolated_process.hpp"

namespace palimpsest::io_detail {

/// Bytes of shared memory for the result, at its start; the memory behind is aligned for any type.
inline constexpr std::size_t kResultBytes = 1024;

/// FormatError unless the file has the signature of HDF5.
void check_hdf5_signature(const InputFile& file);

/// Room for the records and all samples of an honest file, several times over where filters or
/// alignment make the one or the other larger than in the file.
inline std::size_t arena_bytes(index_t file_bytes) {
  constexpr index_t kBase = index_t{1} << 20;
  return static_cast<std::size_t>(checked_add(checked_multiply(file_bytes, 4), kBase));
}

/// Throws the exception for a file that could not be parsed; `problem` is the parser's text.
[[noreturn]] void fail_parsing(const std::string& path, ChildEnd end, int open_error,
                               bool lacks_module, bool is_other, std::string problem);

/// Calls `parse` in a child process, which puts its result at the beginning of the memory. Offsets
/// in the result count from the end of the result's place.
///
/// Errors   IoError, FormatError: those of the parser or the system
template <class Result>
const Result& parse_in_child(const InputFile& file, SharedMemory& memory,
                             const std::function<void(Arena&, Result&)>& parse) {
  static_assert(sizeof(Result) <= kResultBytes);
  auto* result = new (memory.data()) Result;
  const auto work = [&] {
    Arena arena(memory.data() + kResultBytes, memory.size() - kResultBytes);
    parse(arena, *result);
  };
  ChildEnd end;
  {
    const std::shared_lock lock(hdf5_lock());
    check_hdf5_is_whole();
    end = run_isolated(work, result->progress);
  }
  result->error[sizeof(result->error) - 1] = '\0';
  if (end != ChildEnd::finished || !result->complete) {
    fail_parsing(file.path(), end, result->open_error, result->lacks_module, result->is_other,
                 result->error);
  }
  return *result;
}

}  // namespace palimpsest::io_detail
