// SPDX-License-Identifier: Apache-2.0
// The solver of an item: its making, its budgets, and one solve.

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/mask_extents.hpp"
#include "palimpsest/imaging/recon/scan_pipeline.hpp"
#include "palimpsest/imaging/recon/subspace.hpp"
#include "palimpsest/imaging/scale.hpp"

namespace palimpsest {

// -- plan -----------------------------------------------------------------------------------------

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

// -- run ------------------------------------------------------------------------------------------

// Frames along trajectories of their own have operators of their own.
// The scale needs their adjoints alone.
void ScanReconstruction::Impl::prepare_solver(index_t group, bool for_scale) {
  const bool is_of_group = group == solver_group || !has_operators_of_frames();
  if (is_of_group && for_scale == solver_is_for_scale) return;
  solver.reset();
  const ImageItem item = item_of(plan.in_memory, group);
  ImageSolverOptions wanted = solver_options();
  if (for_scale) wanted = {.method = ReconstructMethod::adjoint, .maps_norm2 = maps_norm2};
  solver = std::make_unique<ImageSolver>(item, wanted, budgets);
  solver_group = group;
  solver_is_for_scale = for_scale;
}

void ScanReconstruction::Impl::set_weights(index_t slice, index_t group) {
  const ScanLayout& layout = scan.layout();
  if (layout.has_trajectory()) {
    // Else the solver of these frames was made with them.
    if (density && groups() > 1 && !has_operators_of_frames()) {
      solver->set_weights(*density_of(group));
    }
    return;
  }
  if (!solver->is_iterative()) return;
  if (basis) {
    solver->set_weights(subspace_weights(*basis, layout.item_shape(),
                                         [&](index_t t) { return scan.mask(slice, t); }));
    return;
  }
  if (!is_tied) {
    const Tensor mask = scan.mask(slice, group);
    solver->set_weights(shortened_mask(mask, layout.mask_extents).to(DType::float32).contiguous());
    return;
  }
  Extents shape = layout.mask_extents;
  shape.insert(0, layout.n_frames());
  Tensor weights = Tensor::empty(shape, DType::float32);
  for (index_t t = 0; t < layout.n_frames(); ++t) {
    weights.select(0, t).copy_from(shortened_mask(scan.mask(slice, t), layout.mask_extents));
  }
  solver->set_weights(weights);
}

// Finds the unit of the regularizers for frames that are solved one by one along trajectories: from
// A^H y of all frames, those of other ranks included. Its magnitudes lie in the memory of the
// images to come, if that is large enough.
void ScanReconstruction::Impl::take_scale_of_frames(index_t slice, Tensor of_slice) {
  const index_t points = element_count(scan.layout().item_shape()) * options.sets;
  const bool has_place = magnitude_bytes() == 0;
  Tensor magnitudes = has_place ? of_slice.view_as_real().view({-1}).narrow(0, 0, groups() * points)
                                : Tensor::empty({groups() * points}, DType::float32);
  float* to = magnitudes.mutable_data<float>();
  for (index_t group = 0; group < groups(); ++group) {
    if (!has_part_of_coils()) is_cancelled |= options.cancel && options.cancel->is_cancelled();
    if (is_cancelled) break;
    prepare_solver(group, true);
    const Tensor kspace = items_of_kspace(slice, group);
    check_range(kspace);
    set_weights(slice, group);
    const Tensor maps_now = maps_of_item(kspace.select(0, 0), 0);
    const Tensor adjoint = solved(kspace, maps_now, slice, group, 0, {}).x.contiguous();
    const auto* from = adjoint.data<Sample>();
    to = std::transform(from, from + points, to, [](Sample v) {
      return static_cast<float>(std::sqrt(std::norm(std::complex<double>(v))));
    });
  }
  scale = is_cancelled ? 1 : brightness_of_magnitudes(magnitudes).scale();
  if (has_place) of_slice.fill(Sample(0));
}

// A solve of a group, whose k-space is items_of_kspace().
SolveResult ScanReconstruction::Impl::solved(const Tensor& kspace, const Tensor& of_item,
                                             index_t slice, index_t group, index_t item,
                                             const ImageSolver::ScaleOf& scale_of) {
  const Tensor y = part_of_coils(kspace_of_solve(kspace, group, item), is_tied ? 1 : 0);
  const Tensor own_maps = part_of_coils(of_item, options.sets > 1 ? 1 : 0);
  if (phase) solver->set_phase(phase_of(slice, item));
  const auto refuse = [&](const Error& error) {
    return wrong_option("resume", "{}: {}", options.resume, error.what());
  };
  SolveResult found;
  try {
    found = solver->run(y, own_maps, ledger, scale_of);
  } catch (const FormatError& error) {
    if (options.resume.empty()) throw;
    throw refuse(error);
  } catch (const ValueError& error) {
    if (options.resume.empty()) throw;
    throw refuse(error);
  }
  solver->drop_phase();
  return found;
}

bool ScanReconstruction::Impl::is_over(const SolveInfo& info) {
  if (progress) progress(solves_done * plan.iterations + info.iteration(), info.residual());
  is_timed_out = options.time_limit_s && is_any_timed_out();
  return !is_timed_out;
}

}  // namespace palimpsest
