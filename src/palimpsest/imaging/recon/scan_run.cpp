// SPDX-License-Identifier: Apache-2.0
// The whole way from the file to the image: its plan, and its run.

#include "palimpsest/base/byte_size.hpp"
#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/scan_pipeline.hpp"
#include "palimpsest/imaging/scale.hpp"

namespace palimpsest {

// -- plan -----------------------------------------------------------------------------------------

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

// -- run ------------------------------------------------------------------------------------------

void ScanReconstruction::Impl::run_group(index_t slice, index_t group,
                                         ScanReconstructionResult& result) {
  const ScanLayout& layout = scan.layout();
  const index_t n = layout.n_items(), first = (slice * groups() + group) * n;
  if (!owns_any(first, n)) {
    solves_done += n;
    return;
  }
  StopWatch watch;
  group_of_maps = Tensor();
  prepare_solver(group);
  solver->drop_weights();  // of the group before
  const Tensor kspace = items_of_kspace(slice, group);
  check_range(kspace);
  result.read_s += watch.lap();
  set_weights(slice, group);
  if (!is_stacked()) {
    result.image = Tensor();
  } else if (!result.image.defined()) {
    result.image = Tensor::zeros(layout.result_shape(), DType::complex64);
  }
  const double most = n > 1 ? *std::max_element(largest.begin(), largest.end()) : 0;
  for (index_t item = 0; item < n; ++item, ++solves_done) {
    // Ranks that share the coils of a solve look at their tokens together, during the solve.
    if (!has_part_of_coils()) is_cancelled |= options.cancel && options.cancel->is_cancelled();
    if (is_cancelled) {
      result.status = Status::cancelled;
      result.reason = "it was cancelled";
    }
    if (is_cancelled || is_timed_out) return;
    if (n > 1 && largest[static_cast<std::size_t>(item)] <= kEmptyPlane * most) {
      continue;
    }
    if (!owns_any(first + item, 1)) continue;
    const Tensor of_item = maps_of_item(kspace.select(0, item), item);
    result.sensitivities_s += watch.lap();
    if (group == 0) keep_maps(of_item, slice, item);
    if (start) {
      const Tensor of_solve = place_of(*start, slice, group, item);
      solver->set_start(of_solve.to(DType::complex64).contiguous().clone());
    }
    ImageSolver::ScaleOf scale_of;
    if (layout.has_trajectory() && !scale) {
      scale_of = [&](const Tensor& adjoint) {
        scale = brightness(adjoint.contiguous().unsqueeze(0)).scale();
        return *scale;
      };
    } else {
      solver->set_scale(*scale);
    }
    SolveResult found = solved(kspace, of_item, slice, group, item, scale_of);
    if (is_timed_out && found.status == Status::stopped) {
      found.status = Status::time_limit;
      found.reason = "the time limit has passed";
    }
    is_cancelled = found.status == Status::cancelled;
    take_item(found, slice, group, item, result);
    result.solve_s += watch.lap();
    release_pages(of_item);
    if (options.keeps_maps && !has_maps() && !kept_maps) result.maps = of_item;
  }
}

void ScanReconstruction::Impl::run_slice(index_t slice, ScanReconstructionResult& result) {
  const ScanLayout& layout = scan.layout();
  const index_t solves = groups() * layout.n_items();
  if (!owns_any(slice * solves, solves)) {
    solves_done += solves;
    return;
  }
  StopWatch watch;
  scale = options.scale;
  if (!wants_scale() && !scale) scale = 1;
  // Releases the maps and weights of the slice before.
  maps = group_of_maps = all_maps = Tensor();
  solver->drop_weights();
  maps_slice = slice;
  take_calibration(slice);
  take_mean(slice);
  result.sensitivities_s += watch.lap();
  if (wants_scale_of_frames()) {
    take_scale_of_frames(slice,
                         layout.n_slices() > 1 ? result.image.select(0, slice) : result.image);
    result.solve_s += watch.lap();
  }
  for (index_t group = 0; group < groups(); ++group) run_group(slice, group, result);
  if (options.keep_scale && result.image.defined()) {
    Tensor to = result.image;
    if (layout.n_slices() > 1) to = to.select(0, slice);
    const auto factor = static_cast<float>(1 / scale.value_or(1));
    Tensor scaled = to.contiguous().clone();
    auto* v = scaled.mutable_data<Sample>();
    for (index_t i = 0, end = scaled.numel(); i < end; ++i) v[i] *= factor;
    to.copy_from(scaled);
  }
  if (slice == 0) result.scale = scale.value_or(1);
}

ScanReconstructionResult ScanReconstruction::Impl::run(const Progress& given) {
  ScanReconstructionResult result;
  progress = given;
  clock = StopWatch();
  const ScanLayout& layout = scan.layout();
  if (images() > 1) result.image = Tensor::zeros(layout.result_shape(), DType::complex64);
  const bool keeps_many = layout.n_items() * layout.n_slices() > 1 || maps_first();
  if (options.keeps_maps && !has_maps() && keeps_many) {
    Extents shape = maps_of_item_shape();
    shape.insert(0, layout.n_items());
    shape.insert(0, layout.n_slices());
    kept_maps.emplace(place().array(shape));
  }
  solver->write_kernels(options.scratch);
  scan.find_virtual_coils(plan.compression_piece, ledger);
  if (scan.mixer()) result.kept_energy = scan.mixer()->energy();
  for (index_t slice = 0; slice < layout.n_slices() && !is_cancelled; ++slice) {
    run_slice(slice, result);
  }
  calibration = all_maps = group_of_maps = samples = Tensor();
  solver.reset();
  basis.reset();
  density.reset();
  scan.close();
  if (is_cancelled) result.status = Status::cancelled;
  if (has_maps() && options.keeps_maps && maps.defined()) {
    Extents shape = layout.short_maps_shape();
    if (options.sets > 1) shape.insert(0, options.sets);
    result.maps = maps.view(shape);
  }
  maps = maps_file.array = Tensor();
  gather(result);
  // The image of a solve that was ended may be 0 so far.
  const bool is_final = result.status == Status::converged || result.status == Status::breakdown ||
                        result.status == Status::diverged ||
                        result.status == Status::max_iterations;
  if (team.rank() == 0 && is_final) check_image(result);
  if (kept_maps) {
    // The items are the last axis, and (slice, [set], coil, ..) come before.
    Tensor kept = kept_maps->map();
    std::vector<index_t> order{0};
    for (index_t axis = 2; axis < static_cast<index_t>(kept.rank()); ++axis) order.push_back(axis);
    order.push_back(1);
    kept = kept.permute(order);
    if (layout.n_items() == 1) kept = kept.select(-1, 0);
    result.maps = layout.n_slices() == 1 ? kept.select(0, 0) : kept;
  }
  return result;
}

// -- the interface -------------------------------------------------------------------------------

ScanReconstruction::ScanReconstruction(ScanReconstructionOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
ScanReconstruction::~ScanReconstruction() = default;

const ScanLayout& ScanReconstruction::layout() const { return impl_->scan.layout(); }
const Team& ScanReconstruction::team() const { return impl_->team; }
PartRange ScanReconstruction::own_solves() const { return impl_->own_solves(); }
PartRange ScanReconstruction::own_coils() const { return impl_->own_coils(); }
CalibrationArea ScanReconstruction::center() const {
  return impl_->sources.empty() ? CalibrationArea{} : impl_->sources.front().center;
}
bool ScanReconstruction::uses_calibration() const {
  return !impl_->sources.empty() && impl_->sources.front().is_calibration;
}
const ScanReconstructionPlan& ScanReconstruction::plan() const { return impl_->plan; }
const BudgetSplit& ScanReconstruction::adjoint() const { return impl_->solver->adjoint(); }
const SolvePlan& ScanReconstruction::solve() const { return impl_->solver->solve(); }
const Plan& ScanReconstruction::step() const { return impl_->solver->step(); }
const std::string& ScanReconstruction::operator_text() const { return impl_->operator_text; }

void ScanReconstruction::while_writing(const std::function<void()>& write) {
  const auto charge = impl_->ledger.charge(impl_->writing_bytes);
  write();
}

index_t ScanReconstruction::measured_bytes() const { return impl_->ledger.peak_bytes(); }

ScanReconstructionResult ScanReconstruction::run(const Progress& progress) {
  impl_->check_agreement();  // all ranks find the same
  try {
    return impl_->run(progress);
  } catch (const std::exception& error) {
    impl_->team.abandon(error.what());
    throw;
  }
}

}  // namespace palimpsest
