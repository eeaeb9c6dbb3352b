// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"
#include "palimpsest/plan/plan.hpp"
#include "palimpsest/solve/solve.hpp"

namespace PALIMPSEST_API palimpsest {

/// State of the iteration as a callback sees it.
class CgInfo {
 public:
  /// `x` holds the iterate times 2^exponent.
  CgInfo(const Record& record, const SharedVariable& x, int exponent = 0)
      : record_(record), x_(x), exponent_(exponent) {}
  int iteration() const { return record_.iteration; }
  /// |r| / |b|.
  double residual() const { return record_.residual; }
  double seconds() const { return record_.seconds; }
  /// The present iterate: independent and valid longer than the call, by a lazy clone. Keeping it
  /// costs one copy at the next iteration; right-hand sides far from 1 cost it at once.
  Tensor x() const;

 private:
  const Record& record_;
  const SharedVariable& x_;
  int exponent_;
};

struct CgOptions {
  /// Approximates the inverse of A; Hermitian positive definite.
  std::optional<NamedLinop> M = {};
  double tolerance = 1e-6;
  int max_iterations = 100;
  /// Every so many iterations the residual is computed anew; 0: never.
  int refresh = 0;
  std::optional<Tensor> x0 = {};
  /// Runs once per iteration; false stops.
  std::function<bool(const CgInfo&)> callback = {};
  bool history = true;
  /// Bytes that the solve may take, the data of A and M included: A is cut into tiles until it
  /// does. Unset: the config's. See split_to_budget().
  std::optional<index_t> budget_bytes = {};
};

/// Solves A x = b for a Hermitian positive (semi)definite A by preconditioned conjugate gradients.
///
/// Stops     at |r| <= max(tolerance, epsilon of the dtype) |b|, r the recurred residual
/// Units     of b do not matter: it is multiplied by a power of two near 1 / |b| where it must be
/// Status    breakdown: p^H A p <= 0 or not real; diverged: NaN or Inf, x is the last finite
/// iterate;
///           a solution beyond the range of the dtype has diverged too; b = 0 gives x = 0,
///           converged
/// Aliases   A, b and x0 are unchanged; x is the caller's
/// Cost      one A (and one M) per iteration, plus one A with x0; one more A per refresh. Nothing
/// is
///           allocated after the first iteration, nor any memory above the plan
/// Errors    ShapeError "Mismatched": A does not map its input shape to an equal one; ValueError:
///           an option out of range; BudgetError: no tiles fit, naming the smallest budget found
SolveResult conjugate_gradients(const NamedLinop& A, const Tensor& b,
                                const CgOptions& options = {});

/// Minimizes |A x - b|: solves A^H A x = A^H b through A.N().
SolveResult cg_normal(const NamedLinop& A, const Tensor& b, const CgOptions& options = {});

/// Memory that a solve will take, in bytes.
struct SolvePlan {
  index_t peak_bytes = 0;      ///< above A, M, b and x0 at the worst moment, exactly
  index_t state_bytes = 0;     ///< iterate, residual, direction
  index_t setup_bytes = 0;     ///< workspace before the first iteration
  index_t step_bytes = 0;      ///< workspace of the iterations
  index_t operator_bytes = 0;  ///< data of A and M: see operator_bytes()
  index_t streamed_bytes = 0;  ///< of mapped files, that one step reads
  /// The number compared with budget_bytes: peak, operator data and streamed file bytes.
  index_t total_bytes() const { return peak_bytes + operator_bytes + streamed_bytes; }
  /// Tiles into which A is cut for the budget: their sizes and number. Each is one pass.
  DimMap sizes = {};
  index_t tiles = 1;
  Plan step = {};  ///< of one iteration: what lies where, and why
};
/// Errors    those of conjugate_gradients()
SolvePlan plan_conjugate_gradients(const NamedLinop& A, const TensorType& b,
                                   const CgOptions& options = {});
/// The smallest budget for which the solve finds tiles; that of the options does not count.
index_t smallest_cg_budget(const NamedLinop& A, const TensorType& b, const CgOptions& options = {});

class CgProgram;

/// A solve that is planned and compiled once and then run for any number of right-hand sides of one
/// type. Between two runs parameters of A and M may be set to other values. Move-only.
///
/// Errors   those of conjugate_gradients()
/// Cost     the constructor: the search for tiles, if there is a budget, and compiling; no memory
///          for arrays. Between runs none is held either
/// Threads  one run at a time
class ConjugateGradients {
 public:
  ConjugateGradients(const NamedLinop& A, const TensorType& b, CgOptions options = {});
  ConjugateGradients(ConjugateGradients&& other) noexcept;
  ConjugateGradients& operator=(ConjugateGradients&& other) noexcept;
  ~ConjugateGradients();

  /// Memory that run() takes.
  const SolvePlan& plan() const { return plan_; }
  SolveResult run(const Tensor& b);

 private:
  NamedLinop A_;  // as it is applied: cut for the budget
  CgOptions options_;
  SolvePlan plan_;
  std::shared_ptr<CgProgram> program_;
};

}  // namespace palimpsest
