// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <span>
#include <vector>

#include "palimpsest/graph/variable.hpp"

namespace palimpsest {
namespace ops {

/// Arrays, and sums of the squares of others.
struct Pass {
  std::vector<Variable> arrays, norms;
};

/// The same arrays and the norm2() of others, made by one elementwise step that reads `leaves`:
/// each leaf is read once, and no intermediate array is in memory.
///
/// Shapes   all of one shape; leaves that broadcast into it are read as they are
/// Cost     the elementwise ops between leaves and results are computed here, again if others read
///          them too. Separate steps for more than 40 scalars between them
Pass one_pass(const std::vector<Variable>& arrays, const std::vector<Variable>& normed,
              std::span<const Variable> leaves);

}  // namespace ops
}  // namespace palimpsest
