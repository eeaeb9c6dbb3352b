// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/ops/parameters.hpp"
#include "palimpsest/ops/shape/view_op.hpp"

namespace palimpsest::ops {

/// Its input, without a derivative.
class StopGradient final : public Declared<StopGradient, ViewOp> {
 public:
  Extents result_extents(std::span<const index_t> in) const override { return in; }
  std::optional<Layout> layout_of(const Layout& in) const override { return in; }
  Linearity linear_in(const Apply&, int) const override { return Linearity::no; }
  std::vector<Variable> pullback(const Apply&, CotangentSpan) const override {
    return {Variable()};
  }
  static constexpr auto declaration() { return declare("StopGradient"); }
};

}  // namespace palimpsest::ops
