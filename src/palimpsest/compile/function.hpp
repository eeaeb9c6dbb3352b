// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/config.hpp"
#include "palimpsest/inspect/print.hpp"
#include "palimpsest/plan/plan.hpp"
#include "palimpsest/run/inputs.hpp"
#include "palimpsest/run/mode.hpp"
#include "palimpsest/run/profile.hpp"
#include "palimpsest/run/shared.hpp"

namespace PALIMPSEST_API palimpsest {

/// New values of shared variables, all computed from the old ones, stored together after a call.
using Updates = std::vector<std::pair<Variable, Value>>;
/// Replacements of variables, made all at once before a graph is compiled.
using Givens = std::vector<std::pair<Variable, Value>>;

/// Shared variables whose default updates are left out: all, or those of a list.
struct NoDefaultUpdates {
  NoDefaultUpdates(bool everybody = false) : all(everybody) {}
  NoDefaultUpdates(std::initializer_list<Variable> of) : list(of) {}
  NoDefaultUpdates(std::vector<Variable> of) : list(std::move(of)) {}
  bool all = false;
  std::vector<Variable> list;
};

struct FunctionState;

/// Designators follow the order of the fields: updates, givens, mode, name, budget_bytes, profile,
/// on_unused_input, ... Fields can be set one by one as well, in any order:
///
///     FunctionOptions options;
///     options.name = "f";
///     options.updates = {{s, s + 1.0}};
struct FunctionOptions {
  Updates updates = {};
  Givens givens = {};
  /// Unset: the config's.
  std::optional<Mode> mode = {};
  std::string name = {};
  /// Bytes that one call may hold above arguments, containers and constants. Unset: the config's.
  std::optional<index_t> budget_bytes = {};
  /// Unset: the config's.
  std::optional<bool> profile = {};
  /// An input that no output, update or given needs. Unset: the config's.
  std::optional<Reaction> on_unused_input = {};
  /// Ops that overwrite their inputs are allowed in the graph.
  bool accept_inplace = false;
  NoDefaultUpdates no_default_updates = {};
  /// True: givens must have the type of the variable that they replace. False: the graph is built
  /// anew on their types.
  bool rebuild_strict = true;
  /// allow_downcast of the inputs that do not say.
  std::optional<bool> allow_input_downcast = {};
  /// Arguments are used as they are: no conversion, no check whether they overlap one another.
  bool trust_input = false;
};

struct CopyOptions {
  /// A pool of frames for both.
  bool share_memory = false;
  /// The copy reads and updates the container of the second where this function uses the first's.
  std::vector<std::pair<SharedVariable, SharedVariable>> swap = {};
  bool delete_updates = false;
  /// Unset: this function's name and ` copy`.
  std::optional<std::string> name = {};
  /// Unset: as this function.
  std::optional<bool> profile = {};
};

/// A compiled graph: a cheap handle; copies are the same function.
///
/// Aliases  the function never changes memory of the user, and changes of a result do not reach the
///          function. Results of borrowed outputs are rewritten by the next call, unless that call
///          reads or writes them: then it uses other memory
/// Errors   before anything runs: TypeError, DTypeError, ShapeError, DeviceError, OverflowError
///          naming the argument; StateError: a container that this thread holds already;
///          BudgetError. A call that fails leaves every shared variable as it was
/// Threads  may be called from any number of threads; calls behave as if executed one after the
///          other with respect to containers
class Function {
 public:
  Function() = default;

  bool defined() const { return impl_ != nullptr; }
  /// Values in the order of the inputs, then keywords. The results; where there is one, they
  /// convert to it.
  template <class... T>
  Results operator()(const T&... arguments) const {
    return give({Argument(arguments)...});
  }
  /// The same with numbers in braces, tensors of one axis, among the first four: f({1.0, 2.0}, x).
  Results operator()(const Argument& a) const { return give({a}); }
  Results operator()(const Argument& a, const Argument& b) const { return give({a, b}); }
  Results operator()(const Argument& a, const Argument& b, const Argument& c) const {
    return give({a, b, c});
  }
  Results operator()(const Argument& a, const Argument& b, const Argument& c,
                     const Argument& d) const {
    return give({a, b, c, d});
  }
  /// results[i] becomes output i. Allocates nothing but outputs that are not borrowed.
  void call(std::span<const Tensor> arguments, std::span<Tensor> results,
            CallReport* report = nullptr) const;
  /// Writes the outputs into given tensors. These may overlap arguments and the insides of shared
  /// variables and of borrowed results: all is read before it is overwritten, and a variable that
  /// is updated gets its new value in other memory.
  /// Errors  ShapeError, DTypeError, DeviceError: another type than the output's; AliasError: two
  ///         destinations have elements in common, or one with itself. Nothing is written then
  template <class... T>
  void call_into(std::span<Tensor> outs, const T&... arguments) const {
    call_into_with({Argument(arguments)...}, outs);
  }
  template <class... T>
  void call_into(Tensor& out, const T&... arguments) const {
    call_into(std::span<Tensor>(&out, 1), arguments...);
  }

  /// The same with a list of arguments whose length is known when it runs.
  Results call(std::span<const Argument> arguments) const;
  void call_into(std::span<Tensor> outs, std::span<const Argument> arguments) const;

  /// The plan for arguments like these, without running.
  const Plan& plan(std::span<const Tensor> arguments) const;
  /// The plan for dense arguments of these types, which must be fully known.
  const Plan& plan(std::span<const TensorType> arguments) const;
  /// The plan of a call with these very arguments, without running. Its peak and entry_copy_bytes
  /// contain the copies that the call will make, and deliveries that copy are `compact`.
  Plan plan_of_call(std::span<const Argument> arguments) const;
  /// The plan that was made last; null: none yet.
  const Plan* latest_plan() const;
  /// Makes the frame of a call with arguments like these now, so that the call allocates none.
  void prepare(std::span<const Tensor> arguments) const;
  /// Releases all idle frames (arenas and borrowed outputs).
  void free() const;
  /// Sets whether frames are released after every call. True releases idle frames now.
  void allow_gc(bool value) const;
  /// Frames that wait for a call.
  std::size_t idle_frame_count() const;

  /// The same function with frames of its own; see CopyOptions.
  /// Errors  ValueError: swap of a variable that this function does not use; TypeError: for one of
  ///         another type
  Function copy(const CopyOptions& options = {}) const;

  std::size_t output_count() const;
  bool is_single() const;
  /// The optimized graph.
  const FunctionGraph& graph() const;
  /// Its applications in their order before a plan chooses one, including views, which are not
  /// steps.
  std::vector<Apply> steps() const;
  /// The variables of the inputs in the order of a call, implicit ones last.
  std::vector<Variable> inputs() const;
  /// The cell of an input or of a shared variable, by its variable or by its name. ValueError if
  /// there is no such input, or if several shared variables have the name.
  Container& container(const Variable& variable) const;
  Container& container(std::string_view name) const;
  /// The cells that the function reads or updates.
  std::vector<std::shared_ptr<Container>> shared_variables() const;
  /// The inputs of its steps that a kernel could have overwritten, and why each was left alone. Of
  /// a function from a file: none.
  const std::vector<InplaceRefusal>& inplace_report() const;
  /// The mode that the function was compiled with.
  Mode mode() const;
  const std::string& name() const;
  /// Time and memory of compiling and of the calls so far.
  /// Errors  ValueError: compiled without `profile`
  Profile profile() const;
  /// Writes the function, with the values of its shared variables, to a file; see save_functions().
  void save(const std::string& path) const;
  /// The only function of a file. The errors of load_functions(); ValueError: it holds others.
  static Function load(const std::string& path);
  /// The optimized graph as a tree: debugprint(*this, options).
  std::string dprint(const DebugPrintOptions& options = {}) const;

  explicit Function(std::shared_ptr<const FunctionState> impl) : impl_(std::move(impl)) {}
  /// For this layer. ValueError: undefined.
  const FunctionState& impl() const;

 private:
  Results give(std::initializer_list<Argument> arguments) const {
    return call({arguments.begin(), arguments.size()});
  }
  void call_into_with(std::initializer_list<Argument> arguments, std::span<Tensor> outs) const {
    call_into(outs, {arguments.begin(), arguments.size()});
  }
  void call_with(std::span<const Argument> arguments, std::span<Tensor> results,
                 std::span<Tensor> outs) const;

  std::shared_ptr<const FunctionState> impl_;
};

/// The optimized graph, with the latest plan of the function where the options ask for memory.
std::string debugprint(const Function& f, const DebugPrintOptions& options = {});
std::string to_dot(const Function& f, const DebugPrintOptions& options = {});

/// Compiles a graph. The user's variables stay unchanged.
///
/// Errors  MissingInputError: a root that is not an input, constant or shared variable;
///         UnusedInputError: an input twice, or one that nothing needs; TypeError: a constant or a
///         shared variable as input, an update or a given that does not fit, an op that overwrites
///         inputs; ValueError: several updates of one variable, a given for an explicit input,
///         givens in a cycle, is_mutable without borrow
Function function(std::vector<In> inputs, Outputs outputs, FunctionOptions options = {});

}  // namespace palimpsest
