// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/parking.hpp"

#include <array>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <new>

namespace palimpsest {
namespace {

struct alignas(64) Bucket {
  std::mutex mutex;
  std::condition_variable changed;
};

constexpr std::size_t kBuckets = 64;

// Never destroyed: storages of static life time may still be written while the process ends. Not
// from the heap: waking must not fail.
Bucket& bucket_of(const void* address) {
  using Buckets = std::array<Bucket, kBuckets>;
  alignas(Buckets) static std::byte memory[sizeof(Buckets)];
  static auto* const buckets = new (memory) Buckets;
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  // Fibonacci hashing: the high bits of the product depend on all bits of the address.
  constexpr std::uint64_t kGolden = 0x9e37'79b9'7f4a'7c15U;
  return (*buckets)[(number * kGolden) >> 58];
}

}  // namespace

void park(const std::atomic<std::uint64_t>& word, std::uint64_t seen) {
  parking::sleep_in(bucket_of(&word), word, seen);
}

void unpark(const void* address) noexcept { parking::wake_all_in(bucket_of(address)); }

}  // namespace palimpsest
