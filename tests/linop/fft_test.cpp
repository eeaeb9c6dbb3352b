// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "linop/linop_support.hpp"

namespace palimpsest {
namespace {

using testing::Complex;
using testing::dense;
using testing::expect_close;
using testing::expect_error;
using testing::Matrix;
using testing::random;

double scale(FftNorm norm, double n) {
  return norm == FftNorm::backward ? 1 : norm == FftNorm::ortho ? 1 / std::sqrt(n) : 1 / n;
}

// The definition, over the axes of these sizes.
Matrix transform(const std::vector<std::size_t>& sizes, FftNorm norm, bool centered) {
  std::size_t n = 1;
  for (std::size_t size : sizes) n *= size;
  return testing::matrix(n, n, [&](std::size_t k, std::size_t j) {
    double turns = 0;
    for (std::size_t d = sizes.size(); d-- > 0;) {
      const auto size = static_cast<double>(sizes[d]);
      const double c = centered ? std::floor(size / 2) : 0;
      turns +=
          (static_cast<double>(k % sizes[d]) - c) * (static_cast<double>(j % sizes[d]) - c) / size;
      k /= sizes[d];
      j /= sizes[d];
    }
    return scale(norm, static_cast<double>(n)) * std::polar(1.0, -2 * std::numbers::pi * turns);
  });
}

TEST(Fft, IsItsDefinition) {
  for (const bool centered : {false, true}) {
    for (const FftNorm norm : {FftNorm::ortho, FftNorm::backward, FftNorm::forward}) {
      for (const index_t n : {1, 4, 5}) {
        const NamedLinop A = Fft(2, {.norm = norm, .centered = centered});
        const TestOptions options{.sizes = {{"Nx", n}, {"Ny", 3}, {"Kx", n}, {"Ky", 3}}};
        const Matrix expected = transform({static_cast<std::size_t>(n), 3}, norm, centered);
        expect_close(dense(A, options), expected);
        expect_close(dense(A.H(), options), testing::adjoint(expected));
        expect_close(dense(A.N(), options), testing::adjoint(expected) * expected, 1e-10);
        expect_close(dense(A.H().N(), options), expected * testing::adjoint(expected), 1e-10);
        const NamedLinop inverse = A.inverse();
        EXPECT_EQ(inverse.shape().str(), A.shape().H().str());
        expect_close(dense(inverse, options) * expected,
                     testing::matrix(expected.size(), expected.size(),
                                     [](auto i, auto j) { return Complex(i == j); }));
        expect_close(dense(inverse.H(), options), testing::adjoint(dense(inverse, options)));
        expect_close(dense(inverse.inverse(), options), expected);
        expect_close(dense(A.H().inverse(), options), testing::adjoint(dense(inverse, options)));
      }
    }
  }
}

TEST(Fft, ActsOnTheLastAxes) {
  const Tensor x = random({2, 4, 5});
  const Tensor y = Fft(1)(x);
  EXPECT_TRUE(allclose(y.select(0, 1).select(0, 2), Fft(1)(x.select(0, 1).select(0, 2))));
  EXPECT_EQ(Fft(2, {.batch = "C"})(x).shape(), x.shape());
}

TEST(Fft, HasDefaultNames) {
  EXPECT_EQ(Fft(1).shape().str(), "(..., Nx) -> (..., Kx)");
  EXPECT_EQ(Fft(3, {.batch = "C"}).shape().str(), "(C, Nx, Ny, Nz) -> (C, Kx, Ky, Kz)");
  EXPECT_EQ(Fft(4).shape().str(), "(..., N1, N2, N3, N4) -> (..., K1, K2, K3, K4)");
  EXPECT_EQ(Fft(2, {.grid = Grid{"NyNx", "KyKx"}}).shape().str(), "(..., Ny, Nx) -> (..., Ky, Kx)");
}

TEST(Fft, ItsNormalIsANumber) {
  EXPECT_EQ(Fft(2).N().name(), "Identity");
  EXPECT_EQ(Fft(1, {.norm = FftNorm::backward}).with_sizes({{"Nx", 6}}).N().attr("alpha").as_real(),
            6);
  EXPECT_EQ(Fft(1, {.norm = FftNorm::forward}).with_sizes({{"Nx", 4}}).N().attr("alpha").as_real(),
            0.25);
  // Without sizes the factor is computed when the input is known.
  const NamedLinop N = Fft(1, {.norm = FftNorm::backward}).N();
  EXPECT_EQ(N(Tensor::ones({5})).to_vector<double>(), std::vector<double>(5, 5));
  const NamedLinop inner = Diagonal(random({4}), "Kx");
  EXPECT_EQ(Fft(1).normal(inner).str(),
            "Chain(Nx -> Nx)\n  Fft(Nx -> Kx)\n  Diagonal(Kx -> Kx)\n  Fft.H(Kx -> Nx)");
}

TEST(Fft, AForwardAndAnAdjointAreOneCallEach) {
  const NamedLinop A = Fft(2, {.centered = true});
  for (const NamedLinop& B : {A, A.H()}) {
    EXPECT_EQ(B.plan({DType::complex64, {8, 8}, {}}).steps.size(), 1u);
  }
  EXPECT_TRUE(A.N().plan({DType::complex64, {8, 8}, {}}).steps.empty());
}

TEST(Fft, WrongArguments) {
  expect_error<ValueError>([] { Fft(0); }, "ndim");
  expect_error<ValueError>([] { Fft(2, {.grid = Grid{"Nx", "KxKy"}}); }, "grid");
  expect_error<ValueError>([] { Fft(2, {.grid = Grid{"NxNy", "Kx"}}); }, "grid");
  expect_error<ValueError>([] { Fft(1, {.grid = Grid{"...", "Kx"}}); }, "grid");
}

}  // namespace
}  // namespace palimpsest
