// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/deep_release.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/small_stack.hpp"

namespace palimpsest {
namespace {

struct Link {
  Link(int& ended_, std::vector<std::shared_ptr<Link>> next_)
      : ended(ended_), next(std::move(next_)) {}
  ~Link() {
    ++ended;
    for (auto& link : next) release_deep(std::move(link));
  }

  int& ended;
  std::vector<std::shared_ptr<Link>> next;
};
using Links = std::vector<std::shared_ptr<Link>>;

TEST(DeepRelease, AChainEndsOnASmallStack) {
  constexpr int kLength = 100'000;
  int ended = 0;
  auto last = std::make_shared<Link>(ended, Links{});
  for (int k = 1; k < kLength; ++k) last = std::make_shared<Link>(ended, Links{std::move(last)});
  testing::run_on_small_stack([&] { release_deep(std::move(last)); });
  EXPECT_EQ(ended, kLength);
}

TEST(DeepRelease, ATreeBelowAChainEndsWhole) {
  int ended = 0;
  const std::function<std::shared_ptr<Link>(int)> tree = [&](int depth) {
    Links children;
    for (int k = 0; depth > 0 && k < 3; ++k) children.push_back(tree(depth - 1));
    return std::make_shared<Link>(ended, std::move(children));
  };
  auto top = tree(6);  // 1 + 3 + .. + 3^6
  for (int k = 0; k < 14; ++k) top = std::make_shared<Link>(ended, Links{std::move(top)});
  release_deep(std::move(top));
  EXPECT_EQ(ended, 1093 + 14);
}

TEST(DeepRelease, WhatOthersHaveStays) {
  int ended = 0;
  const auto mine = std::make_shared<Link>(ended, Links{});
  release_deep(mine);
  release_deep(nullptr);
  EXPECT_EQ(ended, 0);
  EXPECT_EQ(mine.use_count(), 1);
}

}  // namespace
}  // namespace palimpsest
