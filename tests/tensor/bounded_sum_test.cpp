// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/tensor/bounded_sum.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <random>
#include <vector>

namespace palimpsest {
namespace {

using Answer = BoundedSum::Answer;

Answer solve(const std::vector<std::pair<index_t, index_t>>& terms, index_t target) {
  BoundedSum sum;
  for (const auto& [step, bound] : terms) sum.add(step, bound);
  return sum.solve(target);
}

TEST(BoundedSum, OfNothingIsZero) {
  EXPECT_EQ(solve({}, 0), Answer::yes);
  EXPECT_EQ(solve({}, 1), Answer::no);
  EXPECT_EQ(solve({{3, 0}, {0, 5}}, 3), Answer::no);
  EXPECT_EQ(solve({{3, 2}}, -3), Answer::no);
}

TEST(BoundedSum, HonoursBoundsAndDivisors) {
  EXPECT_EQ(solve({{3, 2}}, 6), Answer::yes);
  EXPECT_EQ(solve({{3, 2}}, 9), Answer::no);
  EXPECT_EQ(solve({{6, 9}, {10, 9}}, 7), Answer::no);
  EXPECT_EQ(solve({{6, 9}, {10, 9}, {15, 9}}, 29), Answer::no);
  EXPECT_EQ(solve({{6, 9}, {10, 9}, {15, 9}}, 31), Answer::yes);
}

TEST(BoundedSum, AgreesWithEnumeration) {
  std::mt19937 random(5);
  int n_yes = 0, n_no = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<std::pair<index_t, index_t>> terms;
    std::vector<bool> reachable(2000, false);
    reachable[0] = true;
    const auto n_terms = 1 + random() % 4;
    for (unsigned k = 0; k < n_terms; ++k) {
      const auto step = static_cast<index_t>(random() % 40),
                 bound = static_cast<index_t>(random() % 6);
      terms.emplace_back(step, bound);
      std::vector<bool> next(reachable.size(), false);
      for (std::size_t at = 0; at < reachable.size(); ++at) {
        for (index_t x = 0; reachable[at] && x <= bound; ++x) {
          next[at + static_cast<std::size_t>(x * step)] = true;
        }
      }
      reachable = next;
    }
    const auto target = random() % 300;
    const bool expected = reachable[target];
    ++(expected ? n_yes : n_no);
    ASSERT_EQ(solve(terms, static_cast<index_t>(target)), expected ? Answer::yes : Answer::no);
  }
  EXPECT_GT(n_yes, 300);
  EXPECT_GT(n_no, 300);
}

TEST(BoundedSum, GivesUpRatherThanSearchForever) {
  // A subset-sum problem with large coprime numbers and no structure.
  std::mt19937_64 random(1);
  std::vector<std::pair<index_t, index_t>> terms;
  for (int i = 0; i < 34; ++i) {
    terms.emplace_back((index_t{1} << 50) + static_cast<index_t>(random() % (1ULL << 50)), 3);
  }
  EXPECT_EQ(solve(terms, (index_t{1} << 55) + 12345), Answer::unknown);
}

TEST(BoundedSum, DoesNotKnowWhatDoesNotFit) {
  constexpr index_t kMost = std::numeric_limits<index_t>::max();
  EXPECT_EQ(solve({{kMost, 3}, {2, 1}}, 1), Answer::unknown);
}

// Near 2^52 and above, where doubles do not represent all integers.
TEST(BoundedSum, LargeStepsAgreeWithEnumeration) {
  std::mt19937_64 random(6);
  int n_yes = 0, n_no = 0;
  for (int round = 0; round < 3000; ++round) {
    const int bits = 49 + static_cast<int>(random() % 9);
    const auto divisor = static_cast<index_t>(1 + random() % 7);
    const auto step = [&] {
      return divisor * ((index_t{1} << bits) / divisor + static_cast<index_t>(random() % 100) - 50);
    };
    const std::array<std::pair<index_t, index_t>, 2> terms{
        std::pair{step(), static_cast<index_t>(1 + random() % 6)},
        std::pair{step(), static_cast<index_t>(1 + random() % 6)}};
    const auto sum_of = [&](index_t x, index_t y) {
      return x * terms[0].first + y * terms[1].first;
    };
    const index_t target =
        sum_of(static_cast<index_t>(random() % 7), static_cast<index_t>(random() % 7)) +
        static_cast<index_t>(random() % 5) - 2;
    bool expected = false;
    for (index_t x = 0; x <= terms[0].second; ++x) {
      for (index_t y = 0; y <= terms[1].second; ++y) expected |= sum_of(x, y) == target;
    }
    ++(expected ? n_yes : n_no);
    ASSERT_EQ(solve({terms.begin(), terms.end()}, target), expected ? Answer::yes : Answer::no)
        << round;
  }
  EXPECT_GT(n_yes, 200);
  EXPECT_GT(n_no, 200);
}

TEST(BoundedSum, SolvesLargeCoprimeStepsExactly) {
  // 10^9+7 and 998244353 are primes: one residue class of x fits.
  const index_t p = 1'000'000'007, q = 998'244'353;
  EXPECT_EQ(solve({{p, 1 << 20}, {q, 1 << 20}}, 777 * p + 555 * q), Answer::yes);
  EXPECT_EQ(solve({{p, 776}, {q, 1 << 20}}, 777 * p + 555 * q), Answer::no);
}

}  // namespace
}  // namespace palimpsest
