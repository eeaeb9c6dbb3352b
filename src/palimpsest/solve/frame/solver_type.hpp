// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/solve/frame/problem.hpp"
#include "palimpsest/solve/frame/scope.hpp"

namespace PALIMPSEST_API palimpsest {

/// The numbers of an iteration that the host reads, of one element of the batch.
class Numbers {
 public:
  /// Number `name` of this step, or of the setup if the step sets none. NameError: neither sets it.
  double operator[](std::string_view name) const;
  bool has(std::string_view name) const;
  /// |b| without overflow or underflow, of the data as the solver sees them.
  double norm_b() const { return norm_b_; }
  /// 0 after the setup.
  int iteration() const { return iteration_; }
  /// Tolerance as given; of a linear solver at least the rounding of the state's dtype.
  double tolerance() const { return tolerance_; }

 private:
  friend class NumberTable;
  struct Source {
    std::span<const std::string> names;
    std::span<const double> values;  // of each name, all elements of the batch
  };
  std::array<Source, 2> sources_;  // the step, the setup
  std::size_t element_ = 0, batch_count_ = 1;
  double norm_b_ = 0, tolerance_ = 0;
  int iteration_ = 0;
};

/// Outcome of an iteration, judged by its numbers.
struct Verdict {
  /// Compared with the tolerance; NaN without such a test.
  double residual = std::numeric_limits<double>::quiet_NaN();
  double objective = std::numeric_limits<double>::quiet_NaN();
  /// Recorded in place of the residual where that is NaN.
  double reported = std::numeric_limits<double>::quiet_NaN();
  /// |x - x_before|, where growing steps mean divergence; NaN: they do not.
  double change = std::numeric_limits<double>::quiet_NaN();
  /// The solver's own test holds.
  bool is_converged = false;
  /// The recurrence cannot go on.
  bool is_breakdown = false;
  std::array<double, 4> numbers = {};  ///< for Record::numbers
};

/// First values of states that are numbers, and the applications that finding them took.
struct Preparation {
  std::vector<std::pair<std::string, double>> values;
  int applications = 0;  ///< counted as "setup"
};

/// A solver: a table of plain functions that build graphs. The driver runs it. Must outlive every
/// solve: make it a constant at namespace scope.
///
/// One iteration is one compiled function. Every scalar of the recurrence lives in the graph: the
/// host reads the numbers once per iteration and only decides whether to go on.
struct SolverType {
  std::string_view name;  ///< starts messages, and is in checkpoints
  int version = 1;
  /// The state: names, spaces and first values.
  void (*declare)(const Problem& p, StateList& state) = nullptr;
  /// Numbers that are found before a run by applying operators, such as step sizes: values of the
  /// states of these names. Null: none.
  Preparation (*prepare)(const Problem& p, std::uint64_t seed) = nullptr;
  /// Bytes that prepare takes at the worst moment, before the state has its memory.
  index_t (*prepare_bytes)(const Problem& p) = nullptr;
  /// The graph before the first iteration; null: the first values are enough.
  void (*setup)(const Problem& p, Scope& s) = nullptr;
  /// The graph of one iteration.
  void (*step)(const Problem& p, Scope& s, int variant) = nullptr;
  /// Number of the graph that iteration k, counted from 1, runs: 0 .. variants - 1. Null: 0.
  int (*variant)(const Problem& p, int iteration) = nullptr;
  /// Number of graphs; null: 1.
  int (*variants)(const Problem& p) = nullptr;
  /// On the host, from a handful of numbers; null: runs until max_iterations.
  Verdict (*judge)(const Problem& p, const Numbers& n) = nullptr;
  /// The same after the setup; null: the setup never ends a solve.
  Verdict (*judge_start)(const Problem& p, const Numbers& n) = nullptr;
  /// The graph of x; null, or an undefined result: the state "x".
  Variable (*result)(const Problem& p, Scope& s) = nullptr;
  /// Names, sizes and ranges of options, once and before anything else.
  void (*check)(const Problem& p) = nullptr;
  /// x is proportional to b and x0: data far from 1 are scaled by a power of two, b = 0 has the
  /// solution 0, and a residual at the level of rounding has converged, for any tolerance.
  bool is_linear = false;
};

/// Makes a type known by its name. The type is kept by reference.
/// Errors   ValueError "already registered"; "declare", "step": the type lacks it. A step without a
///          call of a guard is found when its graph is made, for a problem: ValueError "guard"
bool register_solver(const SolverType& type);
/// Null without a type of the name.
const SolverType* find_solver(std::string_view name);
/// Sorted.
std::vector<std::string> solver_names();

/// At namespace scope: registers a type when the program starts.
#define PALIMPSEST_REGISTER_SOLVER(type)                \
  [[maybe_unused]] static const bool PALIMPSEST_CONCAT( \
      palimpsest_solver_is_registered_, __COUNTER__) = ::palimpsest::register_solver(type)

}  // namespace palimpsest
