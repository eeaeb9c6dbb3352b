// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "graph/toy_ops.hpp"

namespace palimpsest {
namespace {

void expect_refusal(toy::Spec spec, const std::string& piece) {
  const Variable x = toy::input("x"), y = toy::input("y");
  try {
    toy::apply(toy::make(std::move(spec)), {x, y});
    ADD_FAILURE() << "accepted: " << piece;
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find(piece), std::string::npos) << e.what();
  }
}

TEST(Declarations, PositionsOutOfRangeAreRefused) {
  expect_refusal({"op", {{0, {2}}}}, "view_map names an input that is not there: got 2");
  expect_refusal({"op", {{1, {0}}}}, "view_map names an output that is not there: got 1");
  expect_refusal({"op", {}, {{0, {-1}}}}, "destroy_map names an input that is not there: got -1");
  toy::Spec spec{"op"};
  spec.destroyed = {5};
  expect_refusal(spec, "destroyed_inputs names an input");
  spec.destroyed = {};
  spec.output_aliases = {{0, 1}};
  expect_refusal(spec, "output_aliases names an output");
}

TEST(Declarations, ToleranceNeedsAnOverwrittenInput) {
  expect_refusal({"op", {}, {{0, {0}}}, {{1, 0}}}, "tolerate_same is about input 1");
  expect_refusal({"op", {}, {}, {}, {{0, 1}}}, "tolerate_aliased is about input 0");
}

TEST(Declarations, PartsOfOneOverwrittenInputMustNotMeet) {
  toy::Spec spec{"op", {}, {{0, {0}}, {1, {0}}}};
  spec.n_outputs = 2;
  spec.view_regions.emplace(std::pair(0, 0), toy::slice(0, 3));
  spec.view_regions.emplace(std::pair(1, 0), toy::slice(2, 3));
  expect_refusal(spec, "outputs 0 and 1 overlap in input 0");
  spec.view_regions.insert_or_assign(std::pair(1, 0), toy::slice(3, 3));
  EXPECT_NO_THROW(toy::apply(toy::make(spec), {toy::input("x")}));
}

TEST(Declarations, TolerancesAndRegionsTellOpsApart) {
  toy::Spec plain{"inc", {}, {{0, {0}}}}, tolerant = plain, partial = plain;
  tolerant.aliased = {{0, 1}};
  partial.write_regions.emplace(0, toy::slice(0, 3));
  const OpPtr ops[] = {toy::make(plain), toy::make(tolerant), toy::make(partial)};
  for (const OpPtr& a : ops) {
    for (const OpPtr& b : ops) {
      EXPECT_EQ(*a == *b, &a == &b);
      EXPECT_EQ(a->hash() == b->hash(), &a == &b);
    }
  }
  EXPECT_EQ(toy::make(plain)->hash(), ops[0]->hash());
}

TEST(Declarations, AViewIsAnythingUnlessItSaysMore) {
  const Variable v = toy::apply(toy::V, {toy::input("x")});
  EXPECT_TRUE(v.owner().op().view_region(v.owner(), 0, 0).is_unknown());
  const Variable a = toy::apply(toy::A_destroys, {toy::input("x")});
  EXPECT_TRUE(a.owner().op().view_region(a.owner(), 0, 0).is_whole());
  EXPECT_FALSE(a.owner().op().is_cheap());
  EXPECT_TRUE(a.owner().op().reads(a.owner(), 0));
}

}  // namespace
}  // namespace palimpsest
