// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "palimpsest/base/error.hpp"
#include "palimpsest/solve/solvers/krylov.hpp"
#include "palimpsest/solve/square_systems.hpp"

namespace palimpsest {
namespace {

using namespace krylov;

index_t restart_of(const Problem& p) { return p.integer("restart", 30); }

Space stacked(const Problem& p, Extents extents) {
  const TensorType& x = p.x().type();
  return Space(TensorType{x.dtype, std::move(extents), x.device});
}

// V the basis, zeros where no vector is yet; H the Hessenberg matrix, a row for each column of it;
// null its left null vector; beta the first residual.
void declare(const Problem& p, StateList& state) {
  const index_t k = restart_of(p);
  Extents basis = p.x().type().shape;
  basis.insert(0, k + 1);
  state.add("x", p.x(), Init::x0_or_zero());
  state.add("V", stacked(p, basis));
  state.add("H", stacked(p, {k, k + 1}));
  state.add("null", stacked(p, {k + 1}));
  state.add("beta", p.numbers());
}

// |H| columns as rows: entry i of a vector is where `at` is i.
Variable unit_vector(const Problem& p, const Variable& at, index_t n) {
  const Variable positions = constant(Tensor::arange(n));
  return ops::eq(positions, at).astype(p.x().type().dtype);
}

// sum over i of conj(V_i) w, for all rows at once.
Variable products(const Variable& V, const Variable& w) {
  const auto rows = V.type().shape[0];
  const Variable flat = V.reshape({rows, -1});
  return ops::conj(ops::matmul(flat, ops::conj(w.ravel())));
}

// sum over i of c_i V_i.
Variable combination(const Variable& V, const Variable& c, const Variable& like) {
  const auto rows = V.type().shape[0];
  return ops::matmul(c, V.reshape({rows, -1})).reshape(like.type().shape);
}

// The first vector of a basis, and the numbers of an empty H.
struct Basis {
  Variable V, H, null, beta;
};
Basis first_basis(const Problem& p, Scope& s, const Variable& r) {
  const Variable beta = ops::sqrt(p.x().norm2(r));
  const Variable v = r * value_if(ops::gt(beta, 0.0), ops::reciprocal(beta));
  const Variable V = ops::zeros_like(s["V"]);
  const Variable at_0 = constant(Tensor::zeros({}, DType::int64));
  return {ops::set_subtensor(V[at_0], v), ops::zeros_like(s["H"]),
          unit_vector(p, at_0, restart_of(p) + 1), beta};
}

void setup(const Problem& p, Scope& s) {
  const Variable b = s.b().astype(p.x().type().dtype);
  const Variable r = p.has_x0() ? b - s.apply("A", s["x"]) : b;
  const Basis basis = first_basis(p, s, r);
  s.set_as_is("V", basis.V);
  s.set_as_is("null", basis.null);
  s.set("beta", basis.beta);
  s.number("bb", p.x().norm2(b));
  s.number("start", basis.beta);
}

// z of |b e_1 - H z| = min: rows 1 .. k of H are a triangle T, and T z = -(beta / |y|^2) y_1..k.
Variable coefficients(const Problem& p, const Variable& H, const Variable& null,
                      const Variable& beta) {
  const index_t k = restart_of(p);
  const Variable yy = ops::norm2(null);
  const Variable right = null * (-beta / yy).astype(null.dtype());
  ops::LoopOptions options;
  options.states = {ops::zeros_like(H[0])};
  options.sequences = {constant(Tensor::arange(k))};
  options.backwards = true;
  options.fixed = {H, right};
  const auto body = [&](const std::vector<Variable>& a) -> std::vector<Variable> {
    const Variable &i = a[0], &z = a[1], &columns = a[2], &rhs = a[3];
    // z_i is entry i + 1 of z, as in the rows of H.
    const Variable row = ops::take(columns, i + 1, 1), diagonal = row[i];
    const Variable shifted = z(slice(1, std::nullopt));
    const Variable rest = rhs[i + 1] - (row * shifted).sum();
    const Variable value = ratio(rest, diagonal);
    return {z + unit_vector(p, i + 1, k + 1) * value};
  };
  return ops::loop(body, options).last(0)(slice(1, std::nullopt));
}

Variable solution(const Problem& p, Scope& s) {
  const Variable z = coefficients(p, s["H"], s["null"], s["beta"]);
  const Variable V = s["V"](slice(std::nullopt, -1));
  const Variable y = combination(V, z, s["x"]);
  return s["x"] + (p.has_op("M") ? p.op("M")(y) : y);
}

void step(const Problem& p, Scope& s, int variant) {
  const Space& X = p.x();
  const index_t k = restart_of(p);
  Variable V = s["V"], H = s["H"], null = s["null"], beta = s["beta"];
  if (variant == 1) {
    const Variable x = solution(p, s);
    if (p.has_op("M")) s.count("M", constant(Tensor::ones({}, DType::int64)));
    const Basis anew = first_basis(p, s, s.b() - s.apply("A", x));
    s.guard(anew.beta);
    s.set("x", x);
    V = anew.V, H = anew.H, null = anew.null, beta = anew.beta;
  }
  const Variable j = ops::mod(s.iteration() - 1, k);
  const Variable v = V[j];
  const Variable w = s.apply("A", p.has_op("M") ? s.apply("M", v) : v);
  const Variable once = products(V, w);
  const Variable rest = w - combination(V, once, w);
  const Variable again = products(V, rest);
  const Variable next = rest - combination(V, again, w);
  const Variable length = ops::sqrt(X.norm2(next));
  s.guard(length);
  // What is only rounding is no new direction; its length stays a number to divide by.
  const double rounding = real_of(X.type().dtype) == DType::float32
                              ? std::numeric_limits<float>::epsilon()
                              : std::numeric_limits<double>::epsilon();
  const Variable size = ops::sqrt(X.norm2(w)), least = size * rounding;
  const Variable below = ops::maximum(length, least);
  const Variable is_new = ops::gt(length, least * 10.0);
  const Variable row =
      s.guarded(X, next * value_if(is_new, ops::reciprocal(length)), ops::zeros_like(next));
  const Variable at_next = unit_vector(p, j + 1, k + 1);
  const Variable column = once + again;
  const Variable dot = (ops::conj(null) * column).sum();
  const Variable entry = ops::conj(-dot * value_if(ops::gt(below, 0.0), ops::reciprocal(below)));
  const Variable next_null = null + at_next * entry;
  const Variable filled = column + at_next * below.astype(column.dtype());
  s.set_as_is("V", ops::set_subtensor(V[j + 1], row));
  s.set("H", ops::set_subtensor(H[j], filled));
  s.set("null", next_null);
  s.set("beta", beta);
  s.number("residual", beta / ops::sqrt(ops::norm2(next_null)));
}

Verdict judge(const Problem&, const Numbers& n) {
  return {.residual = n["residual"] == 0 ? 0 : n["residual"] / std::sqrt(n["bb"])};
}

constexpr SolverType kGmres{
    .name = "gmres",
    .declare = declare,
    .setup = setup,
    .step = step,
    .variant = [](const Problem& p,
                  int i) { return i > 1 && (i - 1) % restart_of(p) == 0 ? 1 : 0; },
    .variants = [](const Problem&) { return 2; },
    .judge = judge,
    .judge_start =
        [](const Problem&, const Numbers& n) {
          return Verdict{.residual = n["start"] == 0 ? 0 : n["start"] / std::sqrt(n["bb"])};
        },
    .result = solution,
    .check =
        [](const Problem& p) {
          check_square(p, "gmres");
          if (restart_of(p) >= 1) return;
          throw ValueError("[gmres] restart: got " + p.attr("restart").str() +
                           ", expected at least 1");
        },
    .is_linear = true};
PALIMPSEST_REGISTER_SOLVER(kGmres);

}  // namespace

SolveResult gmres(const NamedLinop& A, const Tensor& b, const GmresOptions& options) {
  if (!options.batch.empty()) {
    throw SplitError("[gmres] batch: got " + options.batch.str() + ", expected none");
  }
  Problem p({b.dtype(), b.shape(), b.device()});
  p.set("A", A).set("restart", options.restart);
  if (options.M) p.set("M", *options.M);
  return solve(kGmres, p, b, solve_options(options));
}

}  // namespace palimpsest
