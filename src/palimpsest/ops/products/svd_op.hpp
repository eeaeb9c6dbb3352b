// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/graph/op.hpp"
#include "palimpsest/ops/parameters.hpp"

namespace palimpsest::ops {

/// Output: for each triplet its left vector, its singular value and its right vector.
class Svd final : public Declared<Svd> {
 public:
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan inputs) const override;
  std::size_t scratch_bytes(const Apply& apply, std::span<const Layout> inputs) const override;
  void run(RunContext& context) const override;
  static constexpr auto declaration() { return declare("Svd"); }
};

}  // namespace palimpsest::ops
