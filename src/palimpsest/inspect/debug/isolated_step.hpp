// SPDX-License-Identifier: Apache-2.0
// Internal: one step, run on private copies between guard pages, and its effects on them.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "palimpsest/inspect/debug/debug_message.hpp"
#include "palimpsest/inspect/debug/debug_mode.hpp"
#include "palimpsest/inspect/debug/guarded_memory.hpp"

namespace palimpsest {

class InferredShapesError;
struct LoopPlan;

/// Destination of a result: a layout that starts `lead` bytes behind the start of its buffer.
struct Destination {
  Layout layout;
  index_t lead = 0;
};

/// Everything about one run that is not the same in all runs of a step.
struct RunSetup {
  RunLabel label;
  Side side = Side::lower;
  std::byte poison{};
  /// Empty: dense ones.
  std::vector<Destination> destinations;
  /// Previous contents of the destinations; empty: poison.
  std::vector<DebugValue> previous;
};

struct RunOutcome {
  std::vector<DebugValue> outputs;
  /// Per output: did the op give its place, instead of writing into the destination?
  std::vector<bool> is_set;
  /// Per input: have its bytes changed?
  std::vector<bool> is_changed;
  /// The exception of the op.
  std::exception_ptr error;
};

/// Runs one step in isolation, as often as the options say. Checks its results and its declarations
/// of views, destroyed inputs and shapes.
class IsolatedStep {
 public:
  IsolatedStep(const DebugOptions& options, const StepContext& context);

  /// The results. All patterns are tried if `with_patterns`; for a node that only a refused
  /// attempt needs, poison and guard pages suffice.
  /// Errors  of DebugMode; exceptions of the op, with a note
  std::vector<DebugValue> check(bool with_patterns);

  /// A run with its checks of memory; the op's exception is in the outcome.
  RunOutcome run(const RunSetup& setup) const;

 private:
  struct Memory;
  bool is_overwritten(std::size_t input) const { return overwritten_.contains(int(input)); }
  void infer();
  std::vector<GuardedMemory::Request> requests(const RunSetup& setup) const;
  void fill(Memory& memory, const RunSetup& setup) const;
  void execute(Memory& memory, const RunSetup& setup, RunOutcome& outcome) const;
  void check_faults(const Memory& memory, const RunSetup& setup) const;
  void check_inputs(Memory& memory, const RunSetup& setup, RunOutcome& outcome) const;
  void check_gaps(const Memory& memory, const RunSetup& setup) const;
  void check_maps(const Memory& memory, const RunSetup& setup, RunOutcome& outcome) const;
  void check_region(const Memory& memory, const RunSetup& setup, std::size_t input) const;
  void check_results(const RunOutcome& outcome, const RunSetup& setup) const;
  void rethrow(const RunOutcome& outcome, const RunSetup& setup) const;
  void compare_runs(const RunOutcome& first, const RunOutcome& other, const RunLabel& label,
                    const Tolerance& tolerance, std::string_view what) const;
  void check_patterns(const RunOutcome& first) const;
  void log_not_reused(const RunOutcome& first) const;
  Tolerance tolerance() const;

  [[noreturn]] void throw_access(const MemoryFault& fault, const Memory& memory,
                                 const RunSetup& setup, std::string_view what) const;
  std::string buffer_name(std::size_t buffer) const;

  const DebugOptions& options_;
  const StepContext& context_;
  const Op& op_;
  std::set<int> overwritten_;
  AliasMap views_, destroys_;
  std::vector<Extents> extents_;     // of the outputs
  std::vector<Layout> out_layouts_;  // as the planner gives them
  std::vector<int> overwrites_;      // per output: the input that it lies in, or -1
  std::size_t scratch_bytes_ = 0;
  std::shared_ptr<const LoopPlan> loop_;  // of a loop: how the executor runs it
};

/// Reports the shapes as a fault of the op.
/// Errors  InvalidValueError
[[noreturn]] void throw_wrong_shapes(const InferredShapesError& error, const StepContext& context);

/// Reports an access to memory of an earlier run. `label` null: of the production pass.
/// Errors  BadAccess
[[noreturn]] void throw_stale_access(const MemoryFault& fault, const StepContext& context,
                                     const RunLabel* label);

/// Checks a result that is a view of an input: inside of it, inside of the declared region, and the
/// value that the op gives when it copies. Returns the value.
DebugValue check_view(const DebugOptions& options, const StepContext& context, int output,
                      int input, const Layout& layout);

}  // namespace palimpsest
