// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/solve/frame/solver.hpp"

namespace PALIMPSEST_API palimpsest {

struct LanczosOptions {
  int steps = 20;
  /// Relative change of the largest Ritz value from one step to the next.
  double tolerance = 1e-3;
  std::uint64_t seed = 0;
};
struct LanczosResult {
  /// Ritz values, ascending.
  std::vector<double> values;
  int steps = 0;
};
/// Ritz values of a Hermitian operator, from a random start, by the three-term recurrence.
///
/// Cost     one A per step; 2 vectors
/// Errors   ShapeError "Mismatched": A is not square; ValueError "steps", "tolerance"
/// Source   Lanczos 1950, doi:10.6028/jres.045.026
LanczosResult lanczos(const NamedLinop& A, const TensorType& x, const LanczosOptions& options = {});
/// Bytes that lanczos() takes at the worst moment.
index_t lanczos_bytes(const NamedLinop& A, const TensorType& x);

/// |A|^2, the largest eigenvalue of A.N(): exact for unitary operators, FiniteDifference and
/// Gradient, else 1.01 times the largest Ritz value of lanczos(). Kept until a parameter of the
/// operator is written.
struct OperatorNorm {
  double value = 0;
  int applications = 0;  ///< of A.N(), this time
};
OperatorNorm operator_norm2(const NamedLinop& A, const TensorType& x, std::uint64_t seed = 0);
/// The largest eigenvalue of a Hermitian positive N, 1.01 times the largest Ritz value, kept as
/// operator_norm2() is.
OperatorNorm largest_eigenvalue(const NamedLinop& N, const TensorType& x, std::uint64_t seed = 0);
/// Bytes that operator_norm2() takes when nothing is kept; 0 where it is known exactly.
index_t operator_norm2_bytes(const NamedLinop& A, const TensorType& x);

/// The eigenvalues of a real symmetric tridiagonal matrix, ascending; `below` has one less than
/// `diagonal`. By bisection, to rounding.
std::vector<double> tridiagonal_eigenvalues(const std::vector<double>& diagonal,
                                            const std::vector<double>& below);

}  // namespace palimpsest
