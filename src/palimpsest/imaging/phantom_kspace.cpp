// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <complex>
#include <numbers>

#include "palimpsest/base/error.hpp"
#include "palimpsest/imaging/phantom.hpp"

namespace palimpsest {
namespace {

using Complex = std::complex<double>;

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
  for (index_t i = 0; i < result.numel(); ++i) {
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
