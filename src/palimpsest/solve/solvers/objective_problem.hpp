// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "palimpsest/base/config.hpp"
#include "palimpsest/compile/compile.hpp"
#include "palimpsest/linop/split/budget.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"
#include "palimpsest/solve/objective.hpp"

namespace palimpsest {

/// The problem of an objective. Operators: "A"; "N", the Hessian of the quadratic part; "W"; "L0",
/// .. of the quadratics that have a c; "K0", .. of the terms. Functions "g0", .., "h". Attributes
/// "lambda0", "c0", "d0", .. and "terms", their number.
Problem objective_problem(const Objective& f, const TensorType& b);
/// Adds the terms and h of an objective, in the names of objective_problem().
Problem& add_terms(Problem& p, const Objective& f);
/// The same objective: a single term without K and d, and no h, becomes h.
Objective simplified(Objective f);
/// The same objective with h as a further term, for admm.
Objective h_as_term(Objective f);
/// The problem of conjugate_gradients(). Operators "A" and "M"; attribute "refresh".
Problem cg_problem(const NamedLinop& A, const TensorType& b, const CgOptions& options);

/// A^H W b + sum of lambda_j L_j^H c_j of an objective: the data of conjugate gradients on the
/// normal equations, made before they begin and kept beside their state.
class RightHandSide {
 public:
  /// Errors   BudgetError: nothing fits the budget
  RightHandSide(const Objective& f, const TensorType& b, std::optional<index_t> budget);
  const TensorType& type() const { return type_; }
  index_t bytes() const { return byte_count(type_.shape, type_.dtype); }
  /// Peak bytes of making the right side, itself included.
  index_t peak_bytes() const { return std::max(split_->plan.peak_bytes, targets_bytes()); }
  index_t smallest_budget() const;
  /// Makes it, once.
  Tensor operator()(const Tensor& b);

 private:
  // Adds lambda L^H c.
  struct Target {
    Function add;
    Tensor c;
  };
  // Under a budget steps side by side would need memory of their own.
  ConfigOverrides in_one_lane() const;
  index_t targets_bytes() const;

  NamedLinop adjoint_;
  TensorType data_, type_;
  bool is_limited_;
  std::optional<BudgetSplit> split_;
  std::vector<Target> targets_;
};

/// BudgetError: neither the right side nor the iterations have tiles that fit.
[[noreturn]] void refuse_budget(std::string_view who, index_t budget, index_t smallest,
                                index_t state);

}  // namespace palimpsest
