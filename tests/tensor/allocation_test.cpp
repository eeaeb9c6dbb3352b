// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/tensor/tensor.hpp"
#include "support/new_counter.hpp"

namespace palimpsest {
namespace {

using testing::NewCounter;

TEST(TensorAllocation, CopiesAndViewsUpToEightAxesAllocateNothing) {
  Tensor t = Tensor::zeros(Extents(8, 2));
  Tensor other = Tensor::zeros({3});
  { const Tensor first = t.lazy_clone(); }   // registers the thread with the counters
  t.select(0, 0).copy_from(t.select(0, 1));  // reads the size of the caches
  const NewCounter news;
  const MemoryScope scope;
  {
    Tensor copy = t;
    Tensor moved = std::move(copy);
    copy = moved;
    other = copy;
    const Tensor view = other.transpose().select(0, 1).narrow(1, 0, 1).unsqueeze(0);
    other.mutable_data<double>()[0] = 1;
    other.set({0, 0, 0, 0, 0, 0, 0, 1}, 2.0);
    EXPECT_EQ(other.at<double>({0, 0, 0, 0, 0, 0, 0, 1}), 2.0);
    EXPECT_FALSE(overlaps(t.select(0, 0), t.select(0, 1)));
    other.fill(1.0);
    t.select(0, 0).copy_from(t.select(0, 1));
  }
  EXPECT_EQ(news.count(), 0u);
  EXPECT_EQ(scope.calls(), 0u);
}

TEST(TensorAllocation, ALazyCloneNeedsAtMostOneSmallObject) {
  const Tensor t = Tensor::zeros({1000});
  { const Tensor first = t.lazy_clone(); }  // registers the thread with the counters
  const NewCounter news;
  const MemoryScope scope;
  { const Tensor clone = t.lazy_clone(); }
  EXPECT_LE(news.count(), 1u) << "none where the thread has a used one to spare";
  EXPECT_EQ(scope.calls(), 0u);
}

TEST(TensorAllocation, MoreThanEightAxesWork) {
  const Tensor t = Tensor::arange(1 << 10).view(Extents(10, 2));
  Tensor copy = t;
  copy = t.flip(Axes{9});
  EXPECT_EQ(copy.at<index_t>({0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), 1);
  EXPECT_TRUE(equal(copy.clone(), copy));
}

}  // namespace
}  // namespace palimpsest
