// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/results/image_facts.hpp"

#include "palimpsest/imaging/prelude.hpp"

namespace palimpsest {
namespace {

// Rounding of single precision, and of scanners that write micrometres.
constexpr double kSameDirection = 1e-4, kSamePlaceMm = 0.01, kSamePart = 1e-3;

using Vector = std::array<double, 3>;

double length(const Vector& v) { return std::hypot(v[0], v[1], v[2]); }

Vector difference(const Vector& a, const Vector& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}

bool is_same_orientation(const Orientation& a, const Orientation& b) {
  for (std::size_t d = 0; d < 3; ++d) {
    if (length(difference(a.directions[d], b.directions[d])) > kSameDirection) return false;
  }
  return true;
}

}  // namespace

bool ImageFacts::operator==(const ImageFacts& o) const {
  return place.directions == o.place.directions && place.position_mm == o.place.position_mm &&
         thickness_mm == o.thickness_mm && table_mm == o.table_mm && average == o.average &&
         slice == o.slice && contrast == o.contrast && phase == o.phase &&
         repetition == o.repetition && set == o.set && time_stamp == o.time_stamp &&
         physiology_time_stamp == o.physiology_time_stamp;
}

bool are_directions(const std::array<Vector, 3>& directions) {
  constexpr double kSmallest = 1e-3;  // of the volume that they span, as unit vectors
  const auto& [x, y, z] = directions;
  const double volume = x[0] * (y[1] * z[2] - y[2] * z[1]) - x[1] * (y[0] * z[2] - y[2] * z[0]) +
                        x[2] * (y[0] * z[1] - y[1] * z[0]);
  double lengths = 1;
  for (const auto& d : directions) lengths *= length(d);
  return std::isfinite(lengths) && std::abs(volume) > kSmallest * lengths;
}

std::optional<Vector> step_of_slices(std::span<const ImageFacts> slices) {
  if (slices.size() < 2) return Vector{0, 0, 0};
  const Orientation& first = slices.front().place;
  Vector step = difference(slices.back().place.position_mm, first.position_mm);
  for (double& v : step) v /= static_cast<double>(slices.size() - 1);
  const double most = std::max(kSamePlaceMm, kSamePart * length(step));
  for (std::size_t s = 0; s < slices.size(); ++s) {
    const Orientation& place = slices[s].place;
    if (!is_same_orientation(place, first)) return std::nullopt;
    Vector away = difference(place.position_mm, first.position_mm);
    for (std::size_t d = 0; d < 3; ++d) away[d] -= static_cast<double>(s) * step[d];
    if (!(length(away) <= most)) return std::nullopt;
  }
  if (length(step) <= kSamePlaceMm) return Vector{0, 0, 0};
  // A volume has a third direction.
  std::array<Vector, 3> directions = first.directions;
  directions[2] = step;
  if (are_directions(first.directions) && !are_directions(directions)) return std::nullopt;
  return step;
}

bool are_one_volume(std::span<const ImageFacts> images, index_t n_slices) {
  if (images.empty() || n_slices < 2) return true;
  std::vector<ImageFacts> firsts;
  const auto n_frames = images.size() / static_cast<std::size_t>(n_slices);
  for (std::size_t i = 0; i < images.size(); i += std::max<std::size_t>(n_frames, 1)) {
    firsts.push_back(images[i]);
  }
  return step_of_slices(firsts).has_value();
}

std::vector<std::string> facts_lost_in_a_volume(std::span<const ImageFacts> images,
                                                index_t n_slices) {
  std::vector<std::string> lost;
  if (images.empty() || n_slices < 1) return lost;
  const auto n_frames = images.size() / static_cast<std::size_t>(n_slices);
  const ImageFacts& first = images.front();
  bool table = false, physiology = false, slices = false, times = false, moves = false,
       uneven = false;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const ImageFacts& image = images[i];
    const std::size_t slice = i / n_frames, frame = i % n_frames;
    const ImageFacts& of_slice = images[slice * n_frames];
    table |= image.table_mm != Vector{0, 0, 0};
    physiology |= image.physiology_time_stamp != std::array<std::uint32_t, 3>{0, 0, 0};
    slices |= image.slice != static_cast<index_t>(slice);
    times |= frame == 0 && image.time_stamp != first.time_stamp;
    moves |= !is_same_orientation(image.place, of_slice.place) ||
             length(difference(image.place.position_mm, of_slice.place.position_mm)) > kSamePlaceMm;
    if (frame + 1 < n_frames && n_frames > 2) {
      uneven |= std::int64_t{images[i + 1].time_stamp} - image.time_stamp !=
                std::int64_t{images[slice * n_frames + 1].time_stamp} - of_slice.time_stamp;
    }
  }
  if (table) lost.emplace_back("table positions");
  if (physiology) lost.emplace_back("time stamps of physiology");
  if (slices) lost.emplace_back("slice numbers");
  if (times) lost.emplace_back("time stamps of slices");
  if (uneven) lost.emplace_back("uneven times of frames");
  if (moves) lost.emplace_back("places of frames after the first");
  return lost;
}

}  // namespace palimpsest
