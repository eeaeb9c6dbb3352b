// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/many_uses.hpp"

#include <algorithm>
#include <limits>

#include "palimpsest/graph/graph_state.hpp"

namespace palimpsest::graph_detail {
namespace {

constexpr std::size_t kMany = 32;

// The axis along which most regions begin at different positions.
std::size_t axis_that_parts(const std::vector<ManyUses::Child>& children, std::size_t rank) {
  std::size_t best = Region::kBytes, most = 0;
  for (std::size_t k = 0; k <= rank; ++k) {
    const std::size_t axis = k < rank ? k : Region::kBytes;
    std::vector<index_t> firsts;
    for (const auto& [out, edge] : children) {
      if (const auto bounds = edge->map.bounds(axis)) firsts.push_back(bounds->first);
    }
    std::sort(firsts.begin(), firsts.end());
    firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
    if (firsts.size() <= most) continue;
    most = firsts.size();
    best = axis;
  }
  return best;
}

}  // namespace

ManyUses::ManyUses(const VarInfo& v) {
  std::vector<Child> children;
  for (UseSlot* slot = v.first; slot; slot = slot->next) {
    if (!slot->node) continue;
    if (slot->reads) readers_.push_back(slot);
    slot->node->for_each_edge_from(slot->index, [&](const AliasEdge& e) {
      children.emplace_back(&slot->node->outs[static_cast<std::size_t>(e.out)], &e);
    });
  }
  axis_ = axis_that_parts(children, v.type().rank());
  for (std::size_t i = 0; i < children.size(); ++i) {
    const auto bounds = children[i].second->map.bounds(axis_);
    if (!bounds) {
      others_.push_back({0, 0, i, children[i]});
      continue;
    }
    bounded_.push_back({bounds->first, bounds->second, i, children[i]});
    longest_ = std::max(longest_, bounds->second - bounds->first);
  }
  std::ranges::sort(bounded_, {}, &Place::first);
}

std::vector<ManyUses::Child> ManyUses::children_near(const std::vector<Region>& regions) const {
  constexpr index_t kEnd = std::numeric_limits<index_t>::max() / 2;
  index_t low = kEnd, high = -kEnd;
  for (const Region& region : regions) {
    const auto bounds = region.bounds(axis_).value_or(std::pair(-kEnd, kEnd));
    low = std::min(low, bounds.first);
    high = std::max(high, bounds.second);
  }
  std::vector<Place> found = others_;
  auto it = std::ranges::lower_bound(bounded_, low - longest_, {}, &Place::first);
  for (; it != bounded_.end() && it->first <= high; ++it) {
    if (it->last >= low) found.push_back(*it);
  }
  std::ranges::sort(found, {}, &Place::number);
  std::vector<Child> children;
  for (const Place& place : found) children.push_back(place.child);
  return children;
}

const ManyUses* many_uses(VarInfo& v) {
  if (v.n_uses < kMany) return nullptr;
  if (!v.many_uses) v.many_uses = std::make_unique<ManyUses>(v);
  return v.many_uses.get();
}

}  // namespace palimpsest::graph_detail
