// SPDX-License-Identifier: Apache-2.0
#include "linop/linop_support.hpp"

namespace palimpsest {
namespace {

using testing::Complex;
using testing::dense;
using testing::expect_close;
using testing::expect_error;
using testing::Matrix;
using testing::matrix;
using testing::random;

Matrix scaled(Complex s, const Matrix& m) {
  return matrix(m.size(), m[0].size(), [&](auto i, auto j) { return s * m[i][j]; });
}

TEST(Algebra, NumbersScale) {
  const NamedLinop A = Dense(random({3, 2}), "MN,N->M");
  const Matrix a = dense(A);
  expect_close(dense(2 * A), scaled(2, a));
  expect_close(dense(A * -3), scaled(-3, a));
  expect_close(dense(A / 2), scaled(0.5, a));
  expect_close(dense(-A), scaled(-1, a));
  const Complex s(1, -2);
  expect_close(dense(s * A), scaled(s, a));
  expect_close(dense(A * s), scaled(s, a));
  expect_close(dense((s * A).H()), testing::adjoint(scaled(s, a)));
  expect_close(dense((A * s).H()), testing::adjoint(scaled(s, a)));
  expect_close(dense((2 * A).N()), scaled(4, testing::adjoint(a) * a));
}

TEST(Algebra, NumbersStandOnTheirSide) {
  const NamedLinop A = Dense(random({3, 2}), "MN,N->M");
  EXPECT_EQ((2 * A).str(), "Chain(N -> M)\n  Dense(N -> M)\n  Scalar(M -> M)");
  EXPECT_EQ((A * 2).str(), "Chain(N -> M)\n  Scalar(N -> N)\n  Dense(N -> M)");
  EXPECT_EQ((3 * (2 * A)).linop_count(), 2u);
  EXPECT_EQ((2 * Identity("N")).str(), "Scalar(N -> N)");
  EXPECT_EQ((2 * Scalar(4, "N")).attr("alpha").as_real(), 8);
  EXPECT_EQ((-(A / -2))[1].attr("alpha").as_real(), 0.5);
}

TEST(Algebra, ParametersScale) {
  const NamedLinop A = Dense(random({3, 2}), "MN,N->M");
  Parameter s = Tensor::scalar(Complex(2, 1));
  const NamedLinop B = s * A, C = A * s;
  expect_close(dense(B), scaled({2, 1}, dense(A)));
  expect_close(dense(C.H()), testing::adjoint(scaled({2, 1}, dense(A))));
  s.set_value(Tensor::scalar(Complex(0, 1)));
  expect_close(dense(B), scaled({0, 1}, dense(A)));
  expect_error<ShapeError>([] { Scalar(Parameter(Tensor::ones({2}))); }, "Try Diagonal");
}

TEST(Algebra, ParametersDivide) {
  const NamedLinop A = Dense(random({3, 2}), "MN,N->M");
  Parameter s = Tensor::scalar(Complex(2, 1));
  const NamedLinop B = A / s;
  expect_close(dense(B), scaled(1.0 / Complex(2, 1), dense(A)));
  expect_close(dense(B.H()), testing::adjoint(scaled(1.0 / Complex(2, 1), dense(A))));
  s.set_value(Tensor::scalar(Complex(0, 4)));
  expect_close(dense(B), scaled(Complex(0, -0.25), dense(A)));
  expect_error<ValueError>([&] { A / Parameter(Tensor::scalar(0.0)); }, "division by zero");
  expect_error<ShapeError>([&] { A / Parameter(Tensor::ones({2})); }, "Try Diagonal");
}

// Operations without a meaning do not compile.
template <class L, class R>
constexpr bool kAdds = requires(const L& l, const R& r) {
  l + r;
};
template <class L, class R>
constexpr bool kMultiplies = requires(const L& l, const R& r) {
  l* r;
};
template <class L, class R>
constexpr bool kDivides = requires(const L& l, const R& r) {
  l / r;
};

TEST(Algebra, OtherCombinationsDoNotCompile) {
  static_assert(kAdds<NamedLinop, NamedLinop> && kMultiplies<NamedLinop, NamedLinop>);
  static_assert(kMultiplies<NamedLinop, Tensor> && kMultiplies<NamedLinop, Variable>);
  static_assert(kMultiplies<int, NamedLinop> && kMultiplies<NamedLinop, std::complex<float>>);
  static_assert(kDivides<NamedLinop, double> && kDivides<NamedLinop, Parameter>);
  static_assert(!kAdds<NamedLinop, double> && !kAdds<int, NamedLinop>);
  static_assert(!kAdds<NamedLinop, Tensor> && !kMultiplies<NamedLinop, std::string>);
  static_assert(!kMultiplies<std::string, NamedLinop> && !kAdds<Variable, NamedLinop>);
  static_assert(!kDivides<NamedLinop, NamedLinop> && !kDivides<double, NamedLinop>);
}

TEST(Algebra, DivisionByZeroIsRefused) {
  expect_error<ValueError>([] { Identity("N") / 0; }, "division by zero");
  expect_error<ValueError>([] { Identity("N") / Complex(0, 0); }, "[Identity]");
}

TEST(Algebra, ProductsComposeAndFlatten) {
  const NamedLinop A = Dense(random({5, 4}), "MK,K->M"), B = Dense(random({4, 3}), "KN,N->K");
  const NamedLinop C = Diagonal(random({3}), "N");
  EXPECT_EQ((A * B).shape().str(), "(N) -> (M)");
  EXPECT_EQ((A * B * C).linop_count(), 3u);
  EXPECT_EQ((A * (B * C)).linop_count(), 3u);
  EXPECT_EQ(flatten(Chain(Chain(C, B), A)).size(), 3u);
  EXPECT_EQ(flatten(A).size(), 1u);
  EXPECT_TRUE(flatten(A)[0].is(A));
  expect_close(dense(A * B * C), dense(A) * dense(B) * dense(C));
  expect_close(dense(A.compose(B)), dense(A) * dense(B));
  const Tensor x = random({3});
  EXPECT_TRUE(equal(B * x, B(x)));
}

TEST(Algebra, SumsAndDifferences) {
  const NamedLinop A = Dense(random({3, 2}), "MN,N->M");
  const NamedLinop B = Dense(random({3, 2}, DType::complex128, 8), "MN,N->M");
  const Matrix a = dense(A), b = dense(B);
  expect_close(dense(A + B), matrix(3, 2, [&](auto i, auto j) { return a[i][j] + b[i][j]; }));
  expect_close(dense(A - B), matrix(3, 2, [&](auto i, auto j) { return a[i][j] - b[i][j]; }));
}

TEST(Algebra, Powers) {
  const NamedLinop A = Dense(random({3, 3}), "MN,N->M", {.output = Dims("N")});
  expect_close(dense(pow(A, 3)), dense(A) * dense(A) * dense(A), 1e-10);
  EXPECT_TRUE(pow(A, 1).is(A));
  EXPECT_EQ(pow(A, 0).name(), "Identity");
  EXPECT_EQ(pow(A, 0).ishape(), Dims("N"));
  EXPECT_EQ(pow(Scalar(3, "N"), 2).attr("alpha").as_real(), 9);
  expect_error<ValueError>([&] { pow(A, -1); }, "none negative");
  expect_error<ValueError>([&] { pow(A, 0.5); }, "whole number");
  expect_error<ShapeError>([] { pow(Dense(random({3, 2}), "MN,N->M"), 2); }, "Mismatched");
}

TEST(Algebra, RealPowersOfDiagonals) {
  const NamedLinop D = Diagonal(Tensor::from<double>({1, 4, 9}), "N");
  const Tensor x = Tensor::ones({3});
  EXPECT_EQ(pow(D, 0.5)(x).to_vector<double>(), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(pow(D, -1.0)(x).to_vector<double>(), (std::vector<double>{1, 0.25, 1.0 / 9}));
  EXPECT_EQ(pow(D, 2.0)(x).to_vector<double>(), (std::vector<double>{1, 16, 81}));
  EXPECT_TRUE(pow(D, 0.5).param("weight").is(D.param("weight")));
  EXPECT_EQ(pow(Scalar(4, "N"), 0.5).attr("alpha").as_real(), 2);
  EXPECT_TRUE(allclose(pow(pow(D, 0.5), 0.5).N()(x), pow(D, 0.5)(x), 1e-14));
}

}  // namespace
}  // namespace palimpsest
