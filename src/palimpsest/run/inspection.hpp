// SPDX-License-Identifier: Apache-2.0
// Internal: observers of a function's calls while they run.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "palimpsest/base/view.hpp"
#include "palimpsest/graph/inferred_shapes.hpp"
#include "palimpsest/plan/plan.hpp"
#include "palimpsest/rewrite/pipeline.hpp"
#include "palimpsest/tensor/guarded_window.hpp"

namespace palimpsest {

class Frame;
struct Program;

/// A step of a plan and the memory that it works on.
struct StepAccess {
  std::size_t step;
  const Apply& node;
  std::span<const ConstView> inputs;
  std::span<const MutableView> outputs;
  std::span<std::byte> scratch;
};

/// Memory that a call with an inspection writes in place of a destination of the caller.
struct GuardedDestination {
  std::size_t output;
  GuardedWindow window;
};

/// A call before its first step: memory is bound, nothing has been overwritten yet.
struct CallAccess {
  const Program& program;
  const Plan& plan;
  Frame& frame;
  /// The values of the graph's inputs. Those that the plan overwrites are the call's own.
  std::span<const Tensor* const> inputs;
  /// Of call_into: no step may write beside these windows.
  std::span<const GuardedDestination> destinations = {};
};

/// Follows one call. An exception of a member ends the call as an error of the step would.
class CallWatch {
 public:
  virtual ~CallWatch() = default;
  virtual void before_step(const StepAccess&) {}
  virtual void after_step(const StepAccess&) {}
  /// All steps have run; these are the results and then the updates, which the caller and the
  /// containers do not have yet.
  virtual void after_hand_over(std::span<const Tensor>) {}
};

/// Knowledge of an inspection about one compiled graph.
class CompileFacts {
 public:
  virtual ~CompileFacts() = default;
};

/// The graph in compilation.
struct CompileAccess {
  /// The graph as the user made it, and protected as it is rewritten.
  std::function<FunctionGraph()> original;
  /// Rewrites it from the start; the feature made last (none if empty) has followed all of it.
  std::function<FunctionGraph(const FeatureMaker&)> rewritten;
};

/// Part of a program: immutable, used by any number of calls at once.
class Inspection {
 public:
  virtual ~Inspection() = default;
  virtual std::string_view name() const = 0;
  /// Makes the graph of a program and the facts to remember about it (may be null).
  virtual FunctionGraph compile(const CompileAccess& access,
                                std::shared_ptr<const CompileFacts>*) const {
    return access.rewritten({});
  }
  /// A plan was made; `again` makes it once more.
  virtual void planned(const Plan&, const std::function<Plan()>&) const {}
  /// Called for every call, before its first step. An exception ends the call; then no container
  /// and no argument has changed.
  virtual std::unique_ptr<CallWatch> watch(const CallAccess& call) const = 0;
  /// Planning fails with this error, unless another one is thrown here.
  virtual void wrong_shapes(const InferredShapesError&, const CompileFacts*) const {}
};

}  // namespace palimpsest
