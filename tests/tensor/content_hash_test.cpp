// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/tensor/content_hash.hpp"

#include <gtest/gtest.h>

#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest {
namespace {

std::string digits(const std::vector<Tensor>& parts) {
  ContentHasher hasher;
  for (const Tensor& part : parts) hasher.add(part);
  return hasher.digits();
}

TEST(ContentHash, DependsOnEveryElement) {
  Tensor t = Tensor::arange(7, DType::float64);
  const std::string before = digits({t});
  EXPECT_EQ(before.size(), 32u);
  for (index_t i = 0; i < 7; ++i) {
    const double old = t.at<double>({i});
    t.set<double>({i}, old + 0.5);
    EXPECT_NE(digits({t}), before) << i;
    t.set<double>({i}, old);
  }
  EXPECT_EQ(digits({t}), before);
  EXPECT_NE(digits({Tensor::scalar(1.0)}), digits({Tensor::scalar(2.0)}));
}

TEST(ContentHash, IsThatOfTheElementsInOrderWhateverTheStrides) {
  const Tensor t = Tensor::arange(24, DType::float64).view({2, 3, 4});
  for (const Tensor& view : {t.transpose(0, 2), t(all, slice(0, {}, 2)), t.flip(Axes{1}),
                             t(all, 1).unsqueeze(1).expand({2, 5, 4})}) {
    EXPECT_EQ(digits({view}), digits({view.clone()}));
    EXPECT_NE(digits({view}), digits({t}));
  }
}

TEST(ContentHash, IsThatOfThePiecesTogether) {
  const Tensor t = Tensor::arange(10, DType::float64);
  EXPECT_EQ(digits({t.narrow(0, 0, 3), t.narrow(0, 3, 7)}), digits({t}));
  EXPECT_EQ(digits({t, Tensor::zeros({0, 3})}), digits({t}));
}

}  // namespace
}  // namespace palimpsest
