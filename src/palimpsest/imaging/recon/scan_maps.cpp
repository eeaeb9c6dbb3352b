// SPDX-License-Identifier: Apache-2.0
// Coil maps: the source of their estimates, and those of an item.

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/scan_pipeline.hpp"
#include "palimpsest/imaging/recon/value_checks.hpp"

namespace palimpsest {
namespace {

// Planes of maps that are read together: a whole cache line of every row.
constexpr index_t kMapsAtATime = 16;

// A smaller centre loses part of the object, because its windows do not span the signal. Measured
// on 64^2 and 128^2 with 2 to 16 coils and windows of 6: 11 x 11 loses none of the object, 10 x 14
// loses 3 %, 9 x 14 34 %, 8 x 24 20 %, 8 x 8 all of it.
bool is_enough(const CalibrationArea& center, const Extents& item, index_t kernel) {
  for (std::size_t axis = 0; axis < item.size(); ++axis) {
    // An axis of one point has no windows.
    const index_t extent = center.extent[axis + 3 - item.size()];
    if (item[axis] > 1 && extent < 2 * kernel - 1) return false;
  }
  return true;
}

// `of` names the slices, or is empty.
ValueError too_small(const CalibrationArea& center, const Extents& item, index_t kernel,
                     const std::string& of, const std::string& advice) {
  const index_t least = 2 * kernel - 1, rows = center.extent[1], columns = center.extent[2];
  const std::string got = item.size() == 3 ? fmt::format("{} x ", center.extent[0]) : "";
  const std::string expected = item.size() == 3 ? fmt::format("{} x ", least) : "";
  return ValueError(
      fmt::format("[coil sensitivities] the densely sampled centre of k-space{} is too small: got "
                  "{}{} x {} points, expected at least {}{} x {}. Try {}",
                  of, got, rows, columns, expected, least, least, advice));
}

// Squares of the distance between two slices of equal directions; unset: theirs differ.
std::optional<double> distance_of(const ImageFacts& a, const ImageFacts& b) {
  constexpr double kSame = 1e-4;
  double square = 0;
  for (std::size_t d = 0; d < 3; ++d) {
    square += std::pow(a.place.position_mm[d] - b.place.position_mm[d], 2);
    for (std::size_t row = 0; row < 3; ++row) {
      const double turn = a.place.directions[d][row] - b.place.directions[d][row];
      if (std::abs(turn) > kSame) return std::nullopt;
    }
  }
  return square;
}

}  // namespace

// The area of a slice for its maps: of separate calibration lines if they suffice, else of its own
// k-space. Too small if neither does.
ScanReconstruction::Impl::MapSource ScanReconstruction::Impl::own_source(index_t slice) const {
  const ScanLayout& layout = scan.layout();
  const index_t kernel = espirit_options.kernel, most = espirit_options.calibration;
  const auto source_of = [&](const Tensor& measured, bool is_calibration) {
    return MapSource{slice, is_calibration, calibration_area(measured, kNoLimit),
                     calibration_area(measured, most)};
  };
  const Tensor lines = scan.calibration_mask(slice);
  if (lines.defined()) {
    MapSource source = source_of(lines, true);
    if (is_enough(source.area, layout.item_shape(), kernel)) return source;
  }
  return source_of(layout.n_frames() > 1 ? scan.mean_mask(slice) : scan.mask(slice, 0), false);
}

// The nearest slice with a source, of those parallel to this one; -1: none.
index_t ScanReconstruction::Impl::nearest_source(index_t slice,
                                                 const std::vector<bool>& has_own) const {
  const ScanLayout& layout = scan.layout();
  // Arrays have numbers of slices alone.
  const auto facts = [&](index_t s) {
    if (!layout.images.empty()) {
      return layout.images[static_cast<std::size_t>(s * layout.n_frames())];
    }
    ImageFacts of_number;
    of_number.place.position_mm[2] = static_cast<double>(s);
    return of_number;
  };
  index_t nearest = -1;
  double least = 0;
  for (index_t s = 0; s < layout.n_slices(); ++s) {
    if (!has_own[static_cast<std::size_t>(s)]) continue;
    const std::optional<double> distance = distance_of(facts(s), facts(slice));
    if (!distance || (nearest >= 0 && *distance >= least)) continue;
    nearest = s;
    least = *distance;
  }
  return nearest;
}

void ScanReconstruction::Impl::open_center() {
  const ScanLayout& layout = scan.layout();
  const Extents item = layout.item_shape();
  const index_t kernel = espirit_options.kernel;
  espirit_options.sets = options.sets;
  espirit_options.keep_eigenvalues = false;
  if (layout.has_trajectory()) {
    CalibrationArea area;
    for (std::size_t k = 0; k < item.size(); ++k) {
      const std::size_t axis = 3 - item.size() + k;
      area.extent[axis] = std::min(item[k], espirit_options.calibration);
      area.start[axis] = item[k] / 2 - area.extent[axis] / 2;
    }
    if (!is_enough(area, item, kernel)) {
      throw too_small(area, item, kernel, "", "ScanReconstructionOptions.maps FILE");
    }
    for (index_t s = 0; s < layout.n_slices(); ++s) sources.push_back({s, false, area, area});
    espirit_options.area = area;
    rehearse_calibration();
    return;
  }
  std::vector<bool> has_own;
  for (index_t s = 0; s < layout.n_slices(); ++s) {
    sources.push_back(own_source(s));
    has_own.push_back(is_enough(sources.back().area, item, kernel));
  }
  share_sources(has_own);
  espirit_options.area = sources.front().area;
}

// Slices without a source take that of another one, or are refused.
void ScanReconstruction::Impl::share_sources(const std::vector<bool>& has_own) {
  const ScanLayout& layout = scan.layout();
  for (index_t s = 0; s < layout.n_slices(); ++s) {
    const auto at = static_cast<std::size_t>(s);
    if (has_own[at]) continue;
    const index_t number = layout.slices[at], nearest = nearest_source(s, has_own);
    const bool is_one = layout.n_slices() == 1;
    if (!options.share_maps || nearest < 0) {
      const std::string advice = "ScanReconstructionOptions.maps FILE";
      throw too_small(
          sources[at].area, layout.item_shape(), espirit_options.kernel,
          is_one ? "" : fmt::format(" of slice {}", number),
          nearest < 0
              ? advice
              : advice + ", or ScanReconstructionOptions.share_maps to take those of slice " +
                    std::to_string(layout.slices[static_cast<std::size_t>(nearest)]));
    }
    sources[at] = sources[static_cast<std::size_t>(nearest)];
    scan.note(fmt::format("slice {} takes the coil maps of slice {}", number,
                          layout.slices[static_cast<std::size_t>(nearest)]));
  }
}

// Measures the peak bytes of making calibration data of one coil on noise: the calls allocate the
// same for any samples.
void ScanReconstruction::Impl::rehearse_calibration() {
  const ScanLayout& layout = scan.layout();
  const Extents coil{1, layout.grid[2], layout.grid[3]};
  const Tensor noise = Tensor::random_normal(coil, DType::complex64, {1, 1});
  const index_t size =
      *std::min_element(espirit_options.area->extent.end() - layout.trajectory.shape(2),
                        espirit_options.area->extent.end());
  const MemoryScope scope;
  calibration_from(noise, layout.trajectory, size);
  rehearsed_bytes = static_cast<index_t>(scope.peak_bytes());
}

// -- plan -----------------------------------------------------------------------------------------

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

// -- run ------------------------------------------------------------------------------------------

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
  // Items are left out: those without data, and those of other ranks.
  const index_t first = item - item % plan.maps_at_a_time;
  if (!group_of_maps.defined() || first != first_of_group) {
    group_of_maps = Tensor();
    group_of_maps = given_maps(first);
    first_of_group = first;
  }
  const Tensor of_item = group_of_maps.select(0, item - first);
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

}  // namespace palimpsest
