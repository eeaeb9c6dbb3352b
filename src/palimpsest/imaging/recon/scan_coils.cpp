// SPDX-License-Identifier: Apache-2.0
// Virtual coils of a scan: the data that they are computed from.

#include "palimpsest/imaging/calibration.hpp"
#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/scan_file.hpp"

namespace palimpsest {
namespace {

// Points of the calibration area along an axis; along a trajectory samples within half of it.
constexpr index_t kCalibration = 24;

bool is_in(const CalibrationArea& area, std::size_t axis, index_t i) {
  return i >= area.start[axis] && i < area.start[axis] + area.extent[axis];
}

// All of the grid where nothing is measured in its middle.
CalibrationArea area_of(const Tensor& measured) {
  CalibrationArea area = calibration_area(measured, kCalibration);
  if (area.extent[0] * area.extent[1] * area.extent[2] > 0) return area;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    area.start[axis] = 0;
    area.extent[axis] = measured.shape(static_cast<index_t>(axis));
  }
  return area;
}

}  // namespace

void ScanFile::compress_to(index_t coils) {
  const index_t physical = layout_.n_coils();
  if (coils < 1 || coils > physical) {
    throw ValueError(
        fmt::format("[ScanReconstructionOptions.virtual_coils] got {} virtual coils, expected 1 to "
                    "{}, those of {}",
                    coils, physical, path_));
  }
  mixer_ = std::make_unique<CoilMixer>(physical, coils);
  layout_.grid[0] = coils;
  makes_array_ = true;
  layout_.notes.push_back(
      fmt::format("{} coils compressed to {}{}", physical, coils,
                  options_.prewhiten ? "" : ", without whitening: their noise counts as signal"));
}

SortingBytes ScanFile::finding_bytes(index_t piece_bytes) const {
  if (!mixer_) return {};
  SortingBytes bytes = making_bytes(piece_bytes);
  const Extents& n = layout_.grid;
  if (!layout_.has_trajectory()) bytes.tensors += n[1] * n[2] * n[3] + 8;
  bytes.tensors += byte_count(Extents{physical_coils(), n[3]}, DType::complex64);
  return bytes;
}

void ScanFile::find_virtual_coils(index_t piece_bytes, MemoryLedger& ledger) {
  if (!mixer_ || mixer_->is_ready()) return;
  read_input(path_, [&] {
    const auto charge = ledger.charge(finding_bytes(piece_bytes).others);
    if (layout_.has_trajectory() && raw_) {
      for (index_t slice = 0; slice < layout_.n_slices(); ++slice) {
        read_along(slice, piece_bytes, [&](std::size_t place, const Tensor& line) {
          count_along(line, static_cast<index_t>(place));
        });
      }
    } else if (layout_.has_trajectory()) {
      const Tensor lines = file_.array.select(0, 0).select(1, 0);
      for (index_t i = 0; i < lines.shape(1); ++i) {
        count_along(lines.select(1, i).to(DType::complex64).contiguous(), i);
      }
    } else if (raw_) {
      count_raw_grid(piece_bytes);
    } else {
      count_array_grid();
    }
    mixer_->make();
  });
}

void ScanFile::count_along(const Tensor& line, index_t readout) {
  const Tensor dense = line.contiguous();
  const index_t n = layout_.grid[3], d = layout_.trajectory.shape(2);
  const float* k = layout_.trajectory.data<float>() + readout * n * d;
  for (index_t i = 0; i < n; ++i) {
    double square = 0;
    for (index_t axis = 0; axis < d; ++axis) square += std::pow(double{k[i * d + axis]}, 2);
    if (4 * square > double{kCalibration * kCalibration}) continue;
    mixer_->count(dense.data<Sample>() + i, n, 1);
  }
}

void ScanFile::count_raw_grid(index_t piece_bytes) {
  const index_t n_y = layout_.grid[2], n_x = layout_.grid[3];
  ScratchArray nowhere = ScratchArray::in_memory({1}, DType::complex64);
  for (index_t slice = 0; slice < layout_.n_slices(); ++slice) {
    const CalibrationArea area = area_of(cartesian_layout(*raw_, options_of(slice)).measured);
    SortOptions how = sorting(slice, Place{}, piece_bytes);
    how.coils = 0;
    how.change = [&, before = how.change](const Readout& readout, index_t row, Sample* line) {
      if (before) before(readout, row, line);
      if (!is_in(area, 0, row / n_y) || !is_in(area, 1, row % n_y)) return;
      mixer_->count(line + area.start[2], n_x, area.extent[2]);
    };
    sort_kspace(*raw_, options_of(slice), how, nowhere, 0);
  }
}

void ScanFile::count_array_grid() {
  const CalibrationArea area = area_of(measured_points_of(path_, file_.array.select(0, 0)));
  const auto& [z, y, x] = area.start;
  const auto& [n_z, n_y, n_x] = area.extent;
  for (index_t t = 0; t < file_.array.shape(0); ++t) {
    for (index_t row = 0; row < n_z * n_y; ++row) {
      const Tensor lines = file_.array.select(0, t)
                               .select(1, z + row / n_y)
                               .select(1, y + row % n_y)
                               .narrow(1, x, n_x)
                               .to(DType::complex64)
                               .contiguous();
      mixer_->count(lines.data<Sample>(), n_x, n_x);
    }
  }
  release_pages(file_.array);
}

}  // namespace palimpsest
