// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/graph/op.hpp"
#include "palimpsest/kernels/arrays/stencil.hpp"
#include "palimpsest/ops/parameters.hpp"
#include "palimpsest/ops/shape/contiguous_op.hpp"

namespace palimpsest::ops {

/// A filter along one axis, or its adjoint. A second input is the start.
class StencilOp final : public Declared<StencilOp>, public RoundsByLayout {
 public:
  StencilOp(Stencil stencil, bool adjoint) : stencil_(std::move(stencil)), adjoint_(adjoint) {}

  const Stencil& stencil() const { return stencil_; }
  bool is_adjoint() const { return adjoint_; }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  Linearity linear_in(const Apply&, int in) const override {
    return in == 0 ? Linearity::complex : Linearity::no;
  }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("Stencil", field(&StencilOp::stencil_),
                   named<StencilOp, bool>(&StencilOp::adjoint_, {{"", false}, {"Adjoint", true}}));
  }

 private:
  void check_start(const TensorType& start) const;

  Stencil stencil_;
  bool adjoint_;
};

}  // namespace palimpsest::ops
