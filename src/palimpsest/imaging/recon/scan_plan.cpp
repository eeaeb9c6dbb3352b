// SPDX-License-Identifier: Apache-2.0

#include "palimpsest/base/byte_size.hpp"
#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/partial_images.hpp"
#include "palimpsest/imaging/recon/scan_pipeline.hpp"
#include "palimpsest/imaging/scale.hpp"
#include "palimpsest/linop/split/cache_tiles.hpp"

namespace palimpsest {
namespace {

// Planes of maps that are read together: a whole cache line of every row.
constexpr index_t kMapsAtATime = 16;
// Numbers that compiled programs keep, of each frame along a trajectory too.
constexpr index_t kProgramBytes = 512, kProgramBytesOfFrame = 16;

}  // namespace

// -- drafts --------------------------------------------------------------------------------------

// A plan for one place of the large arrays. The functions plan_..() follow the way of the data:
// each adds the stages that run beside what is held, then holds what its stages leave.
struct ScanReconstruction::Impl::Draft {
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
  index_t bytes_of(const Extents& shape) const { return plan.in_memory ? sample_bytes(shape) : 0; }
  // Bytes in memory of the maps that a solve takes.
  index_t maps_of_solve() const { return item.maps_in_file ? 0 : sample_bytes(item.maps_shape()); }
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

// Constants of programs, locations and kernels are made with the solver: their bytes are known only
// after that. plan_solve() takes the solver, if it fits.
const ScanReconstruction::Impl::Rehearsal& ScanReconstruction::Impl::rehearsal(bool in_memory) {
  const bool in_files = item_of(in_memory).has_kernels_in_file();
  std::optional<Rehearsal>& made = rehearsals[in_files ? 0 : 1];
  if (made) return *made;
  made.emplace();
  // Programs of functions that are not quadratic hold constants of the size of an axis.
  if (!scan.layout().has_trajectory() && !basis && are_quadratic(options.regularizers)) {
    return *made;
  }
  rehearsed_in_memory = !in_files;
  rehearsed_solver.reset();
  const MemoryScope scope;
  rehearsed_solver = std::make_unique<ImageSolver>(item_of(rehearsed_in_memory), solver_options(),
                                                   ImageSolver::Budgets{kNoLimit, kNoLimit});
  made->operator_bytes = static_cast<index_t>(scope.live_bytes());
  made->making_bytes = static_cast<index_t>(scope.peak_bytes());
  made->constructing_bytes = ledger.peak_bytes();
  made->kernel_bytes = rehearsed_solver->kernel_bytes();
  made->fixed = rehearsed_solver->fixed_bytes();
  return *made;
}

ColumnTaker ScanReconstruction::Impl::kspace_taker(index_t n_frames, index_t piece_bytes,
                                                   bool in_memory) const {
  const ScanLayout& layout = scan.layout();
  const bool as_planes = layout.division == Division::planes;
  const bool is_resampled = as_planes && layout.axes[2].is_resampled();
  const index_t n = layout.grid[3];
  Extents grid = layout.grid;
  grid[0] *= n_frames;
  return {grid,
          {.along = as_planes ? AlongX::to_image : AlongX::to_image_and_back,
           .first = is_resampled ? 0 : n / 2 - layout.columns / 2,
           .count = layout.columns,
           .as_planes = as_planes,
           .factors = is_resampled ? pixels_of_kspace(layout.axes[2]) : Tensor(),
           .piece_bytes = piece_bytes,
           .grid_is_mapped = scan.makes_array() ? !in_memory : scan.is_mapped()}};
}

ColumnTaker ScanReconstruction::Impl::maps_taker(index_t first, index_t count, index_t piece_bytes,
                                                 bool in_memory) const {
  const bool is_mapped =
      copies_maps(in_memory) ? !in_memory : palimpsest::is_mapped(maps_file.array);
  return {given_maps_shape(),
          {.along = AlongX::nothing,
           .first = first,
           .count = count,
           .as_planes = true,
           .piece_bytes = piece_bytes,
           .grid_is_mapped = is_mapped}};
}

bool ScanReconstruction::Impl::has_operators_of_frames() const {
  const ScanLayout& layout = scan.layout();
  if (!layout.has_trajectory() || groups() == 1) return false;
  const auto frame = [&](index_t t) {
    return layout.trajectory.narrow(0, t * layout.readouts_per_step, layout.readouts_per_frame);
  };
  for (index_t t = 1; t < groups(); ++t) {
    if (!equal(frame(0).contiguous(), frame(t).contiguous())) return true;
  }
  return false;
}

// Weights of the samples of frames; a copy only where frames share readouts.
std::optional<Tensor> ScanReconstruction::Impl::density_of(index_t group) const {
  if (!density) return std::nullopt;
  const ScanLayout& layout = scan.layout();
  const index_t per_frame = layout.readouts_per_frame, step = layout.readouts_per_step;
  if (!is_tied) return density->narrow(0, group * step, per_frame).contiguous();
  const Strides& s = density->strides();
  const Extents shape{layout.n_frames(), per_frame, density->shape(1)};
  return density->as_strided(shape, {step * s[0], s[0], s[1]}, density->offset()).contiguous();
}

ImageItem ScanReconstruction::Impl::item_of(bool in_memory, index_t group) const {
  const ScanLayout& layout = scan.layout();
  ImageItem item{.n_coils = own_coils().size(),
                 .shape = layout.item_shape(),
                 .dims = layout.item_dims(),
                 .frames = is_tied ? layout.n_frames() : 0,
                 .basis = basis,
                 .sets = options.sets,
                 .team = team};
  // In the order of the coils, as one process adds them up. Tiles of a budget and transforms along
  // a trajectory would each be cut into coils.
  const bool is_cut = options.budget || layout.has_trajectory();
  if (has_part_of_coils() && !is_cut) item.leaves = layout.n_coils();
  item.has_phase = phase.has_value();
  item.maps_in_file = maps_lie_in_files(in_memory);
  const bool is_new = scan.makes_array() || arranges();
  item.kspace_in_file = is_new ? !in_memory : scan.is_mapped();
  if (!layout.has_trajectory()) {
    if (!basis) item.sampling = GridSampling{layout.mask_extents};
    return item;
  }
  PathSampling path{.density = density_of(group),
                    .kernels_in_file = !in_memory && is_tied && !density};
  for (index_t t = 0; t < frames(); ++t) {
    path.trajectories.push_back(layout.trajectory.narrow(0, (group + t) * layout.readouts_per_step,
                                                         layout.readouts_per_frame));
  }
  item.sampling = std::move(path);
  return item;
}

ImageSolverOptions ScanReconstruction::Impl::solver_options() {
  ImageSolverOptions result{.regularizers = options.regularizers,
                            .method = options.method,
                            .tolerance = options.tolerance,
                            .maps_norm2 = maps_norm2,
                            .has_start = start.has_value()};
  result.solve.max_iterations = iterations_of(options.iterations, options.regularizers);
  result.solve.checkpoint = options.checkpoint;
  result.solve.resume = options.resume;
  result.solve.cancel = options.cancel;
  result.solve.seed = options.seed;
  result.solve.callback = [this](const SolveInfo& info) { return is_over(info); };
  return result;
}

// -- planning ------------------------------------------------------------------------------------

// Bytes of estimating the maps of an item, beside k-space and result.
index_t ScanReconstruction::Impl::espirit_bytes() const {
  const ScanLayout& layout = scan.layout();
  index_t bytes = 0;
  EspiritOptions how = espirit_options;
  for (const MapSource& source : sources) {
    if (bytes > 0 && how.area == source.area) continue;
    how.area = source.area;
    bytes = std::max(bytes, plan_espirit(layout.item_array_shape(), how, true).work_bytes);
  }
  if (!layout.has_trajectory()) return bytes;
  // Calibration data, and the grid into which they are put.
  const index_t points = element_count(layout.item_shape());
  return std::max(bytes, rehearsed_bytes) + layout.n_coils() * points * 8;
}

// Separate calibration lines, from their file to items, which stay until the maps are estimated.
void ScanReconstruction::Impl::plan_calibration(Draft& draft) const {
  if (!any_source([](const MapSource& source) { return source.is_calibration; })) return;
  const bool in_memory = draft.plan.in_memory;
  draft.calibration = draft.bytes_of(layout().grid);
  draft.add_in_pieces("calibration", draft.plan.calibration_piece, [&](index_t piece) {
    return draft.calibration + total(scan.calibration_bytes(piece));
  });
  if (arranges()) {
    const index_t items = draft.bytes_of(layout().maps_shape());
    // The pieces are those of k-space, which needs more bytes at that time.
    draft.add("calibration along x",
              draft.calibration + items + kspace_taker(1, kSmallestPiece, in_memory).bytes());
    draft.calibration = items;
  }
  draft.held += draft.calibration;
}

// The mean of the frames, and the maps and the scale that come from it. The maps stay.
void ScanReconstruction::Impl::plan_mean(Draft& draft) const {
  const bool in_memory = draft.plan.in_memory, for_maps = maps_first() && uses_images_for_maps();
  index_t source = 0;
  if (for_maps || (scales_on_grid() && layout().n_frames() > 1)) {
    const bool makes = scan.makes_array() || !layout().has_trajectory();
    source = makes ? draft.bytes_of(layout().grid) : 0;
    draft.add_in_pieces("mean of frames", draft.plan.mean_piece,
                        [&](index_t piece) { return source + total(scan.making_bytes(piece)); });
    if (scales_on_grid()) draft.add("scale", source + element_count(layout().grid));
    if (arranges() && for_maps) {
      const index_t items = draft.bytes_of(layout().maps_shape());
      draft.add("mean along x",
                source + items + kspace_taker(1, kSmallestPiece, in_memory).bytes());
      source = items;
    }
  }
  if (!maps_first()) return;
  Extents shape = maps_of_item_shape();
  shape.insert(0, layout().n_items());
  draft.add("sensitivities", source + draft.bytes_of(shape) + espirit_bytes());
  draft.held += draft.bytes_of(shape);
}

// k-space, from its file to items.
void ScanReconstruction::Impl::plan_kspace(Draft& draft) const {
  const bool in_memory = draft.plan.in_memory, is_series = images() > 1;
  const index_t opened_maps = has_maps() ? maps_file.held_bytes() : 0;
  draft.image = sample_bytes(layout().result_shape());
  const index_t weights_of_data = (density ? density->nbytes() : 0) + (basis ? basis->nbytes() : 0);
  draft.add("opening",
            std::max(scan.opening_bytes() + opened_maps + weights_of_data, ledger.peak_bytes()));
  // Held to the end. The list of readouts is held as long as k-space is taken from the file.
  draft.held = scan.kept_bytes() + kProgramBytes +
               (layout().has_trajectory() ? kProgramBytesOfFrame * frames() : 0) +
               draft.rehearsed.operator_bytes + weights_of_data + (is_series ? draft.image : 0);
  const index_t raw = scan.held_bytes() - scan.kept_bytes();
  draft.held += raw + opened_maps;
  if (scan.mixer()) {
    draft.add_in_pieces("virtual coils", draft.plan.compression_piece,
                        [&](index_t piece) { return total(scan.finding_bytes(piece)); });
  }
  plan_calibration(draft);
  plan_mean(draft);
  // Maps of a file stay from one frame to the next.
  const index_t copied_maps =
      has_maps() && groups() > 1 && copies_maps(in_memory) ? draft.bytes_of(given_maps_shape()) : 0;
  draft.held += copied_maps;
  const index_t f = layout().has_trajectory() ? 1 : frames();
  const bool needs_file_again = is_series || frames() > 1;
  index_t grid = 0;
  if (scan.makes_array()) {
    grid = f * draft.bytes_of(layout().grid);
    draft.add_in_pieces("sorting", draft.plan.sorting_piece,
                        [&](index_t piece) { return grid + total(scan.making_bytes(piece)); });
    draft.held += grid - (needs_file_again ? 0 : raw);
  }
  if (scales_on_grid() && layout().n_frames() == 1) {
    draft.add("scale", element_count(layout().grid));
  }
  if (arranges()) {
    const index_t items = f * draft.bytes_of(layout().maps_shape());
    draft.add_in_pieces("along x", draft.plan.columns_piece, [&](index_t piece) {
      return items + kspace_taker(f, piece, in_memory).bytes();
    });
    draft.held += items - (scan.makes_array() ? grid : needs_file_again ? 0 : raw);
  }
  draft.held -= opened_maps + copied_maps;
  // The weights and the image of several items are there before maps and solves.
  const bool is_solved = options.method != ReconstructMethod::adjoint;
  const DType weight = basis ? DType::complex64 : DType::float32;
  draft.weights =
      layout().has_trajectory() || !is_solved ? 0 : byte_count(draft.item.weights_shape(), weight);
  draft.held += draft.weights + (!is_series && layout().n_items() > 1 ? draft.image : 0);
}

// The coil maps. Those of the item in the solve count with its operator; others are held.
void ScanReconstruction::Impl::plan_maps(Draft& draft) const {
  const bool in_memory = draft.plan.in_memory;
  const index_t n_items = layout().n_items(), n_slices = layout().n_slices();
  const index_t item = draft.bytes_of(maps_of_item_shape());
  // Of the coils of other ranks, which the solver does not count.
  const index_t of_item = sample_bytes(maps_of_item_shape());
  const index_t others = of_item - of_item / layout().n_coils() * own_coils().size();
  if (!has_maps()) {
    draft.kept_maps = options.keeps_maps ? item * n_items * n_slices : 0;
    if (n_items * n_slices > 1 || maps_first()) draft.held += draft.kept_maps;
    if (maps_first()) {
      // Shown to the solver, which counts them.
      draft.held -= item;
    } else {
      draft.add("sensitivities", item + espirit_bytes());
    }
    if (in_memory) draft.held += others;
    return;
  }
  index_t given = maps_file.held_bytes();
  if (copies_maps(in_memory)) {
    const index_t whole = draft.bytes_of(given_maps_shape());
    const index_t mixing = scan.mixer() ? scan.mixer()->bytes(layout().columns) : 0;
    draft.add("maps", given + whole + copying_bytes(maps_file.array) + mixing);
    if (n_slices > 1) draft.held += given;
    given = whole;
  }
  draft.kept_maps = options.keeps_maps ? given : 0;
  if (has_plane_maps()) {
    const index_t n = in_memory ? std::min(n_items, kMapsAtATime) : n_items;
    draft.plan.maps_at_a_time = n;
    draft.add_in_pieces("maps", draft.plan.maps_piece, [&](index_t piece) {
      return given + n * item + maps_taker(0, n, piece, in_memory).bytes();
    });
    draft.held += given + (n - 1) * item;
  }
  if (!draft.item.maps_in_file) draft.held += others;
}

// The results, which lie beside image and maps alone.
void ScanReconstruction::Impl::plan_results(Draft& draft) const {
  const index_t held = std::exchange(draft.held, scan.kept_bytes() + draft.image + draft.kept_maps);
  if (team.size("solve") > 1) {
    const index_t block = part_range(draft.plan.solves, 0, team.size("solve")).size();
    draft.add("gathering", draft.image / draft.plan.solves * block);
  }
  draft.add("writing", options.writing_bytes ? total(options.writing_bytes(layout())) : 0);
  draft.held = held;
}

void ScanReconstruction::Impl::plan_solve(Draft& draft) {
  const index_t limit = draft.plan.budget.value_or(kNoLimit);
  const auto left_beside = [&](index_t held) {
    return limit == kNoLimit ? kNoLimit : std::max<index_t>(limit - held, 0);
  };
  if (start) draft.held += ImageSolver::start_bytes(draft.item, solver_options());
  const index_t beside_solve = draft.held - draft.weights;
  if (has_operators_of_frames() || draft.item.has_kernels_in_file()) {
    // Maps of the frame before are still there.
    draft.add("operators", (groups() > 1 ? draft.maps_of_solve() : 0) +
                               draft.rehearsed.making_bytes - draft.rehearsed.operator_bytes);
  }
  const ImageSolver::Budgets fixed = draft.rehearsed.fixed;
  const index_t of_adjoint = draft.held + magnitude_bytes() - fixed.adjoint;
  const index_t of_solve = beside_solve - fixed.solve;
  const auto peak_of = [&](const ImageSolver& made) {
    return std::max(made.uses_adjoint() ? of_adjoint + made.adjoint_bytes() : 0,
                    made.is_iterative() ? of_solve + made.solve_bytes() : 0);
  };
  draft.budgets = {kNoLimit, kNoLimit};
  if (rehearsed_in_memory == draft.plan.in_memory) draft.solver = std::move(rehearsed_solver);
  rehearsed_solver.reset();
  if (draft.solver && peak_of(*draft.solver) > limit) draft.solver.reset();
  try {
    if (!draft.solver) {
      draft.budgets = {left_beside(of_adjoint), left_beside(of_solve)};
      draft.solver = std::make_unique<ImageSolver>(draft.item, solver_options(), draft.budgets);
    }
  } catch (const BudgetError&) {
    return;
  }
  if (limit == kNoLimit) draft.solver->lower_adjoint_peak(of_adjoint - of_solve);
  draft.plan.method = draft.solver->method();
  draft.plan.iterations = solver_options().solve.max_iterations;
  if (draft.solver->uses_adjoint()) {
    draft.add("adjoint", of_adjoint - draft.held + draft.solver->adjoint_bytes());
  }
  if (draft.solver->is_iterative()) {
    draft.add("solve", of_solve - draft.held + draft.solver->solve_bytes());
  }
}

// The image of an item, beside k-space and the maps.
void ScanReconstruction::Impl::plan_image(Draft& draft) const {
  const Extents image = draft.item.image_shape();
  index_t most = 0;
  for (const std::optional<PartialLines>& of_image : partials) {
    if (!of_image) continue;
    draft.plan.partial = draft.plan.partial ? draft.plan.partial : of_image;
    PartialLines lines = *of_image;
    if (is_tied) ++lines.axis;
    most = std::max(most, plan_missing_side(image, lines, options.partial));
  }
  if (most > 0) {
    draft.add("partial Fourier", draft.maps_of_solve() + sample_bytes(image) + most);
  }
  const index_t pixels = layout().has_trajectory() ? 0 : pixel_taker().peak_bytes();
  if (pixels > 0) draft.add("pixels", draft.maps_of_solve() + pixels);
}

ScanReconstruction::Impl::Draft ScanReconstruction::Impl::draft(bool in_memory) {
  Draft draft;
  draft.plan.budget = options.budget;
  draft.plan.in_memory = in_memory;
  draft.plan.solves = images() * layout().n_items();
  draft.plan.frames = frames();
  draft.item = item_of(in_memory);
  draft.rehearsed = rehearsal(in_memory);
  plan_kspace(draft);
  plan_maps(draft);
  plan_results(draft);
  plan_solve(draft);
  plan_image(draft);
  return draft;
}

// The smallest budget for which a place can be planned.
index_t ScanReconstruction::Impl::smallest_of(const Draft& draft) {
  const ImageSolver::Budgets least = ImageSolver::smallest(draft.item, solver_options());
  const ImageSolver::Budgets fixed = draft.rehearsed.fixed;
  index_t smallest =
      std::max(draft.least, draft.held + magnitude_bytes() + least.adjoint - fixed.adjoint);
  if (options.method != ReconstructMethod::adjoint) {
    smallest = std::max(smallest, draft.held - draft.weights + least.solve - fixed.solve);
  }
  return smallest;
}

// Kernels in memory are made to measure their bytes: only if there is room for that.
bool ScanReconstruction::Impl::may_fit_in_memory() {
  if (!options.budget || !item_of(false).has_kernels_in_file()) return true;
  const Rehearsal& in_files = rehearsal(false);
  return in_files.constructing_bytes + in_files.kernel_bytes <= *options.budget;
}

void ScanReconstruction::Impl::choose() {
  std::vector<Draft> drafts;
  for (const bool in_memory : {true, false}) {
    if (in_memory && !may_fit_in_memory()) continue;
    drafts.push_back(draft(in_memory));
    Draft& now = drafts.back();
    const bool fits = !options.budget || now.plan.peak_bytes <= *options.budget;
    if (!now.solver || !fits) {
      now.solver.reset();  // its operators take memory
      continue;
    }
    plan = std::move(now.plan);
    solver = std::move(now.solver);
    budgets = now.budgets;
    operator_text = solver->operator_text();
    if (options.writing_bytes) {
      writing_bytes = options.writing_bytes(scan.layout()).others;
    }
    return;
  }
  index_t smallest = kNoLimit;
  for (const Draft& draft : drafts) smallest = std::min(smallest, smallest_of(draft));
  throw BudgetError(
      fmt::format("[ScanReconstructionOptions.budget] nothing fits into the budget: got {} bytes, "
                  "the smallest that is found is {} bytes. Try ScanReconstructionOptions.budget {}",
                  with_commas(*options.budget), with_commas(smallest), smallest));
}

}  // namespace palimpsest
