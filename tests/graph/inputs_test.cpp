// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/inputs.hpp"

#include <gtest/gtest.h>

#include "palimpsest/base/config.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

TEST(Inputs, AreNamedByTheirNumberOfAxes) {
  EXPECT_EQ(scalar("a").type().str(), "float64 ()");
  EXPECT_EQ(vector("a").type().str(), "float64 (?,)");
  EXPECT_EQ(matrix("a").type().str(), "float64 (?, ?)");
  EXPECT_EQ(tensor3("a").rank(), 3U);
  EXPECT_EQ(tensor4("a").rank(), 4U);
  EXPECT_EQ(tensor5("a").rank(), 5U);
  EXPECT_EQ(row("a").type().str(), "float64 (1, ?)");
  EXPECT_EQ(col("a").type().str(), "float64 (?, 1)");
  EXPECT_EQ(matrix("a", DType::int16).dtype(), DType::int16);
  EXPECT_EQ(matrix("a").name(), "a");
  EXPECT_EQ(matrix().name(), "");
}

TEST(Inputs, WithoutADTypeHaveTheDefaultOne) {
  const ConfigScope scope({.default_float = DType::float32});
  EXPECT_EQ(matrix("a").dtype(), DType::float32);
  EXPECT_EQ(dmatrix("a").dtype(), DType::float64);
}

TEST(Inputs, ALetterInFrontIsTheDType) {
  EXPECT_EQ(bscalar().dtype(), DType::int8);
  EXPECT_EQ(wvector().dtype(), DType::int16);
  EXPECT_EQ(imatrix().dtype(), DType::int32);
  EXPECT_EQ(ltensor3().dtype(), DType::int64);
  EXPECT_EQ(ftensor4().dtype(), DType::float32);
  EXPECT_EQ(dtensor5().dtype(), DType::float64);
  EXPECT_EQ(crow().type().str(), "complex64 (1, ?)");
  EXPECT_EQ(zcol("z").type().str(), "complex128 (?, 1)");
}

TEST(Inputs, SeveralAtOnce) {
  const auto [x, y] = dscalars("x", "y");
  EXPECT_EQ(x.name(), "x");
  EXPECT_EQ(y.name(), "y");
  EXPECT_EQ(y.type().str(), "float64 ()");
  const auto [a, b, c] = matrixs("a", "b", "c");
  EXPECT_EQ(c.type().str(), "float64 (?, ?)");
  EXPECT_FALSE(a == b);
}

TEST(Inputs, OfAnyShape) {
  const Variable x = tensor(DType::complex64, {std::nullopt, 3, 1}, "x");
  EXPECT_EQ(x.type().str(), "complex64 (?, 3, 1)");
  EXPECT_EQ(x.name(), "x");
  EXPECT_EQ(tensor(DType::int8, {}).rank(), 0U);
  expect_error<ShapeError>([] { tensor(DType::int8, {-1}); }, "Try std::nullopt");
  expect_error<ShapeError>([] { tensor(DType::int8, std::vector<std::optional<index_t>>(17)); },
                           "[tensor] number of axes: got 17");
}

TEST(Constants, OfNumbersHaveTheDTypeOfValues) {
  EXPECT_EQ(constant(7).type().str(), "int64 ()");
  EXPECT_EQ(constant(std::int8_t{7}).dtype(), DType::int64);
  EXPECT_EQ(constant(7U).dtype(), DType::uint64);
  EXPECT_EQ(constant(true).dtype(), DType::bool_);
  EXPECT_EQ(constant(7.0).dtype(), DType::float64);
  EXPECT_EQ(constant(7.0f).dtype(), DType::float32);
  EXPECT_EQ(constant(std::complex<float>(1, 2)).dtype(), DType::complex64);
  EXPECT_EQ(constant(7, "seven").name(), "seven");
  const Variable numbers = constant(std::vector<int>{1, 2, 3});
  EXPECT_EQ(numbers.type().str(), "int64 (3,)");
  EXPECT_EQ(numbers.constant_value().to_vector<int>(), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(constant(std::vector<float>{}).type().str(), "float32 (0,)");
}

TEST(Constants, AsVariableKeepsVariables) {
  const Variable x = dscalar("x");
  EXPECT_EQ(as_variable(x), x);
  EXPECT_TRUE(as_variable(2.5).is_constant());
  EXPECT_EQ(as_variable(std::vector<double>{1, 2}).type().str(), "float64 (2,)");
  Tensor t = Tensor::ones({2});
  const Variable c = as_variable(t);
  t.fill(5.0);
  EXPECT_EQ(c.constant_value().to_vector<double>(), (std::vector<double>{1, 1}));
}

TEST(Variable, TagsAreSharedByHandlesAndKeptByCopies) {
  const Variable x = dmatrix("x");
  const Variable handle = x;
  handle.tags().indestructible = true;
  handle.tags().nan_guard = false;
  EXPECT_TRUE(x.is_indestructible());
  const Variable copy = x.copy();
  EXPECT_FALSE(copy == x);
  EXPECT_EQ(copy.name(), "x");
  EXPECT_EQ(copy.type(), x.type());
  EXPECT_EQ(copy.tags(), x.tags());
  copy.tags().indestructible = false;
  EXPECT_TRUE(x.is_indestructible());
}

}  // namespace
}  // namespace palimpsest
