// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <fmt/format.h>

#include <array>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/stop_watch.hpp"
#include "palimpsest/distributed/team.hpp"
#include "palimpsest/imaging/recon/columns.hpp"
#include "palimpsest/imaging/recon/image_solver.hpp"
#include "palimpsest/imaging/recon/pixels.hpp"
#include "palimpsest/imaging/recon/scan_file.hpp"
#include "palimpsest/imaging/scan_reconstruction.hpp"
#include "palimpsest/imaging/sensitivities.hpp"
#include "palimpsest/linop/split/cache_tiles.hpp"

namespace palimpsest {

/// The error about this field of ScanReconstructionOptions.
template <class... Values>
ValueError wrong_option(const char* field, fmt::format_string<Values...> text, Values&&... values) {
  return ValueError(fmt::format("[ScanReconstructionOptions.{}] ", field) +
                    fmt::format(text, std::forward<Values>(values)...));
}

inline index_t total(const SortingBytes& bytes) { return bytes.tensors + bytes.others; }

/// Bytes read or worked on at a time: the planner tries sizes from the largest to the smallest.
inline constexpr index_t kLargestPiece = index_t{16} << 20, kSmallestPiece = index_t{1} << 16;

/// Planes of a volume below this part of its largest value are rounding errors of empty ones.
inline constexpr double kEmptyPlane = 1e-6;

/// True if a solve with this end and history converged less than one with those.
bool is_worse(Status status, const std::vector<Record>& history, Status than,
              const std::vector<Record>& history_of_that);

/// Opening is in scan_open.cpp. Each stage has a file with its plan and its work: scan_kspace.cpp,
/// scan_maps.cpp, scan_solve.cpp and scan_images.cpp. scan_run.cpp goes through them.
struct ScanReconstruction::Impl {
  explicit Impl(ScanReconstructionOptions given);

  /// Measured bytes of making a solver. Its operators, or programs, hold memory of their own.
  struct Rehearsal {
    index_t operator_bytes = 0;      // locations and kernels along a trajectory
    index_t constructing_bytes = 0;  // the peak until they were made
    index_t making_bytes = 0;        // the most that making them takes
    index_t kernel_bytes = 0;        // of those that lie in files
    ImageSolver::Budgets fixed = {0, 0};
  };

  /// A plan for one place of the large arrays. The functions plan_..() follow the way of the data:
  /// each adds the stages that run beside what is held, then holds what its stages leave.
  struct Draft {
    ScanReconstructionPlan plan;
    index_t held = 0;   // bytes that are held at this point of the way
    index_t least = 0;  // the smallest budget for the stages so far
    ImageItem item;
    Rehearsal rehearsed;
    ImageSolver::Budgets budgets = {0, 0};
    std::unique_ptr<ImageSolver> solver;  // null if the rest of the budget is too small
    index_t calibration = 0;              // bytes held from plan_calibration() on
    index_t weights = 0, image = 0;
    index_t kept_maps = 0;  // while results are written

    // Bytes in memory of an array of samples; one in a file has none.
    index_t bytes_of(const Extents& shape) const {
      return plan.in_memory ? sample_bytes(shape) : 0;
    }
    // Bytes in memory of the maps that a solve takes.
    index_t maps_of_solve() const {
      return item.maps_in_file ? 0 : sample_bytes(item.maps_shape());
    }
    void add(const std::string& name, index_t bytes) { add(name, bytes, bytes); }
    void add(const std::string& name, index_t bytes, index_t least_bytes) {
      plan.stages.push_back({name, held + bytes});
      plan.peak_bytes = std::max(plan.peak_bytes, held + bytes);
      least = std::max(least, held + least_bytes);
    }
    // Adds a stage with the largest piece that fits the budget, and sets `piece`.
    template <class Bytes>
    void add_in_pieces(const std::string& name, index_t& piece, const Bytes& bytes) {
      const index_t limit = plan.budget.value_or(kNoLimit);
      for (piece = kLargestPiece; piece > kSmallestPiece; piece /= 2) {
        if (held + bytes(piece) <= limit) break;
      }
      add(name, bytes(piece), bytes(kSmallestPiece));
    }
  };

  /// Source of the estimated maps of a slice.
  struct MapSource {
    index_t slice = 0;
    bool is_calibration = false;
    CalibrationArea center;  // without a limit of its extents
    CalibrationArea area;
  };

  // -- facts --------------------------------------------------------------------------------------
  const ScanLayout& layout() const { return scan.layout(); }
  index_t frames() const { return is_tied ? layout().n_frames() : 1; }
  index_t groups() const { return layout().n_frames() / frames(); }
  index_t images() const { return layout().n_slices() * groups(); }
  /// True if the result exists before the first solve.
  bool is_stacked() const { return images() > 1 || layout().n_items() > 1; }
  Place place() const { return {plan.in_memory, options.scratch}; }
  /// True if k-space is turned into planes, or its readouts are cut.
  bool arranges() const {
    return layout().is_cut() || (layout().division == Division::planes && layout().grid[3] > 1 &&
                                 !layout().has_trajectory());
  }
  bool has_maps() const { return !options.maps.empty(); }
  bool has_plane_maps() const {
    return has_maps() && layout().division == Division::planes && layout().columns > 1;
  }
  /// True for maps that do not lie as they are used: they are copied once.
  bool copies_maps(bool in_memory) const {
    return !maps_file.is_dense() || scan.mixer() != nullptr ||
           (in_memory && !has_plane_maps() && is_mapped(maps_file.array));
  }
  /// True if the maps that a solve reads lie in a file.
  bool maps_lie_in_files(bool in_memory) const {
    return !in_memory && (!has_maps() || has_plane_maps() || copies_maps(in_memory) ||
                          maps_file.held_bytes() == 0);
  }
  template <class Is>
  bool any_source(Is is) const {
    return std::any_of(sources.begin(), sources.end(), is);
  }
  /// True if maps are estimated before the frames of a slice are solved: of several frames, or
  /// where some slice takes the maps of another one.
  bool maps_first() const {
    if (has_maps()) return false;
    return layout().n_frames() > 1 || any_source([&](const MapSource& source) {
             return source.slice != &source - sources.data();
           });
  }
  /// True if some slice's maps come from k-space of images, not from separate calibration lines.
  bool uses_images_for_maps() const {
    return any_source([](const MapSource& source) { return !source.is_calibration; });
  }
  /// True if the unit of the regularizers is found from the data.
  bool wants_scale() const {
    return !options.scale && needs_scale(options.regularizers, options.keep_scale);
  }
  bool scales_on_grid() const { return wants_scale() && !layout().has_trajectory(); }
  /// From A^H y of frames that are solved one by one along trajectories?
  bool wants_scale_of_frames() const {
    return wants_scale() && layout().has_trajectory() && groups() > 1;
  }
  /// Bytes of |A^H y| for that: 0 for up to two sets, which fit into the memory of the images.
  index_t magnitude_bytes() const {
    if (!wants_scale_of_frames() || options.sets <= 2) return 0;
    return groups() * options.sets * byte_count(layout().item_shape(), DType::float32);
  }
  /// (set * coil, z, y, x) of a slice, of a file.
  Extents given_maps_shape() const {
    Extents shape = layout().maps_shape();
    shape[0] *= options.sets;
    return shape;
  }
  /// (coil, ..) or (set, coil, ..).
  Extents maps_of_item_shape() const {
    Extents shape = layout().item_array_shape();
    if (options.sets > 1) shape.insert(0, options.sets);
    return shape;
  }
  ColumnTaker kspace_taker(index_t n_frames, index_t piece_bytes, bool in_memory) const;
  ColumnTaker maps_taker(index_t first, index_t count, index_t piece_bytes, bool in_memory) const;
  /// The pixels of the image out of those of a solve.
  PixelTaker pixel_taker() const {
    Extents item = layout().item_shape();
    if (is_tied) item.insert(0, basis ? basis->shape(1) : layout().n_frames());
    return {item, layout().axes_of_item()};
  }

  // -- several ranks, in scan_team.cpp -----------------------------------------------------------
  void shape_team();
  PartRange own_solves() const;
  PartRange own_coils() const;
  bool has_part_of_coils() const { return team.size("coil") > 1; }
  /// True if this rank does one of these solves.
  bool owns_any(index_t first, index_t count) const;
  /// This rank's coils of an array with coils along axis `axis`.
  Tensor part_of_coils(const Tensor& whole, index_t axis) const;
  /// The view of a result, or of the starts, that is the image of a solve.
  Tensor place_of(const Tensor& image, index_t slice, index_t group, index_t item) const;
  void check_agreement() const;
  bool is_any_timed_out() const;
  void gather(ScanReconstructionResult& result);
  void gather_images(Tensor& image);
  void gather_maps();

  // -- opening -----------------------------------------------------------------------------------
  void open_basis();
  void check_options();
  void check_ball(const Regularizer& ball) const;
  void check_regularizers() const;
  void open_given_maps();
  MapSource own_source(index_t slice) const;
  index_t nearest_source(index_t slice, const std::vector<bool>& has_own) const;
  void open_center();
  void share_sources(const std::vector<bool>& has_own);
  void open_weights();
  void open_partial();
  std::optional<PartialLines> partial_of(index_t slice, index_t frame) const;

  // -- planning ----------------------------------------------------------------------------------
  void rehearse_calibration();
  const Rehearsal& rehearsal(bool in_memory);
  std::optional<Tensor> density_of(index_t group) const;
  ImageItem item_of(bool in_memory, index_t group = 0) const;
  /// True if frames are solved one by one along trajectories that differ.
  bool has_operators_of_frames() const;
  ImageSolverOptions solver_options();
  index_t espirit_bytes() const;
  void plan_calibration(Draft& draft) const;
  void plan_mean(Draft& draft) const;
  void plan_kspace(Draft& draft) const;
  void plan_maps(Draft& draft) const;
  void plan_solve(Draft& draft);
  void plan_results(Draft& draft) const;
  void plan_image(Draft& draft) const;
  Draft draft(bool in_memory);
  index_t smallest_of(const Draft& draft);
  bool may_fit_in_memory();
  void choose();

  // -- running -----------------------------------------------------------------------------------
  ScanReconstructionResult run(const Progress& progress);
  void prepare_solver(index_t group, bool for_scale = false);
  SolveResult solved(const Tensor& kspace, const Tensor& of_item, index_t slice, index_t group,
                     index_t item, const ImageSolver::ScaleOf& scale_of);
  void run_slice(index_t slice, ScanReconstructionResult& result);
  void run_group(index_t slice, index_t group, ScanReconstructionResult& result);
  void take_calibration(index_t slice);
  void take_mean(index_t slice);
  Tensor arranged(const Tensor& grid, index_t n_frames, index_t piece);
  Tensor items_of_kspace(index_t slice, index_t group);
  const Tensor& samples_of(index_t slice);
  Tensor kspace_of_frames(const Tensor& all, index_t group) const;
  void take_scale(const Tensor& grid);
  void take_scale_of_frames(index_t slice, Tensor of_slice);
  Tensor kspace_of_solve(const Tensor& kspace, index_t group, index_t item) const;
  void set_weights(index_t slice, index_t group);
  void check_range(const Tensor& kspace);
  Tensor given_maps(index_t first);
  Tensor maps_of_item(const Tensor& kspace, index_t item);
  Tensor estimated_maps(const Tensor& kspace);
  void estimate_all_maps(const Tensor& kspace);
  void check_maps(const Tensor& maps);
  void check_image(const ScanReconstructionResult& result) const;
  Tensor phase_of(index_t slice, index_t item) const;
  void take_item(SolveResult& found, index_t slice, index_t group, index_t item,
                 ScanReconstructionResult& result) const;
  void keep_maps(const Tensor& maps, index_t slice, index_t item);
  bool is_over(const SolveInfo& info);

  ScanReconstructionOptions options;
  MemoryLedger ledger;
  ScanFile scan;
  Team team;
  bool is_tied = false;
  GridFile maps_file;
  double maps_norm2 = 1;
  std::vector<MapSource> sources;  // of each slice
  EspiritOptions espirit_options;
  std::optional<Tensor> basis;                        // complex64 (frames, coefficients)
  std::optional<Tensor> density;                      // float32 (readouts, samples)
  std::optional<Tensor> start;                        // mapped
  std::optional<Tensor> phase;                        // mapped, ([slice], [z], y, x)
  std::vector<std::optional<PartialLines>> partials;  // of each slice and group
  index_t rehearsed_bytes = 0;  // of calibration data along a trajectory, of one coil
  std::array<std::optional<Rehearsal>, 2> rehearsals;  // with kernels in files, and in memory
  // The solver of the latest rehearsal, without a limit, and the place of its arrays.
  std::unique_ptr<ImageSolver> rehearsed_solver;
  bool rehearsed_in_memory = true;
  ScanReconstructionPlan plan;
  std::string operator_text;
  index_t writing_bytes = 0;  // of others than the allocator
  std::unique_ptr<ImageSolver> solver;
  ImageSolver::Budgets budgets = {0, 0};
  index_t solver_group = 0;
  bool solver_is_for_scale = false;
  // While running.
  Tensor maps;                            // of a file, dense, of a slice
  Tensor all_maps;                        // (item, [set], coil, ..), estimated before the frames
  std::optional<ScratchArray> kept_maps;  // (slice, item, [set], coil, ..)
  Tensor group_of_maps;                   // (item, coil, ..) of a file
  Tensor samples;                         // along a trajectory, of the slice
  Tensor calibration;                     // k-space of separate calibration lines, (item, coil, ..)
  std::vector<double> largest;            // real or imaginary part of every item
  std::optional<double> scale;            // of this slice
  Progress progress;
  index_t solves_done = 0, samples_slice = -1, maps_slice = 0, first_of_group = 0;
  StopWatch clock;
  bool is_timed_out = false, is_cancelled = false;
};

}  // namespace palimpsest
