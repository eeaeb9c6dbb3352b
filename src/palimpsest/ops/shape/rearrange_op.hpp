// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <array>
#include <string>
#include <vector>

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
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  Linearity linear_in(const Apply&, int) const override {
    return value_ == 0 ? Linearity::complex : Linearity::no;
  }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
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
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  std::size_t scratch_bytes(const Apply& apply, std::span<const Layout> inputs) const override;
  Linearity linear_in(const Apply&, int) const override {
    return is_inexact(dtype_) ? Linearity::complex : Linearity::no;
  }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
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

/// A rotation along one axis, by a number of elements or by half the extent.
struct AxisRoll {
  /// The first element comes to floor(n/2), or back from there. Added to `shift`.
  enum class Half : std::int8_t { back = -1, no, there };

  std::size_t axis;
  index_t shift = 0;
  Half half = Half::no;

  bool does_nothing() const { return shift == 0 && half == Half::no; }
  /// The shift along n > 0 elements, 0 <= shift < n.
  index_t shift_along(index_t n) const;
};
/// In the order of their axes, each axis once.
using AxisRolls = std::vector<AxisRoll>;
std::string written(const AxisRolls& rolls);
void read(ParameterText& text, AxisRolls& rolls);

/// y[i] = x[i - shift] modulo the extents, along several axes.
class Roll final : public Declared<Roll> {
 public:
  explicit Roll(AxisRolls rolls) : rolls_(std::move(rolls)) {}
  const AxisRolls& rolls() const { return rolls_; }

  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan inputs) const override {
    return {inputs[0]};
  }
  Linearity linear_in(const Apply&, int) const override { return Linearity::complex; }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() { return declare("Roll", field(&Roll::rolls_)); }

 private:
  AxisRolls rolls_;
};
/// The application of Roll without axes along which nothing moves; x if there is no other.
Variable rolled(const Variable& x, AxisRolls rolls);

/// Inputs w and parts: the piece of w where part `position` lies when the parts are joined. A copy,
/// because where it lies depends on more than w.
class PartOf final : public Declared<PartOf> {
 public:
  PartOf(std::size_t axis, std::size_t position) : axis_(axis), position_(position) {}
  std::size_t axis() const { return axis_; }
  std::size_t position() const { return position_; }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  Linearity linear_in(const Apply&, int in) const override {
    return in == 0 ? Linearity::complex : Linearity::no;
  }
  bool uses_elements(const Apply&, int in) const override { return in == 0; }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
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
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  Linearity linear_in(const Apply&, int) const override { return Linearity::complex; }
  bool is_linear_sum(const Apply&) const override { return true; }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() { return declare("Join", axis_field("axis", &Join::axis_)); }

 private:
  std::size_t axis_;
};

}  // namespace palimpsest::ops
