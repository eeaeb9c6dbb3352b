// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/parking.hpp"

#include <pthread.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace palimpsest {
namespace {

// A condition variable of POSIX: std::condition_variable has a destructor.
class Condition {
 public:
  void wait(std::unique_lock<std::mutex>& lock) {
    pthread_cond_wait(&condition_, lock.mutex()->native_handle());
  }
  void notify_all() noexcept { pthread_cond_broadcast(&condition_); }

 private:
  pthread_cond_t condition_ = PTHREAD_COND_INITIALIZER;
};

struct alignas(64) Bucket {
  std::mutex mutex;
  Condition changed;
};

constexpr std::size_t kBuckets = 64;

// Constants that are never destroyed: storages of static life time may still be written while the
// process ends. Threads wait and wake inside a ForkSection, so a child finds the buckets free.
constinit std::array<Bucket, kBuckets> buckets{};

Bucket& bucket_of(const void* address) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  // Fibonacci hashing: the high bits of the product depend on all bits of the address.
  constexpr std::uint64_t kGolden = 0x9e37'79b9'7f4a'7c15U;
  return buckets[(number * kGolden) >> 58];
}

}  // namespace

void park(const std::atomic<std::uint64_t>& word, std::uint64_t seen) {
  parking::sleep_in(bucket_of(&word), word, seen);
}

void unpark(const void* address) noexcept { parking::wake_all_in(bucket_of(address)); }

}  // namespace palimpsest
