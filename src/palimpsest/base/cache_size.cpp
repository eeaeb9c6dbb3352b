// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/cache_size.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "palimpsest/base/immortal.hpp"

namespace palimpsest {
namespace {

constexpr index_t kUsualCache = index_t{32} << 20;

std::atomic<index_t> wanted{0};

// What one core sees; without the heap, since copies may not use it. sysconf is asked last: on some
// processors it adds up what others have.
index_t last_cache() {
  for (const char* const path : {"/sys/devices/system/cpu/cpu0/cache/index3/size",
                                 "/sys/devices/system/cpu/cpu0/cache/index2/size"}) {
    char text[32] = {};
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    const ssize_t n = read(file, text, sizeof text - 1);
    close(file);
    char* unit = text;
    const long size = n > 0 ? std::strtol(text, &unit, 10) : 0;
    if (size > 0 && *unit == 'K') return index_t{size} << 10;
  }
  const long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return size > 0 ? index_t{size} : kUsualCache;
}

}  // namespace

index_t streaming_bytes() {
  const index_t usual = immortal([] { return last_cache(); });
  const index_t bytes = wanted.load(std::memory_order_relaxed);
  return bytes > 0 ? bytes : usual;
}

index_t line_streaming_bytes() { return streaming_bytes() / 16; }

void set_streaming_bytes(index_t bytes) { wanted.store(bytes, std::memory_order_relaxed); }

}  // namespace palimpsest
