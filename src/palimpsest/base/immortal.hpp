// SPDX-License-Identifier: Apache-2.0
// Internal: the one way to an object of static life time that is not a constant.
#pragma once

#include <atomic>

#include "palimpsest/base/fork.hpp"

namespace palimpsest {

/// The object that `make` returns, made at the first call from this place and never destroyed: the
/// destructors of the host's static objects and its exit handlers may come later than any of ours.
/// A child of fork() finds it made or not begun.
///
///     Registry& registry() {
///       return immortal([] { return Registry(); });
///     }
template <class Make>
auto& immortal(Make make) {
  using T = decltype(make());
  static constinit std::atomic<T*> made{nullptr};
  if (T* const found = made.load(std::memory_order_acquire)) [[likely]]
    return *found;
  const ForkSection section;
  static T* const the = new T(make());
  made.store(the, std::memory_order_release);
  return *the;
}

}  // namespace palimpsest
