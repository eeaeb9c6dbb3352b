// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/solve/prox/norms.hpp"

namespace PALIMPSEST_API palimpsest {

// Functions that are 0 where a constraint holds and infinite elsewhere. The prox is the projection,
// for any t; value() allows for 1e-6 of the largest element.

/// The constraint lo <= x <= hi.
/// Errors   ValueError "lo": above hi, or NaN; DTypeError "real": complex x
Prox Box(double lo, double hi);
/// The constraint that x is real and not negative.
Prox NonNegative();
/// The constraint that x is real.
Prox RealValued();

struct BallOptions {
  /// Broadcasts against x; none: 0.
  std::optional<Tensor> center = {};
  Dims over = {};
  std::optional<Dims> dims = {};
};
/// The constraint |x - center| <= radius, the norm over `over`.
/// Errors   ValueError "radius": negative
Prox Ball(const Weight& radius, const BallOptions& options = {});

struct AffineOptions {
  int inner = 20;  ///< most steps of conjugate gradients; 1 is exact for B B^H a multiple of I
};
/// The constraint B x = c. The prox is v - B^H (B B^H)^-1 (B v - c).
/// Errors   ValueError "inner": not positive
Prox Affine(const NamedLinop& B, const Tensor& c, AffineOptions options = {});

}  // namespace palimpsest
