// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/imaging/forward_model.hpp"
#include "palimpsest/imaging/regularizers.hpp"
#include "palimpsest/imaging/scale.hpp"
#include "palimpsest/solve/solve.hpp"

namespace PALIMPSEST_API palimpsest {

/// Algorithms of a reconstruction.
enum class ReconstructMethod : std::uint8_t {
  automatic,    ///< cg where all is quadratic, fista for one function; else primal_dual
  adjoint,      ///< A^H y: zeros where nothing was measured
  cg,           ///< conjugate gradients
  fista,        ///< proximal gradient steps
  pogm,         ///< the proximal optimized gradient method
  primal_dual,  ///< the method of Condat and Vu, with a ball that of Chambolle and Pock
  admm,
  pocs,  ///< projections onto the data, the range of the maps and the constraints
};
const char* name_of(ReconstructMethod method);

/// The method for an objective: the wanted one, or the best if that is automatic.
///
/// Errors   ValueError "cannot": the wanted one does not do its functions, or not with a ball in
///          place of the data term
ReconstructMethod reconstruct_method(const Objective& objective, ReconstructMethod wanted,
                                     bool has_ball = false);

struct ReconstructOptions {
  std::vector<Regularizer> regularizers = {};
  ReconstructMethod method = ReconstructMethod::automatic;
  /// The most; a solve that does them all has not converged. Unset: 300; 30 with a ball or random
  /// shifts, where the objective may never settle.
  std::optional<int> iterations = {};
  /// Of methods other than cg the relative change of the objective over 10 iterations at which the
  /// solve has converged, of cg the relative residual; 0: never. Unset: 1e-4.
  std::optional<double> tolerance = {};
  /// Unit of the weights of terms proportional to |x|; `std::nullopt`: Brightness::scale() of the
  /// data.
  std::optional<double> scale = {};
  /// The image is divided by the scale.
  bool keep_scale = false;
  /// Phase of the image, on its grid: real numbers in radians, or complex ones whose magnitude does
  /// not matter. The result lacks this phase: the coils see x times exp(i phase), so that x may be
  /// required to be real. One phase for all frames, coefficients and sets.
  std::optional<Tensor> phase = {};
  /// Start of the iteration, an image.
  std::optional<Tensor> start = {};
  /// Bytes that the solve may take: operators are cut into tiles.
  std::optional<index_t> budget_bytes = {};
  std::optional<double> time_limit_s = {};
  std::function<bool(const SolveInfo&)> callback = {};
  std::optional<CancelToken> cancel = {};
  std::uint64_t seed = 0;
};

/// The most iterations: the wanted ones, or the default for these functions.
int iterations_of(const std::optional<int>& wanted, const std::vector<Regularizer>& regularizers);

/// The number at which a solve ends: the wanted one, or the default of the method.
double tolerance_of(const std::optional<double>& wanted);

struct Reconstruction {
  /// complex64, in the units of the data: ([T], [M], y, x) or ([T], [M], z, y, x); with a basis B
  /// in place of T.
  Tensor image;
  double scale = 1;
  /// The method that was used.
  ReconstructMethod method = ReconstructMethod::cg;
  /// The end of the solve; its x is undefined.
  SolveResult solve;
};

/// An image from k-space.
///
/// Math     min |A x - y|^2 / 2 + sum of regularizers, A = sense_model(maps, sampling); weights of
///          functions proportional to |x| are multiplied by the scale. With a ball: min of the
///          others with |A x - y| <= its radius times the scale
/// Shapes   kspace (C, ..), of a series (T, C, ..); without mask, points that are 0 in all coils
///          count as not measured
/// DTypes   complex64
/// Errors   ShapeError, DTypeError: arrays do not fit; ValueError "cannot": a method that does not
///          support the regularizers; "ball": with a basis; "NaN"; "differ at": k-space is not 0
///          where the mask is; those of the solvers
/// Cost     plan_reconstruct()
/// Source   Pruessmann et al. 2001, doi:10.1002/mrm.1241; Lustig et al. 2007,
///          doi:10.1002/mrm.21391
Reconstruction reconstruct(const Tensor& kspace, const Tensor& maps,
                           const KspaceSampling& sampling = {},
                           const ReconstructOptions& options = {});

/// The plan of the solve of reconstruct(): its memory beside k-space and maps.
SolvePlan plan_reconstruct(const Tensor& kspace, const Tensor& maps,
                           const KspaceSampling& sampling = {},
                           const ReconstructOptions& options = {});

/// bool (y, x) or (z, y, x), of a series (T, ..): the points that are not 0 in some coil.
///
/// Shapes   kspace (C, ..), of a series (T, C, ..)
Tensor measured_points(const Tensor& kspace, bool is_series = false);

}  // namespace palimpsest
