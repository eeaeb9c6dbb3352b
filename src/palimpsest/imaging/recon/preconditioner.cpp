// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/recon/preconditioner.hpp"

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/solve/spectrum.hpp"

namespace palimpsest {
namespace {

// Least value relative to the mean: below it the bound says nothing about single samples.
constexpr float kLeast = 0.02F;
// Coil maps that are cut off raise the bound by up to a fifth: measured with supports of several
// forms, singular phases and phases relative to one coil.
constexpr double kForMaps = 1.25;
// K is the oversampled grid of the Nufft.
constexpr const char* kSpectrum = "W";

NamedLinop spectrum(const Dims& image, const Dims& batch) {
  return Fft(static_cast<int>(image.size()), {.batch = batch,
                                              .grid = Grid{image, grid_of(image, kSpectrum)},
                                              .norm = FftNorm::ortho,
                                              .centered = true});
}

// The largest of the values within kDilation points along an axis, around the edges.
void dilate(std::vector<float>& values, const Extents& extents, std::size_t axis) {
  index_t inner = 1;
  for (std::size_t k = axis + 1; k < extents.size(); ++k) inner *= extents[k];
  const index_t n = extents[axis], lines = std::ssize(values) / n;
  std::vector<float> line(static_cast<std::size_t>(n));
  for (index_t l = 0; l < lines; ++l) {
    const index_t first = l / inner * inner * n + l % inner;
    for (index_t i = 0; i < n; ++i) {
      line[static_cast<std::size_t>(i)] = values[static_cast<std::size_t>(first + i * inner)];
    }
    for (index_t i = 0; i < n; ++i) {
      float most = 0;
      for (index_t d = -std::min(kDilation, n - 1); d <= std::min(kDilation, n - 1); ++d) {
        most = std::max(most, line[static_cast<std::size_t>((i + d + n) % n)]);
      }
      values[static_cast<std::size_t>(first + i * inner)] = most;
    }
  }
}

// The spectrum of the point spread function.
std::vector<float> psf_spectrum(const NamedLinop& F, const Dims& image, const Extents& extents) {
  Extents coil = extents;
  coil.insert(0, 1);
  Tensor point = Tensor::zeros(coil, DType::complex64);
  index_t middle = 0;
  for (const index_t n : extents) middle = middle * n + n / 2;
  point.mutable_data<Sample>()[middle] = 1;
  const Tensor image_of_it = F.N()(point);
  // Frees the workspace of this one application: it would stay with each of many frames.
  compiled_function(F.N(), {DType::complex64, coil, {}}).free();
  const Tensor spread = spectrum(image, "C")(image_of_it).contiguous();
  const float scale = std::sqrt(static_cast<float>(spread.numel()));
  std::vector<float> density(static_cast<std::size_t>(spread.numel()));
  std::transform(spread.data<Sample>(), spread.data<Sample>() + spread.numel(), density.begin(),
                 [scale](const Sample& v) { return std::max(0.0F, scale * v.real()); });
  return density;
}

}  // namespace

Dims grid_of(const Dims& image, const char* letter) {
  Dims grid;
  for (const ND& d : image) grid.push_back(ND(letter + d.str().substr(1)));
  return grid;
}

SpectralBound spectral_bound(const std::vector<NamedLinop>& transforms, const Dims& image,
                             const Extents& extents, bool has_frames) {
  SpectralBound bound;
  Extents shape = extents;
  if (has_frames) shape.insert(0, std::ssize(transforms));
  bound.q = Tensor::empty(shape, DType::float32);
  bound.factor = bound.mean = 0;
  float* to = bound.q.mutable_data<float>();
  const Dims k = grid_of(image, kSpectrum);
  Extents coil = extents;
  coil.insert(0, 1);
  for (const NamedLinop& F : transforms) {
    std::vector<float> q = psf_spectrum(F, image, extents);
    double sum = 0;
    for (const float v : q) sum += double{v};
    const double mean = sum / static_cast<double>(q.size());
    for (std::size_t axis = 0; axis < extents.size(); ++axis) dilate(q, extents, axis);
    for (float& v : q) v = std::max(v, kLeast * static_cast<float>(mean));
    to = std::copy(q.begin(), q.end(), to);
    Tensor root = Tensor::empty(extents, DType::float32);
    std::transform(q.begin(), q.end(), root.mutable_data<float>(),
                   [](float v) { return 1 / std::sqrt(v); });
    const NamedLinop D = spectrum(image, "C");
    const NamedLinop R = Chain(D, Diagonal(root, Dims("C") + k, {.weight_shape = k}), D.H(), F);
    const double factor = operator_norm2(R, {DType::complex64, coil, {}}).value;
    bound.factor = std::max(bound.factor, kForMaps * factor);
    bound.mean += mean / static_cast<double>(transforms.size());
  }
  return bound;
}

Tensor spectral_steps(const SpectralBound& bound, double scale, double rest) {
  Tensor steps = Tensor::empty(bound.q.shape(), DType::float32);
  const double half = scale * bound.factor / 2;
  std::transform(
      bound.q.data<float>(), bound.q.data<float>() + bound.q.numel(), steps.mutable_data<float>(),
      [half, rest](float q) { return static_cast<float>(0.99 / (half * double{q} + rest)); });
  return steps;
}

double mean_square_frequency(const Tensor& maps, std::size_t n_spatial) {
  const Tensor dense = maps.contiguous();
  const auto* v = dense.data<Sample>();
  double result = 0;
  index_t inner = 1;
  for (std::size_t k = 1; k <= n_spatial; ++k) {
    const index_t n = dense.shape(-static_cast<index_t>(k));
    double moved = 0, size = 0;
    for (index_t i = 0, end = dense.numel(); i < end; ++i) {
      const Sample here = v[i];
      if (i / inner % n + 1 == n || here == Sample(0)) continue;
      const Sample next = v[i + inner];
      if (next == Sample(0)) continue;
      moved += double{std::norm(next - here)};
      size += (double{std::norm(here)} + double{std::norm(next)}) / 2;
    }
    const double per_cycle = static_cast<double>(n) / (2 * std::numbers::pi);
    if (size > 0) result += per_cycle * per_cycle * moved / size;
    inner *= n;
  }
  return result;
}

double largest_norm2(const Tensor& maps) {
  double largest = 0;
  const Extents& n = maps.shape();
  std::vector<double> sums(static_cast<std::size_t>(n[3]));
  for (index_t z = 0; z < n[1]; ++z) {
    for (index_t y = 0; y < n[2]; ++y) {
      std::fill(sums.begin(), sums.end(), 0);
      for (index_t c = 0; c < n[0]; ++c) {
        const Tensor line = maps.select(0, c).select(0, z).select(0, y);
        const Tensor dense = line.to(DType::complex64).contiguous();
        const auto* v = dense.data<std::complex<float>>();
        for (std::size_t x = 0; x < sums.size(); ++x) {
          sums[x] += std::norm(std::complex<double>(v[x]));
        }
      }
      largest = std::max(largest, *std::max_element(sums.begin(), sums.end()));
    }
  }
  return std::isfinite(largest) && largest > 0 ? largest : 1;
}

}  // namespace palimpsest
