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
  /// Direction of differences in the isotropic norm; the other one has another optimum.
  DifferenceDirection direction = DifferenceDirection::forward;
  /// Dimensions whose gradients are joined with those of `over` in one norm.
  Dims joint = {};
  /// Dimensions of the operand; unset: those of x, by name. Without names those of `over` are last.
  std::optional<Dims> dims = {};
  /// Limits of the prox: most steps on the dual problem, and the relative duality gap at which it
  /// ends.
  int inner = 20;
  double inner_tolerance = 1e-3;
};

/// lambda times the total variation along `over`, as a term for minimize(): a norm of the gradient,
/// without an inner loop.
///
/// Errors   ValueError "lambda"; ShapeError "over"
/// Source   Rudin, Osher and Fatemi 1992, doi:10.1016/0167-2789(92)90242-F
Term tv_term(const Weight& lambda, const Dims& over, const TotalVariationOptions& options = {});

struct TgvOptions {
  /// Weights of the first and of the second order.
  double alpha1 = 1, alpha0 = 2;
  DifferenceBoundary boundary = DifferenceBoundary::neumann;
  /// Direction of the gradient; that of the field w is taken in the other direction.
  DifferenceDirection direction = DifferenceDirection::forward;
  /// Name of the new first dimension of the unknown.
  ND part = "Tgv";
};
/// |A x - b|^2 / 2 + lambda times the total generalized variation of second order along `over`:
/// constant slopes cost nothing, changes of slope do. The unknown has 1 + D parts along a new first
/// dimension, for D dimensions of `over`: part 0 is x, the others are the field w.
///
/// Math     alpha1 sum of |grad x - w| + alpha0 sum of |E w|, with the symmetrized gradient E w. Of
///          its D^2 entries (d_i w_j + d_j w_i) / 2 two equal ones are kept as one
/// Errors   ValueError "lambda", "alpha1", "alpha0"; ShapeError "over"
/// Source   Bredies, Kunisch and Pock 2010, doi:10.1137/090769521
Objective tgv_objective(const NamedLinop& A, const Weight& lambda, const Dims& over,
                        const TgvOptions& options = {});

/// The total variation as a function of x. The prox is fast gradient projection
/// on the dual, which is kept and is the start of the next call.
///
/// Memory   the dual: a vector for each dimension of `over`
/// Errors   as tv_term(); ValueError "inner", "inner_tolerance"
/// Source   Beck and Teboulle 2009, doi:10.1109/TIP.2009.2028250
Prox TotalVariation(const Weight& lambda, const Dims& over,
                    const TotalVariationOptions& options = {});

}  // namespace palimpsest
