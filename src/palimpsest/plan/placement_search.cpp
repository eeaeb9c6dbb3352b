// SPDX-License-Identifier: Apache-2.0
// Depth-first search over packings in which every item rests on another one or on the ground. Items
// are placed by rising offset. Cut off are:
//  - a section in which the remaining items do not fit above its lowest free place
//  - an item at an offset below which another one fits completely: placing that one first is at
//    least as good
//  - the same items in another order at one offset, and equal items in another order
// Remaining items that share no section are packed independently.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <tuple>

#include "palimpsest/plan/placement_problem.hpp"

namespace palimpsest::placement_detail {
namespace {

constexpr index_t kFar = std::numeric_limits<index_t>::max();

class DepthFirst {
 public:
  DepthFirst(const Problem& problem, index_t height, const std::vector<int>& rank, Effort& effort,
             std::uint64_t most_steps)
      : items_(problem.items),
        height_(height),
        rank_(rank),
        effort_(effort),
        steps_left_(most_steps),
        least_(items_.size(), 0),
        offsets_(items_.size(), 0),
        floor_(static_cast<std::size_t>(problem.n_sections)),
        load_(static_cast<std::size_t>(problem.n_sections)) {}

  SearchResult run() {
    std::vector<int> all(items_.size());
    std::iota(all.begin(), all.end(), 0);
    const bool found = solve_parts(std::move(all), 0, -1);
    return found      ? SearchResult::found
           : gave_up_ ? SearchResult::unknown
                      : SearchResult::impossible;
  }
  std::vector<index_t> offsets() && { return std::move(offsets_); }

 private:
  const Item& item(int i) const { return items_[static_cast<std::size_t>(i)]; }
  index_t& least(int i) { return least_[static_cast<std::size_t>(i)]; }
  int rank(int i) const { return rank_[static_cast<std::size_t>(i)]; }

  void spend(std::uint64_t steps) {
    const bool go_on = effort_.spend(steps);
    steps_left_ -= steps < steps_left_ ? steps : steps_left_;
    if (!go_on || steps_left_ == 0) gave_up_ = true;
  }

  // Packs groups of items that share no section independently.
  bool solve_parts(std::vector<int> items, index_t from, int after) {
    std::sort(items.begin(), items.end(),
              [&](int i, int j) { return item(i).begin < item(j).begin; });
    for (std::size_t start = 0; start < items.size();) {
      int end = item(items[start]).end;
      std::size_t stop = start + 1;
      while (stop < items.size() && item(items[stop]).begin < end) {
        end = std::max(end, item(items[stop++]).end);
      }
      const std::vector<int> part(items.begin() + static_cast<std::ptrdiff_t>(start),
                                  items.begin() + static_cast<std::ptrdiff_t>(stop));
      if (!solve(part, from, after)) return false;
      start = stop;
    }
    return true;
  }

  // True if the remaining items fit, section by section, above the lowest place left there.
  bool may_fit(const std::vector<int>& items, index_t from) {
    int begin = item(items.front()).begin, end = begin;
    for (int i : items) end = std::max(end, item(i).end);
    std::fill(floor_.begin() + begin, floor_.begin() + end, kFar);
    std::fill(load_.begin() + begin, load_.begin() + end, index_t{0});
    std::uint64_t steps = 0;
    for (int i : items) {
      const Item& it = item(i);
      const index_t lowest = std::max(least(i), from);
      for (auto s = static_cast<std::size_t>(it.begin); s < static_cast<std::size_t>(it.end); ++s) {
        floor_[s] = std::min(floor_[s], lowest);
        load_[s] += it.size;
      }
      steps += static_cast<std::uint64_t>(it.end - it.begin);
    }
    spend(steps + static_cast<std::uint64_t>(end - begin));
    for (auto s = static_cast<std::size_t>(begin); s < static_cast<std::size_t>(end); ++s) {
      if (load_[s] > 0 && floor_[s] + load_[s] > height_) return false;
    }
    return true;
  }

  // Items in one connected part, by their first section. Offsets are at least `from`; those at
  // `from` have a rank above `after`.
  bool solve(const std::vector<int>& items, index_t from, int after) {
    if (items.empty()) return true;
    if (gave_up_ || !may_fit(items, from) || gave_up_) return false;
    index_t lowest_top = kFar;
    for (int i : items) lowest_top = std::min(lowest_top, std::max(least(i), from) + item(i).size);
    std::vector<int> candidates;
    for (int i : items) {
      const index_t at = least(i);
      const bool in_order = at > from || (at == from && rank(i) > after);
      if (in_order && at < lowest_top) candidates.push_back(i);
    }
    std::sort(candidates.begin(), candidates.end(), [&](int i, int j) {
      return std::pair(least(i), rank(i)) < std::pair(least(j), rank(j));
    });
    std::vector<index_t> saved(items.size());
    for (std::size_t k = 0; k < items.size(); ++k) saved[k] = least(items[k]);
    for (std::size_t c = 0; c < candidates.size() && !gave_up_; ++c) {
      if (c > 0 && are_equal(candidates[c], candidates[c - 1])) continue;
      if (solve_with(candidates[c], items)) return true;
      // An item with free room above hinders no other: another place for it does not help.
      if (is_free_above(candidates[c], items)) return false;
      for (std::size_t k = 0; k < items.size(); ++k) least(items[k]) = saved[k];
    }
    return false;
  }

  bool are_equal(int i, int j) {
    return item(i).size == item(j).size && item(i).begin == item(j).begin &&
           item(i).end == item(j).end && least(i) == least(j);
  }

  bool is_free_above(int chosen, const std::vector<int>& items) const {
    return std::none_of(items.begin(), items.end(), [&](int i) {
      return i != chosen && item(i).begin < item(chosen).end && item(chosen).begin < item(i).end;
    });
  }

  bool solve_with(int chosen, const std::vector<int>& items) {
    const Item& it = item(chosen);
    const index_t at = least(chosen), top = at + it.size;
    if (top > height_) return false;
    offsets_[static_cast<std::size_t>(chosen)] = at;
    std::vector<int> rest;
    rest.reserve(items.size());
    for (int i : items) {
      if (i == chosen) continue;
      rest.push_back(i);
      if (item(i).begin < it.end && it.begin < item(i).end) least(i) = std::max(least(i), top);
    }
    spend(items.size());
    return solve_parts(std::move(rest), at, rank(chosen));
  }

  const std::vector<Item>& items_;
  const index_t height_;
  const std::vector<int>& rank_;
  Effort& effort_;
  std::uint64_t steps_left_;
  bool gave_up_ = false;
  std::vector<index_t> least_;         // per item: the lowest place beside the placed items
  std::vector<index_t> offsets_;       // per item
  std::vector<index_t> floor_, load_;  // per section, of the items at hand
};

// Ranks by orders that have proved good: by length of life, area, and the load of the fullest
// section that an item meets; then mixtures of them.
class Ranks {
 public:
  static constexpr std::uint64_t kPlainOrders = 5;

  explicit Ranks(const Problem& problem) : n_(problem.items.size()) {
    std::vector<index_t> load(static_cast<std::size_t>(problem.n_sections));
    for (const Item& it : problem.items) {
      for (int s = it.begin; s < it.end; ++s) load[static_cast<std::size_t>(s)] += it.size;
    }
    for (const Item& it : problem.items) {
      const double width = it.end - it.begin, size = static_cast<double>(it.size);
      const double most =
          static_cast<double>(*std::max_element(load.begin() + it.begin, load.begin() + it.end));
      keys_.push_back({most, width, width * size, size});
    }
  }

  std::vector<int> rank(std::uint64_t attempt) {
    static constexpr int kOrders[kPlainOrders][3] = {
        {1, 2, 0}, {0, 2, 1}, {0, 1, 2}, {2, 0, 1}, {3, 1, 0}};
    std::vector<int> order(n_);
    std::iota(order.begin(), order.end(), 0);
    if (attempt < kPlainOrders) {
      const int(&by)[3] = kOrders[attempt];
      std::stable_sort(order.begin(), order.end(),
                       [&](int i, int j) { return keys(i, by) > keys(j, by); });
    } else {
      std::vector<double> weight(n_);
      for (std::size_t i = 0; i < n_; ++i) weight[i] = mixed(keys_[i], attempt) * noise();
      std::stable_sort(order.begin(), order.end(), [&](int i, int j) {
        return weight[static_cast<std::size_t>(i)] > weight[static_cast<std::size_t>(j)];
      });
    }
    std::vector<int> rank(n_);
    for (std::size_t k = 0; k < n_; ++k)
      rank[static_cast<std::size_t>(order[k])] = static_cast<int>(k);
    return rank;
  }

 private:
  using Keys = std::array<double, 4>;

  std::tuple<double, double, double> keys(int i, const int (&by)[3]) const {
    const Keys& k = keys_[static_cast<std::size_t>(i)];
    return {k[static_cast<std::size_t>(by[0])], k[static_cast<std::size_t>(by[1])],
            k[static_cast<std::size_t>(by[2])]};
  }
  static double mixed(const Keys& k, std::uint64_t attempt) {
    switch (attempt % 4) {
      case 0:
        return k[0];
      case 1:
        return k[1];
      case 2:
        return k[2];
      default:
        return k[0] * k[1];
    }
  }
  // Between 1 and 1.3, from a generator of its own so that answers are the same everywhere.
  double noise() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return 1 + 0.3 * static_cast<double>(state_ >> 33) / static_cast<double>(1u << 31);
  }

  std::size_t n_;
  std::vector<Keys> keys_;
  std::uint64_t state_ = 1;
};

}  // namespace

SearchResult search(const Problem& problem, index_t height, Effort& effort, Packing* packing) {
  if (height < problem.lower_bound) return SearchResult::impossible;
  Ranks ranks(problem);
  // Short attempts from several orders, then longer ones: the order that leads to a packing soon is
  // not known beforehand.
  constexpr std::uint64_t kAttempts = 8;
  std::uint64_t steps = 2'000 * (problem.items.size() + 1);
  for (std::uint64_t attempt = 0; effort.left() > 1; ++attempt) {
    if (attempt > 0 && attempt % kAttempts == 0) steps *= 4;
    // The plain orders come again in every round, the mixtures never do.
    const std::uint64_t in_round = attempt % kAttempts;
    const std::vector<int> rank =
        ranks.rank(in_round < Ranks::kPlainOrders ? in_round : attempt + Ranks::kPlainOrders);
    DepthFirst attempt_of(problem, height, rank, effort, steps);
    const SearchResult result = attempt_of.run();
    if (result == SearchResult::impossible) return result;
    if (result == SearchResult::found) {
      packing->offsets = std::move(attempt_of).offsets();
      packing->height = 0;
      for (std::size_t i = 0; i < problem.items.size(); ++i) {
        packing->height = std::max(packing->height, packing->offsets[i] + problem.items[i].size);
      }
      return result;
    }
  }
  return SearchResult::unknown;
}

}  // namespace palimpsest::placement_detail
