// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <random>

#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/tensor/tensor.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using Values = std::vector<index_t>;

Tensor counted(Extents shape) { return Tensor::arange(element_count(shape)).view(shape); }
Values values(const Tensor& t) { return t.to_vector<index_t>(); }

TEST(TensorViews, AliasAndAllocateNothing) {
  Tensor t = counted({2, 3, 4});
  const MemoryScope scope;
  for (Tensor view :
       {t.select(0, 1), t.narrow(1, 1, 2), t.permute({2, 0, 1}), t.transpose(), t.unsqueeze(0),
        t.flip(Axes{0, 2}), t.diagonal(), t.unfold(2, 2, 2), t.view({6, 4}), t.expand({2, 3, 4}),
        t.as_strided({3}, {5}, 2), t(1, all, slice(0, 2)), t.bitcast(DType::uint64)}) {
    EXPECT_TRUE(shares_storage(view, t));
  }
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_EQ(t.storage().use_count(), 1u);
}

TEST(TensorViews, SelectDropsAnAxis) {
  const Tensor t = counted({2, 3});
  EXPECT_EQ(values(t.select(0, 1)), (Values{3, 4, 5}));
  EXPECT_EQ(values(t.select(-1, -1)), (Values{2, 5}));
  expect_error<ShapeError>([&] { t.select(2, 0); }, "[Tensor.select] axis out of range: got 2");
  expect_error<ShapeError>([&] { t.select(1, 3); },
                           "[Tensor.select] axis 1: index out of range: got 3, expected -3 .. 2");
  expect_error<ShapeError>([&] { t.select(1, -4); }, "got -4");
}

TEST(TensorViews, NarrowTakesARange) {
  const Tensor t = counted({2, 4});
  EXPECT_EQ(values(t.narrow(1, 1, 2)), (Values{1, 2, 5, 6}));
  EXPECT_EQ(values(t.narrow(1, -1, 1)), (Values{3, 7}));
  EXPECT_EQ(t.narrow(0, 2, 0).shape(), (Extents{0, 4}));
  expect_error<ShapeError>([&] { t.narrow(1, 3, 2); },
                           "[Tensor.narrow] axis 1: range outside: got start 3 and length 2");
  expect_error<ShapeError>([&] { t.narrow(1, 5, 0); }, "range outside");
  expect_error<ShapeError>([&] { t.narrow(1, 0, -1); }, "range outside");
  constexpr index_t kMost = std::numeric_limits<index_t>::max();
  expect_error<ShapeError>([&] { t.narrow(1, 1, kMost); }, "range outside");
}

TEST(TensorViews, PermuteAndTransposeReorderAxes) {
  const Tensor t = counted({2, 3, 4});
  const Tensor p = t.permute({2, 0, -2});
  EXPECT_EQ(p.shape(), (Extents{4, 2, 3}));
  EXPECT_EQ(p.at<index_t>({3, 1, 2}), t.at<index_t>({1, 2, 3}));
  EXPECT_EQ(t.transpose(0, 1).shape(), (Extents{3, 2, 4}));
  EXPECT_EQ(t.transpose().shape(), (Extents{2, 4, 3}));
  expect_error<ShapeError>([&] { t.permute({0, 1}); }, "[Tensor.permute] every axis");
  expect_error<ShapeError>([&] { t.permute({0, 1, 1}); }, "[Tensor.permute] repeated axis");
  expect_error<ShapeError>([&] { t.permute({0, 1, 3}); }, "[Tensor.permute] axis out of range");
  expect_error<ShapeError>([&] { counted({3}).transpose(); }, "[Tensor.transpose] axis");
}

TEST(TensorViews, ExpandRepeatsWithoutCopies) {
  const Tensor t = counted({3, 1});
  const Tensor e = t.expand({2, -1, 2});
  EXPECT_EQ(e.strides(), (Strides{0, 1, 0}));
  EXPECT_EQ(values(e), (Values{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(t.expand({3, 0}).numel(), 0);
  expect_error<ShapeError>([&] { t.expand({3}); }, "[Tensor.expand] fewer axes");
  expect_error<ShapeError>([&] { t.expand({4, 1}); }, "axis 0 cannot be stretched: got (3, 1)");
  expect_error<ShapeError>([&] { t.expand({-1, 3, 1}); }, "negative extent");
  expect_error<ShapeError>([&] { t.expand(Extents(17, 1)); }, "too many axes");
  expect_error<OverflowError>([&] { t.expand({index_t{1} << 62, 3, 1}); }, "63 bits");
}

TEST(TensorViews, SqueezeAndUnsqueezeAddAndDropAxesOfOne) {
  const Tensor t = counted({3});
  EXPECT_EQ(t.unsqueeze(0).shape(), (Extents{1, 3}));
  EXPECT_EQ(t.unsqueeze(-1).shape(), (Extents{3, 1}));
  EXPECT_EQ(t.unsqueeze(1).squeeze(-1).shape(), (Extents{3}));
  expect_error<ShapeError>([&] { t.squeeze(0); },
                           "[Tensor.squeeze] axis 0: got extent 3, expected 1");
  expect_error<ShapeError>([&] { t.unsqueeze(2); }, "[Tensor.unsqueeze] axis out of range");
  expect_error<ShapeError>([] { Tensor::empty(Extents(16, 1)).unsqueeze(0); }, "too many axes");
}

TEST(TensorViews, FlipReversesAxes) {
  const Tensor t = counted({2, 3});
  EXPECT_EQ(values(t.flip(Axes{1})), (Values{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(values(t.flip(Axes{0, -1})), (Values{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(values(t.flip(Axes{0}).flip(Axes{0})), values(t));
  EXPECT_EQ(counted({0, 3}).flip(Axes{0, 1}).numel(), 0);
  // An empty tensor has no first element to move to.
  EXPECT_EQ(counted({0, 3}).flip(Axes{0, 1}).offset(), 0);
  expect_error<ShapeError>([&] { t.flip(Axes{0, -2}); }, "[Tensor.flip] repeated axis");
}

TEST(TensorViews, DiagonalWalksBothAxes) {
  const Tensor t = counted({3, 4});
  EXPECT_EQ(values(t.diagonal()), (Values{0, 5, 10}));
  EXPECT_EQ(values(t.diagonal(2)), (Values{2, 7}));
  EXPECT_EQ(values(t.diagonal(-1)), (Values{4, 9}));
  EXPECT_EQ(t.diagonal(4).numel(), 0);
  EXPECT_EQ(t.diagonal(-9).numel(), 0);
  EXPECT_EQ(values(t.diagonal(1, 1, 0)), (Values{4, 9}));
  EXPECT_EQ(counted({2, 3, 4}).diagonal(0, 0, 2).shape(), (Extents{3, 2}));
  expect_error<ShapeError>([&] { t.diagonal(0, 1, -1); }, "[Tensor.diagonal] two different axes");
}

TEST(TensorViews, UnfoldMakesWindows) {
  const Tensor t = counted({5});
  EXPECT_EQ(t.unfold(0, 3, 2).shape(), (Extents{2, 3}));
  EXPECT_EQ(values(t.unfold(0, 3, 2)), (Values{0, 1, 2, 2, 3, 4}));
  EXPECT_EQ(t.unfold(0, 5, std::numeric_limits<index_t>::max()).shape(), (Extents{1, 5}));
  expect_error<ShapeError>([&] { t.unfold(0, 6, 1); }, "[Tensor.unfold] axis 0: got size 6");
  expect_error<ShapeError>([&] { t.unfold(0, 2, 0); }, "a step of at least 1");
}

TEST(TensorViews, ViewKeepsTheOrderOrRefuses) {
  const Tensor t = counted({2, 6});
  EXPECT_EQ(values(t.view({3, -1})), values(t));
  EXPECT_EQ(t.view({3, -1}).shape(), (Extents{3, 4}));
  EXPECT_EQ(values(t(all, slice({}, {}, 2)).view({2, 3, 1})), (Values{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(counted({0, 3}).view({5, 0}).shape(), (Extents{5, 0}));
  expect_error<ShapeError>([&] { t.transpose().view({12}); },
                           "[Tensor.view] the strides allow no view: got shape (6, 2)");
  expect_error<ShapeError>([&] { t.view({5, 2}); }, "[Tensor.view] the number of elements differs");
  expect_error<ShapeError>([&] { t.view({-1, -1}); }, "more than one extent is -1");
  expect_error<ShapeError>([&] { t.view({-1, 5}); }, "the extent -1 cannot be inferred");
  expect_error<ShapeError>([&] { t.view({-2, 6}); }, "negative extent on axis 0");
  expect_error<ShapeError>([] { counted({0}).view({-1, 0}); }, "cannot be inferred");
}

TEST(TensorViews, AsStridedStaysInside) {
  const Tensor t = counted({12})(slice(4, {}));
  EXPECT_EQ(values(t.as_strided({2, 2}, {5, -1}, 2)), (Values{2, 1, 7, 6}));
  expect_error<AliasError>([&] { t.as_strided({2}, {12}, 0); }, "reaches outside");
}

// Random chains of views, compared with the same walk over nested indices.
TEST(TensorViews, ChainsShowTheElementsThatIndexArithmeticNames) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    Tensor t = counted({3, 4, 5});
    for (int step = 0; step < 5 && t.rank() > 1; ++step) {
      const auto axis = static_cast<index_t>(random() % t.rank());
      const index_t n = t.shape(axis);
      const Tensor before = t;
      switch (random() % 4) {
        case 0: {
          const auto i = static_cast<index_t>(random() % static_cast<unsigned>(n));
          t = t.select(axis, i);
          EXPECT_TRUE(equal(t, before.narrow(axis, i, 1).squeeze(axis)));
          break;
        }
        case 1: {
          const index_t start = static_cast<index_t>(random() % static_cast<unsigned>(n));
          t = t.narrow(axis, start, n - start);
          EXPECT_EQ(t.select(axis, 0).to_vector<index_t>(),
                    before.select(axis, start).to_vector<index_t>());
          break;
        }
        case 2:
          t = t.flip(Axes{axis});
          for (index_t i = 0; i < n; ++i) {
            EXPECT_TRUE(equal(t.select(axis, i), before.select(axis, n - 1 - i)));
          }
          break;
        default:
          t = t.transpose(0, axis);
          EXPECT_TRUE(equal(t.select(0, n - 1), before.transpose(0, axis).select(0, n - 1)));
      }
      EXPECT_TRUE(equal(t.clone(), t));
    }
  }
}

}  // namespace
}  // namespace palimpsest
