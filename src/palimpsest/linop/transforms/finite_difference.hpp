// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

/// Element past the end in a difference: that at the other end, the nearest one again, or 0.
enum class DifferenceBoundary : std::uint8_t { periodic, neumann, zero };

/// To the next element, or from the one before.
enum class DifferenceDirection : std::uint8_t { forward, backward };

struct FiniteDifferenceOptions {
  DifferenceBoundary boundary = DifferenceBoundary::periodic;
  double spacing = 1;
  DifferenceDirection direction = DifferenceDirection::forward;
};
/// Differences along one dimension.
///
/// Math     y[n] = (x[n + 1] - x[n]) / spacing, backward (x[n] - x[n - 1]) / spacing; N is the
///          second difference
/// Errors   ShapeError: no such dimension; ValueError "spacing": 0 or not finite
/// Cost     one pass
NamedLinop FiniteDifference(Dims dims, ND d, FiniteDifferenceOptions options = {});

struct GradientOptions {
  DifferenceBoundary boundary = DifferenceBoundary::periodic;
  double spacing = 1;
  /// Name of the new dimension.
  ND out = "D";
  DifferenceDirection direction = DifferenceDirection::forward;
};
/// Differences along several dimensions, stacked along a new first one.
NamedLinop Gradient(Dims dims, Dims over, GradientOptions options = {});

}  // namespace palimpsest
