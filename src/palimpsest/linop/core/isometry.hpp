// SPDX-License-Identifier: Apache-2.0
// Internal: entries of types that are isometries, A^H A x = x. They simplify nothing around an
// inner operator.
#pragma once

#include "palimpsest/linop/core/node.hpp"

namespace palimpsest {

/// `normal_fn`, or `adj_normal_fn` of an isometry's adjoint.
Variable unchanged(const NamedLinop& A, const Variable& x);
/// `normal` of types: unitary ones; isometries; types with an isometry as adjoint.
NamedLinop unitary_normal(const NamedLinop& A, const NamedLinop* inner);
NamedLinop embedding_normal(const NamedLinop& A, const NamedLinop* inner);
NamedLinop restriction_normal(const NamedLinop& A, const NamedLinop* inner);

}  // namespace palimpsest
