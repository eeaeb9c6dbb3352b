// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/shape.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <vector>

#include "support/expect_texts.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

constexpr index_t kHuge = index_t{1} << 40;
constexpr index_t kMax = std::numeric_limits<index_t>::max();
constexpr index_t kMin = std::numeric_limits<index_t>::min();

// The offsets of all elements in row-major order.
std::vector<index_t> offsets_of(const Extents& extents, const Strides& strides) {
  std::vector<index_t> offsets{0};
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    std::vector<index_t> next;
    for (index_t offset : offsets) {
      for (index_t k = 0; k < extents[axis]; ++k) next.push_back(offset + k * strides[axis]);
    }
    offsets = std::move(next);
  }
  return offsets;
}

TEST(ElementCount, MultipliesExtents) {
  EXPECT_EQ(element_count(Extents{}), 1);
  EXPECT_EQ(element_count(Extents{3, 4}), 12);
  EXPECT_EQ(element_count(Extents{kHuge, 0, kHuge}), 0) << "whatever the others are";
  EXPECT_EQ(byte_count(Extents{3}, DType::complex128), 48);
}

TEST(ElementCount, RefusesNegativeAndTooMany) {
  expect_error<ShapeError>([] { element_count(Extents{3, -1}); }, "(3, -1)");
  expect_error<ShapeError>([] { element_count(Extents{0, -1}); }, "-1");
  expect_error<OverflowError>([] { element_count(Extents{kHuge, kHuge}); }, "63 bits");
  EXPECT_EQ(element_count(Extents{kMax}), kMax);
  expect_error<OverflowError>([] { byte_count(Extents{kMax}, DType::int16); }, "63 bits");
}

TEST(Checked, ArithmeticThrowsInsteadOfWrapping) {
  EXPECT_EQ(checked_add(kMax - 1, 1), kMax);
  EXPECT_EQ(checked_multiply(-3, 4), -12);
  EXPECT_THROW(checked_add(kMax, 1), OverflowError);
  EXPECT_THROW(checked_add(kMin, -1), OverflowError);
  EXPECT_THROW(checked_multiply(kMin, -1), OverflowError);
}

TEST(ContiguousStrides, AreRowMajor) {
  EXPECT_EQ(contiguous_strides(Extents{}), Strides());
  EXPECT_EQ(contiguous_strides(Extents{2, 3, 4}), (Strides{12, 4, 1}));
  EXPECT_EQ(contiguous_strides(Extents{2, 0, 4}), (Strides{4, 4, 1}));
  EXPECT_THROW(contiguous_strides(Extents{kHuge, kHuge}), OverflowError);
}

TEST(IsContiguous, IgnoresAxesOfOneElement) {
  EXPECT_TRUE(is_contiguous(Extents{}, Strides{}));
  EXPECT_TRUE(is_contiguous(Extents{2, 1, 3}, Strides{3, 99, 1}));
  EXPECT_FALSE(is_contiguous(Extents{2, 3}, Strides{4, 1}));
  EXPECT_FALSE(is_contiguous(Extents{2, 3}, Strides{1, 2}));
  EXPECT_FALSE(is_contiguous(Extents{2}, Strides{0}));
}

TEST(IsContiguous, HoldsWhereThereAreNoElements) {
  EXPECT_TRUE(is_contiguous(Extents{0, 3}, Strides{1, 7}));
  EXPECT_TRUE(is_contiguous(Extents{3, 0}, Strides{1, 7}));
}

TEST(BroadcastExtents, StretchesOnesFromTheRight) {
  EXPECT_EQ(broadcast_extents(Extents{3, 1}, Extents{4}, "add"), (Extents{3, 4}));
  EXPECT_EQ(broadcast_extents(Extents{}, Extents{2, 3}, "add"), (Extents{2, 3}));
  EXPECT_EQ(broadcast_extents(Extents{1}, Extents{0}, "add"), (Extents{0}));
  expect_error<ShapeError>(
      [] {
        broadcast_extents(Extents{2, 3}, Extents{2}, "add");
      },
      "[add]", {"axis 1", "(2, 3) and (2,)"});
  EXPECT_THROW(broadcast_extents(Extents{0}, Extents{2}, "add"), ShapeError);
}

TEST(NormalizeAxis, CountsFromTheFront) {
  EXPECT_EQ(normalize_axis(0, 3, "sum"), 0);
  EXPECT_EQ(normalize_axis(-1, 3, "sum"), 2);
  EXPECT_EQ(normalize_axis(-3, 3, "sum"), 0);
  for (index_t axis : {index_t{3}, index_t{-4}, kMax, kMin}) {
    expect_error<ShapeError>([=] { normalize_axis(axis, 3, "sum"); }, "[sum]",
                             {"expected -3..2", "got " + std::to_string(axis)});
  }
  expect_error<ShapeError>([] { normalize_axis(0, 0, "sum"); }, "expected none, as the rank is 0");
}

TEST(NormalizeAxes, SortsAndRefusesRepetitions) {
  EXPECT_EQ(normalize_axes(Axes{-1, 0}, 3, "sum"), (Axes{0, 2}));
  EXPECT_TRUE(normalize_axes(Axes{}, 3, "sum").empty());
  expect_error<ShapeError>([] { normalize_axes(Axes{2, -1}, 3, "sum"); }, "repeated", {"(2, -1)"});
  expect_error<ShapeError>([] { normalize_axes(Axes{5}, 3, "sum"); }, "out of range");
}

TEST(ReachedRange, SpansFromTheLowestToTheHighest) {
  const auto range = [](const Extents& extents, const Strides& strides) {
    const ReachedRange reached = reached_range(extents, strides);
    return std::pair(reached.low, reached.high);
  };
  EXPECT_EQ(range({}, {}), std::pair(index_t{0}, index_t{1}));
  EXPECT_EQ(range({2, 3}, {3, 1}), std::pair(index_t{0}, index_t{6}));
  EXPECT_EQ(range({2, 3}, {-3, 1}), std::pair(index_t{-3}, index_t{3}));
  EXPECT_EQ(range({5}, {0}), std::pair(index_t{0}, index_t{1}));
  EXPECT_EQ(range({kHuge, 0}, {kHuge, 1}), std::pair(index_t{0}, index_t{0}));
  EXPECT_THROW(range({kHuge}, {kHuge}), OverflowError);
}

TEST(ToString, PrintsATuple) {
  EXPECT_EQ(to_string(Extents{}), "()");
  EXPECT_EQ(to_string(Extents{3}), "(3,)");
  EXPECT_EQ(to_string(Extents{3, -4}), "(3, -4)");
}

// The strides that reach the same elements in the same order, found by trying; none if there are
// none.
std::optional<Strides> expected_view(const Extents& extents, const Strides& strides,
                                     const Extents& new_extents) {
  const std::vector<index_t> offsets = offsets_of(extents, strides);
  Strides result(new_extents.size());
  std::size_t step = 1;
  for (std::size_t axis = new_extents.size(); axis-- > 0;) {
    if (new_extents[axis] > 1) result[axis] = offsets[step] - offsets[0];
    step *= static_cast<std::size_t>(new_extents[axis]);
  }
  if (offsets_of(new_extents, result) != offsets) return std::nullopt;
  return result;
}

void check_views(const Extents& extents, const Strides& strides) {
  const std::vector<index_t> offsets = offsets_of(extents, strides);
  const auto n = static_cast<index_t>(offsets.size());
  for (index_t a = 1; a <= n; ++a) {
    for (index_t b = 1; a * b <= n; ++b) {
      if (n % (a * b) != 0) continue;
      for (const Extents& wanted : {Extents{a, b, n / (a * b)}, Extents{a, 1, b, n / (a * b), 1}}) {
        Strides found;
        const bool possible = expected_view(extents, strides, wanted).has_value();
        EXPECT_EQ(view_strides(extents, strides, wanted, found), possible)
            << to_string(extents) << to_string(strides) << to_string(wanted);
        EXPECT_TRUE(!possible || offsets_of(wanted, found) == offsets) << to_string(wanted);
      }
    }
  }
}

TEST(ViewStrides, ExistExactlyWhereTheElementsAllowIt) {
  const std::vector<index_t> steps{-12, -4, -1, 0, 1, 2, 3, 4, 6, 12};
  for (index_t first : {1, 2, 3}) {
    for (index_t second : {1, 2, 4}) {
      for (index_t s : steps) {
        for (index_t t : steps) {
          check_views({first, second}, {s, t});
          check_views({first, second, 3}, {s, t, 1});
          check_views({2, first, second}, {12, s, t});
        }
      }
    }
  }
}

TEST(ViewStrides, RefuseAnotherNumberOfElements) {
  Strides found;
  EXPECT_FALSE(view_strides(Extents{6}, Strides{1}, Extents{4}, found));
  EXPECT_FALSE(view_strides(Extents{}, Strides{}, Extents{2}, found));
  EXPECT_FALSE(view_strides(Extents{0}, Strides{1}, Extents{}, found));
  EXPECT_THROW(view_strides(Extents{6}, Strides{1}, Extents{-6, -1}, found), ShapeError);
}

TEST(ViewStrides, OfNoElementsAlwaysExist) {
  Strides found;
  EXPECT_TRUE(view_strides(Extents{0, 3}, Strides{1, 5}, Extents{4, 0, 2}, found));
  EXPECT_EQ(found, contiguous_strides(Extents{4, 0, 2}));
  EXPECT_TRUE(view_strides(Extents{}, Strides{}, Extents{1, 1}, found));
  EXPECT_EQ(found.size(), 2u);
}

}  // namespace
}  // namespace palimpsest
