// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/recon/hermitian_eigen.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "palimpsest/base/error.hpp"

namespace palimpsest::cli {
namespace {

using Complex = std::complex<double>;
using Reals = std::vector<double>;

// Real and imaginary parts apart, so that the loops over rows become vector instructions.
struct Split {
  Reals re, im;
  explicit Split(std::size_t n = 0) : re(n), im(n) {}
};

// A = Q D T D^H Q^H: T real, symmetric, tridiagonal; D diagonal phases; Q a product of reflections
// I - beta v v^H, of which number k leaves the first k + 1 components alone.
struct Tridiagonal {
  Reals diagonal, below;
  std::vector<Complex> phase;
  Split reflectors;  // row k: the v of reflection k
  Reals beta;
};

// out = A v for the trailing block from row `first` on; A is Hermitian, so its rows serve as
// columns.
void multiply(const Split& a, std::size_t n, std::size_t first, const double* v_re,
              const double* v_im, Split& out) {
  std::fill(out.re.begin(), out.re.end(), 0.0);
  std::fill(out.im.begin(), out.im.end(), 0.0);
  for (std::size_t j = first; j < n; ++j) {
    const double* re = &a.re[j * n];
    const double* im = &a.im[j * n];
    const double vr = v_re[j], vi = v_im[j];
    double* __restrict out_re = out.re.data();
    double* __restrict out_im = out.im.data();
    for (std::size_t i = first; i < n; ++i) {
      out_re[i] += re[i] * vr + im[i] * vi;
      out_im[i] += re[i] * vi - im[i] * vr;
    }
  }
}

// A -= v w^H + w v^H on the trailing block.
void update(Split& a, std::size_t n, std::size_t first, const double* v_re, const double* v_im,
            const Split& w) {
  for (std::size_t i = first; i < n; ++i) {
    double* __restrict re = &a.re[i * n];
    double* __restrict im = &a.im[i * n];
    const double vr = v_re[i], vi = v_im[i], wr = w.re[i], wi = w.im[i];
    for (std::size_t j = first; j < n; ++j) {
      re[j] -= vr * w.re[j] + vi * w.im[j] + wr * v_re[j] + wi * v_im[j];
      im[j] -= vi * w.re[j] - vr * w.im[j] + wi * v_re[j] - wr * v_im[j];
    }
  }
}

Tridiagonal reduce(Split a, std::size_t n) {
  Tridiagonal t{Reals(n), Reals(n), std::vector<Complex>(n, 1.0), Split(n * n), Reals(n)};
  Split w(n);
  for (std::size_t k = 0; k + 1 < n; ++k) {
    const std::size_t first = k + 1;
    double* v_re = &t.reflectors.re[k * n];
    double* v_im = &t.reflectors.im[k * n];
    double norm2 = 0;
    for (std::size_t i = first; i < n; ++i) {
      v_re[i] = a.re[i * n + k];
      v_im[i] = a.im[i * n + k];
      norm2 += v_re[i] * v_re[i] + v_im[i] * v_im[i];
    }
    const double norm = std::sqrt(norm2);
    const Complex head(v_re[first], v_im[first]);
    const Complex direction = std::abs(head) > 0 ? head / std::abs(head) : Complex(1);
    t.below[k] = norm;
    t.phase[first] = norm > 0 ? t.phase[k] * -direction : t.phase[k];
    if (norm == 0) continue;
    v_re[first] += (direction * norm).real();
    v_im[first] += (direction * norm).imag();
    t.beta[k] = 1 / (norm2 + norm * std::abs(head));
    multiply(a, n, first, v_re, v_im, w);
    double overlap = 0;  // v^H A v, real
    for (std::size_t i = first; i < n; ++i) overlap += v_re[i] * w.re[i] + v_im[i] * w.im[i];
    const double half = t.beta[k] * t.beta[k] * overlap / 2;
    for (std::size_t i = first; i < n; ++i) {
      w.re[i] = t.beta[k] * w.re[i] - half * v_re[i];
      w.im[i] = t.beta[k] * w.im[i] - half * v_im[i];
    }
    update(a, n, first, v_re, v_im, w);
  }
  for (std::size_t i = 0; i < n; ++i) t.diagonal[i] = a.re[i * n + i];
  return t;
}

// The eigenvalue of the last 2 x 2 block that is nearer to its last element.
double wilkinson_shift(double a, double b, double c) {
  const double half = (a - c) / 2;
  const double root = std::hypot(half, b);
  return c - b * b / (half + std::copysign(root, half));
}

// One implicit QR step on the unreduced block lo..hi; `rows` collects the rotations.
void qr_step(Reals& d, Reals& e, std::size_t lo, std::size_t hi, Reals& rows, std::size_t n) {
  double x = d[lo] - wilkinson_shift(d[hi - 1], e[hi - 1], d[hi]);
  double bulge = e[lo];
  for (std::size_t k = lo; k < hi; ++k) {
    const double r = std::hypot(x, bulge);
    const double c = r > 0 ? x / r : 1, s = r > 0 ? bulge / r : 0;
    if (k > lo) e[k - 1] = r;
    const double dk = d[k], dn = d[k + 1], ek = e[k];
    d[k] = c * c * dk + 2 * c * s * ek + s * s * dn;
    d[k + 1] = s * s * dk - 2 * c * s * ek + c * c * dn;
    e[k] = c * s * (dn - dk) + (c * c - s * s) * ek;
    if (k + 1 < hi) {
      x = e[k];
      bulge = s * e[k + 1];
      e[k + 1] *= c;
    }
    double* __restrict upper = &rows[k * n];
    double* __restrict lower = &rows[(k + 1) * n];
    for (std::size_t j = 0; j < n; ++j) {
      const double u = upper[j];
      upper[j] = c * u + s * lower[j];
      lower[j] = c * lower[j] - s * u;
    }
  }
}

// Makes the tridiagonal matrix diagonal; row k of the result is the eigenvector of d[k].
Reals diagonalize(Reals& d, Reals& e, std::size_t n) {
  Reals rows(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i) rows[i * n + i] = 1;
  constexpr double kRounding = std::numeric_limits<double>::epsilon();
  std::size_t steps = 0;
  for (std::size_t hi = n - 1; hi > 0;) {
    std::size_t lo = hi;
    while (lo > 0 && std::abs(e[lo - 1]) > kRounding * (std::abs(d[lo - 1]) + std::abs(d[lo]))) {
      --lo;
    }
    if (lo == hi) {
      --hi;
      continue;
    }
    if (++steps > 60 * n) throw InternalError("[hermitian_eigen] the QR steps do not converge");
    qr_step(d, e, lo, hi, rows, n);
  }
  return rows;
}

}  // namespace

HermitianEigen hermitian_eigen(std::vector<Complex> matrix, std::size_t n) {
  if (n == 0) return {};
  Split a(n * n);
  for (std::size_t i = 0; i < n * n; ++i) {
    a.re[i] = matrix[i].real();
    a.im[i] = matrix[i].imag();
    if (!std::isfinite(a.re[i]) || !std::isfinite(a.im[i])) {
      throw InternalError("[hermitian_eigen] an element is not finite");
    }
  }
  matrix = {};
  Tridiagonal t = reduce(std::move(a), n);
  const Reals rows = diagonalize(t.diagonal, t.below, n);

  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t i, std::size_t j) { return t.diagonal[i] < t.diagonal[j]; });
  HermitianEigen result{Reals(n), std::vector<Complex>(n * n)};
  Reals re(n), im(n);
  for (std::size_t k = 0; k < n; ++k) {
    const double* row = &rows[order[k] * n];
    result.values[k] = t.diagonal[order[k]];
    for (std::size_t i = 0; i < n; ++i) {
      re[i] = row[i] * t.phase[i].real();
      im[i] = row[i] * t.phase[i].imag();
    }
    for (std::size_t step = n; step-- > 0;) {
      const double* v_re = &t.reflectors.re[step * n];
      const double* v_im = &t.reflectors.im[step * n];
      double dot_re = 0, dot_im = 0;
      for (std::size_t i = step + 1; i < n; ++i) {
        dot_re += v_re[i] * re[i] + v_im[i] * im[i];
        dot_im += v_re[i] * im[i] - v_im[i] * re[i];
      }
      dot_re *= t.beta[step];
      dot_im *= t.beta[step];
      for (std::size_t i = step + 1; i < n; ++i) {
        re[i] -= v_re[i] * dot_re - v_im[i] * dot_im;
        im[i] -= v_re[i] * dot_im + v_im[i] * dot_re;
      }
    }
    for (std::size_t i = 0; i < n; ++i) result.vectors[k * n + i] = {re[i], im[i]};
  }
  return result;
}

}  // namespace palimpsest::cli
