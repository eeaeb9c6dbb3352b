// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/recon/reconstruction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "palimpsest/cli/clock.hpp"
#include "palimpsest/cli/code_pages.hpp"
#include "palimpsest/cli/failure.hpp"
#include "palimpsest/cli/inputs.hpp"
#include "palimpsest/cli/recon/image.hpp"
#include "palimpsest/cli/text.hpp"

namespace palimpsest::cli {
namespace {

constexpr index_t kEverything = std::numeric_limits<index_t>::max();

// What is read or worked on at a time, from the largest to the smallest that is worth trying.
constexpr index_t kLargestPiece = index_t{16} << 20, kSmallestPiece = index_t{1} << 16;

// Planes whose maps are read at a time: a whole cache line of every row.
constexpr index_t kMapsAtATime = 16;

// Numbers that compiled programs keep.
constexpr index_t kProgramBytes = 256;

// Planes of a volume below this part of its largest value are rounding errors of empty ones.
constexpr double kEmptyPlane = 1e-6;

index_t sample_bytes(const Extents& shape) { return byte_count(shape, DType::complex64); }

// Magnitude of the plane that is shown, and a copy to find its brightness.
index_t picture_bytes(const Extents& image) {
  return 2 * byte_count(Extents{image[image.size() - 2], image.back()}, DType::float32);
}

double largest_square(const std::complex<float>* v, index_t n) {
  double largest = 0;
  for (index_t i = 0; i < n; ++i) {
    const double re = double{v[i].real()}, im = double{v[i].imag()};
    largest = std::max(largest, re * re + im * im);
  }
  return largest;
}

}  // namespace

// -- planning ------------------------------------------------------------------------------------

// A plan for one place of the large arrays.
struct Reconstruction::Draft {
  ReconstructionPlan plan;
  index_t least = 0;  // what the stages so far could do with
  SenseItem item;
  std::unique_ptr<SenseSolver> solver;  // none if what is left of the budget is not enough
  index_t weights = 0, image = 0;
  index_t held = 0;       // beside maps and solve of one item, the weights included
  index_t kept_maps = 0;  // while results are written

  void add(const std::string& name, index_t bytes) { add(name, bytes, bytes); }
  void add(const std::string& name, index_t bytes, index_t least_bytes) {
    plan.stages.push_back({name, bytes});
    plan.peak_bytes = std::max(plan.peak_bytes, bytes);
    least = std::max(least, least_bytes);
  }
  // A stage with the largest piece that fits beside what is held; entered into `piece`.
  template <class Bytes>
  void add_in_pieces(const std::string& name, index_t beside, index_t& piece, const Bytes& bytes) {
    const index_t limit = plan.budget.value_or(kEverything);
    for (piece = kLargestPiece; piece > kSmallestPiece; piece /= 2) {
      if (beside + bytes(piece) <= limit) break;
    }
    add(name, beside + bytes(piece), beside + bytes(kSmallestPiece));
  }
};

namespace {

// With smaller centres the windows do not span the signal, and a part of the object is taken for
// outside. Measured on 64^2 and 128^2 with 2 to 16 coils and windows of 6: 11 x 11 loses nothing of
// the object, 10 x 14 loses 3 %, 9 x 14 34 %, 8 x 24 20 %, 8 x 8 all of it.
void check_center(const CalibrationArea& center, index_t kernel) {
  const index_t least = 2 * kernel - 1, rows = center.extent[1], columns = center.extent[2];
  if (std::min(rows, columns) >= least) return;
  throw UsageError(fmt::format(
      "[coil sensitivities] the densely sampled centre of k-space is too small: got {} x {} "
      "points, expected at least {} x {}. Try --maps FILE",
      rows, columns, least, least));
}

}  // namespace

// What estimating the maps of an item holds beside k-space and result.
index_t Reconstruction::espirit_bytes() const {
  return plan_espirit(scan_.layout().item_array_shape(), espirit_, true).work_bytes;
}

Reconstruction::Reconstruction(ReconstructionOptions options)
    : options_(std::move(options)), scan_(options_.kspace, options_.scan, ledger_) {
  const ScanLayout& layout = scan_.layout();
  if (has_maps()) {
    maps_file_ = open_maps(options_.maps, layout);
  } else if (layout.division == Division::volume) {
    throw UsageError(
        fmt::format("[{}] a volume of shape {} is undersampled along its readout x, which must be "
                    "complete where no maps are given. Try another order of axes, one plane, or "
                    "--maps",
                    options_.kspace, to_string(layout.grid)));
  } else {
    const Tensor measured = uses_calibration() ? scan_.calibration_mask() : layout.mask;
    center_ = calibration_area(measured, std::numeric_limits<index_t>::max());
    espirit_.area = calibration_area(measured, espirit_.calibration);
    espirit_.keep_eigenvalues = false;
    check_center(*espirit_.area, espirit_.kernel);
  }
  if (!options_.sense.progress) {
    options_.sense.progress = [this](index_t iteration, double residual) {
      if (progress_) progress_(item_ * options_.sense.iterations + iteration, residual);
    };
  }
  choose();
}

Reconstruction::~Reconstruction() = default;

// Are the maps of a file turned into planes?
bool Reconstruction::has_plane_maps() const {
  const ScanLayout& layout = scan_.layout();
  return has_maps() && layout.division == Division::planes && layout.columns > 1;
}

// Maps that do not lie as they are used are copied once.
bool Reconstruction::copies_maps(bool in_memory) const {
  if (!maps_file_.is_dense()) return true;
  return in_memory && !has_plane_maps() && cli::is_mapped(maps_file_.array);
}

// Is k-space turned into planes, or are its readouts cut?
bool Reconstruction::arranges() const {
  const ScanLayout& layout = scan_.layout();
  return layout.is_cut() || (layout.division == Division::planes && layout.grid[3] > 1);
}

ColumnTaker Reconstruction::kspace_taker(index_t piece_bytes, bool in_memory) const {
  const ScanLayout& layout = scan_.layout();
  const bool as_planes = layout.division == Division::planes;
  const index_t n = layout.grid[3];
  return {layout.grid,
          {.along = as_planes ? AlongX::to_image : AlongX::to_image_and_back,
           .first = n / 2 - layout.columns / 2,
           .count = layout.columns,
           .as_planes = as_planes,
           .piece_bytes = piece_bytes,
           .grid_is_mapped = scan_.makes_array() ? !in_memory : scan_.is_mapped()}};
}

ColumnTaker Reconstruction::maps_taker(index_t first, index_t count, index_t piece_bytes,
                                       bool in_memory) const {
  const bool is_mapped = copies_maps(in_memory) ? !in_memory : cli::is_mapped(maps_file_.array);
  return {scan_.layout().maps_shape(),
          {.along = AlongX::nothing,
           .first = first,
           .count = count,
           .as_planes = true,
           .piece_bytes = piece_bytes,
           .grid_is_mapped = is_mapped}};
}

// Separate calibration lines, from their file to items, beside the list of readouts and what else
// is held; gives what is held of them until the maps are estimated.
index_t Reconstruction::plan_calibration(Draft& draft, index_t beside) const {
  if (!uses_calibration()) return 0;
  const ScanLayout& layout = scan_.layout();
  const bool in_memory = draft.plan.in_memory;
  const index_t grid = in_memory ? sample_bytes(layout.grid) : 0;
  draft.add_in_pieces("calibration", beside + grid, draft.plan.calibration_piece,
                      [&](index_t piece) {
                        const SortingBytes bytes = scan_.calibration_bytes(piece);
                        return bytes.tensors + bytes.others;
                      });
  if (!arranges()) return grid;
  const index_t items = in_memory ? sample_bytes(layout.maps_shape()) : 0;
  // The pieces are those of k-space, of which there is more at that time.
  draft.add("calibration along x",
            beside + grid + items + kspace_taker(kSmallestPiece, in_memory).bytes());
  return items;
}

// k-space, from its file to items; what is held of it is entered into `held`.
void Reconstruction::plan_kspace(Draft& draft) const {
  const ScanLayout& layout = scan_.layout();
  const bool in_memory = draft.plan.in_memory;
  const auto if_in_memory = [&](index_t bytes) { return in_memory ? bytes : 0; };
  const index_t mask = scan_.mask_bytes(), maps = has_maps() ? maps_file_.held_bytes() : 0;
  draft.add("opening", scan_.opening_bytes() + maps);
  index_t kspace = scan_.held_bytes() - mask;
  const index_t calibration = plan_calibration(draft, maps + mask + kProgramBytes + kspace);
  const index_t beside = maps + mask + kProgramBytes + calibration;
  if (scan_.makes_array()) {
    const index_t grid = if_in_memory(sample_bytes(layout.grid));
    draft.add_in_pieces("sorting", beside + kspace + grid, draft.plan.sorting_piece,
                        [&](index_t piece) {
                          const SortingBytes bytes = scan_.making_bytes(piece);
                          return bytes.tensors + bytes.others;
                        });
    kspace = grid;
  }
  if (arranges()) {
    const index_t items = if_in_memory(sample_bytes(layout.maps_shape()));
    draft.add_in_pieces("along x", beside + kspace + items, draft.plan.columns_piece,
                        [&](index_t piece) { return kspace_taker(piece, in_memory).bytes(); });
    kspace = items;
  }
  const bool is_new = scan_.makes_array() || arranges();
  draft.item.kspace_in_file = is_new ? !in_memory : scan_.is_mapped();
  // The weights and the image of several items are there before maps and solves.
  draft.weights = options_.sense.is_iterative ? byte_count(layout.item_shape(), DType::float32) : 0;
  draft.image = sample_bytes(layout.image_shape());
  draft.held = kspace + calibration + mask + draft.weights + kProgramBytes +
               (layout.n_items() > 1 ? draft.image : 0);
}

// The coil maps. Those of the item that is solved count with its operator; what is held of others
// is entered into `held`.
void Reconstruction::plan_maps(Draft& draft) const {
  const ScanLayout& layout = scan_.layout();
  const bool in_memory = draft.plan.in_memory, is_planes = has_plane_maps();
  const auto if_in_memory = [&](index_t bytes) { return in_memory ? bytes : 0; };
  const index_t all = sample_bytes(layout.maps_shape());
  const index_t item = sample_bytes(layout.item_array_shape());
  if (!has_maps()) {
    const bool keeps_all = options_.keeps_maps && layout.n_items() > 1;
    draft.held += keeps_all ? if_in_memory(all) : 0;
    draft.add("sensitivities", draft.held + if_in_memory(item) + espirit_bytes());
    draft.item.maps_in_file = !in_memory;
    draft.kept_maps = options_.keeps_maps ? if_in_memory(all) : 0;
    return;
  }
  index_t maps = maps_file_.held_bytes();
  if (copies_maps(in_memory)) {
    draft.add("maps", draft.held + maps + if_in_memory(all) + maps_file_.copying_bytes());
    maps = if_in_memory(all);
  }
  draft.kept_maps = maps;
  draft.item.maps_in_file = !in_memory && (is_planes || maps == 0);
  if (is_planes) {
    const index_t n = in_memory ? std::min(layout.n_items(), kMapsAtATime) : layout.n_items();
    draft.plan.maps_at_a_time = n;
    draft.add_in_pieces("maps", draft.held + maps + if_in_memory(n * item), draft.plan.maps_piece,
                        [&](index_t piece) { return maps_taker(0, n, piece, in_memory).bytes(); });
    draft.held += maps + if_in_memory((n - 1) * item);
  }
}

void Reconstruction::plan_solve(Draft& draft) const {
  const index_t limit = draft.plan.budget.value_or(kEverything);
  const auto left_beside = [&](index_t held) { return std::max<index_t>(limit - held, 0); };
  const SenseOptions& sense = options_.sense;
  const index_t beside_solve = draft.held - draft.weights;
  try {
    draft.solver = std::make_unique<SenseSolver>(
        draft.item, sense,
        SenseSolver::Budgets{left_beside(draft.held), left_beside(beside_solve)});
    draft.add("adjoint", draft.held + draft.solver->adjoint_bytes());
    if (sense.is_iterative) draft.add("solve", beside_solve + draft.solver->solve_bytes());
  } catch (const BudgetError&) {
    draft.solver.reset();
  }
}

Reconstruction::Draft Reconstruction::draft(bool in_memory) const {
  Draft draft;
  draft.plan.budget = options_.budget;
  draft.plan.in_memory = in_memory;
  const ScanLayout& layout = scan_.layout();
  draft.item = {layout.n_coils(), layout.item_shape(), false, false};
  plan_kspace(draft);
  plan_maps(draft);
  const index_t picture = picture_bytes(layout.image_shape());
  draft.add("writing", scan_.mask_bytes() + draft.image + draft.kept_maps + picture);
  plan_solve(draft);
  return draft;
}

// The smallest budget for which a place can be planned.
index_t Reconstruction::smallest_of(const Draft& draft) const {
  const SenseSolver::Budgets least = SenseSolver::smallest(draft.item, options_.sense);
  index_t smallest = std::max(draft.least, draft.held + least.adjoint);
  if (options_.sense.is_iterative) {
    smallest = std::max(smallest, draft.held - draft.weights + least.solve);
  }
  return smallest;
}

void Reconstruction::choose() {
  std::vector<Draft> drafts;
  for (const bool in_memory : {true, false}) {
    drafts.push_back(draft(in_memory));
    Draft& now = drafts.back();
    const bool fits = !options_.budget || now.plan.peak_bytes <= *options_.budget;
    if (!now.solver || !fits) continue;
    plan_ = std::move(now.plan);
    solver_ = std::move(now.solver);
    return;
  }
  const index_t smallest = std::min(smallest_of(drafts[0]), smallest_of(drafts[1]));
  throw BudgetError(fmt::format(
      "[--memory] nothing fits into the budget: got {} bytes, the smallest that is found is {} "
      "bytes. Try --memory {}",
      with_commas(*options_.budget), with_commas(smallest), smallest));
}

// -- running
// ---------------------------------------------------------------------------------------

// k-space as (item, coil, ..).
Tensor Reconstruction::items_of_kspace() {
  Extents shape = scan_.layout().item_array_shape();
  shape.insert(0, scan_.layout().n_items());
  if (!arranges()) {
    const Tensor kspace = scan_.take_kspace(place(), plan_.sorting_piece, ledger_);
    return kspace.view(shape);
  }
  const ColumnTaker taker = kspace_taker(plan_.columns_piece, plan_.in_memory);
  const Tensor grid = scan_.take_kspace(place(), plan_.sorting_piece, ledger_);
  largest_.assign(static_cast<std::size_t>(shape[0]), 0.0);
  const Tensor items = taker.take(grid, place(), ledger_,
                                  [&](index_t x, const std::complex<float>* samples, index_t n) {
                                    double& largest = largest_[static_cast<std::size_t>(x)];
                                    largest = std::max(largest, largest_square(samples, n));
                                  });
  return items.view(shape);
}

// Before k-space, since the file is closed then.
void Reconstruction::take_calibration() {
  if (!uses_calibration()) return;
  Extents shape = scan_.layout().item_array_shape();
  shape.insert(0, scan_.layout().n_items());
  const Tensor grid = scan_.calibration_kspace(place(), plan_.calibration_piece, ledger_);
  calibration_ =
      arranges()
          ? kspace_taker(kSmallestPiece, plan_.in_memory).take(grid, place(), ledger_).view(shape)
          : grid.view(shape);
}

// Numbers outside of what single precision can work with give wrong images, not rounded ones.
void Reconstruction::check_range(const Tensor& kspace) {
  constexpr double kSmallest = 1e-30, kLargest = 1e30;
  double square = 0;
  const bool is_known = kspace.shape(0) > 1;  // noted when the planes were made
  for (const double of_item : largest_) square = std::max(square, of_item);
  for (index_t c = 0; !is_known && c < kspace.shape(1); ++c) {
    const Tensor coil = kspace.select(0, 0).select(0, c);
    square = std::max(square, largest_square(coil.data<std::complex<float>>(), coil.numel()));
    release_pages(coil);
  }
  const double largest = std::sqrt(square);
  if (largest >= kSmallest && largest <= kLargest) return;
  throw UsageError(fmt::format(
      "[{}] k-space is out of the range of single precision: its largest magnitude is {:g}, "
      "expected {:g} to {:g}. Try to scale it",
      options_.kspace, largest, kSmallest, kLargest));
}

// Maps of the items from `first` on, out of their file: (item, coil, ..).
Tensor Reconstruction::given_maps(index_t first) {
  const ScanLayout& layout = scan_.layout();
  if (!maps_.defined()) {
    if (copies_maps(plan_.in_memory)) maps_file_.array = maps_file_.dense_copy(place());
    maps_ = maps_file_.array;
  }
  if (!has_plane_maps()) {
    Extents shape = layout.item_array_shape();
    shape.insert(0, 1);
    return maps_.view(shape);
  }
  const index_t n = std::min(plan_.maps_at_a_time, layout.n_items() - first);
  return maps_taker(first, n, plan_.maps_piece, plan_.in_memory).take(maps_, place(), ledger_);
}

Tensor Reconstruction::maps_of_item(const Tensor& kspace, index_t item) {
  if (!has_maps()) {
    const Tensor lines = calibration_.defined() ? calibration_.select(0, item) : kspace;
    Extents shape = scan_.layout().item_array_shape();
    shape.insert(0, 1);
    ScratchArray maps = place().array(shape);
    espirit(lines, maps, espirit_);
    release_pages(lines);
    return maps.map().select(0, 0);
  }
  if (item % plan_.maps_at_a_time == 0) {
    group_ = Tensor();
    group_ = given_maps(item);
  }
  const Tensor maps = group_.select(0, item % plan_.maps_at_a_time);
  check_maps(maps);
  return maps;
}

void Reconstruction::check_maps(const Tensor& maps) {
  index_t bad = 0;
  Extents first;
  for (index_t c = 0; c < maps.shape(0); ++c) {
    const Tensor coil = maps.select(0, c);
    const auto* values = coil.data<std::complex<float>>();
    for (index_t i = 0; i < coil.numel(); ++i) {
      if (std::isfinite(values[i].real()) && std::isfinite(values[i].imag())) continue;
      if (bad++ == 0) first = {c, i / coil.shape(-1), i % coil.shape(-1)};
    }
    release_pages(coil);
  }
  if (bad > 0) throw not_finite(options_.maps, coil_map_values(), bad, first);
}

void Reconstruction::check_image(const Tensor& image) const {
  const Tensor dense = image.contiguous();
  if (largest_square(dense.data<std::complex<float>>(), dense.numel()) > 0) return;
  throw UsageError(
      has_maps()
          ? fmt::format("[--maps] the image is 0 everywhere: the coil maps of {} are 0 where the "
                        "scan has signal. Try other maps, or without --maps",
                        options_.maps)
          : fmt::format("[{}] the image is 0 everywhere: the calibration lines gave no coil maps. "
                        "Try --maps FILE",
                        options_.kspace));
}

void Reconstruction::take_item(const SenseResult& found, index_t item,
                               ReconstructionResult& result) const {
  const ScanLayout& layout = scan_.layout();
  Tensor part = found.image;
  const Extents wanted = layout.wanted_of_item();
  for (std::size_t axis = 0; axis < wanted.size(); ++axis) {
    const index_t n = part.shape()[axis], first = n / 2 - wanted[axis] / 2;
    part = part.narrow(static_cast<index_t>(axis), first, wanted[axis]);
  }
  if (layout.n_items() == 1) {
    result.image = part.contiguous();
  } else {
    result.image.select(-1, item).copy_from(part);
  }
  result.iterations = std::max(result.iterations, found.iterations);
  const auto last = [](const std::vector<double>& r) { return r.empty() ? -1.0 : r.back(); };
  const auto badness = [&](const std::string& status, const std::vector<double>& residuals) {
    const int broken = status == "diverged" ? 2 : status == "breakdown" ? 1 : 0;
    return std::pair(broken, last(residuals));
  };
  if (!result.status.empty() &&
      badness(found.status, found.residuals) <= badness(result.status, result.residuals)) {
    return;
  }
  result.status = found.status;
  result.residuals = found.residuals;
}

void Reconstruction::solve_items(const Tensor& kspace, ReconstructionResult& result) {
  const ScanLayout& layout = scan_.layout();
  const index_t n = layout.n_items();
  if (options_.sense.is_iterative) solver_->set_weights(layout.mask.to(DType::float32));
  if (n > 1) result.image = Tensor::zeros(layout.image_shape(), DType::complex64);
  const bool keeps = options_.keeps_maps && !has_maps();
  std::optional<ScratchArray> all_maps;
  Extents all_shape = layout.item_array_shape();
  all_shape.insert(0, n);
  if (keeps && n > 1) all_maps.emplace(place().array(all_shape));
  const double largest = n > 1 ? *std::max_element(largest_.begin(), largest_.end()) : 0;
  for (item_ = 0; item_ < n; ++item_) {
    if (n > 1 && largest_[static_cast<std::size_t>(item_)] <= kEmptyPlane * kEmptyPlane * largest) {
      continue;
    }
    const Tensor y = kspace.select(0, item_);
    StopWatch watch;
    const Tensor maps = maps_of_item(y, item_);
    result.sensitivities_s += watch.lap();
    take_item(solver_->run(y, maps, ledger_), item_, result);
    result.solve_s += watch.lap();
    if (all_maps) all_maps->write(item_ * maps.numel(), maps.raw_data(), maps.numel());
    release_pages(maps);
    if (keeps && n == 1) result.maps = maps;
  }
  if (all_maps) result.maps = all_maps->map().permute({1, 2, 3, 0});
}

ReconstructionResult Reconstruction::run(const Progress& progress) {
  ReconstructionResult result;
  StopWatch watch;
  progress_ = progress;
  // A plan counts arrays; code that has done its work need not lie beside them.
  release_code_pages();
  {
    take_calibration();
    const Tensor kspace = items_of_kspace();
    check_range(kspace);
    result.read_s = watch.lap();
    solve_items(kspace, result);
  }
  check_image(result.image);
  calibration_ = Tensor();
  solver_.reset();
  group_ = Tensor();
  if (has_maps() && options_.keeps_maps) {
    result.maps = maps_.view(scan_.layout().short_maps_shape());
  }
  maps_ = maps_file_.array = Tensor();
  return result;
}

}  // namespace palimpsest::cli
