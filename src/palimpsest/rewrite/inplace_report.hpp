// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/inconsistency.hpp"

namespace PALIMPSEST_API palimpsest {

/// An input that a kernel could have overwritten, and why it was not.
struct InplaceRefusal {
  std::string body;  // `Loop 0`, where the node is in the body of a loop: its number in the graph
  std::string node;  // the op of the node
  int input = 0;     // its position; -1: several at once
  std::string variable;  // the variable of the input
  /// The fault that overwriting it would have been; `none`: it is part of a bigger buffer, which
  /// the result would have kept alive.
  InconsistencyKind kind = InconsistencyKind::none;
  /// `Add{float64, float64 -> float64}: input 0 x: destroys_protected`, after `Loop 0: ` in a body.
  std::string str() const;
};

}  // namespace palimpsest
