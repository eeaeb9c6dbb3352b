// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "palimpsest/graph/graph_state.hpp"

namespace palimpsest::graph_detail {
namespace {

constexpr std::uint64_t kGap = std::uint64_t{1} << 32;

std::vector<NodeInfo*> sorted_by_label(const PointerSet<NodeInfo>& nodes) {
  std::vector<NodeInfo*> list(nodes.begin(), nodes.end());
  std::sort(list.begin(), list.end(), [](auto* a, auto* b) { return a->label < b->label; });
  return list;
}

// A step of a breadth-first search within an interval of labels.
struct Frontier {
  PointerSet<NodeInfo> seen;  // in the order of arrival: those from n_done on are open
  std::size_t n_done = 0;

  void visit(NodeInfo& node) { seen.insert(&node); }
  bool is_done() const { return n_done == seen.size(); }
  NodeInfo& next() { return **(seen.begin() + static_cast<std::ptrdiff_t>(n_done++)); }
};

// Spreads the nodes around one evenly over the smallest range of labels that is sparse enough, so
// that the labels of a place into which much is moved are given anew without those of the rest:
// O(log
// n) for each node that is placed, on average. After Bender et al. 2002,
// doi:10.1007/3-540-45749-6_17.
bool spread_around(NodeInfo& node) {
  constexpr double kThinning =
      1.4;  // between 1 and 2: how much sparser a range twice as big must be
  NodeInfo *left = &node, *right = &node;
  std::uint64_t count = 1;
  double capacity = 1;
  for (unsigned bits = 1; bits < 63; ++bits) {
    const std::uint64_t range = std::uint64_t{1} << bits, low = node.label & ~(range - 1);
    for (; left->earlier && left->earlier->label >= low; left = left->earlier) ++count;
    for (; right->later && right->later->label < low + range; right = right->later) ++count;
    capacity *= 2 / kThinning;
    if (static_cast<double>(count) >= capacity) continue;
    const std::uint64_t step = range / (count + 1);
    std::uint64_t label = low;
    for (NodeInfo* n = left;; n = n->later) {
      n->label = label += step;
      if (n == right) return true;
    }
  }
  return false;
}

}  // namespace

// Links the node in before another one, or at the end.
void OrderList::place(NodeInfo& node, NodeInfo* before) {
  node.later = before;
  node.earlier = before ? before->earlier : last_;
  (node.earlier ? node.earlier->later : first_) = &node;
  (before ? before->earlier : last_) = &node;
  const std::uint64_t low = node.earlier ? node.earlier->label : 0;
  const std::uint64_t high = before ? before->label : low + 2 * kGap;
  if (high - low < 2) {
    node.label = low;
    if (!spread_around(node)) relabel();
  } else {
    node.label = low + (high - low) / 2;
  }
}

void OrderList::relabel() {
  std::uint64_t label = 0;
  for (NodeInfo* n = first_; n; n = n->later) n->label = label += kGap;
}

void OrderList::insert_before(NodeInfo& node, NodeInfo* before) { place(node, before); }

void OrderList::remove(NodeInfo& node) {
  (node.earlier ? node.earlier->later : first_) = node.later;
  (node.later ? node.later->earlier : last_) = node.earlier;
  node.earlier = node.later = nullptr;
}

// All that y leads to up to the place of x, and all that leads to x from the place of y on: if one
// of the two is known completely and does not hold the other end, it can be moved past it.
bool OrderList::make_before(NodeInfo& x, NodeInfo& y) {
  if (&x == &y) return false;
  if (x.label < y.label) return true;
  Frontier forward, backward;
  forward.visit(y);
  backward.visit(x);
  bool is_cycle = false;
  while (!forward.is_done() && !backward.is_done() && !is_cycle) {
    for_each_successor(forward.next(), [&](NodeInfo& n) {
      if (n.label > x.label) return;
      is_cycle = is_cycle || backward.seen.contains(&n);
      forward.visit(n);
    });
    if (is_cycle) break;
    for_each_predecessor(backward.next(), [&](NodeInfo& n) {
      if (n.label < y.label) return;
      is_cycle = is_cycle || forward.seen.contains(&n);
      backward.visit(n);
    });
  }
  if (is_cycle) return false;
  const bool move_forward = forward.is_done();
  NodeInfo* const target = move_forward ? x.later : &y;
  for (NodeInfo* n : sorted_by_label(move_forward ? forward.seen : backward.seen)) {
    remove(*n);
    place(*n, target);
  }
  return true;
}

std::vector<NodeInfo*> OrderList::path(NodeInfo& from, NodeInfo& to) const {
  PointerMap<NodeInfo, NodeInfo*> reached_from;
  std::vector<NodeInfo*> open{&from};
  reached_from.try_emplace(&from, nullptr);
  for (std::size_t k = 0; k < open.size() && !reached_from.contains(&to); ++k) {
    NodeInfo* const node = open[k];
    for_each_successor(*node, [&](NodeInfo& n) {
      if (n.label <= to.label && reached_from.try_emplace(&n, node).second) open.push_back(&n);
    });
  }
  std::vector<NodeInfo*> path;
  if (!reached_from.contains(&to)) return path;
  for (NodeInfo* n = &to; n; n = *reached_from.find(n)) path.push_back(n);
  std::reverse(path.begin(), path.end());
  return path;
}

bool OrderList::leads_to(NodeInfo& from, std::span<NodeInfo* const> targets) const {
  std::uint64_t last = 0;
  Frontier forward, backward;
  for (NodeInfo* n : targets) {
    if (n->label <= from.label) continue;
    last = std::max(last, n->label);
    backward.visit(*n);
  }
  forward.visit(from);
  bool found = false;
  while (!forward.is_done() && !backward.is_done() && !found) {
    for_each_successor(forward.next(), [&](NodeInfo& n) {
      if (n.label > last) return;
      found = found || backward.seen.contains(&n);
      forward.visit(n);
    });
    if (found) break;
    for_each_predecessor(backward.next(), [&](NodeInfo& n) {
      if (n.label < from.label) return;
      found = found || forward.seen.contains(&n);
      backward.visit(n);
    });
  }
  return found;
}

}  // namespace palimpsest::graph_detail
