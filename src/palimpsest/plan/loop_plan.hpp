// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "palimpsest/ops/loop/loop_op.hpp"
#include "palimpsest/plan/plan.hpp"

namespace palimpsest {

class Collective;

/// Plan of the body of a loop: made once for all steps, in memory that the step around it gets as
/// scratch.
///
/// A state with a history is computed in the rows of the history. Any other state has rows + 1
/// places that take turns; the place of the last step is the output, if there is one and it is
/// dense. A state of one row has one place in two cases: its step works in place, or the step makes
/// the new value elsewhere and copies it when nothing else reads the old one.
struct LoopPlan {
  struct StatePlaces {
    index_t row_bytes = 0;
    index_t count = 0;      // of places
    index_t distance = 0;   // between places in scratch
    index_t offset = 0;     // of the first place in scratch
    bool is_apart = false;  // the output lies as an init did that is overwritten, and is not dense
  };
  /// A result of the body, which goes to a dense place that differs from step to step.
  struct Result {
    Layout place;  // its type; byte offset 0
    index_t bytes = 0;
    bool is_direct = false;  // computed there; else it is copied
    bool stays = false;      // computed in the old value's place, and that is where it belongs
    index_t offset = -1;     // of its own buffer in scratch, if it is not computed there; -1: none
  };

  Apply node;  // keeps the loop and its body alive
  const ops::Loop* op = nullptr;
  std::shared_ptr<const FunctionGraph> graph;
  Plan body;
  std::optional<index_t> n_steps;  // nothing: an input tells
  std::vector<StatePlaces> states;
  std::vector<Result> results;
  index_t until_offset = 0;  // of the place of `until` in scratch
  index_t scratch_bytes = 0;
};

std::shared_ptr<const LoopPlan> make_loop_plan(const Apply& loop, std::span<const Layout> inputs);

/// The plans of the loops of one graph, each made once for the same layouts.
class LoopPlans {
 public:
  std::shared_ptr<const LoopPlan> find_or_make(const Apply& loop, std::span<const Layout> inputs);

 private:
  struct Entry {
    std::vector<Layout> inputs;
    std::shared_ptr<const LoopPlan> plan;
  };
  std::unordered_map<const ApplyNode*, std::vector<Entry>> entries_;
};

/// The number of measured steps of a plan: its own, then those in the bodies of its loops.
std::size_t measured_steps(const Plan& plan);

/// The first op that several processes run together, those in the bodies of loops included; null:
/// none.
const Collective* first_collective(const Plan& plan);
const Collective* first_collective(const PlannedStep& step);

}  // namespace palimpsest
