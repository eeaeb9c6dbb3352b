// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/operators/identity.hpp"

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/linop/core/builtin_types.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/core/splitting.hpp"

namespace palimpsest {
namespace {

Variable identity_fn(const NamedLinop&, const Variable& x) { return x; }

NamedLinop identity_normal(const NamedLinop& A, const NamedLinop* inner) {
  return inner ? *inner : A;
}

}  // namespace

const LinopType& linop_types::identity() {
  return immortal([] {
    return LinopType{
        .name = "Identity",
        .functions = {.fn = identity_fn,
                      .adj_fn = identity_fn,
                      .normal_fn = identity_fn,
                      .split = split_unchanged},
        .adj_normal_fn = identity_fn,
        .adjoint = own_adjoint,
        .normal = identity_normal,
        .inverse = own_adjoint,
        .one_shape = true,
    };
  });
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
