// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/gradient_methods.hpp"

#include <cmath>
#include <limits>
#include <string>

#include "palimpsest/base/error.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/solvers/proximal.hpp"

namespace palimpsest {
namespace {

using namespace proximal;

// prox_{step h}(v), or v.
Variable prox_of_h(const Problem& p, Scope& s, const Variable& v, const Variable& step) {
  return p.has_prox("h") ? s.prox("h", v, step) : v;
}

// The argument of the proximal step, which is the guard.
Variable descended(const Problem& p, Scope& s, const Variable& from, const Variable& step) {
  const Variable v = ops::fma(p.x().spread(-step), gradient(p, s, from), from);
  s.guard(p.x().norm2(v));
  return v;
}

Variable next_momentum(const Variable& t, double factor = 4) {
  return (1.0 + ops::sqrt(1.0 + factor * t * t)) * 0.5;
}

// Does the state hold N x and N z? Then N is applied to the new point, and the two follow from it.
bool keeps_images(const Problem& p) { return p.flag("monotone") || p.flag("backtrack"); }

// -- ista ----------------------------------------------------------------------------------------

void declare_ista(const Problem& p, StateList& state) {
  state.add("x", p.x(), Init::x0_or_zero());
  declare_rhs(p, state);
  state.add("L", p.numbers(), 1.0);
  if (keeps_images(p)) state.add("Nx", p.x());
  if (p.flag("monotone")) state.add("F", p.numbers());
  if (p.integer("average", 1) > 1) state.add("sum", p.x());
  if (p.integer("average", 1) > 1) state.add("summed", p.numbers());
}

void step_with_images(const Problem& p, Scope& s, bool has_momentum);

// The last iterates, as many as there are to be in the mean, are summed up.
void add_to_mean(const Problem& p, Scope& s, const Variable& next) {
  const index_t count = p.integer("average", 1);
  if (count <= 1) return;
  const index_t last_without = p.integer("max_iterations", 0) - count;
  const Variable is_in = ops::gt(s.iteration(), last_without);
  const Variable one = is_in.astype(p.x().number_type().dtype);
  s.set("sum", ops::where(is_in, s["sum"] + next, s["sum"]));
  s.set("summed", s["summed"] + one);
}

// The mean; x, where the solve ended before the iterates that are in it.
Variable mean_or_x(const Problem& p, Scope& s) {
  if (p.integer("average", 1) <= 1) return {};
  const Variable count = s["summed"], is_there = ops::gt(count, 0.0);
  const Variable scale = ops::reciprocal(ops::maximum(count, 1.0));
  return ops::where(p.x().spread(is_there), s["sum"] * p.x().spread(scale), s["x"]);
}

// |A x - b|^2 / 2 without |b|^2 / 2, given N x.
Variable smooth_part(const Problem& p, Scope& s, const Variable& x, const Variable& image) {
  return p.x().real_dot(x, image) * 0.5 - p.x().real_dot(x, s.latest("rhs"));
}

Variable with_h(const Problem& p, Scope& s, const Variable& smooth, const Variable& x) {
  return p.has_prox("h") ? smooth + s.value("h", x) : smooth;
}

void set_up(const Problem& p, Scope& s) {
  set_up_rhs(p, s);
  if (!keeps_images(p)) return;
  const Variable x = s["x"];
  Variable smooth = ops::zeros_like(s["L"]);
  if (p.has_x0()) {
    const Variable image = applied_normal(p, s, x);
    smooth = smooth_part(p, s, x, image);
    s.guard(smooth);  // so that the states get memory of their own, whatever N is
    for (const char* name : {"Nx", "Nz"}) {
      if (s.has(name)) s.set(name, image);
    }
  }
  if (p.flag("monotone")) s.set("F", with_h(p, s, smooth, x));
}

void step_ista(const Problem& p, Scope& s, int) {
  if (keeps_images(p)) return step_with_images(p, s, /*has_momentum=*/false);
  const Variable x = s["x"], step = ops::reciprocal(s["L"]);
  const Variable next = prox_of_h(p, s, descended(p, s, x, step), step);
  s.set("x", next);
  change_numbers(p, s, x, next);
  objective_number(p, s, next);
  add_to_mean(p, s, next);
}

// -- fista ---------------------------------------------------------------------------------------

void declare_fista(const Problem& p, StateList& state) {
  declare_ista(p, state);
  state.add("z", p.x(), Init::x0_or_zero());
  state.add("t", p.numbers(), 1.0);
  if (keeps_images(p)) state.add("Nz", p.x());
}

// x' = prox(z - grad(z) / L), z' = x' + (t - 1) / t' (x' - x). Where the momentum leads uphill, t
// is 1 again.
void step_fista(const Problem& p, Scope& s, int) {
  if (keeps_images(p)) return step_with_images(p, s, /*has_momentum=*/true);
  const Space& X = p.x();
  const Variable x = s["x"], z = s["z"], step = ops::reciprocal(s["L"]);
  const Variable next = prox_of_h(p, s, descended(p, s, z, step), step);
  const Variable moved = next - x;
  Variable t = s["t"];
  if (p.flag("restart")) {
    const Variable is_uphill = ops::gt(X.real_dot(z - next, moved), 0.0);
    t = ops::where(is_uphill, ops::full_like(t, 1.0), t);
  }
  const Variable t_next = next_momentum(t);
  s.set("x", next);
  s.set("z", ops::fma(X.spread((t - 1.0) / t_next), moved, next));
  s.set("t", t_next);
  change_numbers(p, s, x, next);
  objective_number(p, s, next);
  add_to_mean(p, s, next);
}

// -- monotone, backtrack -------------------------------------------------------------------------

// Is f(y) at most its bound at z, f(z) + Re <grad f(z), y - z> + L |y - z|^2 / 2? As f is
// quadratic, <d, N d> <= L |d|^2 with d = y - z, up to the rounding of N y - N z.
Variable is_bounded(const Problem& p, const Variable& y, const Variable& d, const Variable& image,
                    const Variable& L) {
  const Space& X = p.x();
  const double rounding = real_of(X.type().dtype) == DType::float32
                              ? std::numeric_limits<float>::epsilon()
                              : std::numeric_limits<double>::epsilon();
  const Variable dd = X.norm2(d), slack = ops::sqrt(dd * X.norm2(y)) * (10 * rounding);
  return ops::le(X.real_dot(d, image), L * (dd + slack));
}

// y = prox(z - grad(z) / L) with N z at hand; N y is the one application. Where the bound of y
// fails, L doubles and all else stays as it is. x' is the better of y and x, and
//   z' = x' + (t - 1) / t' (y - x), or x' + t / t' (y - x) where x was better,
// so that N x' and N z' are the same sums of N y and N x.
void step_with_images(const Problem& p, Scope& s, bool has_momentum) {
  const Space& X = p.x();
  const Variable x = s["x"], Nx = s["Nx"], L = s["L"], step = ops::reciprocal(L);
  const Variable z = has_momentum ? s["z"] : x, Nz = has_momentum ? s["Nz"] : Nx;
  const Variable v = ops::fma(X.spread(-step), Nz - s["rhs"], z);
  s.guard(X.norm2(v));
  const Variable y = prox_of_h(p, s, v, step), Ny = applied_normal(p, s, y);
  const Variable smooth = smooth_part(p, s, y, Ny);
  s.guard(smooth);
  s.number("smooth", smooth);
  Variable is_taken, is_right;  // undefined: always
  if (p.flag("backtrack")) {
    is_right = is_bounded(p, y, y - z, Ny - Nz, L);
    s.set("L", ops::where(is_right, L, L * 2.0));
    s.number("is right", is_right.astype(L.dtype()));
  }
  const bool is_monotone = p.flag("monotone");
  Variable value;
  if (is_monotone || p.flag("objective")) value = with_h(p, s, smooth, y);
  if (is_monotone) is_taken = ops::le(value, s["F"]);
  const auto where = [&](const Variable& condition, const Variable& a, const Variable& b) {
    return condition.defined() ? ops::where(condition, a, b) : a;
  };
  const auto spread = [&](const Variable& condition) {
    return condition.defined() ? X.spread(condition) : condition;
  };
  const Variable is_new = !is_taken.defined()   ? is_right
                          : !is_right.defined() ? is_taken
                                                : ops::logical_and(is_taken, is_right);
  const Variable next = where(spread(is_new), y, x), Nnext = where(spread(is_new), Ny, Nx);
  const Variable moved = y - x;
  if (has_momentum) {
    Variable t = s["t"];
    if (p.flag("restart")) {
      const Variable is_uphill = ops::gt(X.real_dot(z - y, moved), 0.0);
      t = ops::where(is_uphill, ops::full_like(t, 1.0), t);
    }
    const Variable t_next = next_momentum(t),
                   factor = X.spread(where(is_taken, t - 1.0, t) / t_next);
    const Variable is_moved = spread(is_right);
    s.set("z", where(is_moved, ops::fma(factor, moved, next), z));
    s.set("Nz", where(is_moved, ops::fma(factor, Ny - Nx, Nnext), Nz));
    s.set("t", where(is_right, t_next, s["t"]));
  }
  s.set("x", next);
  s.set("Nx", Nnext);
  if (is_monotone) {
    value = where(is_new, value, s["F"]);
    s.set("F", value);
  }
  s.number("change", X.norm2(moved));
  s.number("size", X.norm2(next));
  if (p.flag("objective")) s.number("objective", value);
  add_to_mean(p, s, next);
}

// -- pogm ----------------------------------------------------------------------------------------

void declare_pogm(const Problem& p, StateList& state) {
  declare_ista(p, state);
  state.add("w", p.x(), Init::x0_or_zero());
  state.add("z", p.x(), Init::x0_or_zero());
  state.add("theta", p.numbers(), 1.0);
  state.add("gamma", p.numbers(), 1.0);
}

// w' = x - a grad(x), z' = w' + (theta - 1) / theta' (w' - w) + theta / theta' (w' - x)
//      + a (theta - 1) / (gamma theta') (z - x), x' = prox_{gamma' h}(z'), with a = 1 / L.
// Variant 1 is the last iteration.
void step_pogm(const Problem& p, Scope& s, int variant) {
  const Space& X = p.x();
  const Variable x = s["x"], w = s["w"], z = s["z"], theta = s["theta"], gamma = s["gamma"];
  const Variable a = ops::reciprocal(s["L"]);
  const Variable theta_next = next_momentum(theta, variant == 1 ? 8 : 4);
  const Variable gamma_next = a * (2.0 * theta + theta_next - 1.0) / theta_next;
  const Variable w_next = ops::fma(X.spread(-a), gradient(p, s, x), x);
  const Variable momentum = (theta - 1.0) / theta_next;
  Variable v = ops::fma(X.spread(momentum), w_next - w, w_next);
  v = ops::fma(X.spread(theta / theta_next), w_next - x, v);
  v = ops::fma(X.spread(a * momentum / gamma), z - x, v);
  s.guard(X.norm2(v));
  const Variable next = prox_of_h(p, s, v, gamma_next);
  s.set("x", next);
  s.set("w", w_next);
  s.set("z", v);
  s.set("gamma", gamma_next);
  if (p.flag("restart")) {
    // G = grad(x) - (x' - z') / gamma' points uphill of the composite function at w'.
    const Variable slope = (x - w_next) * X.spread(ops::reciprocal(a)) -
                           (next - v) * X.spread(ops::reciprocal(gamma_next));
    const Variable uphill = X.real_dot(slope, x - next);
    s.set("theta", ops::where(ops::lt(uphill, 0.0), ops::full_like(theta, 1.0), theta_next));
  } else {
    s.set("theta", theta_next);
  }
  change_numbers(p, s, x, next);
  objective_number(p, s, next);
  add_to_mean(p, s, next);
}

// -- types ---------------------------------------------------------------------------------------

template <class Declare, class Step>
constexpr SolverType proximal_solver(std::string_view name, Declare declare, Step step) {
  return {.name = name,
          .declare = declare,
          .prepare = lipschitz,
          .prepare_bytes = lipschitz_bytes,
          .setup = set_up,
          .step = step,
          .judge = judge_change,
          .result = mean_or_x};
}

constexpr SolverType kIsta = proximal_solver("ista", declare_ista, step_ista);
constexpr SolverType kFista = proximal_solver("fista", declare_fista, step_fista);
constexpr SolverType kDescent = proximal_solver("gradient_descent", declare_ista, step_ista);
constexpr SolverType kNesterov = proximal_solver("nesterov", declare_fista, step_fista);
constexpr SolverType kPogm = [] {
  SolverType type = proximal_solver("pogm", declare_pogm, step_pogm);
  type.variants = [](const Problem&) { return 2; };
  type.variant = [](const Problem& p, int k) {
    return k == p.integer("max_iterations", 0) ? 1 : 0;
  };
  return type;
}();
PALIMPSEST_REGISTER_SOLVER(kIsta);
PALIMPSEST_REGISTER_SOLVER(kFista);
PALIMPSEST_REGISTER_SOLVER(kPogm);
PALIMPSEST_REGISTER_SOLVER(kDescent);
PALIMPSEST_REGISTER_SOLVER(kNesterov);

Problem problem_of(const SolverType& type, const NamedLinop& A, const Prox* h, const TensorType& b,
                   const ProximalOptions& options) {
  Problem p(b);
  p.set("A", A);
  p.set("N", A.N());
  if (h != nullptr) p.set("h", *h);
  if (options.L) p.set("L", *options.L);
  check_lipschitz(p, type.name);
  if (options.average < 1) {
    throw ValueError("[" + std::string(type.name) + "] average: got " +
                     std::to_string(options.average) + ", expected at least 1");
  }
  p.set("average", options.average);
  p.set("restart", options.restart);
  const bool keeps = options.monotone || options.backtrack;
  if (keeps && type.name == kPogm.name) {
    throw ValueError("[pogm] " + std::string(options.monotone ? "monotone" : "backtrack") +
                     ": got true, expected false. Try fista");
  }
  p.set("monotone", options.monotone).set("backtrack", options.backtrack);
  const RecordObjective objective = options.objective;
  p.set("objective",
        objective == RecordObjective::always || (keeps && objective == RecordObjective::automatic));
  // Only where the iterates depend on it: what a checkpoint was made for must be what goes on.
  if (type.name == kPogm.name || options.average > 1) {
    p.set("max_iterations", options.max_iterations);
  }
  return p;
}

TensorType type_of(const Tensor& t) { return {t.dtype(), t.shape(), t.device()}; }

SolveResult solved(const SolverType& type, const NamedLinop& A, const Prox* h, const Tensor& b,
                   const ProximalOptions& options) {
  return solve(type, problem_of(type, A, h, type_of(b), options), b, solve_options(options));
}

}  // namespace

SolveResult ista(const NamedLinop& A, const Prox& h, const Tensor& b,
                 const ProximalOptions& options) {
  return solved(kIsta, A, &h, b, options);
}
SolveResult fista(const NamedLinop& A, const Prox& h, const Tensor& b,
                  const ProximalOptions& options) {
  return solved(kFista, A, &h, b, options);
}
SolveResult pogm(const NamedLinop& A, const Prox& h, const Tensor& b,
                 const ProximalOptions& options) {
  return solved(kPogm, A, &h, b, options);
}
SolveResult gradient_descent(const NamedLinop& A, const Tensor& b, const ProximalOptions& options) {
  return solved(kDescent, A, nullptr, b, options);
}
SolveResult nesterov(const NamedLinop& A, const Tensor& b, const ProximalOptions& options) {
  return solved(kNesterov, A, nullptr, b, options);
}

SolvePlan plan_fista(const NamedLinop& A, const Prox& h, const TensorType& b,
                     const ProximalOptions& options) {
  return plan_solve(kFista, problem_of(kFista, A, &h, b, options), solve_options(options));
}

}  // namespace palimpsest
