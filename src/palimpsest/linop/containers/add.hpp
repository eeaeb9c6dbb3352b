// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"
#include "palimpsest/linop/core/workers.hpp"

namespace PALIMPSEST_API palimpsest {

/// The sum of operators on one shape.
///
/// Math     ((y0 + y1) + y2) + ...; N applies every child and its adjoint once
/// Aliases  keeps a shallow copy of each operator
/// Errors   ValueError "at least one", "num_workers"; ShapeError "Add": shapes that differ,
///          "Conflicting" sizes
NamedLinop Add(std::vector<NamedLinop> linops, Workers workers = {});
template <std::same_as<NamedLinop>... T>
NamedLinop Add(const T&... linops) {
  return Add(std::vector<NamedLinop>{linops...});
}

}  // namespace palimpsest
