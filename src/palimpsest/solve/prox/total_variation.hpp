// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/transforms/finite_difference.hpp"
#include "palimpsest/solve/objective.hpp"
#include "palimpsest/solve/prox/norms.hpp"

namespace PALIMPSEST_API palimpsest {

struct TotalVariationOptions {
  /// The norm of the gradient at each point; else the sum of its components.
  bool isotropic = true;
  DifferenceBoundary boundary = DifferenceBoundary::neumann;
  /// Of the isotropic norm: the other one has another optimum.
  DifferenceDirection direction = DifferenceDirection::forward;
  /// Dimensions whose gradients are joined with those of `over` in one norm.
  Dims joint = {};
  /// Dimensions of the operand; unset: those over which differences are taken are the last.
  std::optional<Dims> dims = {};
  /// Of the prox: most steps on the dual problem, and the relative duality gap at which it ends.
  int inner = 20;
  double inner_tolerance = 1e-3;
};

/// lambda times the total variation along `over`, as a term for minimize(): a norm of the gradient,
/// without an inner loop.
///
/// Errors   ValueError "lambda"; ShapeError "over"
/// Source   Rudin, Osher and Fatemi 1992, doi:10.1016/0167-2789(92)90242-F
Term tv_term(const Weight& lambda, const Dims& over, const TotalVariationOptions& options = {});

/// The same as a function of x. The prox is fast gradient projection on the dual, which is kept and
/// is the start of the next call.
///
/// Memory   the dual: a vector for each dimension of `over`
/// Errors   as tv_term(); ValueError "inner", "inner_tolerance"
/// Source   Beck and Teboulle 2009, doi:10.1109/TIP.2009.2028250
Prox TotalVariation(const Weight& lambda, const Dims& over,
                    const TotalVariationOptions& options = {});

}  // namespace palimpsest
