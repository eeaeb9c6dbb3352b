// SPDX-License-Identifier: Apache-2.0
// Internal: eigenvectors of many small Hermitian matrices given by a trigonometric polynomial.
#pragma once

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// The number of points is padded to a multiple of this.
inline constexpr index_t kPointLanes = 16;

/// G(t) = sum over d = 1 - k .. k - 1 of c_d exp(i d t), n x n and Hermitian for each t. Elements
/// (a, b), a >= b, in the order (0,0), (1,0), (1,1), (2,0), ..: `pairs` = n (n + 1) / 2 of them.
struct MatrixPolynomial {
  index_t n = 0, k = 0;
  /// 2 k - 1 blocks of `pairs` numbers: c_0, then for d = 1 .. c_d + c_-d and i (c_d - c_-d), so
  /// that G(t) = c_0 + sum over d >= 1 of (c_d + c_-d) cos(d t) + i (c_d - c_-d) sin(d t).
  const float *re = nullptr, *im = nullptr;
  /// cos(d t_j) at cos[(d - 1) points + j], sin alike, for d = 1 .. k - 1.
  const float *cos = nullptr, *sin = nullptr;
  index_t points = 0;  ///< a multiple of kPointLanes

  index_t pairs() const { return n * (n + 1) / 2; }
};

/// Unit vectors of n numbers for each of the points, element a of point j at [a points + j].
struct DominantVectors {
  float *re = nullptr, *im = nullptr;  ///< in: start vectors; out: eigenvectors
  float* values = nullptr;             ///< the eigenvalue
  float* residuals = nullptr;          ///< |G s - e s|
  /// The sum of the fourth powers of all eigenvalues, |G G|^2: a bound for the eigenvalues that are
  /// not computed. Null: not computed.
  float* fourth_powers = nullptr;
};

/// Runs power iterations for every point until all residuals of a group of points are below
/// `tolerance`, or `steps` times. Points lie side by side in the lanes of a vector.
///
/// Aliases  work holds dominant_vectors_work(n) floats
/// Cost     `points` (4 k + 4 steps) n^2 multiplications at most, and 2 n^3 for fourth_powers
void dominant_vectors(const MatrixPolynomial& g, const DominantVectors& s, int steps,
                      float tolerance, float* work);
index_t dominant_vectors_work(index_t n);

}  // namespace palimpsest
