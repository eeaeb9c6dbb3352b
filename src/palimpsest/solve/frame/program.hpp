// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/solve/frame/checkpoint.hpp"
#include "palimpsest/solve/frame/solver_type.hpp"
#include "palimpsest/solve/solve.hpp"

namespace palimpsest {

/// The numbers of the latest step and of the setup, for all elements of the batch.
class NumberTable {
 public:
  enum class From : std::uint8_t { step = 0, setup = 1 };
  explicit NumberTable(std::size_t batch_count) : batch_count_(batch_count) {}
  void set_names(From from, std::span<const std::string> names);
  void set_values(From from, const Tensor& packed);
  /// True if the numbers of the step, or of the setup, of this element are finite.
  bool is_finite(From from, std::size_t element) const;
  /// All numbers of the setup, for a checkpoint.
  const std::vector<double>& setup_values() const { return parts_[1].values; }
  void restore_setup(std::span<const std::string> names, const std::vector<double>& values);
  Numbers of(std::size_t element, int iteration, double norm_b, double tolerance) const;

 private:
  struct Part {
    std::span<const std::string> names;
    std::vector<double> values;
  };
  std::array<Part, 2> parts_;
  std::size_t batch_count_;
};

/// A solver as compiled functions over shared state.
///
/// Invariants
///  1. After the first step of each variant, step() allocates nothing.
///  2. plan() covers start(), step() and x() at the worst moment.
///  3. Before start() and after finish() there is no memory for the state, nor a workspace.
class SolverProgram {
 public:
  struct Start {
    bool is_zero = false;                      // b = 0
    std::vector<bool> is_element_zero = {};    // of a linear solver: its part of b is 0
    std::vector<bool> is_element_finite = {};  // its part of b and its numbers of the setup are
    double norm_b = 0;                         // without overflow or underflow
  };

  /// Compiles; allocates no state. The problem is resolved, and outlives the program.
  /// `looks`: it also compiles steps that compute the objective, for problems whose steps do not.
  SolverProgram(const SolverType& type, const Problem& problem, bool looks = false);
  SolverProgram(const SolverProgram&) = delete;
  SolverProgram& operator=(const SolverProgram&) = delete;

  /// Without the bytes of operators.
  SolvePlan plan() const;
  /// Bytes that the steps of an iteration read and write.
  double work() const;
  std::size_t batch_count() const { return batch_count_; }
  /// The rounding of the state's dtype.
  double rounding() const;

  /// Gives the state its memory and runs the setup.
  Start start(const Tensor& b, const std::optional<Tensor>& x0, std::uint64_t seed,
              const Preparation& prepared = {});
  /// Takes up a run of a checkpoint, in place of start().
  /// Errors   FormatError: the state is not that of this program
  Start restore(const Tensor& b, const Checkpoint& run, const NamedTensors& state);
  /// Begins anew from the iterate of a run with x0, between steps: all other states get their first
  /// values, and the setup runs. Elements that have ended keep their x.
  void restart();
  /// The state, where it lies.
  NamedTensors state() const;
  /// `looks`: with the objective.
  void step(int variant, int iteration, bool looks = false);
  const NumberTable& numbers() const { return numbers_; }
  /// Elements of the batch that are false keep their state from now on.
  void set_active(const std::vector<bool>& active);
  /// Adds the applications of one run of the setup, or of a variant.
  void add_counts(std::map<std::string, std::int64_t>& applications) const;
  /// The iterate in the units of b. False in `is_in_range` where a number left the dtype's range.
  Tensor x(bool* is_in_range = nullptr);
  /// Writes x0, or 0, into an element of x, whatever x is made of.
  void put_start(Tensor& x, std::size_t element, const std::optional<Tensor>& x0) const;
  /// The power of two by which the data were multiplied.
  int exponent() const { return exponent_; }
  bool is_running() const { return is_running_; }
  /// Gives the memory of state and workspace back; start() may follow.
  void finish();

 private:
  struct Part {
    Function function;
    std::vector<std::string> numbers;
    std::map<std::string, std::int64_t> counts;
    std::vector<std::string> run_time_counts;  // behind the numbers
    bool uses_b = false, uses_iteration = false;
    std::vector<TensorType> types;
    std::vector<Tensor> arguments;
    std::array<Tensor, 1> result;  // borrowed
  };

  Scope make_scope(const Problem& problem) const;
  void compile_step(const Problem& problem, int variant);
  Part compiled(const Scope& scope, const std::string& name) const;
  void run(Part& part, NumberTable::From from);
  void run_setup();
  void free_steps();
  /// The iterate as the solver sees it.
  Tensor iterate(bool is_last);
  void prepare();
  void bind_arguments(Part& part) const;
  Tensor first_value(const StateList::Entry& entry, const Tensor& b,
                     const std::optional<Tensor>& x0, std::uint64_t seed) const;
  /// For each element of the batch: the largest part of its b, a bound of it where it is in parts.
  std::vector<double> largest_parts(const Tensor& b) const;
  /// The part of an element of the batch.
  Tensor element_of(const Space& space, const Tensor& whole, std::size_t element) const;
  Start look_at(const Tensor& b, const std::optional<Tensor>& x0);
  /// Makes the arguments of setup and steps.
  void make_arguments(const Tensor& b);
  index_t input_bytes() const;
  std::vector<const Function*> functions() const;

  const SolverType& type_;
  const Problem& problem_;
  StateList list_;
  std::vector<SharedVariable> state_;
  Scope::Inputs inputs_;
  std::size_t batch_count_;
  Part setup_;
  std::vector<Part> steps_;  // of each variant; then the same with the objective, if it looks
  std::size_t variants_ = 1;
  Function result_;  // undefined: x is a state
  NumberTable numbers_;
  const Part* latest_ = nullptr;
  int exponent_ = 0;
  bool is_running_ = false, is_prepared_ = false;
  Tensor data_, b_, scale_, iteration_, active_;  // data_: of restart(), b_: of the steps
};

}  // namespace palimpsest
