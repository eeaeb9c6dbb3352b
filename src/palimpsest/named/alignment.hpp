// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "palimpsest/named/dims.hpp"

// Alignment of a shape with another one that replaces it, for any names. Internal.

namespace palimpsest::named {

/// A token that is not an ellipsis pairs with one such token or is taken up by an ellipsis of the
/// other side. Of several alignments this is the one with most pairs of equal tokens; then the one
/// with fewest new tokens for the first old token, then for the second, and so on.
struct Alignment {
  /// Per old token: the number of new tokens, ellipses not counted, that it receives. That settles
  /// the rest: new tokens are received in order.
  std::vector<int> received;
};

/// The best alignment; empty if the structures differ.
/// Cost     O(n m) steps
std::optional<Alignment> align(const Dims& old_dims, const Dims& new_dims);

/// The pairs (old token, new token) of an alignment, in order.
std::vector<std::pair<NamedDimension, NamedDimension>> pairs(const Alignment& alignment,
                                                             const Dims& old_dims,
                                                             const Dims& new_dims);

/// The new tokens that the old ellipsis at position i matches: named tokens, and every new ellipsis
/// that may lie among them.
Dims received_at(const Alignment& alignment, const Dims& new_dims, std::size_t i);

}  // namespace palimpsest::named
