// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/calibration.hpp"

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/value_checks.hpp"
#include "palimpsest/linop/transforms/nufft.hpp"
#include "palimpsest/memory/file_pages.hpp"
#include "palimpsest/solve/least_squares.hpp"
#include "palimpsest/solve/spectrum.hpp"

namespace palimpsest {
namespace {

// A grid with its three axes, 1 for those that are missing.
std::array<index_t, 3> grid_behind(const Extents& shape, std::size_t leading) {
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
  const std::array<index_t, 3> n = grid_behind(measured.shape(), 0);
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
  // Mapped pages are released piece by piece.
  constexpr index_t kPiece = index_t{1} << 17;
  for (index_t c = 0; c < kspace.shape(0); ++c) {
    const Sample* coil = data + c * points;
    for (index_t begin = 0; begin < points; begin += kPiece) {
      const index_t end = std::min(begin + kPiece, points);
      for (index_t p = begin; p < end; ++p) taken[p] = taken[p] || coil[p] != Sample(0);
      release_file_pages(coil + begin, static_cast<std::size_t>(end - begin) * sizeof(Sample));
    }
  }
  CalibrationArea area = calibration_area(measured, largest);
  if (area.extent[2] == 0) return area;
  const std::array<index_t, 3> n = grid_behind(kspace.shape(), 1);
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

Tensor calibration_from(const Tensor& kspace, const Tensor& trajectory, index_t size) {
  const index_t d = trajectory.rank() > 0 ? trajectory.shape(-1) : 0;
  const bool fits = kspace.rank() == 3 && trajectory.rank() == 3 && (d == 2 || d == 3) &&
                    kspace.shape(1) == trajectory.shape(0) &&
                    kspace.shape(2) == trajectory.shape(1) && kspace.shape(0) > 0 &&
                    kspace.dtype() == DType::complex64 && trajectory.dtype() == DType::float32;
  if (!fits) {
    throw ShapeError(fmt::format(
        "[calibration_from] got k-space {} {} and trajectory {} {}, expected complex64 (coil, "
        "readout, sample) and float32 (readout, sample, 2 or 3)",
        name_of(kspace.dtype()), to_string(kspace.shape()), name_of(trajectory.dtype()),
        to_string(trajectory.shape())));
  }
  if (size < 2) {
    throw ValueError(fmt::format("[calibration_from] size: got {}, expected at least 2", size));
  }
  expect_finite("calibration_from", "k-space", kspace);
  expect_finite("calibration_from", "the trajectory", trajectory);
  const std::vector<float> k = trajectory.to_vector<float>();
  const index_t points = kspace.shape(1) * kspace.shape(2), coils = kspace.shape(0);
  std::vector<index_t> taken;
  std::vector<float> locs;
  for (index_t p = 0; p < points; ++p) {
    const float* at = k.data() + p * d;
    double norm2 = 0;
    for (index_t a = 0; a < d; ++a)
      norm2 += static_cast<double>(at[a]) * static_cast<double>(at[a]);
    if (!(4 * norm2 <= static_cast<double>(size * size))) continue;
    taken.push_back(p);
    for (index_t a = d; a-- > 0;) locs.push_back(at[a]);  // as the axes of the grid
  }
  if (std::ssize(taken) < size) {
    throw ValueError(fmt::format(
        "[calibration_from] too few samples in the middle of k-space: got {} with |k| <= {}, "
        "expected at least {}",
        taken.size(), static_cast<double>(size) / 2, size));
  }
  const auto n = std::ssize(taken);
  const Extents grid(static_cast<std::size_t>(d), size);
  const NamedLinop A = Nufft(Tensor::from(locs, Extents{n, d}), grid, "K", {.eps = 1e-4});
  const double norm2 = operator_norm2(A, {DType::complex64, grid, {}}).value;
  const NamedLinop F = Fft(static_cast<int>(d), {.centered = true});
  const Tensor dense = kspace.contiguous();
  Extents shape = grid;
  shape.insert(0, coils);
  Tensor result = Tensor::empty(shape, DType::complex64);
  std::vector<Sample> y(taken.size());
  for (index_t c = 0; c < coils; ++c) {
    const Sample* data = dense.data<Sample>() + c * points;
    std::transform(taken.begin(), taken.end(), y.begin(), [&](index_t p) { return data[p]; });
    const SolveResult x =
        cgls(A, Tensor::from(y),
             {.damp = std::sqrt(1e-3 * norm2), .tolerance = 0, .max_iterations = 20});
    result.select(0, c).copy_from(F(x.x));
  }
  return result;
}

}  // namespace palimpsest
