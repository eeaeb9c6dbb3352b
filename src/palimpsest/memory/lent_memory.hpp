// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "palimpsest/base/api.hpp"
#include "palimpsest/memory/storage.hpp"

namespace PALIMPSEST_API palimpsest {

/// Memory of a step of a call that somebody outside of the library still shows when the step has
/// failed: an array of another language that a frame of the exception refers to. While this object
/// lives the bytes stay readable, whatever becomes of their owner.
///
/// Aliases  the owner goes on in other memory, so the bytes stay as they are; those that others may
///          write anyway, such as an argument's, show what these write. Steps of the failed call
///          that still run may overwrite them.
/// Threads  one thread per object; share() may be called concurrently
class LentMemory {
 public:
  LentMemory(const void* data, std::size_t bytes);
  ~LentMemory();
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;

  /// Offers an owner of memory to all objects whose bytes lie in it and that have none yet. For
  /// those that let steps use their memory, when a step has thrown and before the memory is freed
  /// or used again.
  ///
  /// Cost     one load where nothing is lent
  static void share(const Storage& owner) noexcept;
  /// Does any object with bytes in this range wait for an owner?
  static bool is_lent(const void* data, std::size_t bytes) noexcept;

 private:
  const std::byte* data_;
  std::size_t bytes_;
  Storage owner_;
};

}  // namespace palimpsest
