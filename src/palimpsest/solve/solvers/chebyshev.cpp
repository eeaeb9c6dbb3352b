// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "palimpsest/base/error.hpp"
#include "palimpsest/solve/solvers/krylov.hpp"
#include "palimpsest/solve/square_systems.hpp"

namespace palimpsest {
namespace {

using namespace krylov;

double theta_of(const Problem& p) { return (p.real("upper", 0) + p.real("lower", 0)) / 2; }
double delta_of(const Problem& p) { return (p.real("upper", 0) - p.real("lower", 0)) / 2; }

void declare_chebyshev(const Problem& p, StateList& state) {
  state.add("x", p.x(), Init::x0_or_zero());
  state.add("r", p.x(), Init::b());
  state.add("d", p.x());
  state.add("rho", p.numbers(), delta_of(p) / theta_of(p));
}

void set_up_chebyshev(const Problem& p, Scope& s) {
  const Variable b = s["r"], r = p.has_x0() ? b - s.apply("A", s["x"]) : b;
  s.set("r", r);
  s.set("d", r * (1 / theta_of(p)));
  if (p.flag("residual")) s.number("bb", p.x().norm2(b));
}

// x += d, r -= A d, rho' = 1 / (2 theta / delta - rho), d = rho' rho d + 2 rho' / delta r.
void step_chebyshev(const Problem& p, Scope& s, int) {
  const Space& X = p.x();
  const Variable d = s["d"], rho = s["rho"];
  const Variable r = s["r"] - s.apply("A", d);
  const Variable next = ops::reciprocal(2 * theta_of(p) / delta_of(p) - rho);
  const Variable rr = X.norm2(r);  // by which NaN is noticed, reported or not
  s.guard(rr);
  s.number("rr", rr);
  s.set("x", s["x"] + d);
  s.set("r", r);
  s.set("d", ops::fma(X.spread(next * rho), d, r * X.spread(next * (2 / delta_of(p)))));
  s.set("rho", next);
}

Verdict judge_chebyshev(const Problem& p, const Numbers& n) {
  Verdict verdict;
  if (p.flag("residual")) verdict.reported = relative_residual(p, n, n["rr"]);
  return verdict;
}

constexpr SolverType kChebyshev{
    .name = "chebyshev",
    .declare = declare_chebyshev,
    .setup = set_up_chebyshev,
    .step = step_chebyshev,
    .judge = judge_chebyshev,
    .check =
        [](const Problem& p) {
          check_square(p, "chebyshev");
          const double lower = p.real("lower", 0), upper = p.real("upper", 0);
          if (lower > 0 && lower < upper && std::isfinite(upper)) return;
          throw ValueError("[chebyshev] lower: got bounds " + p.attr("lower").str() + " and " +
                           p.attr("upper").str() + ", expected 0 < lower < upper");
        },
    .is_linear = true};
PALIMPSEST_REGISTER_SOLVER(kChebyshev);

}  // namespace

}  // namespace palimpsest
