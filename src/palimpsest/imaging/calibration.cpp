// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <vector>

#include "palimpsest/base/error.hpp"

namespace palimpsest {
namespace {

using Sample = std::complex<float>;

// A grid with its three axes, 1 for those that are missing.
std::array<index_t, 3> grid_of(const Extents& shape, std::size_t leading) {
  std::array<index_t, 3> n = {1, 1, 1};
  const std::size_t axes = shape.size() - leading;
  for (std::size_t k = 0; k < axes; ++k) n[3 - axes + k] = shape[leading + k];
  return n;
}

void expect_axes(const Tensor& array, std::size_t leading, const char* expected) {
  const bool fits = array.rank() == leading + 2 || array.rank() == leading + 3;
  if (fits && array.numel() > 0) return;
  throw ShapeError(
      fmt::format("[calibration area] got the shape {}, expected {} without empty axes",
                  to_string(array.shape()), expected));
}

bool is_full(const bool* measured, const std::array<index_t, 3>& n, const CalibrationArea& area) {
  for (index_t z = area.start[0]; z < area.start[0] + area.extent[0]; ++z) {
    for (index_t y = area.start[1]; y < area.start[1] + area.extent[1]; ++y) {
      const bool* line = measured + (z * n[1] + y) * n[2] + area.start[2];
      if (!std::all_of(line, line + area.extent[2], [](bool m) { return m; })) return false;
    }
  }
  return true;
}

// Energy of each column x of the block's rows.
std::vector<double> column_energies(const Tensor& kspace, const std::array<index_t, 3>& n,
                                    const CalibrationArea& area) {
  std::vector<double> energies(static_cast<std::size_t>(n[2]), 0.0);
  const Sample* data = kspace.data<Sample>();
  for (index_t c = 0; c < kspace.shape(0); ++c) {
    for (index_t z = area.start[0]; z < area.start[0] + area.extent[0]; ++z) {
      for (index_t y = area.start[1]; y < area.start[1] + area.extent[1]; ++y) {
        const Sample* line = data + ((c * n[0] + z) * n[1] + y) * n[2];
        for (index_t x = 0; x < n[2]; ++x) {
          energies[static_cast<std::size_t>(x)] += std::norm(std::complex<double>(line[x]));
        }
      }
    }
  }
  return energies;
}

}  // namespace

CalibrationArea calibration_area(const Tensor& measured, index_t largest) {
  expect_axes(measured, 0, "(y, x) or (z, y, x)");
  const Tensor dense = measured.contiguous();
  const bool* taken = dense.data<bool>();
  const std::array<index_t, 3> n = grid_of(measured.shape(), 0);
  CalibrationArea area;
  for (std::size_t k = 0; k < 3; ++k) area.start[k] = (n[k] - 1) / 2;
  if (!is_full(taken, n, area)) return {area.start, {0, 0, 0}};
  std::array<bool, 3> grows = {true, true, true};
  while (grows[0] || grows[1] || grows[2]) {
    for (std::size_t k = 3; k-- > 0;) {
      if (!grows[k]) continue;
      CalibrationArea next = area;
      ++next.extent[k];
      grows[k] = next.extent[k] <= std::min(n[k], largest);
      if (!grows[k]) continue;
      next.start[k] = (n[k] - next.extent[k]) / 2;
      grows[k] = is_full(taken, n, next);
      if (grows[k]) area = next;
    }
  }
  return area;
}

CalibrationArea calibration_area_of(const Tensor& kspace, index_t largest) {
  expect_axes(kspace, 1, "(coil, y, x) or (coil, z, y, x)");
  const Tensor dense = kspace.contiguous();
  const Sample* data = dense.data<Sample>();
  const Extents grid(kspace.shape().begin() + 1, kspace.shape().end());
  Tensor measured = Tensor::zeros(grid, DType::bool_);
  bool* taken = measured.mutable_data<bool>();
  const index_t points = measured.numel();
  for (index_t c = 0; c < kspace.shape(0); ++c) {
    for (index_t p = 0; p < points; ++p) taken[p] = taken[p] || data[c * points + p] != Sample(0);
  }
  CalibrationArea area = calibration_area(measured, largest);
  if (area.extent[2] == 0) return area;
  const std::array<index_t, 3> n = grid_of(kspace.shape(), 1);
  const std::vector<double> energies = column_energies(dense, n, area);
  const auto energy_at = [&](index_t x) {
    double sum = 0;
    for (index_t i = x; i < x + area.extent[2]; ++i) sum += energies[static_cast<std::size_t>(i)];
    return sum;
  };
  CalibrationArea best = area;
  double most = energy_at(area.start[2]);
  for (index_t x = 0; x + area.extent[2] <= n[2]; ++x) {
    CalibrationArea moved = area;
    moved.start[2] = x;
    // Energies of equal blocks differ by rounding.
    const double energy = energy_at(x);
    if (energy > most * (1 + 1e-9) && is_full(taken, n, moved)) {
      most = energy;
      best = moved;
    }
  }
  return best;
}

Tensor calibration_samples(const Tensor& kspace, const CalibrationArea& area) {
  Tensor samples = kspace;
  const std::size_t axes = kspace.rank() - 1;
  for (std::size_t k = 3 - std::min<std::size_t>(axes, 3); k < 3; ++k) {
    samples = samples.narrow(static_cast<index_t>(1 + k + axes - 3), area.start[k], area.extent[k]);
  }
  return samples;
}

}  // namespace palimpsest
