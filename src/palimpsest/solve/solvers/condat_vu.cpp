// SPDX-License-Identifier: Apache-2.0

#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/solvers/dual_steps.hpp"
#include "palimpsest/solve/solvers/step_sizes.hpp"

namespace palimpsest {
namespace {

using namespace proximal;

constexpr double kFirstAdaption = 10;

// States: x; c = A^H b - sum of K_i^H u_i, whose changes the test needs; u_i.
void declare_condat(const Problem& p, StateList& state) {
  state.add("x", p.x(), Init::x0_or_zero());
  declare_rhs(p, state);
  state.add("tau", p.numbers(), 1.0);
  declare_duals(p, state);
  for (index_t i = 0; i < term_count(p); ++i) {
    state.add(of_term("sigma", i), p.numbers(), 1.0);
    state.add(of_term("norm", i), p.numbers(), 1.0);
  }
  if (!adapts(p)) return;
  state.add("L", p.numbers(), 1.0);
  state.add("size of rhs", p.numbers());
  declare_adaption(p, state, kFirstAdaption);
}

void set_up_condat(const Problem& p, Scope& s) {
  set_up_rhs(p, s);
  if (!adapts(p)) return;
  const Variable size = ops::sqrt(p.x().norm2(s.latest("rhs")));
  s.guard(size);  // gives the states memory of their own, for any K
  s.set("size of rhs", size);
  set_up_images(p, s);
}

// Sets the steps of the dual variables by the residuals, and the step of x by its condition. The
// dual residual is relative to |K| |x'|: K x' itself may vanish at the solution.
void adapt_condat(const Problem& p, Scope& s, const Variable& primal, const DualResidual& residual,
                  const Variable& size) {
  Variable norm;
  for (index_t i = 0; i < term_count(p); ++i) norm = sum_of(norm, s[of_term("norm", i)]);
  const Variable dual = relative(ops::sqrt(residual.top), ops::sqrt(norm * size));
  const Variable factor = adapt(s, relative(ops::sqrt(primal), s["size of rhs"]), dual);
  Variable sum = s["L"] * 0.5;
  for (index_t i = 0; i < term_count(p); ++i) {
    const Variable sigma = s[of_term("sigma", i)] * factor;
    s.set(of_term("sigma", i), sigma);
    sum = ops::fma(sigma, s[of_term("norm", i)], sum);
  }
  s.set("tau", 0.99 / sum);
}

// <x, A^H b> is <x, c'> + sum of Re <K_i x, u_i'>, where A^H b itself is kept nowhere.
void condat_objective(const Problem& p, Scope& s, const Variable& x) {
  if (!p.flag("objective")) return;
  Variable value = objective_of(p, s, x, s.latest("rhs"));
  for (index_t i = 0; i < term_count(p); ++i) {
    const Variable image = s.apply(of_term("K", i), x);
    const Space range = p.range_of(of_term("K", i));
    value = value - range.real_dot(image, Dual(p, i).latest(s)) + term_value(p, s, i, image);
  }
  s.number("objective", value);
}

// With the operator "P", Hermitian and positive, x' = x - P slope in place of x - tau slope. It has
// to obey P^-1 >= N / 2 + sum of sigma_i K_i^H K_i; sigma_i follow from L as before.
PrimalStep step_of_x(const Problem& p, Scope& s, const Variable& image, const Variable& tau) {
  const Variable rhs = s["rhs"], slope = image - rhs;
  if (!p.has_op("P")) return primal_step(p, s, slope, tau, {image, rhs});
  const Variable step = s.apply("P", slope);
  return primal_step(p, s, step * p.x().spread(ops::reciprocal(tau)), tau, {step});
}

void step_condat(const Problem& p, Scope& s, int) {
  const Space& X = p.x();
  const Variable x = s["x"], tau = s["tau"], rhs = s["rhs"];
  const Variable image = applied_normal(p, s, x);
  const auto [next, ahead, change2, size] = step_of_x(p, s, image, tau);
  Variable moved;
  std::vector<Variable> leaves{x, rhs, ahead};  // of the pass that takes the new values over
  if (p.has_prox("h")) leaves.push_back(next);
  if (p.has_op("P")) leaves.push_back(image);
  DualResidual residual;
  for (index_t i = 0; i < term_count(p); ++i) {
    const Dual u(p, i);
    const Variable sigma = s[of_term("sigma", i)], there = s.apply(of_term("K", i), ahead);
    const Variable change = dual_step(p, s, u, there, shifted(p, u.shift, there), sigma, residual);
    leaves.push_back(change);
    moved = sum_of(moved, s.adjoint(of_term("K", i), change));
    s.number(of_term("sigma", i), sigma);
    s.number(of_term("norm", i), s[of_term("norm", i)]);
  }
  Variable primal = change2 / (tau * tau);
  if (moved.defined()) {
    moved = moved.astype(X.type().dtype);
    // Without h the first summand is the slope.
    const Variable off =
        (p.has_op("P") ? image - rhs
                       : (x - next) * X.spread(ops::reciprocal(tau)).astype(X.type().dtype)) +
        moved;
    const ops::Pass made =
        one_pass(X, {s.guarded(X, next, x), s.guarded(X, rhs - moved, rhs)}, {off}, leaves);
    s.set_as_is("x", made.arrays[0]);
    s.set_as_is("rhs", made.arrays[1]);
    primal = made.norms[0];
  } else {
    s.set("x", next);
  }
  s.number("primal", primal);
  if (adapts(p)) {
    s.number("dual", residual.relative);
    adapt_condat(p, s, primal, residual, size);
  }
  condat_objective(p, s, next);
}

Verdict judge_condat(const Problem& p, const Numbers& n) {
  const double change = std::sqrt(n["change"]);
  const double below = std::max(std::sqrt(n["size"]) / n["tau"], std::sqrt(n["rhs"]));
  Verdict verdict{.objective = recorded_objective(n), .change = growth_of(n, change)};
  verdict.numbers[0] = relative(std::sqrt(n["primal"]), below);
  for (index_t i = 0; i < term_count(p) && !n.has("dual"); ++i) {
    const double dual = dual_residual(n, of_term("u", i), of_term("sigma", i),
                                      std::sqrt(n[of_term("norm", i)]), change);
    verdict.numbers[1] = std::max(verdict.numbers[1], dual);
  }
  if (n.has("dual")) verdict.numbers[1] = n["dual"];
  verdict.residual = std::max(verdict.numbers[0], verdict.numbers[1]);
  return verdict;
}

void check_condat(const Problem& p) {
  check_lipschitz(p, "condat_vu");
  expect_positive(p, "condat_vu", "balance");
  if (adapts(p) && term_count(p) == 0) {
    throw ValueError("[condat_vu] adapt: got no terms, expected at least one");
  }
  if (p.has_op("P") && (p.has_prox("h") || adapts(p))) {
    throw ValueError("[condat_vu] P: got " + std::string(adapts(p) ? "adapt" : "h") +
                     " too, expected one of the two");
  }
}

constexpr SolverType kCondatVu{.name = "condat_vu",
                               .declare = declare_condat,
                               .prepare = prepare_condat_vu,
                               .prepare_bytes = prepare_condat_vu_bytes,
                               .setup = set_up_condat,
                               .step = step_condat,
                               .judge = judge_condat,
                               .check = check_condat};
PALIMPSEST_REGISTER_SOLVER(kCondatVu);

}  // namespace
}  // namespace palimpsest
