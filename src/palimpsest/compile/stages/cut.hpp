// SPDX-License-Identifier: Apache-2.0
// Internal: the cut of a graph into stages.
#pragma once

#include <vector>

#include "palimpsest/plan/guards.hpp"

namespace palimpsest {

/// A part of a graph that runs as one.
struct ProgramStage {
  /// An application whose inputs' elements may decide extents, such as of an ifelse whose branches
  /// differ: it runs by itself.
  /// Undefined: the stage is a function from `inputs` to `outputs`.
  Apply node = {};
  int branch = -1;  // it runs only where this one is taken; -1: always
  /// False: it has one application, which only inner branches of several conditions need. Its error
  /// is one of those that read its values.
  bool is_needed = true;
  std::vector<Variable> inputs = {}, outputs = {};  // without constants; inputs once each
  std::vector<bool> is_lent = {};                   // per input: nothing but this stage needs it
  std::vector<Variable> last = {};                  // values that no later stage needs
};

/// The stages of a graph in the order in which they run. An application that runs by itself does so
/// as soon as its inputs can be there; all others run in the latest stage that comes before each
/// need of their values. So a stage is as large as it can be, and few values live between stages.
struct Cut {
  /// InternalError: no application of the graph decides extents.
  explicit Cut(const FunctionGraph& graph);

  std::vector<Apply> order;
  Branches::Nodes whole;  // choices that lie within one stage with all steps of their branches
  Branches branches;
  std::vector<ProgramStage> stages;
};

}  // namespace palimpsest
