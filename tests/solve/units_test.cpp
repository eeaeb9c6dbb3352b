// SPDX-License-Identifier: Apache-2.0
// Linear systems do not depend on units: b and x0 times a power of two give x times it.
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <string>

#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/linop/containers/add.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/solve/frame/solver.hpp"
#include "palimpsest/solve/gradient_methods.hpp"
#include "palimpsest/solve/prox/constraints.hpp"
#include "palimpsest/solve/prox/norms.hpp"
#include "palimpsest/solve/prox/total_variation.hpp"
#include "palimpsest/solve/scaling.hpp"
#include "palimpsest/solve/solvers/objective_problem.hpp"
#include "support/window.hpp"

namespace palimpsest {
namespace {

struct Sample {
  std::string solver;
  bool is_square = false, has_m = false;
  double damp = 0;
  friend std::ostream& operator<<(std::ostream& stream, const Sample& s) {
    return stream << s.solver;
  }
};

Tensor random(Extents shape, DType dtype, std::uint64_t stream) {
  return Tensor::random_normal(std::move(shape), dtype, {23, stream});
}

Tensor times_two_to(const Tensor& x, int exponent) {
  Tensor scaled = x.clone();
  EXPECT_TRUE(multiply_by_power_of_two(scaled, exponent));
  return scaled;
}

TEST(Scaling, StaysInsideATensorOfAnyStrides) {
  for (const DType dtype : {DType::float32, DType::complex128}) {
    const Tensor x = random({3, 5}, dtype, 1), expected = times_two_to(x, 40);
    for (const WindowLayout layout : kWindowLayouts) {
      testing::Window window({3, 5}, dtype, layout);
      window.tensor().copy_from(x);
      EXPECT_TRUE(multiply_by_power_of_two(window, 40));
      EXPECT_TRUE(equal(window.tensor(), expected)) << name_of(layout);
    }
  }
}

class SolverUnits : public ::testing::TestWithParam<Sample> {
 protected:
  static Problem problem(DType dtype) {
    const Sample& s = GetParam();
    const NamedLinop B = Dense(random({20, 12}, dtype, 0), "MN,N->M");
    Problem p({dtype, {s.is_square ? 12 : 20}, {}});
    p.set("A", s.is_square ? B.N() + 2.0 * Identity("N") : B);
    const Tensor weights = Tensor::linspace(0.5, 1.5, 12, real_of(dtype));
    if (s.has_m) p.set("M", Diagonal(weights, "N"));
    if (s.damp > 0) p.set("damp", s.damp);
    if (s.solver == "chebyshev") p.set("lower", 1.0).set("upper", 100.0).set("residual", true);
    return p;
  }
};

TEST_P(SolverUnits, OfTheDataChangeNoBit) {
  const SolverType& type = *find_solver(GetParam().solver);
  for (const DType dtype : {DType::float32, DType::complex128}) {
    const bool is_double = real_of(dtype) == DType::float64;
    const Problem p = problem(dtype);
    const Tensor b = random({GetParam().is_square ? 12 : 20}, dtype, 1);
    for (const bool has_x0 : {false, true}) {
      SolveOptions with{.tolerance = is_double ? 1e-10 : 1e-4, .max_iterations = 30};
      const Tensor x0 = random({12}, dtype, 2);
      if (has_x0) with.x0 = x0;
      const SolveResult plain = solve(type, p, b, with);
      for (const int e :
           is_double ? std::vector{-990, -30, 30, 990} : std::vector{-100, -20, 20, 100}) {
        SCOPED_TRACE(std::string(name_of(dtype)) + " 2^" + std::to_string(e));
        if (has_x0) with.x0 = times_two_to(x0, e);
        const SolveResult scaled = solve(type, p, times_two_to(b, e), with);
        EXPECT_EQ(scaled.status, plain.status);
        EXPECT_EQ(scaled.iterations, plain.iterations);
        EXPECT_TRUE(equal(scaled.x, times_two_to(plain.x, e)));
      }
    }
  }
}

TEST_P(SolverUnits, OfTheOperatorChangeNoBit) {
  const SolverType& type = *find_solver(GetParam().solver);
  if (GetParam().solver == "chebyshev" || GetParam().has_m)
    GTEST_SKIP() << "have units of their own";
  const Tensor matrix = random({20, 12}, DType::float32, 0);
  const Tensor b = random({GetParam().is_square ? 12 : 20}, DType::float32, 1);
  const auto solved = [&](int e) {
    const NamedLinop B = Dense(times_two_to(matrix, e), "MN,N->M");
    Problem p({DType::float32, b.shape(), {}});
    p.set("A", GetParam().is_square ? B.N() + std::ldexp(2.0, 2 * e) * Identity("N") : B);
    if (GetParam().damp > 0) p.set("damp", std::ldexp(GetParam().damp, e));
    return solve(type, p, b, {.tolerance = 1e-4, .max_iterations = 30});
  };
  const SolveResult plain = solved(0);
  for (const int e : {-25, -11, 11, 25}) {
    const SolveResult scaled = solved(e);
    EXPECT_EQ(scaled.status, plain.status) << e;
    EXPECT_EQ(scaled.iterations, plain.iterations) << e;
    EXPECT_TRUE(equal(scaled.x, times_two_to(plain.x, GetParam().is_square ? -2 * e : -e))) << e;
  }
}

// Recurred residuals keep the rounding errors of the first one, far above the tolerance.
TEST_P(SolverUnits, StartsFarFromTheSolutionConvergeByTheirTrueResidual) {
  const Sample& s = GetParam();
  if (s.solver == "chebyshev" || (s.damp > 0 && s.solver != "cgls")) {
    GTEST_SKIP() << "has no test, or takes no x0";
  }
  const Problem p = problem(DType::float32);
  const Tensor b = random({s.is_square ? 12 : 20}, DType::float32, 1);
  const NamedLinop A = p.op("A").to(DType::float64);
  const auto off = [&](const Tensor& x) {
    const Tensor y = x.to(DType::float64), r = b.to(DType::float64) - A(y);
    const Tensor test = s.is_square ? r : A.H()(r) - y * (s.damp * s.damp);
    return norm(test).item<double>() /
           norm(s.is_square ? b : p.op("A").H()(b)).to(DType::float64).item<double>();
  };
  for (const double unit : {1.0, 1e3, 1e6}) {
    SolveOptions with{.tolerance = 1e-5, .max_iterations = 500};
    with.x0 = random({12}, DType::float32, 2) * unit;
    Problem own = p;
    own.set("atol", 1e-6).set("btol", 1e-6);
    const SolveResult result = solve(*find_solver(s.solver), own, b, with);
    EXPECT_EQ(result.status, Status::converged) << unit;
    EXPECT_LE(off(result.x), 5e-5) << unit;
    EXPECT_EQ(result.history.size(), static_cast<std::size_t>(result.iterations));
  }
}

INSTANTIATE_TEST_SUITE_P(Solvers, SolverUnits,
                         ::testing::Values(Sample{"conjugate_gradients", true},
                                           Sample{"conjugate_gradients", true, true},
                                           Sample{"minres", true}, Sample{"minres", true, true},
                                           Sample{"gmres", true}, Sample{"gmres", true, true},
                                           Sample{"bicgstab", true}, Sample{"bicgstab", true, true},
                                           Sample{"chebyshev", true}, Sample{"cgls"},
                                           Sample{"cgls", false, false, 0.3}, Sample{"lsqr"},
                                           Sample{"lsqr", false, false, 0.3}, Sample{"lsmr"},
                                           Sample{"lsmr", false, false, 0.3}),
                         [](const auto& c) {
                           return c.param.solver + (c.param.has_m ? "WithM" : "") +
                                  (c.param.damp > 0 ? "Damped" : "");
                         });

// Squares of the data underflow or overflow: neither may be reported as a solution.
TEST(ProximalUnits, DataBeyondTheRangeOfSquaresHaveNotConverged) {
  const NamedLinop A = Dense(random({8, 12}, DType::float32, 3), "M N,N->M");
  const Tensor b = random({8}, DType::float32, 4);
  for (const char* name : {"fista", "pogm", "condat_vu", "pdhg"}) {
    const auto status = [&](double unit) {
      Objective f{.A = A};
      if (std::string(name) == "fista" || std::string(name) == "pogm") {
        f.h = L1(0.05 * unit);
      } else {
        f.terms = {tv_term(0.05 * unit, "N")};
      }
      Problem p = objective_problem(f, {DType::float32, {8}, {}}).set("L", 60.0);
      if (std::string(name) == "pdhg") p.set("f", SquaredL2(1.0));
      if (std::string(name) == "fista") p.set("restart", true);
      return solve(*find_solver(name), p, b * unit, {.tolerance = 1e-3, .max_iterations = 5000})
          .status;
    };
    EXPECT_EQ(status(1), Status::converged) << name;
    EXPECT_EQ(status(1e-10), Status::converged) << name;
    EXPECT_EQ(status(1e-15), Status::converged) << name;
    EXPECT_EQ(status(1e-17), Status::breakdown) << name;
    EXPECT_EQ(status(1e-30), Status::breakdown) << name;
    EXPECT_EQ(status(1e30), Status::diverged) << name;
  }
}

TEST(ProximalUnits, SmallDataThatDoNotBreakDownAreSolvedAsPrecisely) {
  const NamedLinop A = Dense(random({24, 32}, DType::complex64, 3), "M N,N->M");
  const Tensor b = random({24}, DType::complex64, 4);
  for (const char* name : {"fista", "pogm", "condat_vu"}) {
    const auto solved = [&](double unit) {
      Objective f{.A = A};
      if (std::string(name) == "condat_vu") {
        f.terms = {tv_term(0.3 * unit, "N")};
      } else {
        f.h = L1(0.3 * unit);
      }
      Problem p = objective_problem(f, {DType::complex64, {24}, {}}).set("L", 150.0);
      const SolveResult result =
          solve(*find_solver(name), p, b * unit, {.tolerance = 0, .max_iterations = 200});
      EXPECT_NE(result.status, Status::breakdown) << name << " " << unit;
      return result.x.to(DType::complex128) * (1 / unit);
    };
    const Tensor expected = solved(1);
    for (const double unit : {1e-8, 1e-13, 1.3e-16}) {
      const double off = norm(solved(unit) - expected).item<double>();
      EXPECT_LT(off, 1e-4 * norm(expected).item<double>()) << name << " " << unit;
    }
  }
}

TEST(ProximalUnits, GradientMethodsWithoutAProximalFunctionTakeAnyUnit) {
  const NamedLinop A = Dense(random({24, 16}, DType::complex64, 3), "M N,N->M");
  const Tensor b = random({24}, DType::complex64, 4);
  const auto close = [&](const auto& method, double unit) {
    const Tensor x = method(A, b, {}).x.to(DType::complex128);
    const SolveResult of_unit = method(A, b * unit, {});
    EXPECT_EQ(of_unit.status, method(A, b, {}).status);
    const Tensor y = of_unit.x.to(DType::complex128) * (1 / unit);
    EXPECT_LT(norm(x - y).template item<double>(), 1e-5 * norm(x).template item<double>()) << unit;
  };
  for (const double unit : {1e-25, 1e-18, 1e12, 1e25}) {
    close(&gradient_descent, unit);
    close(&nesterov, unit);
  }
}

}  // namespace
}  // namespace palimpsest
