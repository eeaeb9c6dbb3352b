// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/products/products.hpp"

#include <gtest/gtest.h>

#include <complex>

#include "ops/op_runner.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/ops/products/contract_op.hpp"
#include "palimpsest/ops/products/svd.hpp"
#include "samples/op_samples.hpp"
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
  expect_error<ValueError>([&] { einsum("mn->m"); },
                           "[einsum] got \"mn->m\": 1 operands in the text, 2 arrays, expected a "
                           "text like");
  expect_error<ValueError>([&] { einsum("m.,n->m"); }, "'.' is not a letter");
  expect_error<ValueError>([&] { einsum("...m...,n->m"); }, "two '...' in one operand");
  expect_error<ShapeError>([&] { einsum("mm,n->m"); }, "[einsum] axis 0: extents differ");
  expect_error<ValueError>([&] { einsum("mn,n->mm"); }, "repeated label in the result");
  expect_error<ValueError>([&] { einsum("mn,n->k"); }, "a label of the result is in no operand");
  expect_error<ShapeError>([&] { einsum("mnk,n->m"); },
                           "[einsum] got 3 labels for an array of 2 axes in \"mnk,n->m\"");
  expect_error<ShapeError>(
      [&] { einsum("mn,m->n"); },
      "[product] axis 0 of the first and axis 0 of the second operand: got the "
      "extents 2 and 3 of (2, 3) and (3,), expected equal ones in mn,m->n");
  const int bad[] = {-1};
  expect_error<ValueError>([&] { ops::contract(b, bad, b, bad, {}); }, "got label -1");
  const Variable y = ops::einsum("mn,n->m", input({2, kUnknown}), b);
  expect_error<ShapeError>(
      [&] {
        y.owner().op().infer_shapes(y.owner(), std::vector<Extents>{{2, 4}, {3}});
      },
      "axis 1 of the first and axis 0 of the second operand: got the extents 4 and 3");
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
  EXPECT_EQ(ops::matmul(input({2, 3}), input({3})).type().shape, Extents{2});
  EXPECT_EQ(ops::matmul(input({2}), input({2, 3})).type().shape, Extents{3});
  EXPECT_EQ(ops::matmul(input({3}), input({3})).rank(), 0U);
  EXPECT_EQ(ops::matmul(input({4, 1, 2, 3}), input({5, 3, 6})).type().shape, (Extents{4, 5, 2, 6}));
  EXPECT_EQ(ops::matmul(input({3, 2}), input({7, 2, 3})).type().shape, (Extents{7, 3, 3}));
  EXPECT_EQ(ops::matmul(input({5, 3}), input({5, 3, 6})).type().shape, (Extents{5, 5, 6}));
  expect_error<ShapeError>([] { ops::matmul(input({}), input({3})); },
                           "[matmul] got float64 (), expected at least one axis. Try mul");
  expect_error<ShapeError>(
      [] {
        ops::matmul(input({5, 2, 3}), input({4, 3, 4}));
      },
      "got the extents 5 and 4");
  expect_error<ShapeError>(
      [] {
        ops::matmul(input({2, 3}), input({4, 2}));
      },
      "[matmul] axis 1 of the first and axis 0 of the second operand: got the "
      "extents 3 and 4 of (2, 3) and (4, 2), expected equal ones");
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

// Every element by the definition, for operands of small extents.
TEST(Matmul, BroadcastsBatchesLikeLoops) {
  const Tensor a = ops::sample_values({2, 1, 3, 4}, DType::float64, 1);
  const Tensor b = ops::sample_values({5, 4, 2}, DType::float64, 2);
  const Variable x = testing::input_like(a), y = testing::input_like(b);
  const Tensor got = evaluate(ops::matmul(x, y), {{x, a}, {y, b}});
  ASSERT_EQ(got.shape(), (Extents{2, 5, 3, 2}));
  for (index_t n = 0; n < 2; ++n) {
    for (index_t m = 0; m < 5; ++m) {
      for (index_t i = 0; i < 3; ++i) {
        for (index_t j = 0; j < 2; ++j) {
          double sum = 0;
          for (index_t k = 0; k < 4; ++k) {
            sum += a.at<double>({n, 0, i, k}) * b.at<double>({m, k, j});
          }
          EXPECT_NEAR(got.at<double>({n, m, i, j}), sum, 1e-14);
        }
      }
    }
  }
}

struct Values {
  Variable a = input({2, 3}), b = input({3, 4}), c = input({4, 2}), v = input({3});
  testing::Bindings bindings{{a, ops::sample_values({2, 3}, DType::float64, 1)},
                             {b, ops::sample_values({3, 4}, DType::float64, 2)},
                             {c, ops::sample_values({4, 2}, DType::float64, 3)},
                             {v, ops::sample_values({3}, DType::float64, 4)}};
  Tensor of(const Variable& x) const { return evaluate(x, bindings); }
  void expect_equal(const Variable& x, const Variable& y) const {
    EXPECT_EQ(x.type(), y.type());
    EXPECT_LE(testing::distance(of(x), of(y)), 1e-14);
  }
};

TEST(Einsum, OfSeveralOperands) {
  const Values s;
  s.expect_equal(ops::einsum("ij,jk,kl->il", {s.a, s.b, s.c}),
                 ops::matmul(ops::matmul(s.a, s.b), s.c));
  s.expect_equal(ops::einsum("ij,jk,ki", {s.a, s.b, s.c}),
                 ops::trace(ops::matmul(ops::matmul(s.a, s.b), s.c)));
  s.expect_equal(ops::einsum("ij->ji", {s.a}), ops::transpose(s.a));
  s.expect_equal(ops::einsum("ij->", {s.a}), ops::sum(s.a));
  s.expect_equal(ops::einsum("ba", {s.a}), ops::transpose(s.a));
  s.expect_equal(ops::einsum("ij,j->i", s.a, s.v), ops::matmul(s.a, s.v));
  s.expect_equal(ops::einsum("ij,j", s.a, s.v), ops::matmul(s.a, s.v));
}

TEST(Einsum, TakesDiagonalsAndEllipses) {
  const Values s;
  const Variable square = ops::matmul(s.b, ops::transpose(s.b));
  s.expect_equal(ops::einsum("ii->i", {square}), ops::diagonal(square));
  s.expect_equal(ops::einsum("ii", {square}), ops::trace(square));
  s.expect_equal(ops::einsum("ii,i->i", square, s.v), ops::diagonal(square) * s.v);
  const Variable batch = input({5, 1, 2, 3}), other = input({6, 3, 4});
  EXPECT_EQ(ops::einsum("...ij,...jk->...ik", batch, other).type(),
            ops::matmul(batch, other).type());
  EXPECT_EQ(ops::einsum("...ij,...jk", batch, other).type().shape, (Extents{5, 6, 2, 4}));
  EXPECT_EQ(ops::einsum("i...->...i", {batch}).type().shape, (Extents{1, 2, 3, 5}));
  const testing::Bindings bindings{{batch, ops::sample_values({5, 1, 2, 3}, DType::float64, 5)},
                                   {other, ops::sample_values({6, 3, 4}, DType::float64, 6)}};
  EXPECT_LE(testing::distance(evaluate(ops::einsum("...ij,...jk->...ik", batch, other), bindings),
                              evaluate(ops::matmul(batch, other), bindings)),
            1e-14);
}

TEST(Einsum, TakesThePairWithTheSmallestResultFirst) {
  const Variable big = input({50, 60}), middle = input({60, 70}), v = input({70});
  const Variable y = ops::einsum("ij,jk,k->i", {big, middle, v});
  // Two products of a matrix and a vector: no matrix is computed.
  EXPECT_EQ(y.owner().input(0).type().rank() + y.owner().input(1).type().rank(), 3U);
  for (const Apply& node : applications_of({&y, 1})) {
    EXPECT_LE(node.output(0).rank(), 1U) << node.op().str();
  }
}

TEST(Products, DotTensordotAndOuter) {
  const Values s;
  s.expect_equal(ops::dot(s.a, s.b), ops::matmul(s.a, s.b));
  s.expect_equal(ops::dot(s.v, s.v), ops::sum(s.v * s.v));
  s.expect_equal(ops::dot(s.v, s.b), ops::matmul(s.v, s.b));
  s.expect_equal(ops::dot(constant(2.0), s.b), s.b * 2);
  s.expect_equal(ops::tensordot(s.a, s.b, 1), ops::matmul(s.a, s.b));
  s.expect_equal(ops::tensordot(s.a, s.c, Axes{0}, Axes{-1}),
                 ops::matmul(ops::transpose(s.a), ops::transpose(s.c)));
  s.expect_equal(ops::tensordot(s.a, s.a, 2), ops::sum(s.a * s.a));
  EXPECT_EQ(ops::outer(s.a, s.v).type().shape, (Extents{6, 3}));
  EXPECT_EQ(ops::dot(input({2, 3, 4}), input({5, 4, 6})).type().shape, (Extents{2, 3, 5, 6}));
  expect_error<ShapeError>([&] { ops::tensordot(s.a, s.b, 3); },
                           "[tensordot] number of axes: got 3");
  expect_error<ValueError>([&] { ops::tensordot(s.a, s.b, Axes{0}, Axes{}); },
                           "[tensordot] numbers of axes differ");
  expect_error<ShapeError>([&] { ops::dot(s.a, s.a); }, "[dot] axis");
}

TEST(Products, DiagonalsAreViewsAndTheirAdjointWritesThem) {
  const Variable x = dmatrix("x");
  const Variable d = ops::diagonal(x, 1);
  EXPECT_EQ(d.owner().op().view_map(d.owner()), (AliasMap{{0, {0}}}));
  EXPECT_EQ(evaluate(d, {{x, kMatrix}}).to_vector<double>(), (V{2, 6}));
  EXPECT_EQ(evaluate(ops::trace(x, -1), {{x, kMatrix}}).item<double>(), 4);
  EXPECT_EQ(evaluate(grad(ops::sum(d * constant(V{7, 8})), x), {{x, kMatrix}}).to_vector<double>(),
            (V{0, 7, 0, 0, 0, 8}));
  expect_error<ShapeError>([&] { ops::diagonal(x, 0, 0, -2); }, "two different ones");
}

TEST(Gemm, AddsAScaledProductToAScaledMatrix) {
  const Variable z = input({2, 4}), alpha = input({}), beta = input({}), w = input({2});
  Values s;
  s.bindings.push_back({z, ops::sample_values({2, 4}, DType::float64, 7)});
  s.bindings.push_back({w, ops::sample_values({2}, DType::float64, 8)});
  s.bindings.push_back({alpha, Tensor::scalar(0.5)});
  s.bindings.push_back({beta, Tensor::scalar(-2.0)});
  s.expect_equal(ops::gemm(z, alpha, s.a, s.b, beta), z * beta + ops::matmul(s.a, s.b) * alpha);
  s.expect_equal(ops::gemv(w, alpha, s.a, s.v, 1), w + ops::matmul(s.a, s.v) * alpha);
  s.expect_equal(ops::ger(z, 2, w, s.c(all, 0)), z + ops::outer(w, s.c(all, 0)) * 2);
  EXPECT_EQ(ops::gemm(z, 1, s.a, s.b, 1).owner().op().name(), "Gemm");
  EXPECT_EQ(ops::gemv(w, 1, s.a, s.v, 1).owner().op().name(), "Gemv");
  EXPECT_EQ(ops::ger(z, 1, w, input({4})).owner().op().name(), "Ger");
  EXPECT_EQ(ops::gemm(ops::astype(z, DType::float32), 1, ops::astype(s.a, DType::float32),
                      ops::astype(s.b, DType::float32), 1.5)
                .dtype(),
            DType::float32);
}

TEST(Gemm, WithBetaZeroReadsNothingOfWhatIsThere) {
  for (const Extents& shape : {Extents{2, 3, 2}, Extents{20, 30, 20}}) {
    const Variable x = input({shape[0], shape[1]}), y = input({shape[1], shape[2]}),
                   z = input({shape[0], shape[2]});
    const Tensor nan = Tensor::full({shape[0], shape[2]}, NAN);
    const testing::Bindings bindings{{x, ops::sample_values({shape[0], shape[1]}, DType::float64)},
                                     {y, ops::sample_values({shape[1], shape[2]}, DType::float64)},
                                     {z, nan}};
    EXPECT_LE(testing::distance(evaluate(ops::gemm(z, 2, x, y, 0), bindings),
                                evaluate(ops::matmul(x, y) * 2, bindings)),
              1e-13);
  }
}

TEST(Gemm, RefusesWhatDoesNotFit) {
  const Values s;
  const Variable z = input({2, 4}), square = input({3, 3});
  expect_error<ShapeError>([&] { ops::gemm(s.v, 1, s.a, s.b, 1); },
                           "[gemm] operand 0: got float64 (3,), expected 2 axes");
  expect_error<ShapeError>([&] { ops::gemm(z, 1, s.b, s.a, 1); }, "got the extents 4 and 2");
  expect_error<ShapeError>([&] { ops::gemm(z, 1, square, square, 1); },
                           "[Gemm] axis 0: extents differ");
  expect_error<ShapeError>([&] { ops::gemv(s.v, s.v, s.a, s.v, 1); }, "[gemv] operand 1");
  const auto in_place =
      std::make_shared<ops::AddContract>(Contraction{{0, 1}, {1, 2}, {0, 2}}, DType::float64, true);
  const Variable one = constant(1.0);
  const Variable same[] = {square, one, square, input({3, 3}), one};
  expect_error<ValueError>([&] { in_place->make_node(same); },
                           "is overwritten while a factor shows its memory");
  const Variable wide[] = {ops::broadcast_to(input({1, 3}), {3, 3}), one, square, square, one};
  expect_error<ValueError>([&] { in_place->make_node(wide); }, "a broadcast view");
  const Apply pure = ops::gemm(square, 1, square, input({3, 3}), 1).owner();
  EXPECT_EQ(pure.op().inplace_on_inputs(pure, {0}), nullptr);
}

TEST(Svd, GivesTheMatrixBack) {
  for (const DType dtype : {DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    const double bound = real_of(dtype) == DType::float32 ? 1e-5 : 1e-13;
    for (const Extents& shape : {Extents{4, 3}, Extents{2, 3, 5}, Extents{1, 1}}) {
      const Variable a = input(shape, dtype);
      const Tensor value = Tensor::random_normal(shape, dtype, {29});
      const auto [u, s, vh] = ops::svd(a);
      const Variable back = ops::matmul(u * ops::expand_dims(s, {-2}), vh);
      EXPECT_LE(testing::distance(evaluate(back, {{a, value}}), value), bound);
      const Variable square = ops::matmul(vh, ops::conj(ops::swapaxes(vh, -1, -2)));
      const Variable one = ops::eye(square.type().shape.back(), {}, 0, dtype);
      EXPECT_LE(testing::distance(evaluate(square, {{a, value}}),
                                  evaluate(ops::zeros_like(square) + one, {{a, value}})),
                bound);
    }
  }
  const Variable a = input({2, 2});
  const Tensor s =
      evaluate(ops::svd(a).s, {{a, Tensor::from<double>({3, 0, 4, 5}, Extents{2, 2})}});
  EXPECT_NEAR(s.at<double>({0}), 6.708204, 1e-6);
  EXPECT_NEAR(s.at<double>({1}), 2.236068, 1e-6);
}

TEST(Svd, MatricesThatAreNotFiniteGiveNaN) {
  const Variable a = input({2, 1, 2});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor s =
      evaluate(ops::svd(a).s, {{a, Tensor::from<double>({nan, 0, 3, 4}, Extents{2, 1, 2})}});
  EXPECT_TRUE(std::isnan(s.at<double>({0, 0})));
  EXPECT_NEAR(s.at<double>({1, 0}), 5, 1e-14);
}

TEST(Svd, RefusesWhatIsNoMatrix) {
  expect_error<ShapeError>([] { ops::svd(input({3})); }, "[Svd] got float64 (3,)");
  expect_error<DTypeError>([] { ops::svd(input({3, 3}, DType::int64)); }, "[Svd] got int64");
}

}  // namespace
}  // namespace palimpsest
