// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <vector>

#include "palimpsest/distributed/team.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest {

/// |y|^2 of k-space, of the coils of all ranks along the axis "coil" of the team. Pages of mapped
/// files do not stay in memory.
///
/// Shapes   y ([T], C, points..); w ([T], points..) weights of |y|^2, undefined: 1
/// DTypes   complex64; float32
double data_norm2(const Tensor& y, const Tensor& w, index_t n_coils, const Team& team);

/// A number of each rank along the axis "coil" of the team, in the order of the ranks.
std::vector<double> values_of_ranks(double own, const Team& team);

}  // namespace palimpsest
