// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <vector>

#include "palimpsest/kernels/elementwise/elementwise.hpp"
#include "palimpsest/ops/in_place_twin.hpp"
#include "palimpsest/ops/shape/view_op.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest::ops {

/// A basic index for arrays of one rank: no `...`, and one entry per axis besides new axes.
class BasicIndex {
 public:
  /// Errors  ShapeError: too many entries, several `...`; ValueError: a slice with step 0
  BasicIndex(std::vector<Index> entries, std::size_t rank);

  const std::vector<Index>& entries() const { return entries_; }
  /// True if it selects everything and changes nothing.
  bool is_whole() const;
  /// Like Python's brackets: `1, ::2, :, None`.
  std::string str() const;
  /// Extents of the result; where they depend on an unknown one they are unknown. ShapeError for an
  /// element outside.
  Extents extents(std::span<const index_t> in) const;
  Layout layout(const Layout& in) const;
  /// The selected region of an array with known or unknown extents.
  Region region(std::span<const index_t> in) const;
  /// The padding (before, after) that undoes the index on arrays of these extents, if it takes a
  /// block: known extents and steps of 1 only.
  std::optional<std::vector<std::pair<index_t, index_t>>> widths(std::span<const index_t> in) const;
  /// Positions in the input of the axes that the result lacks, and in the result of the new ones.
  Axes dropped_axes() const;
  Axes new_axes() const;

 private:
  std::vector<Index> entries_;
};

inline std::string written(const BasicIndex& value) { return value.str(); }
template <>
BasicIndex read_value<BasicIndex>(ParameterText& text);

/// ShapeError unless the value, of the rank of the region that it is written to, broadcasts to it.
/// Extents may be unknown; `declared` are those of the value that the graph knows.
void check_value(std::span<const index_t> value, std::span<const index_t> declared,
                 std::span<const index_t> region, const std::string& who);
/// The same for inputs x and value, both of this dtype; in place, x is checked too.
/// Errors   DTypeError, ShapeError, ValueError naming `who`
void check_update(std::span<const Variable> inputs, DType dtype, std::span<const index_t> region,
                  bool in_place, const std::string& who);

class Subtensor final : public Declared<Subtensor, ViewOp> {
 public:
  explicit Subtensor(BasicIndex index) : index_(std::move(index)) {}
  const BasicIndex& index() const { return index_; }
  Extents result_extents(std::span<const index_t> in) const override { return index_.extents(in); }
  std::optional<Layout> layout_of(const Layout& in) const override { return index_.layout(in); }
  Region region_of(std::span<const index_t> in) const override { return index_.region(in); }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  static constexpr auto declaration() { return declare("Subtensor", field(&Subtensor::index_)); }

 private:
  BasicIndex index_;
};

/// Inputs x and value, of one dtype: x with the indexed elements replaced or increased by the
/// value, which broadcasts against them along axes known to be 1.
///
/// Aliases  in place: the output lies in the memory of x; buffered, the value may show elements of
///          x and is copied before any is written
class UpdateSubtensor final : public InPlaceTwin<UpdateSubtensor, Op> {
 public:
  enum class Kind : std::uint8_t { set, increase };

  UpdateSubtensor(Kind kind, BasicIndex index, DType dtype, bool in_place = false,
                  bool buffered = false);
  static std::vector<std::string> names();
  static OpPtr restored(std::string_view name, ParameterText& text);
  Kind kind() const { return kind_; }
  const BasicIndex& index() const { return index_; }
  bool is_buffered() const { return buffered_; }
  /// Of an element and what it is increased by.
  const ElementwiseProgram& sum() const { return sum_; }

  std::string name() const override;
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  IndexPairs tolerate_aliased(const Apply&) const override;
  std::size_t scratch_bytes(const Apply& apply, std::span<const Layout> inputs) const override;
  Region write_region(const Apply& apply, int) const override {
    return index_.region(apply.input(0).type().shape);
  }
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  Linearity linear_in(const Apply& apply, int in) const override;
  bool is_linear_sum(const Apply&) const override { return true; }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;

 private:
  void adapt(const Apply* apply) override;

  Kind kind_;
  BasicIndex index_;
  DType dtype_;
  bool buffered_;
  ElementwiseProgram sum_;
};

}  // namespace palimpsest::ops
