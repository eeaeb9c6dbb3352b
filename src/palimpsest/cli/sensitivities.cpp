// SPDX-License-Identifier: Apache-2.0
// From calibration data to maps:
//  1. Every kernel x kernel window of the centre, over all coils, is one vector p.
//  2. P projects onto the span of all p (the dominant eigenvectors of sum p p^H).
//  3. Projecting every window of a whole k-space and averaging the overlaps is, in the image
//  domain, a
//     small Hermitian matrix G(r) per pixel: its element (a, b) is the trigonometric polynomial of
//     the window offsets d = u - v whose coefficients are sums of P[(a, u), (b, v)].
//  4. Windows of a real scan stay as they are, so s(r) is G(r)'s eigenvector to the eigenvalue 1.
#include "palimpsest/cli/sensitivities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <utility>
#include <vector>

#include "palimpsest/cli/failure.hpp"
#include "palimpsest/cli/hermitian_eigen.hpp"

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

// sum over k of a_ik conj(a_jk): the Gram matrix of the rows of an n x m matrix.
std::vector<Complex> gram_of_rows(const std::vector<Complex>& a, std::size_t n, std::size_t m) {
  std::vector<double> re(n * m), im(n * m);  // transposed: index k * n + i
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < m; ++k) {
      re[k * n + i] = a[i * m + k].real();
      im[k * n + i] = a[i * m + k].imag();
    }
  }
  std::vector<double> sum_re(n * n, 0.0), sum_im(n * n, 0.0);
  for (std::size_t k = 0; k < m; ++k) {
    const double* col_re = &re[k * n];
    const double* col_im = &im[k * n];
    for (std::size_t i = 0; i < n; ++i) {
      const double ar = col_re[i], ai = col_im[i];
      double* __restrict out_re = &sum_re[i * n];
      double* __restrict out_im = &sum_im[i * n];
      for (std::size_t j = 0; j <= i; ++j) {
        out_re[j] += ar * col_re[j] + ai * col_im[j];
        out_im[j] += ai * col_re[j] - ar * col_im[j];
      }
    }
  }
  std::vector<Complex> gram(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      gram[i * n + j] = {sum_re[i * n + j], sum_im[i * n + j]};
      gram[j * n + i] = std::conj(gram[i * n + j]);
    }
  }
  return gram;
}

std::vector<Complex> transposed(const std::vector<Complex>& a, std::size_t rows,
                                std::size_t columns) {
  std::vector<Complex> result(a.size());
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) result[j * rows + i] = a[i * columns + j];
  }
  return result;
}

// Orthonormal vectors (of `columns` elements each, one after the other) that span the windows.
std::vector<Complex> signal_space(const Windows& windows, double threshold) {
  const std::size_t rows = windows.rows, columns = windows.columns;
  const std::vector<Complex> by_column = transposed(windows.values, rows, columns);
  // The smaller of the two Gram matrices has all the singular values that are not 0.
  const bool few_rows = rows < columns;
  const std::size_t n = few_rows ? rows : columns;
  const HermitianEigen eigen =
      hermitian_eigen(few_rows ? gram_of_rows(windows.values, rows, columns)
                               : gram_of_rows(by_column, columns, rows),
                      n);
  const double largest = eigen.values.back();
  if (!(largest > 0)) {
    throw UsageError(
        "[coil sensitivities] the densely sampled centre holds no signal: all samples are 0. Try "
        "--maps FILE");
  }
  std::vector<Complex> basis;
  for (std::size_t k = n; k-- > 0 && eigen.values[k] > threshold * threshold * largest;) {
    const Complex* u = &eigen.vectors[k * n];
    if (!few_rows) {
      basis.insert(basis.end(), u, u + n);
      continue;
    }
    // The windows are rows: sum_i conj(u_i) p_i has the norm of the singular value.
    const double scale = 1 / std::sqrt(eigen.values[k]);
    for (std::size_t j = 0; j < columns; ++j) {
      Complex sum = 0;
      for (std::size_t i = 0; i < rows; ++i) sum += std::conj(u[i]) * by_column[j * rows + i];
      basis.push_back(sum * scale);
    }
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

Polynomial image_domain_polynomial(const std::vector<Complex>& basis, index_t n_coils,
                                   index_t kernel) {
  const index_t window = kernel * kernel, columns = n_coils * window;
  const std::size_t n_vectors = basis.size() / size(columns);
  // P = sum over the basis of v v^H: the Gram matrix of the rows of [v_1 v_2 ..].
  const std::vector<Complex> projector =
      gram_of_rows(transposed(basis, n_vectors, size(columns)), size(columns), n_vectors);
  Polynomial g{n_coils, kernel, {}, {}};
  const index_t n_offsets = g.offsets();
  g.re.assign(size(n_offsets * n_offsets) * g.matrix(), 0.0F);
  g.im = g.re;
  std::vector<Complex> sums(g.re.size());
  for (index_t i = 0; i < columns; ++i) {
    const index_t a = i / window, uy = i % window / kernel, ux = i % kernel;
    for (index_t j = 0; j < columns; ++j) {
      const index_t b = j / window, vy = j % window / kernel, vx = j % kernel;
      const index_t offset = (uy - vy + kernel - 1) * n_offsets + ux - vx + kernel - 1;
      sums[size((offset * n_coils + b) * n_coils + a)] += projector[size(i * columns + j)];
    }
  }
  const double scale = 1 / static_cast<double>(window);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    g.re[i] = static_cast<float>(sums[i].real() * scale);
    g.im[i] = static_cast<float>(sums[i].imag() * scale);
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
  const HermitianEigen eigen =
      hermitian_eigen(gram_of_rows(transposed(pixels.values, pixels.rows, n), n, pixels.rows), n);
  return {eigen.vectors.end() - static_cast<std::ptrdiff_t>(n), eigen.vectors.end()};
}

// Eigenvectors of G on the whole grid.
Tensor eigenvector_maps(const Polynomial& g, index_t ny, index_t nx, double crop,
                        const std::vector<std::complex<float>>& reference) {
  Tensor maps = Tensor::zeros({g.n_coils, ny, nx}, DType::complex64);
  Sample* out = maps.mutable_data<Sample>();
  std::vector<std::vector<std::complex<float>>> phases_x;
  for (index_t x = 0; x < nx; ++x) phases_x.push_back(offset_phases(x, nx, g.kernel));
  const std::size_t row_block = size(g.offsets()) * g.matrix();
  Floats row_re(row_block), row_im(row_block), g_re(g.matrix()), g_im(g.matrix());
  PowerMethod power(size(g.n_coils));
  for (index_t y = 0; y < ny; ++y) {
    evaluate(g.re.data(), g.im.data(), row_block, offset_phases(y, ny, g.kernel), row_re, row_im);
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
        out[(static_cast<index_t>(c) * ny + y) * nx + x] = turn * Sample(power.re[c], power.im[c]);
      }
    }
  }
  return maps;
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
  const index_t windows = rows * columns, gram = n * n, basis = n * columns;
  const index_t space = (3 * windows + 4 * gram + basis) * kComplex;
  const index_t polynomial = offsets * offsets * c * c * 8;
  const index_t projector = (3 * basis + 2 * columns * columns) * kComplex;
  const index_t maps = polynomial + 8 * offsets * kspace[2] + 8 * offsets * c * c +
                       (4 * c * h * w + 6 * c * c) * kComplex;
  return std::max({space, projector, 3 * polynomial + columns * columns * kComplex, maps});
}

Tensor estimate_sensitivities(const Tensor& kspace, const CenterRegion& center,
                              const SensitivityOptions& options) {
  const Tensor data = kspace.contiguous();
  const index_t ny = data.shape(1), nx = data.shape(2);
  check_center(center, options);
  const CenterRegion used = limited(center, ny, nx, options.largest_center);
  const std::vector<Complex> basis =
      signal_space(collect_windows(data, used, options.kernel), options.rank_threshold);
  const Polynomial g = image_domain_polynomial(basis, data.shape(0), options.kernel);
  return eigenvector_maps(g, ny, nx, options.crop, strongest_virtual_coil(data, used));
}

}  // namespace palimpsest::cli
