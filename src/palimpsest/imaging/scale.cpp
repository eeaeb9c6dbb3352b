// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/scale.hpp"

#include <array>
#include <span>

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/value_checks.hpp"

namespace palimpsest {
namespace {

constexpr index_t kLargestArea = 32;

void expect_coils(const char* who, const Tensor& coils, std::size_t least_rank) {
  if (coils.dtype() != DType::complex64) {
    throw DTypeError(fmt::format("[{}] got {}, expected complex64", who, name_of(coils.dtype())));
  }
  if (coils.rank() >= least_rank && coils.numel() > 0) return;
  throw ShapeError(fmt::format("[{}] got the shape {}, expected (C, ..) without empty axes", who,
                               to_string(coils.shape())));
}

// The middle of the area, at most 32 points along an axis.
CalibrationArea middle_of(CalibrationArea area) {
  for (std::size_t k = 0; k < 3; ++k) {
    const index_t n = std::min(area.extent[k], kLargestArea);
    area.start[k] += (area.extent[k] - n) / 2;
    area.extent[k] = n;
  }
  return area;
}

index_t points_of(const CalibrationArea& area) {
  return area.extent[0] * area.extent[1] * area.extent[2];
}

// exp(2 pi i j k / n) / sqrt(n). An origin other than 0 is a phase, which magnitudes do not see.
std::vector<Complex> inverse_matrix(index_t n) {
  std::vector<Complex> matrix;
  for (index_t jk = 0; jk < n * n; ++jk) {
    const auto turns = static_cast<double>((jk / n) * (jk % n) % n) / static_cast<double>(n);
    matrix.push_back(
        std::polar(1 / std::sqrt(static_cast<double>(n)), 2 * std::numbers::pi * turns));
  }
  return matrix;
}

void transform_axis(const std::array<index_t, 3>& extent, std::size_t axis,
                    std::vector<Complex>& now, std::vector<Complex>& next) {
  const index_t n = extent[axis];
  if (n == 1) return;
  index_t after = 1;
  for (std::size_t k = axis + 1; k < 3; ++k) after *= extent[k];
  const std::vector<Complex> matrix = inverse_matrix(n);
  std::fill(next.begin(), next.end(), Complex(0));
  for (index_t base = 0; base < std::ssize(now); base += n * after) {
    for (index_t j = 0; j < n; ++j) {
      for (index_t k = 0; k < n; ++k) {
        const Complex turn = matrix[static_cast<std::size_t>(j * n + k)];
        const Complex* from = now.data() + base + k * after;
        Complex* to = next.data() + base + j * after;
        for (index_t a = 0; a < after; ++a) to[a] += turn * from[a];
      }
    }
  }
  now.swap(next);
}

// m is sorted.
template <class T>
Brightness statistics(std::span<T> m, double factor) {
  std::sort(m.begin(), m.end());
  const auto n = m.size();
  const auto at_p90 = static_cast<std::size_t>(0.9 * static_cast<double>(n));
  return {factor * static_cast<double>(m[n / 2]), factor * static_cast<double>(m[at_p90]),
          factor * static_cast<double>(m.back())};
}

}  // namespace

double Brightness::scale() const {
  const double s = largest - p90 < 2 * (p90 - median) ? p90 : largest;
  return s > 0 && std::isfinite(s) ? s : 1;
}

Tensor rss_image(const Tensor& coil_images) {
  expect_coils("rss_image", coil_images, 1);
  const Tensor dense = coil_images.contiguous();
  Extents shape(dense.shape().begin() + 1, dense.shape().end());
  Tensor image = Tensor::empty(shape, DType::float32);
  const index_t points = image.numel(), coils = dense.shape(0);
  const Sample* data = dense.data<Sample>();
  auto* out = image.mutable_data<float>();
  for (index_t p = 0; p < points; ++p) {
    double sum = 0;
    for (index_t c = 0; c < coils; ++c) sum += std::norm(Complex(data[c * points + p]));
    out[p] = static_cast<float>(std::sqrt(sum));
  }
  return image;
}

Brightness brightness(const Tensor& coil_images) {
  expect_coils("brightness", coil_images, 1);
  std::vector<float> m = rss_image(coil_images).to_vector<float>();
  return statistics(std::span(m), 1);
}

Brightness brightness_of_magnitudes(Tensor& magnitudes) {
  if (magnitudes.dtype() != DType::float32) {
    throw DTypeError(fmt::format("[brightness_of_magnitudes] got {}, expected float32",
                                 name_of(magnitudes.dtype())));
  }
  if (magnitudes.numel() == 0 || !magnitudes.is_contiguous()) {
    throw ShapeError(fmt::format(
        "[brightness_of_magnitudes] got the shape {}, expected a dense array that is not empty",
        to_string(magnitudes.shape())));
  }
  const auto n = static_cast<std::size_t>(magnitudes.numel());
  return statistics(std::span(magnitudes.mutable_data<float>(), n), 1);
}

CalibrationArea brightness_area(const Tensor& kspace) {
  return calibration_area_of(kspace, kLargestArea);
}

Brightness brightness_of(const Tensor& kspace, const CalibrationArea& area) {
  expect_coils("brightness", kspace, 3);
  const CalibrationArea block = middle_of(area);
  const auto points = static_cast<std::size_t>(points_of(block));
  if (points == 0) {
    throw ValueError("[brightness] the calibration area is empty: expected a point at least");
  }
  const Tensor samples = calibration_samples(kspace, block);
  expect_finite("brightness", "k-space", samples);
  std::vector<double> sums(points);
  std::vector<Complex> now(points), next(points);
  for (index_t c = 0; c < samples.shape(0); ++c) {
    Tensor coil = samples.select(0, c);
    if (coil.rank() == 2) coil = coil.unsqueeze(0);
    auto* to = now.data();
    for (index_t z = 0; z < coil.shape(0); ++z) {
      for (index_t y = 0; y < coil.shape(1); ++y) {
        const Sample* line = coil.data<Sample>() + z * coil.strides()[0] + y * coil.strides()[1];
        for (index_t x = 0; x < coil.shape(2); ++x) *to++ = Complex(line[x * coil.strides()[2]]);
      }
    }
    for (std::size_t axis = 0; axis < 3; ++axis) transform_axis(block.extent, axis, now, next);
    for (std::size_t p = 0; p < points; ++p) sums[p] += std::norm(now[p]);
  }
  for (double& sum : sums) sum = std::sqrt(sum);
  const auto grid = static_cast<double>(kspace.numel() / kspace.shape(0));
  return statistics(std::span(sums), std::sqrt(static_cast<double>(points) / grid));
}

index_t brightness_bytes(const CalibrationArea& area) {
  const CalibrationArea block = middle_of(area);
  const index_t n = *std::max_element(block.extent.begin(), block.extent.end());
  return points_of(block) * 40 + n * n * 16;
}

}  // namespace palimpsest
