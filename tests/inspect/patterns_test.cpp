// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/inspect/debug/patterns.hpp"

#include <gtest/gtest.h>

#include <set>

#include "palimpsest/inspect/debug/byte_sets.hpp"

namespace palimpsest {
namespace {

std::vector<Pattern> patterns(std::vector<std::string> names, const Extents& extents,
                              int ndim = 4) {
  const DebugOptions options{.preallocated = std::move(names), .preallocated_ndim = ndim};
  const Layout layouts[] = {Layout::dense(DType::float64, extents)};
  return patterns_for(options, layouts);
}

TEST(Patterns, StridedAreAllSignsAndSteps) {
  EXPECT_EQ(patterns({"strided"}, {3}).size(), 3U);
  EXPECT_EQ(patterns({"strided"}, {3, 2}).size(), 15U);
  EXPECT_EQ(patterns({"strided"}, {3, 2}, 1).size(), 3U);
  EXPECT_EQ(patterns({"strided"}, {}).size(), 0U);
  std::set<std::vector<index_t>> seen;
  for (const Pattern& p : patterns({"strided"}, {3, 2})) {
    const Strides& strides = p.destinations[0].layout.strides;
    EXPECT_TRUE(seen.insert({strides.begin(), strides.end()}).second) << p.name;
  }
}

TEST(Patterns, ElementsNeverOverlap) {
  for (const Pattern& p : patterns({"ALL"}, {3, 2, 2})) {
    const Layout& layout = p.destinations[0].layout;
    const ByteMask mask = mask_of(layout);
    const auto covered = std::count(mask.begin(), mask.end(), true);
    EXPECT_EQ(covered, byte_count(layout.extents, layout.dtype)) << p.name;
  }
}

TEST(Patterns, AllOfThemHaveNames) {
  std::set<std::string> names;
  for (const Pattern& p : patterns({"ALL"}, {3, 2})) names.insert(p.name);
  for (const char* const name :
       {"initial", "previous", "c_contiguous", "f_contiguous", "unaligned", "strided (2, -1)",
        "wrong_size (longer)", "wrong_size (shorter)"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(Patterns, ColumnMajorUnalignedAndResizedAreWhatTheySay) {
  EXPECT_EQ(patterns({"f_contiguous"}, {3, 2})[0].destinations[0].layout.strides, (Strides{1, 3}));
  EXPECT_EQ(patterns({"unaligned"}, {3})[0].destinations[0].lead, 8);
  EXPECT_EQ(patterns({"wrong_size"}, {3, 1})[0].destinations[0].layout.extents, (Extents{4, 2}));
  EXPECT_EQ(patterns({"wrong_size"}, {3, 1})[1].destinations[0].layout.extents, (Extents{2, 0}));
}

}  // namespace
}  // namespace palimpsest
