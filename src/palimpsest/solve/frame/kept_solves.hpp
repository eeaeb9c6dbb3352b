// SPDX-License-Identifier: Apache-2.0
// Internal: the programs of solves that an operator keeps for the next solve with it.
#pragma once

#include <memory>
#include <optional>

#include "palimpsest/solve/frame/planned.hpp"

namespace palimpsest {

/// A planned solve, and what it was made for: another problem of the same type, operators, numbers
/// and data type, under the same config, is solved by the same program.
///
/// The operator "A" of a problem keeps it, as many of them as config().function_cache allows, the
/// latest used ones. It holds no operator while it is kept, so that it does not keep A alive. What
/// runs is taken out: two threads never run one program.
class KeptSolve {
 public:
  /// Plans it where A keeps none. With a budget, proximal functions or operators in parts nothing
  /// is kept.
  /// Errors   those of Solver
  KeptSolve(const SolverType& type, const Problem& problem, const SolveOptions& options);

  const PlannedSolve& planned() const { return planned_; }
  /// Gives it back to A. Without this it is dropped.
  void keep() &&;

 private:
  struct Key;
  struct Entry;

  std::shared_ptr<const Key> key_;  // null: it cannot be kept
  NamedLinop A_;
  PlannedSolve planned_;
};

}  // namespace palimpsest
