// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/graph/op.hpp"

namespace palimpsest::ops {

/// A 0-d value in every element of a new array of known extents.
class Full final : public Op {
 public:
  explicit Full(Extents shape) : shape_(std::move(shape)) {}
  const Extents& shape() const { return shape_; }
  std::string name() const override { return "Full"; }
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents>) const override {
    return {shape_};
  }
  Linearity linear_in(const Apply&, int) const override { return Linearity::complex; }
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;

 private:
  Extents shape_;
};

/// Inputs value (0-d) and x: the value in every element of a new array with the extents of x.
class FullLike final : public Op {
 public:
  std::string name() const override { return "FullLike"; }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override {
    return {inputs[1]};
  }
  Linearity linear_in(const Apply&, int in) const override {
    return in == 0 ? Linearity::complex : Linearity::no;
  }
  bool uses_elements(const Apply&, int in) const override { return in == 0; }
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
};

/// How many elements x has along some axes together; 0-d.
class AxisCount final : public Op {
 public:
  /// Axes sorted, counted from the front.
  AxisCount(Axes axes, DType dtype) : axes_(std::move(axes)), dtype_(dtype) {}
  std::string name() const override { return "AxisCount"; }
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents>) const override {
    return {Extents()};
  }
  bool uses_elements(const Apply&, int) const override { return false; }
  std::vector<Variable> pullback(const Apply&, std::span<const Variable>) const override {
    return {Variable()};
  }
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;

 private:
  Axes axes_;
  DType dtype_;
};

}  // namespace palimpsest::ops
