// SPDX-License-Identifier: Apache-2.0
// Coil sensitivities from coil images.

#include <span>

#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/value_checks.hpp"
#include "palimpsest/imaging/sensitivities.hpp"
#include "palimpsest/kernels/matrices/lapack.hpp"

namespace palimpsest {
namespace {

constexpr double kKaiserBeta = 4;

void expect_coils(const char* who, const Tensor& array) {
  if (array.rank() != 3 && array.rank() != 4) {
    throw ShapeError(fmt::format("[{}] got the shape {}, expected (coil, y, x) or (coil, z, y, x)",
                                 who, to_string(array.shape())));
  }
  if (array.dtype() != DType::complex64) {
    throw DTypeError(fmt::format("[{}] got {}, expected complex64", who, name_of(array.dtype())));
  }
}

// The eigenvectors of a Hermitian matrix, ascending, in the rows of the result. The matrix is given
// as its upper triangle.
class SmallEigen {
 public:
  explicit SmallEigen(index_t n)
      : n_(n),
        values_(static_cast<std::size_t>(n)),
        work_(hermitian_eigen_work<Complex>(n) / sizeof(Complex) + 1) {}

  const Complex* operator()(std::vector<Complex>& matrix) {
    hermitian_eigen(n_, matrix.data(), values_.data(), std::as_writable_bytes(std::span(work_)));
    return matrix.data();
  }

 private:
  index_t n_;
  std::vector<double> values_;
  std::vector<Complex> work_;
};

// y y^H, upper triangle, of the point at `at` of coil images.
void add_product(const Sample* at, index_t points, index_t coils, Complex* sum) {
  for (index_t a = 0; a < coils; ++a) {
    const Complex x(at[a * points]);
    for (index_t b = a; b < coils; ++b) *sum++ += x * std::conj(Complex(at[b * points]));
  }
}

// Sums along one axis over blocks that are cut off at the ends, of `size` numbers for each point.
void add_blocks(Complex* sums, index_t before, index_t n, index_t after, index_t size,
                index_t half) {
  std::vector<Complex> line(static_cast<std::size_t>(n * size));
  for (index_t b = 0; b < before; ++b) {
    for (index_t a = 0; a < after; ++a) {
      const auto at = [&](index_t j) { return sums + ((b * n + j) * after + a) * size; };
      for (index_t j = 0; j < n; ++j) {
        Complex* const out = line.data() + j * size;
        std::fill_n(out, size, Complex(0));
        for (index_t k = std::max<index_t>(0, j - half); k <= std::min(n - 1, j + half); ++k) {
          const Complex* in = at(k);
          for (index_t e = 0; e < size; ++e) out[e] += in[e];
        }
      }
      for (index_t j = 0; j < n; ++j) std::copy_n(line.data() + j * size, size, at(j));
    }
  }
}

std::vector<Complex> full_upper(const Complex* packed, index_t n) {
  std::vector<Complex> matrix(static_cast<std::size_t>(n * n));
  for (index_t a = 0; a < n; ++a) {
    for (index_t b = a; b < n; ++b) matrix[static_cast<std::size_t>(a * n + b)] = *packed++;
  }
  return matrix;
}

// I0 by its series.
double bessel_i0(double x) {
  double term = 1, sum = 1;
  for (int k = 1; k < 60; ++k) {
    term *= (x / 2 / k) * (x / 2 / k);
    sum += term;
  }
  return sum;
}

// 1 in the middle of k-space, element floor(n / 2), and 0 half an extent away from it.
double kaiser(index_t j, index_t n) {
  const double u = n > 1 ? 2 * static_cast<double>(j - n / 2) / static_cast<double>(n) : 0;
  if (std::abs(u) >= 1) return 0;
  return bessel_i0(kKaiserBeta * std::sqrt(1 - u * u)) / bessel_i0(kKaiserBeta);
}

}  // namespace

Tensor walsh(const Tensor& coil_images, const WalshOptions& options) {
  expect_coils("walsh", coil_images);
  const index_t coils = coil_images.shape(0);
  if (options.block < 1 || options.block % 2 == 0) {
    throw ValueError(fmt::format("[walsh] block: got {}, expected an odd number", options.block));
  }
  if (options.sets < 1 || options.sets > coils) {
    throw ValueError(fmt::format("[walsh] sets: got {} of {} coils", options.sets, coils));
  }
  expect_finite("walsh", "the array of coil images", coil_images);
  const Tensor dense = coil_images.contiguous();
  const Sample* y = dense.data<Sample>();
  const index_t points = dense.numel() / coils, pairs = coils * (coils + 1) / 2;
  Tensor products = Tensor::zeros({points * pairs}, DType::complex128);
  Complex* const sums = products.mutable_data<Complex>();
  std::vector<Complex> whole(static_cast<std::size_t>(pairs));
  for (index_t p = 0; p < points; ++p) {
    add_product(y + p, points, coils, sums + p * pairs);
    add_product(y + p, points, coils, whole.data());
  }
  index_t before = 1, after = points;
  for (std::size_t axis = 1; axis < dense.rank(); ++axis) {
    const index_t n = dense.shape(static_cast<index_t>(axis));
    after /= std::max<index_t>(n, 1);
    add_blocks(sums, before, n, after, pairs, options.block / 2);
    before *= n;
  }
  SmallEigen eigen(coils);
  std::vector<Complex> matrix = full_upper(whole.data(), coils);
  const Complex* strongest = eigen(matrix) + (coils - 1) * coils;
  std::vector<Complex> q(strongest, strongest + coils);
  const Complex largest = *std::max_element(
      q.begin(), q.end(), [](Complex a, Complex b) { return std::norm(a) < std::norm(b); });
  for (Complex& v : q) v *= std::conj(largest) / std::abs(largest);

  Extents shape = dense.shape();
  shape.insert(0, options.sets);
  Tensor maps = Tensor::zeros(shape, DType::complex64);
  auto* out = maps.mutable_data<Sample>();
  for (index_t p = 0; p < points; ++p) {
    matrix = full_upper(sums + p * pairs, coils);
    double trace = 0;
    for (index_t c = 0; c < coils; ++c)
      trace += matrix[static_cast<std::size_t>(c * coils + c)].real();
    if (!(trace > 0)) continue;
    const Complex* vectors = eigen(matrix);
    for (index_t m = 0; m < options.sets; ++m) {
      const Complex* v = vectors + (coils - 1 - m) * coils;
      Complex overlap = 0;
      for (index_t c = 0; c < coils; ++c)
        overlap += std::conj(q[static_cast<std::size_t>(c)]) * v[c];
      const double length = std::abs(overlap);
      const Complex turn = length > 0 ? std::conj(overlap) / length : Complex(1);
      for (index_t c = 0; c < coils; ++c) out[(m * coils + c) * points + p] = Sample(turn * v[c]);
    }
  }
  return maps;
}

Tensor direct_maps(const Tensor& kspace, const DirectOptions& options) {
  expect_coils("direct_maps", kspace);
  const CalibrationArea area =
      options.area ? *options.area : calibration_area_of(kspace, options.calibration);
  if (area.extent[0] < 1) {
    throw ValueError(
        "[direct_maps] there is no calibration area: the middle of k-space is not measured");
  }
  expect_finite("direct_maps", "k-space", kspace);
  Tensor windowed = Tensor::zeros(kspace.shape(), DType::complex64);
  Tensor part = calibration_samples(kspace, area).clone();
  auto* values = part.mutable_data<Sample>();
  const auto& [nz, ny, nx] = area.extent;
  for (index_t i = 0, end = part.numel(); i < end; ++i) {
    const double weight =
        kaiser(i / (nx * ny) % nz, nz) * kaiser(i / nx % ny, ny) * kaiser(i % nx, nx);
    values[i] *= static_cast<float>(weight);
  }
  calibration_samples(windowed, area).copy_from(part);
  const auto axes = static_cast<int>(kspace.rank()) - 1;
  Tensor maps = Fft(axes, {.centered = true}).H()(windowed).contiguous();
  auto* s = maps.mutable_data<Sample>();
  const index_t coils = kspace.shape(0), points = maps.numel() / coils;
  for (index_t p = 0; p < points; ++p) {
    double energy = 0;
    for (index_t c = 0; c < coils; ++c) energy += std::norm(Complex(s[c * points + p]));
    const double scale = energy > 0 ? 1 / std::sqrt(energy) : 0;
    for (index_t c = 0; c < coils; ++c) s[c * points + p] *= static_cast<float>(scale);
  }
  return maps.unsqueeze(0);
}

index_t plan_walsh(const Extents& coil_images, const WalshOptions& options) {
  const index_t n = element_count(coil_images), coils = coil_images[0];
  const index_t points = coils > 0 ? n / coils : 0;
  return points * (coils * (coils + 1) / 2) * 16 + options.sets * n * 8;
}

index_t plan_direct_maps(const Extents& kspace, const CalibrationArea& area) {
  const auto axes = static_cast<int>(kspace.size()) - 1;
  const index_t block = kspace[0] * area.extent[0] * area.extent[1] * area.extent[2] * 8;
  const NamedLinop F = Fft(axes, {.centered = true}).H();
  return element_count(kspace) * 8 + block + F.plan({DType::complex64, kspace, {}}).peak_bytes;
}

Tensor adaptive_combine(const Tensor& coil_images, const Tensor& maps) {
  expect_coils("adaptive_combine", coil_images);
  const bool fits =
      maps.rank() == coil_images.rank() + 1 && maps.dtype() == DType::complex64 &&
      std::equal(maps.shape().begin() + 1, maps.shape().end(), coil_images.shape().begin());
  if (!fits) {
    throw ShapeError(fmt::format(
        "[adaptive_combine] got coil images {} and maps {} {}, expected "
        "complex64 (set, ..) of the same extents",
        to_string(coil_images.shape()), name_of(maps.dtype()), to_string(maps.shape())));
  }
  const Tensor y = coil_images.contiguous(), s = maps.contiguous();
  Extents shape(coil_images.shape().begin() + 1, coil_images.shape().end());
  const index_t coils = y.shape(0), points = element_count(shape), sets = s.shape(0);
  shape.insert(0, sets);
  Tensor image = Tensor::zeros(shape, DType::complex64);
  auto* out = image.mutable_data<Sample>();
  for (index_t m = 0; m < sets; ++m) {
    for (index_t c = 0; c < coils; ++c) {
      const Sample* map = s.data<Sample>() + (m * coils + c) * points;
      const Sample* coil = y.data<Sample>() + c * points;
      for (index_t p = 0; p < points; ++p) out[m * points + p] += std::conj(map[p]) * coil[p];
    }
  }
  return image;
}

Tensor apply_mask(const Tensor& maps, const Tensor& support) {
  const std::size_t axes = support.rank();
  const bool fits = maps.rank() >= axes && maps.dtype() == DType::complex64 &&
                    support.dtype() == DType::bool_ &&
                    std::equal(support.shape().begin(), support.shape().end(),
                               maps.shape().end() - static_cast<std::ptrdiff_t>(axes));
  if (!fits) {
    throw ShapeError(
        fmt::format("[apply_mask] got maps {} and support {}, expected complex64 (.., "
                    "y, x) and bool (y, x)",
                    to_string(maps.shape()), to_string(support.shape())));
  }
  return where(support, maps, Sample(0));
}

}  // namespace palimpsest
