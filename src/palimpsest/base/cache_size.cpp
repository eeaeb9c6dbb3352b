// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/cache_size.hpp"

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>

namespace palimpsest {
namespace {

constexpr index_t kUsualCache = index_t{32} << 20;

std::atomic<index_t> wanted{0};

// What one core sees. sysconf is asked last: on some processors it adds up what others have.
index_t last_cache() {
  for (const char* const level : {"3", "2"}) {
    std::ifstream file(std::string("/sys/devices/system/cpu/cpu0/cache/index") + level + "/size");
    index_t size = 0;
    char unit = 0;
    if (file >> size >> unit && size > 0 && unit == 'K') return size << 10;
  }
  const long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return size > 0 ? index_t{size} : kUsualCache;
}

}  // namespace

index_t streaming_bytes() {
  static const index_t usual = last_cache();
  const index_t bytes = wanted.load(std::memory_order_relaxed);
  return bytes > 0 ? bytes : usual;
}

void set_streaming_bytes(index_t bytes) { wanted.store(bytes, std::memory_order_relaxed); }

}  // namespace palimpsest
