// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <memory>
#include <optional>

#include "palimpsest/graph/op.hpp"
#include "palimpsest/kernels/reduce/reduce.hpp"
#include "palimpsest/ops/elementwise/elementwise_op.hpp"
#include "palimpsest/ops/in_place_twin.hpp"
#include "palimpsest/ops/shape/contiguous_op.hpp"

namespace palimpsest::ops {

/// A reduction over axes, which the result lacks. `Sum`, `Prod`, `Max`, `Min`, `Any`, `All`.
class Reduce final : public Declared<Reduce>, public RoundsByLayout {
 public:
  /// Axes sorted, counted from the front. The largest or smallest of no elements is an error, or
  /// with `allows_none`, for floating numbers only, -infinity or infinity.
  Reduce(ReduceOp op, Axes axes, bool allows_none = false)
      : op_(op), axes_(std::move(axes)), allows_none_(allows_none) {}
  ReduceOp reduce_op() const { return op_; }
  const Axes& axes() const { return axes_; }
  bool allows_none() const { return allows_none_; }
  /// Stores the extremum of no elements if inputs have such extents. Returns whether it did.
  bool runs_on_none(std::span<const index_t> extents, const MutableView& out) const;

  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  Linearity linear_in(const Apply& apply, int in) const override;
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("",
                   named<Reduce, ReduceOp>(&Reduce::op_, {{"Sum", ReduceOp::sum},
                                                          {"Prod", ReduceOp::prod},
                                                          {"Max", ReduceOp::max},
                                                          {"Min", ReduceOp::min},
                                                          {"Any", ReduceOp::any},
                                                          {"All", ReduceOp::all}}),
                   axes_field(&Reduce::axes_), flag("allows_none", &Reduce::allows_none_));
  }

 private:
  Extents result_extents(std::span<const index_t> in) const;

  ReduceOp op_;
  Axes axes_;
  bool allows_none_;
};

/// A reduction of the result of an elementwise step, which is never in memory. `FusedSum`,
/// `FusedProd` and so on. Rewrites make it.
class FusedReduce final : public Op {
 public:
  /// Arguments as for Reduce.
  FusedReduce(ElementwiseProgram program, ReduceOp op, Axes axes, bool allows_none = false);
  static std::vector<std::string> names();
  static OpPtr restored(std::string_view name, ParameterText& text);
  const ElementwiseProgram& program() const { return elementwise_->program(); }
  const Reduce& reduce() const { return *reduce_; }
  std::string name() const override { return "Fused" + reduce_->name(); }
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;

 private:
  // The two steps that it stands for.
  std::shared_ptr<const Elementwise> elementwise_;
  std::shared_ptr<const Reduce> reduce_;
};

/// The position of the first extremum over axes, which the result lacks. `ArgMax`, `ArgMin`.
class ArgReduce final : public Declared<ArgReduce> {
 public:
  /// max or min; axes sorted, counted from the front.
  ArgReduce(ReduceOp op, Axes axes) : op_(op), axes_(std::move(axes)) {}
  ReduceOp reduce_op() const { return op_; }
  const Axes& axes() const { return axes_; }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  std::vector<Variable> pullback(const Apply&, CotangentSpan) const override {
    return {Variable()};
  }
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("",
                   named<ArgReduce, ReduceOp>(
                       &ArgReduce::op_, {{"ArgMax", ReduceOp::max}, {"ArgMin", ReduceOp::min}}),
                   axes_field(&ArgReduce::axes_));
  }

 private:
  ReduceOp op_;
  Axes axes_;
};

/// Cumulative sums or products along an axis. `CumSum`, `CumProd`.
///
/// Aliases  in place: the output lies in the memory of the input
class Scan final : public InPlaceTwin<Scan> {
 public:
  /// sum or prod; the axis is counted from the front.
  Scan(ReduceOp op, std::size_t axis, bool in_place = false)
      : InPlaceTwin(in_place), op_(op), axis_(axis) {}
  ReduceOp reduce_op() const { return op_; }
  std::size_t axis() const { return axis_; }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan inputs) const override {
    return {inputs[0]};
  }
  Linearity linear_in(const Apply& apply, int in) const override;
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare(
        "",
        named<Scan, ReduceOp>(&Scan::op_, {{"CumSum", ReduceOp::sum}, {"CumProd", ReduceOp::prod}}),
        axis_field("axis", &Scan::axis_), in_place_field(&Scan::in_place_));
  }

 private:
  bool can_overwrite(const Apply& apply) const override {
    return apply.input(0).dtype() == apply.output(0).dtype();
  }

  ReduceOp op_;
  std::size_t axis_;
};

/// The largest elements, which stay as axes of one element; -infinity of none. Floating numbers.
Variable largest_or_lowest(const Variable& x, const Axes& axes);

/// The axes of a reduction with these options: sorted, counted from the front.
Axes reduced_axes(const Variable& x, const AxesArgument& axes, std::string_view who);

}  // namespace palimpsest::ops
