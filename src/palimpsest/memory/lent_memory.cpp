// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/lent_memory.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/immortal.hpp"

namespace palimpsest {
namespace {

struct Lent {
  Mutex mutex;
  std::vector<LentMemory*> waiting;  // guarded by mutex: those without an owner
};

Lent& lent() {
  return immortal([] { return Lent(); });
}

// The length of `waiting`, readable without the lock.
constinit std::atomic<std::size_t> n_waiting{0};

bool contains(const std::byte* start, std::size_t size, const std::byte* data, std::size_t bytes) {
  return !std::less<>{}(data, start) && !std::less<>{}(start + size, data + bytes);
}

// A lazy clone keeps the bytes as they are. Memory that others write cannot be cloned: it is shared
// itself.
Storage share_of(const Storage& owner) noexcept {
  if (owner.is_cloned_eagerly()) return owner;
  try {
    return owner.lazy_clone();
  } catch (...) {
    return owner;
  }
}

}  // namespace

LentMemory::LentMemory(const void* data, std::size_t bytes)
    : data_(static_cast<const std::byte*>(data)), bytes_(bytes) {
  const std::lock_guard guard(lent().mutex);
  lent().waiting.push_back(this);
  n_waiting.store(lent().waiting.size());
}

LentMemory::~LentMemory() {
  const std::lock_guard guard(lent().mutex);
  std::erase(lent().waiting, this);
  n_waiting.store(lent().waiting.size());
}

void LentMemory::share(const Storage& owner) noexcept {
  if (n_waiting.load() == 0 || !owner.defined()) return;
  const std::lock_guard guard(lent().mutex);
  std::erase_if(lent().waiting, [&](LentMemory* memory) {
    if (!contains(owner.data(), owner.nbytes(), memory->data_, memory->bytes_)) return false;
    memory->owner_ = share_of(owner);
    return true;
  });
  n_waiting.store(lent().waiting.size());
}

bool LentMemory::is_lent(const void* data, std::size_t bytes) noexcept {
  if (n_waiting.load() == 0) return false;
  const std::lock_guard guard(lent().mutex);
  return std::any_of(lent().waiting.begin(), lent().waiting.end(), [&](const LentMemory* memory) {
    return contains(static_cast<const std::byte*>(data), bytes, memory->data_, memory->bytes_);
  });
}

}  // namespace palimpsest
