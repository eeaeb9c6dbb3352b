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

TEST(Algebra, NumbersOutOfRangeMeetInDoublePrecision) {
  const Tensor x = Tensor::ones({2}, DType::float32);
  for (const auto& numbers : {std::vector{1e25, 1e25, 1e-25, 1e-25}, std::vector{1e30, 1e30, 1e-60},
                              std::vector{1e-60, 1e30, 1e30}}) {
    std::vector<NamedLinop> parts;
    for (const double number : numbers) parts.push_back(Scalar(number));
    const Tensor y = Chain(parts)(x);
    ASSERT_EQ(y.dtype(), DType::float32);
    for (const float value : y.to_vector<float>()) EXPECT_NEAR(value, 1, 1e-6);
  }
  // |alpha|^2 is out of range, what it makes of x is not.
  const Tensor large = Tensor::full({1}, 1e30).to(DType::float32);
  EXPECT_NEAR(Scalar(1e-30).N()(large).item<float>() / 1e-30F, 1, 1e-5);
  EXPECT_NEAR(Scalar(1e-200).N()(Tensor::full({1}, 1e300)).item<double>() / 1e-100, 1, 1e-12);
  const Tensor infinite = Chain(Scalar(1e200), Scalar(1e200)).N()(Tensor::ones({1}));
  EXPECT_EQ(infinite.dtype(), DType::float64);
  EXPECT_EQ(infinite.item<double>(), HUGE_VAL);
  const NamedLinop A = Dense(random({3, 2}, DType::float64), "MN,N->M");
  EXPECT_EQ((1e-200 * (1e200 * (1e200 * A)))(Tensor::ones({2})).dtype(), DType::float64);
}

TEST(Algebra, Powers) {
  const NamedLinop A = Dense(random({3, 3}), "MN,N->M", {.output = Dims("N")});
  expect_close(dense(pow(A, 3)), dense(A) * dense(A) * dense(A), 1e-10);
  EXPECT_TRUE(pow(A, 1).is(A));
  EXPECT_EQ(pow(A, 0).name(), "Identity");
  EXPECT_EQ(pow(A, 0).ishape(), Dims("N"));
  EXPECT_EQ(pow(Scalar(3, "N"), 2).attr("alpha").as_real(), 9);
  EXPECT_EQ(pow(Scalar(-2, "N"), 3).attr("alpha").as_real(), -8);
  EXPECT_EQ(pow(Scalar(4, "N"), -1).attr("alpha").as_real(), 0.25);
  EXPECT_EQ(pow(Identity("N"), -2).name(), "Identity");
  expect_error<ValueError>([] { pow(Scalar(0, "N"), -1); }, "division by zero");
  expect_error<ValueError>([&] { pow(A, -1); }, "none negative");
  expect_error<ValueError>([&] { pow(A, 0.5); }, "whole number");
  expect_error<ShapeError>([] { pow(Dense(random({3, 2}), "MN,N->M"), 2); }, "Mismatched");
}

TEST(Algebra, RealPowersOfDiagonals) {
  const NamedLinop D = Diagonal(Tensor::from<double>({1, 4, 9}), "N");
  const Tensor x = Tensor::ones({3});
  EXPECT_EQ(pow(D, 0.5)(x).to_vector<double>(), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(pow(D, -1.0)(x).to_vector<double>(), (std::vector<double>{1, 0.25, 1.0 / 9}));
  EXPECT_EQ(pow(D, -1)(x).to_vector<double>(), (std::vector<double>{1, 0.25, 1.0 / 9}));
  EXPECT_EQ(pow(D, 2.0)(x).to_vector<double>(), (std::vector<double>{1, 16, 81}));
  EXPECT_TRUE(pow(D, 0.5).param("weight").is(D.param("weight")));
  EXPECT_EQ(pow(Scalar(4, "N"), 0.5).attr("alpha").as_real(), 2);
  EXPECT_TRUE(allclose(pow(pow(D, 0.5), 0.5).N()(x), pow(D, 0.5)(x), 1e-14));
}

}  // namespace
}  // namespace palimpsest
