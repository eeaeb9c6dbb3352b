// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/quality/metrics.hpp"

#include <array>

#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/results/image.hpp"

namespace palimpsest {
namespace {

constexpr double kOfPercentile = 0.05, kPercentile = 0.99;
constexpr index_t kReach = 5;
constexpr double kSigma = 1.5, kK1 = 0.01, kK2 = 0.03;

void check_shapes(const Tensor& reference, const Tensor& image) {
  if (reference.shape() != image.shape()) {
    throw ShapeError(
        fmt::format("[compare] the images differ in shape: got {}, expected {} like the reference. "
                    "Try images of one scan",
                    to_string(image.shape()), to_string(reference.shape())));
  }
  if (reference.rank() < 2) {
    throw ShapeError(fmt::format("[compare] got the shape {}, expected images (.., y, x)",
                                 to_string(reference.shape())));
  }
}

// The values to compare, dense complex64: of magnitudes the imaginary part is 0.
Tensor values_of(const Tensor& x, bool complex) {
  return (complex ? x : magnitude(x)).to(DType::complex64).contiguous();
}

Tensor mask_of(const Tensor& reference, const QualityOptions& options) {
  if (!options.mask) return quality_mask(reference);
  const Tensor& mask = *options.mask;
  if (mask.dtype() != DType::bool_) {
    throw DTypeError(fmt::format("[mask] got {}, expected bool", name_of(mask.dtype())));
  }
  if (mask.shape() != reference.shape()) {
    throw ShapeError(fmt::format("[mask] got the shape {}, expected {} like the reference",
                                 to_string(mask.shape()), to_string(reference.shape())));
  }
  return mask.contiguous();
}

std::array<double, 2 * kReach + 1> gaussian() {
  std::array<double, 2 * kReach + 1> weights{};
  double sum = 0;
  for (index_t i = -kReach; i <= kReach; ++i) {
    const double u = static_cast<double>(i) / kSigma;
    sum += weights[static_cast<std::size_t>(i + kReach)] = std::exp(-u * u / 2);
  }
  for (double& w : weights) w /= sum;
  return weights;
}

// The index that reflection at the borders (between points) leads to.
index_t reflected(index_t i, index_t n) {
  i = ((i % (2 * n)) + 2 * n) % (2 * n);
  return i < n ? i : 2 * n - 1 - i;
}

// Smooths a plane in place along both axes.
void smooth(double* plane, index_t ny, index_t nx) {
  const auto weights = gaussian();
  std::vector<double> line(static_cast<std::size_t>(std::max(ny, nx)));
  const auto along = [&](double* first, index_t n, index_t step) {
    for (index_t i = 0; i < n; ++i) line[static_cast<std::size_t>(i)] = first[i * step];
    for (index_t i = 0; i < n; ++i) {
      double sum = 0;
      for (index_t u = -kReach; u <= kReach; ++u) {
        sum += weights[static_cast<std::size_t>(u + kReach)] *
               line[static_cast<std::size_t>(reflected(i + u, n))];
      }
      first[i * step] = sum;
    }
  };
  for (index_t y = 0; y < ny; ++y) along(plane + y * nx, nx, 1);
  for (index_t x = 0; x < nx; ++x) along(plane + x, ny, nx);
}

void ssim_of_plane(const float* r, const float* x, index_t ny, index_t nx, double range,
                   double* work, float* result) {
  const index_t n = ny * nx;
  double *mr = work, *mx = mr + n, *rr = mx + n, *xx = rr + n, *rx = xx + n;
  for (index_t i = 0; i < n; ++i) {
    const double a = double{r[i]}, b = double{x[i]};
    mr[i] = a, mx[i] = b, rr[i] = a * a, xx[i] = b * b, rx[i] = a * b;
  }
  for (double* field : {mr, mx, rr, xx, rx}) smooth(field, ny, nx);
  const double c1 = kK1 * range * kK1 * range, c2 = kK2 * range * kK2 * range;
  for (index_t i = 0; i < n; ++i) {
    const double vr = rr[i] - mr[i] * mr[i], vx = xx[i] - mx[i] * mx[i];
    const double vrx = rx[i] - mr[i] * mx[i];
    result[i] = static_cast<float>((2 * mr[i] * mx[i] + c1) * (2 * vrx + c2) /
                                   ((mr[i] * mr[i] + mx[i] * mx[i] + c1) * (vr + vx + c2)));
  }
}

double largest_of(const Tensor& x) { return quantile(x, 1); }

[[noreturn]] void fail_zero() {
  throw ValueError("[compare] the reference is 0 everywhere. Try another image");
}

}  // namespace

Tensor quality_mask(const Tensor& reference) {
  const Tensor m = magnitude(reference);
  const auto bound = static_cast<float>(kOfPercentile * quantile(m, kPercentile));
  if (!(largest_of(m) > 0)) fail_zero();
  return m > bound;
}

Tensor ssim_map(const Tensor& reference, const Tensor& image) {
  check_shapes(reference, image);
  const Tensor r = reference.to(DType::float32).contiguous();
  const Tensor x = image.to(DType::float32).contiguous();
  Tensor result = Tensor::empty(r.shape(), DType::float32);
  if (r.numel() == 0) return result;
  const double range = largest_of(r);
  if (!(range > 0)) fail_zero();
  const index_t ny = r.shape(-2), nx = r.shape(-1);
  Tensor work = Tensor::empty({5, ny, nx}, DType::float64);
  double* const planes = work.mutable_data<double>();
  float* to = result.mutable_data<float>();
  for (index_t at = 0; at < r.numel(); at += ny * nx) {
    ssim_of_plane(r.data<float>() + at, x.data<float>() + at, ny, nx, range, planes, to + at);
  }
  return result;
}

Quality image_quality(const Tensor& reference, const Tensor& image, const QualityOptions& options) {
  check_shapes(reference, image);
  const Tensor mask = mask_of(reference, options);
  const Tensor known = values_of(reference, options.complex);
  const Tensor found = values_of(image, options.complex);
  const bool* counts = mask.data<bool>();
  const auto *r = known.data<std::complex<float>>(), *x = found.data<std::complex<float>>();
  Complex product = 0;
  double rr = 0, xx = 0, largest = 0;
  Quality result;
  for (index_t i = 0, end = known.numel(); i < end; ++i) {
    if (!counts[i]) continue;
    const Complex a = Complex(r[i]), b = Complex(x[i]);
    product += std::conj(b) * a;
    rr += std::norm(a);
    xx += std::norm(b);
    largest = std::max(largest, std::abs(a));
    ++result.points;
  }
  if (result.points == 0) throw ValueError("[mask] no points are left. Try another mask");
  if (!(rr > 0)) fail_zero();
  if (options.fit && xx > 0) result.factor = product / xx;
  double error = 0;
  for (index_t i = 0, end = known.numel(); i < end; ++i) {
    if (counts[i]) error += std::norm(result.factor * Complex(x[i]) - Complex(r[i]));
  }
  result.nrmse = std::sqrt(error / rr);
  result.psnr_db = error > 0 ? 20 * std::log10(largest / std::sqrt(error / double(result.points)))
                             : std::numeric_limits<double>::infinity();
  const Tensor scaled = magnitude(found) * static_cast<float>(std::abs(result.factor));
  const Tensor similar = ssim_map(magnitude(known), scaled);
  const float* s = similar.data<float>();
  double sum = 0;
  for (index_t i = 0, end = similar.numel(); i < end; ++i) sum += counts[i] ? double{s[i]} : 0.0;
  result.ssim = sum / static_cast<double>(result.points);
  return result;
}

}  // namespace palimpsest
