// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "palimpsest/graph/region.hpp"

namespace palimpsest::graph_detail {

struct AliasEdge;
struct UseSlot;
struct VarInfo;

/// The uses of a variable that has many of them, such as an array of which each part has a view.
/// Found where a walk comes by, and dropped when a use changes.
///
/// Cost  making it: O(n log n) for n uses; a question: O(log n), those found, and those whose
///       region has no bounds along the axis by which the others differ most
class ManyUses {
 public:
  using Child = std::pair<VarInfo*, const AliasEdge*>;

  explicit ManyUses(const VarInfo& v);
  const std::vector<UseSlot*>& readers() const { return readers_; }
  /// The variables that may show part of these regions of the variable, in the order of the uses.
  std::vector<Child> children_near(const std::vector<Region>& regions) const;

 private:
  struct Place {
    index_t first, last;  // along the axis
    std::size_t number;   // in the order of the uses
    Child child;
  };
  std::vector<UseSlot*> readers_;
  std::vector<Place> bounded_, others_;  // the bounded ones by their first positions
  std::size_t axis_;
  index_t longest_ = 0;  // from a first to a last position
};

/// Null if the variable has few uses.
const ManyUses* many_uses(VarInfo& v);

}  // namespace palimpsest::graph_detail
