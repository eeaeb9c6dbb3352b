// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/function_graph.hpp"

namespace PALIMPSEST_API palimpsest {

/// An input of a node that it has a kernel to overwrite.
struct InplaceCandidate {
  int input = 0;
  OpPtr op;               // the variant that overwrites it
  Inconsistency refusal;  // none: overwriting it keeps the graph consistent
  bool is_possible() const { return refusal.kind == InconsistencyKind::none; }
};

/// Every input that a kernel could overwrite, with the answer whether it may and, if not, the fault
/// that replacing the node would meet. Exact, cycles included.
///
/// Contract  the graph is as before; marks made during the call are gone
/// Cost      visits the variables in that memory and their readers; a refused or unusual candidate
///           costs as much as trying it and taking it back
std::vector<InplaceCandidate> inplace_candidates(FunctionGraph& graph, const Apply& node);

/// The inputs with the answer yes, each by itself: replacing the node by the
/// variant that overwrites one of them is never refused, except by a Feature.
std::vector<int> fast_inplace_check(FunctionGraph& graph, const Apply& node,
                                    std::span<const int> inputs);

/// The first fault found in replacing the node by this variant, which overwrites the input; `none`
/// if there is no fault. Features are not asked.
InconsistencyKind inplace_refusal(FunctionGraph& graph, const Apply& node, const Apply& variant,
                                  int input);

/// The same for each input that the variant overwrites, as if it overwrote that one alone. Empty
/// optional where only a trial can tell.
///
/// Cost  visits the variables in the memory of each and their readers, and once the node's inputs
///       and outputs
std::map<int, std::optional<InconsistencyKind>> inplace_refusals(FunctionGraph& graph,
                                                                 const Apply& node,
                                                                 const Apply& variant);

}  // namespace palimpsest
