// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/phantom.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>

#include "palimpsest/base/error.hpp"

namespace palimpsest {
namespace {

constexpr int kLinesPerPixel = 16;

constexpr std::array<Ellipse, 10> kSheppLogan = {{
    {1.0, 0.69, 0.92, 0, 0, 0},
    {-0.8, 0.6624, 0.8740, 0, -0.0184, 0},
    {-0.2, 0.11, 0.31, 0.22, 0, -18},
    {-0.2, 0.16, 0.41, -0.22, 0, 18},
    {0.1, 0.21, 0.25, 0, 0.35, 0},
    {0.1, 0.046, 0.046, 0, 0.1, 0},
    {0.1, 0.046, 0.046, 0, -0.1, 0},
    {0.1, 0.046, 0.023, -0.08, -0.605, 0},
    {0.1, 0.023, 0.023, 0, -0.606, 0},
    {0.1, 0.023, 0.046, 0.06, -0.605, 0},
}};

// The x at which the line at height y enters and leaves the ellipse; empty when it misses it.
struct Chord {
  double low = 0, high = 0;
};
Chord chord(const Ellipse& e, double y) {
  const double angle = e.angle_degrees * std::numbers::pi / 180;
  const double c = std::cos(angle), s = std::sin(angle), v = y - e.center_y;
  const double aa = e.semi_axis_x * e.semi_axis_x, bb = e.semi_axis_y * e.semi_axis_y;
  // (c u + s v)^2 / aa + (c v - s u)^2 / bb = 1, a quadratic in u = x - center_x.
  const double p = c * c / aa + s * s / bb;
  const double q = c * s * v * (1 / aa - 1 / bb);
  const double r = v * v * (s * s / aa + c * c / bb) - 1;
  const double discriminant = q * q - p * r;
  if (discriminant <= 0) return {};
  const double half = std::sqrt(discriminant) / p;
  return {e.center_x - q / p - half, e.center_x - q / p + half};
}

// Adds `value` times the covered part of every pixel of one line of nx pixels over [-1, 1].
void add_chord(Chord c, double value, index_t nx, double* line) {
  const double low = (c.low + 1) / 2 * static_cast<double>(nx);
  const double high = (c.high + 1) / 2 * static_cast<double>(nx);
  const auto first = std::max<index_t>(0, static_cast<index_t>(std::floor(low)));
  const auto last = std::min<index_t>(nx - 1, static_cast<index_t>(std::floor(high)));
  for (index_t x = first; x <= last; ++x) {
    const double left = static_cast<double>(x);
    const double covered = std::min(high, left + 1) - std::max(low, left);
    if (covered > 0) line[x] += value * covered;
  }
}

}  // namespace

std::span<const Ellipse> modified_shepp_logan() { return kSheppLogan; }

Tensor ellipse_image(std::span<const Ellipse> ellipses, index_t ny, index_t nx) {
  if (ny < 1 || nx < 1) {
    throw ValueError("[phantom] the size is empty: got " + to_string(Extents{ny, nx}) +
                     ", expected at least one pixel along each axis");
  }
  Tensor image = Tensor::zeros({ny, nx}, DType::float32);
  float* out = image.mutable_data<float>();
  std::vector<double> line(static_cast<std::size_t>(nx));
  for (index_t row = 0; row < ny; ++row) {
    std::fill(line.begin(), line.end(), 0.0);
    for (int k = 0; k < kLinesPerPixel; ++k) {
      const double depth = static_cast<double>(row) + (k + 0.5) / kLinesPerPixel;
      const double y = 1 - 2 * depth / static_cast<double>(ny);
      for (const Ellipse& e : ellipses) {
        const Chord c = chord(e, y);
        if (c.low < c.high) add_chord(c, e.value / kLinesPerPixel, nx, line.data());
      }
    }
    std::copy(line.begin(), line.end(), out + row * nx);
  }
  return image;
}

}  // namespace palimpsest
