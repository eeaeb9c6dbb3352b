// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/distributed/communication_ops.hpp"

namespace palimpsest::distributed_detail {

/// One axis of an array of which each rank holds a part, counted from the front.
struct CutAxis {
  index_t axis = 0;
  index_t extent = 0;  // of the whole array
};

/// Of an array that is cut along `from` the parts along `to`: a transposition of blocks among the
/// ranks. Its adjoint is its inverse, the same the other way.
///
/// Aliases  view_map {}, destroy_map {}
/// Cost     each rank sends all but its own block of its part: (1 - 1/n) of it, n ranks, in n - 1
///          messages, one synchronisation. Scratch: what is sent and received
class ExchangeParts final : public CommunicationOp {
 public:
  ExchangeParts(Team team, std::string axis, CutAxis from, CutAxis to)
      : CommunicationOp(std::move(team), {std::move(axis)}), from_(from), to_(to) {}
  std::string name() const override { return "ExchangeParts"; }
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override;
  std::size_t scratch_bytes(const Apply&, std::span<const Layout> inputs) const override;
  std::vector<Variable> pullback(const Apply&, std::span<const Variable> cotangents) const override;
  Traffic traffic(const Apply& apply) const override;
  void run(RunContext& context) const override;

 private:
  Extents result_extents(std::span<const index_t> input) const;
  PartRange part(const CutAxis& cut, int member) const {
    return part_range(cut.extent, member, group().size());
  }
  // The block that rank `sender` of the group sends to `receiver`.
  Extents block_extents(std::span<const index_t> input, int sender, int receiver) const;

  CutAxis from_, to_;
};

/// See ExchangeParts; x itself where there is one rank.
Variable exchange_parts(const Variable& x, const Team& team, const std::string& axis, CutAxis from,
                        CutAxis to);

}  // namespace palimpsest::distributed_detail
