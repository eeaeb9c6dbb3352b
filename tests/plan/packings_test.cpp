// SPDX-License-Identifier: Apache-2.0
// Each packing algorithm separately, compared with the simplest program for its comment.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <random>

#include "palimpsest/plan/placement_problem.hpp"

namespace palimpsest::placement_detail {
namespace {

struct Sizes {
  int n_items, n_sections, longest;
  index_t most;
};

Problem random_problem(std::mt19937& random, const Sizes& sizes) {
  const auto below = [&](auto n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Problem problem;
  problem.n_sections = sizes.n_sections;
  std::vector<index_t> load(static_cast<std::size_t>(sizes.n_sections), 0);
  for (int k = 0; k < sizes.n_items; ++k) {
    Item item;
    item.begin = below(sizes.n_sections);
    item.end = std::min(sizes.n_sections, item.begin + 1 + below(sizes.longest));
    item.size = 1 + below(sizes.most);
    problem.items.push_back(item);
    for (int s = item.begin; s < item.end; ++s) load[static_cast<std::size_t>(s)] += item.size;
  }
  problem.lower_bound = *std::max_element(load.begin(), load.end());
  return problem;
}

bool meet(const Item& a, const Item& b) { return a.begin < b.end && b.begin < a.end; }

void expect_valid(const Problem& problem, const Packing& packing) {
  ASSERT_EQ(packing.offsets.size(), problem.items.size());
  index_t height = 0;
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    const index_t top = packing.offsets[i] + problem.items[i].size;
    height = std::max(height, top);
    ASSERT_GE(packing.offsets[i], 0);
    for (std::size_t j = 0; j < i; ++j) {
      ASSERT_TRUE(!meet(problem.items[i], problem.items[j]) || packing.offsets[j] >= top ||
                  packing.offsets[j] + problem.items[j].size <= packing.offsets[i]);
    }
  }
  ASSERT_EQ(packing.height, height);
}

TEST(Packings, FirstFitTakesTheLowestFreePlace) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const Problem problem = random_problem(random, {12, 8, 5, 6});
    std::vector<std::size_t> order(problem.items.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    const Packing packing = first_fit(problem, order);
    expect_valid(problem, packing);
    for (std::size_t k = 0; k < order.size(); ++k) {
      const Item& item = problem.items[order[k]];
      index_t lowest = 0;
      const auto is_free = [&] {
        return std::none_of(
            order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), [&](std::size_t j) {
              const Item& other = problem.items[j];
              return meet(item, other) && lowest < packing.offsets[j] + other.size &&
                     packing.offsets[j] < lowest + item.size;
            });
      };
      while (!is_free()) ++lowest;
      ASSERT_EQ(packing.offsets[order[k]], lowest) << round;
    }
  }
}

// Takes the lowest place, the first of several. Puts there the item with the longest life that fits
// in time, then with the most bytes, then the first. A place where nothing fits is raised to its
// lower neighbour.
Packing plain_skyline(const Problem& problem) {
  Packing packing{std::vector<index_t>(problem.items.size(), 0), 0};
  std::vector<index_t> heights(static_cast<std::size_t>(problem.n_sections), 0);
  std::vector<bool> is_placed(problem.items.size(), false);
  for (std::size_t left = problem.items.size(); left > 0;) {
    const auto lowest = std::min_element(heights.begin(), heights.end());
    const auto end = std::find_if(lowest, heights.end(), [&](index_t h) { return h != *lowest; });
    const int first = static_cast<int>(lowest - heights.begin()),
              last = static_cast<int>(end - heights.begin());
    std::size_t best = problem.items.size();
    for (std::size_t i = 0; i < problem.items.size(); ++i) {
      const Item& item = problem.items[i];
      if (is_placed[i] || item.begin < first || item.end > last) continue;
      const auto key = [&](std::size_t k) {
        const Item& it = problem.items[k];
        return std::pair(it.end - it.begin, it.size);
      };
      if (best == problem.items.size() || key(i) > key(best)) best = i;
    }
    if (best == problem.items.size()) {
      index_t height = std::numeric_limits<index_t>::max();
      if (lowest != heights.begin()) height = *(lowest - 1);
      if (end != heights.end()) height = std::min(height, *end);
      std::fill(lowest, end, height);
      continue;
    }
    const Item& item = problem.items[best];
    packing.offsets[best] = *lowest;
    const index_t top = *lowest + item.size;
    std::fill(heights.begin() + item.begin, heights.begin() + item.end, top);
    packing.height = std::max(packing.height, top);
    is_placed[best] = true;
    --left;
  }
  return packing;
}

TEST(Packings, SkylineIsThatOfThePlainProgram) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const Sizes sizes{1 + static_cast<int>(random() % 150), 1 + static_cast<int>(random() % 40),
                      1 + static_cast<int>(random() % 20), 1 + static_cast<index_t>(random() % 9)};
    const Problem problem = random_problem(random, sizes);
    const Packing packing = skyline(problem), expected = plain_skyline(problem);
    expect_valid(problem, packing);
    ASSERT_EQ(packing.offsets, expected.offsets) << round;
  }
  EXPECT_EQ(skyline(Problem{}).height, 0);
}

// Tries each item at each offset, in order.
class PlainSearch {
 public:
  PlainSearch(const Problem& problem, index_t height)
      : items_(problem.items), height_(height), offsets_(items_.size()) {
    std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
      return std::pair(a.begin, -a.size) < std::pair(b.begin, -b.size);
    });
  }
  bool finds_one(std::size_t k = 0) {
    if (k == items_.size()) return true;
    for (offsets_[k] = 0; offsets_[k] + items_[k].size <= height_; ++offsets_[k]) {
      bool is_free = true;
      for (std::size_t j = 0; j < k && is_free; ++j) {
        is_free = !meet(items_[j], items_[k]) || offsets_[j] >= offsets_[k] + items_[k].size ||
                  offsets_[j] + items_[j].size <= offsets_[k];
      }
      if (is_free && finds_one(k + 1)) return true;
    }
    return false;
  }

 private:
  std::vector<Item> items_;
  index_t height_;
  std::vector<index_t> offsets_;
};

// Full everywhere: in each section, items of `height` together, some of which continue in the next
// one. A few of these problems have no packing without a gap.
Problem tight_problem(std::mt19937& random, int n_sections, index_t height, index_t most) {
  Problem problem{{}, n_sections, height};
  std::vector<std::size_t> live;
  for (int s = 0; s < n_sections; ++s) {
    std::vector<std::size_t> stay;
    index_t left = height;
    for (const std::size_t i : live) {
      if (random() % 5 < 2) continue;
      stay.push_back(i);
      problem.items[i].end = s + 1;
      left -= problem.items[i].size;
    }
    for (; left > 0; left -= problem.items.back().size) {
      stay.push_back(problem.items.size());
      const auto size =
          static_cast<index_t>(1 + random() % static_cast<std::uint64_t>(std::min(most, left)));
      problem.items.push_back({size, s, s + 1});
    }
    live = std::move(stay);
  }
  return problem;
}

TEST(Packings, TheSearchFindsWhatThereIsAndKnowsWhatIsImpossible) {
  std::mt19937 random(3);
  int n_above_the_bound = 0;
  for (int round = 0; round < 20'000; ++round) {
    const Problem problem =
        round % 2 == 0 ? tight_problem(random, 6, 6, 3) : tight_problem(random, 5, 6, 4);
    const auto result_of = [&](index_t height) {
      Effort effort(std::uint64_t{1} << 32);
      Packing packing;
      const SearchResult result = search(problem, height, effort, &packing);
      if (result == SearchResult::found) {
        expect_valid(problem, packing);
        EXPECT_LE(packing.height, height);
      }
      return result;
    };
    EXPECT_EQ(result_of(problem.lower_bound - 1), SearchResult::impossible);
    index_t best = problem.lower_bound;
    while (result_of(best) == SearchResult::impossible) {
      ASSERT_FALSE(PlainSearch(problem, best).finds_one()) << round;
      ++best;
    }
    if (best == problem.lower_bound) continue;
    ++n_above_the_bound;
    std::vector<Interval> intervals;
    for (const Item& item : problem.items) {
      intervals.push_back({64 * item.size, item.begin, item.end - 1});
    }
    EXPECT_EQ(place(intervals).bytes, 64 * best) << round;
  }
  EXPECT_GT(n_above_the_bound, 3);
}

// Without effort: the lowest result of the skyline and of first fit in four orders.
TEST(Packings, QuickOnesAreTheLowestOfFive) {
  std::mt19937 random(9);
  std::array<int, 5> n_lowest{};
  for (int round = 0; round < 3000; ++round) {
    const Problem problem = random_problem(random, {14, 8, 6, 20});
    std::vector<bool> is_boundary(static_cast<std::size_t>(problem.n_sections) + 1, false);
    std::vector<Interval> intervals;
    for (const Item& item : problem.items) {
      is_boundary[static_cast<std::size_t>(item.begin)] = true;
      is_boundary[static_cast<std::size_t>(item.end)] = true;
      intervals.push_back({64 * item.size, item.begin, item.end - 1});
    }
    // Sections without a beginning or end of an item would be merged.
    if (std::find(is_boundary.begin(), is_boundary.end(), false) != is_boundary.end()) continue;
    std::vector<index_t> heights{skyline(problem).height};
    const auto add = [&](auto is_before) {
      std::vector<std::size_t> order(problem.items.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return is_before(problem.items[a], problem.items[b]);
      });
      heights.push_back(first_fit(problem, order).height);
    };
    const auto life = [](const Item& item) { return item.end - item.begin; };
    add([](const Item& a, const Item& b) {
      return a.size != b.size ? a.size > b.size : a.begin < b.begin;
    });
    add([](const Item& a, const Item& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.size > b.size;
    });
    add([&](const Item& a, const Item& b) {
      return life(a) != life(b) ? life(a) > life(b) : a.size > b.size;
    });
    add([&](const Item& a, const Item& b) {
      const index_t of_a = life(a) * a.size, of_b = life(b) * b.size;
      return of_a != of_b ? of_a > of_b : a.begin < b.begin;
    });
    const index_t lowest = *std::min_element(heights.begin(), heights.end());
    ASSERT_EQ(place(intervals, {.alignment = 64, .effort = 0}).bytes, 64 * lowest) << round;
    if (std::count(heights.begin(), heights.end(), lowest) == 1) {
      ++n_lowest[static_cast<std::size_t>(std::find(heights.begin(), heights.end(), lowest) -
                                          heights.begin())];
    }
  }
  for (int n : n_lowest) EXPECT_GT(n, 0);
}

TEST(Packings, ASearchWithoutEffortKnowsNothing) {
  const Problem problem{{{1, 0, 1}, {1, 0, 1}}, 1, 2};
  Effort none(0);
  Packing packing;
  EXPECT_EQ(search(problem, 2, none, &packing), SearchResult::unknown);
  EXPECT_EQ(search(problem, 1, none, &packing), SearchResult::impossible) << "below the bound";
  Effort some(10);
  EXPECT_TRUE(some.spend(9));
  EXPECT_EQ(some.left(), 1u);
  EXPECT_FALSE(some.spend(1));
  EXPECT_FALSE(some.spend(5));
  EXPECT_EQ(some.left(), 0u);
}

}  // namespace
}  // namespace palimpsest::placement_detail
