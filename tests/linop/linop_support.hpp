// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <string>
#include <vector>

#include "palimpsest/linop/containers/add.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/operators/pad.hpp"
#include "palimpsest/linop/operators/repeat.hpp"
#include "palimpsest/linop/operators/scalar.hpp"
#include "palimpsest/linop/operators/sum_reduce.hpp"
#include "palimpsest/linop/testing/testing.hpp"
#include "palimpsest/linop/transforms/fft.hpp"
#include "palimpsest/linop/transforms/sampling.hpp"
#include "support/difference.hpp"
#include "support/expect_error.hpp"

namespace palimpsest::testing {

using Complex = std::complex<double>;
/// Rows of numbers; a separate type, so that `*` is found.
struct Matrix : std::vector<std::vector<Complex>> {
  using vector::vector;
};

inline std::vector<Complex> values(const Tensor& t) {
  return t.to(DType::complex128).to_vector<Complex>();
}

inline Matrix dense(const NamedLinop& A, const TestOptions& options = {}) {
  const Tensor t = to_dense(A, options);
  const auto flat = values(t);
  Matrix m(static_cast<std::size_t>(t.shape(0)));
  const auto columns = static_cast<std::size_t>(t.shape(1));
  for (std::size_t i = 0; i < m.size(); ++i) {
    m[i].assign(flat.begin() + static_cast<std::ptrdiff_t>(i * columns),
                flat.begin() + static_cast<std::ptrdiff_t>((i + 1) * columns));
  }
  return m;
}

/// rows x columns from a formula.
inline Matrix matrix(std::size_t rows, std::size_t columns,
                     const std::function<Complex(std::size_t, std::size_t)>& f) {
  Matrix m(rows, std::vector<Complex>(columns));
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) m[i][j] = f(i, j);
  }
  return m;
}

inline Matrix adjoint(const Matrix& m) {
  return matrix(m[0].size(), m.size(),
                [&](std::size_t i, std::size_t j) { return std::conj(m[j][i]); });
}

inline Matrix operator*(const Matrix& a, const Matrix& b) {
  return matrix(a.size(), b[0].size(), [&](std::size_t i, std::size_t j) {
    Complex sum = 0;
    for (std::size_t k = 0; k < b.size(); ++k) sum += a[i][k] * b[k][j];
    return sum;
  });
}

inline void expect_close(const Matrix& a, const Matrix& b, double tolerance = 1e-12) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].size(), b[i].size());
    for (std::size_t j = 0; j < a[i].size(); ++j) {
      EXPECT_LE(std::abs(a[i][j] - b[i][j]), tolerance) << "at (" << i << ", " << j << ")";
    }
  }
}

/// Fourier transforms in a plan; a step with weights has two.
inline std::size_t count_transforms(const Plan& plan) {
  std::size_t n = 0;
  for (const PlannedStep& step : plan.steps) {
    const std::string name = step.node.op().name();
    const bool is_weighed = name.starts_with("WeightedFft") || name == "SenseNormal";
    n += is_weighed ? 2 : name.starts_with("Fft") ? 1 : 0;
  }
  return n;
}

inline Tensor random(Extents shape, DType dtype = DType::complex128, std::uint64_t stream = 7) {
  return Tensor::random_normal(std::move(shape), dtype, {11, stream});
}

}  // namespace palimpsest::testing
