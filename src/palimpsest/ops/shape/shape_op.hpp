// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/ops/loop/extents.hpp"
#include "palimpsest/ops/parameters.hpp"
#include "palimpsest/ops/shape/view_op.hpp"

namespace palimpsest::ops {

/// Extents are computed from those of the input.
class Reshape final : public Declared<Reshape, ViewOp> {
 public:
  /// An extent may be the number -1: the elements divided by the other extents.
  explicit Reshape(ExtentPrograms shape) : shape_(std::move(shape)) {}
  const ExtentPrograms& shape() const { return shape_; }
  Extents result_extents(std::span<const index_t> in) const override;
  std::optional<Layout> layout_of(const Layout& in) const override;
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("Reshape", field("shape", &Reshape::shape_));
  }

 private:
  ExtentPrograms shape_;
};

/// Inputs x and arrays: x with extents that are computed from those of all inputs. A copy, because
/// where a view lies would depend on more than x.
class ReshapeTo final : public Declared<ReshapeTo> {
 public:
  explicit ReshapeTo(ExtentPrograms shape) : shape_(std::move(shape)) {}
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan inputs) const override;
  Linearity linear_in(const Apply&, int in) const override {
    return in == 0 ? Linearity::complex : Linearity::no;
  }
  bool uses_elements(const Apply&, int in) const override { return in == 0; }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() { return declare("ReshapeTo", field(&ReshapeTo::shape_)); }

 private:
  ExtentPrograms shape_;
};

class Transpose final : public Declared<Transpose, ViewOp> {
 public:
  /// Axis k of the result is axis order[k]; all counted from the front.
  explicit Transpose(Axes order) : order_(std::move(order)) {}
  Region region_of(std::span<const index_t> in) const override;
  const Axes& order() const { return order_; }
  Extents result_extents(std::span<const index_t> in) const override;
  std::optional<Layout> layout_of(const Layout& in) const override;
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  static constexpr auto declaration() {
    return declare("Transpose", field("order", &Transpose::order_));
  }

 private:
  Axes order_;
};

class ExpandDims final : public Declared<ExpandDims, ViewOp> {
 public:
  /// Positions of the new axes in the result, sorted.
  explicit ExpandDims(Axes axes) : axes_(std::move(axes)) {}
  const Axes& axes() const { return axes_; }
  Extents result_extents(std::span<const index_t> in) const override;
  std::optional<Layout> layout_of(const Layout& in) const override;
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  static constexpr auto declaration() {
    return declare("ExpandDims", axes_field(&ExpandDims::axes_));
  }

 private:
  Axes axes_;
};

class Squeeze final : public Declared<Squeeze, ViewOp> {
 public:
  /// Sorted, counted from the front.
  explicit Squeeze(Axes axes) : axes_(std::move(axes)) {}
  const Axes& axes() const { return axes_; }
  Extents result_extents(std::span<const index_t> in) const override;
  std::optional<Layout> layout_of(const Layout& in) const override;
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  static constexpr auto declaration() { return declare("Squeeze", axes_field(&Squeeze::axes_)); }

 private:
  Axes axes_;
};

/// A broadcast view. Its result may have several elements at one address: nothing may overwrite it.
class BroadcastTo final : public Declared<BroadcastTo, ViewOp> {
 public:
  /// The shape of the result. kUnknown keeps an extent.
  explicit BroadcastTo(Extents shape) : shape_(std::move(shape)) {}
  const Extents& shape() const { return shape_; }
  Extents result_extents(std::span<const index_t> in) const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  std::optional<Layout> layout_of(const Layout& in) const override;
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  static constexpr auto declaration() {
    return declare("BroadcastTo", field("shape", &BroadcastTo::shape_));
  }

 private:
  Extents shape_;
};

/// Inputs w and x of one rank: w stretched to the extents of x, whose elements are not used. A view
/// if the extents of x are known in the graph, else a copy.
class BroadcastLike final : public Declared<BroadcastLike> {
 public:
  Apply make_node(std::span<const Variable> inputs) const override;
  AliasMap view_map(const Apply& apply) const override;
  std::optional<Layout> view_layout(const Apply& apply, int out, const Layout& in) const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  Linearity linear_in(const Apply&, int in) const override {
    return in == 0 ? Linearity::complex : Linearity::no;
  }
  bool uses_elements(const Apply&, int in) const override { return in == 0; }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() { return declare("BroadcastLike"); }
};

class SpecifyShape final : public Declared<SpecifyShape, ViewOp> {
 public:
  explicit SpecifyShape(Extents shape) : shape_(std::move(shape)) {}
  Region region_of(std::span<const index_t>) const override { return Region::whole(); }
  const Extents& shape() const { return shape_; }
  Extents result_extents(std::span<const index_t> in) const override;
  std::optional<Layout> layout_of(const Layout& in) const override { return in; }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  static constexpr auto declaration() {
    return declare("SpecifyShape", field("shape", &SpecifyShape::shape_));
  }

 private:
  Extents shape_;
};

class Flip final : public Declared<Flip, ViewOp> {
 public:
  /// Sorted, counted from the front.
  explicit Flip(Axes axes) : axes_(std::move(axes)) {}
  const Axes& axes() const { return axes_; }
  Extents result_extents(std::span<const index_t> in) const override { return in; }
  std::optional<Layout> layout_of(const Layout& in) const override;
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  static constexpr auto declaration() { return declare("Flip", axes_field(&Flip::axes_)); }

 private:
  Axes axes_;
};

/// w with the extents of x along every axis where they differ because w has one element there.
Variable broadcast_like(const Variable& w, const Variable& x);

}  // namespace palimpsest::ops
