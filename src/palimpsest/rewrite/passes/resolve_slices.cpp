// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/resolve_slices.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "palimpsest/ops/index/index.hpp"
#include "palimpsest/ops/index/index_op.hpp"
#include "palimpsest/ops/shape/rearrange_op.hpp"
#include "palimpsest/rewrite/patterns.hpp"
#include "palimpsest/tensor/layout.hpp"

namespace palimpsest {
namespace {

// The elements that an entry selects from an axis of n; empty for no element, or for a new axis.
std::optional<SliceRange> range_of(const Index& entry, index_t n) {
  if (std::holds_alternative<All>(entry)) return SliceRange{0, 1, n};
  if (const auto* i = std::get_if<index_t>(&entry)) return SliceRange{*i < 0 ? *i + n : *i, 1, 1};
  if (const auto* s = std::get_if<Slice>(&entry)) {
    const SliceRange range = resolve(*s, n);
    if (range.count > 0) return range;
  }
  return {};
}

// The entry that selects the same elements from a part that begins at `offset` and has `n_part`
// elements; empty if the entry also selects others.
std::optional<Index> within(const Index& entry, index_t n, index_t offset, index_t n_part) {
  const auto range = range_of(entry, n);
  if (!range) return {};
  const index_t first = range->first - offset;
  const index_t last = first + (range->count - 1) * range->step;
  if (std::min(first, last) < 0 || std::max(first, last) >= n_part) return {};
  if (std::holds_alternative<index_t>(entry)) return Index(first);
  if (range->step == 1 && range->count == n_part) return Index(All());
  if (range->step > 0) return Index(slice(first, last + 1, range->step));
  return Index(last == 0 ? slice(first, {}, range->step) : slice(first, last - 1, range->step));
}

// Position among the entries of the one about each axis.
std::vector<std::size_t> entries_of_axes(const std::vector<Index>& entries) {
  std::vector<std::size_t> result;
  for (std::size_t e = 0; e < entries.size(); ++e) {
    if (!std::holds_alternative<NewAxis>(entries[e])) result.push_back(e);
  }
  return result;
}

Replacements slice_of_pad(const FunctionGraph&, const Apply& node) {
  const auto* const subtensor = op_of<ops::Subtensor>(node);
  const auto* const pad = subtensor ? op_of<ops::Pad>(node.input(0)) : nullptr;
  if (!pad) return {};
  const Variable x = node.input(0).owner().input(0);
  std::vector<Index> entries = subtensor->index().entries();
  const std::vector<std::size_t> of_axis = entries_of_axes(entries);
  for (std::size_t k = 0; k < x.rank(); ++k) {
    if (pad->before()[k] == 0 && pad->after()[k] == 0) continue;
    const index_t n = x.type().shape[k];
    if (n == kUnknown) return {};
    const auto entry =
        within(entries[of_axis[k]], n + pad->before()[k] + pad->after()[k], pad->before()[k], n);
    if (!entry) return {};
    entries[of_axis[k]] = *entry;
  }
  return if_it_fits(node, ops::index(x, entries));
}

// Offsets of the parts of joins along their axes, each found once.
class PlacesOfParts {
 public:
  /// Ends with the end of the last part; empty if an extent of a part is unknown.
  const std::vector<index_t>& of(const Apply& join, std::size_t axis) {
    const auto [found, is_new] = known_.try_emplace(join.node(), join, std::vector<index_t>());
    std::vector<index_t>& places = found->second.second;
    if (!is_new) return places;
    index_t next = 0;
    for (const Variable& part : join.inputs()) {
      if (!part.type().is_fully_known()) {
        places.clear();
        return places;
      }
      places.push_back(next);
      next += part.type().shape[axis];
    }
    places.push_back(next);
    return places;
  }

 private:
  // The joins are kept, so that no address is used twice.
  std::unordered_map<const ApplyNode*, std::pair<Apply, std::vector<index_t>>> known_;
};

Replacements slice_of_join(PlacesOfParts& places_of_parts, const Apply& node) {
  const auto* const subtensor = op_of<ops::Subtensor>(node);
  const auto* const join = subtensor ? op_of<ops::Join>(node.input(0)) : nullptr;
  if (!join) return {};
  const Apply parts = node.input(0).owner();
  const std::vector<index_t>& places = places_of_parts.of(parts, join->axis());
  if (places.empty()) return {};
  std::vector<Index> entries = subtensor->index().entries();
  Index& entry = entries[entries_of_axes(entries)[join->axis()]];
  const index_t n = places.back();
  const auto range = range_of(entry, n);
  if (!range) return {};
  const auto next = std::upper_bound(places.begin(), places.end() - 1, range->first);
  const auto k = static_cast<std::size_t>(next - places.begin()) - 1;
  const auto found = within(entry, n, places[k], places[k + 1] - places[k]);
  if (!found) return {};
  entry = *found;
  return if_it_fits(node, ops::index(parts.input(k), entries));
}

// The only slice among whole axes, of step 1.
std::optional<SliceRange> block_along(const Variable& part, std::size_t axis) {
  const auto* const subtensor = op_of<ops::Subtensor>(part);
  if (!subtensor) return {};
  const Variable x = part.owner().input(0);
  const std::vector<Index>& entries = subtensor->index().entries();
  if (entries.size() != x.rank() || part.rank() != x.rank()) return {};
  if (x.type().shape[axis] == kUnknown) return {};
  for (std::size_t k = 0; k < entries.size(); ++k) {
    if (k != axis && !std::holds_alternative<All>(entries[k])) return {};
  }
  const auto range = range_of(entries[axis], x.type().shape[axis]);
  return range && range->step == 1 ? range : std::nullopt;
}

Replacements join_of_slices(const FunctionGraph&, const Apply& node) {
  const auto* const join = op_of<ops::Join>(node);
  if (!join || node.input_count() < 2 || !node.input(0).owner().defined()) return {};
  const std::size_t axis = join->axis();
  const Variable x =
      node.input(0).owner().input_count() > 0 ? node.input(0).owner().input(0) : Variable();
  index_t first = 0, next = 0;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    const auto range = block_along(node.input(i), axis);
    if (!range || !(node.input(i).owner().input(0) == x)) return {};
    if (i == 0) first = next = range->first;
    if (range->first != next) return {};
    next += range->count;
  }
  std::vector<Index> entries(x.rank(), Index(all));
  if (first != 0 || next != x.type().shape[axis]) entries[axis] = slice(first, next);
  return if_it_fits(node, ops::index(x, entries));
}

Replacements pad_of_pad(const FunctionGraph& graph, const Apply& node) {
  const auto* const outer = op_of<ops::Pad>(node);
  const auto* const inner = outer ? op_of<ops::Pad>(node.input(0)) : nullptr;
  if (!inner || !is_private_to(graph, node.input(0), node)) return {};
  if (std::bit_cast<std::uint64_t>(outer->value()) !=
      std::bit_cast<std::uint64_t>(inner->value())) {
    return {};
  }
  Extents before = outer->before(), after = outer->after();
  for (std::size_t k = 0; k < before.size(); ++k) {
    before[k] += inner->before()[k];
    after[k] += inner->after()[k];
  }
  const Variable x = node.input(0).owner().input(0);
  const auto op = std::make_shared<const ops::Pad>(before, after, outer->value());
  return if_it_fits(node, op->make_node({&x, 1}).output(0));
}

}  // namespace

RewriteResult resolve_slices(FunctionGraph& graph, const RewriteHints&) {
  PlacesOfParts places;
  const NodeRewrite rules[] = {
      {"resolve_slices", slice_of_pad},
      {"resolve_slices",
       [&](const FunctionGraph&, const Apply& node) { return slice_of_join(places, node); }},
      {"resolve_slices", join_of_slices},
      {"resolve_slices", pad_of_pad}};
  return walk_to_fixed_point(graph, rules);
}

}  // namespace palimpsest
