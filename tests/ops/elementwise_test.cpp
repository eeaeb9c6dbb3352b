// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/elementwise/elementwise.hpp"

#include <gtest/gtest.h>

#include <complex>

#include "ops/op_runner.hpp"
#include "palimpsest/graph/op_registry.hpp"
#include "palimpsest/ops/elementwise/elementwise_op.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/ops/registry.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using ops::Elementwise;
using testing::evaluate;
using testing::expect_error;
using testing::run_op;
using C = std::complex<double>;

Variable input(DType dtype, Extents shape) { return make_input({dtype, std::move(shape), {}}); }

Variable node_output(const OpPtr& op, std::initializer_list<Variable> inputs) {
  return op->make_node(std::span<const Variable>(inputs.begin(), inputs.size())).output(0);
}

TEST(Elementwise, BroadcastsAxesKnownToBeOneAndMissingLeadingAxes) {
  const Variable x = input(DType::float64, {2, 1}), y = input(DType::float64, {3});
  const Variable z = x * y + 1;
  EXPECT_EQ(z.type().shape, (Extents{2, 3}));
  const Tensor value = evaluate(
      z, {{x, Tensor::from<double>({1, 10}, Extents{2, 1})}, {y, Tensor::from<double>({1, 2, 3})}});
  EXPECT_EQ(value.to_vector<double>(), (std::vector<double>{2, 3, 4, 11, 21, 31}));
}

TEST(Elementwise, NamesAndParametersSayWhatItIs) {
  const Variable x = input(DType::float64, {2}), y = input(DType::float32, {2});
  EXPECT_EQ((x + y).owner().op().str(), "Add{float64, float32 -> float64}");
  EXPECT_EQ(ops::astype(y, DType::float64).owner().op().str(), "Cast{float32 -> float64}");
  EXPECT_FALSE((x + x).owner().op() == (y + y).owner().op());
  EXPECT_FALSE(ops::astype(x, DType::float32).owner().op() ==
               ops::astype(x, DType::int8).owner().op());
  ElementwiseProgram program;
  const int a = program.input(DType::float64), b = program.input(DType::float64);
  program.output(program.apply(ScalarOp::add, {program.apply(ScalarOp::mul, {a, b}), a}));
  const Elementwise fused(program);
  EXPECT_EQ(fused.str(),
            "Fused{r0:float64, r1:float64; r2=mul(r0, r1):float64; r3=add(r2, r0):float64; -> r3}");
  EXPECT_FALSE(fused.scalar_op().has_value());
  EXPECT_EQ(Elementwise(program, Elementwise::Overwrites{1}).name(), "FusedInPlace");
}

TEST(Elementwise, ConversionsInFrontOfAnOpThatTakesNoSuchOperandAreWrittenOut) {
  ElementwiseProgram program;
  const int a = program.input(DType::float64);
  program.output(program.apply(ScalarOp::bitwise_not, {program.cast(a, DType::int64)}));
  const Elementwise op(program);
  ops::register_library_ops();
  EXPECT_EQ(op.str(),
            "BitwiseNot{r0:float64; r1=identity(r0):int64; r2=bitwise_not(r1):int64; -> r2}");
  EXPECT_TRUE(*restore_op(op.name(), op.parameters()) == op);
}

TEST(Elementwise, ComparisonsOfInt64WithUint64HaveTheirNames) {
  const Variable x = input(DType::int64, {2}), y = input(DType::uint64, {2});
  const Variable less = ops::lt(x, y);
  const Op& op = less.owner().op();
  ops::register_library_ops();
  EXPECT_EQ(op.str(), "Lt{int64, uint64 -> bool}");
  EXPECT_TRUE(*restore_op(op.name(), op.parameters()) == op);
}

TEST(Elementwise, AProgramOfSeveralOperationsRuns) {
  ElementwiseProgram program;
  const int a = program.input(DType::float64), b = program.input(DType::float64);
  program.output(program.apply(ScalarOp::add, {program.apply(ScalarOp::mul, {a, b}), a}));
  const Variable x = input(DType::float64, {2}), y = input(DType::float64, {2});
  const Variable z = node_output(std::make_shared<Elementwise>(program), {x, y});
  const Tensor value =
      evaluate(z, {{x, Tensor::from<double>({2, 3})}, {y, Tensor::from<double>({5, 7})}});
  EXPECT_EQ(value.to_vector<double>(), (std::vector<double>{12, 24}));
  // For z = x y + x: w (y + 1) and w x; for one variable in both places, each of them.
  const Variable w = input(DType::float64, {2});
  for (const Variable& second : {y, x}) {
    const Variable v = node_output(std::make_shared<Elementwise>(program), {x, second});
    const std::vector<Variable> cotangents = v.owner().op().pullback(v.owner(), {&w, 1});
    const std::vector<std::pair<Variable, Tensor>> values{{x, Tensor::from<double>({2, 3})},
                                                          {y, Tensor::from<double>({5, 7})},
                                                          {w, Tensor::from<double>({10, 100})}};
    const bool is_square = second == x;
    EXPECT_EQ(evaluate(cotangents[0], values).to_vector<double>(),
              is_square ? (std::vector<double>{30, 400}) : (std::vector<double>{60, 800}));
    EXPECT_EQ(evaluate(cotangents[1], values).to_vector<double>(), (std::vector<double>{20, 300}));
  }
}

// x + y and x y: each output takes a separate input, whatever the other takes.
TEST(Elementwise, EveryOutputOverwritesAnInput) {
  using Overwrites = Elementwise::Overwrites;
  ElementwiseProgram program;
  const int a = program.input(DType::float64), b = program.input(DType::float64);
  program.output(program.apply(ScalarOp::add, {b, a}));
  program.output(program.apply(ScalarOp::mul, {a, b}));
  const Variable x = input(DType::float64, {2}), y = input(DType::float64, {2});
  const Apply pure = std::make_shared<Elementwise>(program)->make_node(std::vector{x, y});
  const auto chosen = [&](const Apply& node, std::set<int> allowed) {
    const OpPtr op = node.op().inplace_on_inputs(node, allowed);
    return op ? static_cast<const Elementwise&>(*op).overwrites() : Overwrites();
  };
  EXPECT_EQ(chosen(pure, {0, 1}), (Overwrites{1, 0}));  // a different input for each output
  EXPECT_EQ(chosen(pure, {0}), (Overwrites{-1, 0}));
  EXPECT_EQ(chosen(pure, {1}), (Overwrites{1, -1}));
  EXPECT_EQ(chosen(pure, {}), Overwrites());
  const Apply same = pure.op().make_node(std::vector{x, x});
  EXPECT_EQ(chosen(same, {0, 1}), (Overwrites{1, -1}));

  const auto both = std::make_shared<Elementwise>(program, Overwrites{1, 0});
  const Apply node = both->make_node(std::vector{x, y});
  EXPECT_EQ(node.op().destroy_map(node), (AliasMap{{0, {1}}, {1, {0}}}));
  EXPECT_TRUE(node.op().tolerate_same(node).empty());
  EXPECT_EQ(*node.op().pure(), pure.op());
  EXPECT_NE(both->parameters().find("overwrites=(1, 0)"), std::string::npos);
  std::vector<double> u{2, 3}, v{5, 7};
  const Extents extents{2};
  const Strides strides{1};
  const ConstView views[] = {{u.data(), DType::float64, extents, strides},
                             {v.data(), DType::float64, extents, strides}};
  const MutableView outputs[] = {{v.data(), DType::float64, extents, strides},
                                 {u.data(), DType::float64, extents, strides}};
  RunContext context(views, outputs, {});
  node.op().run(context);
  EXPECT_EQ(v, (std::vector<double>{7, 10}));
  EXPECT_EQ(u, (std::vector<double>{10, 21}));

  for (const Overwrites& wrong : {Overwrites{0}, Overwrites{0, 0}, Overwrites{-1, -1},
                                  Overwrites{0, 2}, Overwrites{-2, 0}, Overwrites{0, 1, -1}}) {
    expect_error<ValueError>([&] { Elementwise(program, wrong); }, "inputs to overwrite");
  }
}

TEST(Elementwise, ExtentsThatDifferAreRefusedWhenTheGraphIsBuilt) {
  expect_error<ShapeError>(
      [] {
        input(DType::float64, {2, 3}) + input(DType::float64, {2, 4});
      },
      "[Add] axis 1: extents differ: got (2, 3) and (2, 4)");
}

TEST(Elementwise, AnAxisThatTurnsOutToBeOneDoesNotBroadcast) {
  const Variable x = input(DType::float64, {kUnknown, 3}), y = input(DType::float64, {2, 3});
  const Variable z = x - y;
  EXPECT_EQ(z.type().shape, (Extents{2, 3}));
  expect_error<ShapeError>(
      [&] {
        z.owner().op().infer_shapes(z.owner(), std::vector<Extents>{{1, 3}, {2, 3}});
      },
      "[Sub] axis 0: extents differ: got (1, 3) and (2, 3); an axis broadcasts only if it is known "
      "to be 1 when the graph is built. Try row(), col() or a 1 in the shape of the input");
  const Variable four = input(DType::float64, {kUnknown, 3}) - y;
  try {
    four.owner().op().infer_shapes(four.owner(), std::vector<Extents>{{4, 3}, {2, 3}});
    FAIL();
  } catch (const ShapeError& error) {
    EXPECT_EQ(std::string(error.what()), "[Sub] axis 0: extents differ: got (4, 3) and (2, 3)");
  }
  const Variable fixed = ops::specify_shape(x, {1, kUnknown}) - y;
  EXPECT_EQ(evaluate(fixed, {{x, Tensor::ones({1, 3})}, {y, Tensor::ones({2, 3})}}).shape(),
            (Extents{2, 3}));
}

TEST(Elementwise, InPlaceWantsTheItemSizeAndTheExtentsOfTheOutput) {
  const Variable x = input(DType::float64, {2, 3}), row = input(DType::float64, {1, 3});
  const Variable z = x + row;
  const auto in_place = [&](const Variable& v, std::set<int> allowed) {
    return v.owner().op().inplace_on_inputs(v.owner(), allowed);
  };
  EXPECT_EQ(in_place(z, {1}), nullptr);
  ASSERT_NE(in_place(z, {0, 1}), nullptr);
  EXPECT_EQ(in_place(z, {0, 1})->str(), "AddInPlace{float64, float64 -> float64, overwrites=0}");
  // Complex times real: only the complex operand has the item size of the product.
  const Variable c = input(DType::complex64, {4}), r = input(DType::float32, {4});
  EXPECT_EQ(in_place(r * c, {0}), nullptr);
  EXPECT_NE(in_place(r * c, {1}), nullptr);
  // The int64 operand has the size.
  EXPECT_NE(in_place(input(DType::int64, {2}) + input(DType::float64, {2}), {0}), nullptr);
  // An unknown axis cannot broadcast, so it has the output's extent; a 1 next to an unknown one
  // can.
  const Variable u = input(DType::float64, {kUnknown}), one = input(DType::float64, {1});
  EXPECT_NE(in_place(u + u, {0}), nullptr);
  EXPECT_EQ(in_place(one + u, {0}), nullptr);
}

TEST(Elementwise, ABroadcastViewIsNeverOverwritten) {
  const Variable x = input(DType::float64, {1, 3});
  const Variable wide = ops::transpose(ops::broadcast_to(x, {2, 3}), {1, 0});
  const Variable z = wide + input(DType::float64, {3, 2});
  EXPECT_EQ(z.owner().op().inplace_on_inputs(z.owner(), {0}), nullptr);
  EXPECT_NE(z.owner().op().inplace_on_inputs(z.owner(), {1}), nullptr);
  const DType dtypes[] = {DType::float64, DType::float64};
  const auto op = std::make_shared<Elementwise>(ElementwiseProgram(ScalarOp::add, dtypes),
                                                Elementwise::Overwrites{0});
  expect_error<ValueError>(
      [&] {
        node_output(op, {wide, wide});
      },
      "[AddInPlace] input 0 cannot hold the result");
}

// The result of an integer and a floating-point number does not fit the first operand.
TEST(Elementwise, InPlaceAddOfIntegersAndFloatsIsRefusedWhenTheNodeIsBuilt) {
  const DType dtypes[] = {DType::int32, DType::float64};
  const auto op = std::make_shared<Elementwise>(ElementwiseProgram(ScalarOp::add, dtypes),
                                                Elementwise::Overwrites{0});
  expect_error<ValueError>(
      [&] {
        node_output(op, {input(DType::int32, {2}), input(DType::float64, {2})});
      },
      "cannot hold the result: got int32 (2,), expected float64 (2,)");
}

TEST(Elementwise, InPlaceXorLeavesTheResultInTheFirstArgument) {
  for (DType dtype : {DType::int8, DType::int16, DType::int32, DType::int64}) {
    const DType dtypes[] = {dtype, dtype};
    const auto op = std::make_shared<Elementwise>(ElementwiseProgram(ScalarOp::bitwise_xor, dtypes),
                                                  Elementwise::Overwrites{0});
    const Variable z = node_output(op, {input(dtype, {3}), input(dtype, {3})});
    Tensor x = Tensor::from<index_t>({1, 2, 3}).to(dtype);
    const Tensor y = Tensor::from<index_t>({3, 3, 3}).to(dtype);
    run_op(z.owner(), {x, y});
    EXPECT_EQ(x.to_vector<index_t>(), (std::vector<index_t>{2, 1, 0}));
  }
}

TEST(Elementwise, WrongOperandsAreRefused) {
  const Variable x = input(DType::float64, {2}), m = input(DType::float64, {2, 2});
  const DType dtypes[] = {DType::float64, DType::float64};
  const auto op = std::make_shared<Elementwise>(ScalarOp::add, dtypes);
  expect_error<ValueError>([&] { node_output(op, {x}); },
                           "[Add] number of inputs: got 1, expected 2");
  expect_error<ValueError>(
      [&] {
        node_output(op, {x, Variable()});
      },
      "[Add] input 1: got an undefined variable");
  expect_error<ShapeError>(
      [&] {
        node_output(op, {x, m});
      },
      "[Add] numbers of axes differ: got float64 (2,) and float64 (2, 2)");
  expect_error<DTypeError>(
      [&] {
        node_output(op, {x, input(DType::float32, {2})});
      },
      "[Add] input 1: got float32, expected float64");
  expect_error<DeviceError>(
      [&] {
        ops::add(x, make_input({DType::float64, {2}, Device::parse("cpu:1")}));
      },
      "[Add] inputs on several devices");
  expect_error<ValueError>(
      [&] { Elementwise(ElementwiseProgram(ScalarOp::add, dtypes), Elementwise::Overwrites{2}); },
      "[Elementwise] inputs to overwrite: got (2,), expected for each of 1 outputs another of 2");
  expect_error<DTypeError>(
      [&] { ops::minimum(input(DType::complex64, {2}), input(DType::complex64, {2})); }, "minimum");
}

TEST(Elementwise, ComplexNumbersAreNotCastToRealOnes) {
  expect_error<DTypeError>([] { ops::astype(input(DType::complex64, {2}), DType::float32); },
                           "[astype] complex numbers to real ones: got complex64 to float32");
}

TEST(Elementwise, CastOfAConstantIsAConstant) {
  const Variable x = ops::astype(constant(2.5), DType::complex64);
  ASSERT_TRUE(x.is_constant());
  EXPECT_EQ(x.constant_value().item<std::complex<float>>(), 2.5F);
  EXPECT_EQ(ops::astype(x, DType::complex64), x);
}

TEST(WeakNumber, TakesTheOtherOperandsDTypeIfItsKindFits) {
  const auto dtype = [](DType operand, WeakNumber number) {
    return (input(operand, {2}) * number).dtype();
  };
  EXPECT_EQ(dtype(DType::float32, 2.0), DType::float32);
  EXPECT_EQ(dtype(DType::float32, 2), DType::float32);
  EXPECT_EQ(dtype(DType::int32, 2), DType::int32);
  EXPECT_EQ(dtype(DType::int32, 2.0), DType::float64);
  EXPECT_EQ(dtype(DType::bool_, 2), DType::int64);
  EXPECT_EQ(dtype(DType::complex64, 2.0), DType::complex64);
  EXPECT_EQ(dtype(DType::float32, C(0, 1)), DType::complex64);
  EXPECT_EQ(dtype(DType::float64, C(0, 1)), DType::complex128);
  EXPECT_EQ(dtype(DType::int8, C(0, 1)), DType::complex128);
  EXPECT_EQ(WeakNumber(3).as_variable(DType::int8).dtype(), DType::int8);
  expect_error<OverflowError>([] { input(DType::int8, {2}) + 300; },
                              "[number] got 300, expected one that fits int8");
  expect_error<OverflowError>([] { input(DType::uint8, {2}) + -1; }, "fits uint8");
}

TEST(WeakNumber, StandsOnEitherSide) {
  const Variable x = input(DType::float64, {2});
  const Tensor value = Tensor::from<double>({2, 4});
  const auto result = [&](const Variable& y) {
    return evaluate(y, {{x, value}}).to_vector<double>();
  };
  EXPECT_EQ(result(1 - x), (std::vector<double>{-1, -3}));
  EXPECT_EQ(result(8 / x), (std::vector<double>{4, 2}));
  EXPECT_EQ(result(x / 2), (std::vector<double>{1, 2}));
  EXPECT_EQ(result(1 + 3 * x), (std::vector<double>{7, 13}));
  EXPECT_EQ(result(-(x - 1)), (std::vector<double>{-1, -3}));
  EXPECT_EQ(evaluate(x * C(0, 1), {{x, value}}).to_vector<C>(), (std::vector<C>{C(0, 2), C(0, 4)}));
}

TEST(WeakNumber, LivesWhereTheOtherOperandLives) {
  const Device other = Device::parse("cpu:1");
  const Variable y = make_input({DType::float64, {2}, other}) * 2;
  EXPECT_EQ(y.type().device, other);
}

TEST(ComplexParts, AreViewsOfComplexArraysAndTrivialOnRealOnes) {
  const Variable z = input(DType::complex64, {2}), x = input(DType::float32, {kUnknown});
  EXPECT_EQ(ops::real(z).dtype(), DType::float32);
  EXPECT_EQ(ops::imag(z).owner().op().view_map(ops::imag(z).owner()), (AliasMap{{0, {0}}}));
  EXPECT_EQ(ops::real(x), x);
  EXPECT_EQ(ops::conj(x), x);
  const Tensor value = Tensor::from<float>({1, 2, 3});
  EXPECT_EQ(evaluate(ops::imag(x), {{x, value}}).to_vector<float>(), (std::vector<float>{0, 0, 0}));
  const std::vector<std::complex<float>> numbers{{1, 2}, {3, 4}};
  EXPECT_EQ(evaluate(ops::imag(z), {{z, Tensor::from(numbers)}}).to_vector<float>(),
            (std::vector<float>{2, 4}));
  expect_error<DTypeError>([&] { node_output(std::make_shared<ops::ComplexPart>(true), {x}); },
                           "[Imag] got float32 (?,), expected a complex array");
}

TEST(Elementwise, BuildersComputeWhatTheySay) {
  const Variable x = input(DType::float64, {3}), y = input(DType::float64, {3});
  const testing::Bindings bindings{{x, Tensor::from<double>({1, -4, 9})},
                                   {y, Tensor::from<double>({2, 2, 2})}};
  const auto result = [&](const Variable& v) { return evaluate(v, bindings).to_vector<double>(); };
  using V = std::vector<double>;
  EXPECT_EQ(result(ops::abs(x)), (V{1, 4, 9}));
  EXPECT_EQ(result(ops::abs2(x)), (V{1, 16, 81}));
  EXPECT_EQ(result(ops::square(x)), (V{1, 16, 81}));
  EXPECT_EQ(result(ops::sqrt(ops::abs(x))), (V{1, 2, 3}));
  EXPECT_EQ(result(ops::reciprocal(y)), (V{0.5, 0.5, 0.5}));
  EXPECT_EQ(result(ops::minimum(x, y)), (V{1, -4, 2}));
  EXPECT_EQ(result(ops::maximum(x, y)), (V{2, 2, 9}));
  EXPECT_EQ(result(ops::exp(x - x)), (V{1, 1, 1}));
  EXPECT_EQ(result(ops::div(x, y)), (V{0.5, -2, 4.5}));
  const Variable big = ops::gt(x, y);
  EXPECT_EQ(result(ops::where(big, x, y)), (V{2, 2, 9}));
  EXPECT_EQ(evaluate(ops::make_complex(x, y), bindings).to_vector<C>(),
            (std::vector<C>{C(1, 2), C(-4, 2), C(9, 2)}));
  EXPECT_EQ(evaluate(ops::conj(ops::make_complex(x, y)), bindings).to_vector<C>()[1], C(-4, -2));
}

}  // namespace
}  // namespace palimpsest
