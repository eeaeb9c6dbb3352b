// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/distributed/placement.hpp"
#include "palimpsest/distributed/team.hpp"
#include "palimpsest/graph/type.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// An array in parts on the ranks of a team. Each rank holds the part that part_range() gives along
/// each placed dimension, and the whole of other dimensions. Ranks along axes of the team that cut
/// no dimension hold the same.
///
/// Aliases  a handle: copies show the same local tensor, which is an ordinary one
class DTensor {
 public:
  /// An array made of the parts that the ranks hold. All ranks call it.
  /// Errors   ShapeError "ranks": extents that are not those of the parts; NameError, ValueError:
  ///          those of the placement
  static DTensor from_local(Tensor local, Dims dims, Extents global, Team team,
                            Placement placement);
  /// This rank's part of an array that every rank has: a view of it. Nothing is sent.
  static DTensor part_of(const Tensor& whole, Dims dims, Team team, Placement placement);
  /// Parts of an array that rank `root` has; other ranks give its type alone. All ranks call it.
  /// Errors   ValueError "root": no rank of the team; ShapeError "whole": of another type
  static DTensor scatter(const std::optional<Tensor>& whole, const TensorType& type, Dims dims,
                         Team team, Placement placement, int root = 0);

  const Tensor& local() const { return local_; }
  const Dims& dims() const { return dims_; }
  const Extents& global_shape() const { return global_; }
  const Team& team() const { return team_; }
  const Placement& placement() const { return placement_; }
  /// The range of a rank's part along each dimension.
  std::vector<PartRange> ranges_of(int rank) const;

  /// The whole array, on rank `root` alone. All ranks call it.
  /// Errors   ValueError "root": no rank of the team
  std::optional<Tensor> gather(int root = 0) const;
  /// The whole array, on all ranks.
  Tensor gather_to_all() const;
  /// The same array with other parts. All ranks call it.
  /// Cost     each rank sends to each other rank the elements of its part that the other will hold
  DTensor redistribute(const Placement& placement) const;

 private:
  DTensor(Tensor local, Dims dims, Extents global, Team team, Placement placement);

  Tensor local_;
  Dims dims_;
  Extents global_;
  Team team_;
  Placement placement_;
};

}  // namespace palimpsest
