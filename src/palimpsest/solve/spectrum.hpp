// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/solve/frame/solver.hpp"

namespace PALIMPSEST_API palimpsest {

/// An end of a spectrum.
enum class SpectrumEnd : std::uint8_t { largest, smallest };

struct LanczosOptions {
  int steps = 20;
  /// Relative change of the Ritz value at the end `which` from one step to the next.
  double tolerance = 1e-3;
  SpectrumEnd which = SpectrumEnd::largest;
  /// Ritz vectors too: a vector per step is kept, and as many are made at the end.
  bool vectors = false;
  std::uint64_t seed = 0;
};
struct LanczosResult {
  /// Ritz values, ascending.
  std::vector<double> values;
  int steps = 0;
  /// (steps, x..): the Ritz vector of each value, of length 1; undefined unless asked for.
  Tensor vectors = {};
};
/// Ritz values of a Hermitian operator, from a random start, by the three-term recurrence.
///
/// Cost     one A per step; 2 vectors, with Ritz vectors 2 more per step. Only neighbours in the
///          basis are kept orthogonal: after many steps a value may come twice
/// Errors   ShapeError "Mismatched"; ValueError "steps", "tolerance", "not finite": A x of a step
/// Source   Lanczos 1950, doi:10.6028/jres.045.026
LanczosResult lanczos(const NamedLinop& A, const TensorType& x, const LanczosOptions& options = {});
/// Bytes that lanczos() takes at the worst moment.
index_t lanczos_bytes(const NamedLinop& A, const TensorType& x);

/// The result of operator_norm2() and largest_eigenvalue().
struct OperatorNorm {
  double value = 0;
  int applications = 0;  ///< of A.N(), this time
};
/// |A|^2, the largest eigenvalue of A.N(): exact for unitary operators, FiniteDifference and
/// Gradient, else 1.01 times the largest Ritz value of lanczos(). Kept until a parameter of the
/// operator is written.
OperatorNorm operator_norm2(const NamedLinop& A, const TensorType& x, std::uint64_t seed = 0);
/// The largest eigenvalue of a Hermitian positive N, 1.01 times the largest Ritz value, kept as
/// operator_norm2() is.
OperatorNorm largest_eigenvalue(const NamedLinop& N, const TensorType& x, std::uint64_t seed = 0);
/// Bytes of operator_norm2() without a kept norm; 0 if the norm is known exactly.
index_t operator_norm2_bytes(const NamedLinop& A, const TensorType& x);

/// The eigenvalues of a real symmetric tridiagonal matrix, ascending; `below` has one less than
/// `diagonal`. By bisection, to rounding.
std::vector<double> tridiagonal_eigenvalues(const std::vector<double>& diagonal,
                                            const std::vector<double>& below);

struct SvdOptions {
  /// Compared with the largest |A^H u - s v| of the triplets, relative to the largest s.
  double tolerance = 1e-5;
  /// Steps of one A and one A^H.
  int max_iterations = 1000;
  /// Vectors of each basis; 0: 2 k + 10.
  index_t vectors = 0;
  /// Matrices with a side of at most this are computed whole, where the budget allows it.
  index_t dense_side = 512;
  /// Dtype of U and Vh, or their real type; unset: the precision of A's parameters.
  std::optional<DType> dtype = {};
  PALIMPSEST_SOLVE_OPTIONS;
};
struct SvdResult {
  Tensor U;   ///< (o.., k) with the axes of A's output, views of one array with Vh
  Tensor S;   ///< (k), of a batch (batch.., k); real, descending
  Tensor Vh;  ///< (k, i..) with the axes of A's input
  Status status = Status::max_iterations;
  int iterations = 0;
  std::map<std::string, std::int64_t> applications;
  index_t peak_bytes = 0;
};
/// The k largest singular values of A and their vectors, A = U diag(S) Vh.
///
/// Math     Golub-Kahan-Lanczos with both bases kept orthonormal; when they are full, those of the
///          best triplets stay. Vectors of S = 0 are orthonormal too. Matrices with a small side:
///          every column or row, then a dense decomposition
/// Status   converged; a run that ends before k steps has vectors that are 0
/// Memory   `vectors` vectors of the input and one more than as many of the output; with a side s,
///          s of the longer ones, and twice that, in double precision, at the end
/// Cost     one A and one A^H per step, two passes over both bases; a dense decomposition of
///          `vectors` rows when they are full. With a small side: one A per column, or one A^H per
///          row
/// Errors   ValueError "k": not positive, or more than the smaller side; "vectors": at most k;
///          ShapeError "is unknown": a size; those of Solver
/// Source   Golub and Kahan 1965, doi:10.1137/0702016; restart: Baglama and Reichel 2005,
///          doi:10.1137/04060593X
SvdResult svd(const NamedLinop& A, index_t k, const SvdOptions& options = {});
/// Plan of svd(): memory, with the start vector of the size of the output.
SolvePlan plan_svd(const NamedLinop& A, index_t k, const SvdOptions& options = {});

}  // namespace palimpsest
