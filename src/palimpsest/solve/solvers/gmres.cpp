// SPDX-License-Identifier: Apache-2.0

#include "palimpsest/ops/index/rows.hpp"
#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/solvers/basis.hpp"
#include "palimpsest/solve/solvers/krylov.hpp"

namespace palimpsest {
namespace {

using namespace krylov;

// Least length of a new direction, as a multiple of the rounding error of the vector it comes from.
constexpr double kNewDirection = 10;

index_t restart_of(const Problem& p) { return p.integer("restart", 30); }

// States: "V", the basis, with valid rows up to this iteration; "H", the Hessenberg matrix, each
// column stored as a row; "null", its left null vector; "beta", the norm of the first residual.
void declare_gmres(const Problem& p, StateList& state) {
  const index_t k = restart_of(p);
  const DType dtype = p.x().type().dtype;
  state.add("x", p.x(), Init::x0_or_zero());
  state.add("V", basis::vectors(p, p.x(), k + 1));
  state.add("H", basis::table(p, dtype, {k, k + 1}));
  state.add("null", basis::table(p, dtype, {k + 1}));
  state.add("beta", p.numbers());
}

Variable first_row() { return constant(Tensor::scalar(index_t{0})); }

Variable unit_vector_at(const Problem& p, const Variable& at) {
  return basis::unit_vector(p, at, restart_of(p) + 1, p.x().type().dtype);
}

// The first vector of a basis, and the numbers of an empty H.
struct Basis {
  Variable v, H, null, beta;
};
Basis first_basis(const Problem& p, Scope& s, const Variable& r) {
  const Space& X = p.x();
  const Variable beta = ops::sqrt(X.norm2(r));
  const Variable v = r * X.spread(value_if(ops::gt(beta, 0.0), ops::reciprocal(beta)));
  return {v, ops::zeros_like(s["H"]), ops::zeros_like(s["null"]) + unit_vector_at(p, first_row()),
          beta};
}

void set_up_gmres(const Problem& p, Scope& s) {
  const Variable b = s.b().astype(p.x().type().dtype);
  const Variable r = p.has_x0() ? b - s.apply("A", s["x"]) : b;
  const Basis basis = first_basis(p, s, r);
  s.set_as_is("V", ops::set_row(s["V"], first_row(), basis.v));
  s.set_as_is("null", basis.null);
  s.set("beta", basis.beta);
  s.number("bb", p.x().norm2(b));
  s.number("start", basis.beta);
}

Variable solution_gmres(const Problem& p, Scope& s) {
  const Variable V = s["V"](slice(std::nullopt, -1));
  const Variable factor = -s["beta"] / s.space_of("null").norm2(s["null"]);
  const Variable z = basis::least_squares(p, s["H"], s["null"], factor);
  const Variable y = basis::combination(p.x(), V, z);
  if (!p.has_op("M")) return s["x"] + y;
  const Variable image = p.op("M")(y), is_finite = ops::isfinite(p.x().norm2(image));
  return ops::where(p.x().spread(is_finite), s["x"] + image, s["x"]);
}

// The result of basis::orthogonal for a basis of one vector.
basis::Orthogonal against_first(const Problem& p, const Variable& v, const Variable& w) {
  const Space& X = p.x();
  const Variable once = X.dot(v, w), rest = ops::fma(X.spread(-once), v, w);
  const Variable again = X.dot(v, rest);
  return {ops::fma(X.spread(-again), v, rest), unit_vector_at(p, first_row()) * (once + again)};
}

// Variant 1 starts anew: x becomes the solution so far, and its residual the first vector.
void step_gmres(const Problem& p, Scope& s, int variant) {
  const Space& X = p.x();
  const bool is_anew = variant == 1;
  const Variable j = is_anew ? first_row() : ops::mod(s.iteration() - 1, restart_of(p));
  Variable x;
  Basis basis{{}, s["H"], s["null"], s["beta"]};
  if (is_anew) {
    x = solution_gmres(p, s);
    if (p.has_op("M")) s.count("M", constant(Tensor::ones({}, DType::int64)));
    basis = first_basis(p, s, s.b() - s.apply("A", x));
  }
  const Variable v = is_anew ? basis.v : ops::row(s["V"], j);
  const Variable w = s.apply("A", p.has_op("M") ? s.apply("M", v) : v);
  const auto [next, column] =
      is_anew
          ? against_first(p, v, w)
          : basis::orthogonal(X, s["V"], basis::first_rows(p, j, restart_of(p) + 1, w.dtype()), w);
  const Variable length = ops::sqrt(X.norm2(next));
  s.guard(basis.beta);
  s.guard(length);
  // The length of a vector that is only rounding stays a number to divide by.
  const Variable size = ops::sqrt(X.norm2(w)), least = size * rounding_of(X.type().dtype);
  const Variable below = ops::maximum(length, least);
  const Variable is_new = ops::gt(length, least * kNewDirection);
  const Variable unit = next * X.spread(value_if(is_new, ops::reciprocal(length)));
  // Rows of an element that has ended stay: its solution may need them.
  const auto set_row = [&](const Variable& V, const Variable& i, const Variable& value) {
    const bool may_count = is_anew || !p.batch().empty();
    const Variable old = may_count ? ops::row(V, i) : ops::zeros_like(value);
    return ops::set_row(V, i, s.guarded(X, value, old));
  };
  const Variable V = is_anew ? set_row(s["V"], j, v) : s["V"];
  s.set_as_is("V", set_row(V, j + 1, unit));
  if (is_anew) s.set("x", x);
  const Variable at_next = unit_vector_at(p, j + 1);
  const Variable dot = (ops::conj(basis.null) * column).sum({0});
  const Variable entry = ops::conj(-dot * value_if(ops::gt(below, 0.0), ops::reciprocal(below)));
  const Variable null = basis.null + at_next * entry;
  s.set("H", ops::set_row(basis.H, j, column + at_next * below.astype(column.dtype())));
  s.set("null", null);
  s.set("beta", basis.beta);
  s.number("residual", basis.beta / ops::sqrt(s.space_of("null").norm2(null)));
}

Verdict judge_gmres(const Problem&, const Numbers& n) {
  return {.residual = n["residual"] == 0 ? 0 : n["residual"] / std::sqrt(n["bb"])};
}

constexpr SolverType kGmres{
    .name = "gmres",
    .declare = declare_gmres,
    .setup = set_up_gmres,
    .step = step_gmres,
    .variant = [](const Problem& p,
                  int i) { return i > 1 && (i - 1) % restart_of(p) == 0 ? 1 : 0; },
    .variants = [](const Problem&) { return 2; },
    .judge = judge_gmres,
    .judge_start =
        [](const Problem&, const Numbers& n) {
          return Verdict{.residual = n["start"] == 0 ? 0 : n["start"] / std::sqrt(n["bb"])};
        },
    .result = solution_gmres,
    .check =
        [](const Problem& p) {
          check_square(p, "gmres");
          expect_option(p, "gmres", "restart", restart_of(p) >= 1, "at least 1");
        },
    .is_linear = true};
PALIMPSEST_REGISTER_SOLVER(kGmres);

}  // namespace

}  // namespace palimpsest
