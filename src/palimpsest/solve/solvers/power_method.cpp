// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "palimpsest/solve/solvers/krylov.hpp"
#include "palimpsest/solve/square_systems.hpp"

namespace palimpsest {
namespace {

using namespace krylov;

void declare_power_method(const Problem& p, StateList& state) {
  state.add("x", p.x(), Init::b());
  state.add("eigenvalue", p.numbers());
}

Variable unit(const Space& X, const Variable& v, const Variable& size) {
  return v * X.spread(value_if(ops::gt(size, 0.0), ops::reciprocal(size)));
}

void set_up_power_method(const Problem& p, Scope& s) {
  s.set("x", unit(p.x(), s["x"], ops::sqrt(p.x().norm2(s["x"]))));
}

void step_power_method(const Problem& p, Scope& s, int) {
  const Variable w = s.apply("A", s["x"]);
  const Variable size = ops::sqrt(p.x().norm2(w));
  s.guard(size);
  s.set("x", unit(p.x(), w, size));
  s.set("eigenvalue", size);
  s.number("before", s["eigenvalue"]);
  s.number("eigenvalue", size);
}

Verdict judge_power_method(const Problem&, const Numbers& n) {
  const double value = n["eigenvalue"];
  Verdict verdict{.numbers = {value}};
  if (value == 0) {
    verdict.is_converged = true;
  } else if (n.iteration() > 1) {
    verdict.residual = std::abs(value - n["before"]) / value;
  }
  return verdict;
}

constexpr SolverType kPower{.name = "power_method",
                            .declare = declare_power_method,
                            .setup = set_up_power_method,
                            .step = step_power_method,
                            .judge = judge_power_method,
                            .check = [](const Problem& p) { check_square(p, "power_method"); }};
PALIMPSEST_REGISTER_SOLVER(kPower);

}  // namespace

}  // namespace palimpsest
