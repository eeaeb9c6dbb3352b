// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "palimpsest/kernels/elementwise/elementwise.hpp"
#include "palimpsest/ops/parameters.hpp"
#include "palimpsest/ops/shape/view_op.hpp"

namespace palimpsest::ops {

/// `logical_and` -> `LogicalAnd`.
std::string camel_case(std::string_view name);

/// `r0:float64, r1:float32; r2=identity(r1):float64; r3=add(r0, r2):float64; -> r3`
std::string describe(const ElementwiseProgram& program);
template <>
ElementwiseProgram read_value<ElementwiseProgram>(ParameterText& text);

/// A program over scalars applied to every element of its inputs, all of one rank. Dimensions known
/// to be 1 broadcast. One scalar operation is a program of one instruction.
///
/// Aliases  overwrites()[k] = i: output k lies in the memory of input i. Each output may have an
///          input of its own
class Elementwise final : public Op {
 public:
  static constexpr int kNone = -1;
  /// Per output the input that it overwrites, or kNone; no entries: none does.
  using Overwrites = SmallVector<index_t, 2>;

  /// An operation on operands of these dtypes.
  Elementwise(ScalarOp op, std::span<const DType> operands);
  /// Errors   ValueError: entries that are not inputs, one input for two outputs, too many or too
  ///          few
  explicit Elementwise(ElementwiseProgram program, Overwrites overwrites = {});
  /// The twin that overwrites other inputs, or none. Twins share their program.
  Elementwise(const Elementwise& other, Overwrites overwrites);
  /// The conversion of one dtype into another.
  static std::shared_ptr<const Elementwise> cast(DType from, DType to);

  static std::vector<std::string> names();
  static OpPtr restored(std::string_view name, ParameterText& text);

  const ElementwiseProgram& program() const { return shared_->program; }
  /// The operation if there is just one, conversions aside; `identity` if there are conversions
  /// only; nothing for a program of several.
  std::optional<ScalarOp> scalar_op() const { return shared_->scalar_op; }
  const Overwrites& overwrites() const { return overwrites_; }
  bool is_in_place() const { return !overwrites_.empty(); }

  std::string name() const override;
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  AliasMap destroy_map(const Apply& apply) const override;
  IndexPairs tolerate_same(const Apply& apply) const override;
  OpPtr inplace_on_inputs(const Apply& apply, const std::set<int>& allowed) const override {
    return inplace_on_inputs(apply, allowed, {});
  }
  /// The same with preferred inputs to overwrite, one per output; no entries: any.
  OpPtr inplace_on_inputs(const Apply& apply, const std::set<int>& allowed,
                          const Overwrites& preferred) const;
  OpPtr pure() const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  Linearity linear_in(const Apply& apply, int in) const override;
  bool is_linear_sum(const Apply& apply) const override;
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;

 private:
  // State that does not depend on the overwritten input.
  struct Shared {
    explicit Shared(ElementwiseProgram program);
    ElementwiseProgram program;
    std::optional<ScalarOp> scalar_op;
    std::string name;
    /// Most ops are never asked.
    const std::string& parameters() const;
    /// The inputs that an output is computed from, in the order in which the program as it is
    /// written needs them.
    std::vector<int> inputs_of(std::size_t output) const;

   private:
    mutable std::once_flag is_described_;
    mutable std::string parameters_;
  };

  void check_overwrites() const;
  bool can_overwrite(const Apply& apply, std::size_t output, int input) const;
  Overwrites choose_inputs(const Apply& apply, const std::set<int>& allowed,
                           const Overwrites& preferred) const;

  std::shared_ptr<const Shared> shared_;
  Overwrites overwrites_;
};

/// The real or the imaginary part of a complex array, as a view.
class ComplexPart final : public ViewOp {
 public:
  static std::vector<std::string> names() { return {"Real", "Imag"}; }
  /// The elementwise function of the same name has parameters.
  static OpPtr restored(std::string_view name, ParameterText& text);
  explicit ComplexPart(bool imaginary) : imaginary_(imaginary) {}
  bool is_imaginary() const { return imaginary_; }
  std::string name() const override { return imaginary_ ? "Imag" : "Real"; }
  Apply make_node(std::span<const Variable> inputs) const override;
  Extents result_extents(std::span<const index_t> in) const override { return in; }
  DType dtype_of_result(DType in) const override { return real_of(in); }
  std::optional<Layout> layout_of(const Layout& in) const override;
  Linearity linear_in(const Apply&, int) const override { return Linearity::real; }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;

 private:
  bool imaginary_;
};

/// Complex (..) as real (.., 2), as a view.
class ViewAsReal final : public Declared<ViewAsReal, ViewOp> {
 public:
  Apply make_node(std::span<const Variable> inputs) const override;
  Extents result_extents(std::span<const index_t> in) const override;
  DType dtype_of_result(DType in) const override { return real_of(in); }
  std::optional<Layout> layout_of(const Layout& in) const override;
  Linearity linear_in(const Apply&, int) const override { return Linearity::real; }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  static constexpr auto declaration() { return declare("ViewAsReal"); }
};

/// Real (.., 2) as complex (..): a view where pairs are dense and aligned, else a copy.
class ViewAsComplex final : public Declared<ViewAsComplex, ViewOp> {
 public:
  Apply make_node(std::span<const Variable> inputs) const override;
  Extents result_extents(std::span<const index_t> in) const override;
  DType dtype_of_result(DType in) const override { return complex_of(in); }
  std::optional<Layout> layout_of(const Layout& in) const override;
  Linearity linear_in(const Apply&, int) const override { return Linearity::real; }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  void run(RunContext& context) const override;
  static constexpr auto declaration() { return declare("ViewAsComplex"); }
};

/// Cotangents of the operands of a scalar operation, before broadcasting and conversion are undone;
/// undefined where zero. NotSupported when the operation has none.
std::vector<Variable> scalar_pullback(ScalarOp op, const Apply& apply, const Variable& w);

/// The results of a program, each of its operations an application of its own.
std::vector<Variable> unrolled(const ElementwiseProgram& program, std::span<const Variable> inputs);
/// Cotangents of the inputs of an application that computes the graph that `outputs_of` builds of
/// its inputs.
std::vector<Variable> pullback_of_steps(
    const Apply& apply, std::span<const Variable> cotangents,
    const std::function<std::vector<Variable>(std::span<const Variable>)>& outputs_of);

}  // namespace palimpsest::ops
