// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/ops/loop/extents.hpp"
#include "palimpsest/ops/shape/view_op.hpp"

namespace palimpsest::ops {

/// Extents are computed from those of the input.
class Reshape final : public ViewOp {
 public:
  /// One extent may be the number -1: what the others leave for it.
  explicit Reshape(ExtentPrograms shape) : shape_(std::move(shape)) {}
  const ExtentPrograms& shape() const { return shape_; }
  std::string name() const override { return "Reshape"; }
  std::string parameters() const override;
  Extents result_extents(std::span<const index_t> in) const override;
  std::optional<Layout> layout_of(const Layout& in) const override;
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;
  void run(RunContext& context) const override;

 private:
  ExtentPrograms shape_;
};

/// Inputs x and arrays: x with extents that are computed from those of all inputs. A copy, because
/// where a view lies would depend on more than x.
class ReshapeTo final : public Op {
 public:
  explicit ReshapeTo(ExtentPrograms shape) : shape_(std::move(shape)) {}
  std::string name() const override { return "ReshapeTo"; }
  std::string parameters() const override { return text_of(shape_); }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override;
  Linearity linear_in(const Apply&, int in) const override {
    return in == 0 ? Linearity::complex : Linearity::no;
  }
  bool uses_elements(const Apply&, int in) const override { return in == 0; }
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;

 private:
  ExtentPrograms shape_;
};

class Transpose final : public ViewOp {
 public:
  /// Axis k of the result is axis order[k]; all counted from the front.
  explicit Transpose(Axes order) : order_(std::move(order)) {}
  Region region_of(std::span<const index_t> in) const override;
  const Axes& order() const { return order_; }
  std::string name() const override { return "Transpose"; }
  std::string parameters() const override;
  Extents result_extents(std::span<const index_t> in) const override;
  std::optional<Layout> layout_of(const Layout& in) const override;
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;

 private:
  Axes order_;
};

class ExpandDims final : public ViewOp {
 public:
  /// Positions of the new axes in the result, sorted.
  explicit ExpandDims(Axes axes) : axes_(std::move(axes)) {}
  const Axes& axes() const { return axes_; }
  std::string name() const override { return "ExpandDims"; }
  std::string parameters() const override;
  Extents result_extents(std::span<const index_t> in) const override;
  std::optional<Layout> layout_of(const Layout& in) const override;
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;

 private:
  Axes axes_;
};

class Squeeze final : public ViewOp {
 public:
  /// Sorted, counted from the front.
  explicit Squeeze(Axes axes) : axes_(std::move(axes)) {}
  const Axes& axes() const { return axes_; }
  std::string name() const override { return "Squeeze"; }
  std::string parameters() const override;
  Extents result_extents(std::span<const index_t> in) const override;
  std::optional<Layout> layout_of(const Layout& in) const override;
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;

 private:
  Axes axes_;
};

/// Its result may have several elements at one address: nothing may overwrite it.
class BroadcastTo final : public ViewOp {
 public:
  /// Of the rank of the result; kUnknown keeps.
  explicit BroadcastTo(Extents shape) : shape_(std::move(shape)) {}
  const Extents& shape() const { return shape_; }
  std::string name() const override { return "BroadcastTo"; }
  std::string parameters() const override;
  Extents result_extents(std::span<const index_t> in) const override;
  std::vector<Extents> infer_shapes(const Apply& apply,
                                    std::span<const Extents> inputs) const override;
  std::optional<Layout> layout_of(const Layout& in) const override;
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;

 private:
  Extents shape_;
};

/// Inputs w and x of one rank: w stretched to the extents of x, of which nothing else matters. A
/// view when the extents of x are known in the graph, else a copy.
class BroadcastLike final : public Op {
 public:
  std::string name() const override { return "BroadcastLike"; }
  Apply make_node(std::span<const Variable> inputs) const override;
  AliasMap view_map(const Apply& apply) const override;
  std::optional<Layout> view_layout(const Apply& apply, int out, const Layout& in) const override;
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
};

class SpecifyShape final : public ViewOp {
 public:
  explicit SpecifyShape(Extents shape) : shape_(std::move(shape)) {}
  Region region_of(std::span<const index_t>) const override { return Region::whole(); }
  const Extents& shape() const { return shape_; }
  std::string name() const override { return "SpecifyShape"; }
  std::string parameters() const override;
  Extents result_extents(std::span<const index_t> in) const override;
  std::optional<Layout> layout_of(const Layout& in) const override { return in; }
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;

 private:
  Extents shape_;
};

class Flip final : public ViewOp {
 public:
  /// Sorted, counted from the front.
  explicit Flip(Axes axes) : axes_(std::move(axes)) {}
  const Axes& axes() const { return axes_; }
  std::string name() const override { return "Flip"; }
  std::string parameters() const override;
  Extents result_extents(std::span<const index_t> in) const override { return in; }
  std::optional<Layout> layout_of(const Layout& in) const override;
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;

 private:
  Axes axes_;
};

/// w with the extents of x along every axis where they differ because w has one element there.
Variable broadcast_like(const Variable& w, const Variable& x);

}  // namespace palimpsest::ops
