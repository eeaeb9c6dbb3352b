// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"
#include "palimpsest/solve/frame/solver.hpp"
#include "palimpsest/solve/solve.hpp"

namespace PALIMPSEST_API palimpsest {

using CgInfo = SolveInfo;

struct CgOptions {
  /// Approximates the inverse of A; Hermitian positive definite.
  std::optional<NamedLinop> M = {};
  PALIMPSEST_SOLVE_LIMITS(1e-6);
  /// Number of iterations after which the residual is computed anew; 0: never. Where the recurred
  /// one had lost its accuracy, the direction begins anew too. Only for residuals near rounding.
  int refresh = 0;
  PALIMPSEST_SOLVE_START;
  PALIMPSEST_SOLVE_OPTIONS;
};

/// Solves A x = b for a Hermitian positive (semi)definite A by preconditioned conjugate gradients.
///
/// Stops     at |r| <= max(tolerance, epsilon of the dtype) |b|, r the recurred residual, or the
///           true one if x0 was far from the solution
/// Units     of b do not matter: it is multiplied by a power of two near 1 / |b| where it must be
/// Status    breakdown: p^H A p <= 0 or not real; diverged: NaN or Inf, x is the last finite
///           iterate; a solution beyond the range of the dtype has diverged too; b = 0 gives x = 0,
///           converged
/// Objective <x, A x> / 2 - Re <b, x>
/// Aliases   A, b and x0 are unchanged; x is the caller's
/// Memory    3 vectors, the iterate, the residual and the direction, and the workspace of A; one
///           vector more with M
/// Cost      one A (and one M) per iteration, plus one A with x0; one more A per refresh; 3 passes
///           over vectors. Nothing is allocated after the first iteration
/// Errors    ShapeError "Mismatched": A does not map its input shape to an equal one; those of
///           Solver
/// Source    Hestenes and Stiefel 1952, doi:10.6028/jres.049.044
SolveResult conjugate_gradients(const NamedLinop& A, const Tensor& b,
                                const CgOptions& options = {});

/// Minimizes |A x - b|: solves A^H A x = A^H b through A.N().
///
/// Memory    4 vectors: those of conjugate_gradients(), and A^H b
SolveResult cg_normal(const NamedLinop& A, const Tensor& b, const CgOptions& options = {});

/// Errors    those of conjugate_gradients()
SolvePlan plan_conjugate_gradients(const NamedLinop& A, const TensorType& b,
                                   const CgOptions& options = {});
/// The smallest budget for which the solve finds tiles; that of the options does not count.
index_t smallest_cg_budget(const NamedLinop& A, const TensorType& b, const CgOptions& options = {});

/// Conjugate gradients that are planned and compiled once: a Solver made from the arguments of
/// conjugate_gradients().
class ConjugateGradients : public Solver {
 public:
  ConjugateGradients(const NamedLinop& A, const TensorType& b, const CgOptions& options = {});
};

}  // namespace palimpsest
