// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/function.hpp"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "palimpsest/compile/frame.hpp"
#include "palimpsest/compile/function_impl.hpp"
#include "palimpsest/compile/planner.hpp"
#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {
namespace {

// The shared variables that the outputs need, in order of first use.
void collect_shared(std::span<const Variable> outputs, std::span<const Variable> inputs,
                    std::vector<Variable>& found) {
  const auto visit = [&](const Variable& v) {
    if (!v.is_root() || !container_of(v)) return;
    if (std::find(inputs.begin(), inputs.end(), v) != inputs.end()) return;
    if (std::find(found.begin(), found.end(), v) == found.end()) found.push_back(v);
  };
  for (const Apply& node : applications_of(outputs, inputs)) {
    for (const Variable& v : node.inputs()) visit(v);
  }
  for (const Variable& v : outputs) visit(v);
}

void check_inputs(const std::vector<In>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Variable& v = inputs[i].variable;
    if (!v.defined()) throw ValueError("[function] input " + std::to_string(i) + " is undefined");
    if (v.is_constant()) {
      throw TypeError("[function] input " + v.str() + " is a constant. Try givens");
    }
    if (v.is_root() && container_of(v)) {
      throw TypeError("[function] input " + v.str() + " is a shared variable. Try givens");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (inputs[j].variable == v) {
        throw UnusedInputError("[function] " + v.str() + " is used twice in inputs");
      }
    }
  }
}

void check_updates(const Updates& updates) {
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const auto& [target, value] = updates[i];
    if (!target.type().is_super(value.type())) {
      throw TypeError("[function] update of '" + target.name() + "': got " + value.type().str() +
                      ", expected " + target.type().str());
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (updates[j].first.is(target)) {
        throw ValueError("[function] several updates of '" + target.name() + "'");
      }
    }
  }
}

}  // namespace

Function function(std::vector<In> inputs, std::vector<Out> outputs, FunctionOptions options) {
  check_inputs(inputs);
  check_updates(options.updates);
  std::vector<Variable> roots, results;
  for (const In& in : inputs) roots.push_back(in.variable);
  for (const Out& out : outputs) results.push_back(out.variable);
  for (const auto& [target, value] : options.updates) results.push_back(value);
  if (!options.givens.empty()) {
    std::vector<Variable> from, to;
    for (const auto& [old, with] : options.givens) {
      if (std::find(roots.begin(), roots.end(), old) != roots.end()) {
        throw ValueError("[function] givens: " + old.str() + " is an explicit input");
      }
      if (!old.type().is_super(with.type())) {
        throw TypeError("[function] givens: " + old.str() + " is " + old.type().str() + ", got " +
                        with.type().str());
      }
      from.push_back(old);
      to.push_back(with);
    }
    results = clone_graph(results, from, to);
  }
  std::vector<Variable> shared_inputs;
  collect_shared(results, roots, shared_inputs);
  for (const auto& [target, value] : options.updates) {
    if (std::find(shared_inputs.begin(), shared_inputs.end(), target.var()) ==
        shared_inputs.end()) {
      shared_inputs.push_back(target.var());
    }
  }
  // One container may be reached through several variables; it is bound once.
  std::vector<Variable> distinct;
  std::vector<std::shared_ptr<Container>> containers;
  std::vector<Variable> duplicates, originals;
  for (const Variable& v : shared_inputs) {
    const auto container = container_of(v);
    const auto it = std::find(containers.begin(), containers.end(), container);
    if (it == containers.end()) {
      containers.push_back(container);
      distinct.push_back(v);
    } else {
      duplicates.push_back(v);
      originals.push_back(distinct[static_cast<std::size_t>(it - containers.begin())]);
    }
  }
  if (!duplicates.empty()) results = clone_graph(results, duplicates, originals);
  roots.insert(roots.end(), distinct.begin(), distinct.end());

  FunctionGraph graph(roots, results);
  std::vector<bool> is_lent(inputs.size());
  std::vector<int> updated;
  for (const auto& [target, value] : options.updates) {
    const auto it = std::find(containers.begin(), containers.end(), target.container_ptr());
    updated.push_back(static_cast<int>(it - containers.begin()));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    is_lent[i] = inputs[i].options.is_mutable;
    if (!is_lent[i]) graph.protect(graph.inputs()[i]);
  }
  // A step that can fail must not find a container half updated, so containers are then left alone.
  const std::vector<Apply> nodes = graph.toposort();
  const bool can_fail = std::any_of(nodes.begin(), nodes.end(),
                                    [](const Apply& node) { return node.op().can_fail(); });
  for (std::size_t c = 0; c < containers.size(); ++c) {
    const bool is_updated =
        std::find(updated.begin(), updated.end(), static_cast<int>(c)) != updated.end();
    if (!is_updated || can_fail) graph.protect(graph.inputs()[inputs.size() + c]);
  }
  if (options.mode == Mode::fast_run) {
    RewriteHints hints;
    for (std::size_t u = 0; u < updated.size(); ++u) {
      hints.preferred_memory.emplace_back(
          graph.outputs()[outputs.size() + u],
          graph.inputs()[inputs.size() + static_cast<std::size_t>(updated[u])]);
    }
    rewrite_graph(graph, hints);
  }
  graph.validate();
  // The graph as it was given, with the constants that rewriting removed, is not kept.
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i].variable = graph.outputs()[i];
  return Function(std::make_shared<Function::Impl>(std::move(inputs), std::move(outputs),
                                                   std::move(graph), std::move(containers),
                                                   std::move(updated), std::move(options.name)));
}

void Function::call(std::span<const Tensor> arguments, std::span<Tensor> results,
                    CallReport* report) const {
  impl_->call(arguments, results, report);
}

void Function::call_into(std::span<const Tensor> arguments, std::span<Tensor> destinations) const {
  impl_->call_into(arguments, destinations);
}

const Plan& Function::plan(std::span<const Tensor> arguments) const {
  return impl_->plan(arguments);
}

const Plan& Function::plan(std::span<const TensorType> arguments) const {
  return impl_->plan(arguments);
}

std::size_t Function::output_count() const { return impl_->n_results(); }
const FunctionGraph& Function::graph() const { return impl_->graph(); }
const std::string& Function::name() const { return impl_->name(); }
void Function::prepare(std::span<const Tensor> arguments) const { impl_->prepare(arguments); }
void Function::free() const { impl_->free(); }

}  // namespace palimpsest
