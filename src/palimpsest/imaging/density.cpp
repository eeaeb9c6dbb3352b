// SPDX-License-Identifier: Apache-2.0

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "palimpsest/linop/transforms/interpolate.hpp"

namespace palimpsest {
namespace {

constexpr int kDensitySteps = 30;
constexpr double kChange = 1e-3;
constexpr double kWidth = 4;  // of the kernel, in points of the grid of twice the size

struct Points {
  index_t readouts = 0, samples = 0;
  std::size_t d = 0;
  const float* k = nullptr;

  double norm(index_t i) const {
    double sum = 0;
    for (std::size_t a = 0; a < d; ++a) {
      const double v = static_cast<double>(k[static_cast<std::size_t>(i) * d + a]);
      sum += v * v;
    }
    return std::sqrt(sum);
  }
  double distance(index_t i, index_t j) const {
    double sum = 0;
    for (std::size_t a = 0; a < d; ++a) {
      const double v = static_cast<double>(k[static_cast<std::size_t>(i) * d + a]) -
                       static_cast<double>(k[static_cast<std::size_t>(j) * d + a]);
      sum += v * v;
    }
    return std::sqrt(sum);
  }
};

// The distance of neighbouring samples, the same along all of a line through the middle.
double step_of_spoke(const Points& p, index_t spoke) {
  const index_t first = spoke * p.samples, last = first + p.samples - 1;
  const double length = p.distance(first, last);
  const double dk = p.samples > 1 ? length / static_cast<double>(p.samples - 1) : 0;
  bool is_line = dk > 0;
  for (index_t i = first; i <= last && is_line; ++i) {
    // On the line between the ends, and that through the middle.
    const double on = p.distance(first, i) + p.distance(i, last) - length;
    const double even = p.distance(first, i) - dk * static_cast<double>(i - first);
    is_line = std::abs(on) < 1e-3 * dk && std::abs(even) < 1e-2 * dk;
  }
  const double through = p.norm(first) + p.norm(last) - length;
  if (is_line && std::abs(through) < 1e-3 * dk) return dk;
  throw ValueError(fmt::format(
      "[density_compensation] analytic weights are those of even samples on lines through the "
      "middle: readout {} is not such a line. Try pipe",
      spoke));
}

void analytic(const Points& p, float* w) {
  const auto spokes = static_cast<double>(p.readouts);
  for (index_t s = 0; s < p.readouts; ++s) {
    const double dk = step_of_spoke(p, s);
    for (index_t j = 0; j < p.samples; ++j) {
      const index_t i = s * p.samples + j;
      const double r = p.norm(i);
      const bool is_middle = r < 1e-3 * dk;
      double area = 0;
      if (p.d == 2) {
        area = is_middle ? std::numbers::pi * dk * dk / 4 : std::numbers::pi * r * dk;
      } else {
        area = is_middle ? std::numbers::pi * dk * dk * dk / 6 : 2 * std::numbers::pi * r * r * dk;
      }
      w[i] = static_cast<float>(area / spokes);
    }
  }
}

void pipe(const Points& p, float* w) {
  const index_t n = p.readouts * p.samples;
  double largest = 0;
  for (index_t i = 0; i < n; ++i) largest = std::max(largest, p.norm(i));
  // Positions on a grid of twice the size with room for the kernel.
  const auto half = static_cast<index_t>(std::ceil(2 * largest + kWidth));
  std::vector<float> locs;
  for (index_t i = 0; i < n * static_cast<index_t>(p.d); ++i) {
    locs.push_back(2 * p.k[i] + static_cast<float>(half));
  }
  const Extents grid(p.d, 2 * half + 1);
  const NamedLinop G = Interpolate(Tensor::from(locs, Extents{n, static_cast<index_t>(p.d)}), grid,
                                   {.width = kWidth, .locs_batch = "K"});
  Tensor weights = Tensor::full<float>({n}, 1.0F);
  for (int step = 0; step < kDensitySteps; ++step) {
    const std::vector<float> density = G(G.H()(weights)).to_vector<float>();
    double change = 0;
    float* const now = weights.mutable_data<float>();
    for (index_t i = 0; i < n; ++i) {
      const float d = std::abs(density[static_cast<std::size_t>(i)]);
      if (!(d > 0)) continue;
      change = std::max(change, std::abs(1.0 / static_cast<double>(d) - 1));
      now[i] /= d;
    }
    if (change < kChange) break;
  }
  // G G^H w = 1 makes w the area of a sample, on the grid of twice the size, over the squared sum
  // of the kernel. (Samples at the border also cover the area that the kernel reaches beyond them.)
  const std::vector<float> sums = G(Tensor::full<float>(grid, 1.0F)).to_vector<float>();
  double kernel = 0;
  for (const float v : sums) kernel += static_cast<double>(v) / static_cast<double>(n);
  const double scale = kernel * kernel / std::pow(2.0, static_cast<double>(p.d));
  const std::vector<float> values = weights.to_vector<float>();
  for (index_t i = 0; i < n; ++i) {
    w[i] = static_cast<float>(static_cast<double>(values[static_cast<std::size_t>(i)]) * scale);
  }
}

}  // namespace

Tensor density_compensation(const Tensor& trajectory, DensityMethod method) {
  const index_t d = trajectory.rank() > 0 ? trajectory.shape(-1) : 0;
  if (trajectory.rank() != 3 || trajectory.dtype() != DType::float32 || (d != 2 && d != 3) ||
      trajectory.numel() == 0) {
    throw ShapeError(
        fmt::format("[density_compensation] got {} {}, expected float32 (readout, sample, 2 or 3)",
                    name_of(trajectory.dtype()), to_string(trajectory.shape())));
  }
  const Tensor dense = trajectory.contiguous();
  const Points p{dense.shape(0), dense.shape(1), static_cast<std::size_t>(d), dense.data<float>()};
  for (index_t i = 0, end = dense.numel(); i < end; ++i) {
    if (std::isfinite(p.k[i])) continue;
    throw ValueError(fmt::format(
        "[density_compensation] the trajectory is not finite: got {} at element {}", p.k[i], i));
  }
  Tensor weights = Tensor::empty({p.readouts, p.samples}, DType::float32);
  if (method == DensityMethod::analytic) {
    analytic(p, weights.mutable_data<float>());
  } else {
    pipe(p, weights.mutable_data<float>());
  }
  return weights;
}

}  // namespace palimpsest
