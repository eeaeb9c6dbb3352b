// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/graph/op.hpp"
#include "palimpsest/ops/loop/extents.hpp"
#include "palimpsest/ops/parameters.hpp"

namespace palimpsest::ops {

/// Inputs value and arrays: the value, broadcast, in a new array whose extents are computed from
/// those of the inputs.
class Alloc final : public Declared<Alloc> {
 public:
  explicit Alloc(ExtentPrograms extents) : extents_(std::move(extents)) {}
  const ExtentPrograms& extents() const { return extents_; }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan inputs) const override;
  Linearity linear_in(const Apply&, int in) const override {
    return in == 0 ? Linearity::complex : Linearity::no;
  }
  bool uses_elements(const Apply&, int in) const override { return in == 0; }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  bool is_cheap() const override { return true; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() { return declare("Alloc", field(&Alloc::extents_)); }

 private:
  ExtentPrograms extents_;
};

/// The product of the extents of x along some axes; 0-d.
class AxisCount final : public Declared<AxisCount> {
 public:
  /// Axes sorted, counted from the front.
  AxisCount(Axes axes, DType dtype) : axes_(std::move(axes)), dtype_(dtype) {}
  const Axes& axes() const { return axes_; }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan) const override {
    return {Extents()};
  }
  bool uses_elements(const Apply&, int) const override { return false; }
  std::vector<Variable> pullback(const Apply&, CotangentSpan) const override {
    return {Variable()};
  }
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("AxisCount", axes_field(&AxisCount::axes_), field("dtype", &AxisCount::dtype_));
  }

 private:
  Axes axes_;
  DType dtype_;
};

/// The extents of x; int64.
class ShapeOf final : public Declared<ShapeOf> {
 public:
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan inputs) const override {
    return {{static_cast<index_t>(inputs[0].size())}};
  }
  bool uses_elements(const Apply&, int) const override { return false; }
  std::vector<Variable> pullback(const Apply&, CotangentSpan) const override {
    return {Variable()};
  }
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() { return declare("Shape"); }
};

/// Numbers that depend on their position alone. Inputs: the arrays of whose extents the result's
/// are computed.
class Generator : public Op {
 public:
  Generator(ExtentPrograms extents, DType dtype, Device device)
      : extents_(std::move(extents)), dtype_(dtype), device_(device) {}
  DType dtype() const { return dtype_; }
  Apply make_node(std::span<const Variable> inputs) const override;
  bool can_fail() const override { return false; }
  bool is_cheap() const override { return true; }
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan inputs) const override;
  bool uses_elements(const Apply&, int) const override { return false; }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan) const override {
    return std::vector<Variable>(apply.input_count());
  }

 protected:
  ExtentPrograms extents_;
  DType dtype_;
  Device device_;
};

/// start + i * step; the last number is `last` where that is given.
class Arange final : public Generator {
 public:
  struct Numbers {
    double start = 0, step = 1;
    std::optional<double> last = {};
    index_t integer_start = 0, integer_step = 1;  // the same for integers
  };
  Arange(Numbers numbers, ExtentProgram n, DType dtype, Device device)
      : Generator({std::move(n)}, dtype, device), numbers_(numbers) {}
  static std::vector<std::string> names() { return {"Arange"}; }
  static OpPtr restored(std::string_view name, ParameterText& text);
  const Numbers& numbers() const { return numbers_; }
  std::string name() const override { return "Arange"; }
  std::string parameters() const override;
  void run(RunContext& context) const override;

 private:
  Numbers numbers_;
};

class Eye final : public Declared<Eye, Generator> {
 public:
  Eye(ExtentPrograms extents, DType dtype, Device device, index_t k)
      : Declared(std::move(extents), dtype, device), k_(k) {}
  index_t diagonal() const { return k_; }  ///< column - row of the ones
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("Eye", field(&Eye::extents_), field(&Eye::dtype_), field(&Eye::device_),
                   field("k", &Eye::k_));
  }

 private:
  index_t k_;
};

}  // namespace palimpsest::ops
