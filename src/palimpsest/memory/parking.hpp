// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace palimpsest {

/// Sleeps until `word` differs from `seen`. A change may be noticed late but never missed, provided
/// that the thread that makes the last change calls unpark(&word) afterwards.
void park(const std::atomic<std::uint64_t>& word, std::uint64_t seen);

/// Wakes all threads that sleep on this address. The object there may be gone already.
void unpark(const void* address) noexcept;

// Steps of park() and unpark() in the bucket of an address, which has a `mutex` and a condition
// variable `changed`. Templates, so that a test can stop between any two of them.
namespace parking {

template <class Bucket, class Word>
void sleep_in(Bucket& bucket, const Word& word, std::uint64_t seen) {
  std::unique_lock lock(bucket.mutex);
  // The waker changes the word before it takes the mutex, so a change that is not seen here is
  // followed by a notification.
  while (word.load(std::memory_order_acquire) == seen) bucket.changed.wait(lock);
}

template <class Bucket>
void wake_all_in(Bucket& bucket) noexcept {
  { const std::lock_guard lock(bucket.mutex); }
  bucket.changed.notify_all();  // sleepers of other addresses are among them
}

}  // namespace parking

}  // namespace palimpsest
