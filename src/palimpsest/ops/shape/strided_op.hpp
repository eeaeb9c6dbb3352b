// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/ops/parameters.hpp"
#include "palimpsest/ops/shape/view_op.hpp"

namespace palimpsest::ops {

/// Elements of a 1-D array at any offset and strides, which may overlap, through the same dtype or
/// another one that its bytes are read as. Counts in items of `dtype`.
class Strided final : public Declared<Strided, ViewOp> {
 public:
  Strided(DType dtype, Extents extents, Strides strides, index_t offset)
      : dtype_(dtype),
        extents_(std::move(extents)),
        strides_(std::move(strides)),
        offset_(offset) {}

  DType dtype() const { return dtype_; }
  Apply make_node(std::span<const Variable> inputs) const override;
  Extents result_extents(std::span<const index_t>) const override { return extents_; }
  DType dtype_of_result(DType) const override { return dtype_; }
  std::optional<Layout> layout_of(const Layout& in) const override;
  Linearity linear_in(const Apply& apply, int in) const override;
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  void run(RunContext& context) const override;
  /// True if several elements may lie at one address.
  bool overlaps_itself() const;
  /// The bytes from the first to behind the last element, relative to the start of the array.
  std::pair<index_t, index_t> reach() const;
  static std::string misfit(DType, const Extents& extents, const Strides& strides, index_t);
  static constexpr auto declaration() {
    return declare("Strided", field("dtype", &Strided::dtype_),
                   field("extents", &Strided::extents_), field("strides", &Strided::strides_),
                   field("offset", &Strided::offset_));
  }

 private:
  DType dtype_;
  Extents extents_;
  Strides strides_;
  index_t offset_;
};

/// The adjoint: a 1-D array of n elements of a dtype with the sums of the elements at one address,
/// and 0 elsewhere.
class StridedAdjoint final : public Declared<StridedAdjoint> {
 public:
  StridedAdjoint(DType dtype, index_t n, Strides strides, index_t offset)
      : dtype_(dtype), n_(n), strides_(std::move(strides)), offset_(offset) {}

  const Strides& strides() const { return strides_; }
  index_t offset() const { return offset_; }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan) const override { return {{n_}}; }
  Linearity linear_in(const Apply& apply, int in) const override;
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
  static std::string misfit(DType, index_t n, const Strides&, index_t) {
    return n < 0 ? "a negative extent" : "";
  }
  static constexpr auto declaration() {
    return declare("StridedAdjoint", field("dtype", &StridedAdjoint::dtype_),
                   field("n", &StridedAdjoint::n_), field("strides", &StridedAdjoint::strides_),
                   field("offset", &StridedAdjoint::offset_));
  }

 private:
  DType dtype_;
  index_t n_;
  Strides strides_;
  index_t offset_;
};

}  // namespace palimpsest::ops
