// SPDX-License-Identifier: Apache-2.0
// Vectors that each solver keeps between iterations: the table of docs/solvers.md, with n elements
// of x, m of the data and t of all terms together.
#include <gtest/gtest.h>

#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/solve/frame/solver.hpp"
#include "palimpsest/solve/prox/constraints.hpp"
#include "palimpsest/solve/prox/norms.hpp"
#include "palimpsest/solve/prox/total_variation.hpp"
#include "palimpsest/solve/solvers/objective_problem.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

constexpr index_t kN = 1024, kM = 3 * kN, kT = 2 * kN;
constexpr index_t kScalars = 100;  // more than any recurrence needs

const NamedLinop& maps() {
  static const NamedLinop A =
      Dense(Tensor::random_normal({3, kN}, DType::float64, {7, 1}), "C N,N->C N");
  return A;
}
Problem square() { return Problem({DType::float64, {kN}, {}}).set("A", maps().N()); }
Problem rectangular() { return Problem({DType::float64, {3, kN}, {}}).set("A", maps()); }
Problem with(const Objective& f) {
  return objective_problem(f, {DType::float64, {3, kN}, {}}).set("L", 8.0);
}
Problem with_h() { return with({.A = maps(), .h = L1(0.1)}); }
Problem with_terms() { return with({.A = maps(), .terms = {tv_term(0.1, "N"), {.g = L1(0.1)}}}); }

void expect_state(const char* solver, const Problem& p, index_t elements, index_t numbers = 0) {
  const index_t bytes = plan_solve(*find_solver(solver), p).state_bytes;
  EXPECT_GE(bytes, 8 * elements) << solver << " " << static_cast<double>(bytes) / (8 * kN);
  EXPECT_LE(bytes, 8 * (elements + numbers + kScalars))
      << solver << " " << static_cast<double>(bytes) / (8 * kN);
}

TEST(StateMemory, OfSquareSystems) {
  expect_state("conjugate_gradients", square(), 3 * kN);
  expect_state("minres", square(), 5 * kN);
  expect_state("gmres", square().set("restart", 30), 32 * kN, /*triangle:*/ 31 * 31);
  expect_state("bicgstab", square(), 5 * kN);
  expect_state("chebyshev", square().set("lower", 0.1).set("upper", 9.0), 3 * kN);
  expect_state("power_method", square(), kN);
  expect_state("lanczos", square(), 2 * kN);
}

TEST(StateMemory, OfLeastSquares) {
  expect_state("cgls", rectangular(), 2 * kN + kM);
  expect_state("lsqr", rectangular(), 3 * kN + kM);
  expect_state("lsmr", rectangular(), 4 * kN + kM);
}

TEST(StateMemory, OfSumsOfFunctions) {
  expect_state("gradient_descent", with({.A = maps()}), 2 * kN);
  expect_state("nesterov", with({.A = maps()}), 3 * kN);
  expect_state("ista", with_h(), 2 * kN);
  expect_state("fista", with_h(), 3 * kN);
  expect_state("pogm", with_h(), 4 * kN);
  expect_state("condat_vu", with_terms(), 2 * kN + kT);
  expect_state("pdhg", with_terms().set("f", SquaredL2(1.0)), kN + kM + kT);
  // The vectors of its inner conjugate gradients, except x, are workspace of a step.
  expect_state("admm", with_terms(), 4 * kN + 2 * kT);
}

TEST(StateMemory, OfSingularValues) {
  const index_t vectors = 2 * 3 + 10;
  expect_state("svd", rectangular().set("k", 3), vectors * (kN + kM) + kN, vectors * vectors);
}

}  // namespace
}  // namespace palimpsest
