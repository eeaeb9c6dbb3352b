// SPDX-License-Identifier: Apache-2.0
// Steps and penalties that adapt reach the minimum of fixed ones, on random problems.
#include <gtest/gtest.h>

#include <cmath>

#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/solve/objective.hpp"
#include "palimpsest/solve/prox/norms.hpp"

namespace palimpsest {
namespace {

// min |A x - b|^2 / 2 + lambda |K x - d|: of many of them K x - d is 0 at the minimum.
struct Case {
  NamedLinop A, K;
  Tensor b, d;
  double lambda;

  Case(std::uint64_t seed, double step, bool has_shift) : lambda(0.02 + step * double(seed)) {
    const auto random = [&](Extents shape, std::uint64_t stream) {
      return Tensor::random_normal(std::move(shape), DType::float64, {seed, stream});
    };
    const index_t rows = 1 + static_cast<index_t>(seed % 6);
    A = 0.25 * Dense(random({16, 12}, 1), "MN,N->M");
    K = Dense(random({rows, 12}, 2), "QN,N->Q");
    b = random({16}, 3);
    d = has_shift ? random({rows}, 4) : Tensor::zeros({rows}, DType::float64);
  }
  Objective objective() const { return {.A = A, .terms = {Term{L2(lambda), K, d}}}; }
  double value(const Tensor& x) const {
    const double miss = norm(A(x) - b).item<double>();
    return miss * miss / 2 + lambda * norm(K(x) - d).item<double>();
  }
};

class Adaption : public ::testing::TestWithParam<bool> {
 protected:
  template <class Check>
  static void for_cases(Check check) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      const Case c(seed, GetParam() ? 0.007 : 0.02, GetParam());
      const SolveResult fixed =
          condat_vu(c.objective(), c.b, {.tolerance = 1e-9, .max_iterations = 20000});
      check(c, [&](const char* name, const SolveResult& got) {
        EXPECT_EQ(got.status, Status::converged) << name << " " << seed << " " << got.iterations;
        EXPECT_LT(c.value(got.x), c.value(fixed.x) * (1 + 1e-5)) << name << " " << seed;
        return got.iterations;
      });
    }
  }
};

TEST_P(Adaption, OfStepsReachesTheMinimum) {
  for_cases([](const Case& c, auto expect) {
    expect("condat_vu", condat_vu(c.objective(), c.b,
                                  {.tolerance = 1e-9, .max_iterations = 20000, .adapt = true}));
    expect("pdhg", pdhg(SquaredL2(1.0), c.objective(), c.b,
                        {.tolerance = 1e-9, .max_iterations = 20000, .adapt = true}));
  });
}

// Without adaption the inner steps become exact in time, so that no residual stays.
TEST_P(Adaption, OfPenaltiesReachesTheMinimum) {
  int fixed = 0, adapted = 0;
  for_cases([&](const Case& c, auto expect) {
    const AdmmOptions plain{.tolerance = 1e-7, .max_iterations = 20000};
    fixed += expect("fixed", admm(c.objective(), c.b, plain));
    AdmmOptions adapting = plain;
    adapting.adapt = true;
    adapted += expect("adapting", admm(c.objective(), c.b, adapting));
  });
  EXPECT_LT(adapted, fixed);
}

INSTANTIATE_TEST_SUITE_P(Problems, Adaption, ::testing::Bool(),
                         [](const auto& c) { return std::string(c.param ? "Shifted" : "Plain"); });

}  // namespace
}  // namespace palimpsest
