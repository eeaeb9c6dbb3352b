// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/dtype.hpp"

namespace PALIMPSEST_API palimpsest {

/// Directions along x, y, z (unit vectors) and the position of the middle of the image, in LPS.
struct Orientation {
  std::array<std::array<double, 3>, 3> directions = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  std::array<double, 3> position_mm = {0, 0, 0};
};

/// Facts of one image of a series, those of the readout nearest to the centre of its k-space.
struct ImageFacts {
  Orientation place;
  /// Of the slice, or of the slab's partition; 0: not known.
  double thickness_mm = 0;
  /// Of the patient table.
  std::array<double, 3> table_mm = {0, 0, 0};
  /// Counters, as the scanner counts.
  index_t average = 0, slice = 0, contrast = 0, phase = 0, repetition = 0, set = 0;
  /// Ticks of the scanner's clock, and of three triggers of physiology.
  std::uint32_t time_stamp = 0;
  std::array<std::uint32_t, 3> physiology_time_stamp = {0, 0, 0};

  bool operator==(const ImageFacts& other) const;
};

/// True if the directions are independent. Scanners that do not know them write zeros.
bool are_directions(const std::array<std::array<double, 3>, 3>& directions);

/// From each slice to the next, where all are parallel and equally spaced, so that they are one
/// volume. 0 if all lie at one place: then their distance is not known.
std::optional<std::array<double, 3>> step_of_slices(std::span<const ImageFacts> slices);

/// True if the slices of `n_slices` times as many images as it has frames, these the fastest, are
/// one volume, in the first frame; also if there are no facts.
bool are_one_volume(std::span<const ImageFacts> images, index_t n_slices);

/// Facts of `n_slices` times `n_frames` images, frames the fastest, that a file without a header
/// for each image loses, in words: `time stamps of slices`.
std::vector<std::string> facts_lost_in_a_volume(std::span<const ImageFacts> images,
                                                index_t n_slices);

}  // namespace palimpsest
