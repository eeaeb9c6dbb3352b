// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/ops/parameters.hpp"

namespace palimpsest::ops {

/// Output 0 is input 0. The op is there for its side effect.
///
/// Aliases  view_map {0: {0}}; it runs although it is a view
class PassThrough : public Op {
 public:
  AliasMap view_map(const Apply&) const override { return {{0, {0}}}; }
  std::optional<Layout> view_layout(const Apply&, int, const Layout& in) const override {
    return in;
  }
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan inputs) const override {
    return {inputs[0]};
  }
  Linearity linear_in(const Apply&, int in) const override {
    return in == 0 ? Linearity::complex : Linearity::no;
  }
  std::vector<Variable> pushforward(const Apply&,
                                    std::span<const Variable> tangents) const override {
    return {tangents[0]};
  }

 protected:
  /// Copies input 0, unless the output is a view of it.
  static void pass(RunContext& context);
};

}  // namespace palimpsest::ops
