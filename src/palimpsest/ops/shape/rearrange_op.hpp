// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <array>

#include "palimpsest/graph/op.hpp"
#include "palimpsest/kernels/arrays/pad.hpp"
#include "palimpsest/ops/parameters.hpp"

namespace palimpsest::ops {

/// x with a border of one value.
class Pad final : public Declared<Pad> {
 public:
  Pad(Extents before, Extents after, double value)
      : before_(std::move(before)), after_(std::move(after)), value_(value) {}
  const Extents& before() const { return before_; }
  const Extents& after() const { return after_; }
  double value() const { return value_; }

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
  static constexpr auto declaration() {
    return declare("Pad", field("before", &Pad::before_), field("after", &Pad::after_),
                   field("value", &Pad::value_));
  }

 private:
  Extents result_extents(std::span<const index_t> in) const;

  Extents before_, after_;
  double value_;
};

/// x surrounded by elements of a rule, or the adjoint of that: `PadAround`, `Fold`.
class PadAround final : public Declared<PadAround> {
 public:
  PadAround(Extents before, Extents after, PadRule rule, DType dtype, bool adjoint = false);
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply,
                                    std::span<const Extents> inputs) const override;
  std::size_t scratch_bytes(const Apply& apply, std::span<const Layout> inputs) const override;
  Linearity linear_in(const Apply&, int) const override {
    return is_inexact(dtype_) ? Linearity::complex : Linearity::no;
  }
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare(
        "", field("before", &PadAround::before_), field("after", &PadAround::after_),
        choice<PadAround, PadRule>(
            "", &PadAround::rule_,
            {{"edge", PadRule::edge}, {"wrap", PadRule::wrap}, {"reflect", PadRule::reflect}}),
        field(&PadAround::dtype_),
        named<PadAround, bool>(&PadAround::adjoint_, {{"PadAround", false}, {"Fold", true}}));
  }

 private:
  Extents result_extents(std::span<const index_t> in) const;

  Extents before_, after_;
  PadRule rule_;
  DType dtype_;
  bool adjoint_;
  ElementwiseProgram sum_;
};

/// y[i] = x[i - shift] along an axis, modulo its extent.
class Roll final : public Declared<Roll> {
 public:
  /// By half the extent: the first element comes to floor(n/2), or back from there. `shift` is 0.
  enum class Half : std::uint8_t { no, there, back };
  Roll(Half half, index_t shift, std::size_t axis) : half_(half), shift_(shift), axis_(axis) {}
  Roll(index_t shift, std::size_t axis) : Roll(Half::no, shift, axis) {}
  index_t shift() const { return shift_; }
  std::size_t axis() const { return axis_; }

  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override {
    return {inputs[0]};
  }
  Linearity linear_in(const Apply&, int) const override { return Linearity::complex; }
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("Roll",
                   choice<Roll, Half>(
                       "", &Roll::half_,
                       {{"", Half::no}, {"by half", Half::there}, {"back by half", Half::back}}),
                   field("shift", &Roll::shift_), axis_field("axis", &Roll::axis_));
  }

 private:
  index_t shift_for(index_t n) const;

  Half half_;
  index_t shift_;
  std::size_t axis_;
};

/// Inputs w and parts: the piece of w where part `position` lies when the parts are joined. A copy,
/// because where it lies depends on more than w.
class PartOf final : public Declared<PartOf> {
 public:
  PartOf(std::size_t axis, std::size_t position) : axis_(axis), position_(position) {}
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply,
                                    std::span<const Extents> inputs) const override;
  Linearity linear_in(const Apply&, int in) const override {
    return in == 0 ? Linearity::complex : Linearity::no;
  }
  bool uses_elements(const Apply&, int in) const override { return in == 0; }
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("PartOf", axis_field("axis", &PartOf::axis_),
                   field("position", &PartOf::position_));
  }

 private:
  std::size_t axis_, position_;
};

/// Its inputs one after the other along an axis.
class Join final : public Declared<Join> {
 public:
  explicit Join(std::size_t axis) : axis_(axis) {}
  std::size_t axis() const { return axis_; }

  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply,
                                    std::span<const Extents> inputs) const override;
  Linearity linear_in(const Apply&, int) const override { return Linearity::complex; }
  bool is_linear_sum(const Apply&) const override { return true; }
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() { return declare("Join", axis_field("axis", &Join::axis_)); }

 private:
  std::size_t axis_;
};

}  // namespace palimpsest::ops
