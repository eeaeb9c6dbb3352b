// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/named/alignment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace palimpsest::named {
namespace {

std::string spelled(const Dims& old_dims, const Dims& new_dims) {
  const auto alignment = align(old_dims, new_dims);
  if (!alignment) return "none";
  std::string text;
  for (const auto& [from, to] : pairs(*alignment, old_dims, new_dims)) {
    if (!text.empty()) text += " ";
    text += from.str() + ">" + to.str();
  }
  return text;
}

TEST(Align, PairsTokensInOrder) {
  EXPECT_EQ(spelled("", ""), "");
  EXPECT_EQ(spelled("A B", "C D"), "A>C B>D");
  EXPECT_EQ(spelled("A ()", "(1) D"), "A>(1) ()>D");
  EXPECT_EQ(spelled("A B", "C"), "none");
  EXPECT_EQ(spelled("A", "C D"), "none");
}

TEST(Align, LetsAnEllipsisTakeTokensUp) {
  EXPECT_EQ(spelled("...", "A B"), "");
  EXPECT_EQ(spelled("A B", "..."), "");
  EXPECT_EQ(spelled("A ... B", "C X Y D"), "A>C B>D");
  EXPECT_EQ(spelled("A ... B", "C D"), "A>C B>D");
  EXPECT_EQ(spelled("A ... B", "C"), "none");
  EXPECT_EQ(spelled("A B C", "X ..."), "A>X");
}

TEST(Align, PrefersMostPairsOfEqualTokens) {
  EXPECT_EQ(spelled("... A ...", "B A C"), "A>A");
  EXPECT_EQ(spelled("... A ...", "A B C A"), "A>A");
  EXPECT_EQ(spelled("... () ...", "A () C"), "()>()");
  EXPECT_EQ(spelled("A B C", "... B ..."), "B>B");
  EXPECT_EQ(spelled("... A ... B ...", "B A"), "A>B B>A") << "no pair of equal tokens is possible";
}

TEST(Align, ThenGivesTheFirstOldTokenFewest) {
  EXPECT_EQ(align("... A ...", "X Y Z")->received, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(align("... A ...", "A Y A")->received, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(spelled("A B", "... X ..."), "B>X");
}

TEST(ReceivedAt, IsWhatAnEllipsisBecame) {
  const auto received = [](const Dims& old_dims, const Dims& new_dims, std::size_t i) {
    return received_at(*align(old_dims, new_dims), new_dims, i);
  };
  EXPECT_EQ(received("... A", "B C A", 0), Dim("B C"));
  EXPECT_EQ(received("... A", "A", 0), Dims());
  EXPECT_EQ(received("... A", "... C A", 0), Dim("... C"));
  EXPECT_EQ(received("... A", "B ... C A", 0), Dim("B ... C"));
  EXPECT_EQ(received("... A", "B ... A", 0), Dim("B ..."));
  EXPECT_EQ(received("... A", "...", 0), Dim("..."));
  EXPECT_EQ(received("A ... B", "A C ...", 1), Dims()) << "B receives C";
  EXPECT_EQ(received("A ... B", "A C ... B", 1), Dim("C ..."));
  EXPECT_EQ(received("... A ...", "B A C", 0), Dim("B"));
  EXPECT_EQ(received("... A ...", "B A C", 2), Dim("C"));
}

}  // namespace
}  // namespace palimpsest::named
