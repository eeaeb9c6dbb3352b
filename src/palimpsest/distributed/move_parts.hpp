// SPDX-License-Identifier: Apache-2.0
// Internal: ops that give each rank elements of the arrays of others.
#pragma once

#include "palimpsest/distributed/communication_ops.hpp"

namespace palimpsest::distributed_detail {

/// Ranges of an array, one per axis.
using Ranges = std::vector<PartRange>;

/// Elements that a rank gets from another one, or from itself: where they lie in the input of the
/// sender, and where in the output of the receiver.
struct PartBlock {
  int sender = 0;  // position in the group
  Ranges from, to;
};

/// Blocks of elements that each rank of a group receives. Elements of an output that no block
/// covers are 0. All members know all blocks from the extents of their own input.
class PartsMap {
 public:
  virtual ~PartsMap() = default;
  /// The name of the op, and its parameters without those of the team.
  virtual std::string name() const = 0;
  virtual std::string parameters() const = 0;
  /// Extents of the output of a member, given those of the input of this rank. ShapeError: this
  /// rank does not hold its part.
  virtual Extents output_extents(std::span<const index_t> input, int receiver) const = 0;
  /// The extents of this rank's input, given those of its output.
  virtual Extents input_extents(std::span<const index_t> output) const = 0;
  /// The blocks of a member, in the order of the senders.
  virtual std::vector<PartBlock> blocks_for(std::span<const index_t> input, int receiver) const = 0;
};
using PartsMapPtr = std::shared_ptr<const PartsMap>;

/// Moves elements by a map. The adjoint adds up the copies of each element, in the order of the
/// ranks.
///
/// Aliases  view_map {}, destroy_map {}
/// Cost     one message to each rank that receives elements, one synchronisation. Scratch: sent and
///          received elements
class MoveParts final : public CommunicationOp {
 public:
  MoveParts(Team team, AxisNames axes, PartsMapPtr map, bool is_adjoint)
      : CommunicationOp(std::move(team), std::move(axes)),
        map_(std::move(map)),
        is_adjoint_(is_adjoint) {}
  std::string name() const override { return map_->name() + (is_adjoint_ ? "Adjoint" : ""); }
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override;
  std::size_t scratch_bytes(const Apply&, std::span<const Layout> inputs) const override;
  std::vector<Variable> pullback(const Apply&, std::span<const Variable> cotangents) const override;
  Traffic traffic(const Apply& apply) const override;
  OpPtr with_turn(int turn) const override { return copy_of(*this, turn); }
  void run(RunContext& context) const override;

 private:
  struct Message;
  Extents result_extents(std::span<const index_t> x) const;
  // Messages from this rank to the others, or from them to it, by position in the group.
  std::vector<Message> messages(std::span<const index_t> x, bool outgoing) const;
  std::vector<PartBlock> blocks_between(std::span<const index_t> input, int sender,
                                        int receiver) const;

  PartsMapPtr map_;
  bool is_adjoint_;
};

/// An axis of an array of which the ranks along an axis of the team hold parts.
struct CutAxis {
  index_t axis = 0;    // counted from the front
  index_t extent = 0;  // of the whole array
  std::string team_axis;
};
using CutAxes = std::vector<CutAxis>;

/// The parts of an array in another cut. Ranks that differ only along axes of the team without a
/// cut hold the same; each gets elements from the ranks at its own place along these axes. Adjoint
/// and inverse move the elements back.
Variable redistribute(const Variable& x, const Team& team, const CutAxes& from, const CutAxes& to);

/// Elements beyond the ends of an array: 0, those from the other end, the nearest one again.
enum class HaloEdge { zero, periodic, nearest };
/// This rank's part of an array with the elements before and after it; empty if the part is empty.
Variable halo(const Variable& x, const Team& team, const CutAxis& cut, index_t before,
              index_t after, HaloEdge edge);

/// The adjoint of halo(): adds the surrounding elements to the parts that they come from.
Variable halo_adjoint(const Variable& y, const Team& team, const CutAxis& cut, index_t before,
                      index_t after, HaloEdge edge);

/// The range that a rank holds along a cut.
PartRange part_at(const Team& team, const CutAxis& cut, int rank);

}  // namespace palimpsest::distributed_detail
