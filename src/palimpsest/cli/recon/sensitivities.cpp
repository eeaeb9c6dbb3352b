// SPDX-License-Identifier: Apache-2.0
// From calibration data to maps:
//  1. Every kernel x kernel window of the centre, over all coils, is one vector p.
//  2. P projects onto the span of all p (the dominant eigenvectors of sum p p^H).
//  3. Projecting every window of a whole k-space and averaging the overlaps is, in the image
//  domain, a
//     small Hermitian matrix G(r) per pixel: its element (a, b) is the trigonometric polynomial of
//     the window offsets d = u - v whose coefficients are sums of P[(a, u), (b, v)].
//  4. Windows of a real scan stay as they are, so s(r) is G(r)'s eigenvector to the eigenvalue 1.
#include "palimpsest/cli/recon/sensitivities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <utility>
#include <vector>

#include "palimpsest/cli/failure.hpp"
#include "palimpsest/cli/recon/hermitian_eigen.hpp"

namespace palimpsest::cli {
namespace {

using Complex = std::complex<double>;
using Sample = std::complex<float>;
using Floats = std::vector<float>;

constexpr int kPowerSteps = 60;
constexpr float kPowerTolerance = 1e-8F;  // of the squared change of a vector of norm 1

std::size_t size(index_t n) { return static_cast<std::size_t>(n); }

// The centre's windows: row = one window, column = (coil, window y, window x).
struct Windows {
  std::size_t rows = 0, columns = 0;
  std::vector<Complex> values;
};

Windows collect_windows(const Tensor& kspace, const CenterRegion& center, index_t kernel) {
  const Sample* data = kspace.data<Sample>();
  const index_t n_coils = kspace.shape(0), ny = kspace.shape(1), nx = kspace.shape(2);
  Windows windows;
  windows.columns = size(n_coils * kernel * kernel);
  windows.values.reserve(size((center.height - kernel + 1) * (center.width - kernel + 1)) *
                         windows.columns);
  for (index_t y = center.y; y + kernel <= center.y + center.height; ++y) {
    for (index_t x = center.x; x + kernel <= center.x + center.width; ++x) {
      ++windows.rows;
      for (index_t c = 0; c < n_coils; ++c) {
        for (index_t v = 0; v < kernel; ++v) {
          const Sample* line = data + (c * ny + y + v) * nx + x;
          windows.values.insert(windows.values.end(), line, line + kernel);
        }
      }
    }
  }
  return windows;
}

// sum over k of x_k x_k^H for m vectors x_k of n numbers; `get(k, i)` is a number.
template <class Get>
std::vector<Complex> sum_of_outer_products(std::size_t n, std::size_t m, const Get& get) {
  std::vector<double> re(n), im(n), sum_re(n * n, 0.0), sum_im(n * n, 0.0);
  for (std::size_t k = 0; k < m; ++k) {
    for (std::size_t i = 0; i < n; ++i) {
      const Complex x = get(k, i);
      re[i] = x.real();
      im[i] = x.imag();
    }
    for (std::size_t i = 0; i < n; ++i) {
      const double ar = re[i], ai = im[i];
      double* __restrict out_re = &sum_re[i * n];
      double* __restrict out_im = &sum_im[i * n];
      for (std::size_t j = 0; j <= i; ++j) {
        out_re[j] += ar * re[j] + ai * im[j];
        out_im[j] += ai * re[j] - ar * im[j];
      }
    }
  }
  std::vector<Complex> sum(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      sum[i * n + j] = {sum_re[i * n + j], sum_im[i * n + j]};
      sum[j * n + i] = std::conj(sum[i * n + j]);
    }
  }
  return sum;
}

// Orthonormal vectors of `columns` elements, one after the other.
struct Basis {
  std::size_t columns = 0, vectors = 0;
  std::vector<double> re, im;

  void add(const Complex* values, double scale) {
    ++vectors;
    for (std::size_t j = 0; j < columns; ++j) {
      re.push_back(values[j].real() * scale);
      im.push_back(values[j].imag() * scale);
    }
  }
};

// The space that the windows span.
Basis signal_space(Windows windows, double threshold) {
  const std::size_t rows = windows.rows, columns = windows.columns;
  // The smaller of the two Gram matrices has all the singular values that are not 0.
  const bool few_rows = rows < columns;
  const std::size_t n = few_rows ? rows : columns;
  const Complex* w = windows.values.data();
  std::vector<Complex> gram =
      few_rows ? sum_of_outer_products(
                     n, columns, [=](std::size_t k, std::size_t i) { return w[i * columns + k]; })
               : sum_of_outer_products(
                     n, rows, [=](std::size_t k, std::size_t i) { return w[k * columns + i]; });
  if (!few_rows) windows.values = {};
  const HermitianEigen eigen = hermitian_eigen(std::move(gram), n);
  const double largest = eigen.values.back();
  if (!(largest > 0)) {
    throw UsageError(
        "[coil sensitivities] the densely sampled centre holds no signal: all samples are 0. Try "
        "--maps FILE");
  }
  Basis basis{columns, 0, {}, {}};
  basis.re.reserve(n * columns);
  basis.im.reserve(n * columns);
  std::vector<Complex> sum(columns);
  for (std::size_t k = n; k-- > 0 && eigen.values[k] > threshold * threshold * largest;) {
    const Complex* u = &eigen.vectors[k * n];
    if (!few_rows) {
      basis.add(u, 1);
      continue;
    }
    // The windows are rows: sum_i conj(u_i) p_i has the norm of the singular value.
    std::fill(sum.begin(), sum.end(), Complex(0));
    for (std::size_t i = 0; i < rows; ++i) {
      const Complex weight = std::conj(u[i]);
      for (std::size_t j = 0; j < columns; ++j) sum[j] += weight * w[i * columns + j];
    }
    basis.add(sum.data(), 1 / std::sqrt(eigen.values[k]));
  }
  return basis;
}

// The coefficients of G as a polynomial: for each offset (dy, dx), dy and dx from 1 - kernel to
// kernel - 1, a matrix n_coils x n_coils, column by column.
struct Polynomial {
  index_t n_coils = 0, kernel = 0;
  Floats re, im;

  index_t offsets() const { return 2 * kernel - 1; }
  std::size_t matrix() const { return size(n_coils * n_coils); }
};

// Row i of P = sum over the basis of v v^H, up to the diagonal.
void row_of_projector(const Basis& basis, std::size_t i, std::vector<double>& re,
                      std::vector<double>& im) {
  std::fill(re.begin(), re.end(), 0.0);
  std::fill(im.begin(), im.end(), 0.0);
  double* __restrict out_re = re.data();
  double* __restrict out_im = im.data();
  for (std::size_t k = 0; k < basis.vectors; ++k) {
    const double* v_re = &basis.re[k * basis.columns];
    const double* v_im = &basis.im[k * basis.columns];
    const double ar = v_re[i], ai = v_im[i];
    for (std::size_t j = 0; j <= i; ++j) {
      out_re[j] += ar * v_re[j] + ai * v_im[j];
      out_im[j] += ai * v_re[j] - ar * v_im[j];
    }
  }
}

Polynomial image_domain_polynomial(const Basis& basis, index_t n_coils, index_t kernel) {
  const index_t window = kernel * kernel, columns = n_coils * window;
  Polynomial g{n_coils, kernel, {}, {}};
  const index_t n_offsets = g.offsets();
  std::vector<Complex> sums(size(n_offsets * n_offsets) * g.matrix());
  std::vector<double> row_re(basis.columns), row_im(basis.columns);
  for (index_t i = 0; i < columns; ++i) {
    row_of_projector(basis, size(i), row_re, row_im);
    const index_t a = i / window, uy = i % window / kernel, ux = i % kernel;
    for (index_t j = 0; j <= i; ++j) {
      const index_t b = j / window, vy = j % window / kernel, vx = j % kernel;
      const index_t middle = kernel - 1, dy = uy - vy, dx = ux - vx;
      const auto at = [&](index_t y, index_t x, index_t p, index_t q) -> Complex& {
        return sums[size((((middle + y) * n_offsets + middle + x) * n_coils + q) * n_coils + p)];
      };
      const Complex value(row_re[size(j)], row_im[size(j)]);
      at(dy, dx, a, b) += value;
      if (j < i) at(-dy, -dx, b, a) += std::conj(value);
    }
  }
  const double scale = 1 / static_cast<double>(window);
  g.re.reserve(sums.size());
  g.im.reserve(sums.size());
  for (const Complex& sum : sums) {
    g.re.push_back(static_cast<float>(sum.real() * scale));
    g.im.push_back(static_cast<float>(sum.imag() * scale));
  }
  return g;
}

// exp(i d theta(j)) for the position j of n and d = 1 - kernel .. kernel - 1.
std::vector<std::complex<float>> offset_phases(index_t j, index_t n, index_t kernel) {
  const double theta =
      2 * std::numbers::pi * static_cast<double>(j - n / 2) / static_cast<double>(n);
  std::vector<std::complex<float>> phases;
  for (index_t d = 1 - kernel; d < kernel; ++d) {
    phases.emplace_back(std::polar(1.0, theta * static_cast<double>(d)));
  }
  return phases;
}

// sum over d of phases[d] times the d-th of consecutive blocks.
void evaluate(const float* block_re, const float* block_im, std::size_t block,
              const std::vector<std::complex<float>>& phases, Floats& out_re, Floats& out_im) {
  std::fill(out_re.begin(), out_re.end(), 0.0F);
  std::fill(out_im.begin(), out_im.end(), 0.0F);
  for (std::size_t d = 0; d < phases.size(); ++d) {
    const float pr = phases[d].real(), pi = phases[d].imag();
    const float* re = block_re + d * block;
    const float* im = block_im + d * block;
    float* __restrict sum_re = out_re.data();
    float* __restrict sum_im = out_im.data();
    for (std::size_t i = 0; i < block; ++i) {
      sum_re[i] += re[i] * pr - im[i] * pi;
      sum_im[i] += re[i] * pi + im[i] * pr;
    }
  }
}

// The dominant eigenvector of one small Hermitian matrix by the power method.
class PowerMethod {
 public:
  explicit PowerMethod(std::size_t n)
      : re(n, 1 / std::sqrt(static_cast<float>(n))), im(n), next_re_(n), next_im_(n) {}

  /// Continues from the vector of the last call; returns the eigenvalue. Columns of g are dense.
  float run(const Floats& g_re, const Floats& g_im) {
    float value = 0;
    for (int step = 0; step < kPowerSteps; ++step) {
      value = multiply(g_re, g_im);
      if (!(value > 0)) return 0;
      float change = 0;
      for (std::size_t i = 0; i < re.size(); ++i) {
        const float r = next_re_[i] / value, m = next_im_[i] / value;
        change += (r - re[i]) * (r - re[i]) + (m - im[i]) * (m - im[i]);
        re[i] = r;
        im[i] = m;
      }
      if (change < kPowerTolerance) break;
    }
    return value;
  }

  Floats re, im;

 private:
  // next = G x; returns its norm.
  float multiply(const Floats& g_re, const Floats& g_im) {
    const std::size_t n = re.size();
    std::fill(next_re_.begin(), next_re_.end(), 0.0F);
    std::fill(next_im_.begin(), next_im_.end(), 0.0F);
    for (std::size_t j = 0; j < n; ++j) {
      const float xr = re[j], xi = im[j];
      const float* column_re = &g_re[j * n];
      const float* column_im = &g_im[j * n];
      float* __restrict out_re = next_re_.data();
      float* __restrict out_im = next_im_.data();
      for (std::size_t i = 0; i < n; ++i) {
        out_re[i] += column_re[i] * xr - column_im[i] * xi;
        out_im[i] += column_re[i] * xi + column_im[i] * xr;
      }
    }
    float norm2 = 0;
    for (std::size_t i = 0; i < n; ++i)
      norm2 += next_re_[i] * next_re_[i] + next_im_[i] * next_im_[i];
    return std::sqrt(norm2);
  }

  Floats next_re_, next_im_;
};

// The combination of coils with the most energy in the centre: it sets the phase of the maps.
std::vector<std::complex<float>> strongest_virtual_coil(const Tensor& kspace,
                                                        const CenterRegion& center) {
  const Windows pixels = collect_windows(kspace, center, 1);
  const std::size_t n = pixels.columns;
  const Complex* p = pixels.values.data();
  const HermitianEigen eigen = hermitian_eigen(
      sum_of_outer_products(n, pixels.rows,
                            [=](std::size_t k, std::size_t i) { return p[k * n + i]; }),
      n);
  return {eigen.vectors.end() - static_cast<std::ptrdiff_t>(n), eigen.vectors.end()};
}

// Eigenvectors of G on the whole grid, written row by row.
void write_eigenvector_maps(const Polynomial& g, double crop,
                            const std::vector<std::complex<float>>& reference, ScratchArray& maps) {
  const index_t ny = maps.shape()[1], nx = maps.shape()[2];
  std::vector<Sample> row(size(g.n_coils * nx));
  std::vector<std::vector<std::complex<float>>> phases_x;
  for (index_t x = 0; x < nx; ++x) phases_x.push_back(offset_phases(x, nx, g.kernel));
  const std::size_t row_block = size(g.offsets()) * g.matrix();
  Floats row_re(row_block), row_im(row_block), g_re(g.matrix()), g_im(g.matrix());
  PowerMethod power(size(g.n_coils));
  for (index_t y = 0; y < ny; ++y) {
    evaluate(g.re.data(), g.im.data(), row_block, offset_phases(y, ny, g.kernel), row_re, row_im);
    std::fill(row.begin(), row.end(), Sample(0));
    for (index_t step = 0; step < nx; ++step) {
      // There and back, so that the vector to start from is always that of a neighbour.
      const index_t x = y % 2 == 0 ? step : nx - 1 - step;
      evaluate(row_re.data(), row_im.data(), g.matrix(), phases_x[size(x)], g_re, g_im);
      if (power.run(g_re, g_im) < static_cast<float>(crop)) continue;
      std::complex<float> overlap = 0;
      for (std::size_t c = 0; c < reference.size(); ++c) {
        overlap += std::conj(reference[c]) * std::complex<float>(power.re[c], power.im[c]);
      }
      const float length = std::abs(overlap);
      const std::complex<float> turn = length > 0 ? std::conj(overlap) / length : Sample(1);
      for (std::size_t c = 0; c < reference.size(); ++c) {
        row[c * size(nx) + size(x)] = turn * Sample(power.re[c], power.im[c]);
      }
    }
    for (index_t c = 0; c < g.n_coils; ++c) {
      maps.write((c * ny + y) * nx, row.data() + c * nx, nx);
    }
  }
}

CenterRegion limited(const CenterRegion& center, index_t ny, index_t nx, index_t largest) {
  CenterRegion result = center;
  result.height = std::min(center.height, largest);
  result.width = std::min(center.width, largest);
  result.y =
      std::clamp(ny / 2 - result.height / 2, center.y, center.y + center.height - result.height);
  result.x =
      std::clamp(nx / 2 - result.width / 2, center.x, center.x + center.width - result.width);
  return result;
}

}  // namespace

CenterRegion dense_center(const Tensor& mask) {
  const Tensor dense = mask.contiguous();
  const bool* taken = dense.data<bool>();
  const index_t ny = dense.shape(0), nx = dense.shape(1), cy = ny / 2, cx = nx / 2;
  if (ny == 0 || nx == 0 || !taken[cy * nx + cx]) return {};
  CenterRegion best;
  // Rows are added above and below in turn; the columns that are full in all of them become fewer.
  index_t left = 0, right = nx, top = cy, bottom = cy;
  const auto row_fits = [&](index_t y) {
    if (y < 0 || y >= ny || !taken[y * nx + cx]) return false;
    index_t l = cx, r = cx + 1;
    while (l > left && taken[y * nx + l - 1]) --l;
    while (r < right && taken[y * nx + r]) ++r;
    left = l;
    right = r;
    return true;
  };
  const auto consider = [&] {
    const CenterRegion now{top, left, bottom - top, right - left};
    const auto rank = [](const CenterRegion& c) {
      return std::pair(std::min(c.height, c.width), c.height * c.width);
    };
    if (rank(now) > rank(best)) best = now;
  };
  for (bool down = true, up = true; down || up;) {
    if (down && (down = row_fits(bottom))) {
      ++bottom;
      consider();
    }
    if (up && (up = row_fits(top - 1))) {
      --top;
      consider();
    }
  }
  return best;
}

void check_center(const CenterRegion& center, const SensitivityOptions& options) {
  const index_t least = options.smallest_center();
  if (std::min(center.height, center.width) < least) {
    throw UsageError(fmt::format(
        "[coil sensitivities] the densely sampled centre of k-space is too small: got {} x {} "
        "points, expected at least {} x {}. Try --maps FILE",
        center.height, center.width, least, least));
  }
}

index_t sensitivity_bytes(const Extents& kspace, const CenterRegion& center,
                          const SensitivityOptions& options) {
  const index_t c = kspace[0], k = options.kernel, offsets = 2 * k - 1;
  const index_t h = std::min(center.height, options.largest_center);
  const index_t w = std::min(center.width, options.largest_center);
  const index_t columns = c * k * k, rows = (h - k + 1) * (w - k + 1), n = std::min(rows, columns);
  constexpr index_t kComplex = 16;
  const auto eigen = [](index_t of) {
    return static_cast<index_t>(hermitian_eigen_bytes(static_cast<std::size_t>(of)));
  };
  const index_t windows = rows * columns * kComplex, basis = n * columns * kComplex;
  const index_t vectors = n * n * kComplex;
  const bool few_rows = rows < columns;
  const index_t space = few_rows ? windows + std::max(eigen(n), vectors + basis)
                                 : std::max({windows + 2 * vectors, eigen(n), vectors + basis});
  const index_t polynomial = offsets * offsets * c * c;
  const index_t sums = basis + polynomial * (kComplex + 8);
  const index_t pixels = c * h * w * kComplex + eigen(c);
  const index_t rows_of_maps = 8 * (offsets * (kspace[2] + c * c) + c * c + c * kspace[2]);
  return std::max({space, sums, polynomial * 8 + std::max(pixels, rows_of_maps)});
}

void estimate_sensitivities(const Tensor& kspace, const CenterRegion& center, ScratchArray& maps,
                            const SensitivityOptions& options) {
  const Tensor data = kspace.contiguous();
  const index_t ny = data.shape(1), nx = data.shape(2);
  check_center(center, options);
  const CenterRegion used = limited(center, ny, nx, options.largest_center);
  const Polynomial g = image_domain_polynomial(
      signal_space(collect_windows(data, used, options.kernel), options.rank_threshold),
      data.shape(0), options.kernel);
  write_eigenvector_maps(g, options.crop, strongest_virtual_coil(data, used), maps);
}

Tensor estimate_sensitivities(const Tensor& kspace, const CenterRegion& center,
                              const SensitivityOptions& options) {
  ScratchArray maps = ScratchArray::in_memory(kspace.shape(), DType::complex64);
  estimate_sensitivities(kspace, center, maps, options);
  return maps.map();
}

}  // namespace palimpsest::cli
