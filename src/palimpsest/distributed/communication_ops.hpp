// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsest/distributed/team_node.hpp"
#include "palimpsest/graph/collective.hpp"
#include "palimpsest/ops/shape/view_op.hpp"

namespace palimpsest::distributed_detail {

using AxisNames = std::vector<std::string>;

/// An index as a subscript.
inline std::size_t at(index_t i) { return static_cast<std::size_t>(i); }

/// Base of the ops on a team: the team, and the axes along which its ranks communicate.
class CommunicationOp : public Op, public Collective {
 public:
  CommunicationOp(Team team, AxisNames axes);
  std::string parameters() const override;
  bool can_fail() const override { return true; }
  Linearity linear_in(const Apply&, int) const override { return Linearity::complex; }
  double tolerance(const Apply&) const override { return 0; }
  void abandon(std::string_view why) const noexcept override;
  int turn() const override { return turn_; }

 protected:
  /// For with_turn(): a copy of the op.
  template <class T>
  static OpPtr copy_of(const T& op, int turn) {
    auto copy = std::make_shared<T>(op);
    copy->turn_ = turn;
    return copy;
  }
  const Team& team() const { return team_; }
  const Group& group() const { return group_; }
  const AxisNames& axes() const { return axes_; }
  std::size_t others() const { return static_cast<std::size_t>(group_.size()) - 1; }
  /// Sends to and receives from the other ranks of the group.
  template <class Send, class Receive>
  void exchange_all(Send&& bytes_for, Receive&& place_of) const {
    std::vector<Parcel> parcels;
    std::vector<Place> places;
    for (int k = 0; k < group_.size(); ++k) {
      if (k == group_.self) continue;
      const int peer = group_.member(k);
      parcels.push_back({peer, bytes_for(k)});
      places.push_back({peer, place_of(k)});
    }
    exchange(team_, parcels, places);
  }

 private:
  Team team_;
  AxisNames axes_;
  Group group_;
  int turn_ = -1;
};

/// The sum over the ranks along some axes, on each of them, added up in the order of the ranks.
///
/// Aliases  view_map {}, destroy_map {}; in place {0: {0}}
/// Cost     arrays of up to 8 KiB: (n - 1) messages of the whole array, one synchronisation;
///          others: 2 (n - 1)/n of it in 2 (n - 1) messages, two synchronisations; n ranks.
///          Scratch: the received parts that this rank adds up, and a dense copy of an array that
///          does not lie row by row
class AllReduce final : public CommunicationOp {
 public:
  AllReduce(Team team, AxisNames axes, bool in_place = false)
      : CommunicationOp(std::move(team), std::move(axes)), in_place_(in_place) {}
  std::string name() const override { return in_place_ ? "AllReduceInplace" : "AllReduce"; }
  Apply make_node(std::span<const Variable> inputs) const override;
  AliasMap destroy_map(const Apply&) const override;
  OpPtr inplace_on_inputs(const Apply&, const std::set<int>& allowed) const override;
  OpPtr pure() const override;
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override {
    return {inputs[0]};
  }
  std::size_t scratch_bytes(const Apply&, std::span<const Layout> inputs) const override;
  std::vector<Variable> pullback(const Apply&, std::span<const Variable> cotangents) const override;
  Traffic traffic(const Apply& apply) const override;
  /// A JoinedAllReduce of arrays that are sent at once.
  OpPtr joined(std::span<const Apply> nodes) const override;
  OpPtr with_turn(int turn) const override { return copy_of(*this, turn); }
  void run(RunContext& context) const override;

 private:
  // An array that lies row by row, and room for the parts of others.
  struct Sum {
    DType dtype;
    index_t n;
    std::byte *whole, *scratch;
  };
  OpPtr in_place(bool is_in_place) const;
  void run_at_once(const Sum& sum) const;
  void run_in_parts(const Sum& sum) const;

  bool in_place_;
};

/// Sums of several small arrays, each as AllReduce gives it, with one message to each rank.
///
/// Aliases  view_map {}, destroy_map {}
/// Cost     (n - 1) messages of all arrays, one synchronisation; n ranks. Scratch: all arrays of
///          all ranks
class JoinedAllReduce final : public CommunicationOp {
 public:
  using CommunicationOp::CommunicationOp;
  std::string name() const override { return "JoinedAllReduce"; }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override {
    return {inputs.begin(), inputs.end()};
  }
  // Each output is linear in its own input.
  Linearity linear_in(const Apply&, int) const override { return Linearity::no; }
  std::size_t scratch_bytes(const Apply&, std::span<const Layout> inputs) const override;
  std::vector<Variable> pullback(const Apply&, std::span<const Variable> cotangents) const override;
  Traffic traffic(const Apply& apply) const override;
  OpPtr with_turn(int turn) const override { return copy_of(*this, turn); }
  void run(RunContext& context) const override;
};

/// A value that is the same on all ranks along some axes, read by parts of an operator that differ
/// between them. Its adjoint is the sum over these ranks. A view.
class Replicate final : public ops::ViewOp {
 public:
  Replicate(Team team, AxisNames axes) : team_(std::move(team)), axes_(std::move(axes)) {}
  std::string name() const override { return "Replicate"; }
  std::string parameters() const override;
  Extents result_extents(std::span<const index_t> in) const override {
    return {in.begin(), in.end()};
  }
  std::optional<Layout> layout_of(const Layout& in) const override { return in; }
  Region region_of(std::span<const index_t>) const override { return Region::whole(); }
  std::vector<Variable> pullback(const Apply&, std::span<const Variable> cotangents) const override;

 private:
  Team team_;
  AxisNames axes_;
};

/// The identity, of an x that has the same bits on all ranks along some axes of the team. DebugMode
/// compares hashes of x between these ranks.
///
/// Aliases  view_map {}, destroy_map {}
/// Errors   ValueError "replicated value differs", naming a rank
class Alike final : public CommunicationOp {
 public:
  using CommunicationOp::CommunicationOp;
  std::string name() const override { return "Alike"; }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override {
    return {inputs[0]};
  }
  std::vector<Variable> pullback(const Apply&,
                                 std::span<const Variable> cotangents) const override {
    return {cotangents[0]};
  }
  Traffic traffic(const Apply& apply) const override;
  OpPtr with_turn(int turn) const override { return copy_of(*this, turn); }
  void run(RunContext& context) const override;
};

/// result = parts[0] + parts[1] + .., element by element, in this order.
void add_up(DType dtype, std::span<const std::byte* const> parts, index_t n, std::byte* result);

/// x summed over the ranks along the axes; x itself where there is one.
Variable all_reduce(const Variable& x, const Team& team, const AxisNames& axes);
/// In DebugMode x compared between the ranks along the axes; else x.
Variable alike(const Variable& x, const Team& team, const AxisNames& axes);
/// ValueError "replicated value differs on rank" unless all ranks have the same value as `mine`.
/// `what` names the value.
void check_alike(const Team& team, const AxisNames& axes, std::uint64_t mine,
                 std::string_view what);
/// x, with all_reduce as its adjoint.
Variable replicate(const Variable& x, const Team& team, const AxisNames& axes);

/// `team=1, axes=(rank)`.
std::string team_parameters(const Team& team, const AxisNames& axes);

}  // namespace palimpsest::distributed_detail
