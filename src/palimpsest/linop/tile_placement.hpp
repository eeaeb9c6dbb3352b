// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "palimpsest/linop/node.hpp"
#include "palimpsest/memory/memory_map.hpp"

namespace palimpsest {

/// Puts tiles on a device through one MemoryMap: add() all of them, copy() once, then ask for each.
///
/// Invariants
///  1. A parameter that two tiles share is one parameter in the copies.
///  2. Of a variable of which only parts are used, no more than the parts is copied.
///  3. What is on the device already stays what it is.
class TilePlacement {
 public:
  explicit TilePlacement(Device device) : device_(device), map_(/*compact=*/true) {}

  void add(const NamedLinop& tile);
  /// Errors   OutOfMemory: nothing has happened
  void copy();
  NamedLinop placed(const NamedLinop& tile) const;

 private:
  struct Moved {
    Parameter from;
    Tensor value;  // of it, in its own Storage
    Parameter to;
  };
  const Moved* find(const Parameter& p) const;

  Device device_;
  MemoryMap map_;
  std::vector<Moved> moved_;
};

}  // namespace palimpsest
