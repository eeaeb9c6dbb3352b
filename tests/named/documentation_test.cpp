// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/named-dimensions.md.
#include <gtest/gtest.h>

#include "palimpsest/named/matching.hpp"
#include "palimpsest/named/named_shape.hpp"
#include "palimpsest/named/sizes.hpp"

namespace palimpsest {
namespace {

TEST(NamedDimensionsPage, Dimensions) {
  ND nx = "Nx1";
  EXPECT_EQ(nx.base(), "Nx");
  EXPECT_EQ(nx.index(), 1);
  EXPECT_EQ(nx + 1, "Nx2");
}

TEST(NamedDimensionsPage, Shapes) {
  Dims image = "NyNx";          // text: Ny Nx
  Dims coils{"C", "Ny", "Nx"};  // a list: each element is one dimension
  EXPECT_EQ(coils, "C" + image);
  EXPECT_EQ(Dim("coil x y").size(), 3u);
  EXPECT_EQ(image.str(), "(Ny, Nx)");
}

TEST(NamedDimensionsPage, Matching) {
  EXPECT_TRUE(isequal("A ... C", "A B C"));
  EXPECT_TRUE(isequal("A ... C", "A C"));
  EXPECT_FALSE(isequal("A ()", "A"));
  EXPECT_EQ(resolve_wildcards("... Nx", "C Ny Nx"), Dim("C Ny Nx"));

  Match several = match("A ...", "... A");  // A, or A ... A
  EXPECT_TRUE(several.ok);
  EXPECT_FALSE(several.unique);
}

TEST(NamedDimensionsPage, Operators) {
  NamedShape dense("... N", "... M", {{"weightshape", "M N"}});
  EXPECT_EQ(dense.H().str(), "(..., M) -> (..., N)");
  EXPECT_EQ(dense.N().str(), "(..., N) -> (..., N)");
  EXPECT_EQ(dense.N(Output::fresh).str(), "(..., N) -> (..., N1)");

  dense.set_ishape("C Nx");  // N becomes Nx everywhere, and the ellipsis is C on both sides
  EXPECT_EQ(dense.str(), "(C, Nx) -> (C, M)");
  EXPECT_EQ(dense.dims("weightshape"), Dim("M Nx"));
}

TEST(NamedDimensionsPage, Collisions) {
  NamedDimCollection shapes;
  shapes.add("first", "A B");
  shapes.add("second", "B C");
  EXPECT_THROW(shapes.set("first", "C D"), ShapeError);  // A would become C, which is in use
  shapes.set("first", "B A");                            // a swap is allowed
  EXPECT_EQ(shapes.dims("second"), Dim("A C"));
}

TEST(NamedDimensionsPage, Sizes) {
  DimSizes sizes = bind("... Ny Nx", {8, 256, 320});
  EXPECT_EQ(sizes.size("Nx"), 320);
  EXPECT_EQ(sizes["..."], Extents{8});
  EXPECT_EQ(extents_of("... Nx Ny", sizes), (Extents{8, 320, 256}));
  EXPECT_EQ(axis_of("... Ny Nx", "Ny"), -2);
}

}  // namespace
}  // namespace palimpsest
