// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/solve/frame/solver.hpp"

namespace PALIMPSEST_API palimpsest {

// Solve A x = b for a square A.
//
// Stops   at |r| <= tolerance |b|
// Units   those of b do not matter
// Errors  ShapeError "Mismatched": A does not map its input shape to an equal one, or M the range
//         of A back; those of Solver

struct MinresOptions {
  /// Approximates the inverse of A; Hermitian positive definite. Norms of residuals are then
  /// sqrt(<r, M r>).
  std::optional<NamedLinop> M = {};
  PALIMPSEST_SOLVE_LIMITS(1e-6);
  PALIMPSEST_SOLVE_START;
  PALIMPSEST_SOLVE_OPTIONS;
};
/// Solves A x = b for a Hermitian A, indefinite or singular: the residual is the smallest of the
/// Krylov space. Of a singular consistent system the solution of least norm, from x0 = 0.
///
/// Status   breakdown: M is not positive; the system is singular, and the next step not determined
/// Memory   5 vectors; one more with M
/// Cost     one A and one M per iteration, one M before
/// Source   Paige and Saunders 1975, doi:10.1137/0712047
SolveResult minres(const NamedLinop& A, const Tensor& b, const MinresOptions& options = {});

struct GmresOptions {
  /// From the right: residuals are those of A x = b.
  std::optional<NamedLinop> M = {};
  PALIMPSEST_SOLVE_LIMITS(1e-6);
  /// Vectors until it starts anew.
  int restart = 30;
  PALIMPSEST_SOLVE_START;
  PALIMPSEST_SOLVE_OPTIONS;
};
/// Solves A x = b for any square A: the residual is the smallest of the Krylov space, until it
/// starts anew.
///
/// Math     The residual's norm comes from the left null vector y of the Hessenberg matrix H,
///          |b| / |y| with y_0 = 1, and x from the triangle below H's first row: no rotations
/// Memory   restart + 2 vectors
/// Cost     one A and one M per iteration, two products with the whole basis; one A and
///          one M per restart
/// Errors   ValueError "restart": not positive
/// Source   Saad and Schultz 1986, doi:10.1137/0907058; Ayachour 2003,
///          doi:10.1016/S0377-0427(03)00534-X
SolveResult gmres(const NamedLinop& A, const Tensor& b, const GmresOptions& options = {});

struct BicgstabOptions {
  /// From the right.
  std::optional<NamedLinop> M = {};
  PALIMPSEST_SOLVE_LIMITS(1e-6);
  PALIMPSEST_SOLVE_START;
  PALIMPSEST_SOLVE_OPTIONS;
};
/// Solves A x = b for any square A, in few vectors; the residual may rise on the way.
///
/// Status   breakdown: the new direction is orthogonal to the first residual
/// Memory   5 vectors
/// Cost     2 A and 2 M per iteration
/// Source   van der Vorst 1992, doi:10.1137/0913035
SolveResult bicgstab(const NamedLinop& A, const Tensor& b, const BicgstabOptions& options = {});

struct ChebyshevOptions {
  /// Bounds of the eigenvalues of A.
  double lower = 0, upper = 0;
  /// Record |r| of each iteration.
  bool residual = true;
  int max_iterations = 100;
  PALIMPSEST_SOLVE_START;
  PALIMPSEST_SOLVE_OPTIONS;
};
/// Solves A x = b for a Hermitian positive A with known bounds; runs max_iterations.
///
/// Memory   3 vectors
/// Errors   ValueError "lower": unless 0 < lower < upper
/// Source   Golub and Varga 1961, doi:10.1007/BF01386013
SolveResult chebyshev(const NamedLinop& A, const Tensor& b, const ChebyshevOptions& options);

struct PowerOptions {
  /// Relative change of the eigenvalue; 0: no test.
  double tolerance = 1e-5;
  int max_iterations = 50;
  PALIMPSEST_SOLVE_OPTIONS;
};
struct PowerResult {
  Tensor v;                 ///< of length 1
  double eigenvalue = 0;    ///< the largest of a batch; NaN if it diverged
  Tensor eigenvalues = {};  ///< |A v| of each element of a batch: one A more; undefined without one
  Status status = Status::max_iterations;
  int iterations = 0;
};
/// The largest eigenvalue of a Hermitian positive operator, |A v| for v of length 1.
///
/// Stops    at a relative change of the eigenvalue of at most the tolerance, from the second
///          iteration on; A v = 0: eigenvalue 0
/// Memory   1 vector
PowerResult power_method(const NamedLinop& A, const Tensor& v0, const PowerOptions& options = {});
/// The same from a random start, in the precision of A's parameters.
/// Errors   ShapeError "is unknown": a size
PowerResult power_method(const NamedLinop& A, const PowerOptions& options = {});

}  // namespace palimpsest
