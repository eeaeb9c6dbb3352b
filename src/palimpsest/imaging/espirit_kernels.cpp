// SPDX-License-Identifier: Apache-2.0
// A window p is a column (coil, uz, uy, ux). The matrix A has the rows p^H, so A^H A = sum p p^H.
// Its eigenvectors v span the windows. With fewer windows than columns, the eigenvectors u of A A^H
// give v = A^H u / sigma.
#include "palimpsest/imaging/espirit_kernels.hpp"

#include <span>

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/kernels/matrices/lapack.hpp"

namespace palimpsest {
namespace {

constexpr index_t kChunk = 256;  // windows that are collected at a time

// Everything that is held while the projector is made.
struct Work {
  explicit Work(const EspiritSizes& s, std::byte* at = nullptr) : room(at) {
    const index_t columns = s.columns(), rows = s.rows();
    few_rows = rows < columns;
    n = std::min(rows, columns);
    windows = room.take<Complex>(columns * (few_rows ? rows : std::min(rows, kChunk)));
    gram = room.take<Complex>(n * n);
    values = room.take<double>(n);
    eigen_bytes = static_cast<index_t>(hermitian_eigen_work<Complex>(n));
    // The workspace of the eigenvalues is free when the projector is made.
    const index_t products = few_rows ? columns * rows + columns * columns : columns * columns;
    shared = room.take<std::byte>(
        std::max(eigen_bytes, products * static_cast<index_t>(sizeof(Complex))));
  }

  bool few_rows = false;
  index_t n = 0, eigen_bytes = 0;
  Room room;
  Complex *windows = nullptr, *gram = nullptr;
  double* values = nullptr;
  std::byte* shared = nullptr;
};

template <class Visit>
void for_each_window(const EspiritSizes& s, const Visit& visit) {
  std::array<index_t, 3> p{};
  const auto end = [&](std::size_t k) { return s.area.extent[k] - s.kernel[k]; };
  for (p[0] = 0; p[0] <= end(0); ++p[0]) {
    for (p[1] = 0; p[1] <= end(1); ++p[1]) {
      for (p[2] = 0; p[2] <= end(2); ++p[2]) visit(p);
    }
  }
}

// Element k of a window at `stride` k from `out`.
template <class Change>
void copy_window(const Complex* samples, const EspiritSizes& s, const std::array<index_t, 3>& p,
                 Complex* out, index_t stride, const Change& change) {
  const std::array<index_t, 3>& e = s.area.extent;
  for (index_t c = 0; c < s.n_coils; ++c) {
    for (index_t z = p[0]; z < p[0] + s.kernel[0]; ++z) {
      for (index_t y = p[1]; y < p[1] + s.kernel[1]; ++y) {
        const Complex* line = samples + ((c * e[0] + z) * e[1] + y) * e[2] + p[2];
        for (index_t x = 0; x < s.kernel[2]; ++x, out += stride) *out = change(line[x]);
      }
    }
  }
}

// values and vectors of the smaller Gram matrix, ascending; `windows` stays if there are few rows.
void decompose_kernels(const Complex* samples, const EspiritSizes& s, const Work& w) {
  const index_t columns = s.columns(), rows = s.rows();
  std::fill_n(w.gram, w.n * w.n, Complex(0));
  index_t count = 0;
  for_each_window(s, [&](const std::array<index_t, 3>& p) {
    if (w.few_rows) {
      copy_window(samples, s, p, w.windows + count++, rows, [](Complex v) { return v; });
      return;
    }
    copy_window(samples, s, p, w.windows + count++ * columns, 1,
                [](Complex v) { return std::conj(v); });
    if (count == kChunk) {
      add_gram(count, columns, w.windows, w.gram);
      count = 0;
    }
  });
  if (w.few_rows) {
    add_gram(columns, rows, w.windows, w.gram);
  } else if (count > 0) {
    add_gram(count, columns, w.windows, w.gram);
  }
  hermitian_eigen(w.n, w.gram, w.values,
                  std::span(w.shared, static_cast<std::size_t>(w.eigen_bytes)));
}

std::vector<double> descending_singular_values(const Work& w) {
  std::vector<double> values;
  for (index_t k = w.n; k-- > 0;) values.push_back(std::sqrt(std::max(w.values[k], 0.0)));
  return values;
}

// Mean square of the smallest eighth of the singular values: the signal has the others.
double smallest_eighth(const std::vector<double>& values) {
  const std::size_t first = values.size() - std::max<std::size_t>(values.size() / 8, 1);
  double sum = 0;
  for (std::size_t k = first; k < values.size(); ++k) sum += values[k] * values[k];
  return sum / static_cast<double>(values.size() - first);
}

// The same for noise of variance 1 in an area of the same size.
double smallest_eighth_of_noise(const EspiritSizes& s, const Work& w) {
  const Tensor noise = Tensor::random_normal(
      {s.n_coils, s.area.extent[0], s.area.extent[1], s.area.extent[2]}, DType::complex128, {1, 0});
  double energy = 0;
  const auto* values = noise.data<Complex>();
  for (index_t i = 0, end = noise.numel(); i < end; ++i) energy += std::norm(values[i]);
  decompose_kernels(values, s, w);
  return smallest_eighth(descending_singular_values(w)) / energy *
         static_cast<double>(noise.numel());
}

// Weights of the singular vectors, the largest value first.
std::vector<double> singular_weights(const std::vector<double>& values, const EspiritSizes& s,
                                     const EspiritOptions& options, double sigma2) {
  if (!options.rank && !options.percent && !options.threshold) {
    return soft_weights(values, s.rows(), s.columns(), sigma2);
  }
  const double part =
      options.percent ? *options.percent / 100 : std::sqrt(options.threshold.value_or(0));
  std::vector<double> weights(values.size(), 0.0);
  for (std::size_t k = 0; k < values.size(); ++k) {
    const bool keeps = options.rank ? static_cast<index_t>(k) < *options.rank && values[k] > 0
                                    : values[k] > part * values[0];
    weights[k] = keeps ? 1 : 0;
  }
  return weights;
}

// Rows w conj(v) of the kept vectors, at the start of the result: `kept` rows of columns().
Complex* kept_vectors(const EspiritSizes& s, const Work& w, const std::vector<double>& weights,
                      index_t kept) {
  const index_t columns = s.columns(), rows = s.rows(), n = w.n;
  if (!w.few_rows) {
    // The largest value comes last.
    for (index_t k = 0; k < kept; ++k) {
      Complex* row = w.gram + (n - 1 - k) * n;
      for (index_t i = 0; i < n; ++i)
        row[i] = weights[static_cast<std::size_t>(k)] * std::conj(row[i]);
    }
    return w.gram + (n - kept) * n;
  }
  // v w = windows times u w / sigma: u in columns, those that are not kept 0.
  for (index_t k = 0; k < n; ++k) {
    const double weight = n - 1 - k < kept ? weights[static_cast<std::size_t>(n - 1 - k)] : 0;
    const double scale = weight > 0 ? weight / std::sqrt(w.values[k]) : 0;
    for (index_t i = 0; i < n; ++i) w.gram[k * n + i] *= scale;
  }
  for (index_t i = 0; i < n; ++i) {
    for (index_t k = 0; k < i; ++k) std::swap(w.gram[i * n + k], w.gram[k * n + i]);
  }
  auto* const products = reinterpret_cast<Complex*>(w.shared) + columns * columns;
  times(columns, rows, w.windows, w.gram, products);
  for (index_t k = 0; k < kept; ++k) {
    for (index_t i = 0; i < columns; ++i) {
      w.windows[k * columns + i] = std::conj(products[i * rows + (n - 1 - k)]);
    }
  }
  return w.windows;
}

// c(d) of the elements a >= b of the projector, which is given as its upper triangle.
void add_up(const EspiritSizes& s, const Complex* projector, Complex* coefficients) {
  const index_t window = s.window(), columns = s.columns(), pairs = s.pairs();
  const double scale = 1 / static_cast<double>(window);
  struct Position {
    index_t z, y, x;
  };
  std::vector<Position> at;
  for (index_t z = 0; z < s.kernel[0]; ++z) {
    for (index_t y = 0; y < s.kernel[1]; ++y) {
      for (index_t x = 0; x < s.kernel[2]; ++x) at.push_back({z, y, x});
    }
  }
  for (index_t a = 0; a < s.n_coils; ++a) {
    for (index_t b = 0; b <= a; ++b) {
      const index_t pair = a * (a + 1) / 2 + b;
      for (index_t u = 0; u < window; ++u) {
        const Position pu = at[static_cast<std::size_t>(u)];
        for (index_t v = 0; v < window; ++v) {
          const Position pv = at[static_cast<std::size_t>(v)];
          const index_t i = a * window + u, j = b * window + v;
          const Complex value =
              i <= j ? projector[i * columns + j] : std::conj(projector[j * columns + i]);
          const index_t z = pu.z - pv.z + s.kernel[0] - 1, y = pu.y - pv.y + s.kernel[1] - 1;
          const index_t x = pu.x - pv.x + s.kernel[2] - 1;
          coefficients[((z * s.offsets(1) + y) * s.offsets(2) + x) * pairs + pair] += scale * value;
        }
      }
    }
  }
}

// The combination of coils with the most energy.
std::vector<Complex> strongest_virtual_coil(const Complex* samples, const EspiritSizes& s) {
  const index_t n = s.n_coils;
  const index_t points = s.samples() / n;
  std::vector<Complex> sum(static_cast<std::size_t>(n * n)), q;
  for (index_t a = 0; a < n; ++a) {
    for (index_t b = a; b < n; ++b) {
      Complex& element = sum[static_cast<std::size_t>(a * n + b)];
      for (index_t p = 0; p < points; ++p) {
        element += samples[a * points + p] * std::conj(samples[b * points + p]);
      }
    }
  }
  std::vector<double> values(static_cast<std::size_t>(n));
  std::vector<Complex> work(hermitian_eigen_work<Complex>(n) / sizeof(Complex) + 1);
  hermitian_eigen(n, sum.data(), values.data(), std::as_writable_bytes(std::span(work)));
  q.assign(sum.end() - n, sum.end());
  const Complex largest = *std::max_element(
      q.begin(), q.end(), [](Complex a, Complex b) { return std::norm(a) < std::norm(b); });
  for (Complex& v : q) v *= std::conj(largest) / std::abs(largest);
  return q;
}

void expect_samples(const Tensor& samples) {
  const auto* values = samples.data<Complex>();
  double energy = 0;
  for (index_t i = 0, end = samples.numel(); i < end; ++i) energy += std::norm(values[i]);
  if (!std::isfinite(energy)) {
    throw ValueError("[espirit] the calibration area has a sample that is NaN or infinite");
  }
  if (energy == 0) {
    throw ValueError(
        "[espirit] the calibration area holds no signal: got 0 for all samples. Give maps");
  }
}

}  // namespace

index_t EspiritSizes::rows() const {
  index_t count = 1;
  for (std::size_t k = 0; k < 3; ++k) count *= area.extent[k] - kernel[k] + 1;
  return count;
}

SignalSpace signal_space(const Tensor& samples, const EspiritSizes& s,
                         const EspiritOptions& options) {
  expect_samples(samples);
  SignalSpace space;
  space.polynomial =
      Tensor::zeros({s.offsets(0), s.offsets(1), s.offsets(2), s.pairs()}, DType::complex128);
  Tensor memory = Tensor::empty({Work(s).room.bytes()}, DType::uint8);
  const Work w(s, reinterpret_cast<std::byte*>(memory.mutable_data<std::uint8_t>()));
  const auto* values = samples.data<Complex>();
  space.sigma2 = options.sigma2.value_or(0);
  const double of_noise = finds_noise(options) ? smallest_eighth_of_noise(s, w) : 0;
  decompose_kernels(values, s, w);
  const std::vector<double> singular = descending_singular_values(w);
  if (of_noise > 0) space.sigma2 = smallest_eighth(singular) / of_noise;
  const std::vector<double> weights = singular_weights(singular, s, options, space.sigma2);
  space.vectors = std::count_if(weights.begin(), weights.end(), [](double v) { return v > 0; });
  space.of_vectors = s.columns();
  const Complex* rows = kept_vectors(s, w, weights, space.vectors);
  auto* const projector = reinterpret_cast<Complex*>(w.shared);
  std::fill_n(projector, s.columns() * s.columns(), Complex(0));
  if (space.vectors > 0) add_gram(space.vectors, s.columns(), rows, projector);
  add_up(s, projector, space.polynomial.mutable_data<Complex>());
  space.reference = strongest_virtual_coil(values, s);
  return space;
}

index_t signal_space_bytes(const EspiritSizes& s, const EspiritOptions& options) {
  const index_t noise = finds_noise(options) ? s.samples() : 0;
  return Work(s).room.bytes() + (s.coefficients() + noise) * static_cast<index_t>(sizeof(Complex));
}

}  // namespace palimpsest
