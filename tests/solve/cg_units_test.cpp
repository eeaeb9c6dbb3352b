// SPDX-License-Identifier: Apache-2.0
// Results do not depend on the units of the right-hand side, and a residual at rounding level is
// convergence.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "palimpsest/linop/containers/add.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/operators/scalar.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"

namespace palimpsest {
namespace {

Tensor random(Extents shape, DType dtype, std::uint64_t stream) {
  return Tensor::random_normal(std::move(shape), dtype, {9, stream});
}

NamedLinop positive(DType dtype, index_t n) {
  return Dense(random({4 * n, n}, dtype, 0), "MN,N->M").N() + Identity("N");
}

// x * factor, rounded once.
Tensor times(const Tensor& x, double factor) {
  const bool complex = is_complex(x.dtype());
  Tensor scaled = x.to(complex ? DType::complex128 : DType::float64).clone();
  auto* values = static_cast<double*>(scaled.raw_mutable_data());
  for (index_t i = 0; i < scaled.numel() * (complex ? 2 : 1); ++i) values[i] *= factor;
  return scaled.to(x.dtype());
}

double difference(const Tensor& a, const Tensor& b) {
  const auto u = a.to(DType::complex128).to_vector<std::complex<double>>();
  const auto v = b.to(DType::complex128).to_vector<std::complex<double>>();
  double most = 0, largest = 0;
  for (std::size_t i = 0; i < u.size(); ++i) {
    most = std::max(most, std::abs(u[i] - v[i]));
    largest = std::max(largest, std::abs(v[i]));
  }
  return most / largest;
}

struct Units {
  DType dtype;
  std::vector<double> factors;
  double tolerance, rounding;
};

class CgUnits : public ::testing::TestWithParam<Units> {};

// Also with x0, a preconditioner and refreshing: the same iterations, residuals and image.
TEST_P(CgUnits, DoNotMatter) {
  const auto& [dtype, factors, tolerance, rounding] = GetParam();
  const NamedLinop A = positive(dtype, 24);
  const Tensor b = random({24}, dtype, 1), x0 = random({24}, dtype, 2);
  for (const bool with_x0 : {false, true}) {
    for (const bool with_m : {false, true}) {
      for (const int refresh : {0, 3}) {
        CgOptions options{.tolerance = tolerance, .refresh = refresh};
        if (with_m) options.M = Scalar(0.25, "N");
        if (with_x0) options.x0 = x0;
        Tensor at_two;
        const auto keep = [&at_two](const CgInfo& info) {
          if (info.iteration() == 2) at_two = info.x();
          return true;
        };
        options.callback = keep;
        const SolveResult plain = conjugate_gradients(A, b, options);
        const Tensor plain_at_two = at_two;
        ASSERT_EQ(plain.status, Status::converged);
        for (const double factor : factors) {
          SCOPED_TRACE(factor);
          if (with_x0) options.x0 = times(x0, factor);
          const SolveResult scaled = conjugate_gradients(A, times(b, factor), options);
          EXPECT_EQ(scaled.status, Status::converged);
          EXPECT_EQ(scaled.iterations, plain.iterations);
          EXPECT_LE(difference(times(scaled.x, 1 / factor), plain.x), rounding);
          EXPECT_LE(difference(times(at_two, 1 / factor), plain_at_two), rounding);
          ASSERT_EQ(scaled.history.size(), plain.history.size());
          for (std::size_t i = 0; i < plain.history.size(); ++i) {
            // Products with factors that are no powers of 2 round. These errors are relative to the
            // first residual: 100 units of rounding with some processors' BLAS.
            EXPECT_NEAR(scaled.history[i].residual, plain.history[i].residual,
                        rounding / 10 * plain.history[0].residual);
          }
        }
      }
    }
  }
}

const std::vector<double> kOfFloat = {1e-30, 1e-24, 1e-20, 1e-12, 1e-6, 1e6, 1e18, 1e30};
const std::vector<double> kOfDouble = {1e-300, 1e-200, 1e-150, 1e-30, 1e30, 1e150, 1e200, 1e300};

INSTANTIATE_TEST_SUITE_P(EveryDtype, CgUnits,
                         ::testing::Values(Units{DType::float32, kOfFloat, 1e-4, 1e-4},
                                           Units{DType::complex64, kOfFloat, 1e-4, 1e-4},
                                           Units{DType::float64, kOfDouble, 1e-9, 1e-12},
                                           Units{DType::complex128, kOfDouble, 1e-9, 1e-12}));

TEST(CgUnits, PowersOfTwoChangeNoBit) {
  const NamedLinop A = positive(DType::float32, 24);
  const Tensor b = random({24}, DType::float32, 1);
  const CgOptions options{.tolerance = 1e-5};
  const Tensor x = conjugate_gradients(A, b, options).x;
  for (const int exponent : {-100, -17, -16, 16, 17, 100}) {
    const double factor = std::ldexp(1.0, exponent);
    EXPECT_TRUE(equal(conjugate_gradients(A, times(b, factor), options).x, times(x, factor)))
        << exponent;
  }
}

TEST(CgUnits, TheObjectiveHasTheUnitsOfB) {
  const NamedLinop A = 2 * Identity("N");
  const SolveResult result = conjugate_gradients(A, times(Tensor::ones({4}), 1e40));
  EXPECT_NEAR(result.history.back().objective / 1e80, -1, 1e-12);
}

TEST(CgUnits, ScalingTakesNoMemory) {
  const NamedLinop A = positive(DType::complex64, 64);
  for (const int refresh : {0, 2}) {
    const CgOptions options{.tolerance = 1e-4, .refresh = refresh};
    const Tensor b = times(random({64}, DType::complex64, 1), 1e-25);
    const SolvePlan plan = plan_conjugate_gradients(A, {b.dtype(), b.shape(), {}}, options);
    const MemoryScope scope;
    conjugate_gradients(A, b, options);
    EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes);
  }
}

TEST(CgUnits, ASolutionBeyondTheRangeIsDivergence) {
  const NamedLinop A = Scalar(1e-20, "N");
  const Tensor b = Tensor::full<float>({4}, 1e30F);
  EXPECT_EQ(conjugate_gradients(A, b).status, Status::diverged);
}

// Previously each continued until its numbers underflowed, which looked like divergence or
// breakdown.
TEST(CgRounding, IsConvergence) {
  for (const DType dtype : {DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    const NamedLinop A = positive(dtype, 30);
    const Tensor b = random({30}, dtype, 1);
    const SolveResult result = conjugate_gradients(A, b, {.tolerance = 0, .max_iterations = 3000});
    EXPECT_EQ(result.status, Status::converged) << name_of(dtype);
    EXPECT_LT(result.iterations, 200) << name_of(dtype);
    EXPECT_LE(difference(A(result.x), b), real_of(dtype) == DType::float32 ? 1e-5 : 1e-13);
  }
}

}  // namespace
}  // namespace palimpsest
