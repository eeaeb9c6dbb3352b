// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

// The copy-on-write protocol on one 64-bit word per block.
//
// The word holds `refs`, the owners that refer to the block's data, and `copiers`, the owners that
// are copying it at present. One more bit marks data that may never be written or taken over
// (foreign, read-only).
//
// Invariants
// 1. copiers <= refs. The owner that brings refs to 0 frees the block.
// 2. An owner writes only after it saw refs = 1 (acquire): every other owner has left by a release,
//    so its reads and its copy are over.
// 3. To become a copier takes refs - copiers >= 2, so at least one owner is never a copier:
//    N owners that are all written make N - 1 copies and one take-over.
// 4. Only the one owner that is not a copier waits, and only for copiers, which never wait: no
//    cycle.
// 5. After its last subtraction a copier touches the block no more: the waiter may have taken it
//    over and freed it. Waking therefore goes by the address alone.
//
// An owner is a Storage. Two more words of its own count its handles (`uses`) and the promises of
// its data's address (`pins`).
//
// 6. The release of the last handle ends the owner, after all accesses through the others.
// 7. A writer raises pins, when its owner is the only one. While there are pins, the data get no
//    other owner, so they keep their address.
// 8. Accesses through a pin happen before any code that sees that the pin is gone.
//
// The templates name no concrete atomic, allocation or thread, so that a model checker can run
// these very lines.
namespace palimpsest::cow {

using Bits = std::uint64_t;

inline constexpr Bits kOneRef = 1;
inline constexpr Bits kOneCopier = Bits{1} << 32;
inline constexpr Bits kFixed = Bits{1} << 63;
/// Half of the range of a half of the word, so that concurrent increments are refused in time.
inline constexpr Bits kMaxRefs = Bits{1} << 31;

constexpr Bits refs(Bits word) { return word & 0xffff'ffffU; }
constexpr Bits copiers(Bits word) { return (word >> 32) & 0x7fff'ffffU; }
constexpr bool is_fixed(Bits word) { return (word & kFixed) != 0; }

/// Adds an owner. The caller is one itself, which keeps the block alive; false when there are too
/// many, and then nothing has changed.
template <class Word>
[[nodiscard]] bool add_ref(Word& word) {
  const Bits old = word.fetch_add(kOneRef, std::memory_order_relaxed);
  if (refs(old) < kMaxRefs) return true;
  word.fetch_sub(kOneRef, std::memory_order_relaxed);
  return false;
}

/// Takes the caller's reference away; true when it was the last one and the caller must free.
template <class Word>
[[nodiscard]] bool drop_ref(Word& word) {
  return refs(word.fetch_sub(kOneRef, std::memory_order_acq_rel)) == 1;
}

/// True if the caller, an owner, may write in place.
template <class Word>
[[nodiscard]] bool is_sole(const Word& word) {
  return word.load(std::memory_order_acquire) == kOneRef;
}

enum class Outcome { taken_over, copied };

/// Gives the caller data of its own. `Environment` provides, for the caller's part of the block:
///   void allocate()           gets memory for the copy; may throw
///   bool copy_chunk()         copies the next piece; false once there is none left; may throw
///   void discard() noexcept   gives that memory back
///   void free_old() noexcept  frees the old block
///   void wait(word, seen)     returns when the word may differ from `seen`
///   void wake(word) noexcept  ends those waits; must not touch the memory of `word`
/// On `copied` the caller's reference to the old block is gone, on `taken_over` it is the only one.
/// After an exception the caller is still an owner.
template <class Word, class Environment>
Outcome materialize(Word& word, Environment& environment) {
  Bits seen = word.load(std::memory_order_acquire);
  const bool fixed = is_fixed(seen);
  // Read-only data need no protection against a take-over while they are copied.
  while (!fixed) {
    if (refs(seen) == 1) return Outcome::taken_over;
    if (refs(seen) - copiers(seen) == 1) {
      environment.wait(word, seen);
      seen = word.load(std::memory_order_acquire);
    } else if (word.compare_exchange_weak(seen, seen + kOneCopier, std::memory_order_acquire)) {
      // The order is for the failure, after which refs = 1 may be seen. Becoming a copier needs
      // none: the caller's own reference ordered the data before its reads.
      break;
    }
  }
  try {
    environment.allocate();
    while (environment.copy_chunk()) {
      if (word.load(std::memory_order_acquire) != kOneRef + kOneCopier) continue;
      word.fetch_sub(kOneCopier, std::memory_order_relaxed);
      environment.discard();
      return Outcome::taken_over;
    }
  } catch (...) {
    environment.discard();
    if (!fixed) {
      const Bits old = word.fetch_sub(kOneCopier, std::memory_order_relaxed);
      if (refs(old) - copiers(old) == 1) environment.wake(&word);
    }
    throw;
  }
  const Bits leaving = fixed ? kOneRef : kOneRef + kOneCopier;
  const Bits left = word.fetch_sub(leaving, std::memory_order_acq_rel) - leaving;
  if (refs(left) == 0) {
    environment.free_old();
  } else if (left == kOneRef) {
    environment.wake(&word);
  }
  return Outcome::copied;
}

/// For a writer that overwrites everything: like materialize, but copies nothing and never waits.
template <class Word, class Environment>
Outcome replace(Word& word, Environment& environment) {
  if (is_sole(word)) return Outcome::taken_over;
  environment.allocate();
  const Bits old = word.fetch_sub(kOneRef, std::memory_order_acq_rel);
  if (refs(old) == 1) environment.free_old();
  return Outcome::copied;
}

/// Adds a handle; the caller has one itself.
template <class Word>
void add_use(Word& uses) {
  uses.fetch_add(1, std::memory_order_relaxed);
}

/// Takes the caller's handle away; true when it was the last one and the caller must end the owner.
template <class Word>
[[nodiscard]] bool drop_use(Word& uses) {
  // The only handle: no other can be made meanwhile. Saves an atomic subtraction.
  if (uses.load(std::memory_order_acquire) == 1) return true;
  return uses.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

/// Promises the address. The caller has just written, or might have: see materialize.
template <class Word>
void raise_pin(Word& pins) {
  pins.fetch_add(1, std::memory_order_relaxed);
}

/// For readers: one more promise where there is one already, else false.
template <class Word>
[[nodiscard]] bool join_pin(Word& pins) {
  auto seen = pins.load(std::memory_order_relaxed);
  while (seen != 0) {
    if (pins.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

/// Ends a promise.
template <class Word>
void lower_pin(Word& pins) {
  pins.fetch_sub(1, std::memory_order_release);
}

/// True if a clone must copy at once.
template <class Word>
[[nodiscard]] bool is_pinned(const Word& pins) {
  return pins.load(std::memory_order_acquire) != 0;
}

}  // namespace palimpsest::cow
