// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/distributed/placement.hpp"
#include "palimpsest/distributed/team.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

// Operators that only exchange, between arrays of which each rank has its own or its part. All
// ranks apply them together. A value that is equal on all ranks counts once in inner products.
namespace PALIMPSEST_API palimpsest {

/// The sum of the ranks' arrays, on all ranks, added in the order of the ranks.
///
/// Math     y = sum over ranks of x; the adjoint is Broadcast
/// Shapes   dims -> dims
/// DTypes   floating and complex
/// Errors   NameError: no such axis of the team
/// Cost     2 (n - 1)/n of x per rank, n ranks
NamedLinop AllReduce(Dims dims, const Team& team, std::vector<std::string> axes);
/// Views a value that is equal on all ranks as one value per rank. The adjoint is AllReduce.
///
/// Shapes   dims -> dims
/// Cost     none: a view
NamedLinop Broadcast(Dims dims, const Team& team, std::vector<std::string> axes);

/// An array that is cut along some dimensions, cut along others instead.
///
/// Math     unitary; the adjoint moves back
/// Shapes   dims -> out, of the extents `shape` of the whole cut by `from`, and by `to`; without
///          `out` fresh names for the dimensions of either placement
/// DTypes   floating and complex
/// Errors   ShapeError: an extent for each dimension is missing, x is no part; those of placements
/// Cost     each rank sends the elements of its part that other ranks will hold
NamedLinop Redistribute(Dims dims, Extents shape, const Team& team, Placement from, Placement to,
                        std::optional<Dims> out = {});
/// Each rank's part of an array that all ranks have. Nothing is sent; the adjoint is Gather.
NamedLinop Scatter(Dims dims, Extents shape, const Team& team, Placement placement,
                   std::optional<Dims> out = {});
/// The whole array, on all ranks. The adjoint is Scatter.
///
/// Cost     each rank sends its part to all others
NamedLinop Gather(Dims dims, Extents shape, const Team& team, Placement placement,
                  std::optional<Dims> out = {});

/// Elements beyond the ends of the whole array: 0, those from the other end, the nearest one again.
enum class HaloBoundary { zero, periodic, nearest };

struct HaloOptions {
  /// Elements before and after the part.
  index_t before = 1, after = 1;
  HaloBoundary boundary = HaloBoundary::zero;
  /// Name of the dimension with the halo; default a fresh one.
  std::optional<ND> out = {};
};
/// This rank's part with the adjacent elements of its neighbours, from any number of them.
///
/// Math     y[i] = x[i] of the whole array, before <= i - start, i < stop + after; the adjoint adds
///          the halo's elements to the elements that they are copies of
/// Shapes   dims -> dims with `out` in place of d; a part without elements has no halo
/// DTypes   floating and complex
/// Errors   NameError: no such dimension or axis; ValueError: widths below 0, an extent below 0
/// Cost     one message to each rank whose halo reaches this part
NamedLinop Halo(Dims dims, ND d, index_t extent, const Team& team, std::string axis,
                HaloOptions options = {});

}  // namespace palimpsest
