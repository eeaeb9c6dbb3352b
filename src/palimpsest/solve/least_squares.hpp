// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/solve/frame/solver.hpp"

namespace PALIMPSEST_API palimpsest {

// Minimize |A x - b|^2 + damp^2 |x|^2 with A and A^H apart: for operators with a normal operator
// that is not cheaper than both, or with a condition number whose square is too large for the
// dtype.
//
// Units   b in any unit; damp in that of A
// Cost    one A and one A^H per iteration, one A^H before; with x0 one A more
// Errors  ValueError "damp": negative; those of Solver

struct CglsOptions {
  double damp = 0;
  PALIMPSEST_SOLVE_LIMITS(1e-6);
  PALIMPSEST_SOLVE_START;
  PALIMPSEST_SOLVE_OPTIONS;
};
/// Conjugate gradients on the normal equations.
///
/// Stops      at |A^H r - damp^2 x| <= tolerance |A^H b|
/// Objective  half of the minimized function
/// Memory     2 vectors of x, 1 of b
/// Source     Bjorck 1996, Numerical Methods for Least Squares Problems, section 7.4
SolveResult cgls(const NamedLinop& A, const Tensor& b, const CglsOptions& options = {});

struct LeastSquaresOptions {
  double damp = 0;  ///< not together with x0 or M; cgls takes an x0 too
  /// |r| <= (btol |b| + atol |A| |x|): reason 1. |A^H r| <= atol |A| |r|: reason 2. An estimated
  /// condition of A above conlim: reason 3; 0: no limit.
  double atol = 1e-6, btol = 1e-6, conlim = 1e8;
  /// From the right: A M y = b, x = M y. Not together with damp or x0.
  std::optional<NamedLinop> M = {};
  int max_iterations = 100;
  PALIMPSEST_SOLVE_START;
  PALIMPSEST_SOLVE_OPTIONS;
};
/// Solves min |A x - b| by Golub-Kahan bidiagonalization; |r| falls in each iteration.
///
/// Numbers   of a record: the reason, or 0; estimates of |A|, of its condition, and of |A^H r|. Its
///           residual is |r| / |b|, damping included
/// Memory    3 vectors of x, 1 of b
/// Source    Paige and Saunders 1982, doi:10.1145/355984.355989
SolveResult lsqr(const NamedLinop& A, const Tensor& b, const LeastSquaresOptions& options = {});
/// Solves min |A x - b| by Golub-Kahan bidiagonalization; |A^H r| falls in each iteration, so that
/// stopping early is safe.
///
/// Memory    4 vectors of x, 1 of b
/// Source    Fong and Saunders 2011, doi:10.1137/10079687X
SolveResult lsmr(const NamedLinop& A, const Tensor& b, const LeastSquaresOptions& options = {});

}  // namespace palimpsest
