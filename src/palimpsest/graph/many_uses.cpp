// SPDX-License-Identifier: Apache-2.0
// Views of one array are found by the part that they show. Without this each write into a part goes
// through all views: 10,000 writes into views take more than 6 times as long to compile
// (bench/growth).
#include "palimpsest/graph/many_uses.hpp"

#include <algorithm>

#include "palimpsest/graph/graph_state.hpp"

namespace palimpsest::graph_detail {
namespace {

constexpr std::size_t kMany = 32;

}  // namespace

void ChildrenByPlace::add(const Child& child, std::size_t number) {
  all_.push_back({child, number});
  if (all_.size() >= 2 * n_at_choice_) {
    choose_axis();
  } else {
    place(all_.size() - 1);
  }
}

// The axis along which most regions begin at different positions.
void ChildrenByPlace::choose_axis() {
  n_at_choice_ = all_.size();
  axis_ = Region::kBytes;
  std::size_t most = 0;
  for (std::size_t k = 0; k <= rank_; ++k) {
    const std::size_t axis = k < rank_ ? k : Region::kBytes;
    std::vector<index_t> firsts;
    for (const Added& added : all_) {
      if (const auto bounds = added.child.second->map.bounds(axis)) firsts.push_back(bounds->first);
    }
    std::sort(firsts.begin(), firsts.end());
    firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
    if (firsts.size() <= most) continue;
    most = firsts.size();
    axis_ = axis;
  }
  bounded_.clear();
  others_.clear();
  longest_ = 0;
  for (std::size_t i = 0; i < all_.size(); ++i) place(i);
}

void ChildrenByPlace::place(std::size_t position) {
  const auto bounds = all_[position].child.second->map.bounds(axis_);
  if (!bounds) {
    others_.push_back(position);
    return;
  }
  bounded_.emplace(bounds->first, position);
  longest_ = std::max(longest_, bounds->second - bounds->first);
}

std::vector<ChildrenByPlace::Child> ChildrenByPlace::near(const std::vector<Region>& regions,
                                                          std::size_t from, std::size_t to) const {
  constexpr index_t kEnd = std::numeric_limits<index_t>::max() / 2;
  index_t low = kEnd, high = -kEnd;
  for (const Region& region : regions) {
    const auto bounds = region.bounds(axis_).value_or(std::pair(-kEnd, kEnd));
    low = std::min(low, bounds.first);
    high = std::max(high, bounds.second);
  }
  const auto position_of = [&](std::size_t number) {
    const auto it = std::partition_point(all_.begin(), all_.end(),
                                         [&](const Added& added) { return added.number < number; });
    return static_cast<std::size_t>(it - all_.begin());
  };
  const std::size_t begin = position_of(from), end = position_of(to);
  std::vector<Child> children;
  const auto add_if_near = [&](std::size_t position) {
    const auto bounds = all_[position].child.second->map.bounds(axis_);
    const bool is_near = !bounds || (bounds->first <= high && bounds->second >= low);
    if (is_near) children.push_back(all_[position].child);
  };
  std::vector<std::size_t> found;
  auto it = bounded_.lower_bound(low - longest_);
  for (std::size_t n = 0; it != bounded_.end() && it->first <= high && n < end - begin; ++it, ++n) {
    if (it->second >= begin && it->second < end) found.push_back(it->second);
  }
  if (it != bounded_.end() && it->first <= high) {
    // Fewer have these numbers than show these positions.
    for (std::size_t position = begin; position < end; ++position) add_if_near(position);
    return children;
  }
  const auto other = std::lower_bound(others_.begin(), others_.end(), begin);
  found.insert(found.end(), other, std::lower_bound(other, others_.end(), end));
  std::sort(found.begin(), found.end());
  for (const std::size_t position : found) add_if_near(position);
  return children;
}

ManyUses::ManyUses(const VarInfo& v) : children_(v.type().rank()) {
  for (UseSlot* slot = v.first; slot; slot = slot->next) {
    if (!slot->node) continue;
    if (slot->reads) readers_.push_back(slot);
    slot->node->for_each_edge_from(slot->index, [&](const AliasEdge& e) {
      children_.add({&slot->node->outs[static_cast<std::size_t>(e.out)], &e}, 0);
    });
  }
}

const ManyUses* many_uses(VarInfo& v) {
  if (v.n_uses < kMany) return nullptr;
  if (!v.many_uses) v.many_uses = std::make_unique<ManyUses>(v);
  return v.many_uses.get();
}

}  // namespace palimpsest::graph_detail
