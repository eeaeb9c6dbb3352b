// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <array>
#include <string>

#include "palimpsest/kernels/elementwise/elementwise.hpp"

namespace palimpsest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ElementwiseProgram, OneOpIsOneInstruction) {
  const std::array dtypes{DType::float32, DType::float32};
  const ElementwiseProgram program(ScalarOp::add, dtypes);
  EXPECT_THAT(program.inputs(), ElementsAre(0, 1));
  EXPECT_THAT(program.outputs(), ElementsAre(2));
  ASSERT_EQ(program.instructions().size(), 1U);
  EXPECT_EQ(program.instructions()[0].op, ScalarOp::add);
  EXPECT_EQ(program.instructions()[0].dtype, DType::float32);
}

TEST(ElementwiseProgram, OperandsAreCastToWhatTheOpNeeds) {
  ElementwiseProgram program;
  const int a = program.input(DType::int16), b = program.input(DType::complex64);
  const int sum = program.apply(ScalarOp::add, {a, b});
  EXPECT_EQ(program.dtype_of_register(sum), DType::complex64);
  ASSERT_EQ(program.instructions().size(), 2U);
  EXPECT_EQ(program.instructions()[0].op, ScalarOp::identity);
}

TEST(ElementwiseProgram, ACastIsMadeOnceAndNotAtAllToTheOwnDtype) {
  ElementwiseProgram program;
  const int a = program.input(DType::int16);
  EXPECT_EQ(program.cast(a, DType::int16), a);
  EXPECT_EQ(program.cast(a, DType::float64), program.cast(a, DType::float64));
  program.apply(ScalarOp::exp, {a});
  EXPECT_EQ(program.instructions().size(), 2U);
}

TEST(ElementwiseProgram, AppendRenumbersAnotherProgram) {
  const std::array dtypes{DType::float64, DType::float64};
  ElementwiseProgram program(ScalarOp::mul, dtypes);
  const std::array inputs{program.outputs()[0], program.inputs()[0]};
  const auto results = program.append(ElementwiseProgram(ScalarOp::sub, dtypes), inputs);
  ASSERT_EQ(results.size(), 1U);
  const auto& last = program.instructions().back();
  EXPECT_EQ(last.op, ScalarOp::sub);
  EXPECT_EQ(last.destination, results[0]);
  EXPECT_EQ(last.sources[0], 2);
  EXPECT_EQ(last.sources[1], 0);
  EXPECT_EQ(program.outputs().size(), 1U);
}

TEST(ElementwiseProgram, EqualityFollowsAllParts) {
  const std::array floats{DType::float32, DType::float32};
  const std::array doubles{DType::float64, DType::float64};
  EXPECT_EQ(ElementwiseProgram(ScalarOp::add, floats), ElementwiseProgram(ScalarOp::add, floats));
  EXPECT_NE(ElementwiseProgram(ScalarOp::add, floats), ElementwiseProgram(ScalarOp::sub, floats));
  EXPECT_NE(ElementwiseProgram(ScalarOp::add, floats), ElementwiseProgram(ScalarOp::add, doubles));
}

template <class F>
std::string value_error_of(F&& f) {
  try {
    f();
  } catch (const ValueError& error) {
    return error.what();
  }
  return "";
}

TEST(ElementwiseProgram, LimitsAreErrors) {
  EXPECT_THAT(value_error_of([] {
                ElementwiseProgram program;
                int r = program.input(DType::float32);
                for (;;) r = program.apply(ScalarOp::neg, {r});
              }),
              HasSubstr("too many registers: got 129, expected at most 128"));
  EXPECT_THAT(value_error_of([] {
                ElementwiseProgram program;
                for (;;) program.input(DType::float32);
              }),
              HasSubstr("too many inputs"));
  EXPECT_THAT(value_error_of([] {
                ElementwiseProgram program;
                program.input(DType::float32);
                for (;;) program.output(0);
              }),
              HasSubstr("too many outputs"));
}

TEST(ElementwiseProgram, RefusedDtypesLeaveItUnchanged) {
  ElementwiseProgram program;
  const int a = program.input(DType::complex64);
  const ElementwiseProgram before = program;
  EXPECT_THROW(program.apply(ScalarOp::lt, {a, a}), DTypeError);
  EXPECT_EQ(program, before);
}

}  // namespace
}  // namespace palimpsest
