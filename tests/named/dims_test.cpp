// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/named/dims.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "palimpsest/base/error.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using ::testing::AllOf;
using testing::expect_error;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Dim, ParsesTheExamples) {
  EXPECT_EQ(Dim("ABCD"), (Dims{"A", "B", "C", "D"}));
  EXPECT_EQ(Dim("NxNyNz"), (Dims{"Nx", "Ny", "Nz"}));
  EXPECT_EQ(Dim("A1B2Kx1Ky2"), (Dims{"A1", "B2", "Kx1", "Ky2"}));
  EXPECT_EQ(Dim("()A()B"), (Dims{"()", "A", "()", "B"}));
  EXPECT_EQ(Dim("coil x y"), (Dims{"coil", "x", "y"}));
  EXPECT_EQ(Dim("abC"), (Dims{"ab", "C"}));
}

TEST(Dim, ParsesSeparatorsAndWildcards) {
  EXPECT_EQ(Dim(""), Dims());
  EXPECT_EQ(Dim(" ,\t\n"), Dims());
  EXPECT_EQ(Dim("A, B ,C"), Dim("ABC"));
  EXPECT_EQ(Dim("...(12)a(0)"), (Dims{"...", "(12)", "a", "()"}));
  EXPECT_EQ(Dim("A...b"), (Dims{"A", "...", "b"}));
  EXPECT_EQ(Dim("\xc3\xa4 K2xA_3"), (Dims{"\xc3\xa4", "K2x", "A_3"}));
}

TEST(Dim, ErrorsNameTextAndPosition) {
  struct Case {
    const char* text;
    const char* message;
    int position;
  };
  for (const Case& c : {Case{"1A", "starts with", 0},      Case{"A _b", "starts with", 2},
                        Case{"A()2", "starts with", 3},    Case{"A...3", "starts with", 4},
                        Case{"A(", "parenthesis", 1},      Case{"A)", "parenthesis", 1},
                        Case{"((1))", "parenthesis", 0},   Case{"A (x)", "parenthesis", 2},
                        Case{"( )", "parenthesis", 0},     Case{"(-1)", "parenthesis", 0},
                        Case{"(1", "parenthesis", 0},      Case{".", "ellipsis", 0},
                        Case{"A..B", "ellipsis", 1},       Case{"....", "ellipsis", 0},
                        Case{"......", "ellipsis", 0},     Case{"A-B", "character", 1},
                        Case{"A+", "character", 1},        Case{"A\x01", "character", 1},
                        Case{"A\x7f", "character", 1},     Case{"A01", "leading zero", 1},
                        Case{"BA_00", "leading zero", 3},  Case{"(01)", "leading zero", 1},
                        Case{"A99999999999", "31 bits", 1}}) {
    EXPECT_THAT(
        [&] { Dim(c.text); },
        ThrowsMessage<ValueError>(AllOf(
            HasSubstr(c.message), HasSubstr("at position " + std::to_string(c.position) + ":"))))
        << c.text;
  }
  expect_error<ValueError>([] { Dim("Nx-Ny"); }, "Nx-Ny");
  expect_error<ValueError>([] { Dim(std::string_view("A\0B", 3)); }, "\"A\\x00B\"");
}

TEST(Dims, ConvertsFromTextDimensionsAndLists) {
  const auto length = [](const Dims& dims) { return dims.size(); };
  EXPECT_EQ(length("NxNy"), 2u);
  EXPECT_EQ(length(std::string("NxNyNz")), 3u);
  EXPECT_EQ(length({"Nx", "Ny"}), 2u);
  EXPECT_EQ(length({"Nx"}), 1u);
  EXPECT_EQ(length({}), 0u);
  EXPECT_EQ(length(ND("Nx")), 1u);
  EXPECT_EQ(length(std::vector<ND>{"A", "B", "C"}), 3u);
  // Each element of a brace list is one dimension.
  expect_error<ValueError>([&] { length({"NxNy"}); }, "starts a new dimension");
}

TEST(Dims, MergesAdjacentEllipses) {
  EXPECT_EQ(Dim("... ..."), Dim("..."));
  EXPECT_EQ((Dims{"...", "...", "A", "..."}), Dim("... A ..."));
  EXPECT_EQ(Dim("A...") + Dim("...B"), Dim("A...B"));
  EXPECT_EQ(Dim("A...B...").without("B"), Dim("A..."));
  EXPECT_EQ(Dim("...A").replaced("A", "...B"), Dim("...B"));
  EXPECT_EQ(Dim("...A").renamed({{"A", "..."}}), Dim("..."));
  Dims dims("...");
  dims += dims;
  EXPECT_EQ(dims.size(), 1u);
}

TEST(Dims, GrowsBeyondItsInlineTokens) {
  const Dims dims = numbered("A", 40);
  EXPECT_EQ(dims.size(), 40u);
  EXPECT_EQ(dims[39], "A40");
  Dims twice = dims;
  twice += twice;
  EXPECT_EQ(twice.size(), 80u);
  EXPECT_EQ(twice[40], "A1");
}

TEST(Dims, AnswersWhatItHolds) {
  const Dims dims("A B A");
  EXPECT_TRUE(dims.contains("A"));
  EXPECT_FALSE(dims.contains("C"));
  EXPECT_EQ(dims.index_of("A"), 0u);
  EXPECT_EQ(dims.index_of("B"), 1u);
  EXPECT_EQ(dims.index_of("C"), std::nullopt);
  EXPECT_EQ(dims.count("A"), 2u);
  EXPECT_FALSE(dims.has_wildcard());
  EXPECT_TRUE(Dim("A()").has_wildcard());
  EXPECT_FALSE(Dim("A()").has_ellipsis());
  EXPECT_TRUE(Dim("A...").has_ellipsis());
  EXPECT_EQ(dims.front(), "A");
  EXPECT_EQ(dims.slice(1, 3), Dim("BA"));
  EXPECT_TRUE(dims.slice(1, 1).empty());
}

TEST(Dims, RenamesAllAtOnce) {
  EXPECT_EQ(Dim("A B C").renamed({{"A", "B"}, {"B", "A"}}), Dim("B A C"));
}

TEST(Dims, PrintsAsATuple) {
  EXPECT_EQ(Dims().str(), "()");
  EXPECT_EQ(Dim("A").str(), "(A)");
  EXPECT_EQ(Dim("A...()").str(), "(A, ..., ())");
  EXPECT_EQ(arrow("AB", "C"), "(A, B) -> (C)");
  std::ostringstream stream;
  stream << Dim("AB");
  EXPECT_EQ(stream.str(), "(A, B)");
}

TEST(SpatialDims, AreTheFirstOfThree) {
  EXPECT_EQ(spatial_dims(1), Dim("Nx"));
  EXPECT_EQ(spatial_dims(3), Dim("NxNyNz"));
  EXPECT_EQ(spatial_dims(2, true), Dim("KxKy"));
  for (int n : {-1, 0, 4}) {
    expect_error<ValueError>([n] { spatial_dims(n); }, "got " + std::to_string(n));
  }
}

TEST(Numbered, CountsFromOne) {
  EXPECT_EQ(numbered("A", 3), Dim("A1A2A3"));
  EXPECT_TRUE(numbered("A", 0).empty());
  expect_error<ValueError>([] { numbered("A", -1); }, "got -1");
  expect_error<ValueError>([] { numbered("A1", 2); }, "digit");
}

TEST(Partition, CutsAtTheFirst) {
  const Partition parts = partition("A B C B D", "B");
  EXPECT_EQ(parts.before, Dim("A"));
  EXPECT_EQ(parts.at, Dim("B"));
  EXPECT_EQ(parts.after, Dim("C B D"));
  const Partition absent = partition("A B", "C");
  EXPECT_EQ(absent.before, Dim("AB"));
  EXPECT_TRUE(absent.at.empty());
  EXPECT_TRUE(absent.after.empty());
}

TEST(Unite, KeepsTheFirstOfEach) {
  EXPECT_EQ(unite("A B", "C B D"), Dim("A B C D"));
  EXPECT_EQ(unite("... A", "B ..."), Dim("... A B"));
}

}  // namespace
}  // namespace palimpsest
