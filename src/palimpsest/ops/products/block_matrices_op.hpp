// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/graph/op.hpp"
#include "palimpsest/kernels/arrays/block_matrices.hpp"

namespace palimpsest::ops {

/// Inputs: the array, the threshold, and the shift of the blocks.
class SoftenSingularValues final : public Op {
 public:
  explicit SoftenSingularValues(Extents axes, bool in_place = false)
      : axes_(std::move(axes)), in_place_(in_place) {}

  std::string name() const override {
    return in_place_ ? "SoftenSingularValuesInPlace" : "SoftenSingularValues";
  }
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  AliasMap destroy_map(const Apply&) const override;
  OpPtr inplace_on_inputs(const Apply& apply, const std::set<int>& allowed) const override;
  OpPtr pure() const override;
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override;
  std::size_t scratch_bytes(const Apply& apply, std::span<const Layout> inputs) const override;
  void run(RunContext& context) const override;

 private:
  Extents axes_;
  bool in_place_;
};

class NuclearNorms final : public Op {
 public:
  explicit NuclearNorms(Extents axes) : axes_(std::move(axes)) {}

  std::string name() const override { return "NuclearNorms"; }
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override;
  std::size_t scratch_bytes(const Apply& apply, std::span<const Layout> inputs) const override;
  void run(RunContext& context) const override;

 private:
  Extents axes_;
};

}  // namespace palimpsest::ops
