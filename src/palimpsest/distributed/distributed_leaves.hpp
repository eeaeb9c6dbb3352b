// SPDX-License-Identifier: Apache-2.0
// Internal: sums whose bits do not depend on the number of ranks.
#pragma once

#include "palimpsest/distributed/parts_operator.hpp"

namespace palimpsest::distributed_detail {

/// The sum of all leaves, on each rank: each has the leaves of its part of `leaves`, stacked along
/// the first axis. They are added in the order of run_reduce(): one after the other in blocks of
/// kLeafRows leaves, then the blocks in pairs.
///
/// Aliases  view_map {}, destroy_map {}
/// Cost     segments of up to 256 KiB go from the first rank to the last, each of which adds its
///          leaves, and back as sums: a rank sends up to 2 arrays of the size of one leaf, and one
///          more for each bit of the number of blocks before it; n ranks make s + 2 n - 3 exchanges
///          of s segments. Scratch: a copy of leaves that do not lie row by row, and with more than
///          kLeafRows leaves two segments for each further sum
class LeafSum final : public CommunicationOp {
 public:
  LeafSum(Team team, std::string axis, index_t leaves)
      : CommunicationOp(std::move(team), {std::move(axis)}), leaves_(leaves) {}
  std::string name() const override { return "LeafSum"; }
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override;
  std::size_t scratch_bytes(const Apply&, std::span<const Layout> inputs) const override;
  std::vector<Variable> pullback(const Apply&, std::span<const Variable> cotangents) const override;
  Traffic traffic(const Apply& apply) const override;
  OpPtr with_turn(int turn) const override { return copy_of(*this, turn); }
  void run(RunContext& context) const override;

 private:
  PartRange own_leaves() const { return part_range(leaves_, group().self, group().size()); }
  index_t sums_before(index_t rank) const;
  index_t most_sums() const;

  index_t leaves_;
};

/// This rank's part of an operator that is cut along one dimension d into leaves of one index each.
/// Errors   SplitError: A cannot be cut along d
NamedLinop distributed_leaves(const NamedLinop& A, const Team& team, const ND& d,
                              const std::string& axis);
/// distributed_leaves() of an operator that no rank has as a whole: `part` is this rank's, with its
/// range of the indices 0 .. leaves - 1 of d.
NamedLinop joined_leaves(const NamedLinop& part, index_t leaves, const Team& team, const ND& d,
                         const std::string& axis);

}  // namespace palimpsest::distributed_detail
