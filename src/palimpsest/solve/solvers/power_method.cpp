// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "palimpsest/solve/solvers/krylov.hpp"
#include "palimpsest/solve/square_systems.hpp"

namespace palimpsest {
namespace {

using namespace krylov;

void declare(const Problem& p, StateList& state) {
  state.add("x", p.x(), Init::b());
  state.add("eigenvalue", p.numbers());
}

Variable unit(const Space& X, const Variable& v, const Variable& size) {
  return v * X.spread(value_if(ops::gt(size, 0.0), ops::reciprocal(size)));
}

void setup(const Problem& p, Scope& s) {
  s.set("x", unit(p.x(), s["x"], ops::sqrt(p.x().norm2(s["x"]))));
}

void step(const Problem& p, Scope& s, int) {
  const Variable w = s.apply("A", s["x"]);
  const Variable size = ops::sqrt(p.x().norm2(w));
  s.guard(size);
  s.set("x", unit(p.x(), w, size));
  s.set("eigenvalue", size);
  s.number("before", s["eigenvalue"]);
  s.number("eigenvalue", size);
}

Verdict judge(const Problem&, const Numbers& n) {
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
                            .declare = declare,
                            .setup = setup,
                            .step = step,
                            .judge = judge,
                            .check = [](const Problem& p) { check_square(p, "power_method"); }};
PALIMPSEST_REGISTER_SOLVER(kPower);

}  // namespace

PowerResult power_method(const NamedLinop& A, const Tensor& v0, const PowerOptions& options) {
  Problem p({v0.dtype(), v0.shape(), v0.device()});
  p.set("A", A);
  SolveOptions with = solve_options(options);
  double eigenvalue = 0;
  with.callback = [&](const SolveInfo& info) {
    eigenvalue = info.numbers()[0];
    return !options.callback || options.callback(info);
  };
  SolveResult result = solve(kPower, p, v0, with);
  return {std::move(result.x), eigenvalue, result.status, result.iterations};
}

}  // namespace palimpsest
