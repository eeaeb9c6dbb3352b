// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/named/named_shape.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "palimpsest/base/error.hpp"
#include "palimpsest/named/matching.hpp"
#include "support/expect_texts.hpp"

namespace palimpsest {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;

TEST(NamedShape, ConvertsFromOneShapeOrTwo) {
  EXPECT_EQ(NamedShape().str(), "(...) -> (...)");
  EXPECT_EQ(NamedShape("A B").str(), "(A, B) -> (A, B)");
  EXPECT_EQ(NamedShape("A B", "C").str(), "(A, B) -> (C)");
  EXPECT_EQ((NamedShape{"A", "B"}).str(), "(A) -> (B)");
  EXPECT_EQ(NamedShape({"A", "B"}, {"C"}).str(), "(A, B) -> (C)");
  const auto printed = [](const NamedShape& shape) { return shape.str(); };
  EXPECT_EQ(printed("Nx"), "(Nx) -> (Nx)");
  EXPECT_EQ(printed(Dim("AB")), "(A, B) -> (A, B)");
  std::ostringstream stream;
  stream << NamedShape("A", "B");
  EXPECT_EQ(stream.str(), "(A) -> (B)");
}

TEST(NamedShape, HoldsOtherShapes) {
  const NamedShape shape("A", "B", {{"weightshape", "A B"}, {"batch", ND("A")}});
  EXPECT_THAT(shape.names(), ElementsAre("ishape", "oshape", "weightshape", "batch"));
  EXPECT_EQ(shape.dims("weightshape"), Dim("AB"));
  EXPECT_EQ(shape.dim("batch"), "A");
  EXPECT_EQ(shape.others().size(), 2u);
  expect_error<ValueError>([] { NamedShape("A", "B", {{"ishape", "A"}}); }, "already in");
}

TEST(NamedShape, SettersRenameEverywhere) {
  NamedShape shape("A B", "B C", {{"weightshape", "A C"}});
  shape.set_ishape("X Y");
  EXPECT_EQ(shape.shapes().str(), "ishape: (X, Y), oshape: (Y, C), weightshape: (X, C)");
  shape.set_oshape("Y Z");
  EXPECT_EQ(shape.shapes().str(), "ishape: (X, Y), oshape: (Y, Z), weightshape: (X, Z)");
  shape.set("weightshape", "P Q");
  EXPECT_EQ(shape.shapes().str(), "ishape: (P, Y), oshape: (Y, Q), weightshape: (P, Q)");
  shape.rename({{"Y", "R"}});
  EXPECT_EQ(shape.str(), "(P, R) -> (R, Q)");
  shape.set_shape(NamedShape("A"));
  EXPECT_EQ(shape.shapes().str(), "ishape: (A), oshape: (A)");
}

TEST(NamedShape, SettersChangeNothingWhenTheyThrow) {
  NamedShape shape("... A", "... B");
  expect_error<ShapeError>([&] { shape.set_ishape("C B"); }, "collides");
  expect_error<ShapeError>([&] { shape.set_ishape(""); }, "not compatible");
  expect_error<ValueError>([&] { shape.set("ishape", DimMap{{"A", 1}}); }, "kinds differ");
  EXPECT_EQ(shape.str(), "(..., A) -> (..., B)");
}

TEST(NamedShape, LinksTheEllipsisOfBothSides) {
  NamedShape identity;
  identity.set_ishape("A B");
  EXPECT_EQ(identity.str(), "(A, B) -> (A, B)");

  NamedShape shape("... A", "... B", {{"weightshape", "... A"}});
  shape.set_ishape("X Y A");
  EXPECT_EQ(shape.shapes().str(), "ishape: (X, Y, A), oshape: (X, Y, B), weightshape: (..., A)");

  NamedShape refined("... A", "... B");
  refined.set_oshape("X ... B");
  EXPECT_EQ(refined.str(), "(X, ..., A) -> (X, ..., B)");

  NamedShape empty("... A", "B ...");
  empty.set_ishape("A");
  EXPECT_EQ(empty.str(), "(A) -> (B)");

  NamedShape renamed("... A", "... A");
  renamed.set_ishape("A B");
  EXPECT_EQ(renamed.str(), "(A, B) -> (A, B)") << "A became B, and a new A came before it";

  NamedShape set("...", "...");
  set.set("oshape", "A");
  EXPECT_EQ(set.str(), "(A) -> (A)");
}

TEST(NamedShape, LinksNoEllipsisThatOnlyOneSideHas) {
  NamedShape shape("...", "A");
  shape.set_ishape("B C");
  EXPECT_EQ(shape.str(), "(B, C) -> (A)");
  NamedShape hidden("A B", "A C");
  hidden.set_ishape("... B");
  EXPECT_EQ(hidden.str(), "(..., B) -> (A, C)");
}

TEST(NamedShape, RefusesALinkThatCollides) {
  NamedShape shape("... A", "... B");
  expect_error<ShapeError>([&] { shape.set_ishape("B A"); }, "collides", {"B in oshape"});
  NamedShape several("... A ...", "...");
  expect_error<ShapeError>([&] { several.set_ishape("B A C"); }, "inconsistent mapping of ...");
  several.set_ishape("B A B");
  EXPECT_EQ(several.str(), "(B, A, B) -> (B)");
  NamedShape twice("...", "... K ...");
  expect_error<ShapeError>([&] { twice.set_ishape("A"); }, "collides");
  EXPECT_EQ(twice.str(), "(...) -> (..., K, ...)");
}

TEST(NamedShape, AdjointExchangesAndKeepsOthers) {
  const NamedShape shape("A", "B", {{"weightshape", "A B"}});
  EXPECT_EQ(shape.H().shapes().str(), "ishape: (B), oshape: (A), weightshape: (A, B)");
  EXPECT_TRUE(identical(shape.H().H(), shape));
}

TEST(NamedShape, NormalKeepsItsNames) {
  const NamedShape shape("A ... C", "M ... C", {{"weightshape", "A M"}});
  EXPECT_EQ(shape.N().str(), "(A, ..., C) -> (A, ..., C)");
  EXPECT_EQ(shape.N().dims("weightshape"), Dim("A M"));
}

TEST(NamedShape, FreshNormalRenamesWhatTheOutputDoesNotHave) {
  EXPECT_EQ(NamedShape("N", "M").N(Output::fresh).str(), "(N) -> (N1)");
  EXPECT_EQ(NamedShape("... C () N (1)", "... C M").N(Output::fresh).oshape(),
            Dim("... C () N1 (1)"));
  EXPECT_EQ(NamedShape("A A1", "M").N(Output::fresh).oshape(), Dim("A2 A3"));
  EXPECT_EQ(NamedShape("A A0", "A1").N(Output::fresh).oshape(), Dim("A2 A3"));
  EXPECT_EQ(NamedShape("A1 A", "M").N(Output::fresh).oshape(), Dim("A2 A3"));
  expect_error<OverflowError>([] { NamedShape("A2147483647", "M").N(Output::fresh); }, "31 bits");
}

TEST(NamedShape, FreshNormalNeverGivesOneNameTwice) {
  for (const char* ishape : {"A A1 A2", "A2 A1 A", "A A2 A1 A0", "B A1 B1 A"}) {
    for (const char* oshape : {"", "A", "A1", "A2 B", "A3 A1"}) {
      const Dims output = NamedShape(ishape, oshape).N(Output::fresh).oshape();
      const std::set<ND> distinct(output.begin(), output.end());
      EXPECT_EQ(distinct.size(), output.size()) << ishape << " -> " << oshape;
    }
  }
}

TEST(NamedShape, SumConcatenates) {
  EXPECT_EQ((NamedShape("N", "M") + NamedShape("B")).str(), "(N, B) -> (M, B)");
  EXPECT_EQ((NamedShape() + NamedShape()).str(), "(...) -> (...)");
  const NamedShape a("A", "B", {{"w", "A"}, {"v", "B"}}), b("C", "D", {{"w", "A"}, {"u", "D"}});
  EXPECT_THAT((a + b).names(), ElementsAre("ishape", "oshape", "w", "v", "u"));
  expect_error<ShapeError>([&] { a + NamedShape("C", "D", {{"v", "C"}}); }, "already in", {"'v'"});
}

TEST(NamedShape, EqualityIsThatOfBothSides) {
  EXPECT_TRUE(NamedShape("A ...", "B") == NamedShape("A C", "()"));
  EXPECT_FALSE(NamedShape("A", "B") == NamedShape("A", "C"));
  EXPECT_TRUE(NamedShape("A", "B") == NamedShape("A", "B", {{"w", "A"}}));
}

TEST(NamedShape, IdenticalComparesEveryToken) {
  EXPECT_TRUE(identical("A ...", "A ..."));
  EXPECT_FALSE(identical("A ...", "A B"));
  const NamedShape a("A", "B", {{"v", "A"}, {"w", "B"}}), b("A", "B", {{"w", "B"}, {"v", "A"}});
  EXPECT_TRUE(identical(a, b));
  EXPECT_FALSE(identical(a, NamedShape("A", "B")));
  EXPECT_FALSE(identical(a, NamedShape("A", "B", {{"v", "A"}, {"w", ND("B")}})));
}

TEST(NamedShape, CompositionIsDecidedByIsequal) {
  const NamedShape first("Nx Ny", "Kx Ky"), next("... Ky", "... My");
  EXPECT_TRUE(isequal(next.ishape(), first.oshape()));
}

}  // namespace
}  // namespace palimpsest
