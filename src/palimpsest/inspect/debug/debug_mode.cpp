// SPDX-License-Identifier: Apache-2.0
// DebugMode: rewriting is repeated and recorded when a function is compiled; a call runs the graph
// as the user wrote it, then the optimized one, each step isolated, and then the plan.
#include "palimpsest/inspect/debug/debug_mode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "palimpsest/inspect/debug/isolated_pass.hpp"
#include "palimpsest/inspect/debug/patterns.hpp"
#include "palimpsest/inspect/debug/plan_checks.hpp"
#include "palimpsest/inspect/debug/protection.hpp"
#include "palimpsest/inspect/debug/rewrite_record.hpp"
#include "palimpsest/rewrite/pipeline.hpp"
#include "palimpsest/run/program.hpp"

namespace palimpsest {
namespace {

// Rounding errors that rewriting a whole graph may cause, relative to its largest value.
constexpr double kRoundingsOfGraph = 4096;
// A replacement may stand for several nodes.
constexpr double kRoundingsOfReplacement = 4;

struct DebugFacts final : CompileFacts {
  DebugFacts(FunctionGraph original, std::shared_ptr<const RewriteRecord> made)
      : reference(std::move(original)), record(std::move(made)) {}
  FunctionGraph reference;
  std::shared_ptr<const RewriteRecord> record;
};

// Rewrites that keep every bit: those of the library that do not reorder arithmetic, and those of
// users that say so.
bool is_exact(const RewriteSelection& selection, const std::string& reason) {
  for (const Rewrite& rewrite : selection.added) {
    if (rewrite.name == reason) return rewrite.has_tag("exact");
  }
  for (const Rewrite& rewrite : rewrite_list()) {
    if (rewrite.name == reason) return !rewrite.has_tag("reorders");
  }
  return false;
}

void add_order(RewriteRecord& record, const FunctionGraph& graph) {
  for (const Apply& node : graph.toposort()) record.add_event("order: " + node.op().str());
}

class DebugInspection final : public Inspection {
 public:
  explicit DebugInspection(DebugOptions options) : options_(std::move(options)) {}
  std::string_view name() const override { return "DebugMode"; }

  FunctionGraph compile(const CompileAccess& access,
                        std::shared_ptr<const CompileFacts>* facts) const override {
    const auto rewritten = [&](std::shared_ptr<RewriteRecord>& record) {
      FunctionGraph graph = access.rewritten([&]() -> std::shared_ptr<Feature> {
        record = std::make_shared<RewriteRecord>();
        return record;
      });
      add_order(*record, graph);
      return graph;
    };
    std::shared_ptr<RewriteRecord> record;
    FunctionGraph graph = rewritten(record);
    for (int run = 1; run < options_.patience; ++run) {
      std::shared_ptr<RewriteRecord> other;
      rewritten(other);
      check_same_events(*record, *other, run);
    }
    check_protection(graph);
    check_alias_state(graph);
    *facts = std::make_shared<const DebugFacts>(access.original(), std::move(record));
    return graph;
  }

  void planned(const Plan& plan, const std::function<Plan()>& again) const override {
    for (int run = 1; run < options_.patience; ++run) check_same_plan(plan, again(), run);
  }

  void wrong_shapes(const InferredShapesError& error, const CompileFacts* facts) const override {
    const auto* const known = dynamic_cast<const DebugFacts*>(facts);
    StepContext context;
    context.pass = "production";
    context.node = error.node();
    if (known) context.reason = known->record->reason_of(error.node());
    throw_wrong_shapes(error, context);
  }

  std::unique_ptr<CallWatch> watch(const CallAccess& call) const override;

 private:
  void bind(IsolatedPass& pass, const std::vector<Variable>& inputs, const CallAccess& call) const;
  void check_replacements(IsolatedPass& pass, const RewriteRecord& record,
                          const RewriteSelection& selection) const;
  void check_outputs(const IsolatedPass& reference, const IsolatedPass& isolated,
                     const DebugFacts& facts, const Program& program) const;

  DebugOptions options_;
};

void DebugInspection::bind(IsolatedPass& pass, const std::vector<Variable>& inputs,
                           const CallAccess& call) const {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_argument = i < call.program.arguments.size();
    pass.bind(inputs[i], call.inputs[i]->view_of(),
              is_argument ? "argument " + std::to_string(i) : "shared variable");
  }
}

namespace {

// By how much a replacement may differ that is equal up to rounding.
Tolerance tolerance_of(IsolatedPass& pass, const RewriteRecord::Replacement& r, index_t results) {
  Tolerance tolerance;
  for (const Variable& v : {r.old, r.with}) {
    const Apply owner = v.owner();
    if (!owner.defined()) continue;
    double elements = 1;
    for (const Variable& input : owner.inputs()) {
      const DebugValue value = pass.evaluate(input);
      if (!value.defined()) continue;
      elements = std::max(elements, static_cast<double>(value.numel()));
      if (is_inexact(value.dtype())) {
        tolerance.scale = std::max(tolerance.scale, scale_of(value));
      }
    }
    const double terms = elements / std::max(1.0, static_cast<double>(results));
    tolerance.roundings =
        std::max(tolerance.roundings, kRoundingsOfReplacement * owner.op().tolerance(owner) *
                                          std::sqrt(std::max(1.0, terms)));
  }
  tolerance.roundings = std::max(tolerance.roundings, kRoundingsOfReplacement);
  return tolerance;
}

// True if one of the two variables follows, in the present graph, from the result of a rewrite that
// is equal up to rounding only. When the replacement was made both may have had the same inputs.
bool rests_on_inexact(const RewriteRecord::Replacement& r, const RewriteRecord& record,
                      const RewriteSelection& selection) {
  std::vector<Variable> rounded;
  const auto rests = [&](const Variable& v) {
    const auto is_rounded = [&](const Variable& w) {
      return std::find(rounded.begin(), rounded.end(), w) != rounded.end();
    };
    if (is_rounded(v)) return true;
    const std::vector<Apply> nodes = applications_of(std::span<const Variable>(&v, 1));
    return std::any_of(nodes.begin(), nodes.end(), [&](const Apply& node) {
      const std::vector<Variable> outputs = node.outputs();
      return std::any_of(outputs.begin(), outputs.end(), is_rounded);
    });
  };
  for (const RewriteRecord::Replacement& other : record.replacements()) {
    if (!is_exact(selection, other.reason) || rests(other.old)) rounded.push_back(other.with);
  }
  return rests(r.old) || rests(r.with);
}

}  // namespace

// Each variable that was replaced must have the value of the one in its place. Of nodes that only a
// refused attempt needed, memory and poison are checked, and nothing is compared.
void DebugInspection::check_replacements(IsolatedPass& pass, const RewriteRecord& record,
                                         const RewriteSelection& selection) const {
  for (const RewriteRecord::Replacement& r : record.replacements()) {
    if (r.uses == 0) continue;
    const DebugValue old = pass.evaluate(r.old), with = pass.evaluate(r.with);
    if (!old.defined() || !with.defined()) continue;
    const bool exact = is_exact(selection, r.reason);
    Difference difference =
        compare(old, with, exact ? Tolerance() : tolerance_of(pass, r, old.numel()));
    if (!difference.is_within && exact && rests_on_inexact(r, record, selection)) {
      difference = compare(old, with, tolerance_of(pass, r, old.numel()));
    }
    if (difference.is_within) continue;
    StepContext context;
    context.pass = "isolated";
    context.node = r.with.owner().defined() ? r.with.owner() : r.old.owner();
    context.reason = record.reason_of(context.node);
    for (const Variable& v : context.node.inputs()) context.inputs.push_back(pass.evaluate(v));
    const auto described = [](const Variable& v) {
      return v.owner().defined() ? v.str() + " = " + call_text(v.owner()) : v.str();
    };
    throw BadOptimization(
        DebugMessage("BadOptimization", context)
            .line(
                fmt::format("the rewrite {} replaced a variable by one of another value", r.reason))
            .line("old: " + described(r.old))
            .value("old value", old)
            .line("new: " + described(r.with))
            .value("new value", with)
            .line(difference.str())
            .finish(nullptr, "Look at the rewrite " + r.reason +
                                 "; mode options that exclude it make the error go away."),
        {r.reason, context.node, r.with, -1, r.with.owner().defined() ? r.with.index() : -1});
  }
  for (const RewriteRecord::Introduced& introduced : record.introduced()) {
    pass.evaluate(introduced.node.output(0));
  }
}

void DebugInspection::check_outputs(const IsolatedPass& reference, const IsolatedPass& isolated,
                                    const DebugFacts& facts, const Program& program) const {
  const FunctionGraph& graph = program.graph;
  const RewriteSelection& selection = program.mode.selection();
  Tolerance tolerance;
  const auto& replacements = facts.record->replacements();
  const bool exact = std::all_of(replacements.begin(), replacements.end(), [&](const auto& r) {
    return r.uses == 0 || is_exact(selection, r.reason);
  });
  if (!exact) tolerance = {kRoundingsOfGraph, reference.largest()};
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const Variable &old = facts.reference.outputs()[i], &with = graph.outputs()[i];
    const Difference difference = compare(reference.value(old), isolated.value(with), tolerance);
    if (difference.is_within) continue;
    throw BadOptimization(
        fmt::format("[DebugMode: BadOptimization] output {} {}: the optimized graph gives another "
                    "value than the graph as it was written\n  reference: {}\n  optimized: {}\n  "
                    "{}\n  Hint: no single replacement causes it; look for changes of the graph "
                    "without FunctionGraph's edits.",
                    i, with.str(), reference.value(old).str(), isolated.value(with).str(),
                    difference.str()),
        {{}, with.owner(), with, -1, static_cast<int>(i)});
  }
}

std::unique_ptr<CallWatch> DebugInspection::watch(const CallAccess& call) const {
  const auto* const facts = dynamic_cast<const DebugFacts*>(call.program.facts.get());
  const auto of_user = [](const Apply&) { return std::string(); };
  const auto no_step = [](const Apply&) { return -1; };
  using Operands = IsolatedPass::Operands;
  IsolatedPass reference(options_, "reference", Operands::dense, of_user);
  if (facts) {
    bind(reference, facts->reference.inputs(), call);
    reference.run(facts->reference, no_step);
  }
  const FunctionGraph& graph = call.program.graph;
  const auto isolated_pass = [&](Operands operands) {
    auto pass =
        std::make_shared<IsolatedPass>(options_, "isolated", operands, [facts](const Apply& node) {
          return facts ? facts->record->reason_of(node) : std::string();
        });
    bind(*pass, graph.inputs(), call);
    pass->run(graph, [&](const Apply& node) {
      for (std::size_t i = 0; i < call.plan.steps.size(); ++i) {
        if (call.plan.steps[i].node == node) return static_cast<int>(i);
      }
      return -1;
    });
    for (const Variable& v : graph.outputs()) pass->evaluate(v);
    return pass;
  };
  auto isolated = isolated_pass(Operands::dense);
  if (facts) {
    for (const Variable& v : facts->reference.outputs()) reference.evaluate(v);
    check_replacements(*isolated, *facts->record, call.program.mode.selection());
    check_outputs(reference, *isolated, *facts, call.program);
  }
  if (!options_.check_plan) return std::make_unique<CallWatch>();
  check_placement(call.plan);
  if (isolated->has_met_strides()) isolated = isolated_pass(Operands::planned);
  return std::make_unique<PlanWatch>(options_, call, [isolated](const Variable& v) {
    return isolated->has(v) ? isolated->value(v) : DebugValue();
  });
}

void check(const DebugOptions& options) {
  check_pattern_names(options.preallocated);
  if (options.patience < 1) {
    throw ValueError(
        fmt::format("[DebugMode] patience: got {}, expected at least 1", options.patience));
  }
  if (options.preallocated_ndim < 0) {
    throw ValueError(fmt::format("[DebugMode] preallocated_ndim: got {}, expected at least 0",
                                 options.preallocated_ndim));
  }
  if (std::any_of(options.threads.begin(), options.threads.end(), [](int n) { return n < 0; })) {
    throw ValueError("[DebugMode] threads: got a negative number, expected 0 (all) or more");
  }
  if (options.guard_pages != "auto" && options.guard_pages != "off") {
    throw ValueError("[DebugMode] guard_pages: got '" + options.guard_pages +
                     "', expected auto or off");
  }
  if (options.check_branches != "both" && options.check_branches != "taken") {
    throw ValueError("[DebugMode] check_branches: got '" + options.check_branches +
                     "', expected both or taken");
  }
}

}  // namespace

Mode DebugMode(DebugOptions options) {
  check(options);
  const Mode base = options.base;
  return {base, std::make_shared<const DebugInspection>(std::move(options))};
}

}  // namespace palimpsest
