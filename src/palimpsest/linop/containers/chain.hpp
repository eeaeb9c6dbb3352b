// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

/// Operators one after the other, in order of execution: Chain(A, B, C) is C(B(A(x))).
///
/// Math     the adjoint is the chain of the adjoints, reversed; N folds from the last child to the
///          first
/// Aliases  keeps the given nodes
/// Errors   ValueError "at least one"; ShapeError "Mismatched shape", "Conflicting" sizes
NamedLinop Chain(std::vector<NamedLinop> linops);
template <std::same_as<NamedLinop>... T>
NamedLinop Chain(const T&... linops) {
  return Chain(std::vector<NamedLinop>{linops...});
}

}  // namespace palimpsest
