// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest/cli/columns.hpp"
#include "palimpsest/cli/recon/scan.hpp"
#include "palimpsest/cli/recon/sense.hpp"
#include "palimpsest/imaging/sensitivities.hpp"

namespace palimpsest::cli {

struct ReconstructionOptions {
  /// Files: k-space, and coil maps; empty: maps are estimated from the centre of k-space.
  std::string kspace, maps;
  ScanOptions scan;
  SenseOptions sense;
  /// Bytes that may be held at a time, from opening the files to writing the results.
  std::optional<index_t> budget;
  /// The folder of files that hold what a budget does not allow to be in memory.
  std::string scratch = ".";
  /// The coil maps are a result, too.
  bool keeps_maps = false;
};

/// One step on the way from file to image, and the most that is held during it.
struct Stage {
  std::string name;
  index_t bytes = 0;
};

/// What a reconstruction will take. The peak is that of its largest stage.
struct ReconstructionPlan {
  std::optional<index_t> budget;
  index_t peak_bytes = 0;
  std::vector<Stage> stages;
  /// Where k-space and maps lie; else in files that are read a part at a time.
  bool in_memory = true;
  /// Bytes at a time: of a raw file that are sorted, of k-space and of maps whose columns are
  /// taken.
  index_t sorting_piece = 0, columns_piece = 0, maps_piece = 0, calibration_piece = 0;
  /// Planes whose maps are read from their file at a time.
  index_t maps_at_a_time = 1;
};

struct ReconstructionResult {
  /// complex64: ScanLayout::image_shape().
  Tensor image;
  /// complex64 (coil, ..), if they were to be kept: ScanLayout::short_maps_shape().
  Tensor maps;
  /// Of the item that converged least.
  std::string status;
  std::vector<double> residuals;
  /// The most of any item.
  index_t iterations = 0;
  double read_s = 0, sensitivities_s = 0, solve_s = 0;
};

/// The way from a file with k-space to an image: sorting, transforming a volume along its readout,
/// coil maps, and a solve for every item. The constructor reads headers, finds out which points are
/// measured and plans; run() does what was planned, with the programs that were compiled for the
/// plan.
///
/// Errors   UsageError: unusable input; BudgetError naming the smallest budget that works
class Reconstruction {
 public:
  explicit Reconstruction(ReconstructionOptions options);
  Reconstruction(const Reconstruction&) = delete;
  Reconstruction& operator=(const Reconstruction&) = delete;
  ~Reconstruction();

  const ScanLayout& layout() const { return scan_.layout(); }
  /// Where maps are estimated from; empty if they are given.
  const CalibrationArea& center() const { return center_; }
  /// Are they estimated from separate calibration lines, not from the image's own?
  bool uses_calibration() const { return !has_maps() && scan_.calibration_mask().defined(); }
  const ReconstructionPlan& plan() const { return plan_; }
  const SenseSolver& solver() const { return *solver_; }
  /// Gets the number of iterations done, out of n_items() times the most of one.
  using Progress = std::function<void(index_t iterations, double residual)>;
  ReconstructionResult run(const Progress& progress = {});
  /// The most that was held so far, counted as the plan counts.
  index_t measured_bytes() const { return ledger_.peak_bytes(); }

 private:
  struct Draft;

  bool has_maps() const { return !options_.maps.empty(); }
  bool has_plane_maps() const;
  bool copies_maps(bool in_memory) const;
  bool arranges() const;
  ColumnTaker kspace_taker(index_t piece_bytes, bool in_memory) const;
  ColumnTaker maps_taker(index_t first, index_t count, index_t piece_bytes, bool in_memory) const;
  Place place() const { return {plan_.in_memory, options_.scratch}; }

  index_t plan_calibration(Draft& draft, index_t beside) const;
  void plan_kspace(Draft& draft) const;
  index_t espirit_bytes() const;
  void plan_maps(Draft& draft) const;
  void plan_solve(Draft& draft) const;
  Draft draft(bool in_memory) const;
  index_t smallest_of(const Draft& draft) const;
  void choose();

  Tensor items_of_kspace();
  void take_calibration();
  void check_range(const Tensor& kspace);
  Tensor given_maps(index_t first);
  Tensor maps_of_item(const Tensor& kspace, index_t item);
  void check_maps(const Tensor& maps);
  void check_image(const Tensor& image) const;
  void solve_items(const Tensor& kspace, ReconstructionResult& result);
  void take_item(const SenseResult& found, index_t item, ReconstructionResult& result) const;

  ReconstructionOptions options_;
  MemoryLedger ledger_;
  Scan scan_;
  GridFile maps_file_;
  CalibrationArea center_;  // without a limit of its extents
  EspiritOptions espirit_;
  ReconstructionPlan plan_;
  std::unique_ptr<SenseSolver> solver_;
  // While running.
  Tensor maps_;                  // of a file, dense
  Tensor group_;                 // (item, coil, ..) of them
  Tensor calibration_;           // k-space of separate calibration lines, (item, coil, ..)
  std::vector<double> largest_;  // |k-space|^2 of every item
  Progress progress_;
  index_t item_ = 0;
};

}  // namespace palimpsest::cli
