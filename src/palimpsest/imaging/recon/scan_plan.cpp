// SPDX-License-Identifier: Apache-2.0

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

std::string with_commas(index_t n) {
  std::string text = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), ",");
  }
  return text;
}

}  // namespace

// -- drafts --------------------------------------------------------------------------------------

// A plan for one place of the large arrays.
struct ScanReconstruction::Impl::Draft {
  ScanReconstructionPlan plan;
  index_t least = 0;  // the smallest budget for the stages so far
  ImageItem item;
  Rehearsal rehearsed;
  ImageSolver::Budgets budgets = {0, 0};
  std::unique_ptr<ImageSolver> solver;  // null if the rest of the budget is too small
  index_t weights = 0, image = 0;
  index_t base = 0;       // held from the opening to the end
  index_t raw = 0;        // of the opened file, as long as k-space is taken from it
  index_t all_maps = 0;   // estimated before the frames
  index_t held = 0;       // beside maps and solve of one item, the weights included
  index_t kept_maps = 0;  // while results are written

  void add(const std::string& name, index_t bytes) { add(name, bytes, bytes); }
  void add(const std::string& name, index_t bytes, index_t least_bytes) {
    plan.stages.push_back({name, bytes});
    plan.peak_bytes = std::max(plan.peak_bytes, bytes);
    least = std::max(least, least_bytes);
  }
  // Adds a stage with the largest piece that fits beside `beside` bytes, and sets `piece`.
  template <class Bytes>
  void add_in_pieces(const std::string& name, index_t beside, index_t& piece, const Bytes& bytes) {
    const index_t limit = plan.budget.value_or(kNoLimit);
    for (piece = kLargestPiece; piece > kSmallestPiece; piece /= 2) {
      if (beside + bytes(piece) <= limit) break;
    }
    add(name, beside + bytes(piece), beside + bytes(kSmallestPiece));
  }
};

// Constants of programs, locations and kernels are made with the solver: their bytes are known only
// after that. plan_solve() takes the solver, if it fits.
const ScanReconstruction::Impl::Rehearsal& ScanReconstruction::Impl::rehearsal(bool in_memory) {
  const bool in_files = item_of(in_memory).kernels_in_file;
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

bool ScanReconstruction::Impl::has_plane_maps() const {
  const ScanLayout& layout = scan.layout();
  return has_maps() && layout.division == Division::planes && layout.columns > 1;
}

// Maps that do not lie as they are used are copied once.
bool ScanReconstruction::Impl::copies_maps(bool in_memory) const {
  if (!maps_file.is_dense() || scan.mixer()) return true;
  return in_memory && !has_plane_maps() && palimpsest::is_mapped(maps_file.array);
}

// True if the maps that a solve reads lie in a file.
bool ScanReconstruction::Impl::maps_lie_in_files(bool in_memory) const {
  if (in_memory) return false;
  return !has_maps() || has_plane_maps() || copies_maps(in_memory) || maps_file.held_bytes() == 0;
}

// True if k-space is turned into planes, or its readouts are cut.
bool ScanReconstruction::Impl::arranges() const {
  const ScanLayout& layout = scan.layout();
  if (layout.has_trajectory()) return false;
  return layout.is_cut() || (layout.division == Division::planes && layout.grid[3] > 1);
}

bool ScanReconstruction::Impl::wants_scale() const {
  return !options.scale && needs_scale(options.regularizers, options.keep_scale);
}

bool ScanReconstruction::Impl::scales_on_grid() const {
  return wants_scale() && !scan.layout().has_trajectory();
}

bool ScanReconstruction::Impl::wants_scale_of_frames() const {
  return wants_scale() && scan.layout().has_trajectory() && groups() > 1;
}

// Bytes for magnitudes of more than two sets. Those of two sets fit into the memory of the images.
index_t ScanReconstruction::Impl::magnitude_bytes() const {
  if (!wants_scale_of_frames() || options.sets <= 2) return 0;
  return groups() * options.sets * byte_count(scan.layout().item_shape(), DType::float32);
}

bool ScanReconstruction::Impl::shares_maps() const {
  for (std::size_t s = 0; s < sources.size(); ++s) {
    if (sources[s].slice != static_cast<index_t>(s)) return true;
  }
  return false;
}

bool ScanReconstruction::Impl::uses_calibration() const {
  return std::any_of(sources.begin(), sources.end(),
                     [](const MapSource& source) { return source.is_calibration; });
}

bool ScanReconstruction::Impl::uses_images_for_maps() const {
  return std::any_of(sources.begin(), sources.end(),
                     [](const MapSource& source) { return !source.is_calibration; });
}

bool ScanReconstruction::Impl::needs_mean() const {
  const bool for_maps = maps_first() && uses_images_for_maps();
  return for_maps || (scales_on_grid() && scan.layout().n_frames() > 1);
}

Extents ScanReconstruction::Impl::given_maps_shape() const {
  Extents shape = scan.layout().maps_shape();
  shape[0] *= options.sets;
  return shape;
}

Extents ScanReconstruction::Impl::maps_of_item_shape() const {
  Extents shape = scan.layout().item_array_shape();
  if (options.sets > 1) shape.insert(0, options.sets);
  return shape;
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
  item.density = density_of(group);
  if (!basis) item.mask_extents = layout.mask_extents;
  item.maps_in_file = maps_lie_in_files(in_memory);
  const bool is_new = scan.makes_array() || arranges();
  item.kspace_in_file = is_new ? !in_memory : scan.is_mapped();
  if (!layout.has_trajectory()) return item;
  item.kernels_in_file = !in_memory && is_tied && !density;
  for (index_t t = 0; t < frames(); ++t) {
    item.trajectories.push_back(layout.trajectory.narrow(0, (group + t) * layout.readouts_per_step,
                                                         layout.readouts_per_frame));
  }
  return item;
}

ImageSolverOptions ScanReconstruction::Impl::solver_options() const {
  ImageSolverOptions result;
  result.regularizers = options.regularizers;
  result.method = options.method;
  result.iterations = iterations_of(options.iterations, options.regularizers);
  result.tolerance = options.tolerance;
  result.maps_norm2 = maps_norm2;
  result.has_start = start.has_value();
  result.checkpoint = options.checkpoint;
  result.resume = options.resume;
  result.cancel = options.cancel;
  result.seed = options.seed;
  result.callback = [this](const SolveInfo& info) {
    return const_cast<Impl*>(this)->is_over(info);
  };
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

// Plans separate calibration lines, from their file to items, beside the list of readouts and other
// held bytes. Returns the bytes held until the maps are estimated.
index_t ScanReconstruction::Impl::plan_calibration(Draft& draft, index_t beside) const {
  if (!uses_calibration()) return 0;
  const ScanLayout& layout = scan.layout();
  const bool in_memory = draft.plan.in_memory;
  const index_t grid = in_memory ? sample_bytes(layout.grid) : 0;
  draft.add_in_pieces("calibration", beside + grid, draft.plan.calibration_piece,
                      [&](index_t piece) {
                        const SortingBytes bytes = scan.calibration_bytes(piece);
                        return bytes.tensors + bytes.others;
                      });
  if (!arranges()) return grid;
  const index_t items = in_memory ? sample_bytes(layout.maps_shape()) : 0;
  // The pieces are those of k-space, which needs more bytes at that time.
  draft.add("calibration along x",
            beside + grid + items + kspace_taker(1, kSmallestPiece, in_memory).bytes());
  return items;
}

// The mean of the frames, and the maps and the scale that come from it.
index_t ScanReconstruction::Impl::plan_mean(Draft& draft, index_t beside) const {
  const ScanLayout& layout = scan.layout();
  const bool in_memory = draft.plan.in_memory;
  const auto if_in_memory = [&](index_t bytes) { return in_memory ? bytes : 0; };
  index_t source = 0;
  if (needs_mean()) {
    const bool makes = scan.makes_array() || !layout.has_trajectory();
    const index_t grid = makes ? if_in_memory(sample_bytes(layout.grid)) : 0;
    draft.add_in_pieces("mean of frames", beside + grid, draft.plan.mean_piece, [&](index_t piece) {
      const SortingBytes bytes = scan.making_bytes(piece);
      return bytes.tensors + bytes.others;
    });
    if (scales_on_grid()) draft.add("scale", beside + grid + element_count(layout.grid));
    source = grid;
    if (arranges() && maps_first() && uses_images_for_maps()) {
      const index_t items = if_in_memory(sample_bytes(layout.maps_shape()));
      draft.add("mean along x",
                beside + grid + items + kspace_taker(1, kSmallestPiece, in_memory).bytes());
      source = items;
    }
  }
  if (!maps_first()) return 0;
  Extents shape = maps_of_item_shape();
  shape.insert(0, layout.n_items());
  const index_t made = if_in_memory(sample_bytes(shape));
  draft.add("sensitivities", beside + source + made + espirit_bytes());
  return made;
}

// Plans k-space, from its file to items; enters the held bytes into `held`.
void ScanReconstruction::Impl::plan_kspace(Draft& draft) const {
  const ScanLayout& layout = scan.layout();
  const bool in_memory = draft.plan.in_memory;
  const auto if_in_memory = [&](index_t bytes) { return in_memory ? bytes : 0; };
  const index_t opened_maps = has_maps() ? maps_file.held_bytes() : 0;
  draft.image = sample_bytes(layout.result_shape());
  const bool is_series = images() > 1;
  const index_t weights_of_data = (density ? density->nbytes() : 0) + (basis ? basis->nbytes() : 0);
  draft.base = scan.kept_bytes() + kProgramBytes +
               (layout.has_trajectory() ? kProgramBytesOfFrame * frames() : 0) +
               draft.rehearsed.operator_bytes + weights_of_data + (is_series ? draft.image : 0);
  draft.add("opening",
            std::max(scan.opening_bytes() + opened_maps + weights_of_data, ledger.peak_bytes()));
  draft.raw = scan.held_bytes() - scan.kept_bytes();
  const index_t beside = draft.base + opened_maps + draft.raw;
  if (scan.mixer()) {
    draft.add_in_pieces("virtual coils", beside, draft.plan.compression_piece, [&](index_t piece) {
      const SortingBytes bytes = scan.finding_bytes(piece);
      return bytes.tensors + bytes.others;
    });
  }
  const index_t lines = plan_calibration(draft, beside);
  draft.all_maps = plan_mean(draft, beside + lines);
  index_t others = draft.base + opened_maps + draft.all_maps + lines;
  // Maps of a file stay from one frame to the next.
  if (has_maps() && groups() > 1 && copies_maps(in_memory)) {
    others += if_in_memory(sample_bytes(given_maps_shape()));
  }
  index_t kspace = draft.raw, opened = draft.raw;
  const index_t f = layout.has_trajectory() ? 1 : frames();
  if (scan.makes_array()) {
    const index_t grid = f * if_in_memory(sample_bytes(layout.grid));
    draft.add_in_pieces("sorting", others + opened + grid, draft.plan.sorting_piece,
                        [&](index_t piece) {
                          const SortingBytes bytes = scan.making_bytes(piece);
                          return bytes.tensors + bytes.others;
                        });
    kspace = grid;
    opened = is_series || frames() > 1 ? draft.raw : 0;
  } else {
    opened = 0;
  }
  if (scales_on_grid() && layout.n_frames() == 1) {
    draft.add("scale", others + opened + kspace + element_count(layout.grid));
  }
  if (arranges()) {
    const index_t items = f * if_in_memory(sample_bytes(layout.maps_shape()));
    draft.add_in_pieces("along x", others + opened + kspace + items, draft.plan.columns_piece,
                        [&](index_t piece) { return kspace_taker(f, piece, in_memory).bytes(); });
    if (!scan.makes_array() && (is_series || frames() > 1)) opened = draft.raw;
    kspace = items;
  }
  // The weights and the image of several items are there before maps and solves.
  const bool is_solved = options.method != ReconstructMethod::adjoint;
  const DType weight = basis ? DType::complex64 : DType::float32;
  draft.weights =
      layout.has_trajectory() || !is_solved ? 0 : byte_count(draft.item.weights_shape(), weight);
  draft.held = draft.base + draft.all_maps + lines + opened + kspace + draft.weights +
               (!is_series && layout.n_items() > 1 ? draft.image : 0);
}

// Plans the coil maps. Those of the item in the solve count with its operator; the held bytes of
// others are entered into `held`.
void ScanReconstruction::Impl::plan_maps(Draft& draft) const {
  const ScanLayout& layout = scan.layout();
  const bool in_memory = draft.plan.in_memory, is_planes = has_plane_maps();
  const auto if_in_memory = [&](index_t bytes) { return in_memory ? bytes : 0; };
  const index_t whole = sample_bytes(given_maps_shape());
  const index_t item = sample_bytes(maps_of_item_shape());
  // Coils of other ranks, which the solver does not count.
  const index_t others = item - item / layout.n_coils() * own_coils().size();
  const index_t kept =
      options.keeps_maps && !has_maps() ? item * layout.n_items() * layout.n_slices() : 0;
  if (!has_maps()) {
    const bool keeps_all = layout.n_items() * layout.n_slices() > 1 || maps_first();
    draft.held += keeps_all ? if_in_memory(kept) : 0;
    if (maps_first()) {
      // Shown to the solver, which counts them.
      draft.held -= if_in_memory(item);
    } else {
      draft.add("sensitivities", draft.held + if_in_memory(item) + espirit_bytes());
    }
    draft.held += if_in_memory(others);
    draft.kept_maps = if_in_memory(kept);
    return;
  }
  index_t given = maps_file.held_bytes();
  if (copies_maps(in_memory)) {
    const index_t mixing = scan.mixer() ? scan.mixer()->bytes(layout.columns) : 0;
    draft.add("maps",
              draft.held + given + if_in_memory(whole) + copying_bytes(maps_file.array) + mixing);
    if (layout.n_slices() > 1) draft.held += given;
    given = if_in_memory(whole);
  }
  draft.kept_maps = options.keeps_maps ? given : 0;
  if (is_planes) {
    const index_t n = in_memory ? std::min(layout.n_items(), kMapsAtATime) : layout.n_items();
    draft.plan.maps_at_a_time = n;
    draft.add_in_pieces("maps", draft.held + given + if_in_memory(n * item), draft.plan.maps_piece,
                        [&](index_t piece) { return maps_taker(0, n, piece, in_memory).bytes(); });
    draft.held += given + if_in_memory((n - 1) * item);
  }
  if (!draft.item.maps_in_file) draft.held += others;
}

void ScanReconstruction::Impl::plan_solve(Draft& draft) {
  const index_t limit = draft.plan.budget.value_or(kNoLimit);
  const auto left_beside = [&](index_t held) {
    return limit == kNoLimit ? kNoLimit : std::max<index_t>(limit - held, 0);
  };
  if (start) draft.held += ImageSolver::start_bytes(draft.item, solver_options());
  const index_t beside_solve = draft.held - draft.weights;
  if (has_operators_of_frames() || draft.item.kernels_in_file) {
    // Maps of the frame before are still there.
    const bool has_maps_in_memory = groups() > 1 && !draft.item.maps_in_file;
    const index_t of_maps = has_maps_in_memory ? sample_bytes(draft.item.maps_shape()) : 0;
    draft.add("operators",
              draft.held + of_maps - draft.rehearsed.operator_bytes + draft.rehearsed.making_bytes);
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
  draft.plan.iterations = solver_options().iterations;
  if (draft.solver->uses_adjoint()) {
    draft.add("adjoint", of_adjoint + draft.solver->adjoint_bytes());
  }
  if (draft.solver->is_iterative()) draft.add("solve", of_solve + draft.solver->solve_bytes());
}

// Beside k-space, the maps and the image of an item.
void ScanReconstruction::Impl::plan_partial(Draft& draft) const {
  const Extents image = draft.item.image_shape();
  index_t most = 0;
  for (const std::optional<PartialLines>& of_image : partials) {
    if (!of_image) continue;
    draft.plan.partial = draft.plan.partial ? draft.plan.partial : of_image;
    PartialLines lines = *of_image;
    if (is_tied) ++lines.axis;
    most = std::max(most, plan_missing_side(image, lines, options.partial));
  }
  if (most == 0) return;
  const index_t of_maps = draft.item.maps_in_file ? 0 : sample_bytes(draft.item.maps_shape());
  draft.add("partial Fourier", draft.held + of_maps + sample_bytes(image) + most);
}

// The pixels of the image out of those of a solve.
PixelTaker ScanReconstruction::Impl::pixel_taker() const {
  Extents item = scan.layout().item_shape();
  if (is_tied) item.insert(0, basis ? basis->shape(1) : scan.layout().n_frames());
  return {item, scan.layout().axes_of_item()};
}

void ScanReconstruction::Impl::plan_pixels(Draft& draft) const {
  if (scan.layout().has_trajectory()) return;
  const index_t bytes = pixel_taker().peak_bytes();
  if (bytes == 0) return;
  const index_t of_maps = draft.item.maps_in_file ? 0 : sample_bytes(draft.item.maps_shape());
  draft.add("pixels", draft.held + of_maps + bytes);
}

ScanReconstruction::Impl::Draft ScanReconstruction::Impl::draft(bool in_memory) {
  Draft draft;
  draft.plan.budget = options.budget;
  draft.plan.in_memory = in_memory;
  draft.plan.solves = images() * scan.layout().n_items();
  draft.plan.frames = frames();
  draft.item = item_of(in_memory);
  draft.rehearsed = rehearsal(in_memory);
  plan_kspace(draft);
  plan_maps(draft);
  if (team.size("solve") > 1) {
    const index_t items = images() * scan.layout().n_items();
    const index_t block = draft.image / items * part_range(items, 0, team.size("solve")).size();
    draft.add("gathering", scan.kept_bytes() + draft.image + draft.kept_maps + block);
  }
  const SortingBytes writing =
      options.writing_bytes ? options.writing_bytes(scan.layout()) : SortingBytes{};
  draft.add("writing",
            scan.kept_bytes() + draft.image + draft.kept_maps + writing.tensors + writing.others);
  plan_solve(draft);
  plan_partial(draft);
  plan_pixels(draft);
  return draft;
}

// The smallest budget for which a place can be planned.
index_t ScanReconstruction::Impl::smallest_of(const Draft& draft) const {
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
  if (!options.budget || !item_of(false).kernels_in_file) return true;
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
