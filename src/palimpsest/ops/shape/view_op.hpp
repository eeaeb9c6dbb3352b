// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/ops/parameters.hpp"

namespace palimpsest::ops {

/// An op of one input that shows its elements in another arrangement and computes nothing.
///
/// Aliases  view_map {0: {0}}. If strides do not allow a view, it runs and copies
class ViewOp : public Op {
 public:
  Apply make_node(std::span<const Variable> inputs) const override;
  AliasMap view_map(const Apply&) const final { return {{0, {0}}}; }
  std::optional<Layout> view_layout(const Apply& apply, int out, const Layout& in) const final;
  Region view_region(const Apply& apply, int out, int in) const final;
  bool reads(const Apply&, int) const final { return false; }
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  Linearity linear_in(const Apply&, int) const override { return Linearity::complex; }
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;

  /// Extents of the result; those of the input may be kUnknown. ShapeError when they do not fit.
  virtual Extents result_extents(std::span<const index_t> in) const = 0;
  /// Layout of the result; all extents are known and fit. Its byte offset has the same origin as
  /// that of `in`.
  virtual std::optional<Layout> layout_of(const Layout& in) const = 0;
  virtual DType dtype_of_result(DType in) const { return in; }
  /// The region of the input that the result shows; extents may be unknown.
  virtual Region region_of(std::span<const index_t>) const { return Region::unknown(); }

 protected:
  /// For views that only show other extents and strides.
  static Layout with(const Layout& in, Extents extents, Strides strides) {
    return {in.dtype, std::move(extents), std::move(strides), in.byte_offset};
  }
};

}  // namespace palimpsest::ops
