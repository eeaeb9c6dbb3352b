// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/distributed/team.hpp"
#include "palimpsest/imaging/calibration.hpp"
#include "palimpsest/imaging/partial_fourier.hpp"
#include "palimpsest/imaging/reconstruct.hpp"
#include "palimpsest/imaging/scan.hpp"
#include "palimpsest/io/cartesian.hpp"
#include "palimpsest/linop/split/budget.hpp"
#include "palimpsest/solve/solve.hpp"

namespace PALIMPSEST_API palimpsest {

struct ScanReconstructionOptions {
  /// Files: k-space, and coil maps; empty: maps are estimated from the middle of k-space.
  std::string kspace, maps;
  /// File with the start of the iteration, of the extents of the result.
  std::string start;
  /// Along a trajectory: file with weights of the samples, real, (readouts, samples).
  std::string weights;
  /// For a series: file with a basis, numbers (frames, coefficients). The result holds one image
  /// per coefficient; their sums, weighted with the rows of the basis, are the frames.
  std::string basis;
  /// File with the phase of the image, ([slice], [z], y, x): real numbers in radians, or complex
  /// ones whose magnitude does not matter. The result lacks this phase: the coils see it times
  /// exp(i phase), so that it may be required to be real.
  std::string phase;
  ScanOptions scan;
  std::vector<Regularizer> regularizers;
  ReconstructMethod method = ReconstructMethod::automatic;
  /// Has the meaning that it has in ReconstructOptions.
  std::optional<int> iterations = {};
  std::optional<double> tolerance = {};
  /// Unit of the weights of terms proportional to |x|; unset: that of the data. A slice has one for
  /// all its frames.
  std::optional<double> scale = {};
  /// The image is divided by the scale.
  bool keep_scale = false;
  /// Sets of estimated maps; the image is the root of the sum of squares over them.
  index_t sets = 1;
  /// A slice without calibration lines takes the maps of the nearest parallel slice that has some.
  bool share_maps = false;
  /// Virtual coils that take the place of those of the scan, and of given maps; unset: none do.
  std::optional<index_t> virtual_coils = {};
  /// For images of smooth phase: method to fill the side of k-space that was not measured.
  PartialFourier partial = PartialFourier::none;
  /// Bytes that may be held at a time, from opening the files to writing the results.
  std::optional<index_t> budget;
  /// The folder for files with the arrays that do not fit a budget.
  std::string scratch = ".";
  /// The coil maps are a result, too.
  bool keeps_maps = false;
  /// The most bytes held while the results of a scan are written, beside image and maps: by the
  /// allocator, and by others, which count during while_writing().
  std::function<SortingBytes(const ScanLayout& scan)> writing_bytes = {};
  std::optional<double> time_limit_s = {};
  std::optional<CancelToken> cancel = {};
  std::optional<CheckpointOptions> checkpoint = {};
  std::string resume = {};
  std::uint64_t seed = 0;
  /// The ranks that reconstruct together: all of them run it with these options. Solves are dealt
  /// out along the axis "solve" of the team and coils along "coil"; other axes are reshaped into
  /// these: as many solves side by side as there are, and coils of one solve with the ranks that
  /// are left. Rank 0 has the result.
  Team team = {};
};

/// A step on the way from file to image, and the most that is held during it.
struct Stage {
  std::string name;
  index_t bytes = 0;
};

/// Memory and stages of a reconstruction. The peak is that of its largest stage.
struct ScanReconstructionPlan {
  std::optional<index_t> budget;
  index_t peak_bytes = 0;
  std::vector<Stage> stages;
  /// True if k-space and maps lie in memory. False: they lie in files that are read a part at a
  /// time.
  bool in_memory = true;
  /// Bytes at a time: of a raw file for sorting, of k-space and of maps for taking columns.
  index_t sorting_piece = 0, columns_piece = 0, maps_piece = 0, calibration_piece = 0;
  index_t mean_piece = 0, compression_piece = 0;
  /// Planes of maps that are read from their file at a time.
  index_t maps_at_a_time = 1;
  /// Solves one after the other: slices, frames and planes that nothing ties together.
  index_t solves = 1;
  /// Frames of each.
  index_t frames = 1;
  /// The most iterations of each.
  int iterations = 0;
  ReconstructMethod method = ReconstructMethod::automatic;
  /// The axis of a solve's image along which one side of k-space is missing, if that is made up.
  std::optional<PartialLines> partial = {};
};

struct ScanReconstructionResult {
  /// complex64: ScanLayout::result_shape(). Of a cancelled run the image so far, undefined if there
  /// is none yet.
  Tensor image;
  /// complex64 ([slice], [set], coil, ..), if they were to be kept.
  Tensor maps;
  /// The status of the solve that converged least, and the test or limit that ended it.
  Status status = Status::converged;
  std::string reason;
  std::vector<Record> history;
  /// The most of any solve.
  index_t iterations = 0;
  /// Number of applications of each operator, in all solves.
  std::map<std::string, std::int64_t> applications;
  /// The scale of the first slice.
  double scale = 1;
  /// The part of the energy that virtual coils keep.
  double kept_energy = 1;
  double read_s = 0, sensitivities_s = 0, solve_s = 0;
};

/// The way from a file with k-space to an image: sorting, transforming a volume along its readout,
/// coil maps, and a solve for everything that no regularizer ties to the rest: a slice, a frame, a
/// plane across the readout. The constructor reads headers, finds out which points are measured,
/// and plans; run() does what was planned, with the programs that were compiled for the plan.
///
/// Order    of choice for a budget: all in memory; k-space and maps in files; tiles of coils
/// Errors   ValueError: unusable input; BudgetError naming the smallest budget that works
class PALIMPSEST_API ScanReconstruction {
 public:
  explicit ScanReconstruction(ScanReconstructionOptions options);
  ScanReconstruction(const ScanReconstruction&) = delete;
  ScanReconstruction& operator=(const ScanReconstruction&) = delete;
  ~ScanReconstruction();

  const ScanLayout& layout() const;
  /// The team, with the axes "solve" and "coil".
  const Team& team() const;
  /// Solves and coils of this rank, out of those of all.
  PartRange own_solves() const;
  PartRange own_coils() const;
  /// The area that maps of the first slice are estimated from; empty if they are given.
  CalibrationArea center() const;
  /// True if its maps are estimated from separate calibration lines, not from the image's own.
  bool uses_calibration() const;
  const ScanReconstructionPlan& plan() const;
  /// Plans of one solve: of A^H y, of the iteration (not of the adjoint alone), and of one step.
  const BudgetSplit& adjoint() const;
  const SolvePlan& solve() const;
  const Plan& step() const;
  /// NamedLinop::str() of the operator that one iteration applies, or of the adjoint.
  const std::string& operator_text() const;
  /// Gets the number of iterations done, out of plan().solves times the most of one.
  using Progress = std::function<void(index_t iterations, double residual)>;
  ScanReconstructionResult run(const Progress& progress = {});
  /// Calls `write`, the writer of results; it holds at most
  /// ScanReconstructionOptions::writing_bytes.
  void while_writing(const std::function<void()>& write);
  /// The most that was held so far, counted as the plan counts.
  index_t measured_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace palimpsest
