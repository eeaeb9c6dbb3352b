// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/run/debug_value.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest {
namespace {

DebugValue value_of(const Tensor& t) { return DebugValue::read(t.view_of()); }

Difference compared(const Tensor& a, const Tensor& b, double roundings = 0) {
  return compare(value_of(a), value_of(b), {.roundings = roundings});
}

TEST(DebugValue, OnlyValuesOfOneDtypeAndShapeAreCompared) {
  const Tensor a = Tensor::from<double>({1, 2, 3, 4});
  const Tensor others[] = {Tensor::from<double>({1, 2, 3}), Tensor::from<float>({1, 2, 3, 4}),
                           Tensor::from<double>({1, 2, 3, 4}).reshape({2, 2})};
  for (const Tensor& other : others) {
    const Difference difference = compared(a, other);
    EXPECT_FALSE(difference.comparable);
    EXPECT_FALSE(difference.is_within);
    EXPECT_EQ(difference.str(), "they differ in dtype or shape");
  }
  EXPECT_TRUE(compared(a, a.clone()).comparable);
  EXPECT_TRUE(compared(a, a.clone()).is_within);
}

TEST(DebugValue, ToleranceIsInRoundingErrorsOfTheLargestElement) {
  const double eps = std::numeric_limits<double>::epsilon();
  const Tensor a = Tensor::from<double>({1024, 1}), b = Tensor::from<double>({1024, 1 + 100 * eps});
  EXPECT_FALSE(compared(a, b).is_within);
  EXPECT_TRUE(compared(a, b, 1).is_within);
  const Difference difference = compared(a, Tensor::from<double>({1024, 1.5}), 1);
  EXPECT_FALSE(difference.is_within);
  EXPECT_EQ(difference.differing, 1);
  EXPECT_EQ(difference.index, Extents{1});
  EXPECT_EQ(difference.largest_absolute, 0.5);
}

TEST(DebugValue, ADifferenceIsFoundWhereverItIs) {
  const Tensor a = Tensor::zeros({2, 3, 4});
  for (index_t k = 0; k < a.numel(); ++k) {
    Tensor b = a.clone();
    const Extents index{k / 12, k / 4 % 3, k % 4};
    b.select(0, index[0]).select(0, index[1]).select(0, index[2]).fill(1.0);
    EXPECT_EQ(compared(a, b).index, index);
    EXPECT_EQ(compared(a, b).differing, 1);
  }
}

}  // namespace
}  // namespace palimpsest
