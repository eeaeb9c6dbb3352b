// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "palimpsest/graph/function_graph.hpp"

namespace palimpsest {

/// What the compiler knows about a graph beyond its nodes.
struct RewriteHints {
  /// (value, memory): the value is to replace the content of this input, so it is best computed
  /// in place there.
  std::vector<std::pair<Variable, Variable>> preferred_memory;
};

/// One pass over a graph: changes it through FunctionGraph's edits and returns how often.
struct Rewrite {
  std::string_view name;
  double position;  // inplace.md 8.1; passes that introduce destroying ops have 49.5 or more
  int (*run)(FunctionGraph& graph, const RewriteHints& hints);
};

/// All rewrites, ordered by position: the one list.
std::span<const Rewrite> rewrite_list();

/// Runs them all.
void rewrite_graph(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
