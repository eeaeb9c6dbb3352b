// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "palimpsest/graph/region.hpp"

namespace palimpsest::graph_detail {

struct AliasEdge;
struct UseSlot;
struct VarInfo;

/// Index of the views of one memory, by the part that each shows.
///
/// Cost  adding one: O(log n), amortized; a question: O(log n), and either those of these numbers,
///       or, if they are fewer, those near along the axis by which most differ and those of these
///       numbers without bounds along it
class ChildrenByPlace {
 public:
  using Child = std::pair<VarInfo*, const AliasEdge*>;

  /// `rank` is that of the array whose parts they show.
  explicit ChildrenByPlace(std::size_t rank) : rank_(rank) {}
  bool empty() const { return all_.empty(); }
  /// Numbers do not decrease.
  void add(const Child& child, std::size_t number);
  /// Children of these numbers that may show part of these regions, in order.
  std::vector<Child> near(const std::vector<Region>& regions, std::size_t from = 0,
                          std::size_t to = std::numeric_limits<std::size_t>::max()) const;

 private:
  struct Added {
    Child child;
    std::size_t number;
  };
  void choose_axis();
  void place(std::size_t position);

  std::vector<Added> all_;
  // Positions in all_. The bounded ones by the first position that they show along the axis.
  std::multimap<index_t, std::size_t> bounded_;
  std::vector<std::size_t> others_;
  std::size_t rank_, axis_ = Region::kBytes, n_at_choice_ = 0;
  index_t longest_ = 0;  // from a first to a last position
};

/// The uses of a variable that has many of them, such as an array of which each part has a view.
/// Found where a walk comes by, and dropped when a use changes.
class ManyUses {
 public:
  explicit ManyUses(const VarInfo& v);
  const std::vector<UseSlot*>& readers() const { return readers_; }
  const ChildrenByPlace& children() const { return children_; }

 private:
  std::vector<UseSlot*> readers_;
  ChildrenByPlace children_;
};

/// Null if the variable has few uses.
const ManyUses* many_uses(VarInfo& v);

}  // namespace palimpsest::graph_detail
