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
};

/// Which phase encodes of a plane to measure; DC is the point (floor(ny/2), floor(nx/2)).
///
/// Shapes   (ny, nx) bool
/// Cost     poisson, random: round(ny nx / acceleration) samples exactly, the same for the same
/// seed Errors   ValueError: acceleration below 1, or so high that the centre alone has more
/// samples;
///          a lattice of an acceleration that is no integer
/// Source   Cook 1986, doi:10.1145/7529.8927; Efraimidis & Spirakis 2006,
///          doi:10.1016/j.ipl.2005.11.003; Breuer et al. 2006, doi:10.1002/mrm.20787
Tensor sampling_pattern(index_t ny, index_t nx, const PatternOptions& options);

/// Number of true elements.
index_t count_samples(const Tensor& mask);

}  // namespace palimpsest
