// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/core/attribute.hpp"

#include "linop/linop_support.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

TEST(Attribute, HoldsOneValueOfAnyKind) {
  EXPECT_TRUE(Attribute().absent());
  EXPECT_TRUE(Attribute(true).as_bool());
  EXPECT_EQ(Attribute(3).as_integer(), 3);
  EXPECT_EQ(Attribute(2.5).as_real(), 2.5);
  EXPECT_EQ(Attribute(std::complex<double>(1, 2)).as_complex(), std::complex<double>(1, 2));
  EXPECT_EQ(Attribute("ortho").as_string(), "ortho");
  EXPECT_EQ(Attribute(Dims("A B")).as_dims(), Dims("A B"));
  EXPECT_EQ(Attribute(Tensor::ones({2})).as_tensor().numel(), 2);
  EXPECT_EQ(Attribute(Extents{3, 4}).as_integers(), (Extents{3, 4}));
  EXPECT_EQ(Attribute(Attribute::List{1, "a"}).as_list().size(), 2u);
}

TEST(Attribute, NumbersWiden) {
  EXPECT_EQ(Attribute(3).as_real(), 3.0);
  EXPECT_EQ(Attribute(3).as_complex(), 3.0);
  EXPECT_EQ(Attribute(2.5).as_complex(), 2.5);
  expect_error<TypeError>([] { Attribute(2.5).as_integer(); }, "got real 2.5, expected integer");
  expect_error<TypeError>([] { Attribute("x").as_real(); }, "got string x, expected real");
}

TEST(Attribute, ComparesByValue) {
  EXPECT_EQ(Attribute(3), Attribute(3));
  EXPECT_FALSE(Attribute(3) == Attribute(3.0));
  EXPECT_FALSE(Attribute(true) == Attribute(1));
  EXPECT_EQ(Attribute(Tensor::ones({2})), Attribute(Tensor::ones({2})));
  EXPECT_FALSE(Attribute(Tensor::ones({2})) == Attribute(Tensor::zeros({2})));
  EXPECT_FALSE(Attribute(Tensor::ones({2})) == Attribute(1));
  EXPECT_EQ(Attribute(Extents{1, 2}), Attribute(Extents{1, 2}));
}

TEST(Attribute, Prints) {
  EXPECT_EQ(Attribute().str(), "absent");
  EXPECT_EQ(Attribute(false).str(), "false");
  EXPECT_EQ(Attribute(Attribute::List{1, 2.5, "a"}).str(), "[1, 2.5, a]");
  EXPECT_EQ(Attribute(Device{}).str(), Device{}.str());
  EXPECT_EQ(Attribute(Dims("A B")).str(), "(A, B)");
}

}  // namespace
}  // namespace palimpsest
