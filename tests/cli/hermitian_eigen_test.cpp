// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/recon/hermitian_eigen.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/random.hpp"

namespace palimpsest::cli {
namespace {

using Complex = std::complex<double>;
using Matrix = std::vector<Complex>;

Matrix random_hermitian(std::size_t n, std::uint64_t seed) {
  const auto uniform = [seed](std::uint64_t i) {
    return static_cast<double>(random_bits({seed, 0}, i) >> 11) * 0x1p-53 - 0.5;
  };
  Matrix a(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      a[i * n + j] = {uniform(2 * (i * n + j)), uniform(2 * (i * n + j) + 1)};
      a[j * n + i] = std::conj(a[i * n + j]);
    }
    a[i * n + i] = uniform(2 * (i * n + i));
  }
  return a;
}

void expect_eigen(const Matrix& a, std::size_t n) {
  const HermitianEigen eigen = hermitian_eigen(a, n);
  ASSERT_EQ(eigen.values.size(), n);
  const double tolerance = 1e-14 * static_cast<double>(n) + 1e-14;
  for (std::size_t k = 0; k < n; ++k) {
    if (k > 0) {
      EXPECT_LE(eigen.values[k - 1], eigen.values[k]);
    }
    const Complex* v = &eigen.vectors[k * n];
    for (std::size_t i = 0; i < n; ++i) {
      Complex product = 0;
      for (std::size_t j = 0; j < n; ++j) product += a[i * n + j] * v[j];
      EXPECT_LT(std::abs(product - eigen.values[k] * v[i]), tolerance);
    }
    for (std::size_t l = 0; l <= k; ++l) {
      Complex overlap = 0;
      for (std::size_t j = 0; j < n; ++j) overlap += std::conj(eigen.vectors[l * n + j]) * v[j];
      EXPECT_LT(std::abs(overlap - (l == k ? 1.0 : 0.0)), tolerance);
    }
  }
}

TEST(HermitianEigen, DiagonalizesRandomMatrices) {
  for (const std::size_t n : {1U, 2U, 3U, 8U, 47U}) expect_eigen(random_hermitian(n, n), n);
}

TEST(HermitianEigen, HandlesRepeatedEigenvaluesAndZeros) {
  Matrix identity(25, 0.0);
  for (std::size_t i = 0; i < 5; ++i) identity[i * 6] = 3;
  expect_eigen(identity, 5);
  expect_eigen(Matrix(36, 0.0), 6);
  // Rank one: v v^H with v = (1, i, 1, i).
  Matrix rank_one(16);
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      const Complex vi = i % 2 == 0 ? Complex(1) : Complex(0, 1);
      const Complex vj = j % 2 == 0 ? Complex(1) : Complex(0, 1);
      rank_one[i * 4 + j] = vi * std::conj(vj);
    }
  }
  expect_eigen(rank_one, 4);
  EXPECT_NEAR(hermitian_eigen(rank_one, 4).values.back(), 4, 1e-14);
}

TEST(HermitianEigen, RejectsNaN) {
  Matrix a = random_hermitian(4, 1);
  a[5] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT([&] { hermitian_eigen(a, 4); },
              testing::ThrowsMessage<InternalError>(testing::HasSubstr("not finite")));
}

}  // namespace
}  // namespace palimpsest::cli
