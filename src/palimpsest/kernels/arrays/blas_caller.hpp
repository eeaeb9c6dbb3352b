// SPDX-License-Identifier: Apache-2.0
// Internal: the guard around every call of OpenBLAS.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/fork.hpp"

namespace palimpsest {

// OpenBLAS maps a buffer whenever more callers are active than ever before, and retries for ever if
// the system has no memory. So the memory is requested here first. The lock of OpenBLAS does not
// survive fork(), hence the section.
inline constexpr std::size_t kBlasBufferBytes = 32U << 22;

class BlasCaller {
 public:
  BlasCaller() {
    if (present.fetch_add(1, std::memory_order_relaxed) + 1 <= most.load()) return;
    const std::lock_guard guard(mutex);
    const int now = present.load(std::memory_order_relaxed);
    if (now <= most.load()) return;
    // One buffer per new caller, and a page that OpenBLAS adds
    const std::size_t bytes =
        static_cast<std::size_t>(now - most.load()) * (kBlasBufferBytes + 4096);
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      present.fetch_sub(1, std::memory_order_relaxed);
      throw OutOfMemory("[blas] OpenBLAS needs a buffer that the system does not give: asked " +
                        std::to_string(bytes) +
                        " bytes of address space. Try a higher limit (ulimit -v)");
    }
    munmap(memory, bytes);
    most.store(now);
  }
  ~BlasCaller() { present.fetch_sub(1, std::memory_order_relaxed); }
  BlasCaller(const BlasCaller&) = delete;
  BlasCaller& operator=(const BlasCaller&) = delete;

 private:
  const ForkSection whole_;
  static constinit std::atomic<int> present, most;
  static constinit Mutex mutex;
};
inline constinit std::atomic<int> BlasCaller::present{0}, BlasCaller::most{0};
inline constinit Mutex BlasCaller::mutex;

}  // namespace palimpsest
