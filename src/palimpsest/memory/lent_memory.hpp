// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "palimpsest/base/api.hpp"
#include "palimpsest/memory/storage.hpp"

namespace PALIMPSEST_API palimpsest {

/// Memory of a failed step that is still shown outside of the library, for example by an array of
/// another language in a frame of the exception. The bytes stay readable while this object lives,
/// even after their owner has gone.
///
/// Aliases  the owner goes on in other memory, so the bytes stay unchanged. Memory that others may
///          write, such as an argument's, shows their writes. Steps of the failed call that still
///          run may overwrite the bytes.
/// Threads  one thread per object; share() may be called concurrently
class LentMemory {
 public:
  LentMemory(const void* data, std::size_t bytes);
  ~LentMemory();
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;

  /// Offers an owner of memory to all objects whose bytes lie in it and that have no owner yet.
  /// Owners that lend memory to steps call it when a step has thrown, before the memory is freed or
  /// used again.
  ///
  /// Cost     one load if nothing is lent
  static void share(const Storage& owner) noexcept;
  /// True if an object with bytes in this range waits for an owner.
  static bool is_lent(const void* data, std::size_t bytes) noexcept;

 private:
  const std::byte* data_;
  std::size_t bytes_;
  Storage owner_;
};

}  // namespace palimpsest
