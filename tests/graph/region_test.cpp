// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/region.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "graph/toy_ops.hpp"

namespace palimpsest {
namespace {

using toy::slice;
const TensorType kUnknownType{DType::float64, {kUnknown}, {}};

TEST(Region, SlicesMeetWhereTheyShareAnElement) {
  EXPECT_FALSE(slice(0, 3).meets(slice(3, 3), kUnknownType));
  EXPECT_TRUE(slice(0, 4).meets(slice(3, 3), kUnknownType));
  EXPECT_FALSE(slice(0, 5, 2).meets(slice(1, 5, 2), kUnknownType));
  EXPECT_TRUE(slice(0, 5, 2).meets(slice(8, 3, -1), kUnknownType));
  EXPECT_TRUE(Region::whole().meets(slice(0, 1), kUnknownType));
  EXPECT_TRUE(Region::unknown().meets(slice(0, 1), kUnknownType));
  EXPECT_FALSE(slice(2, 0).meets(Region::whole(), kUnknownType));
}

// start:stop:step, in the notation of an index.
TEST(Region, PrintsAsAnIndex) {
  EXPECT_EQ(slice(2, 2).str(), "[2:4]");
  EXPECT_EQ(slice(0, 3, 2).str(), "[0:6:2]");
  EXPECT_EQ(slice(5, 3, -2).str(), "[5::-2]");
  EXPECT_EQ(slice(5, 2, -1).str(), "[5:3:-1]");
  EXPECT_EQ(slice(3, 0).str(), "[3:3]");
  EXPECT_EQ(Region::lattice(8, {{3, 16}}, 8).str(), "bytes 8 + (3 x 16) of 8");
  EXPECT_EQ(Region::whole().str(), "whole");
}

TEST(Region, SlicesOfSlicesCompose) {
  EXPECT_EQ(slice(1, 2).within(slice(0, 3, 2), kUnknownType), slice(2, 2, 2));
  EXPECT_EQ(slice(0, 6, 1).within(slice(5, 6, -1), kUnknownType), slice(5, 6, -1));
  EXPECT_EQ(slice(1, 2).within(Region::whole(), kUnknownType), slice(1, 2));
  EXPECT_TRUE(slice(1, 2).within(Region::unknown(), kUnknownType).is_unknown());
  const Region outside = slice(2, 2).within(slice(0, 3), kUnknownType);
  EXPECT_FALSE(outside.is_exact());
  EXPECT_FALSE(outside.meets(slice(3, 3), kUnknownType));
  EXPECT_FALSE(
      Region::unknown().within(slice(0, 3), kUnknownType).meets(slice(3, 3), kUnknownType));
  EXPECT_FALSE(slice(0, 1).within(outside, kUnknownType).is_exact());
}

TEST(Region, TransposedAxesKeepTheirRanges) {
  const TensorType type{DType::float64, {kUnknown, kUnknown}, {}};
  const Region transposed = Region::box({{0, 1, kUnknown, 1}, {0, 1, kUnknown, 0}}, 2);
  const Region rows = Region::box({{0, 1, 2, 0}, {0, 1, kUnknown, 1}}, 2);
  const Region columns = Region::box({{0, 1, kUnknown, 0}, {3, 1, 2, 1}}, 2);
  EXPECT_FALSE(rows.within(transposed, type).meets(columns, type));
  EXPECT_TRUE(rows.within(transposed, type).meets(rows, type));
  EXPECT_FALSE(columns.within(transposed, type).meets(Region::box({{0, 1, 2, 0}, {}}, 1), type));
}

TEST(Region, RealAndImaginaryPartsDoNotMeet) {
  const TensorType type{DType::complex128, {4}, {}};
  const Region real = Region::lattice(0, {{4, 16}}, 8), imag = Region::lattice(8, {{4, 16}}, 8);
  EXPECT_FALSE(real.meets(imag, type));
  EXPECT_TRUE(real.meets(Region::lattice(0, {{4, 16}}, 16), type));
  EXPECT_FALSE(slice(0, 2).within(imag, type).meets(real, type));
}

TEST(Region, CoversSaysYesOnlyWhereItIsSo) {
  EXPECT_TRUE(Region::whole().covers(slice(0, 3)));
  EXPECT_TRUE(slice(0, 6).covers(slice(1, 2, 2)));
  EXPECT_FALSE(slice(0, 3).covers(slice(1, 3)));
  EXPECT_FALSE(slice(0, 3, 2).covers(slice(0, 2)));
  EXPECT_TRUE(slice(0, 3).covers(slice(2, 3, -1)));
  EXPECT_FALSE(slice(0, 3).covers(Region::whole()));
}

// Chains of random views of a dense array, tracked element by element.
class Followed {
 public:
  Followed(std::mt19937_64& random, Extents parent)
      : random_(&random), extents_(std::move(parent)) {
    for (index_t e = 0; e < element_count(extents_); ++e) elements_.push_back(e);
  }

  void view() {
    Layout layout = Layout::dense(DType::float64, extents_);
    switch (pick(3)) {
      case 0: {  // a slice of one axis, perhaps backwards
        const std::size_t k = pick(extents_.size());
        const index_t n = extents_[k];
        const index_t step = 1 + static_cast<index_t>(pick(2));
        const index_t first = static_cast<index_t>(pick(static_cast<std::size_t>(n)));
        const index_t count =
            1 + static_cast<index_t>(pick(static_cast<std::size_t>((n - 1 - first) / step + 1)));
        const bool is_back = pick(2) == 0;
        const index_t start = is_back ? first + step * (count - 1) : first;
        layout.byte_offset = start * layout.strides[k] * 8;
        layout.strides[k] *= is_back ? -step : step;
        layout.extents[k] = count;
        break;
      }
      case 1:  // a transposition
        std::swap(layout.extents.front(), layout.extents.back());
        std::swap(layout.strides.front(), layout.strides.back());
        break;
      default: {  // a reshape
        const Extents shape{element_count(extents_)};
        layout = Layout::dense(DType::float64, shape);
      }
    }
    std::vector<index_t> shown;
    for_each(layout, 0, layout.byte_offset / 8, shown);
    region_ = Region::of(layout).within(region_, {});
    extents_ = layout.extents;
    for (index_t& e : shown) e = elements_[static_cast<std::size_t>(e)];
    elements_ = std::move(shown);
  }

  const Region& region() const { return region_; }
  std::set<index_t> elements() const { return {elements_.begin(), elements_.end()}; }

 private:
  std::size_t pick(std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(*random_);
  }
  void for_each(const Layout& layout, std::size_t axis, index_t offset,
                std::vector<index_t>& out) const {
    if (axis == layout.extents.size()) {
      out.push_back(offset);
      return;
    }
    for (index_t i = 0; i < layout.extents[axis]; ++i) {
      for_each(layout, axis + 1, offset + i * layout.strides[axis], out);
    }
  }

  std::mt19937_64* random_;
  Extents extents_;
  std::vector<index_t> elements_;
  Region region_ = Region::whole();
};

TEST(Region, ChainsOfViewsAreFollowedExactly) {
  std::mt19937_64 random(7);
  const TensorType type{DType::float64, {4, 3, 2}, {}};
  int n_exact = 0, n_disjoint = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    Followed a(random, type.shape), b(random, type.shape);
    for (int k = 0; k < 3; ++k) {
      a.view();
      b.view();
    }
    std::vector<index_t> common;
    const std::set<index_t> x = a.elements(), y = b.elements();
    std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(common));
    const bool answer = a.region().meets(b.region(), type);
    if (!common.empty()) {
      EXPECT_TRUE(answer) << a.region().str() << " " << b.region().str();
    }
    if (!a.region().is_exact() || !b.region().is_exact()) continue;
    ++n_exact;
    n_disjoint += common.empty() ? 1 : 0;
    EXPECT_EQ(answer, !common.empty()) << a.region().str() << " " << b.region().str();
    if (a.region().covers(b.region())) {
      EXPECT_TRUE(std::includes(x.begin(), x.end(), y.begin(), y.end()));
    }
  }
  EXPECT_GT(n_exact, 1000);
  EXPECT_GT(n_disjoint, 300);
}

}  // namespace
}  // namespace palimpsest
