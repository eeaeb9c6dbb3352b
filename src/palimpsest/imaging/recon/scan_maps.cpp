// SPDX-License-Identifier: Apache-2.0
// Source of the estimates of coil maps.

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/scan_pipeline.hpp"
#include "palimpsest/linop/split/cache_tiles.hpp"

namespace palimpsest {
namespace {

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

}  // namespace palimpsest
