// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <memory>
#include <vector>

#include "palimpsest/kernels/reduce/reduce.hpp"
#include "palimpsest/ops/elementwise/elementwise_op.hpp"

namespace palimpsest::ops {

/// An elementwise program with arrays as its first outputs. Sums over all elements of computed
/// values are further outputs, of rank 0. Rewrites make it, so that arrays and their sums take one
/// pass.
///
/// Filtered inputs are computed by a stencil as they are read.
///
/// Aliases  as Elementwise, for the arrays; filtered inputs are not overwritten
/// Errors   ValueError: a sum of a missing output, no sum, more than 40 registers, a filter with
///          steps, a filtered input that is missing, filtered twice or overwritten; ShapeError: an
///          input that is filtered and broadcast
class ElementwiseSums final : public Op {
 public:
  ElementwiseSums(ElementwiseProgram program, std::size_t n_arrays, std::vector<SumOfOutputs> sums,
                  Elementwise::Overwrites overwrites = {},
                  std::vector<FilteredInput> filtered = {});
  static std::vector<std::string> names() { return {"ElementwiseSums", "ElementwiseSumsInPlace"}; }
  static OpPtr restored(std::string_view name, ParameterText& text);

  const ElementwiseProgram& program() const { return whole_->program(); }
  std::size_t n_arrays() const { return n_arrays_; }
  const std::vector<SumOfOutputs>& sums() const { return sums_; }
  const std::vector<FilteredInput>& filtered() const { return filtered_; }
  bool is_in_place() const { return arrays_ && arrays_->is_in_place(); }

  std::string name() const override {
    return is_in_place() ? "ElementwiseSumsInPlace" : "ElementwiseSums";
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
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;

 private:
  std::vector<Variable> as_steps(std::span<const Variable> inputs) const;
  void check_filtered() const;
  bool is_filtered(index_t input) const;

  std::shared_ptr<const Elementwise> whole_;   // all outputs
  std::shared_ptr<const Elementwise> arrays_;  // the stored arrays; null without any
  std::size_t n_arrays_;
  std::vector<SumOfOutputs> sums_;
  std::vector<FilteredInput> filtered_;
};

/// `norm2 1`, `product 2 3`.
std::string describe(const SumOfOutputs& sum);
std::string_view name_of(SumOfOutputs::Kind kind);

}  // namespace palimpsest::ops
