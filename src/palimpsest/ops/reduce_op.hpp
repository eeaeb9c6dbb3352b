// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/graph/op.hpp"
#include "palimpsest/kernels/reduce.hpp"

namespace palimpsest::ops {

/// A reduction over axes, which the result lacks. `Sum`, `Prod`, `Max`, `Min`, `Any`, `All`.
class Reduce final : public Op {
 public:
  /// Axes sorted, counted from the front.
  Reduce(ReduceOp op, Axes axes) : op_(op), axes_(std::move(axes)) {}
  ReduceOp reduce_op() const { return op_; }
  const Axes& axes() const { return axes_; }

  std::string name() const override;
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply,
                                    std::span<const Extents> inputs) const override;
  Linearity linear_in(const Apply& apply, int in) const override;
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;
  void run(RunContext& context) const override;

 private:
  Extents result_extents(std::span<const index_t> in) const;

  ReduceOp op_;
  Axes axes_;
};

}  // namespace palimpsest::ops
