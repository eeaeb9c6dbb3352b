// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/solvers/svd.hpp"

#include <algorithm>

#include "palimpsest/ops/index/rows.hpp"
#include "palimpsest/solve/frame/types.hpp"
#include "palimpsest/solve/solvers/basis.hpp"

namespace palimpsest {
namespace {

using namespace svd_parts;

// The number of vectors kept at a restart of the bases, and of steps until these are full again.
index_t kept_of(const Problem& p) {
  const index_t n = vectors_of(p);
  return n == side_of(p) ? n : std::max(count_of(p), n / 2);
}
index_t steps_of(const Problem& p) { return std::max<index_t>(vectors_of(p) - kept_of(p), 1); }

// States: "V" and "U", the bases, with valid first rows; "B", with A V = U B, column by column;
// "filled", its number of columns; "largest", the largest |A v| so far, which separates rounding
// from numbers.
void declare_svd(const Problem& p, StateList& state) {
  const index_t n = vectors_of(p);
  state.add("V", basis::vectors(p, p.x(), n + 1));
  state.add("U", basis::vectors(p, p.b(), n));
  state.add("B", basis::table(p, p.x().number_type().dtype, {n, n}));
  state.add("filled", p.numbers());
  state.add("largest", p.numbers());
  state.add_key("key");
}

void set_up_svd(const Problem& p, Scope& s) {
  const Space& X = p.x();
  const Variable b = s.b().astype(p.b().type().dtype);
  const Variable image = s.adjoint("A", b).astype(X.type().dtype);
  const Variable length = ops::sqrt(X.norm2(image)), none = constant(Tensor::scalar(index_t{-1}));
  const Variable counts = basis::first_rows(p, none, vectors_of(p) + 1, X.type().dtype);
  const Variable key = ops::child_key(s["key"], 0);
  const Next first = next_vector(X, s["V"], counts, image, length, length * 0.0, key);
  s.set_as_is("V", ops::set_row(s["V"], constant(Tensor::scalar(index_t{0})), first.v));
  s.set("key", ops::next_key(s["key"]));
  s.number("start", length);
}

// Replaces U and V by the bases of the largest triplets; the next vector of V is v.
void start_anew(const Problem& p, Scope& s, const Variable& U, const Variable& B,
                const Next& next) {
  const index_t n = kept_of(p), k = count_of(p);
  const Triplets best = triplets(p, U, s["V"], matrices(B), n);
  const auto kept = [&](const Space& X, const Variable& rows, const Variable& old) {
    const Variable part = old(slice(0, n));
    return ops::set_subtensor(part, s.guarded(basis::vectors(p, X, n), rows(slice(0, n)), part));
  };
  const Variable V = kept(p.x(), best.v, s["V"]), at = constant(Tensor::scalar(n));
  s.set_as_is("V", ops::set_row(V, at, s.guarded(p.x(), next.v, ops::row(V, at))));
  s.set_as_is("U", kept(p.b(), best.u, U));
  const DType real = p.x().number_type().dtype;
  Extents extents = best.s.type().shape;
  extents[0] = vectors_of(p);
  const Variable none = constant(Tensor::zeros(extents, real));
  const Variable values = ops::set_subtensor(none(slice(0, n)), best.s(slice(0, n)).astype(real));
  s.set("B", unit_matrix(p, n) * ops::expand_dims(values, {1}));
  s.set("filled", ops::full_like(s["filled"], static_cast<double>(n)));
  const Variable miss = ops::max(ops::abs(best.last(ellipsis, slice(0, k))), {.axes = -1});
  s.number("miss", miss.astype(real) * next.length);
  s.number("value", best.s[0].astype(real));
}

void step_svd(const Problem& p, Scope& s, int variant) {
  const Space &X = p.x(), &Y = p.b();
  const index_t n = vectors_of(p);
  const DType dtype = X.type().dtype, real = X.number_type().dtype;
  const Variable after = s.iteration() - (n + 1), turn = ops::mod(after, steps_of(p)) + kept_of(p);
  const Variable j = ops::where(ops::lt(after, 0.0), s.iteration() - 1, turn);
  const double rounding = 10 * rounding_of(dtype);

  const Variable image = s.apply("A", ops::row(s["V"], j)).astype(dtype);
  const Variable of_u = basis::first_rows(p, j - 1, n, dtype);
  const basis::Orthogonal across = basis::orthogonal(Y, s["U"], of_u, image);
  const Variable across_length = ops::sqrt(Y.norm2(across.next));
  s.guard(across_length);
  const Variable size = ops::maximum(s["largest"], ops::sqrt(Y.norm2(image)));
  const Next u = next_vector(Y, s["U"], of_u, across.next, across_length, size * rounding,
                             ops::child_key(s["key"], 0));

  const Variable back = s.adjoint("A", u.v).astype(dtype);
  const Variable of_v = basis::first_rows(p, j, n + 1, dtype);
  const Variable along = basis::orthogonal(X, s["V"], of_v, back).next;
  const Variable along_length = ops::sqrt(X.norm2(along));
  s.guard(along_length);
  const Variable largest = ops::maximum(size, ops::sqrt(X.norm2(back)));
  const Next v = next_vector(X, s["V"], of_v, along, along_length, largest * rounding,
                             ops::child_key(s["key"], 1));

  const Variable U = ops::set_row(s["U"], j, s.guarded(Y, u.v, ops::row(s["U"], j)));
  const Variable column = ops::real(across.column) + basis::unit_vector(p, j, n, real) * u.length;
  const Variable B = ops::set_row(s["B"], j, column);
  s.set("largest", largest);
  s.set("key", ops::next_key(s["key"]));
  s.number("across", across_length);
  s.number("along", along_length);
  s.number("alpha", u.length);
  s.number("beta", v.length);
  if (variant == 1) return start_anew(p, s, U, B, v);
  s.set_as_is("U", U);
  s.set_as_is("V", ops::set_row(s["V"], j + 1, s.guarded(X, v.v, ops::row(s["V"], j + 1))));
  s.set("B", B);
  s.set("filled", ops::zeros_like(s["filled"]) + (j + 1).astype(real));
}

// Columns that are there, but 0, come before those that are not: by less than any rounding.
Variable result_svd(const Problem& p, Scope& s) {
  const index_t n = vectors_of(p);
  const Variable filled = s["filled"] - 1.0;
  const Variable there = basis::first_rows(p, filled, n, DType::float64);
  const Variable size = s["largest"].astype(DType::float64);
  const Variable mark = ops::maximum(size * 1e-40, 1e-300);
  const Variable marks =
      unit_matrix(p, n).astype(DType::float64) * ops::expand_dims(there * mark, {1});
  const Variable B = s["B"].astype(DType::float64) + marks;
  const Triplets best = triplets(p, s["U"], s["V"], matrices(B), count_of(p));
  const Variable is_zero = ops::le(best.s, mark * 1e10);
  const Variable values = ops::where(is_zero, 0.0, best.s);
  return packed(p, best.u, values, ops::conj(best.v));
}

Verdict judge_svd(const Problem& p, const Numbers& n) {
  Verdict verdict{.numbers = {n["alpha"], n["beta"]}};
  if (n.has("miss")) verdict.residual = n["miss"] == 0 ? 0 : n["miss"] / n["value"];
  verdict.is_converged = n.iteration() == vectors_of(p) && vectors_of(p) == side_of(p);
  return verdict;
}

constexpr SolverType kSvd{.name = "svd",
                          .declare = declare_svd,
                          .setup = set_up_svd,
                          .step = step_svd,
                          .variant =
                              [](const Problem& p, int i) {
                                const index_t n = vectors_of(p);
                                return i >= n && (i - n) % steps_of(p) == 0 ? 1 : 0;
                              },
                          .variants = [](const Problem&) { return 2; },
                          .judge = judge_svd,
                          .result = result_svd,
                          .check = [](const Problem& p) { check_svd(p, "svd"); }};
PALIMPSEST_REGISTER_SOLVER(kSvd);

}  // namespace
}  // namespace palimpsest
