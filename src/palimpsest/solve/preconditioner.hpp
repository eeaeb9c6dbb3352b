// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

/// Choice of the polynomial p for which p(T) approximates the inverse of T. l2: minimizes the
/// integral of (1 - x p(x))^2 over the interval; linf: the largest |1 - x p(x)| in it; ifista: the
/// sum of (1 - x)^j, as steps of gradient descent give it.
enum class PolynomialNorm : std::uint8_t { l2, linf, ifista };

struct PolynomialOptions {
  PolynomialNorm norm = PolynomialNorm::l2;
  /// Bounds of the eigenvalues of T.
  double lower = 0, upper = 1;
};

/// p(T) = sum of c_j T^j, an approximate inverse of a Hermitian positive T: the `M` of a solver.
///
/// Math     by Horner's rule in T - (lower + upper) / 2, of ifista in T - 1: powers of T itself
///          cancel, and of degree 8 no digit would be left in single precision
/// Errors   ShapeError "Mismatched": T is not square; ValueError "lower": unless lower < upper,
///          finite, and for linf 0 < lower; ValueError "positive": p is 0 or negative somewhere
///          between lower and upper; "degree": rounding would exceed p; "norm": none of these
/// Cost     `degree` applications of T; degree < 0: Identity
/// Source   Johnson, Micchelli and Paul 1983, doi:10.1137/0720025; Iyer et al. 2022,
///          doi:10.48550/arXiv.2204.10252
NamedLinop polynomial_preconditioner(const NamedLinop& T, int degree,
                                     const PolynomialOptions& options = {});

/// The numbers c_j of this polynomial, in ascending powers of x. Errors as above.
std::vector<double> polynomial_coefficients(int degree, const PolynomialOptions& options = {});

}  // namespace palimpsest
