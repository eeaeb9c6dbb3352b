// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "palimpsest/distributed/team.hpp"
#include "palimpsest/imaging/recon/memory_ledger.hpp"
#include "palimpsest/imaging/reconstruct.hpp"
#include "palimpsest/linop/split/budget.hpp"
#include "palimpsest/solve/solve.hpp"

namespace palimpsest {

/// k-space is a grid.
struct GridSampling {
  /// Extents of the weights of a frame, 1 along axes on which they do not change; empty: those of
  /// the grid.
  Extents mask_extents = {};
};
/// k-space lies along trajectories, of frames one each: float32 (readouts, samples, D) in cycles
/// per field of view, x first.
struct PathSampling {
  std::vector<Tensor> trajectories = {};
  /// The weights of the data, until those of set_weights() take their place.
  std::optional<Tensor> density = {};
  /// The kernels of the normal operators lie in files that write_kernels() makes.
  bool kernels_in_file = false;
};

/// The unknown of one solve: the extents of its arrays, and whether they lie in mapped files.
struct ImageItem {
  index_t n_coils = 1;
  /// Extents and names of the image's axes: out of Nz, Ny, Nx.
  Extents shape;
  Dims dims;
  /// Frames of k-space that are solved together; 0: it has no such dimension.
  index_t frames = 0;
  /// complex64 (frames, B): the image has coefficients B in place of the frames.
  std::optional<Tensor> basis = {};
  index_t sets = 1;
  bool maps_in_file = false, kspace_in_file = false;
  std::variant<GridSampling, PathSampling> sampling = {};
  /// True: the coils see the image times the factors of set_phase().
  bool has_phase = false;
  /// The coils are those of this rank: others along the axis "coil" have theirs.
  Team team = {};
  /// Coils of all ranks: their images are added in the order of the coils. 0: in the order of the
  /// ranks.
  index_t leaves = 0;

  bool has_trajectory() const { return std::holds_alternative<PathSampling>(sampling); }
  const PathSampling& path() const { return std::get<PathSampling>(sampling); }
  bool has_density() const { return has_trajectory() && path().density.has_value(); }
  bool has_kernels_in_file() const { return has_trajectory() && path().kernels_in_file; }
  /// False if ranks share the coils.
  bool has_all_coils() const { return team.size() == 1 || team.size("coil") == 1; }
  /// T, or with a basis B, or nothing.
  Dims series() const;
  Dims image_dims() const;
  Extents image_shape() const;
  /// (C, ..) or (frames, C, ..).
  Extents kspace_shape() const;
  /// (C, ..) or (sets, C, ..).
  Extents maps_shape() const;
  /// Extents of the weights of the data: the grid, or the samples, of frames one each; on a grid
  /// with a basis those of subspace_weights().
  Extents weights_shape() const;
};

struct ImageSolverOptions {
  std::vector<Regularizer> regularizers = {};
  ReconstructMethod method = ReconstructMethod::automatic;
  std::optional<double> tolerance = {};
  /// At least the largest sum of |map|^2 over coils and sets of a point.
  double maps_norm2 = 1;
  /// At least the largest eigenvalue of A^H A; unset: found from maps_norm2.
  std::optional<double> norm2 = {};
  bool has_start = false;
  /// The callback may look at more than the residual.
  bool callback_takes_x = false;
  /// Of the iteration. The solver sets tolerances, start and budget.
  SolveOptions solve = {};
};

/// The minimizer of |A x - y|^2 / 2 + regularizers, that of the others within a ball, or A^H y, for
/// any number of items of one kind: planned, cut for a budget and compiled once. Maps, weights, the
/// unit of the regularizers and the start are set from item to item.
///
/// Errors   BudgetError: nothing fits; ValueError "cannot": a method that cannot do the
///          regularizers; those of the regularizers; "diverged" at the first step. A later one
///          leaves the last finite iterate
class ImageSolver {
 public:
  /// Bytes for each of the two stages. They count maps and weights, but those in mapped files as
  /// far as one step reads them; y does not count unless it is in one.
  struct Budgets {
    index_t adjoint, solve;
  };
  ImageSolver(const ImageItem& item, const ImageSolverOptions& options, const Budgets& budgets);
  ~ImageSolver();

  /// Lets the adjoint of a solver without a limit take one coil after the other where its peak is
  /// larger than that of the iteration. `more_beside_adjoint`: bytes held beside the adjoint less
  /// those held beside the iteration.
  void lower_adjoint_peak(index_t more_beside_adjoint);

  ReconstructMethod method() const;
  bool is_iterative() const { return method() != ReconstructMethod::adjoint; }
  index_t adjoint_bytes() const;
  /// The right-hand side included, that of a ball, y, only in a file; 0 for the adjoint alone.
  index_t solve_bytes() const;
  const BudgetSplit& adjoint() const;
  /// True if A^H y is made. With a ball it only gives the scale along trajectories.
  bool uses_adjoint() const;
  /// Undefined for the adjoint alone.
  const SolvePlan& solve() const;
  /// The plan of one iteration, or of the adjoint.
  const Plan& step() const;
  /// The operator that an iteration applies, or the adjoint, as text.
  std::string operator_text() const;

  /// float32 of weights_shape(): on a grid 1 where k-space was measured, else 0; complex64 those of
  /// subspace_weights().
  void set_weights(const Tensor& weights);
  /// Drops the weights of a grid: they take no memory until they are set again.
  void drop_weights();
  /// Bytes of the kernels that lie in files.
  index_t kernel_bytes() const;
  /// Before the first run, where kernels lie in files.
  void write_kernels(const std::string& folder);
  /// complex64 of the item's grid, of modulus 1. They take no memory until they are set again.
  void set_phase(const Tensor& factors);
  void drop_phase();
  /// Sets the factor of the terms proportional to |x|.
  void set_scale(double scale);
  /// Only with `has_start`.
  void set_start(Tensor image);
  /// Peak bytes of set_start(), the start included.
  static index_t start_bytes(const ImageItem& item, const ImageSolverOptions& options);
  /// Finds the scale from A^H y.
  using ScaleOf = std::function<double(const Tensor& adjoint)>;
  /// x of the result is the image. With `scale_of` the scale is set before the iteration.
  SolveResult run(const Tensor& kspace, const Tensor& maps, MemoryLedger& ledger,
                  const ScaleOf& scale_of = {});
  /// Bytes in both stages' numbers that are held during both: locations and kernels along a
  /// trajectory, and a basis.
  Budgets fixed_bytes() const;

  /// The smallest budgets for which a solver is found.
  static Budgets smallest(const ImageItem& item, const ImageSolverOptions& options);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// `[reg] 'TERM': what`, for a term that is wrong. In regularizers.cpp.
ValueError wrong_term(const Regularizer& regularizer, const std::string& what);

/// True if the scale of the data matters: for a term proportional to |x|, or for the result.
inline bool needs_scale(const std::vector<Regularizer>& regularizers, bool keep_scale) {
  return keep_scale || std::any_of(regularizers.begin(), regularizers.end(), is_relative);
}

/// The method that solves for these regularizers of an image with these dimensions; `wanted`, where
/// it is not automatic.
ReconstructMethod method_for(const std::vector<Regularizer>& regularizers, const Dims& image,
                             ReconstructMethod wanted);

}  // namespace palimpsest
