// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"
#include "palimpsest/ops/transforms/fft.hpp"

namespace PALIMPSEST_API palimpsest {

/// Names on the two sides of an operator that acts on the last axes.
struct Grid {
  Dims in, out;
};
struct FftLinopOptions {
  Dims batch = "...";
  /// Default for 1 to 3 axes: Nx.. and Kx..; for more N1.. and K1...
  std::optional<Grid> grid = {};
  FftNorm norm = FftNorm::ortho;
  bool centered = false;
};
/// Fourier transform over the last ndim axes.
///
/// Math     y[k] = s sum_j x[j] exp(-2 pi i sum_d (k_d - c_d)(j_d - c_d) / N_d), c = floor(N/2) if
///          centered, else 0; the adjoint has the same s and exp(+...). N is Identity for ortho, n
///          for backward, 1/n for forward
/// DTypes   real input gives complex output
/// Errors   ValueError "ndim"; "grid": names of the wrong number
/// Cost     one library call; centering costs no pass
NamedLinop Fft(int ndim, FftLinopOptions options = {});

}  // namespace palimpsest
