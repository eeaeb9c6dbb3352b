// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/feature.hpp"

#include <algorithm>
#include <unordered_set>

#include "palimpsest/graph/function_graph.hpp"

namespace palimpsest {
namespace {

[[noreturn]] void veto(int output, const Apply& node, const std::string& what) {
  Inconsistency fault{
      InconsistencyKind::refused_by_feature,
      node,
      node.output(0),
      {},
      {},
      {},
      "[validate] refused_by_feature: output " + std::to_string(output) + what + node.op().name()};
  throw InconsistencyError(std::move(fault));
}

}  // namespace

void History::on_change_input(const FunctionGraph&, const Use& use, const Variable& old,
                              const Variable& with, std::string_view) {
  if (is_moving_) return;
  // The rollback of an edit takes back its last changes.
  if (step_ > 0 && changes_[step_ - 1] == Change{use, with, old}) {
    changes_.resize(--step_);
    return;
  }
  changes_.resize(step_++);
  changes_.push_back({use, old, with});
}

void History::goto_step(FunctionGraph& graph, std::size_t step) {
  step = std::min(step, changes_.size());
  is_moving_ = true;
  try {
    for (; step_ > step; --step_) {
      const Change& c = changes_[step_ - 1];
      graph.redirect(c.use, c.old, "history");
    }
    for (; step_ < step; ++step_) {
      const Change& c = changes_[step_];
      graph.redirect(c.use, c.with, "history");
    }
  } catch (...) {
    is_moving_ = false;
    throw;
  }
  is_moving_ = false;
}

void NoOutputFromInplace::on_validate(const FunctionGraph& graph) {
  for (int output : outputs_) {
    const Apply owner = graph.outputs().at(static_cast<std::size_t>(output)).owner();
    if (owner.defined() && graph.contains(owner) && !overwritten_inputs(owner).empty()) {
      veto(output, owner, " must not come from a node that overwrites: got ");
    }
  }
}

void NoOutputInplaceOnInput::on_validate(const FunctionGraph& graph) {
  for (int output : outputs_) {
    std::vector<Variable> open{graph.outputs().at(static_cast<std::size_t>(output))};
    std::unordered_set<const VariableNode*> seen;
    while (!open.empty()) {
      const Variable v = open.back();
      open.pop_back();
      const Apply owner = v.owner();
      if (!owner.defined() || !graph.contains(owner)) continue;
      for (const auto& map : {owner.op().view_map(owner), owner.op().destroy_map(owner)}) {
        const auto it = map.find(v.index());
        if (it == map.end()) continue;
        for (int i : it->second) {
          const Variable& input = owner.input(static_cast<std::size_t>(i));
          if (graph.is_input(input)) {
            veto(output, owner, " must not lie in the memory of " + input.str() + ": got ");
          }
          if (seen.insert(input.node()).second) open.push_back(input);
        }
      }
    }
  }
}

void PreserveNames::on_change_input(const FunctionGraph&, const Use&, const Variable& old,
                                    const Variable& with, std::string_view) {
  if (with.name().empty() && !old.name().empty()) with.named(old.name());
}

}  // namespace palimpsest
