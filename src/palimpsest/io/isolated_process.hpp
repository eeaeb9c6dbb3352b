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
  /// The child is ended when its progress has stood still for so long, or while it has computed for
  /// so long: an endless loop is no slow disk.
  double stalled_s = 60;
  double looping_s = 2;
  /// Limit on private allocations, on top of the inherited memory.
  std::size_t private_bytes = std::size_t{1} << 29;
};

enum class ChildEnd { finished, crashed, stalled };

/// Runs work in a child process, where a crash, a loop or a wild allocation harms nobody, and
/// waits.
///
/// The child shares memory with the parent only through SharedMemory; it writes to no terminal,
/// leaves no core file, and runs no exit handlers. `progress` lies in shared memory and is raised
/// by work now and then.
///
/// Threads  work must take no lock that another thread of the parent could hold
/// Errors   IoError: the system starts no process
ChildEnd run_isolated(const std::function<void()>& work, const std::atomic<std::uint64_t>& progress,
                      const ChildLimits& limits = {});

}  // namespace palimpsest::io_detail
