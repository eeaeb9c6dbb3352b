// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/graph/op.hpp"
#include "palimpsest/ops/parameters.hpp"

namespace palimpsest::ops {

/// Blocks of the last axes; `adjoint`: adds them up again.
class Blocks final : public Declared<Blocks> {
 public:
  Blocks(Extents image, Extents block, Extents stride, bool adjoint)
      : image_(std::move(image)),
        block_(std::move(block)),
        stride_(std::move(stride)),
        adjoint_(adjoint) {}

  const Extents& stride() const { return stride_; }
  bool is_adjoint() const { return adjoint_; }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  Linearity linear_in(const Apply&, int) const override { return Linearity::complex; }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
  static std::string misfit(const Extents& image, const Extents& block, const Extents& stride,
                            bool);
  static constexpr auto declaration() {
    return declare("", field("image", &Blocks::image_), field("block", &Blocks::block_),
                   field("stride", &Blocks::stride_),
                   named<Blocks, bool>(&Blocks::adjoint_,
                                       {{"ArrayToBlocks", false}, {"BlocksToArray", true}}));
  }

 private:
  Extents blocked() const;

  Extents image_, block_, stride_;
  bool adjoint_;
};

}  // namespace palimpsest::ops
