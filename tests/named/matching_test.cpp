// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/named/matching.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "palimpsest/base/error.hpp"
#include "support/expect_texts.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

struct Row {
  const char *s, *t;
  bool ok;
  std::optional<Dims> refined;  // none: no match, or several refinements
};

std::vector<Row> table() {
  return {{"", "", true, Dims()},
          {"...", "", true, Dims()},
          {"()", "", false, {}},
          {"", "... A", false, {}},
          {"A B", "A B", true, "A B"},
          {"A C", "A", false, {}},
          {"A", "() ()", false, {}},
          {"A B", "A ()", true, "A B"},
          {"(1)", "(2)", true, "(1)"},
          {"()", "...", true, "()"},
          {"()", "... A", true, "A"},
          {"() ... ()", "A", false, {}},
          {"A C", "...", true, "A C"},
          {"A ... C", "A B C", true, "A B C"},
          {"A ... C", "A C", true, "A C"},
          {"A ...", "A", true, "A"},
          {"A", "A ... A", false, {}},
          {"A A", "A ... A", true, "A A"},
          {"... A C", "B C", false, {}},
          {"... A ...", "B C", false, {}},
          {"... A ...", "B A B", true, "B A B"},
          {"B A B", "... A ...", true, "B A B"},
          {"... A ... B", "A B C B", true, "A B C B"},
          {"A ... B", "A B A B", true, "A B A B"},
          {"A ... B", "A ... C", false, {}},
          {"... A", "B ...", true, "B ... A"},
          {"... A C ...", "... A", true, "... A C ... A"},
          {"A ...", "... A", true, {}},
          {"A ... B", "... A B", true, {}}};
}

TEST(Match, FollowsTheTable) {
  for (const Row& row : table()) {
    const Match found = match(row.s, row.t);
    EXPECT_EQ(found.ok, row.ok) << row.s << " | " << row.t;
    EXPECT_EQ(found.unique, row.refined.has_value()) << row.s << " | " << row.t;
    EXPECT_EQ(found.refined, row.refined.value_or(Dims())) << row.s << " | " << row.t;
    EXPECT_EQ(isequal(row.s, row.t), row.ok) << row.s << " | " << row.t;
    EXPECT_EQ(isequal(row.t, row.s), row.ok) << row.t << " | " << row.s;
  }
}

TEST(Match, KeepsTheAnyOfTheFirstShape) {
  EXPECT_EQ(match("()", "(2)").refined, Dim("()"));
  EXPECT_EQ(match("(2)", "()").refined, Dim("(2)"));
}

TEST(Match, CountsRoutesToOneRefinementOnce) {
  const Match found = match("... ()", "A B C");
  EXPECT_TRUE(found.unique);
  EXPECT_EQ(found.refined, Dim("A B C"));
  EXPECT_TRUE(match("...", "...").unique);
  EXPECT_EQ(match("...", "...").refined, Dim("..."));
}

TEST(Match, StaysPolynomialWhereRoutesExplode) {
  Dims s, t;
  for (int i = 0; i < 60; ++i) {
    s += "... A";
    t += "A ...";
  }
  const Match found = match(s, t);
  EXPECT_TRUE(found.ok);
  EXPECT_FALSE(found.unique);
  EXPECT_TRUE(found.refined.empty());
}

TEST(IsEqual, IsReflexiveAndNotTransitive) {
  for (const Row& row : table()) EXPECT_TRUE(isequal(row.s, row.s)) << row.s;
  EXPECT_TRUE(isequal("A", "..."));
  EXPECT_TRUE(isequal("...", "B"));
  EXPECT_FALSE(isequal("A", "B"));
}

TEST(IsCompatible, IgnoresNames) {
  EXPECT_TRUE(iscompatible("A B", "C D"));
  EXPECT_TRUE(iscompatible("A ... C", "B D"));
  EXPECT_FALSE(iscompatible("A B", "C"));
  EXPECT_FALSE(iscompatible("A ... C", "B"));
}

TEST(ResolveWildcards, TakesWhatTheOtherShapeDecides) {
  EXPECT_EQ(resolve_wildcards("... A", "B A"), Dim("B A"));
  EXPECT_EQ(resolve_wildcards("() A", "B A"), Dim("B A"));
  EXPECT_EQ(resolve_wildcards("... A", "B ..."), Dim("B ... A"));
}

TEST(ResolveWildcards, LeavesWhatItCannotDecide) {
  EXPECT_EQ(resolve_wildcards("A B", "..."), Dim("A B")) << "no wildcard";
  EXPECT_EQ(resolve_wildcards("... A", "B"), Dim("... A")) << "no match";
  EXPECT_EQ(resolve_wildcards("A ...", "... A"), Dim("A ...")) << "not unique";
}

TEST(MaxShape, TakesTheHighestIndexOfEveryBase) {
  EXPECT_EQ(max_shape({"A B1", "A2 B", "A1 B"}), Dim("A2 B1"));
  EXPECT_EQ(max_shape({"A", "A0"}), Dim("A0"));
  EXPECT_EQ(max_shape({"A10", "A9"}), Dim("A10"));
  EXPECT_EQ(max_shape({"A B"}), Dim("A B"));
}

TEST(MaxShape, LetsWildcardsGiveWay) {
  EXPECT_EQ(max_shape({"...", "A B", "A1 ()"}), Dim("A1 B"));
  EXPECT_EQ(max_shape({"() B", "A ..."}), Dim("A B"));
}

TEST(MaxShape, TakesTheHighestOfAllMatchesOfOneRefinement) {
  EXPECT_EQ(max_shape({"... A3 ...", "A A1"}), Dim("A3 A3"));
}

TEST(MaxShape, RefusesWhatDoesNotFit) {
  expect_error<ShapeError>([] { max_shape({"A B", "A C"}); }, "incompatible", {"(A, B)", "(A, C)"});
  expect_error<ShapeError>([] { max_shape({"A1 ...", "... A"}); }, "ambiguous");
  expect_error<ValueError>([] { max_shape({}); }, "at least one");
}

}  // namespace
}  // namespace palimpsest
