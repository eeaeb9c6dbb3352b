// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/cache_size.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "palimpsest/base/immortal.hpp"

namespace palimpsest {
namespace {

constexpr index_t kUsualLast = index_t{32} << 20, kUsualCore = index_t{1} << 20;

std::atomic<index_t> wanted_streaming{0}, wanted_core{0};

// Without the heap, since copies may not use it; 0: unknown.
index_t size_in(const char* path) {
  char text[32] = {};
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t n = read(file, text, sizeof text - 1);
  close(file);
  char* unit = text;
  const long size = n > 0 ? std::strtol(text, &unit, 10) : 0;
  return size > 0 && *unit == 'K' ? index_t{size} << 10 : 0;
}

#define PALIMPSEST_CACHE(n) "/sys/devices/system/cpu/cpu0/cache/index" #n "/size"

// Bytes of the last cache of one core. sysconf comes last: some processors add the caches of other
// cores there.
index_t last_cache() {
  for (const char* const path : {PALIMPSEST_CACHE(3), PALIMPSEST_CACHE(2)}) {
    if (const index_t size = size_in(path)) return size;
  }
  const long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return size > 0 ? index_t{size} : kUsualLast;
}

index_t core_cache() {
  const index_t size = size_in(PALIMPSEST_CACHE(2));
  return size > 0 ? size : kUsualCore;
}

#undef PALIMPSEST_CACHE

}  // namespace

index_t streaming_bytes() {
  const index_t usual = immortal([] { return last_cache(); });
  const index_t bytes = wanted_streaming.load(std::memory_order_relaxed);
  return bytes > 0 ? bytes : usual;
}

index_t line_streaming_bytes() { return streaming_bytes() / 16; }

void set_streaming_bytes(index_t bytes) {
  wanted_streaming.store(bytes, std::memory_order_relaxed);
}

index_t core_cache_bytes() {
  const index_t usual = immortal([] { return core_cache(); });
  const index_t bytes = wanted_core.load(std::memory_order_relaxed);
  return bytes > 0 ? bytes : usual;
}

void set_core_cache_bytes(index_t bytes) { wanted_core.store(bytes, std::memory_order_relaxed); }

}  // namespace palimpsest
