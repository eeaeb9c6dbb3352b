// SPDX-License-Identifier: Apache-2.0
// Internal: whole lines written past the caches. A line that is stored is read first; one that is
// streamed is not, provided that all its bytes are streamed one after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "palimpsest/base/dtype.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace palimpsest {

inline constexpr index_t kCacheLine = 64, kStreamUnit = 16;

inline bool on_line(const void* to) {
  return reinterpret_cast<std::uintptr_t>(to) % static_cast<std::uintptr_t>(kCacheLine) == 0;
}

/// Streams `bytes` to a place that is aligned, both multiples of kStreamUnit. An ordinary copy
/// where the processor has no such stores.
inline void stream(std::byte* to, const std::byte* from, index_t bytes) {
#if defined(__SSE2__)
  for (index_t i = 0; i < bytes; i += kStreamUnit) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
#else
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
#endif
}

/// Streams the lines that lie within a row; stores the bytes before and after them. `gap`: bytes
/// from the end of the row to the row that is read next.
inline void stream_row(std::byte* to, const std::byte* from, index_t bytes, index_t gap) {
  constexpr index_t kAhead = 2048;
  const auto misplaced = static_cast<index_t>(reinterpret_cast<std::uintptr_t>(to) % kCacheLine);
  const index_t before = std::min(bytes, (kCacheLine - misplaced) % kCacheLine);
  const index_t lines = (bytes - before) / kCacheLine * kCacheLine, after = before + lines;
  std::memcpy(to, from, static_cast<std::size_t>(before));
  for (index_t i = before; i < after; i += kCacheLine) {
    __builtin_prefetch(from + i + kAhead + (i + kAhead < bytes ? 0 : gap));
    stream(to + i, from + i, kCacheLine);
  }
  std::memcpy(to + after, from + after, static_cast<std::size_t>(bytes - after));
}

/// Orders all streamed stores before later stores of this thread. Call it at the end of each task.
inline void finish_streams() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace palimpsest
