// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "palimpsest/base/api.hpp"
#include "palimpsest/imaging/reconstruct.hpp"

namespace PALIMPSEST_API palimpsest {

struct GFactorOptions {
  /// Images of noise; each standard deviation is known to 1 / (2 sqrt(replicas)).
  index_t replicas = 128;
  std::uint64_t seed = 0;
  /// Options of the images. Their scale is 1 unless it is given.
  ReconstructOptions reconstruct = {};
};

struct GFactor {
  /// float32, the axes of the image: the loss of signal to noise beyond sqrt(acceleration); 0 where
  /// the full pattern has no noise.
  Tensor g;
  /// Standard deviations of the complex values, with the pattern and without.
  Tensor deviation, full_deviation;
  /// Points of the grid per sample.
  double acceleration = 1;
  /// "nonlinear ..", where noise alone does not tell; else empty.
  std::string warning = {};
};

/// Amplification of noise by pseudo-replicas: images of white noise of variance 1.
///
/// Math     g = deviation / (full deviation sqrt(acceleration))
/// Shapes   maps as for reconstruct(), mask bool (y, x) or (z, y, x)
/// Errors   ValueError "replicas": below 2; "no samples"; those of reconstruct()
/// Cost     2 replicas reconstructions; memory of one, and three images
/// Source   Robson et al. 2008, doi:10.1002/mrm.21728
GFactor g_factor(const Tensor& maps, const Tensor& mask, const GFactorOptions& options = {});

}  // namespace palimpsest
