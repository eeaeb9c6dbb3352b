// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "palimpsest/graph/op.hpp"

namespace palimpsest::ops {

/// x with a border of one value.
class Pad final : public Op {
 public:
  Pad(Extents before, Extents after, double value)
      : before_(std::move(before)), after_(std::move(after)), value_(value) {}
  const Extents& before() const { return before_; }
  const Extents& after() const { return after_; }
  double value() const { return value_; }

  std::string name() const override { return "Pad"; }
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply,
                                    std::span<const Extents> inputs) const override;
  Linearity linear_in(const Apply&, int) const override {
    return value_ == 0 ? Linearity::complex : Linearity::no;
  }
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;

 private:
  Extents result_extents(std::span<const index_t> in) const;

  Extents before_, after_;
  double value_;
};

/// y[i] = x[i - shift] along an axis, modulo its extent.
class Roll final : public Op {
 public:
  Roll(index_t shift, std::size_t axis) : shift_(shift), axis_(axis) {}
  index_t shift() const { return shift_; }
  std::size_t axis() const { return axis_; }

  std::string name() const override { return "Roll"; }
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override {
    return {inputs[0]};
  }
  Linearity linear_in(const Apply&, int) const override { return Linearity::complex; }
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;

 private:
  index_t shift_;
  std::size_t axis_;
};

/// Its inputs one after the other along an axis.
class Join final : public Op {
 public:
  explicit Join(std::size_t axis) : axis_(axis) {}
  std::size_t axis() const { return axis_; }

  std::string name() const override { return "Join"; }
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply,
                                    std::span<const Extents> inputs) const override;
  Linearity linear_in(const Apply&, int) const override { return Linearity::complex; }
  bool is_linear_sum(const Apply&) const override { return true; }
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;

 private:
  std::size_t axis_;
};

}  // namespace palimpsest::ops
