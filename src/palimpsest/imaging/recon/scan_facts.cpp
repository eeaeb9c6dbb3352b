// SPDX-License-Identifier: Apache-2.0
// Facts of the images of a raw file: each from its own readouts.
#include <fmt/ranges.h>

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/pixels.hpp"
#include "palimpsest/imaging/recon/scan_file.hpp"

namespace palimpsest {
namespace {

constexpr double kTickUs = 2500;
// Readouts of one image may differ by rounding.
constexpr float kSamePlaceMm = 0.01F, kSameDirection = 1e-4F;

using Vector = std::array<float, 3>;

std::array<double, 3> doubles(const Vector& v) {
  return {double{v[0]}, double{v[1]}, double{v[2]}};
}

bool differ(const Vector& a, const Vector& b, float by) {
  for (std::size_t d = 0; d < 3; ++d) {
    if (!(std::abs(a[d] - b[d]) <= by)) return true;
  }
  return false;
}

bool is_moved(const Readout& a, const Readout& b) {
  return differ(a.position, b.position, kSamePlaceMm) ||
         differ(a.read_direction, b.read_direction, kSameDirection) ||
         differ(a.phase_direction, b.phase_direction, kSameDirection) ||
         differ(a.slice_direction, b.slice_direction, kSameDirection);
}

ImageFacts facts_of(const Readout& r) {
  ImageFacts facts;
  facts.place = {
      {doubles(r.read_direction), doubles(r.phase_direction), doubles(r.slice_direction)},
      doubles(r.position)};
  facts.table_mm = doubles(r.table_position);
  facts.average = r.average, facts.slice = r.slice, facts.contrast = r.contrast;
  facts.phase = r.phase, facts.repetition = r.repetition, facts.set = r.set;
  facts.time_stamp = static_cast<std::uint32_t>(r.time_stamp);
  facts.physiology_time_stamp = r.physiology_time_stamp;
  return facts;
}

// Lines between a readout and the middle of k-space, along y and z.
index_t lines_to_middle(const RawScanHeader& header, const Readout& r) {
  const auto away = [](index_t step, const std::optional<EncodingLimit>& limit, index_t extent) {
    return std::abs(step - (limit ? limit->center : extent / 2));
  };
  return away(r.step_1, header.step_1_limit, header.encoded.matrix[1]) +
         away(r.step_2, header.step_2_limit, header.encoded.matrix[2]);
}

// Squares of the distance of each readout to the middle of k-space.
std::vector<double> distances_of(const Tensor& trajectory, index_t first, index_t count) {
  const index_t n = trajectory.shape(1), d = trajectory.shape(2);
  std::vector<double> distances;
  for (index_t i = first; i < first + count; ++i) {
    const float* k = trajectory.data<float>() + i * n * d;
    double least = std::numeric_limits<double>::infinity();
    for (index_t j = 0; j < n; ++j) {
      double square = 0;
      for (index_t a = 0; a < d; ++a) square += std::pow(double{k[j * d + a]}, 2);
      least = std::min(least, square);
    }
    distances.push_back(least);
  }
  return distances;
}

std::string list_of(const std::vector<index_t>& numbers) {
  constexpr std::size_t kMost = 8;
  const auto shown = static_cast<std::ptrdiff_t>(std::min(numbers.size(), kMost));
  return fmt::format("{}{} {}{}", "slice", numbers.size() == 1 ? "" : "s",
                     fmt::join(numbers.begin(), numbers.begin() + shown, ", "),
                     numbers.size() > kMost ? ", .." : "");
}

}  // namespace

// Says how pixels between the measured ones are made.
void ScanFile::note_pixels() {
  if (!layout_.is_resampled()) return;
  std::vector<std::string> ways;
  bool fills = false, cuts = false, exceeds = false;
  for (const ImageAxis& axis : layout_.axes) {
    fills |= axis.spacing < 1;
    cuts |= axis.spacing > 1;
    exceeds |=
        axis.spacing * static_cast<double>(axis.pixels) > static_cast<double>(axis.points) + 0.5;
  }
  if (fills) ways.emplace_back("filled with zeros");
  if (cuts) ways.emplace_back("cut");
  if (!ways.empty()) {
    layout_.notes.push_back(
        fmt::format("pixels between the measured ones: k-space is {}, without a filter",
                    fmt::join(ways, " and ")));
  }
  if (exceeds) {
    layout_.notes.push_back("the image is larger than the encoded field of view: 0 outside of it");
  }
}

// The distance of the pixels along x, y or z.
double ScanFile::voxel_mm(std::size_t axis) const {
  const RawScanHeader& header = raw_->contents().header;
  const index_t points = layout_.has_trajectory() ? 1 : layout_.grid[3 - axis];
  const double voxel = points > 1 ? header.encoded.field_of_view_mm[axis] /
                                        static_cast<double>(points) * layout_.axes[2 - axis].spacing
                                  : image_field_mm(header, options_, axis) /
                                        static_cast<double>(layout_.wanted[2 - axis]);
  return voxel > 0 ? voxel : 1;
}

// The readouts of an image, the nearest to the middle of k-space first; of equal ones the first.
std::vector<std::size_t> ScanFile::readouts_from_middle(index_t slice, index_t frame) const {
  const RawScan& scan = raw_->contents();
  std::vector<std::size_t> readouts;
  std::vector<double> distances;
  if (layout_.has_trajectory()) {
    const std::vector<std::size_t> of_slice = ordered_readouts(slice);
    const index_t first = frame * layout_.readouts_per_step;
    distances = distances_of(layout_.trajectory, first, layout_.readouts_per_frame);
    const auto begin = of_slice.begin() + first;
    readouts.assign(begin, begin + layout_.readouts_per_frame);
  } else {
    readouts = imaging_readouts(scan, options_of(slice, frame));
    for (const std::size_t i : readouts) {
      distances.push_back(static_cast<double>(lines_to_middle(scan.header, scan.readouts[i])));
    }
  }
  const auto nearest = std::min_element(distances.begin(), distances.end()) - distances.begin();
  std::swap(readouts[0], readouts[static_cast<std::size_t>(nearest)]);
  return readouts;
}

// Fills in the facts of all images, and notes what contradicts itself.
void ScanFile::open_images() {
  const RawScan& scan = raw_->contents();
  std::vector<index_t> moved, lost;
  for (index_t s = 0; s < layout_.n_slices(); ++s) {
    bool moves = false;
    for (index_t t = 0; t < layout_.n_frames(); ++t) {
      const std::vector<std::size_t> readouts = readouts_from_middle(s, t);
      const Readout& middle = scan.readouts[readouts.front()];
      moves |= std::any_of(readouts.begin(), readouts.end(),
                           [&](std::size_t i) { return is_moved(scan.readouts[i], middle); });
      ImageFacts& facts = layout_.images.emplace_back(facts_of(middle));
      facts.thickness_mm = voxel_mm(2);
      if (options_.readouts_per_frame > 0) facts.repetition = t;
    }
    const index_t number = layout_.slices[static_cast<std::size_t>(s)];
    if (moves) moved.push_back(number);
    if (!are_directions(layout_.images.back().place.directions)) lost.push_back(number);
  }
  if (!moved.empty()) {
    layout_.notes.push_back(
        fmt::format("readouts of one image lie at different places in {}: the nearest to the "
                    "middle of k-space counts",
                    list_of(moved)));
  }
  if (!lost.empty()) {
    layout_.notes.push_back(fmt::format(
        "no place in space: the directions of {} are 0 or not independent", list_of(lost)));
  }
}

void ScanFile::open_geometry() {
  const RawScan& scan = raw_->contents();
  Geometry& g = layout_.geometry;
  layout_.header = scan.header;
  layout_.frame_counter = options_.as;
  note_pixels();
  open_images();
  const auto n_frames = static_cast<std::size_t>(layout_.n_frames());
  const ImageFacts& first = layout_.images.front();
  for (std::size_t k = 0; k < 3; ++k) g.voxel_mm[k] = voxel_mm(k);
  g.position_mm = first.place.position_mm;
  g.directions = first.place.directions;
  g.table_mm = first.table_mm;
  std::vector<ImageFacts> slices;
  for (std::size_t i = 0; i < layout_.images.size(); i += n_frames) {
    slices.push_back(layout_.images[i]);
  }
  const auto step = step_of_slices(slices);
  g.slice_step_mm = step.value_or(std::array<double, 3>{0, 0, 0});
  if (slices.size() > 1 && step && *step == std::array<double, 3>{0, 0, 0}) {
    layout_.notes.push_back("all slices are at one position: their distance is not known");
  }
  if (n_frames < 2) return;
  const std::int64_t ticks =
      std::int64_t{layout_.images[n_frames - 1].time_stamp} - std::int64_t{first.time_stamp};
  g.time_step_us = kTickUs * static_cast<double>(std::max<std::int64_t>(ticks, 0)) /
                   static_cast<double>(n_frames - 1);
}

}  // namespace palimpsest
