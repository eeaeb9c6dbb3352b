// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

/// The number of levels that wavelet_levels() says.
inline constexpr int kAutomaticLevels = -1;

struct WaveletOptions {
  /// haar, or db1 (the same) to db10.
  std::string family = "db4";
  int levels = 4;  ///< or kAutomaticLevels
};
/// Orthogonal wavelet transform over some dimensions, periodic.
///
/// Math     per level and axis, with the filter h of even length L and g[m] = (-1)^m h[L - 1 - m]:
///          a[n] = sum_m h[m] x[(2n + m) mod N], b[n] = sum_m g[m] x[(2n + m) mod N], stored a,
///          then b; the next level works on the corner of all a. Of a line of odd length the last
///          entry goes unchanged to the end of the a, and the others are transformed. The adjoint
///          is the inverse, N is Identity, for every size
/// Shapes   unchanged
/// Errors   ShapeError: no such dimension; ValueError "family", "levels"
/// Cost     per level and axis two short filters
/// Source   Daubechies 1988, doi:10.1002/cpa.3160410705
NamedLinop Wavelet(Dims dims, Dims over, WaveletOptions options = {});

/// W of x moved on periodically by the shifts, one int64 without axes for each axis of W, and W^H
/// of y moved back by them. Along axes of even extent the move is part of the first filter and of
/// the last one, without a copy. Without levels nothing is moved.
Variable shifted_wavelet(const NamedLinop& W, const Variable& x,
                         const std::vector<Variable>& shifts);
Variable shifted_wavelet_adjoint(const NamedLinop& W, const Variable& y,
                                 const std::vector<Variable>& shifts);

/// Number of times that all sizes can be halved, rounding up, with the smallest at least 16.
int wavelet_levels(const Extents& sizes);

/// The low-pass filter of a family, of unit norm. ValueError "family".
std::vector<double> wavelet_filter(std::string_view family);

}  // namespace palimpsest
