// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// Delays of the gradients of a radial scan: a spoke along the unit vector n is measured at k + S n
/// instead of k, with the symmetric matrix S = (xx xy; xy yy) in cycles per field of view.
struct RadialDelays {
  double xx = 0, yy = 0, xy = 0;
};

/// The delays, from the points where spokes cross (RING).
///
/// Math     two spokes cross where t_i n_i + S n_i = t_j n_j + S n_j; t_i and t_j are the points
///          where the data of all coils agree best, within 6 samples of the middle, on a grid of
///          1/16 sample and by the paraboloid around its best point. S has the least sum of
///          distances over all pairs of spokes at an angle of at least 30 degrees, 2,000 pairs at
///          most
/// Shapes   kspace (C, spokes, samples), trajectory (spokes, samples, 2) as it was meant to be
/// DTypes   complex64, float32
/// Units    S in those of the trajectory; the result does not depend on those of the data
/// Errors   ShapeError, DTypeError: other arrays; ValueError "radial": a spoke that is not an even
///          line through the middle; "cross": fewer than three pairs of spokes; "signal": no signal
///          where they cross
/// Cost     spokes x 193 x samples multiplications for each coil, and 914 comparisons for each pair
/// Source   Rosenzweig et al. 2019, doi:10.1002/mrm.27506
RadialDelays estimate_delays(const Tensor& kspace, const Tensor& trajectory);

/// The trajectory along which was measured: k + S n.
///
/// Shapes   trajectory (spokes, samples, 2) float32 -> the same
/// Errors   those of estimate_delays() for the trajectory
Tensor corrected(const Tensor& trajectory, const RadialDelays& delays);

}  // namespace palimpsest
