// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/graph/op.hpp"
#include "palimpsest/kernels/matrices/block_matrices.hpp"
#include "palimpsest/ops/in_place_twin.hpp"

namespace palimpsest::ops {

/// Lowers the singular values of shifted blocks. Inputs: the array, the threshold, the shift.
class SoftenSingularValues final : public InPlaceTwin<SoftenSingularValues> {
 public:
  explicit SoftenSingularValues(Extents axes, bool in_place = false)
      : InPlaceTwin(in_place), axes_(std::move(axes)) {}

  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan inputs) const override;
  std::size_t scratch_bytes(const Apply& apply, std::span<const Layout> inputs) const override;
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("SoftenSingularValues", field("axes", &SoftenSingularValues::axes_),
                   in_place_field(&SoftenSingularValues::in_place_));
  }

 private:
  Extents axes_;
};

class NuclearNorms final : public Declared<NuclearNorms> {
 public:
  explicit NuclearNorms(Extents axes) : axes_(std::move(axes)) {}

  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan inputs) const override;
  std::size_t scratch_bytes(const Apply& apply, std::span<const Layout> inputs) const override;
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("NuclearNorms", field("axes", &NuclearNorms::axes_));
  }

 private:
  Extents axes_;
};

}  // namespace palimpsest::ops
