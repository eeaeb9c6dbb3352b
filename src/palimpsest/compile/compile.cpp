// SPDX-License-Identifier: Apache-2.0
// function(): makes a program of the user's graph, in this order:
//  1. inputs and updates are resolved and checked
//  2. givens are applied to outputs and updates
//  3. default updates are collected, with the containers that they need, until no new one comes
//  4. containers reached through several variables become one input
//  5. missing roots and unneeded inputs are found
//  6. the graph is cloned, protected and rewritten
#include "palimpsest/compile/compile.hpp"

#include <algorithm>

#include "palimpsest/base/log.hpp"
#include "palimpsest/base/pointer_map.hpp"
#include "palimpsest/base/stop_watch.hpp"
#include "palimpsest/compile/inner_graphs.hpp"
#include "palimpsest/compile/resolve.hpp"
#include "palimpsest/compile/stages/staged.hpp"
#include "palimpsest/inspect/mode_named.hpp"
#include "palimpsest/ops/loop/loop_op.hpp"
#include "palimpsest/plan/part_places.hpp"
#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {
namespace {

// Adds the config's tags to the mode.
Mode chosen_mode(const FunctionOptions& options, const Config& config) {
  const auto tags = [](const std::vector<std::string>& words) {
    return Mode::Tags(words.begin(), words.end());
  };
  const Mode mode = options.mode ? *options.mode : mode_named(config.mode);
  return mode.including(tags(config.rewrites_including)).excluding(tags(config.rewrites_excluding));
}

bool contains(std::span<const Variable> list, const Variable& v) {
  return std::find(list.begin(), list.end(), v) != list.end();
}

class Compiler {
 public:
  Compiler(std::vector<In> inputs, Outputs outputs, FunctionOptions options)
      : options_(std::move(options)),
        config_(shared_config()),
        mode_(chosen_mode(options_, *config_)),
        inputs_(resolve_inputs(inputs, options_.allow_input_downcast)),
        is_single_(outputs.is_single()) {
    for (const ResolvedInput& input : inputs_) cut_.push_back(input.variable);
    for (const Out& out : outputs.list()) {
      if (!out.variable.defined()) {
        throw ValueError("[function] output " + std::to_string(out_options_.size()) +
                         " is undefined");
      }
      results_.push_back(out.variable);
      out_options_.push_back(out.options);
    }
  }

  Compiled run() {
    const Substitution substitution(options_.givens, cut_, options_.rebuild_strict);
    collect_updates();
    results_ = substitution(results_);
    for (ResolvedUpdate& update : updates_) apply(substitution, update);
    collect_default_updates(substitution);
    drop_updates_by_themselves();
    fix_extents_of_updates();
    gather_containers();
    check_roots();
    check_all_used(substitution);
    return finish();
  }

 private:
  // -- updates ---------------------------------------------------------------------------------

  static std::string name_of_cell(const Container& cell) {
    return cell.name().empty() ? cell.type().str() : "'" + cell.name() + "'";
  }

  void add_update(std::shared_ptr<Container> target, const Variable& value) {
    const auto is_same = [&](const ResolvedUpdate& other) { return other.target == target; };
    if (std::any_of(updates_.begin(), updates_.end(), is_same)) {
      throw ValueError("[function] several updates of " + name_of_cell(*target));
    }
    check_update_type(target->type(), value.type(), "function update of " + name_of_cell(*target));
    updates_.push_back({std::move(target), value});
  }

  void collect_updates() {
    for (const auto& [target, value] : options_.updates) {
      if (!target.defined()) throw ValueError("[function] updates: undefined variable");
      auto cell = container_of(target);
      if (!target.is_root() || !cell) {
        throw TypeError("[function] updates: got " + target.str() + ", expected a shared variable");
      }
      if (!value.defined()) {
        throw ValueError("[function] update of " + name_of_cell(*cell) + " is undefined");
      }
      const Variable expression =
          expression_of(value, cell->type(), "function update of " + name_of_cell(*cell));
      add_update(std::move(cell), expression);
    }
    for (const ResolvedInput& input : inputs_) {
      if (input.update.defined()) add_update(input.container, input.update);
    }
  }

  void apply(const Substitution& substitution, ResolvedUpdate& update) const {
    update.value = substitution(update.value);
    check_update_type(update.target->type(), update.value.type(),
                      "function update of " + name_of_cell(*update.target));
  }

  void collect_default_updates(const Substitution& substitution) {
    if (options_.no_default_updates.all) return;
    PointerSet<const Container> seen;  // and those with another update, or excluded
    for (const Variable& excluded : options_.no_default_updates.list) {
      if (excluded.defined()) seen.insert(container_of(excluded).get());
    }
    for (const ResolvedUpdate& update : updates_) seen.insert(update.target.get());
    for (bool grows = true; grows;) {
      grows = false;
      for (const Variable& root : roots_of(all_outputs(), cut_)) {
        const auto cell = root.is_root() ? container_of(root) : nullptr;
        if (!cell || !seen.insert(cell.get())) continue;
        const Variable value = cell->default_update();
        if (!value.defined()) continue;
        updates_.push_back({cell, value});
        apply(substitution, updates_.back());
        grows = true;
      }
    }
  }

  // An update of a container by itself does nothing.
  void drop_updates_by_themselves() {
    std::erase_if(updates_, [](const ResolvedUpdate& update) {
      return update.value.is_root() && container_of(update.value) == update.target;
    });
  }

  // Extents of a new value that only its plan knows are compared then, before anything runs.
  void fix_extents_of_updates() {
    for (ResolvedUpdate& update : updates_) {
      const Container& cell = *update.target;
      update.value = with_extents_of(cell.type(), update.value, cell.name());
    }
  }

  std::vector<Variable> all_outputs() const {
    std::vector<Variable> all = results_;
    for (const ResolvedUpdate& update : updates_) all.push_back(update.value);
    return all;
  }

  // -- containers ------------------------------------------------------------------------------

  std::size_t index_of_cell(const std::shared_ptr<Container>& cell) {
    const auto [index, is_new] = cell_indices_.try_emplace(cell.get(), cells_.size());
    if (!is_new) return *index;
    cells_.push_back(cell);
    cell_specs_.push_back({cell->type(), cell->name(), {}, false, false});
    return cells_.size() - 1;
  }

  // A container reached through several variables is one input of the graph. A container that is
  // only the default value of an argument has that argument's input.
  void gather_containers() {
    std::vector<Variable> duplicates, originals;
    const auto add = [&](const std::shared_ptr<Container>& cell, const Variable& v) {
      const std::size_t c = index_of_cell(cell);
      std::vector<Variable>& variables = cell_specs_[c].variables;
      if (contains(variables, v)) return;
      if (!variables.empty()) {
        duplicates.push_back(v);
        originals.push_back(variables[0]);
      }
      variables.push_back(v);
    };
    for (const Variable& root : roots_of(all_outputs(), cut_)) {
      if (!root.is_root() || contains(cut_, root)) continue;
      if (const auto cell = container_of(root)) add(cell, root);
    }
    for (const ResolvedInput& input : inputs_) {
      if (input.is_implicit) add(input.container, input.variable);
    }
    PointerSet<const Container> defaults_of_arguments;
    for (const ResolvedInput& input : inputs_) {
      if (!input.is_implicit && input.container)
        defaults_of_arguments.insert(input.container.get());
    }
    for (const ResolvedUpdate& update : updates_) {
      if (defaults_of_arguments.contains(update.target.get())) continue;
      const std::size_t c = index_of_cell(update.target);
      if (cell_specs_[c].variables.empty()) {
        cell_specs_[c].variables.push_back(
            make_input(update.target->type(), update.target->name()));
      }
    }
    n_container_inputs_ = cells_.size();
    for (const ResolvedInput& input : inputs_) {
      if (input.container) index_of_cell(input.container);
    }
    for (ResolvedUpdate& update : updates_) {
      const std::size_t c = index_of_cell(update.target);
      cell_specs_[c].is_updated = true;
      updated_.push_back(static_cast<int>(c));
    }
    if (duplicates.empty()) return;
    std::vector<Variable> from = explicit_variables(), to = from;
    from.insert(from.end(), duplicates.begin(), duplicates.end());
    to.insert(to.end(), originals.begin(), originals.end());
    results_ = clone_graph(results_, from, to);
    for (ResolvedUpdate& update : updates_) {
      update.value = clone_graph({&update.value, 1}, from, to)[0];
    }
  }

  std::vector<Variable> explicit_variables() const {
    std::vector<Variable> result;
    for (const ResolvedInput& input : inputs_) {
      if (!input.is_implicit) result.push_back(input.variable);
    }
    return result;
  }

  std::vector<Variable> graph_inputs() const {
    std::vector<Variable> result = explicit_variables();
    for (std::size_t c = 0; c < n_container_inputs_; ++c) {
      result.push_back(cell_specs_[c].variables[0]);
    }
    return result;
  }

  // -- checks ----------------------------------------------------------------------------------

  void check_roots() const {
    const std::vector<Variable> outputs = all_outputs(), inputs = graph_inputs();
    for (const Variable& root : roots_of(outputs, inputs)) {
      if (root.is_constant() || contains(inputs, root)) continue;
      throw MissingInputError(
          "[function] " + root.str() +
          " is needed but is neither an input, a constant nor a shared variable: " +
          path_from(root, outputs, inputs) + ". Try to add it to the inputs or to givens");
    }
    if (options_.accept_inplace) return;
    for (const Apply& node : applications_of(outputs, inputs)) {
      if (overwritten_inputs(node).empty()) continue;
      throw TypeError("[function] " + node.op().name() +
                      " overwrites an input. Try accept_inplace = true, or its pure twin " +
                      node.op().pure()->name());
    }
  }

  void check_all_used(const Substitution& substitution) const {
    const Reaction reaction = options_.on_unused_input.value_or(config_->on_unused_input);
    if (reaction == Reaction::ignore) return;
    std::vector<Variable> needed = all_outputs();
    needed.insert(needed.end(), substitution.replacements().begin(),
                  substitution.replacements().end());
    needed = roots_of(needed, cut_);
    for (const ResolvedInput& input : inputs_) {
      if (contains(needed, input.variable) || input.update.defined()) continue;
      // Merged with another variable on its container.
      if (input.is_implicit) {
        const auto is_same = [&](const Variable& v) { return container_of(v) == input.container; };
        if (std::any_of(needed.begin(), needed.end(), is_same)) continue;
      }
      const std::string text = "[function] input " + input.variable.str() +
                               " is not needed by any output, update or given";
      if (reaction == Reaction::raise) {
        throw UnusedInputError(text + ". Try on_unused_input = Reaction::ignore");
      }
      log(LogLevel::warn, text);
    }
  }

  // -- the program -----------------------------------------------------------------------------

  FunctionGraph protected_graph() const {
    FunctionGraph graph(graph_inputs(), all_outputs());
    const auto guard = [&](const Variable& v, bool may_write, bool is_container) {
      if (!may_write) graph.protect(v);
      if (is_container) graph.overwrite_last(v);
    };
    std::size_t i = 0;
    for (const ResolvedInput& input : inputs_) {
      if (input.is_implicit) continue;
      guard(graph.inputs()[i++], input.is_mutable, input.container != nullptr);
    }
    for (std::size_t c = 0; c < n_container_inputs_; ++c) {
      guard(graph.inputs()[i + c], cell_specs_[c].is_updated, true);
    }
    return graph;
  }

  void add_hint_for_default(RewriteHints& hints, const FunctionGraph& graph,
                            const ResolvedInput& input, std::size_t position) const {
    for (std::size_t u = 0; u < updates_.size(); ++u) {
      if (!input.container || updates_[u].target != input.container) continue;
      hints.preferred_memory.emplace_back(graph.outputs()[results_.size() + u],
                                          graph.inputs()[position]);
    }
  }

  RewriteHints hints_for(const FunctionGraph& graph) const {
    RewriteHints hints;
    const std::size_t n_explicit = graph.inputs().size() - n_container_inputs_;
    for (std::size_t u = 0; u < updated_.size(); ++u) {
      const auto c = static_cast<std::size_t>(updated_[u]);
      if (c >= n_container_inputs_) continue;
      hints.preferred_memory.emplace_back(graph.outputs()[results_.size() + u],
                                          graph.inputs()[n_explicit + c]);
    }
    for (std::size_t i = 0, k = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].is_implicit) continue;
      add_hint_for_default(hints, graph, inputs_[i], k++);
    }
    return hints;
  }

  RewriteOptions rewrite_options() const {
    RewriteOptions options{mode_.selection(), config_->on_opt_error, {}};
    if (config_->rewrite_trace) {
      options.trace = [](const std::string& line) { log(LogLevel::warn, line); };
    }
    return options;
  }

  FunctionGraph rewritten_graph(std::vector<RewriteProfile>* reports,
                                const FeatureMaker& make_feature) const {
    FunctionGraph graph = protected_graph();
    ops::drop_unused_of_loops(graph);
    const RewriteOptions options = rewrite_options();
    RewriteHints hints = hints_for(graph);
    reports->clear();
    refusals_->clear();
    hints.refusals = refusals_.get();
    const std::shared_ptr<Feature> feature = make_feature ? make_feature() : nullptr;
    if (feature) graph.add_feature(feature);
    rewrite_graph(graph, hints, options, reports);
    rewrite_bodies(graph, options, reports, refusals_.get());
    graph.validate();
    if (feature) graph.remove_feature(feature);
    return graph;
  }

  FunctionGraph optimized_graph(std::vector<RewriteProfile>* reports,
                                std::shared_ptr<const CompileFacts>* facts) const {
    if (!mode_.inspection()) return rewritten_graph(reports, {});
    return mode_.inspection()->compile(
        {[&] { return protected_graph(); },
         [&](const FeatureMaker& make) { return rewritten_graph(reports, make); }},
        facts);
  }

  Compiled finish() {
    std::vector<RewriteProfile> reports;
    std::shared_ptr<const CompileFacts> facts;
    auto program =
        make_program(optimized_graph(&reports, &facts),
                     {.mode = mode_.base(),
                      .inspection = mode_.inspection(),
                      .config = config_,
                      .budget = options_.budget_bytes ? options_.budget_bytes : config_->budget,
                      .outputs = std::move(out_options_),
                      .is_single = is_single_,
                      .trust_input = options_.trust_input,
                      .places_joins = mode_.selection().contains(place_joins()),
                      .keeps_bits = mode_.selection().keeps_bits()});
    program->facts = std::move(facts);
    program->rewrites = std::move(reports);
    program->refusals = std::move(*refusals_);
    for (ResolvedInput& input : inputs_) {
      const int cell = input.container ? static_cast<int>(index_of_cell(input.container)) : -1;
      if (input.is_implicit) {
        program->implicit.push_back({input.variable, std::move(input.name), cell});
        continue;
      }
      program->arguments.push_back({input.variable, input.variable.type(), std::move(input.name),
                                    cell, input.filter, input.is_mutable, input.borrow});
    }
    program->containers = std::move(cell_specs_);
    program->n_container_inputs = n_container_inputs_;
    program->updated = std::move(updated_);
    program->finish();
    program->compile_seconds = watch_.seconds();
    return {std::move(program), std::move(cells_)};
  }

  StopWatch watch_;
  FunctionOptions options_;
  std::shared_ptr<const Config> config_;
  Mode mode_;
  std::vector<ResolvedInput> inputs_;
  std::vector<Variable> cut_;  // all inputs: the graph ends there
  bool is_single_;
  std::vector<Variable> results_;
  std::vector<OutOptions> out_options_;
  std::vector<ResolvedUpdate> updates_;
  std::vector<std::shared_ptr<Container>> cells_;
  PointerMap<const Container, std::size_t> cell_indices_;
  std::vector<ContainerSpec> cell_specs_;
  std::size_t n_container_inputs_ = 0;
  std::vector<int> updated_;
  // The refusals of the last run of the in-place passes.
  std::unique_ptr<std::vector<InplaceRefusal>> refusals_ =
      std::make_unique<std::vector<InplaceRefusal>>();
};

}  // namespace

std::shared_ptr<Program> make_program(FunctionGraph graph, ProgramOptions options) {
  return std::make_shared<Program>(std::move(graph), std::move(options), &StagedProgram::make);
}

Compiled compile(std::vector<In> inputs, Outputs outputs, FunctionOptions options) {
  return Compiler(std::move(inputs), std::move(outputs), std::move(options)).run();
}

}  // namespace palimpsest
