// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/recon/pixels.hpp"

#include <fmt/ranges.h>

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/kernels/matrices/blas.hpp"

namespace palimpsest {
namespace {

// Pixels that lie nearer to measured ones than this are these.
constexpr double kSamePlace = 0.01;
// The most pixels that a header may ask for, of each point, and of an axis in any case.
constexpr index_t kMostPerPoint = 16, kAlwaysFine = 1024;

// Frequencies from `first` to `last` - 1 that the image has of those that were measured.
struct Band {
  index_t first, last;
};

Band band_of(const ImageAxis& axis) {
  const index_t first = -(axis.points / 2), last = first + axis.points;
  const double half = static_cast<double>(axis.points) / (2 * axis.spacing);
  constexpr double kRounding = 1e-9;
  const auto lowest = static_cast<index_t>(std::ceil(-half * (1 + kRounding)));
  const auto end = static_cast<index_t>(std::ceil(half * (1 - kRounding)));
  return {std::max(first, lowest), std::max(std::min(last, end), std::max(first, lowest) + 1)};
}

double place_of(const ImageAxis& axis, index_t pixel) {
  return static_cast<double>(pixel - axis.pixels / 2) * axis.spacing;
}

bool is_outside(const ImageAxis& axis, double x) {
  return 2 * std::abs(x) > static_cast<double>(axis.points) * (1 + 1e-9);
}

}  // namespace

void check_pixels(const ScanOptions& options) {
  static constexpr double kMost = 65535;
  const auto check = [](const char* name, const auto& numbers) {
    const bool fits = std::all_of(numbers.begin(), numbers.end(),
                                  [](auto v) { return v > 0 && static_cast<double>(v) <= kMost; });
    if (numbers.empty() || (fits && (numbers.size() == 2 || numbers.size() == 3))) return;
    throw ValueError(fmt::format(
        "[ScanOptions.{}] got {}, expected 2 or 3 numbers above 0, at most {:g}, along x, y and z",
        name, fmt::join(numbers, " x "), kMost));
  };
  check("matrix", options.matrix);
  check("field_of_view_mm", options.field_of_view_mm);
}

index_t asked_pixels(const ScanOptions& options, std::size_t axis) {
  return axis < options.matrix.size() ? options.matrix[axis] : 0;
}

double image_field_mm(const RawScanHeader& header, const ScanOptions& options, std::size_t axis) {
  if (axis < options.field_of_view_mm.size()) return options.field_of_view_mm[axis];
  if (header.recon.field_of_view_mm[axis] > 0) return header.recon.field_of_view_mm[axis];
  return std::max(header.encoded.field_of_view_mm[axis], 0.0);
}

ImageAxis image_axis(const RawScanHeader& header, const ScanOptions& options, std::size_t axis,
                     index_t points) {
  if (points == 1) return {};
  const double encoded = header.encoded.field_of_view_mm[axis];
  const double wanted = image_field_mm(header, options, axis);
  const index_t asked = asked_pixels(options, axis);
  const index_t matrix = asked > 0 ? asked : options.encoded_pixels ? 0 : header.recon.matrix[axis];
  ImageAxis result{points, points, 1};
  if (!(encoded > 0 && wanted > 0)) {
    // The number of pixels is all that is known.
    if (matrix > 0) result.pixels = std::min(matrix, points);
    return result;
  }
  const double extent = wanted / encoded * static_cast<double>(points);
  const double most = std::max(static_cast<double>(points) * kMostPerPoint, double{kAlwaysFine});
  const double pixels = matrix > 0 ? static_cast<double>(matrix) : std::round(extent);
  if (!(pixels <= most && extent <= most)) {
    throw FormatError(
        fmt::format("[scan] the image has {:g} pixels along {}, over {:g} mm of {:g} mm with {} "
                    "points: expected at most {:g}. Try ScanOptions.encoded_pixels and "
                    "ScanOptions.field_of_view_mm",
                    pixels, "xyz"[axis], wanted, encoded, points, most));
  }
  result.pixels = std::max<index_t>(static_cast<index_t>(pixels), 1);
  if (matrix > 0) result.spacing = extent / pixels;
  const double shift = std::abs(result.spacing - 1) * static_cast<double>(result.pixels) / 2;
  if (shift < kSamePlace) result.spacing = 1;
  return result;
}

// A row of a matrix for each pixel of the axis: fill(x, row) for pixels inside the field of view.
template <class Fill>
Tensor rows_of_pixels(const ImageAxis& axis, Fill fill) {
  Tensor matrix = Tensor::zeros({axis.pixels, axis.points}, DType::complex64);
  auto* const rows = matrix.mutable_data<Sample>();
  for (index_t i = 0; i < axis.pixels; ++i) {
    const double x = place_of(axis, i);
    if (!is_outside(axis, x)) fill(x, rows + i * axis.points);
  }
  return matrix;
}

Tensor pixels_of_image(const ImageAxis& axis) {
  const Band band = band_of(axis);
  const auto n = static_cast<double>(axis.points);
  const auto width = static_cast<double>(band.last - band.first);
  const auto ends = static_cast<double>(band.first + band.last - 1);
  return rows_of_pixels(axis, [&](double x, Sample* row) {
    for (index_t j = 0; j < axis.points; ++j) {
      // The sum of exp(2 pi i k t) over the band.
      const double t = (x - static_cast<double>(j - axis.points / 2)) / n;
      const double away = t - std::round(t);
      const double size = std::abs(away) < 1e-12 ? width
                                                 : std::sin(std::numbers::pi * width * away) /
                                                       std::sin(std::numbers::pi * away);
      row[j] = Sample(std::polar(1.0, std::numbers::pi * ends * away) * size / n);
    }
  });
}

Tensor pixels_of_kspace(const ImageAxis& axis) {
  const Band band = band_of(axis);
  const auto n = static_cast<double>(axis.points);
  return rows_of_pixels(axis, [&](double x, Sample* row) {
    for (index_t k = band.first; k < band.last; ++k) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(k) * x / n;
      row[k + axis.points / 2] = Sample(std::polar(1 / std::sqrt(n), angle));
    }
  });
}

// -- several axes --------------------------------------------------------------------------------

PixelTaker::PixelTaker(const Extents& given, std::span<const ImageAxis> axes)
    : given_(given), axes_(axes.begin(), axes.end()) {}

Extents PixelTaker::shape() const {
  Extents result = given_;
  for (std::size_t k = 0; k < axes_.size(); ++k) result[axis_of(k)] = axes_[k].pixels;
  return result;
}

namespace {

index_t bytes_of(const Extents& shape) { return byte_count(shape, DType::complex64); }

// Products of the matrix with the lines along an axis of a dense array.
Tensor along(const Tensor& image, std::size_t axis, const Tensor& matrix) {
  Extents shape = image.shape();
  index_t outer = 1, inner = 1;
  for (std::size_t k = 0; k < axis; ++k) outer *= shape[k];
  for (std::size_t k = axis + 1; k < shape.size(); ++k) inner *= shape[k];
  const index_t n = shape[axis], m = matrix.shape(0);
  shape[axis] = m;
  Tensor result = Tensor::empty(shape, DType::complex64);
  const auto* from = image.data<Sample>();
  auto* to = result.mutable_data<Sample>();
  const void* const factors = matrix.raw_data();
  if (inner == 1) {
    gemm(DType::complex64, outer, m, n, {from, n}, {factors, n, true}, to, m);
    return result;
  }
  for (index_t k = 0; k < outer; ++k) {
    gemm(DType::complex64, m, inner, n, {factors, n}, {from + k * n * inner, inner},
         to + k * m * inner, inner);
  }
  return result;
}

}  // namespace

index_t PixelTaker::peak_bytes() const {
  Extents now = given_;
  for (std::size_t k = 0; k < axes_.size(); ++k) {
    if (!axes_[k].is_resampled()) now[axis_of(k)] = axes_[k].pixels;
  }
  index_t held = bytes_of(now), most = 0;
  for (std::size_t k = 0; k < axes_.size(); ++k) {
    if (!axes_[k].is_resampled()) continue;
    if (most == 0 && now != given_) most = bytes_of(given_) + held;
    now[axis_of(k)] = axes_[k].pixels;
    const index_t matrix = bytes_of({axes_[k].pixels, axes_[k].points});
    most = std::max(most, held + matrix + bytes_of(now));
    held = bytes_of(now);
  }
  return most;
}

Tensor PixelTaker::take(Tensor image) const {
  for (std::size_t k = 0; k < axes_.size(); ++k) {
    const ImageAxis& axis = axes_[k];
    if (axis.is_resampled()) continue;
    image = image.narrow(static_cast<index_t>(axis_of(k)), axis.points / 2 - axis.pixels / 2,
                         axis.pixels);
  }
  for (std::size_t k = 0; k < axes_.size(); ++k) {
    if (!axes_[k].is_resampled()) continue;
    image = image.contiguous();
    image = along(image, axis_of(k), pixels_of_image(axes_[k]));
  }
  return image;
}

}  // namespace palimpsest
