// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <vector>

#include "palimpsest/linop/core/named_linop.hpp"

// A Diagonal multiplies by a product of factors. Each is a parameter, the axes that its own axes
// stand on, and a form: the functions that are applied to its values, in order ("abs2 pow 0.5").
namespace palimpsest {

struct DiagonalFactor {
  Parameter weight;
  Axes axes;  // one per axis of the weight; counted as in axes.hpp, increasing
  std::string form;
};
std::vector<DiagonalFactor> diagonal_factors(const NamedLinop& A);

struct DiagonalParts {
  NamedShape shape;
  std::vector<DiagonalFactor> factors;
  /// The weights take the precision of x: exact numbers such as counts.
  bool adapts = false;
};
NamedLinop make_diagonal(DiagonalParts parts);

/// The values of a factor after its form was applied; those of the adjoint with `conjugated`.
Variable factor_values(const DiagonalFactor& factor, bool conjugated);
/// The values with axes of one element inserted, for broadcasting against arrays of this rank.
Variable put_in_place(const Variable& values, const Axes& axes, std::size_t rank);

}  // namespace palimpsest
