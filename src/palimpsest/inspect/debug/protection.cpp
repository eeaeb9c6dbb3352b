// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/inspect/debug/protection.hpp"

#include <memory>

#include "palimpsest/graph/graph_state.hpp"

namespace palimpsest {
namespace {

// Claims to overwrite its input.
class Claim final : public Op {
 public:
  std::string name() const override { return "DebugClaim"; }
  Apply make_node(std::span<const Variable> inputs) const override {
    return node(inputs, {inputs[0].type()});
  }
  AliasMap destroy_map(const Apply&) const override { return {{0, {0}}}; }
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override {
    return {inputs[0]};
  }
  bool can_fail() const override { return false; }
  void run(RunContext&) const override {}
};

// The same graph with more outputs and the same protection.
FunctionGraph copy_with(const FunctionGraph& graph, const std::vector<Variable>& more) {
  std::vector<Variable> outputs = graph.outputs();
  outputs.insert(outputs.end(), more.begin(), more.end());
  FunctionGraph copy(graph.inputs(), std::move(outputs));
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    if (graph.is_protected(graph.inputs()[i])) copy.protect(copy.inputs()[i]);
    if (graph.is_overwritten_last(graph.inputs()[i])) copy.overwrite_last(copy.inputs()[i]);
  }
  return copy;
}

void try_to_overwrite(const FunctionGraph& graph, const Variable& v, const std::string& role) {
  if (graph.state().has_no_elements(v)) return;
  const Variable inputs[] = {v};
  const auto claim = std::make_shared<const Claim>();
  const FunctionGraph trial = copy_with(graph, {claim->make_node(inputs).output(0)});
  if (!trial.consistent()) return;
  throw InternalError("[DebugMode] validation accepts an op that overwrites the " + role + " " +
                      v.str());
}

}  // namespace

void check_protection(const FunctionGraph& graph) {
  for (const Variable& v : graph.inputs()) {
    if (graph.is_protected(v)) try_to_overwrite(graph, v, "protected input");
  }
  for (const Variable& v : graph.outputs()) try_to_overwrite(graph, v, "output");
}

void check_alias_state(const FunctionGraph& graph) {
  const FunctionGraph fresh = copy_with(graph, {});
  const Inconsistency before = graph.check(), anew = fresh.check();
  if (before.kind == anew.kind && graph.overwritten_count() == fresh.overwritten_count()) return;
  throw InternalError("[DebugMode] the analysis that followed the rewrites says '" +
                      std::string(name_of(before.kind)) + "', one made from scratch '" +
                      std::string(name_of(anew.kind)) + "'");
}

}  // namespace palimpsest
