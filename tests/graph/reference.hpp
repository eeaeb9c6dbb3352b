// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <utility>

#include "palimpsest/graph/function_graph.hpp"

namespace palimpsest::reference {

/// The alias analysis of a graph, directly from the definitions: every overlap from all paths
/// between all variables, every constraint from all triples of node, overwritten input and member.
/// Uses only outputs, nodes, inputs and marks of the graph.
struct Analysis {
  InconsistencyKind kind = InconsistencyKind::none;
  std::string text;  // of one of the most serious faults
  std::set<std::pair<const ApplyNode*, const ApplyNode*>> constraints;
  std::set<std::pair<const ApplyNode*, const ApplyNode*>> data;
  std::vector<Apply> nodes;
};
Analysis analyse(const FunctionGraph& graph);

/// The differences between the graph's answers and the reference; empty if they agree.
std::string difference(const FunctionGraph& graph);

}  // namespace palimpsest::reference
