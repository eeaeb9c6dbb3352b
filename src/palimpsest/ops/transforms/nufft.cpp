// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/transforms/nufft.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/transforms/fft.hpp"
#include "palimpsest/ops/transforms/nufft_geometry.hpp"

namespace palimpsest {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kUsualOversampling = 1.25, kLargeOversampling = 2;
constexpr int kWidestForEps = 16;

bool has_small_factors(index_t n) {
  for (index_t p : {2, 3, 5, 7}) {
    while (n % p == 0) n /= p;
  }
  return n == 1;
}

// The smallest width with an expected error of at most eps; 0 if there is none.
int width_for(double eps, int ndim, double oversamp) {
  for (int w = 2; w <= kWidestForEps; ++w) {
    if (nufft_expected_error(ndim, w, oversamp) <= eps) return w;
  }
  return 0;
}

double bessel_i0(double x) {
  double term = 1, sum = 1;
  for (int k = 1; term > 1e-18 * sum; ++k) sum += term *= x * x / (4.0 * k * k);
  return sum;
}

// q / sinh(q) for q^2 = square, of either sign.
double inverse_sinhc(double square) {
  const double q = std::sqrt(std::abs(square));
  if (q < 1e-8) return 1;
  return square > 0 ? q / std::sinh(q) : q / std::sin(q);
}

// By how much rounding errors of the transform grow: at a small oversampling the edges of the image
// are amplified before the transform, and the interpolation takes that back by cancellation. Per
// axis the l2 norm of the kernel times the rms of the factors.
double rounding_growth(double width, double oversamp) {
  constexpr int kSamples = 64;
  const double beta = kaiser_bessel_beta(width, oversamp);
  double factors = 0, kernel = 0;
  for (int i = 0; i < kSamples; ++i) {
    const double u = (i + 0.5) / kSamples - 0.5, phase = kPi * width * u / oversamp;
    const double factor = inverse_sinhc(beta * beta - phase * phase) / width;
    const double value = bessel_i0(beta * std::sqrt(1 - 4 * u * u));
    factors += factor * factor / kSamples;
    kernel += value * value * width / kSamples;
  }
  return std::sqrt(factors * kernel);
}

// Width and oversampling that the options ask for.
struct GridChoice {
  GridChoice(const NufftOptions& options, int ndim, DType real, const std::string& prefix)
      : oversamp(options.oversamp.value_or(kUsualOversampling)),
        width(options.width.value_or(PerAxis(4.0))) {
    if (!(oversamp > 1 && oversamp <= 16)) {
      throw ValueError(prefix + "oversamp: got " + fmt::format("{}", oversamp) +
                       ", expected more than 1 and at most 16");
    }
    if (!options.eps) return;
    const double eps = *options.eps, least = real == DType::float32 ? 1e-6 : 1e-14;
    if (options.width) {
      throw ValueError(prefix + "eps: got both eps and width, expected one of them");
    }
    if (!(eps >= least)) {
      throw ValueError(prefix + "eps: got " + fmt::format("{}", eps) + ", expected at least " +
                       (real == DType::float32 ? "1e-6 in single" : "1e-14 in double") +
                       " precision");
    }
    int found = width_for(eps, ndim, oversamp);
    const double unit = real == DType::float32 ? 6e-8 : 1.1e-16;
    const auto rounds_away = [&] {
      return unit * std::pow(rounding_growth(found, oversamp), ndim) > eps / 4;
    };
    if (!options.oversamp && (found == 0 || rounds_away())) {
      oversamp = kLargeOversampling;
      found = width_for(eps, ndim, oversamp);
    }
    if (found == 0) {
      throw ValueError(prefix + "eps: no width up to 16 is enough at an oversampling of " +
                       fmt::format("{}", oversamp) + ". Try a larger oversamp");
    }
    width = PerAxis(static_cast<double>(found));
  }

  double oversamp;
  PerAxis width;
};

// Positions on the padded grid: scale * loc + shift.
double position_scale(const NufftOptions& options, double n, double padded) {
  const double cycles = options.units == LocsUnit::cycles       ? 1
                        : options.units == LocsUnit::normalized ? n
                                                                : n / (2 * kPi);
  // The FFT has the sign -1.
  return -options.sign * cycles * padded / n;
}

}  // namespace

index_t nufft_padded_size(index_t n, double oversamp, bool fast) {
  auto size = std::max<index_t>(
      static_cast<index_t>(std::ceil(oversamp * static_cast<double>(n) - 1e-9)), 1);
  if (!fast) return size;
  size += size % 2;
  while (!has_small_factors(size)) size += 2;
  return size;
}

namespace {

double beta_of(double width, double oversamp, const std::string& prefix) {
  const double ratio = width / oversamp * (oversamp - 0.5);
  const double square = ratio * ratio - 0.8;
  if (square >= 0 && width > 0) return kPi * std::sqrt(square);
  throw ValueError(prefix + "width: got " + fmt::format("{}", width) + " at an oversampling of " +
                   fmt::format("{}", oversamp) + ", expected a wider kernel. Try width 2");
}

}  // namespace

double kaiser_bessel_beta(double width, double oversamp) {
  return beta_of(width, oversamp, "[kaiser_bessel_beta] ");
}

// Measured errors of one axis are 1.3, 1.9 and 2.9 times the exponential at an oversampling of
// 1.25, 1.5 and 2; half is added for kernels of two and three points and for small samples.
double nufft_expected_error(int ndim, double width, double oversamp) {
  const double factor = 1.5 * (2 * oversamp - 1.1);
  return std::sqrt(ndim) * factor * std::exp(-kPi * width * std::sqrt(1 - 1 / oversamp));
}

double nufft_error_bound(double width, double oversamp) {
  return 6 * std::exp(-kPi * width * std::sqrt(1 - 1 / oversamp));
}

NufftGeometry::NufftGeometry(const Extents& image_size, const NufftOptions& options, DType real,
                             std::string_view who)
    : image(image_size) {
  const std::string prefix = "[" + std::string(who) + "] ";
  const int n_axes = static_cast<int>(image.size());
  if (n_axes < 1 || n_axes > 3) {
    throw ValueError(prefix + "grid_size: got " + to_string(image) +
                     ", expected 1, 2 or 3 sizes, one per coordinate of locs");
  }
  if (options.sign != 1 && options.sign != -1) {
    throw ValueError(prefix + "sign: got " + std::to_string(options.sign) + ", expected -1 or +1");
  }
  const GridChoice choice(options, n_axes, real, prefix);
  oversamp = choice.oversamp;
  spec.ndim = n_axes;
  if (!choice.width.fits(image.size()) || (options.beta && !options.beta->fits(image.size()))) {
    throw ValueError(prefix + "width, beta: expected one number, or one per axis");
  }
  for (std::size_t d = 0; d < image.size(); ++d) {
    if (image[d] < 1) {
      throw ValueError(prefix + "grid_size: got " + to_string(image) + ", expected positive sizes");
    }
    if (image[d] > std::numeric_limits<std::int32_t>::max()) {
      throw OverflowError(prefix + "grid_size: got " + to_string(image) +
                          ", expected sizes of 31 bits");
    }
    const double n = static_cast<double>(image[d]), w = choice.width[d];
    padded.push_back(nufft_padded_size(image[d], choice.oversamp, options.fast_size));
    const double p = static_cast<double>(padded[d]);
    spec.grid[d] = padded[d];
    spec.width[d] = w;
    spec.beta[d] = options.beta ? (*options.beta)[d] : beta_of(w, p / n, prefix);
    if (!options.prepared) {
      spec.scale[d] = position_scale(options, n, p);
      spec.shift[d] = static_cast<double>(padded[d] / 2);
    }
    axis_scale[d] = (options.scale == NufftScale::ortho ? std::sqrt(p / n) : std::sqrt(p)) / w;
    spec.factor[d] = 1 / bessel_i0(spec.beta[d]);
  }
}

Tensor NufftGeometry::apodization(std::size_t axis, DType real) const {
  const index_t n = image[axis];
  const double beta = spec.beta[axis], p = static_cast<double>(padded[axis]);
  const double scale = axis_scale[axis] / spec.factor[axis];
  std::vector<double> values;
  for (index_t i = 0; i < n; ++i) {
    const double phase = kPi * spec.width[axis] * static_cast<double>(i - n / 2) / p;
    values.push_back(scale * inverse_sinhc(beta * beta - phase * phase));
  }
  return Tensor::from(values).to(real);
}

GriddingSpec NufftGeometry::spec_for_given_apodization() const {
  GriddingSpec result = spec;
  result.factor = axis_scale;
  return result;
}

namespace ops {
namespace {

Axes last_axes(std::size_t n) {
  Axes axes;
  for (std::size_t i = 0; i < n; ++i)
    axes.push_back(static_cast<index_t>(i) - static_cast<index_t>(n));
  return axes;
}

// The factors of the image: the given apodization, or those of the axes.
std::vector<Variable> factors_of(const NufftGeometry& g, const TensorType& x,
                                 const Variable& apodization) {
  if (apodization.defined()) return {apodization};
  std::vector<Variable> result;
  for (std::size_t d = 0; d < g.ndim(); ++d) {
    Extents shape(g.ndim() - d, 1);
    shape[0] = g.image[d];
    result.push_back(constant(g.apodization(d, real_of(x.dtype)).reshape(shape).to(x.device)));
  }
  return result;
}

void check_image(const NufftGeometry& g, const Variable& x) {
  const std::span<const index_t> shape = x.type().shape;
  const std::span<const index_t> image = g.image;
  if (shape.size() >= image.size() &&
      std::equal(image.begin(), image.end(), shape.last(image.size()).begin())) {
    return;
  }
  throw ShapeError("[nufft] image: got " + x.type().str() + ", expected the last axes to be " +
                   to_string(image));
}

Extents image_of(const Variable& x, const Variable& locs) {
  const TensorType& type = locs.type();
  const index_t n = type.rank() == 0 ? 0 : type.shape[type.rank() - 1];
  const std::span<const index_t> shape = x.type().shape;
  if (n < 1 || n > 3) {
    throw ValueError("[nufft] locs: got " + type.str() +
                     ", expected 1, 2 or 3 coordinates along the last axis");
  }
  const auto rank = static_cast<std::size_t>(n);
  const bool known = shape.size() >= rank && std::none_of(shape.end() - n, shape.end(),
                                                          [](index_t e) { return e == kUnknown; });
  if (known) return shape.last(rank);
  throw ShapeError("[nufft] image: got " + x.type().str() + ", expected " + std::to_string(n) +
                   " last axes of known extents. Try specify_shape");
}

}  // namespace

Variable padded_spectrum(const NufftGeometry& g, const Variable& x,
                         std::span<const Variable> factors) {
  check_image(g, x);
  Variable image = astype(x, complex_of(x.dtype()));
  for (const Variable& factor : factors) image = image * factor;
  std::vector<std::pair<index_t, index_t>> widths(x.rank(), {0, 0});
  for (std::size_t d = 0; d < g.ndim(); ++d) {
    const index_t before = g.padded[d] / 2 - g.image[d] / 2;
    widths[x.rank() - g.ndim() + d] = {before, g.padded[d] - g.image[d] - before};
  }
  return fft(pad(image, std::move(widths)), last_axes(g.ndim()),
             {.norm = FftNorm::ortho, .centered = true});
}

Variable padded_spectrum_adjoint(const NufftGeometry& g, const Variable& grid,
                                 std::span<const Variable> factors) {
  const Variable padded =
      fft_adjoint(grid, last_axes(g.ndim()), {.norm = FftNorm::ortho, .centered = true});
  std::vector<Index> centre{ellipsis};
  for (std::size_t d = 0; d < g.ndim(); ++d) {
    const index_t before = g.padded[d] / 2 - g.image[d] / 2;
    centre.push_back(slice(before, before + g.image[d]));
  }
  Variable image = index(padded, std::move(centre));
  for (const Variable& factor : factors) image = image * conj(factor);
  return image;
}

Variable nufft_graph(const NufftGeometry& g, const GriddingPlan& plan, const Variable& x,
                     const Variable& locs, const Variable& order, const Variable& apodization) {
  const Variable grid = padded_spectrum(g, x, factors_of(g, x.type(), apodization));
  return interpolate(plan, grid, locs, order);
}

Variable nufft_adjoint_graph(const NufftGeometry& g, const GriddingPlan& plan, const Variable& y,
                             const Variable& locs, const Variable& order,
                             const Variable& apodization) {
  const Variable samples = astype(y, complex_of(y.dtype()));
  const Variable grid = interpolate_adjoint(plan, samples, locs, order);
  return padded_spectrum_adjoint(g, grid, factors_of(g, y.type(), apodization));
}

Variable nufft(const Variable& x, const Variable& locs, NufftOptions options) {
  const NufftGeometry g(image_of(x, locs), options, real_of(x.dtype()), "nufft");
  const GriddingPlan plan = g.interpolation();
  return nufft_graph(g, plan, x, locs, point_order(plan, locs));
}

Variable nufft_adjoint(const Variable& y, const Variable& locs, const Extents& image_size,
                       NufftOptions options) {
  const NufftGeometry g(image_size, options, real_of(y.dtype()), "nufft_adjoint");
  const GriddingPlan plan = g.interpolation();
  return nufft_adjoint_graph(g, plan, y, locs, point_order(plan, locs));
}

}  // namespace ops
}  // namespace palimpsest
