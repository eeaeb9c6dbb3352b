// SPDX-License-Identifier: Apache-2.0
// Internal: values that are computed where a later step would copy them to.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "palimpsest/plan/plan.hpp"
#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Switch of the planner's placement of joins. It is in the list of rewrites so that a mode can
/// leave it out by its name or tags; it rewrites nothing.
inline Rewrite place_joins() {
  return {"place_joins",
          60,
          {"inplace", "fast_run"},
          nullptr,
          "inputs of joins are computed in their slice of the result"};
}

/// Use of memory by a step; `part` is -1 for all of the buffer.
struct BufferUse {
  int buffer = 0;
  int part = -1;
  bool writes = false;
};
/// Each part of a buffer once, scratch and the conditions of guards included.
std::vector<BufferUse> uses_of(const Plan& plan, const PlannedStep& step);

/// A new value that belongs into a bigger one: an input of a join, or the new part of an array that
/// was made for a set.
struct PartPlace {
  Apply node;             // the join or the set
  std::size_t input = 0;  // of the node
  Variable whole;         // the value that the bigger buffer is made for
  Layout whole_layout;    // of that, and of the node's result, in a buffer of its own
  Layout part, value;     // of the new value and of the input, in a buffer of their own
  index_t start = 0;      // of the input, see starts_of()
};
/// By the variable of the new value.
using PartPlaces = std::unordered_map<const VariableNode*, PartPlace>;

/// The positions, along the axis of a join, at which its inputs start; zeros for a set in place;
/// empty for other nodes. `extents`: those of the inputs.
std::vector<index_t> starts_of(const Apply& node, std::span<const Extents> extents);

/// Layout of input `input`, of these extents and from this start, in the result of a join or a set.
/// Nothing for other nodes, and where the input broadcasts.
std::optional<Layout> slice_for(const Apply& node, std::size_t input, const Layout& result,
                                const Extents& extents, index_t start);

/// Layout of the new value of a place that makes the input that slice; nothing if no strides can
/// express it.
std::optional<Layout> layout_in(const PartPlace& place, const Layout& slice);

/// True if two indices may show one element. Never false when they do.
bool may_overlap_itself(const Layout& layout);

/// True if two layouts of one array name the same bytes for each element.
bool are_same_bytes(const Layout& a, const Layout& b);

/// A plan with its steps in the graph's order, before anything is placed in the arena.
struct LaidOut {
  const Plan& plan;
  std::span<const Variable> makers;  // per buffer: the variable that it was made for, or undefined
  const std::vector<bool>& is_kept;  // per buffer: true if it is read after the last step
  std::span<const Apply> order;      // of the graph's nodes
  bool keeps_bits = false;           // see PlanRequest
};

/// The values that may be computed in the slice where a join or a set wants them: values with a
/// buffer of their own, which no step overwrites afterwards and no step reads longer than the
/// result lasts. For a set, the slice must not be read or written before it.
PartPlaces find_part_places(const LaidOut& laid_out);

}  // namespace palimpsest
