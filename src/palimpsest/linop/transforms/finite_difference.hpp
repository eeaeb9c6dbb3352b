// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

/// Element past the end in a difference: the first one, the last one again, or 0.
enum class DifferenceBoundary : std::uint8_t { periodic, neumann, zero };

struct FiniteDifferenceOptions {
  DifferenceBoundary boundary = DifferenceBoundary::periodic;
  double spacing = 1;
};
/// Forward differences along one dimension.
///
/// Math     y[n] = (x[n + 1] - x[n]) / spacing; N is the second difference
/// Errors   ShapeError: no such dimension; ValueError "spacing": 0 or not finite
/// Cost     one pass
NamedLinop FiniteDifference(Dims dims, ND d, FiniteDifferenceOptions options = {});

struct GradientOptions {
  DifferenceBoundary boundary = DifferenceBoundary::periodic;
  double spacing = 1;
  /// Name of the new dimension.
  ND out = "D";
};
/// Forward differences along several dimensions, stacked along a new first one.
NamedLinop Gradient(Dims dims, Dims over, GradientOptions options = {});

}  // namespace palimpsest
