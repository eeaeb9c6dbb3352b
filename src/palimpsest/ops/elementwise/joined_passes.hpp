// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <memory>
#include <vector>

#include "palimpsest/ops/elementwise/elementwise_sums.hpp"

namespace palimpsest::ops {

/// Two elementwise steps with sums as one pass: stencils of the second step read arrays of the
/// first one while these are in cache. These arrays are not stored. Rewrites make it.
///
/// Inputs are those of the first step, then those of the second one that are not handed on.
/// Outputs are the arrays of the first and of the second step, then the sums of both.
///
/// Aliases  as for the two steps
/// Errors   ValueError: passes that run_joined_passes does not join
class JoinedPasses final : public Op {
 public:
  using Step = std::shared_ptr<const ElementwiseSums>;

  /// Inputs of the second step that are handed on have the extents `shape`.
  JoinedPasses(Step first, Step second, std::vector<HandedOn> handed, Extents shape);
  static std::vector<std::string> names() { return {"JoinedPasses", "JoinedPassesInPlace"}; }
  static OpPtr restored(std::string_view name, ParameterText& text);
  /// True if these steps can be joined.
  static bool can_join(const ElementwiseSums& first, const ElementwiseSums& second,
                       const std::vector<HandedOn>& handed, const Extents& shape);

  std::size_t n_arrays() const { return first_->n_arrays() + second_->n_arrays(); }
  bool is_in_place() const { return first_->is_in_place() || second_->is_in_place(); }
  std::string name() const override {
    return is_in_place() ? "JoinedPassesInPlace" : "JoinedPasses";
  }
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  AliasMap destroy_map(const Apply& apply) const override;
  IndexPairs tolerate_same(const Apply& apply) const override;
  OpPtr inplace_on_inputs(const Apply& apply, const std::set<int>& allowed) const override {
    return inplace_on_inputs(apply, allowed, {});
  }
  /// The same with preferred inputs to overwrite, one per array; no entries: any.
  OpPtr inplace_on_inputs(const Apply& apply, const std::set<int>& allowed,
                          const Elementwise::Overwrites& preferred) const;
  OpPtr pure() const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  std::size_t scratch_bytes(const Apply& apply, std::span<const Layout> inputs) const override;
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;

 private:
  using Positions = SmallVector<int, ElementwiseProgram::kMaxInputs>;
  // The inputs of one step in those of both; -1: handed on.
  Positions inputs_of(bool second) const;
  // The application of one step by itself, with placeholders for the arrays handed on.
  Apply step(std::span<const Variable> given, bool second) const;

  Step first_, second_;
  std::vector<HandedOn> handed_;
  Extents shape_;
};

}  // namespace palimpsest::ops
