// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "palimpsest/tensor/tensor.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using Values = std::vector<index_t>;

Tensor counted(Extents shape) { return Tensor::arange(element_count(shape)).view(shape); }
Values values(const Tensor& t) { return t.to_vector<index_t>(); }

TEST(TensorIndex, MixesAllKindsOfEntries) {
  const Tensor t = counted({2, 3, 4});
  EXPECT_EQ(values(t(1, 2, 3)), (Values{23}));
  EXPECT_EQ(t(1, 2, 3).rank(), 0u);
  EXPECT_EQ(values(t(1, -1)), (Values{20, 21, 22, 23}));
  EXPECT_EQ(values(t(-2, -3, -4)), (Values{0}));
  EXPECT_EQ(values(t(all, 0, slice(1, 3))), (Values{1, 2, 13, 14}));
  EXPECT_EQ(t(newaxis, ellipsis, newaxis, 0).shape(), (Extents{1, 2, 3, 1}));
  EXPECT_EQ(t(ellipsis, 1).shape(), (Extents{2, 3}));
  EXPECT_EQ(t(0, ellipsis, 1).shape(), (Extents{3}));
  EXPECT_EQ(t(0, 1, ellipsis, 2).shape(), (Extents{}));
  EXPECT_EQ(values(t()), values(t));
  EXPECT_EQ(values(t.index_with({1, slice(0, 1), All{}})), (Values{12, 13, 14, 15}));
}

TEST(TensorIndex, SlicesMeanWhatTheyMeanInPython) {
  const Tensor t = counted({5});
  constexpr index_t kMost = std::numeric_limits<index_t>::max();
  constexpr index_t kLeast = std::numeric_limits<index_t>::min();
  EXPECT_EQ(values(t(slice({}, {}))), (Values{0, 1, 2, 3, 4}));
  EXPECT_EQ(values(t(Slice{})), (Values{0, 1, 2, 3, 4}));
  EXPECT_EQ(values(t(slice(1, -1))), (Values{1, 2, 3}));
  EXPECT_EQ(values(t(slice(-2, {}))), (Values{3, 4}));
  EXPECT_EQ(values(t(slice({}, {}, 2))), (Values{0, 2, 4}));
  EXPECT_EQ(values(t(slice({}, {}, -1))), (Values{4, 3, 2, 1, 0}));
  EXPECT_EQ(values(t(slice({}, {}, -2))), (Values{4, 2, 0}));
  EXPECT_EQ(values(t(slice(3, 0, -2))), (Values{3, 1}));
  EXPECT_EQ(values(t(slice(-100, 100, 3))), (Values{0, 3}));
  EXPECT_EQ(values(t(slice(100, -100, -3))), (Values{4, 1}));
  EXPECT_EQ(values(t(slice(1, kMost, kMost))), (Values{1}));
  EXPECT_EQ(values(t(slice(kMost, kLeast, kLeast))), (Values{4}));
  EXPECT_EQ(values(t(slice(3, 1))), Values{});
  EXPECT_EQ(values(t(slice(5, {}))), Values{});
  EXPECT_EQ(values(t(slice(-7, -6))), Values{});
  EXPECT_EQ(values(t(slice(2, 2, -1))), Values{});
  EXPECT_EQ(values(counted({0})(slice({}, {}, -1))), Values{});
}

TEST(TensorIndex, MatchesAPlainLoopForAllSmallSlices) {
  const Tensor t = counted({4});
  for (index_t start = -6; start <= 6; ++start) {
    for (index_t stop = -6; stop <= 6; ++stop) {
      for (const index_t step : {-3, -2, -1, 1, 2, 3}) {
        const auto clamp = [&](index_t i) {
          if (i < 0) i += 4;
          return std::clamp<index_t>(i, step > 0 ? 0 : -1, step > 0 ? 4 : 3);
        };
        Values expected;
        for (index_t i = clamp(start); step > 0 ? i < clamp(stop) : i > clamp(stop); i += step) {
          expected.push_back(i);
        }
        EXPECT_EQ(values(t(slice(start, stop, step))), expected)
            << start << ":" << stop << ":" << step;
      }
    }
  }
}

TEST(TensorIndex, OfAnUndefinedTensorIsRefused) {
  expect_error<ValueError>([] { Tensor()(0); }, "undefined");
  expect_error<ValueError>([] { Tensor()(newaxis); }, "undefined");
  expect_error<ValueError>([] { Tensor().strides(); }, "undefined");
  expect_error<ValueError>([] { Tensor().offset(); }, "undefined");
}

TEST(TensorIndex, NamesTheAxisOfAWrongEntry) {
  const Tensor t = counted({2, 3, 4});
  expect_error<ShapeError>([&] { t(0, ellipsis, 4); },
                           "[Tensor.index] axis 2: index out of range: got 4, expected -4 .. 3");
  expect_error<ShapeError>([&] { t(newaxis, all, -4); },
                           "[Tensor.index] axis 1: index out of range");
  expect_error<ValueError>([&] { t(all, slice(0, 1, 0)); },
                           "[Tensor.index] axis 1: step of a slice: got 0");
  expect_error<ShapeError>([&] { t(0, 0, 0, 0); }, "too many indices: got 4, expected at most 3");
  expect_error<ShapeError>([&] { t(ellipsis, ellipsis); }, "several '...'");
  expect_error<ShapeError>([] { Tensor::empty(Extents(16, 1))(newaxis); }, "too many axes: got 17");
}

}  // namespace
}  // namespace palimpsest
