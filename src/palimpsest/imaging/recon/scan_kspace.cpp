// SPDX-License-Identifier: Apache-2.0
// From the file to k-space of the items: sorting, the mean of frames, columns and the scale.

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/scan_pipeline.hpp"
#include "palimpsest/imaging/recon/value_checks.hpp"
#include "palimpsest/imaging/scale.hpp"

namespace palimpsest {
namespace {

// Numbers that compiled programs keep, of each frame along a trajectory too.
constexpr index_t kProgramBytes = 512, kProgramBytesOfFrame = 16;

}  // namespace

// -- plan -----------------------------------------------------------------------------------------

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

// -- run ------------------------------------------------------------------------------------------

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

// Axes (item, frame * coil, ..); along a trajectory (1, coil, 1, readout, sample).
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

}  // namespace palimpsest
