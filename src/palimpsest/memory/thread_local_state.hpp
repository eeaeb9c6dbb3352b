// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "palimpsest/memory/copy_stats.hpp"

// What each thread has for itself, so that a lazy clone costs no more than its two changes of the
// block's word. Internal to Storage.
namespace palimpsest {

enum class Counter : std::size_t {
  lazy_clones,
  lazy_bytes,
  copies,
  copied_bytes,
  take_overs,
  overwrites,
  eager_copies,
  eager_copied_bytes,
  n_counters,
};

/// Adds to a counter of this thread, which all_counts() finds. One load and one store: nobody else
/// writes it.
void count(Counter counter, std::uint64_t n = 1);
/// Two at once.
void count(Counter a, std::uint64_t n, Counter b, std::uint64_t m);
/// The sum over all threads, ended ones included.
CopyCounts all_counts();

/// Room for one object of up to kPooledBytes, reused within the thread that gave it back.
inline constexpr std::size_t kPooledBytes = 64;
void* take_pooled();
void give_back_pooled(void* memory) noexcept;

}  // namespace palimpsest
