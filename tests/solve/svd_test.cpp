// SPDX-License-Identifier: Apache-2.0
// Singular values: both methods, compared with each other and with known values.
#include <gtest/gtest.h>

#include <cmath>

#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/operators/scalar.hpp"
#include "palimpsest/linop/transforms/finite_difference.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/solve/spectrum.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using Complex = std::complex<double>;
using Matrix = std::vector<std::vector<Complex>>;

Tensor random(Extents shape, DType dtype, std::uint64_t stream) {
  return Tensor::random_normal(std::move(shape), dtype, {61, stream});
}

double rounding_of(DType dtype) { return real_of(dtype) == DType::float32 ? 6e-8 : 1.2e-16; }

std::vector<Complex> values_of(const Tensor& t) {
  return t.to(DType::complex128).to_vector<Complex>();
}
std::vector<double> reals_of(const Tensor& t) { return t.to(DType::float64).to_vector<double>(); }

// The columns of U (o.., k) and the conjugates of the rows of Vh (k, i..), vector by vector.
Matrix vectors(const Tensor& t, index_t k, bool is_left) {
  const std::vector<Complex> all = values_of(t);
  const auto count = static_cast<std::size_t>(k), n = all.size() / count;
  Matrix result(count, std::vector<Complex>(n));
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      result[i][j] = is_left ? all[j * count + i] : std::conj(all[i * n + j]);
    }
  }
  return result;
}

void expect_orthonormal(const Matrix& v, DType dtype) {
  for (std::size_t i = 0; i < v.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      Complex dot = 0;
      for (std::size_t l = 0; l < v[i].size(); ++l) dot += std::conj(v[j][l]) * v[i][l];
      // 60 to 130 times the rounding error, by the processor's BLAS.
      EXPECT_LE(std::abs(dot - (i == j ? 1.0 : 0.0)), 300 * rounding_of(dtype)) << i << " " << j;
    }
  }
}

// A v = s u for each triplet, and orthonormal vectors; x has the given extents.
void expect_triplets(const NamedLinop& A, const SvdResult& r, const Extents& x, double bound) {
  const index_t k = r.S.shape()[0];
  const DType dtype = r.U.dtype();
  expect_orthonormal(vectors(r.U, k, true), dtype);
  expect_orthonormal(vectors(r.Vh, k, false), dtype);
  const std::vector<double> s = reals_of(r.S);
  const Matrix u = vectors(r.U, k, true), v = vectors(r.Vh, k, false);
  for (std::size_t i = 0; i < s.size(); ++i) {
    EXPECT_GE(s[i], 0);
    if (i > 0) {
      EXPECT_LE(s[i], s[i - 1]);
    }
    std::vector<Complex> right = v[i];
    Tensor vector = Tensor::from(right, x);
    if (!is_complex(dtype)) {
      std::vector<double> reals;
      for (const Complex& c : right) reals.push_back(c.real());
      vector = Tensor::from(reals, x);
    }
    const std::vector<Complex> image = values_of(A(vector.to(dtype)));
    double miss = 0;
    for (std::size_t j = 0; j < image.size(); ++j) miss += std::norm(image[j] - s[i] * u[i][j]);
    EXPECT_LE(std::sqrt(miss), bound * std::max(s[0], 1e-300)) << i;
  }
}

class Svd : public ::testing::TestWithParam<DType> {
 protected:
  DType dtype() const { return GetParam(); }
  double bound() const { return 2e3 * rounding_of(dtype()); }
  NamedLinop matrix(index_t rows, index_t columns, std::uint64_t stream) const {
    return Dense(random({rows, columns}, dtype(), stream), "MN,N->M");
  }
  // A random matrix of this rank.
  NamedLinop product(index_t rows, index_t rank, index_t columns) const {
    return Dense(random({rows, rank}, dtype(), 2), "MR,R->M") *
           Dense(random({rank, columns}, dtype(), 3), "RN,N->R");
  }
  SvdOptions iterating() const { return {.tolerance = bound(), .dense_side = 0}; }
};

TEST_P(Svd, BothWaysAgree) {
  for (const auto& [rows, columns] : {std::pair<index_t, index_t>{40, 25}, {25, 40}, {30, 30}}) {
    const NamedLinop A = matrix(rows, columns, 1);
    const SvdResult dense = svd(A, 4), found = svd(A, 4, iterating());
    EXPECT_EQ(dense.status, Status::converged);
    EXPECT_EQ(found.status, Status::converged);
    EXPECT_EQ(dense.U.shape(), (Extents{rows, 4}));
    EXPECT_EQ(dense.Vh.shape(), (Extents{4, columns}));
    EXPECT_EQ(dense.S.dtype(), real_of(dtype()));
    EXPECT_EQ(dense.iterations, std::min(rows, columns));
    EXPECT_EQ(dense.applications.at(rows >= columns ? "A" : "A^H"), std::min(rows, columns));
    EXPECT_EQ(found.applications.at("A"), found.iterations);
    EXPECT_EQ(found.applications.at("A^H"), found.iterations + 1);
    expect_triplets(A, dense, {columns}, bound());
    expect_triplets(A, found, {columns}, bound());
    const std::vector<double> s = reals_of(dense.S), t = reals_of(found.S);
    for (std::size_t i = 0; i < s.size(); ++i) EXPECT_NEAR(s[i], t[i], bound() * s[0]);
  }
}

TEST_P(Svd, BeyondTheRankVectorsAreOrthonormal) {
  for (const auto& [rows, columns] : {std::pair<index_t, index_t>{30, 20}, {20, 30}}) {
    const NamedLinop A = product(rows, 3, columns), none = 0 * matrix(rows, columns, 1);
    for (const SvdOptions& options : {SvdOptions(), iterating()}) {
      const SvdResult found = svd(A, 6, options);
      EXPECT_EQ(found.status, Status::converged);
      expect_triplets(A, found, {columns}, bound());
      const std::vector<double> s = reals_of(found.S);
      EXPECT_GT(s[2], 1);
      for (const std::size_t i : {3u, 4u, 5u}) EXPECT_LE(s[i], 100 * rounding_of(dtype()) * s[0]);
      const SvdResult nothing = svd(none, 2, options);
      EXPECT_EQ(reals_of(nothing.S), (std::vector{0.0, 0.0}));
      expect_triplets(none, nothing, {columns}, bound());
    }
  }
}

// Equal values, which a single start vector does not distinguish; and all values.
TEST_P(Svd, EqualValuesAreFoundAsOftenAsTheyAre) {
  const NamedLinop A = Diagonal(Tensor::full({9}, 3.0).to(dtype()), "N");
  for (const SvdOptions& options : {SvdOptions(), iterating()}) {
    for (const index_t k : {1, 4, 9}) {
      const SvdResult found = svd(A, k, options);
      EXPECT_EQ(found.status, Status::converged);
      expect_triplets(A, found, {9}, bound());
      for (const double s : reals_of(found.S)) EXPECT_NEAR(s, 3, bound());
    }
  }
}

TEST_P(Svd, RestartsFindWhatTheWholeBasisFinds) {
  const index_t n = 700;
  const Tensor weights = Tensor::linspace(1.0, 30.0, n).to(dtype());
  const NamedLinop A = Diagonal(weights, "N");
  SvdOptions options{.tolerance = real_of(dtype()) == DType::float32 ? 1e-4 : 1e-9};
  const SvdResult found = svd(A, 3, options);
  EXPECT_EQ(found.status, Status::converged);
  EXPECT_GT(found.iterations, 2 * 16);
  expect_triplets(A, found, {n}, bound());
  const std::vector<double> s = reals_of(found.S);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(s[i], 30 - static_cast<double>(i) * 29.0 / (n - 1), 30 * bound());
  }
  options.vectors = 60;
  const SvdResult more = svd(A, 3, options);
  EXPECT_LT(more.iterations, found.iterations);
  EXPECT_NEAR(reals_of(more.S)[2], s[2], 30 * bound());
}

TEST_P(Svd, ABatchIsItsElements) {
  const index_t m = 14, n = 11;
  for (const bool is_first : {true, false}) {
    const NamedLinop A = is_first ? Dense(random({2, m, n}, dtype(), 4), "S M N,S N->S M")
                                  : Dense(random({m, n, 2}, dtype(), 4), "M N S,N S->M S");
    for (SvdOptions options : {SvdOptions(), iterating()}) {
      options.batch = "S";
      const SvdResult found = svd(A, 2, options);
      EXPECT_EQ(found.status, Status::converged);
      EXPECT_EQ(found.S.shape(), (Extents{2, 2}));
      EXPECT_EQ(found.U.shape(), (is_first ? Extents{2, m, 2} : Extents{m, 2, 2}));
      EXPECT_EQ(found.Vh.shape(), (is_first ? Extents{2, 2, n} : Extents{2, n, 2}));
      for (index_t s = 0; s < 2; ++s) {
        const NamedLinop part = A.split({{"S", slice(s, s + 1)}});
        SvdResult own;
        own.U = found.U.narrow(is_first ? 0 : 1, s, 1).contiguous();
        own.Vh = found.Vh.narrow(is_first ? 1 : 2, s, 1).contiguous();
        own.S = found.S.narrow(0, s, 1).reshape({2});
        expect_triplets(part, own, is_first ? Extents{1, n} : Extents{n, 1}, bound());
        options.batch = {};
        const std::vector<double> alone = reals_of(svd(part, 2, options).S);
        for (std::size_t i = 0; i < 2; ++i) {
          EXPECT_NEAR(reals_of(own.S)[i], alone[i], bound() * alone[0]);
        }
      }
    }
  }
}

// An element has ended when the bases of the other are restarted.
TEST_P(Svd, ElementsOfABatchEndOnTheirOwn) {
  const index_t n = 60;
  for (const bool is_first : {true, false}) {
    Tensor weights = Tensor::linspace(1.0, 2.0, 2 * n).reshape({2, n});
    weights.narrow(0, 0, 1).narrow(1, 7, 1).fill(50.0);
    if (!is_first) weights = weights.permute({1, 0}).contiguous();
    const NamedLinop A = Diagonal(weights.to(dtype()), is_first ? "S N" : "N S");
    SvdOptions options{.tolerance = bound(), .vectors = 6, .dense_side = 0};
    options.batch = "S";
    const SvdResult found = svd(A, 1, options);
    EXPECT_EQ(found.status, Status::converged);
    const std::vector<double> s = reals_of(found.S);
    EXPECT_NEAR(s[0], 50, 50 * bound());
    EXPECT_NEAR(s[1], 2, 2 * bound());
    options.batch = {};
    const SvdResult first = svd(A.split({{"S", slice(0, 1)}}), 1, options);
    EXPECT_LT(3 * first.iterations, found.iterations);
    for (index_t k = 0; k < 2; ++k) {
      SvdResult own;
      own.U = found.U.narrow(is_first ? 0 : 1, k, 1).contiguous();
      own.Vh = found.Vh.narrow(is_first ? 1 : 2, k, 1).contiguous();
      own.S = found.S.narrow(0, k, 1).reshape({1});
      expect_triplets(A.split({{"S", slice(k, k + 1)}}), own,
                      is_first ? Extents{1, n} : Extents{n, 1}, bound());
    }
  }
}

// Elements whose squares are beyond the range of the dtype.
TEST_P(Svd, UnitsDoNotMatterToWholeMatrices) {
  for (const double unit : {1e-30, 1e30}) {
    const NamedLinop A = unit * matrix(9, 7, 5), same = matrix(9, 7, 5);
    const std::vector<double> s = reals_of(svd(A, 3).S), expected = reals_of(svd(same, 3).S);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(s[i] / unit, expected[i], bound() * expected[0]);
    }
  }
  const NamedLinop none = std::nan("") * matrix(4, 3, 5);
  EXPECT_EQ(svd(none, 1).status, Status::diverged);
  EXPECT_EQ(svd(none, 1, iterating()).status, Status::diverged);
}

TEST_P(Svd, TakesWhatWasAnnounced) {
  const NamedLinop A = matrix(60, 50, 7);
  for (const SvdOptions& options : {SvdOptions(), iterating()}) {
    const SolvePlan plan = plan_svd(A, 3, options);
    const MemoryScope scope;
    const SvdResult found = svd(A, 3, options);
    EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes);
    EXPECT_EQ(found.peak_bytes, plan.peak_bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryDtype, Svd,
                         ::testing::Values(DType::float32, DType::float64, DType::complex64,
                                           DType::complex128),
                         [](const auto& c) { return std::string(name_of(c.param)); });

// Singular values of differences are known: 2 sin(pi j / (2 n)).
TEST(Svd, OfAnOperatorWithoutAMatrix) {
  const index_t n = 40;
  const NamedLinop D =
      FiniteDifference("N", "N", {.boundary = DifferenceBoundary::neumann}).with_sizes({{"N", n}});
  for (const index_t side : {0, 512}) {
    const SvdResult found = svd(D, 5, {.tolerance = 1e-12, .dense_side = side});
    EXPECT_EQ(found.U.dtype(), DType::float64);
    const std::vector<double> s = reals_of(found.S);
    for (int i = 0; i < 5; ++i) {
      const double angle = M_PI * static_cast<double>(n - 1 - i) / (2.0 * static_cast<double>(n));
      EXPECT_NEAR(s[static_cast<std::size_t>(i)], 2 * std::sin(angle), 1e-12);
    }
  }
  EXPECT_EQ(svd(D, 1, {.dtype = DType::complex64}).U.dtype(), DType::complex64);
}

// The whole matrix does not fit, the bases do.
TEST(Svd, IteratesWhereTheMatrixDoesNotFit) {
  const NamedLinop A = Dense(random({60, 60}, DType::float64, 8), "MN,N->M");
  SvdOptions options{.tolerance = 1e-8};
  EXPECT_EQ(svd(A, 1, options).iterations, 60);
  const index_t operator_bytes = 60 * 60 * 8;
  options.budget_bytes = operator_bytes + 40000;
  const SvdResult found = svd(A, 1, options);
  EXPECT_EQ(found.status, Status::converged);
  EXPECT_LT(found.iterations, 60);
  EXPECT_LE(found.peak_bytes, 40000);
  options.budget_bytes = plan_svd(A, 1, options).total_bytes();
  EXPECT_EQ(svd(A, 1, options).peak_bytes, found.peak_bytes);
}

TEST(Svd, RefusesNonsense) {
  const NamedLinop A = Dense(Tensor::ones({4, 3}), "MN,N->M");
  expect_error<ValueError>([&] { svd(A, 4); }, "[svd] k: got 4, expected at most 3");
  expect_error<ValueError>([&] { svd(A, 0); }, "[svd] k: got 0, expected at least 1");
  expect_error<ValueError>([&] { svd(A, 2, {.vectors = 2}); }, "[svd] vectors: got 2");
  expect_error<ShapeError>([] { svd(Identity("N"), 1); }, "is unknown");
  const NamedLinop empty = Identity("N").with_sizes({{"N", 0}});
  expect_error<ValueError>([&] { svd(empty, 1); }, "[svd] k: got 1, expected at most 0");
}

}  // namespace
}  // namespace palimpsest
