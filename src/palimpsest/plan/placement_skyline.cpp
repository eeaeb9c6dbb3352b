// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <queue>

#include "palimpsest/plan/placement_problem.hpp"

namespace palimpsest::placement_detail {
namespace {

// The items that are left, as points (begin, end) of a k-d tree, asked for the longest life within
// a range of sections.
class ItemTree {
 public:
  explicit ItemTree(const std::vector<Item>& items)
      : items_(items), order_(items.size()), place_of_(items.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    if (items.empty()) return;
    nodes_.resize(4 * (items.size() / kLeaf + 1));
    build(0, 0, static_cast<int>(items.size()), true);
    for (std::size_t k = 0; k < order_.size(); ++k) {
      place_of_[static_cast<std::size_t>(order_[k])] = static_cast<int>(k);
    }
  }

  /// -1: none.
  int longest_within(int begin, int end) const {
    int best = -1;
    if (!items_.empty()) find(0, begin, end, &best);
    return best;
  }

  void remove(int item) {
    const int place = place_of_[static_cast<std::size_t>(item)];
    order_[static_cast<std::size_t>(place)] = -1;
    update(0, place);
  }

 private:
  static constexpr int kLeaf = 8;
  struct Node {
    int from = 0, to = 0;  // in order_
    int left = -1, right = -1;
    int min_begin = 0, max_begin = 0, min_end = 0, max_end = 0;
    int best = -1;  // among those left
  };

  const Item& item(int i) const { return items_[static_cast<std::size_t>(i)]; }
  Node& node(int n) { return nodes_[static_cast<std::size_t>(n)]; }
  const Node& node(int n) const { return nodes_[static_cast<std::size_t>(n)]; }

  // Longer life first, then more bytes, then the number.
  bool is_better(int i, int j) const {
    if (i < 0 || j < 0) return j < 0 && i >= 0;
    const int a = item(i).end - item(i).begin, b = item(j).end - item(j).begin;
    if (a != b) return a > b;
    return item(i).size != item(j).size ? item(i).size > item(j).size : i < j;
  }

  int build(int n, int from, int to, bool by_begin) {
    if (n == 0) n_nodes_ = 1;
    Node made;
    made.from = from;
    made.to = to;
    made.min_begin = made.min_end = std::numeric_limits<int>::max();
    for (int k = from; k < to; ++k) {
      const int i = order_[static_cast<std::size_t>(k)];
      made.min_begin = std::min(made.min_begin, item(i).begin);
      made.max_begin = std::max(made.max_begin, item(i).begin);
      made.min_end = std::min(made.min_end, item(i).end);
      made.max_end = std::max(made.max_end, item(i).end);
      if (is_better(i, made.best)) made.best = i;
    }
    if (to - from > kLeaf) {
      const int middle = (from + to) / 2;
      std::nth_element(order_.begin() + from, order_.begin() + middle, order_.begin() + to,
                       [&](int i, int j) {
                         return by_begin ? std::pair(item(i).begin, i) < std::pair(item(j).begin, j)
                                         : std::pair(item(i).end, i) < std::pair(item(j).end, j);
                       });
      made.left = new_node();
      made.right = new_node();
      build(made.left, from, middle, !by_begin);
      build(made.right, middle, to, !by_begin);
    }
    node(n) = made;
    return n;
  }
  int new_node() {
    if (static_cast<std::size_t>(n_nodes_) == nodes_.size()) nodes_.resize(2 * nodes_.size());
    return n_nodes_++;
  }

  void find(int n, int begin, int end, int* best) const {
    const Node& at = node(n);
    if (at.best < 0 || at.max_begin < begin || at.min_end > end || !is_better(at.best, *best)) {
      return;
    }
    if (at.min_begin >= begin && at.max_end <= end) {
      *best = at.best;
      return;
    }
    if (at.left < 0) {
      for (int k = at.from; k < at.to; ++k) {
        const int i = order_[static_cast<std::size_t>(k)];
        if (i >= 0 && item(i).begin >= begin && item(i).end <= end && is_better(i, *best)) {
          *best = i;
        }
      }
      return;
    }
    const bool left_first = is_better(node(at.left).best, node(at.right).best);
    find(left_first ? at.left : at.right, begin, end, best);
    find(left_first ? at.right : at.left, begin, end, best);
  }

  void update(int n, int place) {
    Node& at = node(n);
    if (at.left >= 0) {
      update(place < node(at.left).to ? at.left : at.right, place);
      const int a = node(at.left).best, b = node(at.right).best;
      at.best = is_better(a, b) ? a : b;
      return;
    }
    at.best = -1;
    for (int k = at.from; k < at.to; ++k) {
      const int i = order_[static_cast<std::size_t>(k)];
      if (i >= 0 && is_better(i, at.best)) at.best = i;
    }
  }

  const std::vector<Item>& items_;
  std::vector<int> order_;     // -1: removed
  std::vector<int> place_of_;  // in order_
  std::vector<Node> nodes_;
  int n_nodes_ = 0;
};

// Heights over the sections, as segments of equal height.
class Outline {
 public:
  struct Segment {
    int begin = 0, end = 0;
    index_t height = 0;
  };

  explicit Outline(int n_sections) { put({0, n_sections, 0}); }

  Segment lowest() {
    for (;;) {
      const auto [height, begin] = queue_.top();
      const auto it = segments_.find(begin);
      if (it != segments_.end() && it->second.height == height) return it->second;
      queue_.pop();  // a former segment
    }
  }

  // [begin, end) of the segment gets another height.
  void lift(const Segment& segment, int begin, int end, index_t height) {
    segments_.erase(segment.begin);
    if (segment.begin < begin) put({segment.begin, begin, segment.height});
    if (end < segment.end) put({end, segment.end, segment.height});
    put_merged({begin, end, height});
  }

  // The height of the lower neighbour; that of nothing is infinite.
  index_t neighbour_height(const Segment& segment) const {
    const auto it = segments_.find(segment.begin);
    index_t height = std::numeric_limits<index_t>::max();
    if (it != segments_.begin()) height = std::prev(it)->second.height;
    const auto next = std::next(it);
    if (next != segments_.end()) height = std::min(height, next->second.height);
    return height;
  }

 private:
  void put(const Segment& segment) {
    segments_[segment.begin] = segment;
    queue_.emplace(segment.height, segment.begin);
  }
  void put_merged(Segment segment) {
    auto next = segments_.lower_bound(segment.begin);
    if (next != segments_.end() && next->second.height == segment.height) {
      segment.end = next->second.end;
      next = segments_.erase(next);
    }
    if (next != segments_.begin() && std::prev(next)->second.height == segment.height) {
      const auto previous = std::prev(next);
      segment.begin = previous->second.begin;
      segments_.erase(previous);
    }
    put(segment);
  }

  std::map<int, Segment> segments_;  // by their begin
  std::priority_queue<std::pair<index_t, int>, std::vector<std::pair<index_t, int>>, std::greater<>>
      queue_;
};

}  // namespace

Packing skyline(const Problem& problem) {
  ItemTree items(problem.items);
  Outline outline(problem.n_sections);
  Packing packing{std::vector<index_t>(problem.items.size(), 0), 0};
  for (std::size_t left = problem.items.size(); left > 0;) {
    const Outline::Segment place = outline.lowest();
    const int i = items.longest_within(place.begin, place.end);
    if (i < 0) {
      outline.lift(place, place.begin, place.end, outline.neighbour_height(place));
      continue;
    }
    const Item& item = problem.items[static_cast<std::size_t>(i)];
    const index_t top = place.height + item.size;
    packing.offsets[static_cast<std::size_t>(i)] = place.height;
    packing.height = std::max(packing.height, top);
    outline.lift(place, item.begin, item.end, top);
    items.remove(i);
    --left;
  }
  return packing;
}

}  // namespace palimpsest::placement_detail
