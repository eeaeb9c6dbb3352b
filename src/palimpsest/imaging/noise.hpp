// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

struct NoiseOptions {
  /// Time between samples of noise and of image readouts, in any one unit; both or none.
  std::optional<double> noise_dwell = {}, imaging_dwell = {};
  /// Bandwidth of the receiver, relative to the sampled one: the part of the noise's band that it
  /// passes.
  double bandwidth = 0.793;
};
/// Covariance of the coils' noise in a sample of an image readout.
///
/// Math     Psi = n n^H / (samples - 1), the mean of each readout removed; with dwell times, times
///          (noise dwell / imaging dwell) / bandwidth
/// Shapes   noise (C, samples), or (readouts, C, samples) -> (C, C')
/// DTypes   complex64 -> complex128
/// Errors   ShapeError; ValueError "noise": fewer than two samples; "dwell": one of the two, or not
///          positive
/// Source   Kellman & McVeigh 2005, doi:10.1002/mrm.20713
Tensor noise_covariance(const Tensor& noise, const NoiseOptions& options);

struct WhitenOptions {
  /// Takes the noise from the border of k-space where no covariance is given: the measured samples
  /// in the outer 5 % along an axis.
  bool from_border = false;
};
/// Makes the coils' noise uncorrelated, of variance 1 for each complex sample.
///
/// Math     L^-1 y with Psi = L L^H
/// Shapes   kspace (C, ..), covariance (C, C)
/// DTypes   complex64, complex128
/// Errors   ShapeError: they do not fit; ValueError "positive definite", with the coil; "noise":
///          neither a covariance nor from_border, or too few samples at the border
/// Source   Pruessmann et al. 2001, doi:10.1002/mrm.1241
Tensor whiten(const Tensor& kspace, const std::optional<Tensor>& covariance,
              const WhitenOptions& options = {});

}  // namespace palimpsest
