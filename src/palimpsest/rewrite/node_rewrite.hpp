// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/function_graph.hpp"

namespace PALIMPSEST_API palimpsest {

/// Counts of a rewrite: replacements in force, and replacements refused because they would have
/// overwritten a value that is still needed.
struct RewriteResult {
  RewriteResult(int n_applied = 0, int n_refused = 0) : applied(n_applied), refused(n_refused) {}
  int applied = 0;
  int refused = 0;
  RewriteResult& operator+=(const RewriteResult& other) {
    applied += other.applied;
    refused += other.refused;
    return *this;
  }
};

/// A variable per output of a node, undefined where the output stays; empty: nothing to replace.
using Replacements = std::vector<Variable>;

/// A rewrite of one node at a time.
struct NodeRewrite {
  /// Names it in traces, profiles, errors; it is a tag of its own.
  std::string name;
  /// Looks at a node of the graph and returns variables that compute the same. It builds new
  /// applications and changes nothing.
  std::function<Replacements(const FunctionGraph&, const Apply&)> apply;
  /// True if the replacements overwrite something: the rewrite then runs at position 49.5 or later.
  bool introduces_destroyers = false;
};

/// In which order the nodes are visited.
enum class WalkOrder { inputs_first, outputs_first };

/// Visits every node of the present graph once and applies the first of the rewrites that has a
/// replacement. New nodes of a replacement are not visited.
///
/// Contract  a replacement is validated; a refused one leaves no trace and is counted. Names, tags
///           and stack traces pass from the old variable to its replacement; a variable that must
///           not be overwritten is never replaced by one that may
/// Errors    ValueError: a rewrite returned another number of variables than the node has outputs;
///           TypeError, CycleError, MissingInputError: as FunctionGraph::replace
RewriteResult walk(FunctionGraph& graph, std::span<const NodeRewrite> rewrites,
                   WalkOrder order = WalkOrder::inputs_first);

/// Visits nodes, their replacements and the neighbours of these, until nothing can be replaced.
/// Errors  as walk(); InternalError: it does not come to an end
RewriteResult walk_to_fixed_point(FunctionGraph& graph, std::span<const NodeRewrite> rewrites);

/// Puts `other` in the place of every application of `op`, with the same inputs.
/// Errors  as walk(), and those of other's make_node
RewriteResult substitute(FunctionGraph& graph, const Op& op, const OpPtr& other,
                         std::string_view reason = "substitute");

}  // namespace palimpsest
