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
/// none of these is read twice, and nothing else is in memory on the way.
///
/// Shapes   all of one shape; what broadcasts into it is read as it is
/// Cost     the elementwise ops between leaves and results are computed here, again where others
///          read them too. More than 40 scalars between them: steps of their own
Pass one_pass(const std::vector<Variable>& arrays, const std::vector<Variable>& normed,
              std::span<const Variable> leaves);

}  // namespace ops
}  // namespace palimpsest
