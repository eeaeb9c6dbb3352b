// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/graph/op.hpp"

namespace palimpsest::ops {

/// Inputs x and index arrays i_1 .. i_D of one rank (int64): y[b.., k..] = x[b.., i_1[k..], ..].
/// With `constant_indices` the indices are constants, checked when shapes are known; else each run
/// checks them before it writes.
class Gather final : public Op {
 public:
  explicit Gather(bool constant_indices) : constant_indices_(constant_indices) {}
  std::string name() const override { return "Gather"; }
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply,
                                    std::span<const Extents> inputs) const override;
  bool can_fail() const override { return !constant_indices_; }
  Linearity linear_in(const Apply& apply, int in) const override;
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;
  void run(RunContext& context) const override;

 private:
  bool constant_indices_;
};

/// Inputs y (b.., k..) and index arrays as of Gather: adds every element of y to its point in an
/// array of zeros (b.., sizes..).
class ScatterAdd final : public Op {
 public:
  ScatterAdd(Extents sizes, bool constant_indices)
      : sizes_(std::move(sizes)), constant_indices_(constant_indices) {}
  const Extents& sizes() const { return sizes_; }
  std::string name() const override { return "ScatterAdd"; }
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply,
                                    std::span<const Extents> inputs) const override;
  bool can_fail() const override { return !constant_indices_; }
  Linearity linear_in(const Apply& apply, int in) const override;
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;
  void run(RunContext& context) const override;

 private:
  Extents infer_shapes_of(std::span<const Extents> actual, std::span<const Extents> declared) const;

  Extents sizes_;
  bool constant_indices_;
};

}  // namespace palimpsest::ops
