// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/named/sizes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "palimpsest/base/error.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using ::testing::AllOf;
using testing::expect_error;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

TEST(Bind, GivesEveryNameItsSize) {
  const DimSizes sizes = bind("A ... B", {3, 4, 5, 6});
  EXPECT_EQ(sizes.size("A"), 3);
  EXPECT_EQ(sizes.size("B"), 6);
  EXPECT_EQ(sizes["..."], (Extents{4, 5}));
  EXPECT_EQ(sizes["A"], (Extents{3}));
  EXPECT_EQ(sizes.size("..."), std::nullopt);
  EXPECT_EQ(sizes.size("C"), std::nullopt);
  EXPECT_EQ(sizes.str(), "{...: (4, 5), A: 3, B: 6}");
}

TEST(Bind, LetsTheEllipsisBeEmpty) {
  EXPECT_EQ(bind("A ...", {3})["..."], Extents());
  EXPECT_EQ(bind("", {}), DimSizes());
  EXPECT_EQ(bind("...", {})["..."], Extents());
}

TEST(Bind, RecordsOrdinalButNotAnonymousAnys) {
  const DimSizes sizes = bind("() (1) () (1)", {3, 4, 5, 4});
  EXPECT_EQ(sizes.entries().size(), 1u);
  EXPECT_EQ(sizes.size("(1)"), 4);
  expect_error<ShapeError>([] { bind("(1) (1)", {3, 4}); }, "'(1)'");
}

TEST(Bind, HoldsKnownSizesToTheirWord) {
  const DimSizes known = bind("... K", {2, 3, 40});
  const DimSizes both = bind("... M", {2, 3, 7}, known);
  EXPECT_EQ(both.size("K"), 40);
  EXPECT_EQ(both.size("M"), 7);
  EXPECT_THAT(
      [&] {
        bind("N K", {3, 32}, known, "Dense");
      },
      ThrowsMessage<ShapeError>(AllOf(StartsWith("[Dense]"), HasSubstr("(N, K)"),
                                      HasSubstr("size of dim 'K': expected 40, got 32"))));
  expect_error<ShapeError>(
      [&] {
        bind("... K", {2, 4, 40}, known);
      },
      "size of dim '...': expected (2, 3), got (2, 4)");
}

TEST(Bind, RefusesOneNameWithTwoSizes) {
  EXPECT_EQ(bind("A A", {3, 3}).size("A"), 3);
  EXPECT_THAT(
      [] {
        bind("A A", {3, 4}, {}, "Diagonal");
      },
      ThrowsMessage<ShapeError>(
          AllOf(StartsWith("[Diagonal]"), HasSubstr("size of dim 'A': expected 3, got 4"))));
}

TEST(Bind, RefusesAnotherNumberOfAxes) {
  EXPECT_THAT(
      [] { bind("A B", {3}, {}, "Fft"); },
      ThrowsMessage<ShapeError>(AllOf(
          StartsWith("[Fft]"), HasSubstr("(A, B) expects 2 axes: got 1"), HasSubstr("(3,)"))));
  expect_error<ShapeError>([] { bind("A B", {3, 4, 5}); }, "expects 2");
  expect_error<ShapeError>([] { bind("A ... B", {3}); }, "expects at least 2 axes: got 1");
  expect_error<ShapeError>([] { bind("A", {}); }, "expects 1 axis: got 0");
}

TEST(Bind, CannotInferTwoEllipses) {
  expect_error<ShapeError>([] { bind("... A ...", {3}); }, "Cannot infer");
}

TEST(ExtentsOf, IsTheInverseOfBind) {
  const Extents extents{3, 4, 5, 6};
  const DimSizes sizes = bind("A ... B", extents);
  EXPECT_EQ(extents_of("A ... B", sizes), extents);
  EXPECT_EQ(extents_of("B ...", sizes), (Extents{6, 4, 5}));
  EXPECT_EQ(extents_of("... A", DimSizes{{"A", 3}}), (Extents{3})) << "no size: empty";
  EXPECT_THAT([&] { extents_of("A C", sizes, "Pad"); },
              ThrowsMessage<ShapeError>(
                  AllOf(StartsWith("[Pad]"), HasSubstr("size of dim 'C' is unknown"))));
}

TEST(DimSizes, HoldsWhatItIsGiven) {
  DimSizes sizes{{"A", 3}};
  sizes.set("A", 4);
  sizes.set("(1)", 5);
  sizes.set_ellipsis({1, 2});
  EXPECT_EQ(sizes.size("A"), 4);
  EXPECT_TRUE(sizes.contains("..."));
  EXPECT_FALSE(sizes.empty());
  EXPECT_EQ(DimSizes(std::map<ND, index_t>{{"A", 4}}), (DimSizes{{"A", 4}}));
  expect_error<ValueError>([&] { sizes.set("...", 1); }, "one dimension");
  expect_error<ValueError>([&] { sizes.set("()", 1); }, "one dimension");
  expect_error<ShapeError>([&] { sizes["B"]; }, "'B' is unknown");
}

TEST(AxisOf, CountsFromTheSideWithoutEllipsis) {
  EXPECT_EQ(axis_of("A B C", "B"), 1);
  EXPECT_EQ(axis_of("A ... B C", "A"), 0);
  EXPECT_EQ(axis_of("A ... B C", "B"), -2);
  EXPECT_EQ(axis_of("A ... B C", "C"), -1);
}

TEST(AxisOf, RefusesWhatHasNoAxis) {
  EXPECT_THAT([] { axis_of("A B", "C", "Split"); },
              ThrowsMessage<ShapeError>(
                  AllOf(StartsWith("[Split]"), HasSubstr("'C'"), HasSubstr("(A, B)"))));
  expect_error<ShapeError>([] { axis_of("... A ...", "A"); }, "Cannot infer");
  expect_error<ShapeError>([] { axis_of("A ...", "..."); }, "Cannot infer");
}

}  // namespace
}  // namespace palimpsest
