// SPDX-License-Identifier: Apache-2.0
// Internal: the programs of solves that an operator keeps for the next solve with it.
#pragma once

#include <memory>
#include <optional>

#include "palimpsest/solve/frame/planned.hpp"

namespace palimpsest {

/// A planned solve with its problem. The same program solves another problem of the same type,
/// operators, numbers and data type, under the same config.
///
/// The operator "A" of a problem keeps the latest used ones, up to config().function_cache. A kept
/// solve holds no operator, so that it does not keep A alive. A running one is taken out: two
/// threads never run one program.
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
