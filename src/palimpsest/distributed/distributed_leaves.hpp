// SPDX-License-Identifier: Apache-2.0
// Internal: sums whose bits do not depend on the number of ranks.
#pragma once

#include "palimpsest/distributed/parts_operator.hpp"

namespace palimpsest::distributed_detail {

/// The sum of all leaves, on each rank: each has the leaves of its part of `leaves`, stacked along
/// the first axis. They are added one after the other, in their order.
///
/// Aliases  view_map {}, destroy_map {}
/// Cost     each rank sends (n - 1)/n of its leaves, and of the sum to all others; two
///          synchronisations, n ranks. Scratch: what is received and sent of the parts
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
  index_t leaves_of(int member) const { return part_range(leaves_, member, group().size()).size(); }
  PartRange elements_of(index_t n, int member) const {
    return part_range(n, member, group().size());
  }

  index_t leaves_;
};

/// This rank's part of an operator that is cut along one dimension d into leaves of one index each.
/// Errors   SplitError: A cannot be cut along d
NamedLinop distributed_leaves(const NamedLinop& A, const Team& team, const ND& d,
                              const std::string& axis);

}  // namespace palimpsest::distributed_detail
