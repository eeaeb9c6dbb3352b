// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/phantom.hpp"

#include <array>

#include "palimpsest/imaging/prelude.hpp"

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

// -- k-space -----------------------------------------------------------------------------------
namespace {

// The integral of exp(-i (u x + v y)) over an ellipse: a disc's, 2 pi J1(r) / r, stretched.
Complex transform_of(const Ellipse& e, double u, double v) {
  const double angle = e.angle_degrees * std::numbers::pi / 180;
  const double c = std::cos(angle), s = std::sin(angle);
  const double r = std::hypot(e.semi_axis_x * (c * u + s * v), e.semi_axis_y * (c * v - s * u));
  const double disc = r > 1e-8 ? 2 * ::j1(r) / r : 1.0;
  return e.value * std::numbers::pi * e.semi_axis_x * e.semi_axis_y * disc *
         std::polar(1.0, -(u * e.center_x + v * e.center_y));
}

// Places of the middle of a pixel against that of the field of view, in half fields of view.
double offset_of(index_t n) { return n % 2 == 0 ? 1 / static_cast<double>(n) : 0.0; }

class Sampler {
 public:
  Sampler(std::span<const Ellipse> ellipses, index_t ny, index_t nx)
      : ellipses_(ellipses), at_y_(offset_of(ny)), at_x_(offset_of(nx)) {
    if (ny < 1 || nx < 1) {
      throw ValueError("[phantom] the size is empty: got " + to_string(Extents{ny, nx}) +
                       ", expected at least one pixel along each axis");
    }
    scale_ = std::sqrt(static_cast<double>(ny) * static_cast<double>(nx)) / 4;
  }

  std::complex<float> operator()(double kx, double ky) const {
    const double pi = std::numbers::pi;
    Complex sum = 0;
    // Rows run downwards, y upwards.
    for (const Ellipse& e : ellipses_) sum += transform_of(e, pi * kx, -pi * ky);
    return std::complex<float>(scale_ * sum * std::polar(1.0, pi * (kx * at_x_ + ky * at_y_)));
  }

 private:
  std::span<const Ellipse> ellipses_;
  double at_y_, at_x_, scale_ = 1;
};

}  // namespace

Tensor ellipse_kspace(std::span<const Ellipse> ellipses, const Tensor& trajectory, index_t ny,
                      index_t nx) {
  const Sampler sample(ellipses, ny, nx);
  if (trajectory.rank() != 3 || trajectory.shape(2) != 2) {
    throw ShapeError("[phantom] got a trajectory of the shape " + to_string(trajectory.shape()) +
                     ", expected (readouts, samples, 2)");
  }
  const Tensor k = trajectory.to(DType::float32).contiguous();
  Tensor result = Tensor::empty({k.shape(0), k.shape(1)}, DType::complex64);
  auto* out = result.mutable_data<std::complex<float>>();
  const float* at = k.data<float>();
  for (index_t i = 0, end = result.numel(); i < end; ++i) {
    out[i] = sample(double{at[2 * i]}, double{at[2 * i + 1]});
  }
  return result;
}

Tensor ellipse_kspace(std::span<const Ellipse> ellipses, index_t ny, index_t nx) {
  const Sampler sample(ellipses, ny, nx);
  Tensor result = Tensor::empty({ny, nx}, DType::complex64);
  auto* out = result.mutable_data<std::complex<float>>();
  for (index_t y = 0; y < ny; ++y) {
    for (index_t x = 0; x < nx; ++x) {
      out[y * nx + x] = sample(double(x - nx / 2), double(y - ny / 2));
    }
  }
  return result;
}

}  // namespace palimpsest
