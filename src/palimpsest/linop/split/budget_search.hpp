// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "palimpsest/linop/split/budget.hpp"

namespace palimpsest {

/// What an operator takes when it is used in some way: applied, or in a solver.
struct BudgetCost {
  index_t peak_bytes = 0;  ///< all that counts against the budget
  double work = 0;         ///< bytes that its steps read and write
  /// The programs that were compiled to find this out, for the use of what is chosen. May be null.
  std::shared_ptr<void> programs = nullptr;
};
/// An operator cut into tiles of these sizes.
struct BudgetChoice {
  NamedLinop op;
  DimMap sizes = {};
  index_t tiles = 1;
  BudgetCost cost;
};

/// The search of split_to_budget() for any use of an operator whose sizes are known. `who` begins
/// messages.
BudgetChoice search_budget(const NamedLinop& A, index_t bytes, const Dims& candidates,
                           const std::function<BudgetCost(const NamedLinop&)>& cost,
                           const std::string& who);

/// Bytes that the steps of a plan read and write.
double work_of(const Plan& plan);
/// Bytes of the constants of a plan.
index_t constant_bytes(const Plan& plan);
/// The choice of the smallest peak that the search finds, whatever the budget.
BudgetChoice smallest_choice(const NamedLinop& A, const Dims& candidates,
                             const std::function<BudgetCost(const NamedLinop&)>& cost);

/// The operator with the sizes of an input recorded where it lacks them.
NamedLinop sized_for(const NamedLinop& A, const TensorType& x);

/// `C: 1, Z: 20`.
std::string sizes_text(const DimMap& sizes);

}  // namespace palimpsest
