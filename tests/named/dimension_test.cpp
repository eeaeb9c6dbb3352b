// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/named/dimension.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <thread>
#include <unordered_map>
#include <vector>

#include "palimpsest/base/error.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(NamedDimension, SplitsTextIntoBaseAndIndexBeforeItsTrailingDigits) {
  struct Case {
    const char* text;
    const char* base;
    std::optional<int> index;
  };
  for (const Case& c :
       {Case{"Nx", "Nx", {}}, Case{"coil", "coil", {}}, Case{"Nx1", "Nx", 1}, Case{"K12", "K", 12},
        Case{"A_3", "A_", 3}, Case{"K2x", "K2x", {}}, Case{"K2x7", "K2x", 7}, Case{"A0", "A", 0},
        Case{"A2147483647", "A", 2147483647},
        Case{"\xc3\xa9t\xc3\xa9"
             "4",
             "\xc3\xa9t\xc3\xa9", 4}}) {
    const ND d(c.text);
    EXPECT_EQ(d.base(), c.base) << c.text;
    EXPECT_EQ(d.index(), c.index) << c.text;
    EXPECT_EQ(d.str(), c.text);
    EXPECT_EQ(ND(d.str()), d);
    EXPECT_TRUE(d.is_concrete());
    EXPECT_FALSE(d.is_wildcard());
  }
}

TEST(NamedDimension, IsTheSameFromBaseAndIndexAsFromText) {
  EXPECT_EQ(ND("Nx", 1), ND("Nx1"));
  EXPECT_EQ(ND("A_", 0), ND("A_0"));
  EXPECT_EQ(ND("K2x", 12).base(), "K2x");
}

TEST(NamedDimension, KnowsItsWildcards) {
  EXPECT_EQ(ND("..."), ND::ellipsis());
  EXPECT_EQ(ND("()"), ND::any());
  EXPECT_EQ(ND("(0)"), ND::any());
  EXPECT_EQ(ND("(0)").str(), "()");
  EXPECT_EQ(ND("(1)"), ND::any(1));
  EXPECT_EQ(ND::any(23).str(), "(23)");
  EXPECT_EQ(ND::any(23).index(), 23);
  EXPECT_EQ(ND(), ND::any());
  EXPECT_TRUE(ND("...").is_ellipsis());
  EXPECT_FALSE(ND("...").is_any());
  EXPECT_TRUE(ND("()").is_any());
  EXPECT_FALSE(ND("()").is_ordinal());
  EXPECT_TRUE(ND("(1)").is_ordinal());
  for (const char* text : {"...", "()", "(1)"}) {
    EXPECT_TRUE(ND(text).is_wildcard());
    EXPECT_FALSE(ND(text).is_concrete());
  }
}

TEST(NamedDimension, RefusesTextThatIsNotOneToken) {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& c : {Case{"NxNy", "starts a new dimension"},
                        Case{"AB", "starts a new dimension"},
                        Case{"", "empty"},
                        Case{" A", "unexpected character"},
                        Case{"A B", "unexpected character"},
                        Case{"A,", "unexpected character"},
                        Case{"1A", "starts with"},
                        Case{"_a", "starts with"},
                        Case{"()1", "starts with"},
                        Case{"A-", "unexpected character"},
                        Case{"()A", "starts a new dimension"},
                        Case{"A()", "a second dimension"},
                        Case{"...a", "a second dimension"},
                        Case{"A01", "leading zero"},
                        Case{"A00", "leading zero"},
                        Case{"(01)", "leading zero"},
                        Case{"A2147483648", "31 bits"},
                        Case{"(2147483648)", "31 bits"},
                        Case{"(", "parenthesis"},
                        Case{")", "parenthesis"},
                        Case{"(a)", "parenthesis"},
                        Case{"..", "ellipsis"}}) {
    EXPECT_THAT([&] { ND{c.text}; }, ThrowsMessage<ValueError>(HasSubstr(c.message))) << c.text;
  }
}

TEST(NamedDimension, RefusesABadBaseIndexOrOrdinal) {
  expect_error<ValueError>([] { ND("A1", 2); }, "ends in a digit");
  expect_error<ValueError>([] { ND("A", -1); }, "negative index");
  expect_error<ValueError>([] { ND("()", 1); }, "wildcard");
  expect_error<ValueError>([] { ND("...", 1); }, "wildcard");
  expect_error<ValueError>([] { ND("AB", 1); }, "starts a new dimension");
  expect_error<ValueError>([] { ND::any(-1); }, "negative ordinal");
}

TEST(NamedDimension, AddsToTheIndex) {
  EXPECT_EQ(ND("A") + 1, "A1");
  EXPECT_EQ(ND("Nx1") + 1, "Nx2");
  EXPECT_EQ(ND("A9") + 1, "A10");
  EXPECT_EQ(ND("A0") + 3, "A3");
  EXPECT_EQ(ND("A3") + -3, "A0");
  EXPECT_EQ(ND("A") + 0, "A");
  EXPECT_EQ(ND("(1)") + 1, "(1)");
  EXPECT_EQ(ND("()") + 1, "()");
  EXPECT_EQ(ND("...") + 1, "...");
  expect_error<ValueError>([] { ND("A") + -1; }, "below zero: got -1");
  expect_error<OverflowError>([] { ND("A2147483647") + 1; }, "31 bits: got 2147483648");
}

TEST(NamedDimension, FreshIsTheFirstThatIsNotAvoided) {
  const std::vector<ND> avoid{"A", "A1", "A3", "()", "..."};
  EXPECT_EQ(ND("A").fresh(avoid), "A2");
  EXPECT_EQ(ND("A3").fresh(avoid), "A4");
  EXPECT_EQ(ND("B").fresh(avoid), "B");
  EXPECT_EQ(ND("()").fresh(avoid), "()");
  EXPECT_EQ(ND("...").fresh(avoid), "...");
}

TEST(NamedDimension, OrdersByBaseThenIndex) {
  const std::vector<ND> ordered{"()", "(1)", "...", "A", "A0",  "A1",
                                "A2", "A10", "Ab",  "B", "coil"};
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    for (std::size_t j = 0; j < ordered.size(); ++j) {
      EXPECT_EQ(ordered[i] < ordered[j], i < j) << ordered[i] << " " << ordered[j];
      EXPECT_EQ(ordered[i] == ordered[j], i == j);
    }
  }
  EXPECT_NE(ND("A"), ND("A0"));
}

TEST(NamedDimension, ComparesWithText) {
  EXPECT_TRUE(ND("Nx1") == "Nx1");
  EXPECT_TRUE("Nx1" == ND("Nx1"));
  EXPECT_TRUE(ND("()") == "(0)");
  EXPECT_FALSE(ND("Nx") == "NxNy");
  EXPECT_TRUE(ND("Nx") != std::string("Ny"));
}

TEST(NamedDimension, AndTextFindEachOtherInMaps) {
  const std::map<ND, int> ordered{{"Nx", 1}, {"Ny", 2}};
  EXPECT_EQ(ordered.at("Nx"), 1);
  const std::unordered_map<ND, int> hashed{{"Nx", 1}, {"()", 2}};
  EXPECT_EQ(hashed.at("Nx"), 1);
  EXPECT_EQ(hashed.at("(0)"), 2);
  const std::map<std::string, int> texts{{"Nx", 3}};
  EXPECT_EQ(texts.at(ND("Nx").str()), 3);
  const std::unordered_map<std::string, int, std::hash<ND>, std::equal_to<>> by_text{{"Nx", 3}};
  EXPECT_EQ(by_text.find(ND("Nx"))->second, 3);
  EXPECT_EQ(std::hash<ND>{}("Nx1"), std::hash<std::string>{}("Nx1"));
  EXPECT_EQ(std::hash<ND>{}(std::string_view("(0)")), std::hash<ND>{}(ND::any()));
}

TEST(NamedDimension, PrintsItsText) {
  std::ostringstream stream;
  stream << ND("Nx1") << ND::ellipsis();
  EXPECT_EQ(stream.str(), "Nx1...");
}

TEST(NamedDimension, OutlivesTheTextItWasMadeOf) {
  std::string text = "temporarydimensionwithaverylongname7";
  const ND d(text);
  text.assign(text.size(), 'x');
  EXPECT_EQ(d.index(), 7);
  EXPECT_EQ(d.base(), "temporarydimensionwithaverylongname");
}

TEST(NamedDimension, IsOneValuePerTextWhateverThreadMadeIt) {
  constexpr int kThreads = 4, kNames = 200;
  std::vector<std::vector<ND>> made(kThreads);
  std::vector<std::thread> threads;
  for (auto& mine : made) {
    threads.emplace_back([&mine] {
      for (int i = 0; i < kNames; ++i) mine.push_back(ND("thread", i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : made) EXPECT_EQ(mine, made[0]);
  EXPECT_EQ(made[0][17].str(), "thread17");
}

}  // namespace
}  // namespace palimpsest
