// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/solve/prox/prox.hpp"

namespace PALIMPSEST_API palimpsest {

// In all of these lambda >= 0 multiplies the function, `over` names the dimensions that belong
// together (none: all), and `dims` those of the operand (unset: where it is used). Each prox is one
// or two passes. Errors  ValueError "lambda"; ShapeError "over".

struct L1Options {
  /// Real and not negative, broadcast against x: lambda for each element.
  std::optional<Tensor> weights = {};
  std::optional<Dims> dims = {};
};
/// lambda sum of |x_j|; the prox keeps the phase of complex numbers.
Prox L1(const Weight& lambda = 1.0, const L1Options& options = {});

struct NormOptions {
  Dims over = {};
  std::optional<Dims> dims = {};
};
/// lambda |x|, the norm over `over`; summed over the other dimensions.
Prox L2(const Weight& lambda = 1.0, const NormOptions& options = {});
/// lambda times the sum over the other dimensions of the norm over `over`: joint sparsity.
Prox L21(const Weight& lambda, const Dims& over, std::optional<Dims> dims = {});

struct SquaredL2Options {
  /// Broadcasts against x; none: 0.
  std::optional<Tensor> center = {};
  std::optional<Dims> dims = {};
};
/// lambda / 2 |x - center|^2.
Prox SquaredL2(const Weight& lambda = 1.0, const SquaredL2Options& options = {});

/// lambda times the sum of |x|^2 / (2 delta) where |x| <= delta, and |x| - delta / 2 beyond.
/// Errors   ValueError "delta": not positive
Prox Huber(const Weight& lambda = 1.0, double delta = 1.0, std::optional<Dims> dims = {});

/// 0 everywhere.
Prox ZeroProx();

/// Functions of a user, which must be pure. The prox receives v and t > 0. Cannot be saved.
/// Errors   ValueError: no prox
Prox CustomProx(ProxFunctions functions, std::string name = "Custom");

}  // namespace palimpsest
