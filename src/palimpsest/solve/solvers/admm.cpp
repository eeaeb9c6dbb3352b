// SPDX-License-Identifier: Apache-2.0

#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/prox/parts.hpp"
#include "palimpsest/solve/solvers/closed_step.hpp"
#include "palimpsest/solve/solvers/dual_steps.hpp"
#include "palimpsest/solve/solvers/krylov.hpp"

namespace palimpsest {
namespace {

using namespace proximal;

constexpr double kFirstAdaption = 5;
// K x - d - z is small enough relative to this part of |K| |x|, where K x and z vanish at the
// solution.
constexpr double kVanishing = 1e-3;

// States: x; z_i and u_i of each term; "kz" and "ku", the sums of K_i^H z_i and K_i^H u_i, for the
// test and the next right-hand side; "outer", the residual of the last iteration.
void declare_admm(const Problem& p, StateList& state) {
  state.add("x", p.x(), Init::x0_or_zero());
  declare_rhs(p, state);
  state.add("kz", p.x());
  state.add("ku", p.x());
  for (index_t i = 0; i < term_count(p); ++i) {
    const Space range = p.range_of(of_term("K", i));
    state.add(of_term("z", i), range);
    state.add(of_term("u", i), range);
  }
  state.add("L", p.numbers(), 1.0);
  if (adapts(p)) state.add("size of rhs", p.numbers());
  state.add("rho", p.numbers(), p.real("rho", 0.0));
  state.add("outer", p.numbers(), 1.0);
  state.add("reach", p.numbers());  // |K|^2 |x|^2 of the last iteration
  declare_adaption(p, state, kFirstAdaption);
  declare_basis(p, state);
}

void set_up_admm(const Problem& p, Scope& s) {
  set_up_rhs(p, s);
  if (!p.has_attr("rho")) s.set("rho", s["L"] * 0.5);
  if (adapts(p)) s.set("size of rhs", ops::sqrt(p.x().norm2(s.latest("rhs"))));
  set_up_basis(p, s);
}

struct TermResult {
  Variable z, u, off;           // off: K x - d
  Variable primal;              // the relative residual
  Variable miss, size, u_size;  // |K x - d - z'|^2; the largest of |K x|^2, |z'|^2, |d|^2; |u'|^2
};
// z' and u', guarded, and the norms that the residual needs are made in one pass.
TermResult term_step(const Problem& p, Scope& s, index_t i, const Variable& x) {
  const std::string K = of_term("K", i), g = of_term("g", i);
  const Space range = p.argument_of(g);
  const Variable z = s[of_term("z", i)], u = s[of_term("u", i)], image = s.apply(K, x);
  const Variable shift = shift_of(p, of_term("d", i), image);
  const Variable off = shift.defined() ? image - shift : image;
  const double a = p.real("relaxation", 1.6);
  const Variable relaxed = off * a + z * (1 - a);
  const Variable next_z = s.prox(g, relaxed + u, ops::reciprocal(s["rho"]));
  const Variable next_u = u + relaxed - next_z;
  const ops::Pass made = one_pass(range, {s.guarded(range, next_z, z), s.guarded(range, next_u, u)},
                                  {off - next_z, image, next_z}, {z, u, image});
  Variable size = ops::maximum(made.norms[1], made.norms[2]);
  if (shift.defined())
    size = ops::maximum(size, range.norm2(ops::broadcast_to(shift, image.type().shape)));
  if (may_leave_range(p.op(K))) s.guard(made.norms[1]);
  if (may_leave_range(p.prox(g))) s.guard(made.norms[0]);
  const Variable least = ops::maximum(size, s["reach"] * (kVanishing * kVanishing));
  return {made.arrays[0],
          made.arrays[1],
          off,
          ops::sqrt(krylov::ratio(made.norms[0], least)),
          made.norms[0],
          size,
          range.norm2(made.arrays[1])};
}

// The residuals, relative; and those that adapting compares, of which the sizes do not vanish at
// the solution.
struct Residuals {
  Variable primal, dual, primal_of_rule, dual_of_rule;
};
// From |x|^2, |sum of K^H (z' - z)|^2 and |sum of K^H u'|^2. |K| is |sum of K^H u'| / |u'|.
Residuals residuals_of(const Problem& p, Scope& s, const std::vector<TermResult>& terms,
                       const Variable& xx, const Variable& moved, const Variable& ku) {
  Variable u_size, miss, size;
  for (const TermResult& term : terms) {
    u_size = sum_of(u_size, term.u_size);
    miss = sum_of(miss, term.miss);
    size = sum_of(size, term.size);
  }
  const Variable reach = krylov::ratio(ku, u_size) * xx;
  s.set("reach", reach);
  Residuals made;
  for (const TermResult& term : terms) {
    made.primal = made.primal.defined() ? ops::maximum(made.primal, term.primal) : term.primal;
  }
  made.dual = ops::sqrt(krylov::ratio(moved, ku));
  if (!adapts(p)) return made;
  const Variable rho = s["rho"], largest = ops::maximum(rho * ops::sqrt(ku), s["size of rhs"]);
  made.primal_of_rule = ops::sqrt(krylov::ratio(miss, ops::maximum(size, reach)));
  made.dual_of_rule = krylov::ratio(rho * ops::sqrt(moved), largest);
  return made;
}

// The number "objective" where the problem asks for it: one N more.
void terms_objective(const Problem& p, Scope& s, const Variable& x,
                     const std::vector<TermResult>& results) {
  if (!p.flag("objective")) return;
  Variable value = objective_of(p, s, x, s["rhs"]);
  for (index_t i = 0; i < term_count(p); ++i) {
    value = value + s.value(of_term("g", i), results[static_cast<std::size_t>(i)].off);
  }
  s.number("objective", value);
}

void step_admm(const Problem& p, Scope& s, int) {
  const Space& X = p.x();
  const Variable rho = s["rho"], x = solve_for_x(p, s, rho), xx = X.norm2(x);
  s.guard(xx);
  Variable kz, ku;
  std::vector<TermResult> results;
  bool may_leave = false;
  for (index_t i = 0; i < term_count(p); ++i) {
    results.push_back(term_step(p, s, i, x));
    const std::string K = of_term("K", i);
    may_leave |= may_leave_range(p.op(K));
    kz = sum_of(kz, s.adjoint(K, results.back().z));
    ku = sum_of(ku, s.adjoint(K, results.back().u));
  }
  std::vector<Variable> kept{s.guarded(X, kz, s["kz"])};
  if (!adapts(p)) kept.push_back(s.guarded(X, ku, s["ku"]));
  const ops::Pass made = one_pass(X, kept, {kz - s["kz"], ku}, {kz, ku, s["kz"], s["ku"]});
  if (may_leave) {
    for (const Variable& norm : made.norms) s.guard(norm);
  }
  const Residuals found = residuals_of(p, s, results, xx, made.norms[0], made.norms[1]);
  // With another rho the scaled multipliers u change as well.
  Variable growth;
  if (adapts(p)) {
    growth = ops::reciprocal(adapt(s, found.primal_of_rule, found.dual_of_rule));
    s.set("rho", rho * growth);
  }
  const auto set_u = [&](const std::string& name, const Space& space, const Variable& u,
                         const Variable& guarded) {
    if (!growth.defined()) return s.set_as_is(name, guarded);
    s.set(name, u * space.spread(ops::reciprocal(growth)));
  };
  for (index_t i = 0; i < term_count(p); ++i) {
    const TermResult& term = results[static_cast<std::size_t>(i)];
    s.set_as_is(of_term("z", i), term.z);
    set_u(of_term("u", i), p.range_of(of_term("K", i)), term.u, term.u);
  }
  s.set_as_is("kz", made.arrays[0]);
  set_u("ku", X, ku, made.arrays.back());
  s.set("x", x);
  s.set("outer", ops::minimum(ops::maximum(found.primal, found.dual), 1.0));
  s.number("primal", found.primal);
  s.number("dual", found.dual);
  s.number("rho", rho);
  terms_objective(p, s, x, results);
}

void check_admm(const Problem& p) {
  check_lipschitz(p, "admm");
  expect_positive(p, "admm", "rho");
  const double a = p.real("relaxation", 1.6);
  expect_option(p, "admm", "relaxation", a > 0 && a < 2, "a number between 0 and 2");
  expect_option(p, "admm", "inner", p.integer("inner", 10) >= 1, "at least 1");
  expect_option(p, "admm", "inner_tolerance", p.real("inner_tolerance", 0.1) >= 0, "at least 0");
  if (term_count(p) == 0) throw ValueError("[admm] terms: got none, expected at least one");
}

constexpr SolverType kAdmm{.name = "admm",
                           .declare = declare_admm,
                           .prepare = lipschitz,
                           .prepare_bytes = lipschitz_bytes,
                           .setup = set_up_admm,
                           .step = step_admm,
                           .judge =
                               [](const Problem&, const Numbers& n) {
                                 return Verdict{.residual = std::max(n["primal"], n["dual"]),
                                                .objective = recorded_objective(n),
                                                .numbers = {n["primal"], n["dual"], n["rho"]}};
                               },
                           .check = check_admm};
PALIMPSEST_REGISTER_SOLVER(kAdmm);

}  // namespace
}  // namespace palimpsest
