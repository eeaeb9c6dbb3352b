// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/ops/parameters.hpp"
#include "palimpsest/ops/shape/view_op.hpp"

namespace palimpsest::ops {

/// Its input, dense in row-major order: a view if the input lies so, else a copy.
class Contiguous final : public Declared<Contiguous, ViewOp> {
 public:
  Extents result_extents(std::span<const index_t> in) const override { return in; }
  std::optional<Layout> layout_of(const Layout& in) const override {
    return in.is_dense() ? std::optional(in) : std::nullopt;
  }
  std::vector<Variable> pullback(const Apply&, CotangentSpan cotangents) const override {
    return {cotangents[0]};
  }
  void run(RunContext& context) const override;
  static constexpr auto declaration() { return declare("Contiguous"); }
};

/// An op with results that may differ in a bit for another memory layout of inputs or results,
/// because it adds in the fastest order for the layout. All other ops depend on values alone.
class RoundsByLayout {
 public:
  virtual ~RoundsByLayout() = default;
};
inline bool rounds_by_layout(const Apply& node) {
  return dynamic_cast<const RoundsByLayout*>(&node.op()) != nullptr;
}

}  // namespace palimpsest::ops
