// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/solvers/closed_step.hpp"
#include "palimpsest/solve/solvers/dual_steps.hpp"
#include "palimpsest/solve/solvers/krylov.hpp"

namespace palimpsest::proximal {
namespace {

// Iterations until the tolerance is half of what the outer residual asks for. A tolerance that
// only follows the residual keeps it up: errors of x that are as large as the next residual.
constexpr double kHalfway = 20;

// N v + rho sum of K_i^H K_i v.
Variable hessian(const Problem& p, const Variable& rho, const Variable& v) {
  Variable terms;
  for (index_t i = 0; i < term_count(p); ++i) {
    terms = sum_of(terms, p.op(of_term("K", i)).N()(v));
  }
  const Variable data = p.op("N")(v);
  return terms.defined() ? ops::fma(p.x().spread(rho), terms, data) : data;
}

}  // namespace

Variable solve_by_cg(const Problem& p, Scope& s, const Variable& rho, const Variable& right) {
  const Space& X = p.x();
  const Variable x = s["x"];
  const Variable r = right - hessian(p, rho, x), rr = X.norm2(r);
  const Variable shrink = 1.0 + s.iteration().astype(rr.dtype()) * (1 / kHalfway);
  const Variable size = s["outer"] * p.real("inner_tolerance", 0.1) / shrink;
  ops::LoopOptions options;
  options.states = {x, r, r, rr};
  // The residual at least halves: without a step x would stand still, and the test with it.
  options.fixed = {ops::minimum(size * size * X.norm2(right), rr * 0.25), rho};
  options.n_steps = Operand(p.integer("inner", 10));
  const auto body = [&](const std::vector<Variable>& a) -> std::vector<Variable> {
    const Variable q = hessian(p, a[5], a[2]), pq = X.real_dot(a[2], q);
    const Variable goes_on = ops::logical_and(ops::gt(a[3], a[4]), ops::gt(pq, 0.0));
    const Variable alpha = krylov::value_if(goes_on, a[3] / pq);
    const Variable next = ops::fma(X.spread(-alpha), q, a[1]), square = X.norm2(next);
    const Variable along = ops::fma(X.spread(krylov::ratio(square, a[3])), a[2], next);
    return {ops::fma(X.spread(alpha), a[2], a[0]), next, along, square};
  };
  options.until = [](const std::vector<Variable>& a, const std::vector<Variable>& next) {
    return ops::le(next[3], a[4]).all();
  };
  const ops::LoopResult loop = ops::loop(body, options);
  const Variable times = loop.n_steps() + 1;
  s.count("N", times);
  for (index_t i = 0; i < term_count(p); ++i) s.count(of_term("K", i) + ".N", times);
  return loop.last(0);
}

}  // namespace palimpsest::proximal
