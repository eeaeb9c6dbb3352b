// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <utility>

#include "palimpsest/graph/function_graph.hpp"

namespace palimpsest::reference {

/// The alias analysis of a graph straight from the definitions: every overlap from all ways between
/// all variables, every constraint from all triples of node, overwritten input and member. Uses
/// nothing of the graph but its outputs, nodes, inputs and what it was told about these.
struct Analysis {
  InconsistencyKind kind = InconsistencyKind::none;
  std::string text;  // of one of the gravest faults
  std::set<std::pair<const ApplyNode*, const ApplyNode*>> constraints;
  std::set<std::pair<const ApplyNode*, const ApplyNode*>> data;
  std::vector<Apply> nodes;
};
Analysis analyse(const FunctionGraph& graph);

/// How the answers of the graph differ from the reference; empty where they agree.
std::string difference(const FunctionGraph& graph);

}  // namespace palimpsest::reference
