// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

// Trajectories are (readouts, samples, D) float32, coordinates x, y, z in cycles per field of view:
// an image of n points has -n/2 .. n/2. coordinates_of_grid() makes them the locations of Nufft()
// for arrays (.., y, x).
namespace PALIMPSEST_API palimpsest {

/// bart: angles as `bart traj -r` counts them, 90 degrees minus these, and samples half a step off.
enum class TrajectoryConvention { plain, bart };

struct RadialOptions {
  index_t spokes = 1, samples = 1;
  /// Samples for each cycle per field of view.
  double oversampling = 2;
  /// Spokes spread over 360 degrees instead of 180.
  bool full = false;
  /// Angles a_i = i 180 / (phi + golden - 1), phi = (1 + sqrt 5) / 2; 1 is the golden angle of
  /// 111.2461 degrees, 7 the tiny one of 23.6281. 0: evenly spread ones.
  index_t golden = 0;
  /// Samples at j - samples/2 + 1/2, so that none lies in the middle.
  bool half_shift = false;
  TrajectoryConvention convention = TrajectoryConvention::plain;
};
/// Lines through the middle of k-space.
///
/// Math     k = (j - floor(samples/2)) / oversampling (cos a_i, sin a_i), a_i = 180 i / spokes
/// Shapes   (spokes, samples, 2)
/// Errors   ValueError: a number that is not positive
/// Source   Winkelmann et al. 2007, doi:10.1109/TMI.2006.885337; Wundrak et al. 2015,
///          doi:10.1109/TMI.2014.2382572
Tensor radial_trajectory(const RadialOptions& options);
/// The step between two of its spokes, in degrees; golden >= 1.
double golden_angle(index_t golden);

struct StackOptions {
  /// Planes along z; every `acceleration`-th is measured, and the one through the middle.
  index_t planes = 1, acceleration = 1;
  /// The spokes of each plane are turned on by a golden part of the angle between two.
  bool rotated = false;
};
/// Radial in (x, y), Cartesian along z: kz = p - floor(planes/2) for plane p.
///
/// Shapes   (measured planes, spokes, samples, 3)
Tensor stack_of_stars(const RadialOptions& radial, const StackOptions& stack);

/// Spokes in all directions of space, in an order that is even after any number of them.
///
/// Math     direction i: z = 2 frac(0.465571 i) - 1, azimuth 360 frac(0.682328 i) degrees
/// Shapes   (spokes, samples, 3)
/// Source   Chan et al. 2009, doi:10.1002/mrm.21837
Tensor koosh_ball(const RadialOptions& options);

struct SpiralOptions {
  index_t interleaves = 1;
  /// Points of the image along an axis: |k| <= matrix / 2.
  index_t matrix = 64;
  double field_of_view_mm = 240;
  /// Limits of the scanner: mT/m and T/m/s.
  double g_max = 40, s_max = 150;
  /// Distance between turns over that which is needed, at the end of a turn; it grows with
  /// (|k| / kmax)^density_power. 1: evenly dense.
  double outer_undersampling = 1, density_power = 2;
  double time_step_us = 4;
};
/// Archimedean spirals from the middle, as fast as gradient and slew rate allow.
///
/// Shapes   (interleaves, samples, 2); the number of samples follows from the limits
/// Errors   ValueError: a number that is not positive; "too long": more than 2^17 samples
/// Cost     fifty steps for each sample
/// Source   Glover 1999, doi:10.1002/(SICI)1522-2594(199908)42:2<412::AID-MRM25>3.0.CO;2-U
Tensor spiral_trajectory(const SpiralOptions& options);

struct EpiOptions {
  /// Lines of all shots, lines of a shot (the echo train), and samples of a line.
  index_t lines = 64, echo_train = 64, samples = 64;
  /// Parts of a line at each end during which the gradient ramps; samples are even in time.
  double ramp = 0;
};
/// Lines in the order of time, every second one backwards; shots are interleaved.
///
/// Shapes   (lines, samples, 2)
/// Errors   ValueError: a number out of range; "echo_train": lines are not a multiple of it
Tensor epi_trajectory(const EpiOptions& options);

/// A warning if coordinates reach more than 1.5 times as far out as k-space of the image, or less
/// than a quarter: the trajectory is likely to have another unit. Else empty.
///
/// Shapes   trajectory (.., d), float32, dense, of x, y, ..; image (.., y, x), of d extents
std::string unit_warning(const Tensor& trajectory, const Extents& image);

/// Locations for Nufft() of arrays (.., z, y, x): the coordinates in reverse order.
Tensor coordinates_of_grid(const Tensor& trajectory);

/// analytic: radial spokes. pipe: any trajectory, by iteration.
enum class DensityMethod { analytic, pipe };

/// The area, or volume, of k-space that each sample stands for.
///
/// Math     analytic, 2-D: pi |k| dk / spokes, in the middle pi dk^2 / (4 spokes); 3-D: 2 pi |k|^2
///          dk / spokes, in the middle pi dk^3 / (6 spokes); dk the distance of neighbours.
///          pipe: w <- w / |G^H G w|, G gridding with a Kaiser-Bessel kernel on a grid of twice
///          the size, 30 times or until the largest change is below 1e-3; then times the squared
///          sum of the kernel. Samples at the border stand for an area beyond it too
/// Shapes   trajectory (readouts, samples, D) -> (readouts, samples) float32
/// Errors   ShapeError; ValueError "analytic": samples that lie on no line through the middle
/// Source   Pipe & Menon 1999, doi:10.1002/(SICI)1522-2594(199901)41:1<179::AID-MRM25>3.0.CO;2-V
Tensor density_compensation(const Tensor& trajectory, DensityMethod method);

}  // namespace palimpsest
