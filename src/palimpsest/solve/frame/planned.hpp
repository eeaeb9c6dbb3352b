// SPDX-License-Identifier: Apache-2.0
// Internal: from a problem to a program that fits a budget.
#pragma once

#include <memory>

#include "palimpsest/base/config.hpp"
#include "palimpsest/solve/frame/program.hpp"

namespace palimpsest {

/// A problem with its operators cut for the budget, and its solver.
struct PlannedSolve {
  std::shared_ptr<Problem> problem;
  std::shared_ptr<SolverProgram> program;  // refers to the problem
  SolvePlan plan;
};

/// The budget of these options, or of the config.
std::optional<index_t> budget_of(const SolveOptions& options);

/// True in a call of plan_solve() on this thread: solves are planned, and do not run.
bool is_planning();

/// True if the test of progress is on.
inline bool looks_at_objective(const SolveOptions& options) {
  return options.progress_tolerance > 0;
}

/// Errors of options for a problem that is resolved.
void check_options(const SolverType& type, const Problem& problem, const SolveOptions& options);

/// Checks the options, resolves the problem, and compiles it within the budget of the options, or
/// of the config.
/// Errors   those of Solver
PlannedSolve plan_program(const SolverType& type, Problem problem, const SolveOptions& options);

/// ShapeError, DTypeError, DeviceError: the data are not of the problem's type.
void check_data(const SolverType& type, const Problem& problem, const Tensor& b);

/// True if the setup takes up an x: that of a start, or, of a linear solver, that of a checkpoint.
bool has_start(const SolverType& type, const SolveOptions& options);
/// ShapeError, DTypeError "x0": the start is not of the problem's type.
void check_x0(const SolverType& type, const Problem& problem, const std::optional<Tensor>& x0);

/// The worse of two: the order in which a batch reports.
Status worst(Status a, Status b);

}  // namespace palimpsest
