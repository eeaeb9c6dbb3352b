// SPDX-License-Identifier: Apache-2.0
// Internal: the result of a compilation, shared by a function and its copies.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest/base/call_lock.hpp"
#include "palimpsest/base/fork.hpp"
#include "palimpsest/plan/planner.hpp"
#include "palimpsest/run/inputs.hpp"
#include "palimpsest/run/inspection.hpp"
#include "palimpsest/run/mode.hpp"

namespace palimpsest {

/// An input that calls can give.
struct ArgumentSpec {
  Variable variable;  // as the user made it: the key for kw() and container()
  TensorType type;
  std::string name;    // the keyword; empty: none
  int container = -1;  // the source of its value in calls without one
  FilterOptions filter;
  bool is_mutable = false;
  bool borrow = false;
};

/// An input that calls cannot give.
struct ImplicitSpec {
  Variable variable;
  std::string name;
  int container = 0;
};

/// A cell that the program reads or updates. The cells themselves belong to the functions.
struct ContainerSpec {
  TensorType type;
  std::string name;
  /// The shared variables through which the graph reached it.
  std::vector<Variable> variables;
  bool is_updated = false;
  /// A borrowed output may show its memory itself.
  bool is_lent = false;
};

/// The plans of a program, one per signature. Plans are never moved nor dropped.
class PlanCache {
 public:
  struct Entry {
    std::vector<Layout> signature;
    Plan plan;
    /// Buffers that show the value of a graph input, or a constant, and which.
    std::vector<std::pair<int, int>> inputs = {}, constants = {};
    std::vector<std::size_t> output_buffers = {};
    /// Updates after which the container's tensor is the one that it was. The others are moving.
    std::vector<char> stays = {};
    std::vector<std::size_t> moving = {};
  };
  /// Entry whose signature `fits`, else a new one. Errors of planning pass through.
  template <class Fits, class Make>
  const Entry& find_or_make(Fits fits, Make make) {
    const std::lock_guard guard(lock_);
    for (const Entry& entry : entries_) {
      if (fits(entry.signature)) return entry;
    }
    Entry made = make();
    const ForkSection whole;
    return entries_.emplace_back(std::move(made));
  }

  /// The plan made last; null: none yet.
  const Plan* latest() {
    const std::lock_guard guard(lock_);
    return entries_.empty() ? nullptr : &entries_.back().plan;
  }

 private:
  CallLock lock_;
  std::deque<Entry> entries_;  // guarded by lock_; changed in a ForkSection
};

/// A program with extents that are known only while it runs. It is cut into stages, compiled one
/// after the other. Made by the compiler; see StagedProgram.
class Stages {
 public:
  struct Result {
    std::vector<Tensor> outputs;  // each with a Storage of its own
    index_t peak_bytes = 0;       // held above the inputs at the worst moment
  };
  virtual ~Stages() = default;
  /// Errors  those of the steps; BudgetError before a stage that would exceed the budget
  virtual Result run(std::span<const Tensor* const> inputs) const = 0;
};

/// The stages of a program, made when a call first needs them.
struct StagesSlot {
  std::once_flag once;
  std::shared_ptr<const Stages> made;
};

/// Options of a program, which do not follow from its graph: a program made from another one, or
/// read from a file, has the same.
struct ProgramOptions {
  Mode mode;                                     // without the inspection
  std::shared_ptr<const Inspection> inspection;  // null: nothing looks at the calls
  std::shared_ptr<const Config> config;
  std::optional<index_t> budget;
  std::vector<OutOptions> outputs;
  bool is_single = false, trust_input = false;
  bool places_joins = true;  // are inputs of joins computed in their slice of the result?
  bool keeps_bits = false;   // see RewriteSelection::keeps_bits()
};

/// An optimized graph and the roles of its inputs and outputs. Immutable but for the plans.
///
/// The graph's inputs are the arguments and then the containers; its outputs are the results and
/// then the updates. A container that is only the default value of an argument comes last among the
/// containers and has no input of its own.
struct Program : ProgramOptions {
  FunctionGraph graph;
  std::vector<ArgumentSpec> arguments;
  std::vector<ImplicitSpec> implicit;
  std::vector<ContainerSpec> containers;
  std::size_t n_container_inputs = 0;
  std::vector<int> updated;       // per update: which container
  std::vector<bool> overwritten;  // per graph input: does a step write its memory?
  std::vector<char> is_updated;   // per container
  bool overwrites_any = false;
  bool borrows_any = false;                   // does an output lie in the frame?
  std::shared_ptr<const CompileFacts> facts;  // of the inspection; null: none
  double compile_seconds = 0;
  std::vector<RewriteProfile> rewrites;  // of the run that succeeded
  std::vector<InplaceRefusal> refusals;  // of its in-place passes
  std::unique_ptr<PlanCache> plans = std::make_unique<PlanCache>();
  std::unique_ptr<StagesSlot> stages = std::make_unique<StagesSlot>();

  using StagesMaker = std::shared_ptr<const Stages> (*)(const Program&);
  Program(FunctionGraph made, ProgramOptions options, StagesMaker stages_maker)
      : ProgramOptions(std::move(options)), graph(std::move(made)), make_stages(stages_maker) {}
  StagesMaker make_stages;
  /// Fills in the members that follow from the others.
  void finish();
  std::size_t n_inputs() const { return arguments.size() + n_container_inputs; }
  /// The container behind a graph input, or -1.
  int container_of_input(std::size_t input) const {
    return input < arguments.size() ? arguments[input].container
                                    : static_cast<int>(input - arguments.size());
  }
  PlanCache::Entry make_plan_for(std::vector<Layout> signature) const;
  /// Does as f(). The inspection may replace an InferredShapesError.
  template <class F>
  auto with_checked_shapes(F&& f) const {
    try {
      return f();
    } catch (const InferredShapesError& error) {
      if (inspection) inspection->wrong_shapes(error, facts.get());
      throw;
    }
  }
  /// The input that an argument's or a container's buffer shows; -1 for other buffers.
  int input_behind(const PlannedBuffer& buffer) const {
    if (buffer.kind == BufferKind::argument) return buffer.index;
    if (buffer.kind != BufferKind::container) return -1;
    return static_cast<int>(arguments.size()) + buffer.index;
  }
  /// The stages, for signatures with run_time_extents in the plan.
  const Stages& staged() const;

 private:
  void note_places(PlanCache::Entry& entry) const;
};

}  // namespace palimpsest
