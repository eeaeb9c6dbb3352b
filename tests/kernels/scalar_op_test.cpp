// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/elementwise/scalar_op.hpp"

#include <gmock/gmock.h>

#include <array>
#include <set>
#include <string>

namespace palimpsest {
namespace {

DType result(ScalarOp op, std::initializer_list<DType> dtypes) {
  return result_dtype(op, std::span(dtypes.begin(), dtypes.size()));
}

std::string refusal(ScalarOp op, std::initializer_list<DType> dtypes) {
  try {
    result(op, dtypes);
  } catch (const DTypeError& error) {
    return error.what();
  }
  return "";
}

TEST(ScalarOp, NamesAreTheEnumeratorsAndAritiesAreOneToThree) {
  std::set<std::string_view> names;
  for (int i = 0; i < kScalarOpCount; ++i) {
    const auto op = static_cast<ScalarOp>(i);
    names.insert(name_of(op));
    EXPECT_GE(arity(op), 1);
    EXPECT_LE(arity(op), kMaxArity);
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kScalarOpCount));
  EXPECT_EQ(name_of(ScalarOp::add), "add");
  EXPECT_EQ(name_of(ScalarOp::identity), "identity");
  EXPECT_EQ(arity(ScalarOp::fma), 3);
}

TEST(ScalarOp, ArithmeticGivesThePromotedDtype) {
  EXPECT_EQ(result(ScalarOp::add, {DType::int8, DType::int32}), DType::int32);
  EXPECT_EQ(result(ScalarOp::mul, {DType::float32, DType::complex64}), DType::complex64);
  EXPECT_EQ(result(ScalarOp::add, {DType::bool_, DType::bool_}), DType::bool_);
  EXPECT_EQ(result(ScalarOp::square, {DType::bool_}), DType::int8);
  EXPECT_EQ(result(ScalarOp::fma, {DType::float32, DType::float64, DType::int8}), DType::float64);
}

TEST(ScalarOp, FunctionsOfIntegersAreDoublePrecision) {
  EXPECT_EQ(result(ScalarOp::div, {DType::int8, DType::int8}), DType::float64);
  EXPECT_EQ(result(ScalarOp::exp, {DType::bool_}), DType::float64);
  EXPECT_EQ(result(ScalarOp::sqrt, {DType::float32}), DType::float32);
}

TEST(ScalarOp, ComparisonsAndLogicGiveBools) {
  EXPECT_EQ(result(ScalarOp::lt, {DType::int8, DType::float32}), DType::bool_);
  EXPECT_EQ(result(ScalarOp::eq, {DType::complex64, DType::float64}), DType::bool_);
  EXPECT_EQ(result(ScalarOp::isnan, {DType::complex64}), DType::bool_);
  const std::array dtypes{DType::complex64, DType::int16};
  const ScalarOpTypes types = scalar_op_types(ScalarOp::logical_and, dtypes);
  EXPECT_EQ(types.sources[0], DType::bool_);
  EXPECT_EQ(types.sources[1], DType::bool_);
  EXPECT_EQ(types.result, DType::bool_);
}

TEST(ScalarOp, PartsOfComplexNumbersAreReal) {
  for (const ScalarOp op :
       {ScalarOp::abs, ScalarOp::abs2, ScalarOp::angle, ScalarOp::real, ScalarOp::imag}) {
    EXPECT_EQ(result(op, {DType::complex64}), DType::float32) << name_of(op);
    EXPECT_EQ(result(op, {DType::float64}), DType::float64) << name_of(op);
  }
  EXPECT_EQ(result(ScalarOp::make_complex, {DType::float32, DType::float32}), DType::complex64);
  EXPECT_EQ(result(ScalarOp::make_complex, {DType::float32, DType::int64}), DType::complex128);
}

TEST(ScalarOp, WhereIgnoresTheDtypeOfItsCondition) {
  EXPECT_EQ(result(ScalarOp::where, {DType::complex128, DType::int8, DType::int16}), DType::int16);
}

TEST(ScalarOp, ImpossibleDtypesAreRefusedByName) {
  using ::testing::HasSubstr;
  EXPECT_THAT(refusal(ScalarOp::lt, {DType::complex64, DType::float32}),
              HasSubstr("[lt] got complex64, float32, expected real numbers"));
  EXPECT_THAT(refusal(ScalarOp::minimum, {DType::complex64, DType::complex64}),
              HasSubstr("[minimum]"));
  EXPECT_THAT(refusal(ScalarOp::mod, {DType::complex64, DType::int8}), HasSubstr("[mod]"));
  EXPECT_THAT(refusal(ScalarOp::sub, {DType::bool_, DType::bool_}), HasSubstr("logical_xor"));
  EXPECT_THAT(refusal(ScalarOp::bitwise_or, {DType::float32, DType::int8}),
              HasSubstr("expected bools or integers"));
  EXPECT_THAT(refusal(ScalarOp::erf, {DType::complex128}), HasSubstr("[erf]"));
  EXPECT_THAT(refusal(ScalarOp::make_complex, {DType::complex64, DType::float32}),
              HasSubstr("[make_complex]"));
}

}  // namespace
}  // namespace palimpsest
