// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/combine_rolls.hpp"

#include <algorithm>
#include <cstdlib>

#include "palimpsest/ops/shape/rearrange_op.hpp"
#include "palimpsest/rewrite/patterns.hpp"

namespace palimpsest {
namespace {

using ops::AxisRoll;
using ops::AxisRolls;

// Limit for the search among the readers of a roll, which is repeated for each of them.
constexpr std::size_t kReaders = 8;

// True if all readers are rolls. The value is not computed once they are combined with it.
bool only_rolls_read(const FunctionGraph& graph, const Variable& v) {
  return graph.use_count(v) <= kReaders && std::ranges::all_of(graph.uses(v), [](const Use& use) {
           return op_of<ops::Roll>(use.node) != nullptr;
         });
}

// Both along one axis; nothing for sums that AxisRoll cannot hold.
std::optional<AxisRoll> combined(const AxisRoll& a, const AxisRoll& b) {
  const int half = static_cast<int>(a.half) + static_cast<int>(b.half);
  AxisRoll result{.axis = a.axis, .half = static_cast<AxisRoll::Half>(half)};
  if (std::abs(half) > 1 || __builtin_add_overflow(a.shift, b.shift, &result.shift)) return {};
  return result;
}

std::optional<AxisRolls> combined(AxisRolls rolls, const AxisRolls& others) {
  for (const AxisRoll& other : others) {
    const auto at = std::ranges::lower_bound(rolls, other.axis, {}, &AxisRoll::axis);
    if (at == rolls.end() || at->axis != other.axis) {
      rolls.insert(at, other);
    } else if (const auto both = combined(*at, other)) {
      *at = *both;
    } else {
      return {};
    }
  }
  return rolls;
}

Replacements combine(const FunctionGraph& graph, const Apply& node) {
  const auto* const second = op_of<ops::Roll>(node);
  if (!second) return {};
  const Apply before = node.input(0).owner();
  const auto* const first = op_of<ops::Roll>(before);
  if (!first || !only_rolls_read(graph, node.input(0))) return {};
  const auto both = combined(first->rolls(), second->rolls());
  return both ? if_it_fits(node, ops::rolled(before.input(0), *both)) : Replacements();
}

}  // namespace

RewriteResult combine_rolls(FunctionGraph& graph, const RewriteHints&) {
  const NodeRewrite rules[] = {{"combine_rolls", combine}};
  return walk_to_fixed_point(graph, rules);
}

}  // namespace palimpsest
