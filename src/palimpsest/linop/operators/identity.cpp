// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/operators/identity.hpp"

#include "palimpsest/linop/core/prelude.hpp"

namespace palimpsest {
namespace {

NamedLinop identity_normal(const NamedLinop& A, const NamedLinop* inner) {
  return inner ? *inner : A;
}

}  // namespace

Variable unchanged(const NamedLinop&, const Variable& x) { return x; }
NamedLinop unitary_normal(const NamedLinop& A, const NamedLinop* inner) {
  return inner ? NamedLinop() : Identity(A.ishape());
}
NamedLinop embedding_normal(const NamedLinop& A, const NamedLinop* inner) {
  return A.is_flipped() ? NamedLinop() : unitary_normal(A, inner);
}
NamedLinop restriction_normal(const NamedLinop& A, const NamedLinop* inner) {
  return A.is_flipped() ? unitary_normal(A, inner) : NamedLinop();
}

const LinopType& linop_types::identity() {
  return PALIMPSEST_LINOP_TYPE(.name = "Identity",
                               .functions = {.fn = unchanged,
                                             .adj_fn = unchanged,
                                             .normal_fn = unchanged,
                                             .split = split_unchanged},
                               .adj_normal_fn = unchanged, .adjoint = own_adjoint,
                               .normal = identity_normal, .inverse = own_adjoint,
                               .one_shape = true);
}

NamedLinop Identity(Dims dims) { return make_linop(linop_types::identity(), NamedShape(dims)); }

NamedLinop Identity(Dims ishape, Dims oshape) {
  if (ishape != oshape) {
    throw ValueError("[Identity] two different shapes: got " + arrow(ishape, oshape) +
                     ", expected one. Try ShapeSpec");
  }
  return Identity(std::move(ishape));
}

}  // namespace palimpsest
