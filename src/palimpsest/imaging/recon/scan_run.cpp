// SPDX-License-Identifier: Apache-2.0

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/mask_extents.hpp"
#include "palimpsest/imaging/recon/partial_images.hpp"
#include "palimpsest/imaging/recon/scan_pipeline.hpp"
#include "palimpsest/imaging/recon/subspace.hpp"
#include "palimpsest/imaging/recon/value_checks.hpp"
#include "palimpsest/imaging/scale.hpp"

namespace palimpsest {
namespace {

// Planes of a volume below this part of its largest value are rounding errors of empty ones.
constexpr double kEmptyPlane = 1e-6;

// Root of the sum of squares over the axis of the sets, in place of the first set.
Tensor combined_sets(const Tensor& image, std::size_t axis) {
  Tensor result = image.select(static_cast<index_t>(axis), 0).contiguous().clone();
  auto* to = result.mutable_data<Sample>();
  std::vector<double> sums(static_cast<std::size_t>(result.numel()), 0.0);
  for (index_t m = 0; m < image.shape(static_cast<index_t>(axis)); ++m) {
    const Tensor set = image.select(static_cast<index_t>(axis), m).contiguous();
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += std::norm(std::complex<double>(set.data<Sample>()[i]));
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i) to[i] = static_cast<float>(std::sqrt(sums[i]));
  return result;
}

int rank_of(Status status) {
  switch (status) {
    case Status::cancelled:
      return 5;
    case Status::diverged:
      return 4;
    case Status::breakdown:
      return 3;
    case Status::stopped:
    case Status::time_limit:
      return 2;
    case Status::max_iterations:
      return 1;
    case Status::converged:
      break;
  }
  return 0;
}

}  // namespace

bool is_worse(Status status, const std::vector<Record>& history, Status than,
              const std::vector<Record>& history_of_that) {
  const auto last = [](const std::vector<Record>& records) {
    return records.empty() ? -1.0 : records.back().residual;
  };
  return std::pair(rank_of(status), last(history)) >
         std::pair(rank_of(than), last(history_of_that));
}

// -- k-space -------------------------------------------------------------------------------------

Tensor ScanReconstruction::Impl::arranged(const Tensor& grid, index_t n_frames, index_t piece) {
  Extents shape = scan.layout().item_array_shape();
  shape[0] *= n_frames;
  shape.insert(0, scan.layout().n_items());
  if (!arranges()) return grid.view(shape);
  const ColumnTaker taker = kspace_taker(n_frames, piece, plan.in_memory);
  largest.assign(static_cast<std::size_t>(shape[0]), 0.0);
  return taker
      .take(grid, place(), ledger,
            [&](index_t x, const Sample* column, index_t n) {
              double& most = largest[static_cast<std::size_t>(x)];
              most = std::max(most, largest_part({column, static_cast<std::size_t>(n)}));
            })
      .view(shape);
}

// The unit of the regularizers, from the middle of k-space.
void ScanReconstruction::Impl::take_scale(const Tensor& grid) {
  if (!scales_on_grid() || scale) return;
  const Extents& n = grid.shape();
  // A plane without its axis of one point; BART's of a readout of one sample too.
  const Tensor kspace = n[1] == 1   ? grid.select(1, 0)
                        : n[3] == 1 ? grid.select(3, 0)
                        : n[2] == 1 ? grid.select(2, 0)
                                    : grid;
  const CalibrationArea area = brightness_area(kspace);
  scale = area.extent[0] * area.extent[1] * area.extent[2] == 0
              ? 1.0
              : brightness_of(kspace, area).scale();
  release_pages(grid);
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

// As (item, frame * coil, ..); along a trajectory (1, coil, 1, readout, sample).
Tensor ScanReconstruction::Impl::items_of_kspace(index_t slice, index_t group) {
  const ScanLayout& layout = scan.layout();
  if (layout.has_trajectory()) return samples_of(slice).unsqueeze(0);
  const Tensor grid =
      scan.kspace(slice, group * frames(), frames(), place(), plan.sorting_piece, ledger);
  if (images() * frames() == 1 && scan.makes_array()) scan.close();
  if (layout.n_frames() == 1) take_scale(grid);
  return arranged(grid, frames(), plan.columns_piece);
}

// The samples of all frames, (coil, 1, readout, sample).
const Tensor& ScanReconstruction::Impl::samples_of(index_t slice) {
  if (std::exchange(samples_slice, slice) == slice) return samples;
  samples = Tensor();
  samples = scan.kspace(slice, 0, 1, place(), plan.sorting_piece, ledger);
  if (images() * frames() == 1 && scan.makes_array()) scan.close();
  return samples;
}

// Out of (coil, 1, readout, sample) those of the frames, ([frame], coil, readout, sample).
Tensor ScanReconstruction::Impl::kspace_of_frames(const Tensor& of_slice, index_t group) const {
  const ScanLayout& layout = scan.layout();
  const index_t per_frame = layout.readouts_per_frame, step = layout.readouts_per_step;
  const Tensor lines = of_slice.select(1, 0);
  if (!is_tied) return lines.narrow(1, group * step, per_frame);
  const Strides& s = lines.strides();
  return lines.as_strided({layout.n_frames(), lines.shape(0), per_frame, lines.shape(2)},
                          {step * s[1], s[0], s[1], s[2]}, lines.offset());
}

// ([frame], coil, ..) of one solve, out of items_of_kspace().
Tensor ScanReconstruction::Impl::kspace_of_solve(const Tensor& kspace, index_t group,
                                                 index_t item) const {
  const Tensor y = kspace.select(0, item);
  if (scan.layout().has_trajectory()) return kspace_of_frames(y, group);
  if (!is_tied) return y;
  Extents shape = scan.layout().item_array_shape();
  shape.insert(0, scan.layout().n_frames());
  return y.view(shape);
}

void ScanReconstruction::Impl::take_calibration(index_t slice) {
  calibration = Tensor();
  if (sources.empty()) return;
  const MapSource& source = sources[static_cast<std::size_t>(slice)];
  espirit_options.area = source.area;
  if (!source.is_calibration) return;
  const Tensor grid =
      scan.calibration_kspace(source.slice, place(), plan.calibration_piece, ledger);
  calibration = arranged(grid, 1, kSmallestPiece);
}

void ScanReconstruction::Impl::take_mean(index_t slice) {
  const bool is_series = scan.layout().n_frames() > 1, is_curved = scan.layout().has_trajectory();
  if (!is_series && !maps_first()) return;
  Tensor source = calibration;
  const index_t from = maps_first() ? sources[static_cast<std::size_t>(slice)].slice : slice;
  const bool needs_source = maps_first() && !source.defined();
  const auto mean_of = [&](index_t of) {
    return is_curved ? samples_of(of) : scan.mean_kspace(of, place(), plan.mean_piece, ledger);
  };
  const bool is_own = from == slice && needs_source;
  if (is_own || (is_series && scales_on_grid())) {
    const Tensor grid = mean_of(slice);
    if (!is_curved) take_scale(grid);
    if (is_own) source = is_curved ? grid.unsqueeze(0) : arranged(grid, 1, kSmallestPiece);
  }
  if (needs_source && !is_own) source = arranged(mean_of(from), 1, kSmallestPiece);
  if (maps_first()) estimate_all_maps(source);
}

// ValueError for numbers outside the range of single precision: their images would be wrong, not
// rounded.
void ScanReconstruction::Impl::check_range(const Tensor& kspace) {
  constexpr double kSmallest = 1e-30, kLargest = 1e30;
  double most = 0;
  const bool is_known = kspace.shape(0) > 1;  // noted when the planes were made
  for (const double of_item : largest) most = std::max(most, of_item);
  for (index_t c = 0; !is_known && c < kspace.shape(1); ++c) {
    const Tensor coil = kspace.select(0, 0).select(0, c);
    most = std::max(most, largest_part(coil));
    release_pages(coil);
  }
  if (most >= kSmallest && most <= kLargest) return;
  throw ValueError(
      fmt::format("[{}] k-space is out of the range of single precision: its largest real or "
                  "imaginary part is {:g}, expected {:g} to {:g}. Try to scale it",
                  options.kspace, most, kSmallest, kLargest));
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

// -- maps ----------------------------------------------------------------------------------------

// Maps of the items from `first` on, out of their file: (item, [set], coil, ..).
Tensor ScanReconstruction::Impl::given_maps(index_t first) {
  const ScanLayout& layout = scan.layout();
  if (!maps.defined()) {
    const Tensor of_slice =
        layout.n_slices() > 1 ? maps_file.array.select(0, maps_slice) : maps_file.array;
    if (CoilMixer* const mixer = scan.mixer()) {
      const auto charge = ledger.charge(mixer->bytes(layout.columns));
      maps = mixer->mixed(of_slice, place());
    } else {
      maps = copies_maps(plan.in_memory) ? dense_copy(of_slice, place()) : of_slice;
    }
    // The file's array is not needed any more.
    if (layout.n_slices() == 1) maps_file.array = maps;
  }
  Extents shape = maps_of_item_shape();
  const index_t n = has_plane_maps() ? std::min(plan.maps_at_a_time, layout.n_items() - first) : 1;
  shape.insert(0, n);
  if (!has_plane_maps()) return maps.view(shape);
  return maps_taker(first, n, plan.maps_piece, plan.in_memory)
      .take(maps, place(), ledger)
      .view(shape);
}

// From k-space of an item, (coil, ..), or all samples along a trajectory, (coil, 1, readout,
// sample).
Tensor ScanReconstruction::Impl::estimated_maps(const Tensor& kspace) {
  const ScanLayout& layout = scan.layout();
  Extents shape = layout.item_array_shape();
  shape.insert(0, options.sets);
  ScratchArray found = place().array(shape);
  if (!layout.has_trajectory()) {
    espirit(kspace, found, espirit_options);
    release_pages(kspace);
  } else {
    const CalibrationArea& area = *espirit_options.area;
    const std::size_t d = layout.item_shape().size();
    const index_t size =
        *std::min_element(area.extent.end() - static_cast<std::ptrdiff_t>(d), area.extent.end());
    Tensor grid = Tensor::zeros(layout.item_array_shape(), DType::complex64);
    Tensor middle = calibration_from(kspace.select(1, 0), layout.trajectory, size);
    Tensor place_of_it = grid;
    for (std::size_t k = 0; k < d; ++k) {
      const index_t n = layout.item_shape()[k];
      place_of_it = place_of_it.narrow(static_cast<index_t>(k + 1), n / 2 - size / 2, size);
    }
    place_of_it.copy_from(middle);
    middle = Tensor();
    espirit(grid, found, espirit_options);
  }
  const Tensor made = found.map();
  return options.sets == 1 ? made.select(0, 0) : made;
}

void ScanReconstruction::Impl::estimate_all_maps(const Tensor& kspace) {
  const ScanLayout& layout = scan.layout();
  Extents shape = maps_of_item_shape();
  const index_t one = element_count(shape);
  shape.insert(0, layout.n_items());
  all_maps = Tensor();
  if (layout.n_items() == 1) {
    all_maps = estimated_maps(kspace.select(0, 0)).unsqueeze(0);
    return;
  }
  ScratchArray found = place().array(shape);
  const double most = *std::max_element(largest.begin(), largest.end());
  for (index_t i = 0; i < layout.n_items(); ++i) {
    if (largest[static_cast<std::size_t>(i)] <= kEmptyPlane * most) continue;
    const Tensor item = estimated_maps(kspace.select(0, i)).contiguous();
    found.write(i * one, item.raw_data(), one);
    release_pages(item);
  }
  all_maps = found.map();
}

Tensor ScanReconstruction::Impl::maps_of_item(const Tensor& kspace, index_t item) {
  if (maps_first()) return all_maps.select(0, item);
  if (!has_maps())
    return estimated_maps(calibration.defined() ? calibration.select(0, item) : kspace);
  if (item % plan.maps_at_a_time == 0) {
    group_of_maps = Tensor();
    group_of_maps = given_maps(item);
  }
  const Tensor of_item = group_of_maps.select(0, item % plan.maps_at_a_time);
  check_maps(of_item);
  return of_item;
}

void ScanReconstruction::Impl::check_maps(const Tensor& given) {
  for (index_t c = 0; c < given.shape(0); ++c) {
    const Tensor coil = given.select(0, c);
    if (!all_finite(coil)) {
      const NotFinite bad = count_not_finite(given);
      throw not_finite(options.maps, coil_map_values(), bad.count,
                       index_of(bad.first, given.shape()));
    }
    release_pages(coil);
  }
}

void ScanReconstruction::Impl::keep_maps(const Tensor& found, index_t slice, index_t item) {
  if (!kept_maps) return;
  const index_t n = element_count(maps_of_item_shape());
  kept_maps->write((slice * scan.layout().n_items() + item) * n, found.contiguous().raw_data(), n);
}

// -- images --------------------------------------------------------------------------------------

void ScanReconstruction::Impl::check_image(const ScanReconstructionResult& result) const {
  if (largest_part(result.image) != 0) return;
  if (result.status == Status::max_iterations) {
    throw wrong_option("iterations",
                       "the image is 0 everywhere after {} of them. Try more, or smaller weights",
                       result.iterations);
  }
  if (result.iterations == 0 && options.tolerance.value_or(0) >= 1) {
    throw wrong_option("tolerance",
                       "got {}, above the residual of an image "
                       "of 0: nothing was done. Try a number below 1",
                       *options.tolerance);
  }
  if (!are_quadratic(options.regularizers)) {
    throw wrong_option(
        "regularizers",
        "the image is 0 everywhere: weights are too large for it, a ball holds all of k-space, or "
        "the coil maps are 0 where the scan has signal. Try smaller numbers");
  }
  throw ValueError(has_maps()
                       ? fmt::format("[ScanReconstructionOptions.maps] the image is 0 everywhere: "
                                     "the coil maps of {} are 0 where the scan has signal. Try "
                                     "other maps, or without ScanReconstructionOptions.maps",
                                     options.maps)
                       : fmt::format("[{}] the image is 0 everywhere: the calibration lines gave "
                                     "no coil maps. Try ScanReconstructionOptions.maps FILE",
                                     options.kspace));
}

// Factors of the whole grid of an item: 1 outside of the wanted part.
Tensor ScanReconstruction::Impl::phase_of(index_t slice, index_t item) const {
  const ScanLayout& layout = scan.layout();
  Tensor part = *phase;
  if (layout.n_slices() > 1) part = part.select(0, slice);
  if (layout.n_items() > 1) part = part.select(-1, item);
  const Extents wanted = layout.wanted_of_item();
  Tensor factors = Tensor::full<Sample>(layout.item_shape(), Sample(1)), middle = factors;
  for (std::size_t axis = 0; axis < wanted.size(); ++axis) {
    const index_t n = factors.shape()[axis];
    middle = middle.narrow(static_cast<index_t>(axis), n / 2 - wanted[axis] / 2, wanted[axis]);
  }
  set_phase_factors(middle, part);
  return factors;
}

void ScanReconstruction::Impl::take_item(SolveResult& found, index_t slice, index_t group,
                                         index_t item, ScanReconstructionResult& result) const {
  const ScanLayout& layout = scan.layout();
  Tensor part = std::move(found.x);
  if (options.sets > 1) part = combined_sets(part, is_tied ? 1 : 0);
  if (const auto& of_image = partials.empty()
                                 ? std::nullopt
                                 : partials[static_cast<std::size_t>(slice * groups() + group)]) {
    PartialLines lines = *of_image;
    if (is_tied) ++lines.axis;
    part = with_missing_side(part, lines, options.partial);
  }
  if (!layout.has_trajectory()) part = pixel_taker().take(std::move(part));
  if (!is_stacked()) {
    result.image = part.contiguous().view(layout.result_shape());
  } else {
    Tensor to = place_of(result.image, slice, group, item);
    to.copy_from(part);
  }
  result.iterations = std::max<index_t>(result.iterations, found.iterations);
  for (const auto& [name, count] : found.applications) result.applications[name] += count;
  const bool is_kept = is_worse(found.status, found.history, result.status, result.history);
  if (solves_done > own_solves().start && !is_kept) return;
  result.status = found.status;
  result.reason = std::move(found.reason);
  result.history = std::move(found.history);
}

bool ScanReconstruction::Impl::is_over(const SolveInfo& info) {
  if (progress) progress(solves_done * plan.iterations + info.iteration(), info.residual());
  is_timed_out = options.time_limit_s && is_any_timed_out();
  return !is_timed_out;
}

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

// One solve of a group, whose k-space is items_of_kspace().
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

// -- the whole way -------------------------------------------------------------------------------

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
