// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/ops/create/create.hpp"
#include "palimpsest/ops/reduce/reduce.hpp"

namespace palimpsest {
namespace {

Variable zeros_for(const NamedLinop& A, const Variable& x, const Dims& from, const Dims& to) {
  Extents extents = x.type().shape;
  if (from != to) {
    DimSizes sizes = bind_of(A, from, x.type().shape);
    for (const ND& d : to) {
      if (!(d.is_concrete() || d.is_ordinal()) || sizes.contains(d)) continue;
      if (const auto n = A.size(d)) sizes.set(d, *n);
    }
    extents = extents_of(to, sizes, path_of(A));
  }
  // The sum of no elements of x: 0 for any x, with the gradient 0.
  const Variable line = ops::reshape(x, {element_count(x.type().shape)});
  const Variable nothing = ops::sum(ops::index(line, {Index(slice(0, 0))}));
  return ops::zeros(extents, x.dtype(), x.type().device) + nothing;
}

Variable zero_fn(const NamedLinop& A, const Variable& x) {
  return zeros_for(A, x, A.ishape(), A.oshape());
}
Variable zero_adj_fn(const NamedLinop& A, const Variable& y) {
  return zeros_for(A, y, A.oshape(), A.ishape());
}

NamedLinop zero_adjoint(const NamedLinop& A) {
  return with_records_of(A, Zero(A.oshape(), A.ishape()));
}

NamedLinop zero_normal(const NamedLinop& A, const NamedLinop* inner) {
  return inner ? NamedLinop() : Zero(A.ishape());
}

}  // namespace

const LinopType& linop_types::zero() {
  return PALIMPSEST_LINOP_TYPE(.name = "Zero",
                               .functions = {.fn = zero_fn,
                                             .adj_fn = zero_adj_fn,
                                             .split = split_unchanged},
                               .adjoint = zero_adjoint, .normal = zero_normal);
}

NamedLinop Zero(Dims ishape) { return Zero(ishape, ishape); }

NamedLinop Zero(Dims ishape, Dims oshape, ZeroOptions options) {
  const NamedLinop made =
      make_linop(linop_types::zero(), NamedShape(std::move(ishape), std::move(oshape)));
  return options.sizes.empty() ? made : made.with_sizes(options.sizes);
}

}  // namespace palimpsest
