// SPDX-License-Identifier: Apache-2.0
// From the solution of an item to the result: sets, the missing side of k-space, and pixels.

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/partial_images.hpp"
#include "palimpsest/imaging/recon/scan_pipeline.hpp"
#include "palimpsest/imaging/recon/value_checks.hpp"

namespace palimpsest {
namespace {

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

// -- plan -----------------------------------------------------------------------------------------

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

// -- run ------------------------------------------------------------------------------------------

bool is_worse(Status status, const std::vector<Record>& history, Status than,
              const std::vector<Record>& history_of_that) {
  const auto last = [](const std::vector<Record>& records) {
    return records.empty() ? -1.0 : records.back().residual;
  };
  return std::pair(rank_of(status), last(history)) >
         std::pair(rank_of(than), last(history_of_that));
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

}  // namespace palimpsest
