// SPDX-License-Identifier: Apache-2.0
// Internal: the measured ops of the library.
#pragma once

#include "palimpsest/ops/loop/measured_op.hpp"
#include "palimpsest/ops/parameters.hpp"

namespace palimpsest::ops {

/// Input n (int64, 0-d): an array of n elements, for its extent alone. So a computed number can
/// serve as an extent.
///
/// Errors   ShapeError, when it runs: n is negative
/// Cost     no memory in a function
class RunTimeExtent final : public Declared<RunTimeExtent, MeasuredOp> {
 public:
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  std::vector<Extents> measured_shapes(const Apply& apply,
                                       std::span<const ConstView> inputs) const override;
  bool has_values() const override { return false; }
  std::vector<Variable> pullback(const Apply&, CotangentSpan) const override {
    return {Variable()};
  }
  void run(RunContext& context) const override;
  static constexpr auto declaration() { return declare("RunTimeExtent"); }
};

/// Inputs: a mask (bool) and, optionally, an array that it must fit: the array's axes from `axis`
/// on have the mask's extents. Outputs: for each axis of the mask, the positions along it of its
/// true elements, in row-major order.
///
/// DTypes   int64
/// Cost     two passes over the mask
class Nonzero final : public Declared<Nonzero, MeasuredOp> {
 public:
  explicit Nonzero(std::size_t axis = 0) : axis_(axis) {}
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  std::vector<Extents> measured_shapes(const Apply& apply,
                                       std::span<const ConstView> inputs) const override;
  bool uses_elements(const Apply&, int in) const override { return in == 0; }
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("Nonzero", axis_field("axis", &Nonzero::axis_));
  }

 private:
  void check(std::span<const index_t> mask, std::span<const index_t> array) const;

  std::size_t axis_;
};

}  // namespace palimpsest::ops
