// SPDX-License-Identifier: Apache-2.0
// Raw scans of a test, readout by readout, and of objects in millimetres.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "palimpsest/io/ismrmrd.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest::cli {

inline RawScan empty_scan(RawScanHeader header) {
  RawScan scan;
  scan.header = std::move(header);
  return scan;
}

inline Tensor joined(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b.clone();
  Tensor both = Tensor::empty({a.numel() + b.numel()}, a.dtype());
  both.narrow(0, 0, a.numel()).copy_from(a);
  both.narrow(0, a.numel(), b.numel()).copy_from(b);
  return both;
}

/// Appends a readout (coil, sample), with coordinates (sample, axis).
inline void append(RawScan& scan, Readout readout, const Tensor& samples,
                   const Tensor& coordinates = {}) {
  readout.n_coils = samples.shape(0);
  readout.n_samples = samples.shape(1);
  readout.sample_time_us = 4;
  readout.center_sample =
      readout.has(ReadoutFlag::reverse) ? (readout.n_samples - 1) / 2 : readout.n_samples / 2;
  readout.first_sample = scan.samples.defined() ? scan.samples.numel() : 0;
  scan.samples = joined(scan.samples, samples.contiguous().view({samples.numel()}));
  if (coordinates.defined()) {
    readout.n_trajectory_axes = coordinates.shape(1);
    readout.first_coordinate = scan.trajectory.defined() ? scan.trajectory.numel() : 0;
    scan.trajectory = joined(scan.trajectory, coordinates.contiguous().view({coordinates.numel()}));
  }
  scan.readouts.push_back(readout);
}

/// Appends every `step`-th line of k-space (coil, y, x) from `first` on, up to `last`; -1: all.
inline void append_lines(RawScan& scan, const Tensor& k, index_t first, index_t step,
                         Readout readout, index_t last = -1) {
  for (index_t y = first; y < (last < 0 ? k.shape(1) : last); y += step) {
    readout.step_1 = y;
    append(scan, readout, k.select(1, y));
  }
}

/// A head of ellipses in millimetres, with something beside it, seen by coils.
struct MillimetreObject {
  static constexpr index_t kCoils = 5;
  /// Shifts the head.
  double x = 0, y = 0;
  /// Something outside of the middle 200 mm.
  bool is_wide_x = false, is_wide_y = false;

  double at(double mm_x, double mm_y) const {
    const auto inside = [&](double cx, double cy, double rx, double ry) {
      return std::pow((mm_x - cx) / rx, 2) + std::pow((mm_y - cy) / ry, 2) < 1;
    };
    double value = 0;
    if (inside(x, y, 70, 85)) value += 1;
    if (inside(x - 20, y + 10, 20, 35)) value -= 0.4;
    if (inside(x + 30, y + 30, 12, 12)) value += 0.5;
    if (is_wide_x && inside(155, 10, 25, 40)) value += 1;
    if (is_wide_y && inside(-10, 128, 40, 16)) value += 1;
    return value;
  }
  static std::complex<double> coil(index_t c, double mm_x, double mm_y) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(c) / kCoils;
    const double dx = mm_x - 160 * std::cos(angle), dy = mm_y - 160 * std::sin(angle);
    return std::polar(1 / (1 + (dx * dx + dy * dy) / 25000), angle + mm_x / 150 - mm_y / 200);
  }
};

/// Extents and field of view of a grid along x and y.
struct Grid2 {
  index_t nx, ny;
  double width, height;
};

/// k-space (coil, y, x) on a grid, complex64, unitary for it: by sums over points of 2 mm.
inline Tensor kspace_of(const MillimetreObject& object, const Grid2& grid) {
  using Number = std::complex<double>;
  constexpr index_t kPoints = 200;
  constexpr double kStep = 2;
  const auto place = [](index_t i) { return kStep * static_cast<double>(i - kPoints / 2); };
  const auto kernel = [&](index_t n, double field) {
    std::vector<Number> e;
    for (index_t k = 0; k < n; ++k) {
      for (index_t i = 0; i < kPoints; ++i) {
        const double turns = static_cast<double>(k - n / 2) * place(i) / field;
        e.push_back(std::polar(1.0, -2 * std::numbers::pi * turns));
      }
    }
    return e;
  };
  const auto ex = kernel(grid.nx, grid.width), ey = kernel(grid.ny, grid.height);
  // The unit of an image whose pixels have the mean value of the object.
  const double unit = kStep * kStep * std::sqrt(static_cast<double>(grid.nx * grid.ny)) /
                      (grid.width * grid.height);
  Tensor result = Tensor::empty({MillimetreObject::kCoils, grid.ny, grid.nx}, DType::complex64);
  auto* to = result.mutable_data<std::complex<float>>();
  std::vector<Number> rows(static_cast<std::size_t>(kPoints * grid.nx));
  for (index_t c = 0; c < MillimetreObject::kCoils; ++c) {
    std::fill(rows.begin(), rows.end(), Number(0));
    for (index_t y = 0; y < kPoints; ++y) {
      for (index_t x = 0; x < kPoints; ++x) {
        const double value = object.at(place(x), place(y));
        if (value == 0) continue;
        const Number seen = value * MillimetreObject::coil(c, place(x), place(y));
        for (index_t k = 0; k < grid.nx; ++k) {
          rows[static_cast<std::size_t>(y * grid.nx + k)] +=
              seen * ex[static_cast<std::size_t>(k * kPoints + x)];
        }
      }
    }
    for (index_t m = 0; m < grid.ny; ++m) {
      for (index_t k = 0; k < grid.nx; ++k) {
        Number sum = 0;
        for (index_t y = 0; y < kPoints; ++y) {
          sum += ey[static_cast<std::size_t>(m * kPoints + y)] *
                 rows[static_cast<std::size_t>(y * grid.nx + k)];
        }
        *to++ = std::complex<float>(unit * sum);
      }
    }
  }
  return result;
}

/// float32 (y, x): the object's mean over each pixel.
inline Tensor pixels_of(const MillimetreObject& object, const Grid2& grid) {
  constexpr index_t kParts = 8;
  Tensor result = Tensor::empty({grid.ny, grid.nx}, DType::float32);
  auto* to = result.mutable_data<float>();
  const double dx = grid.width / static_cast<double>(grid.nx),
               dy = grid.height / static_cast<double>(grid.ny);
  for (index_t y = 0; y < grid.ny; ++y) {
    for (index_t x = 0; x < grid.nx; ++x) {
      double sum = 0;
      for (index_t i = 0; i < kParts * kParts; ++i) {
        const double part_x = (static_cast<double>(i % kParts) + 0.5) / kParts - 0.5,
                     part_y = (static_cast<double>(i / kParts) + 0.5) / kParts - 0.5;
        sum += object.at((static_cast<double>(x - grid.nx / 2) + part_x) * dx,
                         (static_cast<double>(y - grid.ny / 2) + part_y) * dy);
      }
      *to++ = static_cast<float>(sum / (kParts * kParts));
    }
  }
  return result;
}

/// The header of a plane with these grids.
inline RawScanHeader header_of(const Grid2& encoded, const Grid2& image, double thickness = 5) {
  RawScanHeader header;
  header.n_coils = MillimetreObject::kCoils;
  header.encoded.matrix = {encoded.nx, encoded.ny, 1};
  header.recon.matrix = {image.nx, image.ny, 1};
  header.encoded.field_of_view_mm = {encoded.width, encoded.height, thickness};
  header.recon.field_of_view_mm = {image.width, image.height, thickness};
  header.step_1_limit = EncodingLimit{0, encoded.ny - 1, encoded.ny / 2};
  return header;
}

}  // namespace palimpsest::cli
