// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/graph/op.hpp"
#include "palimpsest/kernels/elementwise/elementwise.hpp"
#include "palimpsest/kernels/matrices/contract.hpp"
#include "palimpsest/ops/in_place_twin.hpp"
#include "palimpsest/ops/shape/contiguous_op.hpp"

namespace palimpsest::ops {

/// out = sum of conj?(a) conj?(b) over the labels that the result lacks. Both inputs are of one
/// dtype that the kernel takes.
class Contract final : public Declared<Contract>, public RoundsByLayout {
 public:
  explicit Contract(Contraction contraction) : contraction_(std::move(contraction)) {}
  const Contraction& contraction() const { return contraction_; }

  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  std::size_t scratch_bytes(const Apply& apply, std::span<const Layout> inputs) const override;
  Linearity linear_in(const Apply& apply, int in) const override;
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;

  /// The cotangent of the first operand x or the second one, for the cotangent w of the result.
  static Variable cotangent_of(const Contraction& contraction, const Variable& x,
                               const Variable& other, const Variable& w, bool first);
  Extents result_extents(std::span<const index_t> a, std::span<const index_t> b) const;
  static constexpr auto declaration() {
    return declare("Contract", field(&Contract::contraction_));
  }

 private:
  Contraction contraction_;
};

/// Inputs z, alpha, x, y, beta: beta z + alpha times the contraction of x and y. `Gemm`, `Gemv`,
/// `Ger`.
///
/// Aliases  in place: the output lies in the memory of z, which neither x nor y may be
class AddContract final : public InPlaceTwin<AddContract, Op>, public RoundsByLayout {
 public:
  AddContract(Contraction contraction, DType dtype, bool in_place = false);
  static std::vector<std::string> names();
  static OpPtr restored(std::string_view name, ParameterText& text);
  const Contraction& contraction() const { return contraction_; }
  std::string name() const override;
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  std::size_t scratch_bytes(const Apply& apply, std::span<const Layout> inputs) const override;
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;

 private:
  Extents agreed_extents(std::span<const index_t> z, std::span<const index_t> x,
                         std::span<const index_t> y) const;
  bool is_outer() const;
  bool can_overwrite(const Apply& apply) const override;

  Contraction contraction_;
  DType dtype_;
  ElementwiseProgram sum_, scaled_, sum_of_products_;  // see the constructor
};

/// sum of |x|^2 over all elements.
class Norm2 final : public Declared<Norm2>, public RoundsByLayout {
 public:
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan) const override {
    return {Extents()};
  }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() { return declare("Norm2"); }
};

/// The elements with column - row = offset, along a new last axis.
class Diagonal final : public Declared<Diagonal, ViewOp> {
 public:
  /// Axes counted from the front.
  Diagonal(index_t offset, std::size_t row_axis, std::size_t column_axis)
      : offset_(offset), row_axis_(row_axis), column_axis_(column_axis) {}
  Extents result_extents(std::span<const index_t> in) const override;
  std::optional<Layout> layout_of(const Layout& in) const override;
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  static constexpr auto declaration() {
    return declare("Diagonal", field("offset", &Diagonal::offset_),
                   axis_field("row", &Diagonal::row_axis_),
                   axis_field("column", &Diagonal::column_axis_));
  }

 private:
  index_t offset_;
  std::size_t row_axis_, column_axis_;
};

/// Inputs w and x: an array of zeros with the extents of x and w on its diagonal.
class DiagonalInto final : public Declared<DiagonalInto> {
 public:
  DiagonalInto(index_t offset, std::size_t row_axis, std::size_t column_axis)
      : offset_(offset), row_axis_(row_axis), column_axis_(column_axis) {}
  /// The view of the result that holds the elements.
  Diagonal diagonal() const { return {offset_, row_axis_, column_axis_}; }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan inputs) const override;
  Linearity linear_in(const Apply&, int in) const override {
    return in == 0 ? Linearity::complex : Linearity::no;
  }
  bool uses_elements(const Apply&, int in) const override { return in == 0; }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("DiagonalInto", field("offset", &DiagonalInto::offset_),
                   axis_field("row", &DiagonalInto::row_axis_),
                   axis_field("column", &DiagonalInto::column_axis_));
  }

 private:
  index_t offset_;
  std::size_t row_axis_, column_axis_;
};

}  // namespace palimpsest::ops
