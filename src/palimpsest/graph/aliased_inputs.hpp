// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "palimpsest/base/pointer_map.hpp"
#include "palimpsest/graph/op.hpp"

namespace palimpsest {

/// The inputs in whose memory the outputs of nodes may lie, by view_map and destroy_map. Asks each
/// node only once: its maps may be as long as its list of outputs.
class AliasedInputs {
 public:
  /// Positions among the inputs of the value's owner, views first; none for a root.
  std::span<const int> of(const Variable& v) {
    const Apply owner = v.owner();
    if (!owner.defined()) return {};
    const auto [node, is_new] = nodes_.try_emplace(owner.node());
    if (is_new) {
      node->apply = owner;
      node->of_outputs.resize(owner.output_count());
      for (const AliasMap& map : {owner.op().view_map(owner), owner.op().destroy_map(owner)}) {
        for (const auto& [output, inputs] : map) {
          auto& list = node->of_outputs[static_cast<std::size_t>(output)];
          list.insert(list.end(), inputs.begin(), inputs.end());
        }
      }
    }
    return node->of_outputs[static_cast<std::size_t>(v.index())];
  }

 private:
  struct Node {
    Apply apply;  // so that no address is used twice
    std::vector<std::vector<int>> of_outputs;
  };
  PointerMap<const ApplyNode, Node> nodes_;
};

}  // namespace palimpsest
