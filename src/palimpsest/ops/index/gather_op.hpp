// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/graph/op.hpp"
#include "palimpsest/kernels/elementwise/elementwise.hpp"
#include "palimpsest/ops/in_place_twin.hpp"
#include "palimpsest/ops/index/array_index.hpp"

namespace palimpsest::ops {

/// Inputs x and index arrays: the points of x that these name.
class Gather final : public Declared<Gather> {
 public:
  explicit Gather(ArrayIndex index) : index_(std::move(index)) {}
  const ArrayIndex& index() const { return index_; }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  bool can_fail() const override { return !index_.constant && !index_.wraps; }
  Linearity linear_in(const Apply& apply, int in) const override;
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  void run(RunContext& context) const override;
  static constexpr auto declaration() { return declare("Gather", field(&Gather::index_)); }

 private:
  ArrayIndex index_;
};

/// Inputs y (b.., k..) and index arrays (k..): adds every element of y to its point in an array of
/// zeros (b.., sizes..).
class ScatterAdd final : public Declared<ScatterAdd> {
 public:
  ScatterAdd(Extents sizes, bool constant_indices)
      : sizes_(std::move(sizes)), constant_indices_(constant_indices) {}
  const Extents& sizes() const { return sizes_; }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  bool can_fail() const override { return !constant_indices_; }
  Linearity linear_in(const Apply& apply, int in) const override;
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("ScatterAdd", field("sizes", &ScatterAdd::sizes_),
                   field("constant_indices", &ScatterAdd::constant_indices_));
  }

 private:
  Extents result_extents(std::span<const Extents> actual, std::span<const Variable> inputs) const;

  Extents sizes_;
  bool constant_indices_;
};

/// Inputs x, value and index arrays: x with its points replaced, or increased, by the value, which
/// broadcasts against them along axes known to be 1. `AdvancedSet`, `AdvancedInc`.
///
/// Math     of repeated points the last value is set, every one is added in index order
/// Aliases  in place: the output lies in the memory of x; buffered, the value may show elements of
///          x and is copied before any is written
class UpdateAt final : public InPlaceTwin<UpdateAt> {
 public:
  enum class Kind : std::uint8_t { set, increase };

  UpdateAt(Kind kind, ArrayIndex index, DType dtype, bool in_place = false, bool buffered = false)
      : InPlaceTwin(in_place),
        kind_(kind),
        index_(std::move(index)),
        dtype_(dtype),
        buffered_(buffered) {}
  Kind kind() const { return kind_; }
  const ArrayIndex& index() const { return index_; }
  bool is_buffered() const { return buffered_; }
  std::string_view title() const;  // the name, without an allocation
  Apply make_node(std::span<const Variable> inputs) const override;
  IndexPairs tolerate_aliased(const Apply&) const override;
  std::size_t scratch_bytes(const Apply& apply, std::span<const Layout> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  bool can_fail() const override { return !index_.constant && !index_.wraps; }
  Linearity linear_in(const Apply& apply, int in) const override;
  bool is_linear_sum(const Apply&) const override { return true; }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare(
        "Advanced",
        named<UpdateAt, Kind>(&UpdateAt::kind_, {{"Set", Kind::set}, {"Inc", Kind::increase}}),
        field(&UpdateAt::index_), field(&UpdateAt::dtype_), in_place_field(&UpdateAt::in_place_),
        flag("buffered", &UpdateAt::buffered_));
  }

 private:
  void adapt(const Apply* apply) override;

  // Mask of the points with a value that no later point overwrites; undefined for all points.
  Variable winners(const Apply& apply) const;

  Kind kind_;
  ArrayIndex index_;
  DType dtype_;
  bool buffered_;
};

/// The update of the points of x; the value is converted to the dtype of x.
Variable update_at(UpdateAt::Kind kind, const Variable& x, ArrayIndex index,
                   std::span<const Variable> indices, const Variable& value);

}  // namespace palimpsest::ops
