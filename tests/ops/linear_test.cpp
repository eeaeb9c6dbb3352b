// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/linear.hpp"

#include <gtest/gtest.h>

#include <complex>

#include "ops/op_runner.hpp"
#include "palimpsest/ops/ops.hpp"
#include "samples/op_samples.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::evaluate;
using testing::expect_error;
using C = std::complex<double>;

Variable input(Extents shape, DType dtype = DType::complex128, std::string name = {}) {
  return make_input({dtype, std::move(shape), {}}, std::move(name));
}

// <A x, w> = <x, A^H w>, real part.
void expect_adjoint(const Variable& y, const Variable& x, double precision = 1e-12) {
  const Variable w = make_input(y.type());
  const Variable adjoint = linear_adjoint(y, x, w);
  EXPECT_EQ(adjoint.type(), x.type());
  const Tensor xv = ops::sample_values(x.type().shape, x.dtype(), 5);
  const Tensor wv = ops::sample_values(y.type().shape, y.dtype(), 6);
  const double left = testing::real_inner(evaluate(y, {{x, xv}}), wv);
  const double right = testing::real_inner(xv, evaluate(adjoint, {{w, wv}}));
  EXPECT_NEAR(left, right, precision * (1 + std::abs(left)));
}

TEST(LinearAdjoint, OfAnImagingChain) {
  const Variable x = input({4, 6});
  const Variable maps = constant(ops::sample_values({3, 4, 6}, DType::complex128, 7));
  const Variable rows = constant(Tensor::from<index_t>({0, 3, 3, 1}));
  const Variable columns = constant(Tensor::from<index_t>({5, 0, 1, 1}));
  const Variable coils = maps * ops::expand_dims(x, {0});
  const Variable padded = ops::pad(coils, {{0, 0}, {1, 1}, {0, 2}});
  const Variable k = ops::fft(padded, {-2, -1}, {FftNorm::ortho, true});
  const Variable indices[] = {rows, columns};
  const Variable y = ops::gather(k, indices);
  EXPECT_EQ(is_linear(y, x), Linearity::complex);
  expect_adjoint(y, x);
}

// The coil combination of SENSE: no array of the size of the coils is stored.
TEST(LinearAdjoint, OfABroadcastProductIsAContraction) {
  const Variable x = input({1, 4, 6}), maps = input({3, 4, 6}), w = input({3, 4, 6});
  const Variable adjoint = linear_adjoint(maps * x, x, w);
  for (const Apply& node : applications_of({&adjoint, 1})) {
    EXPECT_LE(element_count(node.output(0).type().shape), 24) << node.op().str();
  }
  const Variable constant_maps = constant(ops::sample_values({3, 4, 6}, DType::complex128, 2));
  expect_adjoint(constant_maps * x, x);
  const Variable u = make_input({DType::complex128, {1, kUnknown}, {}});
  const Variable v = make_input({DType::complex128, {kUnknown, kUnknown}, {}});
  EXPECT_EQ(linear_adjoint(u * v, u, v).type().shape, (Extents{1, kUnknown}));
}

TEST(LinearAdjoint, AddsUpAllPaths) {
  const Variable x = input({4});
  const Variable y = ops::roll(x, 1, 0) - 2 * x + ops::conj(ops::flip(x, {0}));
  EXPECT_EQ(is_linear(y, x), Linearity::real);
  expect_adjoint(y, x);
}

TEST(LinearAdjoint, PassesFromRealToComplexAndBack) {
  const Variable x = input({4}, DType::float64);
  const Variable y = ops::real(ops::fft(x, {0})) + 3 * ops::imag(ops::fft(x, {0}));
  expect_adjoint(y, x);
  const Variable z = input({4});
  const Variable parts[] = {ops::real(z), ops::imag(z)};
  expect_adjoint(ops::join(0, parts), z);
  expect_adjoint(ops::make_complex(ops::imag(z), ops::real(z)), z);
  expect_adjoint(ops::astype(ops::real(z), DType::float32), z, 1e-6);
}

TEST(LinearAdjoint, OfWritingIntoZeros) {
  const Variable x = input({3});
  const Variable y = ops::inc_subtensor(ops::zeros({6}, DType::complex128), {slice({}, {}, 2)}, x);
  EXPECT_EQ(is_linear(y, x), Linearity::complex);
  expect_adjoint(y, x);
  const Variable u = make_input({DType::complex128, {kUnknown}, {}});
  EXPECT_EQ(is_linear(ops::set_subtensor(ops::zeros_like(u), {index_t{0}}, ops::sum(u)), u),
            Linearity::complex);
}

TEST(IsLinear, TellsTheSenses) {
  const Variable x = input({4}), c = input({4});
  EXPECT_EQ(is_linear(x, x), Linearity::complex);
  EXPECT_EQ(is_linear(x * c, x), Linearity::complex);
  EXPECT_EQ(is_linear(ops::conj(x) / c, x), Linearity::conjugate);
  EXPECT_EQ(is_linear(ops::conj(ops::conj(x) * 2), x), Linearity::complex);
  EXPECT_EQ(is_linear(ops::vdot(x, c), x), Linearity::conjugate);
  EXPECT_EQ(is_linear(ops::vdot(c, x), x), Linearity::complex);
  EXPECT_EQ(is_linear(ops::real(x), x), Linearity::real);
  EXPECT_EQ(is_linear(ops::conj(x) + x, x), Linearity::real);
  EXPECT_EQ(is_linear(ops::zeros_like(x), x), Linearity::complex);
  EXPECT_EQ(is_linear(x * ops::zeros({4}, DType::complex128), x), Linearity::complex);
  EXPECT_EQ(is_linear(x * x, x), Linearity::no);
  EXPECT_EQ(is_linear(c / x, x), Linearity::no);
  EXPECT_EQ(is_linear(ops::vdot(x, x), x), Linearity::no);
  EXPECT_EQ(is_linear(x + 1, x), Linearity::no);
  EXPECT_EQ(is_linear(c, x), Linearity::no);
  EXPECT_EQ(is_linear(ops::abs(x), x), Linearity::no);
  EXPECT_EQ(is_linear(ops::pad(x, {{1, 0}}, 2), x), Linearity::no);
  EXPECT_EQ(is_linear(x + 0, x), Linearity::complex);
}

TEST(LinearAdjoint, NamesTheFirstOffendingOp) {
  const Variable x = input({4}, DType::complex128, "x"), w = input({4});
  expect_error<NotLinearError>([&] { linear_adjoint(ops::exp(x) * 2, x, w); },
                               "[linear_adjoint] <complex128 (4,)> is not linear in x: Exp is not "
                               "linear in its input 0");
  expect_error<NotLinearError>([&] { linear_adjoint(2 * x + 1, x, w); },
                               "Add makes it affine: an input does not depend on x");
  expect_error<NotLinearError>([&] { linear_adjoint(x * ops::conj(x), x, w); },
                               "Mul multiplies values that both depend on x");
  expect_error<NotLinearError>([&] { linear_adjoint(w, x, w); }, "does not depend on x");
}

TEST(LinearAdjoint, IntegersThatAreAddedMakeItAffine) {
  const Variable x = input({2}, DType::float64), n = input({2}, DType::int64);
  EXPECT_EQ(is_linear(x + n, x), Linearity::no);
  EXPECT_EQ(is_linear(x * n, x), Linearity::complex);
  EXPECT_EQ(is_linear(ops::where(ops::gt(n, 0), x, 0), x), Linearity::complex);
  EXPECT_EQ(is_linear(x * n, n), Linearity::no);
}

TEST(LinearAdjoint, OfAZeroMapIsZero) {
  const Variable x = input({4}), w = input({3});
  const Variable adjoint = linear_adjoint(ops::zeros({3}, DType::complex128), x, w);
  EXPECT_TRUE(equal(evaluate(adjoint), Tensor::zeros({4}, DType::complex128)));
}

TEST(Pullback, IsTheGradientConvention) {
  const Variable z = input({3}), one = constant(1.0);
  const Tensor value = ops::sample_values({3}, DType::complex128);
  const auto gradient = [&](const Variable& cost) {
    return evaluate(pullback({&cost, 1}, {&z, 1}, {&one, 1})[0], {{z, value}}).to_vector<C>();
  };
  const auto x = value.to_vector<C>();
  const auto square = gradient(ops::sum(ops::abs2(z)));
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(square[i], 2.0 * x[i]);
  EXPECT_EQ(gradient(ops::sum(ops::real(z))), (std::vector<C>{1, 1, 1}));
  const auto norm = gradient(ops::norm2(z));
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(norm[i], 2.0 * x[i]);
}

TEST(Pullback, OfALeastSquaresCostIsTheResidualGradient) {
  const Variable x = input({4}), a = constant(ops::sample_values({5, 4}, DType::complex128, 3));
  const Variable b = constant(ops::sample_values({5}, DType::complex128, 4));
  const Variable residual = ops::einsum("mn,n->m", a, x) - b;
  const Variable cost = ops::norm2(residual) * 0.5, one = constant(1.0);
  const Variable got = pullback({&cost, 1}, {&x, 1}, {&one, 1})[0];
  const Variable expected = ops::einsum("mn,m->n", a, residual, {.conj_a = true});
  const Tensor value = ops::sample_values({4}, DType::complex128, 9);
  EXPECT_LE(testing::distance(evaluate(got, {{x, value}}), evaluate(expected, {{x, value}})),
            1e-14);
}

TEST(Pullback, WithRespectToSeveralVariablesOneAboveTheOther) {
  const Variable x = input({2}, DType::float64), y = x * x, cost = ops::sum(y * 3);
  const Variable wrt[] = {y, x, input({5}, DType::float64)}, one = constant(1.0);
  const auto g = pullback({&cost, 1}, wrt, {&one, 1});
  const testing::Bindings bindings{{x, Tensor::from<double>({1, 2})}};
  EXPECT_EQ(evaluate(g[0], bindings).to_vector<double>(), (std::vector<double>{3, 3}));
  EXPECT_EQ(evaluate(g[1], bindings).to_vector<double>(), (std::vector<double>{6, 12}));
  EXPECT_TRUE(equal(evaluate(g[2]), Tensor::zeros({5})));
}

TEST(Pullback, IntegersAndUndefinedCotangentsGiveZeros) {
  const Variable i = input({2}, DType::int64);
  const Variable outs[] = {ops::astype(i, DType::float64), ops::sum(i)};
  const Variable cotangents[] = {input({2}, DType::float64), Variable()};
  const auto g = pullback(outs, {&i, 1}, cotangents);
  EXPECT_TRUE(equal(evaluate(g[0]), Tensor::zeros({2}, DType::int64)));
}

TEST(Pullback, WorksWithUnknownExtents) {
  const Variable x = make_input({DType::float64, {kUnknown, 3}, {}});
  const Variable cost = ops::sum(ops::mean(x * x, {Axes{0}, false})), one = constant(1.0);
  const Variable g = pullback({&cost, 1}, {&x, 1}, {&one, 1})[0];
  const Tensor value = Tensor::from<double>({1, 2, 3, 4, 5, 6}, Extents{2, 3});
  EXPECT_EQ(evaluate(g, {{x, value}}).to_vector<double>(), (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(Pullback, RefusesCotangentsOfAnotherType) {
  const Variable x = input({4}), y = ops::real(x);
  const auto with = [&](const Variable& w) { pullback({&y, 1}, {&x, 1}, {&w, 1}); };
  expect_error<ShapeError>([&] { with(input({3}, DType::float64)); },
                           "[pullback] cotangent of <float64 (4,)>: got float64 (3,)");
  expect_error<DTypeError>([&] { with(input({4})); }, "got complex128 (4,), expected float64 (4,)");
  expect_error<ValueError>(
      [&] {
        pullback({&y, 1}, {&x, 1}, {});
      },
      "[pullback] number of cotangents: got 0");
}

TEST(Pullback, OfALongChainNeedsNoStack) {
  const Variable x = input({1}, DType::float64);
  Variable y = x;
  for (int i = 0; i < 20000; ++i) y = ops::neg(y);
  const Variable w = input({1}, DType::float64);
  EXPECT_EQ(is_linear(y, x), Linearity::complex);
  EXPECT_TRUE(linear_adjoint(y, x, w).defined());
}

}  // namespace
}  // namespace palimpsest
