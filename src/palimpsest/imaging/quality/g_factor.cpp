// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/quality/g_factor.hpp"

#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/imaging/patterns.hpp"
#include "palimpsest/imaging/prelude.hpp"

namespace palimpsest {
namespace {

// Sums of the values and their squares over replicas, for each point.
class Deviation {
 public:
  void add(const Tensor& image) {
    const Tensor dense = image.contiguous();
    if (sums_.empty()) {
      shape_ = dense.shape();
      sums_.resize(static_cast<std::size_t>(dense.numel()));
      squares_.resize(sums_.size());
    }
    const auto* values = dense.data<Sample>();
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      sums_[i] += std::complex<double>(values[i]);
      squares_[i] += std::norm(std::complex<double>(values[i]));
    }
    ++count_;
  }
  Tensor result() const {
    Tensor deviation = Tensor::empty(shape_, DType::float32);
    float* out = deviation.mutable_data<float>();
    const auto n = static_cast<double>(count_);
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const double variance = (squares_[i] - std::norm(sums_[i]) / n) / (n - 1);
      out[i] = static_cast<float>(std::sqrt(std::max(variance, 0.0)));
    }
    return deviation;
  }

 private:
  Extents shape_;
  std::vector<std::complex<double>> sums_;
  std::vector<double> squares_;
  index_t count_ = 0;
};

}  // namespace

GFactor g_factor(const Tensor& maps, const Tensor& mask, const GFactorOptions& options) {
  if (options.replicas < 2) {
    throw ValueError(
        fmt::format("[g_factor] replicas: got {}, expected at least 2", options.replicas));
  }
  if (mask.dtype() != DType::bool_ || mask.rank() + 1 > maps.rank()) {
    throw ShapeError(fmt::format("[g_factor] got a mask {} {} for maps {}, expected bool (y, x)",
                                 name_of(mask.dtype()), to_string(mask.shape()),
                                 to_string(maps.shape())));
  }
  const Tensor dense = mask.contiguous();
  const index_t samples = count_samples(dense), points = dense.numel();
  if (samples == 0) throw ValueError("[g_factor] no samples in the mask. Try another pattern");
  const index_t coils = maps.shape(-static_cast<index_t>(mask.rank()) - 1);
  Extents grid = dense.shape();
  grid.insert(0, coils);
  ReconstructOptions how = options.reconstruct;
  if (!how.scale) how.scale = 1.0;
  const Tensor everywhere = Tensor::full<bool>(dense.shape(), true);
  Deviation accelerated, full;
  for (index_t k = 0; k < options.replicas; ++k) {
    Tensor noise = Tensor::random_normal(grid, DType::complex64,
                                         {options.seed, static_cast<std::uint64_t>(100 + k)});
    full.add(reconstruct(noise, maps, {.mask = everywhere}, how).image);
    noise = where(dense, noise, 0);
    accelerated.add(reconstruct(noise, maps, {.mask = dense}, how).image);
  }
  GFactor result;
  result.acceleration = static_cast<double>(points) / static_cast<double>(samples);
  result.deviation = accelerated.result();
  result.full_deviation = full.result();
  if (!are_quadratic(how.regularizers)) {
    result.warning = "nonlinear: noise passes otherwise beside an image than alone";
  }
  const auto root = static_cast<float>(std::sqrt(result.acceleration));
  const Tensor& full_deviation = result.full_deviation;
  result.g = where(full_deviation > 0, result.deviation / (full_deviation * root), 0);
  return result;
}

}  // namespace palimpsest
