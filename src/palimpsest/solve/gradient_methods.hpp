// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/solve/frame/solver.hpp"

namespace PALIMPSEST_API palimpsest {

/// Of ista and gradient_descent.
struct IstaOptions {
  PALIMPSEST_SOLVE_LIMITS(1e-6);
  PALIMPSEST_SOLVE_PROGRESS;
  /// A bound of the largest eigenvalue of A.N(); unset: operator_norm2().
  std::optional<double> L = {};
  /// x is the better of the new point and the one before, so that the objective never rises. The
  /// objective is recorded. N is applied to the new point, and the next step follows by linearity:
  /// still one N per iteration, for one vector more.
  bool monotone = false;
  /// L doubles where the quadratic bound of the data term fails at the new point: such an iteration
  /// changes L alone, and its residual is NaN. For an `.L` that may be too small; same cost.
  bool backtrack = false;
  /// Number of the last iterates before max_iterations whose mean is the result; takes one vector
  /// more. With random shifts the result then depends less on the seed. A solve that ends earlier
  /// has the mean of the iterates that it reached, or x.
  int average = 1;
  PALIMPSEST_SOLVE_START;
  PALIMPSEST_SOLVE_OPTIONS;
};
/// Of fista and nesterov.
struct FistaOptions {
  PALIMPSEST_SOLVE_LIMITS(1e-6);
  PALIMPSEST_SOLVE_PROGRESS;
  /// A bound of the largest eigenvalue of A.N(); unset: operator_norm2().
  std::optional<double> L = {};
  /// Restarts the momentum when it leads uphill.
  bool restart = true;
  /// x is the better of the new point and the one before, so that the objective never rises. The
  /// objective is recorded. N is applied to the new point, and the next step follows by linearity:
  /// still one N per iteration, for two vectors more.
  bool monotone = false;
  /// L doubles where the quadratic bound of the data term fails at the new point: such an iteration
  /// changes L alone, and its residual is NaN. For an `.L` that may be too small; same cost.
  bool backtrack = false;
  /// Number of the last iterates before max_iterations whose mean is the result; takes one vector
  /// more. With random shifts the result then depends less on the seed. A solve that ends earlier
  /// has the mean of the iterates that it reached, or x.
  int average = 1;
  PALIMPSEST_SOLVE_START;
  PALIMPSEST_SOLVE_OPTIONS;
};
struct PogmOptions {
  PALIMPSEST_SOLVE_LIMITS(1e-6);
  PALIMPSEST_SOLVE_PROGRESS;
  /// A bound of the largest eigenvalue of A.N(); unset: operator_norm2().
  std::optional<double> L = {};
  /// Restarts the momentum when it leads uphill.
  bool restart = true;
  /// Number of the last iterates before max_iterations whose mean is the result; takes one vector
  /// more. With random shifts the result then depends less on the seed. A solve that ends earlier
  /// has the mean of the iterates that it reached, or x.
  int average = 1;
  PALIMPSEST_SOLVE_START;
  PALIMPSEST_SOLVE_OPTIONS;
};

// Minimize |A x - b|^2 / 2 + h(x).
//
// Stops      at |x - x_before| <= tolerance |x|
// Status     diverged: NaN or Inf, x is the last finite iterate; or steps that grow in 20
//            iterations in a row, and by a factor of 100
// Objective  free with `.monotone` or `.backtrack`; with RecordObjective::always for one N and one
//            h more per iteration; else NaN
// Units      lambda has those of the data: nothing is scaled
// Errors     ValueError "L", "average": not positive; those of Solver

/// Minimizes |A x - b|^2 / 2 + h(x) by proximal gradient steps of 1 / L.
///
/// Cost       one N and one prox per iteration, one A^H before; without L the steps of lanczos()
/// Memory     x, A^H b
/// Source     Daubechies, Defrise and De Mol 2004, doi:10.1002/cpa.20042
SolveResult ista(const NamedLinop& A, const Prox& h, const Tensor& b,
                 const IstaOptions& options = {});
/// Minimizes |A x - b|^2 / 2 + h(x) by proximal gradient steps with Nesterov's momentum.
///
/// Memory     x, its extrapolation, A^H b
/// Source     Beck and Teboulle 2009, doi:10.1137/080716542; monotone: by the same,
///            doi:10.1109/TIP.2009.2028250; restart: O'Donoghue and Candes 2015,
///            doi:10.1007/s10208-013-9150-3
SolveResult fista(const NamedLinop& A, const Prox& h, const Tensor& b,
                  const FistaOptions& options = {});
/// The proximal optimized gradient method: twice as fast as fista in the worst case. The last
/// iteration is another one than those before, so that its result depends on max_iterations.
///
/// Memory     x, w, z, A^H b
/// Source     Taylor, Hendrickx and Glineur 2017, doi:10.1137/16M108104X; restart: Kim and Fessler
///            2018, doi:10.1007/s10957-018-1287-4
SolveResult pogm(const NamedLinop& A, const Prox& h, const Tensor& b,
                 const PogmOptions& options = {});

/// |A x - b|^2 / 2 alone, by steps of 1 / L, plain and with Nesterov's momentum.
SolveResult gradient_descent(const NamedLinop& A, const Tensor& b, const IstaOptions& options = {});
SolveResult nesterov(const NamedLinop& A, const Tensor& b, const FistaOptions& options = {});

SolvePlan plan_fista(const NamedLinop& A, const Prox& h, const TensorType& b,
                     const FistaOptions& options = {});

}  // namespace palimpsest
