// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/products.hpp"

#include <gtest/gtest.h>

#include <complex>

#include "ops/op_runner.hpp"
#include "palimpsest/ops/contract_op.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::evaluate;
using testing::expect_error;
using C = std::complex<double>;
using V = std::vector<double>;

Variable input(Extents shape, DType dtype = DType::float64) {
  return make_input({dtype, std::move(shape), {}});
}

const Tensor kMatrix = Tensor::from<double>({1, 2, 3, 4, 5, 6}, Extents{2, 3});

TEST(Einsum, MatrixTimesVector) {
  const Variable a = input({2, 3}), b = input({3});
  const Variable y = ops::einsum("mn, n -> m", a, b);
  EXPECT_EQ(evaluate(y, {{a, kMatrix}, {b, Tensor::from<double>({1, 0, -1})}}).to_vector<double>(),
            (V{-2, -2}));
}

TEST(Einsum, ConjugatesEitherOperand) {
  const Variable a = input({1}, DType::complex128), b = input({1}, DType::complex128);
  const testing::Bindings bindings{{a, Tensor::from<C>({C(1, 2)})},
                                   {b, Tensor::from<C>({C(3, 4)})}};
  const auto value = [&](ops::EinsumOptions options) {
    return evaluate(ops::einsum("i,i->", a, b, options), bindings).item<C>();
  };
  EXPECT_EQ(value({}), C(1, 2) * C(3, 4));
  EXPECT_EQ(value({.conj_a = true}), C(1, -2) * C(3, 4));
  EXPECT_EQ(value({.conj_b = true}), C(1, 2) * C(3, -4));
}

TEST(Einsum, ConjugatingRealOperandsIsNoOtherOp) {
  const Variable a = input({2, 3}), b = input({3});
  const Variable plain = ops::einsum("mn,n->m", a, b);
  EXPECT_EQ(plain.owner().op(),
            ops::einsum("mn,n->m", a, b, {.conj_a = true, .conj_b = true}).owner().op());
  EXPECT_FALSE(plain.owner().op() == ops::einsum("mn,m->n", a, input({2})).owner().op());
  EXPECT_EQ(plain.owner().op().str(), "Contract{mn,n->m}");
}

TEST(Einsum, PromotesToWhatTheKernelTakes) {
  EXPECT_EQ(ops::einsum("i,i->", input({2}, DType::float32), input({2}, DType::complex64)).dtype(),
            DType::complex64);
  EXPECT_EQ(ops::einsum("i,i->", input({2}, DType::int8), input({2}, DType::bool_)).dtype(),
            DType::int64);
}

TEST(Einsum, RefusesTextsAndShapesThatMakeNoSense) {
  const Variable a = input({2, 3}), b = input({3});
  const auto einsum = [&](const char* text) { ops::einsum(text, a, b); };
  expect_error<ValueError>([&] { einsum("mn,n"); }, "[einsum] got \"mn,n\", expected a text like");
  expect_error<ValueError>([&] { einsum("mn->m"); }, "expected a text like");
  expect_error<ValueError>([&] { einsum("m.,n->m"); }, "expected letters like");
  expect_error<ValueError>([&] { einsum("mm,n->m"); },
                           "[einsum] repeated label in the first operand");
  expect_error<ValueError>([&] { einsum("mn,n->mm"); }, "repeated label in the result");
  expect_error<ValueError>([&] { einsum("mn,n->k"); }, "a label of the result is in no operand");
  expect_error<ShapeError>([&] { einsum("mnk,n->m"); },
                           "[einsum] first operand: got 3 labels, expected 2");
  expect_error<ShapeError>([&] { einsum("mn,m->n"); },
                           "one label with two extents, axis 0 of the first operand and 0 of the "
                           "second: got (2, 3) and (3,) in mn,m->n");
  const int bad[] = {-1};
  expect_error<ValueError>([&] { ops::contract(b, bad, b, bad, {}); }, "got label -1");
  const Variable y = ops::einsum("mn,n->m", input({2, kUnknown}), b);
  expect_error<ShapeError>(
      [&] {
        y.owner().op().infer_shapes(y.owner(), std::vector<Extents>{{2, 4}, {3}});
      },
      "one label with two extents");
  const Variable mixed[] = {a, input({3}, DType::float32)};
  expect_error<DTypeError>(
      [&] {
        std::make_shared<ops::Contract>(Contraction{{0, 1}, {1}, {0}})->make_node(mixed);
      },
      "expected one dtype: floating, complex or int64");
}

TEST(Matmul, MultipliesTheLastTwoAxes) {
  const Variable a = input({2, 3}), b = input({3, 2});
  const Tensor other = Tensor::from<double>({1, 0, 0, 1, 1, 1}, Extents{3, 2});
  EXPECT_EQ(evaluate(ops::matmul(a, b), {{a, kMatrix}, {b, other}}).to_vector<double>(),
            (V{4, 5, 10, 11}));
  EXPECT_EQ(ops::matmul(input({5, 2, 3}), input({5, 3, 4})).type().shape, (Extents{5, 2, 4}));
  expect_error<ShapeError>(
      [] {
        ops::matmul(input({2, 3}), input({3}));
      },
      "[matmul] got float64 (2, 3) and float64 (3,)");
  expect_error<ShapeError>([] { ops::matmul(input({5, 2, 3}), input({4, 3, 4})); }, "two extents");
}

TEST(Vdot, ConjugatesTheFirstOperand) {
  const Variable a = input({2}, DType::complex128), b = input({2}, DType::complex128);
  const Tensor x = Tensor::from<C>({C(0, 1), C(2, 0)}), y = Tensor::from<C>({C(1, 0), C(0, 3)});
  EXPECT_EQ(evaluate(ops::vdot(a, b), {{a, x}, {b, y}}).item<C>(), C(0, -1) + C(0, 6));
  expect_error<ShapeError>([&] { ops::vdot(a, input({2, 2})); }, "[vdot] numbers of axes differ");
}

TEST(Norm2, IsRealAndOfIntegersInt64) {
  const Variable a = input({2}, DType::complex64);
  const std::vector<std::complex<float>> values{{3, 4}, {0, 1}};
  const Tensor result = evaluate(ops::norm2(a), {{a, Tensor::from(values)}});
  EXPECT_EQ(result.dtype(), DType::float32);
  EXPECT_EQ(result.item<float>(), 26);
  EXPECT_EQ(ops::norm2(input({2}, DType::int8)).dtype(), DType::int64);
}

}  // namespace
}  // namespace palimpsest
