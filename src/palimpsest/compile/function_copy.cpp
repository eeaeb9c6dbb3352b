// SPDX-License-Identifier: Apache-2.0
// Copies of functions: the optimized graph is shared, nothing is rewritten again.
#include <algorithm>

#include "palimpsest/base/pointer_map.hpp"
#include "palimpsest/compile/compile.hpp"
#include "palimpsest/compile/workspace.hpp"
#include "palimpsest/run/function_state.hpp"

namespace palimpsest {
namespace {

// Replaces every step that overwrites the memory of `root` by its pure twin. Later steps that work
// in place on the twin's result may stay: that memory belongs to the function.
void make_pure(FunctionGraph& graph, const Variable& root) {
  for (;;) {
    const std::vector<Apply> destroyers = graph.destroyers(root);
    if (destroyers.empty()) return;
    const std::vector<Apply> order = graph.toposort();
    const auto first = std::find_if(order.begin(), order.end(), [&](const Apply& node) {
      return std::find(destroyers.begin(), destroyers.end(), node) != destroyers.end();
    });
    const Apply twin = first->op().pure()->make_node(first->inputs());
    std::vector<std::pair<Variable, Variable>> pairs;
    for (std::size_t k = 0; k < first->output_count(); ++k) {
      pairs.emplace_back(first->output(k), twin.output(k));
    }
    graph.replace_all(pairs, "delete_updates");
  }
}

bool is_needed(const FunctionGraph& graph, const Variable& v) { return !graph.uses(v).empty(); }

}  // namespace

std::shared_ptr<const Program> without_updates(const Program& program, std::vector<int>* kept) {
  const auto& before = program.graph;
  const std::size_t n_arguments = program.arguments.size();
  FunctionGraph graph(before.inputs(), {before.outputs().begin(),
                                        before.outputs().begin() +
                                            static_cast<std::ptrdiff_t>(program.outputs.size())});
  for (std::size_t c = 0; c < program.n_container_inputs; ++c) {
    make_pure(graph, graph.inputs()[n_arguments + c]);
  }
  // The remaining graph, with only the inputs that it still needs.
  std::vector<Variable> inputs;
  std::vector<ArgumentSpec> arguments;
  std::vector<int> new_index(program.containers.size(), -1);
  const auto keep_container = [&](int c) {
    int& index = new_index[static_cast<std::size_t>(c)];
    if (index >= 0) return index;
    index = static_cast<int>(kept->size());
    kept->push_back(c);
    return index;
  };
  for (std::size_t i = 0; i < n_arguments; ++i) {
    const bool was_needed = is_needed(before, before.inputs()[i]);
    if (was_needed && !is_needed(graph, graph.inputs()[i])) continue;
    inputs.push_back(graph.inputs()[i]);
    arguments.push_back(program.arguments[i]);
  }
  for (std::size_t c = 0; c < program.n_container_inputs; ++c) {
    if (!is_needed(graph, graph.inputs()[n_arguments + c])) continue;
    inputs.push_back(graph.inputs()[n_arguments + c]);
    keep_container(static_cast<int>(c));
  }
  const std::size_t n_container_inputs = kept->size();
  for (ArgumentSpec& spec : arguments) {
    if (spec.container >= 0) spec.container = keep_container(spec.container);
  }
  auto result = make_program(FunctionGraph(inputs, graph.outputs()), program);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool may_write = i < arguments.size() && arguments[i].is_mutable;
    if (!may_write) result->graph.protect(result->graph.inputs()[i]);
  }
  result->graph.validate();
  result->arguments = std::move(arguments);
  for (const ImplicitSpec& spec : program.implicit) {
    const int c = new_index[static_cast<std::size_t>(spec.container)];
    if (c >= 0) result->implicit.push_back({spec.variable, spec.name, c});
  }
  for (int c : *kept) {
    ContainerSpec spec = program.containers[static_cast<std::size_t>(c)];
    spec.is_updated = spec.is_lent = false;
    result->containers.push_back(std::move(spec));
  }
  result->n_container_inputs = n_container_inputs;
  result->finish();
  return result;
}

Function Function::copy(const CopyOptions& options) const {
  if (!impl_) throw ValueError("[Function] undefined: expected one that function() made");
  std::shared_ptr<const Program> program = impl_->program;
  std::vector<std::shared_ptr<Container>> containers = impl_->containers;
  for (const auto& [old, with] : options.swap) {
    const auto it =
        std::find(impl_->containers.begin(), impl_->containers.end(), old.container_ptr());
    if (it == impl_->containers.end()) {
      throw ValueError("[copy] swap: '" + old.name() + "' is not used by the function");
    }
    if (!(old.type() == with.type())) {
      throw TypeError("[copy] swap of '" + old.name() + "': got " + with.type().str() +
                      ", expected " + old.type().str());
    }
    containers[static_cast<std::size_t>(it - impl_->containers.begin())] = with.container_ptr();
  }
  PointerSet<const Container> distinct;
  for (const auto& container : containers) {
    if (distinct.insert(container.get())) continue;
    throw ValueError("[copy] swap: two inputs of the function would be container '" +
                     container->name() + "'");
  }
  if (options.delete_updates && !program->updated.empty()) {
    std::vector<int> kept;
    program = without_updates(*program, &kept);
    std::vector<std::shared_ptr<Container>> remaining;
    for (int c : kept) remaining.push_back(containers[static_cast<std::size_t>(c)]);
    containers = std::move(remaining);
  }
  auto made = std::make_shared<FunctionState>(std::move(program), std::move(containers),
                                              options.name.value_or(impl_->name + " copy"),
                                              options.profile.value_or(impl_->profiler != nullptr));
  made->pool->set_allow_gc(impl_->pool->allows_gc());
  if (options.share_memory) made->pool = impl_->pool;
  return Function(std::move(made));
}

Function with_workspace_of(const Function& f, const Function& other) {
  const FunctionState& state = f.impl();
  auto made = std::make_shared<FunctionState>(state.program, state.containers, state.name,
                                              state.profiler != nullptr);
  made->pool = other.impl().pool;
  made->pool->share_arenas();
  return Function(std::move(made));
}

}  // namespace palimpsest
