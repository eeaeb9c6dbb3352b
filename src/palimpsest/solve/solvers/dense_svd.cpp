// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/index/rows.hpp"
#include "palimpsest/ops/products/svd.hpp"
#include "palimpsest/solve/solvers/basis.hpp"
#include "palimpsest/solve/solvers/svd.hpp"

namespace palimpsest {
namespace {

using namespace svd_parts;

bool is_tall(const Problem& p) { return rows_of(p) >= columns_of(p); }
const Space& long_space(const Problem& p) { return is_tall(p) ? p.b() : p.x(); }
const Space& short_space(const Problem& p) { return is_tall(p) ? p.x() : p.b(); }

// Row j of D is column j of a tall matrix, and row j of a wide one.
void declare_dense_svd(const Problem& p, StateList& state) {
  if (p.x().is_in_parts() || p.b().is_in_parts()) {
    throw NotSupported(
        "[dense_svd] A: got vectors in parts on several processes, expected whole "
        "ones. Try the solver svd");
  }
  count_of(p);
  state.add("D", basis::vectors(p, long_space(p), side_of(p)));
}

// The data are only looked at, as those of every solver are.
void set_up_dense_svd(const Problem& p, Scope& s) { s.number("bb", p.b().norm2(s.b())); }

// 1 at element j of each element of the batch.
Variable unit_vector_of_side(const Space& X, const Variable& j, index_t side) {
  Extents extents = X.type().shape;
  for (const index_t axis : X.batch_axes()) extents[static_cast<std::size_t>(axis)] = 1;
  const Variable one = ops::eq(constant(Tensor::arange(side)), j).astype(X.type().dtype);
  return ops::broadcast_to(one.reshape(extents), X.type().shape);
}

void step_dense_svd(const Problem& p, Scope& s, int) {
  const Space& Long = long_space(p);
  const Variable j = s.iteration() - 1;
  const Variable unit = unit_vector_of_side(short_space(p), j, side_of(p));
  const Variable image = is_tall(p) ? s.apply("A", unit) : ops::conj(s.adjoint("A", unit));
  // No norm: the square of an element may be beyond the range of its dtype.
  const Variable row = image.astype(Long.type().dtype), size = ops::abs(row);
  const Variable excess =
      sum_besides(ops::where(ops::isfinite(size), 0.0, size), Long.batch_axes());
  s.guard(excess);
  s.number("excess", excess);
  const Variable old = ops::row(s["D"], j);
  s.set_as_is("D", ops::set_row(s["D"], j, s.guarded(Long, row, old)));
}

Variable result_dense_svd(const Problem& p, Scope& s) {
  const index_t k = count_of(p);
  const auto first = [&](const Variable& v) { return v(ellipsis, slice(0, k), all); };
  const ops::SingularVectors parts = ops::svd(basis::as_rows(long_space(p), s["D"]));
  const Variable of_long = basis::from_rows(long_space(p), first(parts.vh));
  const Variable of_short = basis::from_rows(short_space(p), first(ops::swapaxes(parts.u, -1, -2)));
  const Variable values = ops::moveaxis(parts.s(ellipsis, slice(0, k)), -1, 0);
  return is_tall(p) ? packed(p, of_long, values, of_short) : packed(p, of_short, values, of_long);
}

constexpr SolverType kDenseSvd{
    .name = "dense_svd",
    .declare = declare_dense_svd,
    .setup = set_up_dense_svd,
    .step = step_dense_svd,
    .judge = [](const Problem& p,
                const Numbers& n) { return Verdict{.is_converged = n.iteration() == side_of(p)}; },
    .result = result_dense_svd,
    .check = [](const Problem& p) { check_svd(p, "dense_svd"); }};
PALIMPSEST_REGISTER_SOLVER(kDenseSvd);

}  // namespace
}  // namespace palimpsest
