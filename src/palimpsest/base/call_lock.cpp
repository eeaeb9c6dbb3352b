// SPDX-License-Identifier: Apache-2.0
// The word: in its upper half the generation of the process in which it was last changed, below the
// number of readers, and one bit each for a writer, for writers that wait, and for a writer that is
// missing. Readers come after a writer that waits, or it might wait for ever.
#include "palimpsest/base/call_lock.hpp"

#include "palimpsest/base/fork.hpp"

namespace palimpsest {
namespace {

using Word = std::uint64_t;

constexpr Word kWriter = Word{1} << 31, kTorn = Word{1} << 30, kWaiting = Word{1} << 29;
constexpr Word kReaders = kWaiting - 1;

Word present_generation() { return Word{process_generation()} << 32; }

// The word for the present generation. Holders from before fork() no longer count; a writer among
// them leaves the word torn.
Word renewed(Word word, Word generation) {
  if (word >> 32 == generation >> 32) return word;
  const bool is_torn = (word & (kWriter | kTorn)) != 0;
  return generation | (is_torn ? kTorn : 0);
}

}  // namespace

void CallLock::lock_shared() noexcept {
  const Word generation = present_generation();
  Word seen = word_.load(std::memory_order_relaxed);
  while (true) {
    const Word now = renewed(seen, generation);
    if ((now & (kWriter | kWaiting)) != 0) {
      word_.wait(seen, std::memory_order_relaxed);
      seen = word_.load(std::memory_order_relaxed);
    } else if (word_.compare_exchange_weak(seen, now + 1, std::memory_order_acquire,
                                           std::memory_order_relaxed)) {
      return;
    }
  }
}

// A lock taken before fork() and not kept by the child is released already.
void CallLock::unlock_shared() noexcept {
  const Word generation = present_generation();
  Word seen = word_.load(std::memory_order_relaxed);
  do {
    if (seen >> 32 != generation >> 32) return;
  } while (!word_.compare_exchange_weak(seen, seen - 1, std::memory_order_release,
                                        std::memory_order_relaxed));
  if ((seen & kReaders) == 1) word_.notify_all();
}

void CallLock::lock() noexcept {
  const Word generation = present_generation();
  Word seen = word_.load(std::memory_order_relaxed);
  while (true) {
    const Word now = renewed(seen, generation);
    if ((now & (kWriter | kReaders)) != 0) {
      const Word waiting = now | kWaiting;
      if (seen != waiting && !word_.compare_exchange_weak(seen, waiting, std::memory_order_relaxed))
        continue;
      word_.wait(waiting, std::memory_order_relaxed);
      seen = word_.load(std::memory_order_relaxed);
    } else if (word_.compare_exchange_weak(seen, (now & ~kWaiting) | kWriter,
                                           std::memory_order_acquire, std::memory_order_relaxed)) {
      return;
    }
  }
}

void CallLock::unlock() noexcept {
  word_.fetch_and(~kWriter, std::memory_order_release);
  word_.notify_all();
}

bool CallLock::is_torn() const noexcept {
  return (word_.load(std::memory_order_relaxed) & kTorn) != 0;
}

void CallLock::heal() noexcept { word_.fetch_and(~kTorn, std::memory_order_relaxed); }

void CallLock::keep_shared() noexcept {
  const Word torn = word_.load(std::memory_order_relaxed) & kTorn;
  word_.store(present_generation() | torn | 1, std::memory_order_relaxed);
}

void CallLock::keep() noexcept {
  const Word torn = word_.load(std::memory_order_relaxed) & kTorn;
  word_.store(present_generation() | torn | kWriter, std::memory_order_relaxed);
}

}  // namespace palimpsest
