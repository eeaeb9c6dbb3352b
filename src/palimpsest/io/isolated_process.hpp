// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace palimpsest::io_detail {

/// Memory that a child process fills for its parent. Pages exist once they are touched.
class SharedMemory {
 public:
  /// OutOfMemory where the system refuses.
  explicit SharedMemory(std::size_t n_bytes);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  unsigned char* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  unsigned char* data_ = nullptr;
  std::size_t size_ = 0;
};

struct ChildLimits {
  /// A child without progress is ended after stalled_s, or after looping_s of computing: an endless
  /// loop is not a slow disk.
  double stalled_s = 60;
  double looping_s = 2;
  /// Limit on private allocations, on top of the inherited memory.
  std::size_t private_bytes = std::size_t{1} << 29;
};

enum class ChildEnd { finished, crashed, stalled };

/// Runs work in a child process and waits. A crash, a loop or a wild allocation of work does not
/// harm the parent.
///
/// The child shares memory with the parent only through SharedMemory. It writes to no terminal,
/// leaves no core file, and runs no exit handlers. Work raises `progress`, in shared memory, now
/// and then.
///
/// Threads  work must take no lock that another thread of the parent could hold
/// Errors   IoError: the system starts no process
ChildEnd run_isolated(const std::function<void()>& work, const std::atomic<std::uint64_t>& progress,
                      const ChildLimits& limits = {});

}  // namespace palimpsest::io_detail
