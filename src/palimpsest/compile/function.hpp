// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest/compile/plan.hpp"
#include "palimpsest/compile/shared.hpp"
#include "palimpsest/graph/variable.hpp"

namespace palimpsest {

struct InOptions {
  std::string name = {};
  /// The function may overwrite the argument: it is lent as workspace.
  bool is_mutable = false;
};
/// An input of a function.
struct In {
  In(Variable v, InOptions o = {}) : variable(std::move(v)), options(std::move(o)) {}
  Variable variable;
  InOptions options;
};

struct OutOptions {
  /// The result may lie in the function's own memory and be rewritten at the next call of the same
  /// thread; then a call allocates nothing for it.
  bool borrow = false;
};
/// An output of a function.
struct Out {
  Out(Variable v, OutOptions o = {}) : variable(std::move(v)), options(o) {}
  Variable variable;
  OutOptions options;
};

/// New values of shared variables, all computed from the old ones, stored together after a call.
using Updates = std::vector<std::pair<SharedVariable, Variable>>;

/// How a graph is rewritten before it is planned.
enum class Mode {
  fast_run,   // merge, linear identities, in-place
  no_rewrite  // plan only
};

struct FunctionOptions {
  Updates updates = {};
  std::vector<std::pair<Variable, Variable>> givens = {};
  Mode mode = Mode::fast_run;
  std::string name = {};
};

/// What a call took.
struct CallReport {
  /// Bytes held at the worst moment above arguments, containers and constants: frame and outputs.
  index_t peak_bytes = 0;
  /// Bytes that only the state of the call forced to be copied (shared containers and the like).
  index_t entry_copy_bytes = 0;
};

/// A compiled graph: a cheap handle; copies are the same function.
///
/// Aliases  nothing the user holds is ever changed, and nothing the user does to a result changes
///          the function; results of borrowed outputs are rewritten by the next call
/// Errors   before anything runs: ShapeError, DTypeError, DeviceError naming the argument. A call
///          that fails leaves every shared variable as it was
/// Threads  may be called from any number of threads; calls behave as if executed one after the
///          other with respect to containers
class Function {
 public:
  Function() = default;

  bool defined() const { return impl_ != nullptr; }
  /// All outputs; `f(x, y)[0]`.
  template <class... T>
  std::vector<Tensor> operator()(const T&... arguments) const {
    std::vector<Tensor> values{Tensor(arguments)...};
    std::vector<Tensor> results(output_count());
    call(values, results);
    return results;
  }
  /// results[i] becomes output i. Allocates nothing but outputs that are not borrowed.
  void call(std::span<const Tensor> arguments, std::span<Tensor> results,
            CallReport* report = nullptr) const;
  /// Writes the outputs into given tensors, which may overlap arguments.
  /// Errors  ShapeError, DTypeError: another type than the output's
  void call_into(std::span<const Tensor> arguments, std::span<Tensor> destinations) const;

  /// The plan for arguments like these, without running.
  const Plan& plan(std::span<const Tensor> arguments) const;
  /// The plan for dense arguments of these types, which must be fully known.
  const Plan& plan(std::span<const TensorType> arguments) const;
  std::size_t output_count() const;
  /// The optimized graph.
  const FunctionGraph& graph() const;
  const std::string& name() const;
  /// Makes the frame of a call with arguments like these now, so that the call allocates none.
  void prepare(std::span<const Tensor> arguments) const;
  /// Releases all idle frames (arenas and borrowed outputs).
  void free() const;

  struct Impl;
  explicit Function(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<const Impl> impl_;
};

/// Compiles a graph. What the user holds stays as it was.
/// Errors  MissingInputError: a root that is no input, constant or shared variable;
///         UnusedInputError: an input twice; TypeError: an update that does not fit its variable
Function function(std::vector<In> inputs, std::vector<Out> outputs, FunctionOptions options = {});

}  // namespace palimpsest
