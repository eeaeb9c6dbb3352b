// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>
#include <span>

#include "palimpsest/graph/op.hpp"

namespace palimpsest::ops {

/// An op for which a library keeps memory of its own from one run to the next, besides the inputs
/// and scratch of the op. No plan can place it, but its size is known.
class HasLibraryMemory {
 public:
  virtual ~HasLibraryMemory() = default;
  /// Prepares runs with these layouts, and returns the bytes held for them.
  virtual std::size_t library_bytes(const Apply&, std::span<const Layout> inputs,
                                    std::span<const Layout> outputs) const = 0;
};

}  // namespace palimpsest::ops
