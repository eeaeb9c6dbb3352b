// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// poisson: no two samples nearer than a distance that grows with the distance from the centre.
/// random: independent, as dense. uniform: a lattice, sheared so that its points lie far apart.
enum class PatternKind { poisson, random, uniform, full };

/// `poisson`, ...; ValueError for other names.
PatternKind parse_pattern(std::string_view name);

struct PatternOptions {
  PatternKind kind = PatternKind::poisson;
  /// Points of the grid per sample, the centre included; a lattice has the centre on top of it.
  double acceleration = 4;
  /// Extent of the fully sampled centre along each axis.
  index_t center = 24;
  std::uint64_t seed = 0;
  /// The wanted distance to neighbours grows as 1 + spread |k|, |k| = 1 at the end of an axis; the
  /// density of `random` is its inverse square.
  double spread = 1;
  /// Leaves out the corners, |k| > 1; `acceleration` still counts points of the whole grid.
  bool ellipse = false;
};

/// The phase encodes of a plane to measure; DC is the point (floor(ny/2), floor(nx/2)).
///
/// Shapes   (ny, nx) bool
/// Cost     poisson, random: exactly round(ny nx / acceleration) samples, the same for a seed
/// Errors   ValueError: acceleration below 1, or so high that the centre alone has more samples; a
///          lattice with an acceleration that is not an integer
/// Source   Cook 1986, doi:10.1145/7529.8927; Efraimidis & Spirakis 2006,
///          doi:10.1016/j.ipl.2005.11.003; Breuer et al. 2006, doi:10.1002/mrm.20787
Tensor sampling_pattern(index_t ny, index_t nx, const PatternOptions& options);

/// A lattice: every dy-th row, in it every dz-th point, moved on by `shift` from one measured row
/// to the next; DC is measured. A block of center x center points is added.
///
/// Shapes   (ny, nz) bool, rows along y
/// Errors   ValueError: dy, dz below 1, sizes below 1, a negative shift
/// Source   Breuer et al. 2006, doi:10.1002/mrm.20787
Tensor caipi_pattern(index_t ny, index_t nz, index_t dy, index_t dz, index_t shift,
                     index_t center = 0);

/// The first round(fraction n) lines along an axis, 0 for y: partial Fourier.
///
/// Errors   ValueError "fraction": not in (0.5, 1]; ShapeError: no such axis
Tensor partial_pattern(const Extents& shape, double fraction, index_t axis);

struct LineOptions {
  /// Lines of each frame, all others are skipped. DC is among them in the first frame.
  index_t lines = 1;
  index_t frames = 1;
  /// Frames are moved on by a golden part of the distance of lines; else frame t by the t-th of
  /// evenly spread offsets, so that consecutive frames fill each other's gaps.
  bool golden = true;
  /// Lines in the middle that every frame has as well.
  index_t center = 0;
};
/// Evenly spread lines of a series.
///
/// Shapes   (frames, n) bool
/// Errors   ValueError: numbers below 1, more lines than there are
Tensor line_patterns(index_t n, const LineOptions& options);

/// Shares the points of a pattern out to frames, in turns, so that the frames are disjoint and
/// together are the pattern. The middle block of center x center goes to all.
///
/// Shapes   (ny, nx) bool -> (frames, ny, nx)
Tensor interleaved(const Tensor& pattern, index_t frames, index_t center = 0);

/// Random points of a volume, their density falling as (1 + spread |k|)^-2; the centre, a block of
/// center^3 points, is full. `kind` is random or full.
///
/// Shapes   {nz, ny, nx} -> (nz, ny, nx) bool
/// Cost     round(points / acceleration) samples exactly, the same for the same seed
/// Errors   ValueError as sampling_pattern(); "volume": another kind
Tensor volume_pattern(const Extents& shape, const PatternOptions& options);

/// Number of true elements.
index_t count_samples(const Tensor& mask);

}  // namespace palimpsest
