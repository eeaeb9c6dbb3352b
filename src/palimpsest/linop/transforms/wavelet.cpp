// SPDX-License-Identifier: Apache-2.0
// Filters are computed, not tabulated: the filter with p vanishing moments is
//     h(z) = c ((1 + z) / 2)^p prod (z - z_i),
// where z_i + 1/z_i = 2 - 4 y_i, |z_i| < 1, for the roots y_i of sum_k binomial(p - 1 + k, k) y^k.
#include "palimpsest/linop/transforms/wavelet.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <complex>

#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/ops/transforms/stencil.hpp"

namespace palimpsest {
namespace {

using Wide = std::complex<long double>;
constexpr int kMostMoments = 10;

// All roots of a polynomial of degree n (coefficients from the constant on), by Durand and Kerner.
std::vector<Wide> roots_of(const std::vector<long double>& coefficients) {
  const std::size_t n = coefficients.size() - 1;
  std::vector<Wide> roots(n);
  Wide start = 1;
  for (Wide& root : roots) root = start *= Wide(0.4L, 0.9L);
  for (int iteration = 0; iteration < 1000; ++iteration) {
    long double largest = 0;
    for (std::size_t i = 0; i < n; ++i) {
      Wide value = 0, others = coefficients[n];
      for (std::size_t k = n + 1; k-- > 0;) value = value * roots[i] + coefficients[k];
      for (std::size_t j = 0; j < n; ++j) {
        if (j != i) others *= roots[i] - roots[j];
      }
      const Wide step = value / others;
      roots[i] -= step;
      largest = std::max(largest, std::abs(step));
    }
    if (largest < 1e-19L) break;
  }
  return roots;
}

std::vector<double> daubechies(int p) {
  std::vector<long double> binomials{1};
  for (int k = 1; k < p; ++k) binomials.push_back(binomials.back() * (p - 1 + k) / k);
  std::vector<Wide> polynomial{1};  // from the highest power on
  const auto add_root = [&](const Wide& root) {
    polynomial.push_back(0);
    for (std::size_t k = polynomial.size() - 1; k > 0; --k) {
      polynomial[k] -= root * polynomial[k - 1];
    }
  };
  for (int k = 0; k < p; ++k) add_root(-1);
  for (const Wide& y : roots_of(binomials)) {
    const Wide half = 1.0L - 2.0L * y, offset = std::sqrt(half * half - 1.0L);
    add_root(std::abs(half + offset) < 1 ? half + offset : half - offset);
  }
  long double norm = 0;
  for (const Wide& c : polynomial) norm += c.real() * c.real();
  std::vector<double> filter;
  for (const Wide& c : polynomial) {
    filter.push_back(static_cast<double>(c.real() / std::sqrt(norm)));
  }
  return filter;
}

int moments_of(std::string_view family) {
  if (family == "haar") return 1;
  int p = 0;
  if (family.starts_with("db")) {
    const char* end = family.data() + family.size();
    if (std::from_chars(family.data() + 2, end, p).ptr != end) p = 0;
  }
  if (p >= 1 && p <= kMostMoments) return p;
  throw ValueError("[Wavelet] family: got '" + std::string(family) +
                   "', expected haar or db1 to db10");
}

struct Filters {
  explicit Filters(const NamedLinop& A) : low(wavelet_filter(A.attr("family").as_string())) {
    for (std::size_t m = 0; m < low.size(); ++m) {
      high.push_back((m % 2 == 0 ? 1 : -1) * low[low.size() - 1 - m]);
    }
  }
  static Stencil along(std::size_t axis, const std::vector<double>& taps) {
    return {.axis = axis, .taps = taps, .offset = 0, .step = 2, .edge = StencilEdge::periodic};
  }
  std::vector<double> low, high;
};

// The corner that level `level` works on: each level leaves the larger half.
std::vector<Index> corner(const Extents& shape, const Axes& axes, index_t level) {
  std::vector<Index> index(shape.size(), Index(all));
  for (index_t axis : axes) {
    const auto k = static_cast<std::size_t>(axis);
    index[k] = slice(0, (shape[k] + (index_t{1} << level) - 1) >> level);
  }
  return index;
}

Axes axes_of_wavelet(const NamedLinop& A, const Variable& x) {
  return from_front(A.attr("axes").as_integers(), x.rank());
}

index_t levels_here(const NamedLinop& A, const Variable& x) {
  const index_t levels = A.attr("levels").as_integer();
  if (levels != kAutomaticLevels) return levels;
  Extents sizes;
  for (const index_t axis : axes_of_wavelet(A, x)) {
    sizes.push_back(x.type().shape[static_cast<std::size_t>(axis)]);
  }
  return wavelet_levels(sizes);
}

// Entries [first, last) along axis k.
Variable entries(const Variable& x, std::size_t k, index_t first, index_t last) {
  std::vector<Index> index(k, Index(all));
  index.emplace_back(slice(first, last));
  return ops::index(x, index);
}

// x with its entries moved on along axis k, periodically.
Variable rolled(const Variable& x, std::size_t k, const Variable& shift) {
  const index_t n = x.type().shape[k];
  const Variable positions = ops::mod(constant(Tensor::arange(n)) - shift, n);
  return ops::take(x, positions, static_cast<index_t>(k));
}

// The analysis of x, rolled by the shift if there is one. The last entry of a line of odd length
// goes unchanged to the end of its low band, so such a line is rolled first.
Variable analysed(const Variable& x, std::size_t k, const Filters& filters,
                  const Variable& shift = {}) {
  const index_t n = x.type().shape[k], even = n - n % 2;
  if (even == 0) return x;
  if (even != n && shift.defined()) return analysed(rolled(x, k, shift), k, filters);
  const Variable start = shift.defined() ? -shift : shift;
  const Variable part = even == n ? x : entries(x, k, 0, even);
  std::vector<Variable> bands{ops::stencil(part, Filters::along(k, filters.low), start)};
  if (even != n) bands.push_back(entries(x, k, even, n));
  bands.push_back(ops::stencil(part, Filters::along(k, filters.high), start));
  return ops::join(static_cast<index_t>(k), bands);
}

// Moved back by the shift, where there is one.
Variable synthesized(const Variable& y, std::size_t k, const Filters& filters,
                     const Variable& shift = {}) {
  const index_t n = y.type().shape[k], half = n / 2;
  if (half == 0) return y;
  if (2 * half != n && shift.defined()) return rolled(synthesized(y, k, filters), k, -shift);
  const Variable start = shift.defined() ? -shift : shift;
  const Variable low = entries(y, k, 0, half), high = entries(y, k, n - half, n);
  const Variable part = ops::stencil_adjoint(low, Filters::along(k, filters.low), start) +
                        ops::stencil_adjoint(high, Filters::along(k, filters.high), start);
  if (2 * half == n) return part;
  const std::vector<Variable> both{part, entries(y, k, half, half + 1)};
  return ops::join(static_cast<index_t>(k), both);
}

// Shifts of the first level along each axis; none: 0.
Variable transformed(const NamedLinop& A, const Variable& x, std::span<const Variable> shifts) {
  const Filters filters(A);
  const Axes axes = axes_of_wavelet(A, x);
  const Extents shape = x.type().shape;
  Variable result = x;
  const index_t levels = levels_here(A, x);
  for (index_t level = 0; level < levels; ++level) {
    Variable part = level == 0 ? x : ops::index(result, corner(shape, axes, level));
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const Variable shift = level == 0 && !shifts.empty() ? shifts[i] : Variable();
      part = analysed(part, static_cast<std::size_t>(axes[i]), filters, shift);
    }
    result = level == 0 ? part : ops::set_subtensor(result, corner(shape, axes, level), part);
  }
  return result;
}

Variable transformed_back(const NamedLinop& A, const Variable& y,
                          std::span<const Variable> shifts) {
  const Filters filters(A);
  const Axes axes = axes_of_wavelet(A, y);
  const Extents shape = y.type().shape;
  Variable result = y;
  for (index_t level = levels_here(A, y); level-- > 0;) {
    Variable part = level == 0 ? result : ops::index(result, corner(shape, axes, level));
    for (std::size_t i = axes.size(); i-- > 0;) {
      const Variable shift = level == 0 && !shifts.empty() ? shifts[i] : Variable();
      part = synthesized(part, static_cast<std::size_t>(axes[i]), filters, shift);
    }
    result = level == 0 ? part : ops::set_subtensor(result, corner(shape, axes, level), part);
  }
  return result;
}

Variable wavelet_fn(const NamedLinop& A, const Variable& x) { return transformed(A, x, {}); }
Variable wavelet_adj_fn(const NamedLinop& A, const Variable& y) {
  return transformed_back(A, y, {});
}

NamedLinop wavelet_split(const NamedLinop& A, const Tile& tile) {
  const Axes axes = A.attr("axes").as_integers();
  return split_besides(A, tile, axes, axes, "it is transformed");
}

void check_wavelet(const NamedLinop& A) {
  moments_of(A.attr("family").as_string());
  const index_t levels = A.attr("levels").as_integer();
  if (levels == kAutomaticLevels || (levels >= 0 && levels < 40)) return;
  throw ValueError(who(A) + "levels: got " + std::to_string(levels) + ", expected 0 to 39");
}

}  // namespace

Variable shifted_wavelet(const NamedLinop& W, const Variable& x,
                         const std::vector<Variable>& shifts) {
  return transformed(W, x, shifts);
}

Variable shifted_wavelet_adjoint(const NamedLinop& W, const Variable& y,
                                 const std::vector<Variable>& shifts) {
  return transformed_back(W, y, shifts);
}

int wavelet_levels(const Extents& sizes) {
  constexpr index_t kLeast = 16;
  int levels = 0;
  for (Extents now = sizes; !now.empty(); ++levels) {
    for (index_t& n : now) n = (n + 1) / 2;
    if (*std::min_element(now.begin(), now.end()) < kLeast) break;
  }
  return levels;
}

std::vector<double> wavelet_filter(std::string_view family) {
  return daubechies(moments_of(family));
}

const LinopType& linop_types::wavelet() {
  return PALIMPSEST_LINOP_TYPE(
          .name = "Wavelet",
          .functions = {.fn = wavelet_fn,
                        .adj_fn = wavelet_adj_fn,
                        .normal_fn = unchanged,
                        .split = wavelet_split},
          .adj_normal_fn = unchanged, .normal = unitary_normal, .check = check_wavelet,
          .inverse = [](const NamedLinop& A) { return A.H(); }, .one_shape = true);
}

NamedLinop Wavelet(Dims dims, Dims over, WaveletOptions options) {
  Axes axes;
  for (const ND& d : over) axes.push_back(axis_of(dims, d, "Wavelet"));
  return make_linop(
      linop_types::wavelet(), NamedShape(std::move(dims)), {},
      {{"axes", Attribute(axes)}, {"family", options.family}, {"levels", options.levels}});
}

}  // namespace palimpsest
