// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/transforms/wavelet.hpp"
#include "palimpsest/solve/prox/norms.hpp"

namespace PALIMPSEST_API palimpsest {

/// Position of the image under the wavelets. none: unchanged. random: rolled along each axis by
/// another random number of entries in each call, which averages out the blocks of a fixed grid.
enum class Shift : std::uint8_t { none, random };

struct L1WaveletOptions {
  std::string family = "db2";
  int levels = kAutomaticLevels;
  Shift shift = Shift::none;
  /// Dimensions whose coefficients are thresholded together, by their norm.
  Dims joint = {};
  /// Factors of lambda, coarse to fine: that of the approximation, then those of the details of
  /// each level. None: all 1. 0 leaves coefficients as they are.
  std::vector<double> level_weights = {};
  /// Dimensions of the operand; unset: as in TotalVariationOptions.
  std::optional<Dims> dims = {};
};
/// lambda |W x|_1, W a Wavelet along `over`: all coefficients count, the coarsest too.
///
/// Math     prox: W^H soft(W v, t lambda); the value is that of the image as it lies
/// State    a key of random numbers with Shift::random
/// Errors   ValueError "lambda", "family", "levels", "level_weights": negative, or another number
///          than levels + 1
/// Cost     one Wavelet and its adjoint; with shifts two passes more
Prox L1Wavelet(const Weight& lambda, const Dims& over, const L1WaveletOptions& options = {});

}  // namespace palimpsest
