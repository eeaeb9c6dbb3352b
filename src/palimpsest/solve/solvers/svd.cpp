// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/solvers/svd.hpp"

#include <algorithm>
#include <limits>

#include "palimpsest/ops/index/rows.hpp"
#include "palimpsest/ops/products/svd.hpp"
#include "palimpsest/solve/solvers/basis.hpp"
#include "palimpsest/solve/solvers/krylov.hpp"

namespace palimpsest {
namespace {

using namespace svd_parts;

// Vectors of each basis. Those of the smaller side are all there are.
index_t side_of(const Problem& p) { return std::min(rows_of(p), columns_of(p)); }
index_t vectors_of(const Problem& p) {
  const index_t given = p.integer("vectors", 0);
  return std::min(given > 0 ? given : 2 * count_of(p) + 10, side_of(p));
}
// How many of them stay when the bases start anew, and the steps until they are full again.
index_t kept_of(const Problem& p) {
  const index_t n = vectors_of(p);
  return n == side_of(p) ? n : std::max(count_of(p), n / 2);
}
index_t steps_of(const Problem& p) { return std::max<index_t>(vectors_of(p) - kept_of(p), 1); }

double rounding_of(const Problem& p) {
  return real_of(p.x().type().dtype) == DType::float32 ? std::numeric_limits<float>::epsilon()
                                                       : std::numeric_limits<double>::epsilon();
}

// V and U the bases, of which the first rows count; B column by column, A V = U B; how many columns
// it has; the largest |A v| so far, which tells rounding from numbers.
void declare(const Problem& p, StateList& state) {
  const index_t n = vectors_of(p);
  state.add("V", basis::vectors(p, p.x(), n + 1));
  state.add("U", basis::vectors(p, p.b(), n));
  state.add("B", basis::table(p, p.x().number_type().dtype, {n, n}));
  state.add("filled", p.numbers());
  state.add("largest", p.numbers());
  state.add_key("key");
}

struct Orthogonal {
  Variable next, column, length;
};
// w less its part in the first rows of a basis, taken out twice.
Orthogonal orthogonal(const Space& X, const Variable& basis, const Variable& counts,
                      const Variable& w) {
  const Variable once = basis::products(X, basis, w) * counts;
  const Variable rest = w - basis::combination(X, basis, once);
  const Variable again = basis::products(X, basis, rest) * counts;
  const Variable next = rest - basis::combination(X, basis, again);
  return {next, once + again, ops::sqrt(X.norm2(next))};
}

Variable unit(const Space& X, const Variable& v, const Variable& length, const Variable& is_new) {
  return v * X.spread(krylov::value_if(is_new, ops::reciprocal(length)));
}

// The next vector of a basis and its length. Where nothing but rounding is left a random vector
// takes its place, of length 0, and 0 itself where the basis has all there is.
struct Next {
  Variable v, length;
};
Next next_vector(const Space& X, const Variable& basis, const Variable& counts,
                 const Orthogonal& found, const Variable& least, const Variable& key) {
  const Variable is_new = ops::gt(found.length, least);
  const Variable v = unit(X, found.next, found.length, is_new);
  const TensorType& type = X.type();
  const Variable drawn = ops::random_normal(key, type.shape, type.dtype);
  const Orthogonal other = orthogonal(X, basis, counts, drawn);
  const Variable there = ops::logical_and(ops::logical_not(is_new), ops::gt(other.length, 1e-3));
  const Variable filled = v + unit(X, other.next, other.length, there);
  return {ops::ifelse(ops::all_of(is_new), v, filled), krylov::value_if(is_new, found.length)};
}

void setup(const Problem& p, Scope& s) {
  const Space& X = p.x();
  const Variable b = s.b().astype(p.b().type().dtype);
  const Variable image = s.adjoint("A", b).astype(X.type().dtype);
  const Variable length = ops::sqrt(X.norm2(image)), none = constant(Tensor::scalar(index_t{-1}));
  const Variable counts = basis::first_rows(p, none, vectors_of(p) + 1, X.type().dtype);
  const Variable key = ops::child_key(s["key"], 0);
  const Next first = next_vector(X, s["V"], counts, {image, {}, length}, length * 0.0, key);
  s.set_as_is("V", ops::set_row(s["V"], constant(Tensor::scalar(index_t{0})), first.v));
  s.set("key", ops::next_key(s["key"]));
  s.number("start", length);
}

// B as matrices (batch.., rows, columns) in double precision.
Variable matrices(const Variable& B) {
  Axes order;
  for (index_t axis = 2; axis < static_cast<index_t>(B.rank()); ++axis) order.push_back(axis);
  order.push_back(1);
  order.push_back(0);
  return ops::transpose(B, order).astype(DType::float64);
}

// Vectors in the rows of a matrix (batch.., n, entries) as coefficients (entries, n, batch..).
Variable coefficients(const Variable& rows, DType dtype) {
  const auto rank = static_cast<index_t>(rows.rank());
  Axes order{rank - 1, rank - 2};
  for (index_t axis = 0; axis < rank - 2; ++axis) order.push_back(axis);
  return ops::transpose(rows, order).astype(dtype);
}

// The first n triplets of U B V^H.
struct Triplets {
  Variable u, s, v;  // (n, o..), (n, batch..), (n, i..)
  Variable last;     // of the left vectors of B the entries in its last row, (batch.., n)
};
Triplets triplets(const Problem& p, const Variable& U, const Variable& V, const Variable& B,
                  index_t n) {
  const ops::SingularVectors parts = ops::svd(B);
  const DType dtype = p.x().type().dtype;
  const auto first = [&](const Variable& v) { return v(ellipsis, slice(0, n), all); };
  const Variable left = first(ops::swapaxes(parts.u, -1, -2));
  return {
      basis::combinations(p.b(), U, coefficients(left, dtype)),
      ops::moveaxis(parts.s(ellipsis, slice(0, n)), -1, 0),
      basis::combinations(p.x(), V(slice(0, vectors_of(p))), coefficients(first(parts.vh), dtype)),
      left(ellipsis, -1)};
}

// 1 where row and column are one of the first n, (vectors, vectors, 1..).
Variable unit_matrix(const Problem& p, index_t n) {
  const index_t side = vectors_of(p);
  Extents extents(2 + p.x().batch_axes().size(), 1);
  extents[0] = extents[1] = side;
  Tensor one = Tensor::zeros({side, side}, p.x().number_type().dtype);
  for (index_t i = 0; i < n; ++i) one(i, i).fill(1.0);
  return constant(one.reshape(extents));
}

// The bases of the largest triplets take the place of U and V, whose next vector is v.
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

void step(const Problem& p, Scope& s, int variant) {
  const Space &X = p.x(), &Y = p.b();
  const index_t n = vectors_of(p);
  const DType dtype = X.type().dtype, real = X.number_type().dtype;
  const Variable after = s.iteration() - (n + 1), turn = ops::mod(after, steps_of(p)) + kept_of(p);
  const Variable j = ops::where(ops::lt(after, 0.0), s.iteration() - 1, turn);
  const double rounding = 10 * rounding_of(p);

  const Variable image = s.apply("A", ops::row(s["V"], j)).astype(dtype);
  const Variable of_u = basis::first_rows(p, j - 1, n, dtype);
  const Orthogonal across = orthogonal(Y, s["U"], of_u, image);
  s.guard(across.length);
  const Variable size = ops::maximum(s["largest"], ops::sqrt(Y.norm2(image)));
  const Next u = next_vector(Y, s["U"], of_u, across, size * rounding, ops::child_key(s["key"], 0));

  const Variable back = s.adjoint("A", u.v).astype(dtype);
  const Variable of_v = basis::first_rows(p, j, n + 1, dtype);
  const Orthogonal along = orthogonal(X, s["V"], of_v, back);
  s.guard(along.length);
  const Variable largest = ops::maximum(size, ops::sqrt(X.norm2(back)));
  const Next v =
      next_vector(X, s["V"], of_v, along, largest * rounding, ops::child_key(s["key"], 1));

  const Variable U = ops::set_row(s["U"], j, s.guarded(Y, u.v, ops::row(s["U"], j)));
  const Variable column = ops::real(across.column) + basis::unit_vector(p, j, n, real) * u.length;
  const Variable B = ops::set_row(s["B"], j, column);
  s.set("largest", largest);
  s.set("key", ops::next_key(s["key"]));
  s.number("across", across.length);
  s.number("along", along.length);
  s.number("alpha", u.length);
  s.number("beta", v.length);
  if (variant == 1) return start_anew(p, s, U, B, v);
  s.set_as_is("U", U);
  s.set_as_is("V", ops::set_row(s["V"], j + 1, s.guarded(X, v.v, ops::row(s["V"], j + 1))));
  s.set("B", B);
  s.set("filled", ops::zeros_like(s["filled"]) + (j + 1).astype(real));
}

// Columns that are there, but 0, come before those that are not: by less than any rounding.
Variable result(const Problem& p, Scope& s) {
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

Verdict judge(const Problem& p, const Numbers& n) {
  Verdict verdict{.numbers = {n["alpha"], n["beta"]}};
  if (n.has("miss")) verdict.residual = n["miss"] == 0 ? 0 : n["miss"] / n["value"];
  verdict.is_converged = n.iteration() == vectors_of(p) && vectors_of(p) == side_of(p);
  return verdict;
}

constexpr SolverType kSvd{.name = "svd",
                          .declare = declare,
                          .setup = setup,
                          .step = step,
                          .variant =
                              [](const Problem& p, int i) {
                                const index_t n = vectors_of(p);
                                return i >= n && (i - n) % steps_of(p) == 0 ? 1 : 0;
                              },
                          .variants = [](const Problem&) { return 2; },
                          .judge = judge,
                          .result = result,
                          .check = [](const Problem& p) { check(p, "svd"); }};
PALIMPSEST_REGISTER_SOLVER(kSvd);

}  // namespace
}  // namespace palimpsest
