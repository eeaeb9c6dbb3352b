// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/named/collection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "palimpsest/base/error.hpp"
#include "support/expect_texts.hpp"

namespace palimpsest {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;

NamedDimCollection two(const Dims& a, const Dims& b) {
  NamedDimCollection c;
  c.add("a", a);
  c.add("b", b);
  return c;
}

TEST(NamedDimCollection, KeepsSequencesSinglesAndMaps) {
  NamedDimCollection c;
  c.add("text", "NxNy");
  c.add("list", {"A", "B"});
  c.add("single", ND("Nx"));
  c.add("map", DimMap{{"Nx", 3}, {"Ny", 4}});
  EXPECT_THAT(c.names(), ElementsAre("text", "list", "single", "map"));
  EXPECT_EQ(c.dims("text"), Dim("NxNy"));
  EXPECT_EQ(c.dims("list"), Dim("AB"));
  EXPECT_EQ(c.dim("single"), "Nx");
  EXPECT_EQ(c.map("map").at("Ny"), 4);
  EXPECT_EQ(c.pool(), Dim("NxNyAB"));
  EXPECT_TRUE(c.contains("map"));
  EXPECT_FALSE(c.contains("other"));
  EXPECT_EQ(c.str(), "text: (Nx, Ny), list: (A, B), single: Nx, map: {Nx: 3, Ny: 4}");
}

TEST(NamedDimCollection, RefusesUnknownShapesAndOtherKinds) {
  NamedDimCollection c = two("A", "B");
  c.add("single", ND("A"));
  expect_error<ShapeError>([&] { c.dims("x"); }, "unknown", {"\"x\""});
  expect_error<ShapeError>([&] { c.dim("x"); }, "unknown");
  expect_error<ShapeError>([&] { c.map("x"); }, "unknown");
  expect_error<ShapeError>([&] { c.dims("single"); }, "a sequence");
  expect_error<ShapeError>([&] { c.dim("a"); }, "a single dimension");
  expect_error<ShapeError>([&] { c.map("a"); }, "a map");
}

TEST(NamedDimCollection, RefusesABadAddition) {
  NamedDimCollection c = two("A", "B");
  expect_error<ValueError>([&] { c.add("a", "C"); }, "already in");
  expect_error<ValueError>([&] { c.add("c", ND("...")); }, "ellipsis");
  expect_error<ValueError>([&] { c.add("c", DimMap{{"()", 1}}); }, "key");
  EXPECT_EQ(c.str(), "a: (A), b: (B)");
}

TEST(NamedDimCollection, IsAValue) {
  const NamedDimCollection original = two("A B", "A");
  NamedDimCollection copy = original;
  copy.set("a", "C D");
  EXPECT_EQ(original.str(), "a: (A, B), b: (A)");
  EXPECT_EQ(copy.str(), "a: (C, D), b: (C)");
}

TEST(NamedDimCollectionSet, RenamesInEveryShape) {
  NamedDimCollection c = two("A B", "A B");
  c.add("single", ND("B"));
  c.add("map", DimMap{{"A", 3}});
  c.set("a", "C D");
  EXPECT_EQ(c.str(), "a: (C, D), b: (C, D), single: D, map: {C: 3}");
  c.set("single", ND("E"));
  EXPECT_EQ(c.str(), "a: (C, E), b: (C, E), single: E, map: {C: 3}");
}

TEST(NamedDimCollectionSet, AddsANewShape) {
  NamedDimCollection c;
  c.set("a", "A");
  EXPECT_EQ(c.dims("a"), Dim("A"));
}

TEST(NamedDimCollectionSet, SwapsAndCyclesAtOnce) {
  NamedDimCollection c = two("A B", "B C");
  c.set("a", "B A");
  EXPECT_EQ(c.str(), "a: (B, A), b: (A, C)");
  NamedDimCollection cycle = two("A B C", "C A");
  cycle.set("a", "B C A");
  EXPECT_EQ(cycle.str(), "a: (B, C, A), b: (A, B)");
}

TEST(NamedDimCollectionSet, RefusesACollision) {
  NamedDimCollection c = two("A B", "B C");
  expect_error<ShapeError>([&] { c.set("a", "C D"); }, "collides",
                           {"renaming A to C", "A in a (A, B)", "C in b (B, C)"});
  expect_error<ShapeError>([&] { c.set("a", "D D"); }, "collides",
                           {"renaming B to D", "renaming A to D"});
  // B keeps its name, so A cannot have it.
  expect_error<ShapeError>([&] { c.set("a", "B B"); }, "collides");
  EXPECT_EQ(c.str(), "a: (A, B), b: (B, C)") << "nothing has changed";
}

TEST(NamedDimCollectionSet, RefusesAnotherStructure) {
  NamedDimCollection c = two("A B", "B");
  expect_error<ShapeError>([&] { c.set("a", "C"); }, "not compatible", {"(A, B)", "(C)"});
  EXPECT_EQ(c.str(), "a: (A, B), b: (B)");
}

TEST(NamedDimCollectionSet, RefusesTwoNamesForOne) {
  NamedDimCollection c = two("A A", "A");
  expect_error<ShapeError>([&] { c.set("a", "B C"); }, "inconsistent mapping of A",
                           {"got B and C"});
  expect_error<ShapeError>([&] { c.set("a", "A C"); }, "inconsistent mapping");
  c.set("a", "B B");
  EXPECT_EQ(c.str(), "a: (B, B), b: (B)");
}

TEST(NamedDimCollectionSet, ChangesOtherPairsInThisShapeOnly) {
  NamedDimCollection c = two("A () ... (1)", "A () ... (1)");
  c.set("a", "() B C D (1)");
  EXPECT_EQ(c.str(), "a: ((), B, C, D, (1)), b: (A, (), ..., (1))");
  c.set("a", "...");
  EXPECT_EQ(c.str(), "a: (...), b: (A, (), ..., (1))");
}

TEST(NamedDimCollectionSet, NamesAnOrdinalAnyEverywhere) {
  NamedDimCollection c = two("(1) B", "B (1) (2)");
  c.set("a", "A B");
  EXPECT_EQ(c.str(), "a: (A, B), b: (B, A, (2))");
  expect_error<ShapeError>([] { two("(1) (1)", "").set("a", "A B"); },
                           "inconsistent mapping of (1)");
}

TEST(NamedDimCollectionSet, LetsAWildcardJoinANameInUse) {
  NamedDimCollection c = two("() (1) ...", "C (1)");
  c.set("a", "C C C");
  EXPECT_EQ(c.str(), "a: (C, C, C), b: (C, C)");
}

TEST(NamedDimCollectionSet, KeepsTheKindOfAShape) {
  NamedDimCollection c;
  c.add("single", ND("A"));
  c.add("sequence", "A B");
  c.add("map", DimMap{{"A", 1}});
  expect_error<ValueError>([&] { c.set("single", "A B"); }, "non-singleton");
  expect_error<ValueError>([&] { c.set("single", "..."); }, "ellipsis");
  expect_error<ValueError>([&] { c.set("map", "A"); }, "kinds differ");
  expect_error<ValueError>([&] { c.set("sequence", DimMap{{"A", 1}}); }, "kinds differ");
  c.set("single", "C");
  EXPECT_EQ(c.dim("single"), "C");
  c.set("map", DimMap{{"B", 2}, {"D", 3}});
  EXPECT_EQ(c.str(), "single: C, sequence: (C, B), map: {B: 2, D: 3}");
  NamedDimCollection one;
  one.add("sequence", "A");
  one.set("sequence", ND("B"));
  EXPECT_EQ(one.dims("sequence"), Dim("B"));
}

TEST(NamedDimCollectionRename, RenamesAllAtOnce) {
  NamedDimCollection c = two("A B", "B C");
  c.rename({{"A", "B"}, {"B", "A"}, {"Z", "Y"}});
  EXPECT_EQ(c.str(), "a: (B, A), b: (A, C)");
  c.rename({{"A", "B"}, {"B", "C"}, {"C", "A"}});
  EXPECT_EQ(c.str(), "a: (C, B), b: (B, A)");
  c.rename({{"A", "A"}});
  EXPECT_EQ(c.str(), "a: (C, B), b: (B, A)");
}

TEST(NamedDimCollectionRename, RefusesCollisionsUnlessMerging) {
  NamedDimCollection c = two("A B", "B C");
  expect_error<ShapeError>([&] { c.rename({{"A", "C"}}); }, "collides");
  expect_error<ShapeError>([&] { c.rename({{"A", "D"}, {"C", "D"}}); }, "collides");
  EXPECT_EQ(c.str(), "a: (A, B), b: (B, C)");
  c.rename({{"A", "C"}}, OnCollision::merge);
  EXPECT_EQ(c.str(), "a: (C, B), b: (B, C)");
  c.rename({{"C", "D"}, {"B", "D"}}, OnCollision::merge);
  EXPECT_EQ(c.str(), "a: (D, D), b: (D, D)");
}

TEST(NamedDimCollectionRename, NeverMergesKeysOfAMap) {
  NamedDimCollection c;
  c.add("map", DimMap{{"A", 1}, {"B", 2}, {"(1)", 3}});
  expect_error<ShapeError>(
      [&] {
        c.rename({{"A", "B"}}, OnCollision::merge);
      },
      "collides", {"key B"});
  expect_error<ShapeError>([&] { c.rename({{"(1)", "B"}}); }, "collides");
  c.rename({{"A", "B"}, {"B", "A"}});
  EXPECT_EQ(c.str(), "map: {(1): 3, A: 2, B: 1}");
}

TEST(NamedDimCollectionRename, LetsAnOrdinalAnyJoinANameInUse) {
  NamedDimCollection c = two("(1) A", "(1) (2)");
  c.rename({{"(1)", "A"}, {"A", "B"}});
  EXPECT_EQ(c.str(), "a: (A, B), b: (A, (2))");
  c.rename({{"(2)", "A"}});
  EXPECT_EQ(c.str(), "a: (A, B), b: (A, A)");
}

TEST(NamedDimCollectionRename, RefusesWildcardsWithoutIdentity) {
  NamedDimCollection c = two("A () ...", "A");
  expect_error<ValueError>([&] { c.rename({{"()", "B"}}); }, "got ()");
  expect_error<ValueError>([&] { c.rename({{"...", "B"}}); }, "got ...");
  expect_error<ValueError>([&] { c.rename({{"A", "()"}}); }, "wildcard");
  expect_error<ValueError>([&] { c.rename({{"A", "(1)"}}); }, "wildcard");
  EXPECT_EQ(c.str(), "a: (A, (), ...), b: (A)");
}

}  // namespace
}  // namespace palimpsest
