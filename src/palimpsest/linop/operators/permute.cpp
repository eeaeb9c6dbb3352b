// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/operators/permute.hpp"

#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/operators/diagonal_factors.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/named/matching.hpp"
#include "palimpsest/named/sizes.hpp"

namespace palimpsest {
namespace {

// x with the axes named `from` in the order `to`; the axes of an ellipsis stay together. One name
// is one dimension, so the names alone fix the order.
Variable reordered(const Variable& x, const Dims& from, const Dims& to) {
  const std::size_t hidden = x.rank() + (from.has_ellipsis() ? 1 : 0) - from.size();
  Axes order;
  for (const ND& d : to) {
    index_t axis = 0;
    for (const ND& other : from) {
      if (other == d) break;
      axis += other.is_ellipsis() ? static_cast<index_t>(hidden) : 1;
    }
    const std::size_t run = d.is_ellipsis() ? hidden : 1;
    for (std::size_t k = 0; k < run; ++k) order.push_back(axis + static_cast<index_t>(k));
  }
  return ops::transpose(x, std::move(order));
}

Variable permute_fn(const NamedLinop& A, const Variable& x) {
  return reordered(x, A.ishape(), A.oshape());
}
Variable permute_adj_fn(const NamedLinop& A, const Variable& y) {
  return reordered(y, A.oshape(), A.ishape());
}

// Exchanged when the operator is flipped: the table's functions are those of the type.
Variable fn_of_type(const NamedLinop& A, const Variable& x) {
  return A.is_flipped() ? permute_adj_fn(A, x) : permute_fn(A, x);
}
Variable adj_fn_of_type(const NamedLinop& A, const Variable& y) {
  return A.is_flipped() ? permute_fn(A, y) : permute_adj_fn(A, y);
}
// A diagonal, in front of the permutation, that equals `inner` behind it. Undefined if its factors'
// axes change order.
NamedLinop diagonal_in_front(const NamedLinop& A, const NamedLinop& inner) {
  const Dims &from = A.ishape(), &to = A.oshape();
  const bool is_diagonal = &inner.type() == &linop_types::diagonal() && !inner.is_flipped();
  if (!is_diagonal || resolve_wildcards(inner.ishape(), to) != to) return {};
  std::vector<DiagonalFactor> factors = diagonal_factors(inner);
  const auto rank = static_cast<index_t>(from.size());
  const auto place = [&](index_t axis) { return axis < 0 ? axis + rank : axis; };
  for (DiagonalFactor& factor : factors) {
    index_t before = -1;
    for (index_t& axis : factor.axes) {
      const ND d = to[static_cast<std::size_t>(place(axis))];
      if (d.is_ellipsis()) return {};
      axis = axis_of(from, d);
      if (place(axis) <= before) return {};
      before = place(axis);
    }
  }
  return make_diagonal({NamedShape(from), std::move(factors), inner.attr("adapts").as_bool()});
}

NamedLinop permute_normal(const NamedLinop& A, const NamedLinop* inner) {
  return inner ? diagonal_in_front(A, *inner) : Identity(A.ishape());
}

void check_permute(const NamedLinop& A) {
  const Dims &in = A.ishape(), &out = A.oshape();
  bool same = in.size() == out.size();
  for (const ND& d : in) {
    same = same && in.count(d) == 1 && out.count(d) == 1 && (!d.is_any() || d.is_ordinal());
  }
  if (same) return;
  throw ShapeError(who(A) + "got " + A.shape().str() +
                   ", expected a permutation of named dimensions, each once");
}

}  // namespace

const LinopType& linop_types::permute() {
  return PALIMPSEST_LINOP_TYPE(.name = "Permute",
                               .functions = {.fn = fn_of_type,
                                             .adj_fn = adj_fn_of_type,
                                             .normal_fn = unchanged,
                                             .split = split_unchanged},
                               .adj_normal_fn = unchanged, .normal = permute_normal,
                               .check = check_permute);
}

NamedLinop Permute(Dims ishape, Dims oshape) {
  return make_linop(linop_types::permute(), NamedShape(std::move(ishape), std::move(oshape)));
}

}  // namespace palimpsest
