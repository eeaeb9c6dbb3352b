// SPDX-License-Identifier: Apache-2.0
// Internal: the memory in which the values of a graph lie, for the in-place passes.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "palimpsest/base/pointer_map.hpp"
#include "palimpsest/graph/aliased_inputs.hpp"
#include "palimpsest/graph/function_graph.hpp"

namespace palimpsest {

/// Follows first aliases: of a value that may lie in several places, one.
///
/// Contract  nodes are asked about in topological order and change only then; replaced() is told
class MemoryOfValues {
 public:
  /// `order` is the graph's.
  MemoryOfValues(const FunctionGraph& graph, const std::vector<Apply>& order);

  /// The root of the memory that v lies in, once all nodes before it have been asked about.
  const VariableNode* root(const Variable& v) { return find_root(v, roots_); }
  /// Bytes; unknown extents count as a thousand.
  static double bytes(const Variable& v);
  /// True if the node, at this place of the order, is the last that reads memory of v.
  bool is_last_reader(const Variable& v, std::size_t place);
  /// True if v shows a part of a buffer that could be freed before `result`, if `result` lay
  /// elsewhere.
  bool would_keep_more(const Variable& v, const Variable& result);
  /// An output that had memory of its own has been put in place.
  void replaced(const Variable& old, const Variable& with);

 private:
  using Roots = PointerMap<const VariableNode, const VariableNode*>;

  int aliased_input(const Variable& v);
  const VariableNode* find_root(const Variable& v, Roots& roots);
  void find_last_uses();
  bool shows_part(const Variable& v);

  const FunctionGraph& graph_;
  const std::vector<Apply>& order_;
  Roots roots_;
  AliasedInputs aliased_;
  PointerMap<const VariableNode, bool> is_part_;
  bool has_last_uses_ = false;
  PointerMap<const VariableNode, std::size_t> last_use_;  // of memory, by its root
  std::vector<Variable> kept_;                            // so that no address is used twice
};

}  // namespace palimpsest
