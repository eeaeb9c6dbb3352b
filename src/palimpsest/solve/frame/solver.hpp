// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "palimpsest/base/api.hpp"
#include "palimpsest/solve/frame/solver_type.hpp"
#include "palimpsest/solve/solve.hpp"

namespace PALIMPSEST_API palimpsest {

/// A solve that is planned and compiled once and run for any number of data of one type. Between
/// two runs parameters of the operators may be set to other values. Move-only.
///
/// Order     after each step: a number is not finite (diverged); the recurrence cannot go on
///           (breakdown); record and callback (stopped, unless the test holds as well); the test
///           (converged), of the residual or of progress; cancelled; time_limit; max_iterations
/// Aliases   operators, b and x0 are unchanged; x is the caller's
/// Cost      the constructor: the search for tiles, if there is a budget, and compiling; no memory
///           for arrays. Between runs none is held either. Nothing is allocated after the first
///           iteration, history aside
/// Errors    all start with `[name of the solver]`. ShapeError, DTypeError: x0; ValueError: an
///           option out of range; BudgetError: no tiles fit, naming the smallest budget found;
///           SplitError: batch
/// Threads   one run at a time
class Solver {
 public:
  Solver(const SolverType& type, Problem problem, SolveOptions options = {});
  Solver(Solver&& other) noexcept;
  Solver& operator=(Solver&& other) noexcept;
  ~Solver();

  /// Memory that a run takes.
  const SolvePlan& plan() const;

  /// Sets the start of the following runs.
  /// Errors   StateError: the options have no x0; ShapeError, DTypeError "x0"
  void set_x0(Tensor x0);
  /// Sets |y|^2 of the following runs whose b is A^H y, with the identity in the place of A: their
  /// objective is that of the data y.
  void set_data_norm2(double norm2);
  /// Begins a run; one that goes on ends as `stopped`.
  /// Errors   ShapeError, DTypeError: b is not of the type of the problem
  void start(const Tensor& b);
  /// An iteration. False: the run has ended, by this step or before it.
  bool step();
  /// The present iterate.
  Tensor x() const;
  const Record& last() const;
  /// Ends the run and gives its memory back.
  SolveResult finish();
  /// start, steps, finish.
  SolveResult run(const Tensor& b);

 private:
  friend SolveResult solve(const SolverType&, const Problem&, const Tensor&, const SolveOptions&);
  struct Impl;
  explicit Solver(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Adds bytes held besides a solve to its peak, which is at least `least`, and to its plan.
void add_bytes_besides(SolveResult& result, index_t bytes, index_t least = 0);

/// A run of a Solver. The operator "A" of the problem keeps the compiled programs for the next
/// solve with it, as it keeps those of its applications.
SolveResult solve(const SolverType& type, const Problem& problem, const Tensor& b,
                  const SolveOptions& options = {});
SolvePlan plan_solve(const SolverType& type, const Problem& problem,
                     const SolveOptions& options = {});
/// The smallest budget for which the solve finds tiles; that of the options does not count.
index_t smallest_solve_budget(const SolverType& type, const Problem& problem,
                              const SolveOptions& options = {});

}  // namespace palimpsest
