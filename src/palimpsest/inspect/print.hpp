// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/function_graph.hpp"
#include "palimpsest/plan/plan.hpp"

namespace PALIMPSEST_API palimpsest {

/// Form of the identifiers in `[id ..]`.
enum class IdType {
  characters,  // A, B, .. Z, BA, ..
  integers,
  addresses,
  none,
};

struct DebugPrintOptions {
  /// Levels to show; -1: all.
  int depth = -1;
  bool print_type = false;
  IdType id_type = IdType::characters;
  /// Named variables are shown without the graph that computes them.
  bool stop_on_name = false;
  bool print_destroy_map = true;
  bool print_view_map = true;
  /// The position of each op in the order of execution, where there is one.
  bool print_order = true;
  /// Shows the part of an input that a view shows (` r=0<-0:...`) or a step overwrites (`
  /// w=0:...`).
  bool print_regions = false;
  /// The bodies of loops, below the graph.
  bool print_inner_graphs = true;
  /// True: `@offset+bytes` of values in the arena, by the plan if one is given.
  bool print_memory = false;
};

/// A graph as a tree, one line per use: op, id, type, name, destroyed and viewed inputs, position.
/// A node that was shown before is one line with `···`.
///
///     Add [id A]
///      ├─ Add [id B] 'C'
///      │  ├─ A [id C]
///      │  └─ B [id D]
///      └─ E [id E]
std::string debugprint(const Variable& v, const DebugPrintOptions& options = {});
std::string debugprint(const std::vector<Variable>& list, const DebugPrintOptions& options = {});
std::string debugprint(const FunctionGraph& graph, const DebugPrintOptions& options = {},
                       const Plan* plan = nullptr);

/// A graph for Graphviz: data edges black, view edges blue, edges to overwritten inputs red,
/// ordering constraints dashed; with print_memory the buffers of the arena as clusters.
std::string to_dot(const Variable& v, const DebugPrintOptions& options = {});
std::string to_dot(const FunctionGraph& graph, const DebugPrintOptions& options = {},
                   const Plan* plan = nullptr);

/// A formula: `(x + y) * exp(z)`.
std::string pprint(const Variable& v);

}  // namespace palimpsest
