// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/noise.hpp"

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/value_checks.hpp"
#include "palimpsest/io/cartesian.hpp"

namespace palimpsest {
namespace {

constexpr double kBorder = 0.95;  // of the half extent of an axis

// sum += n n^H of one readout, its mean removed.
void add_readout(const Sample* noise, index_t coils, index_t samples, std::vector<Complex>& sum) {
  std::vector<Complex> centered(static_cast<std::size_t>(coils * samples));
  for (index_t c = 0; c < coils; ++c) {
    Complex mean = 0;
    for (index_t s = 0; s < samples; ++s) mean += Complex(noise[c * samples + s]);
    mean /= static_cast<double>(samples);
    for (index_t s = 0; s < samples; ++s) {
      centered[static_cast<std::size_t>(c * samples + s)] = Complex(noise[c * samples + s]) - mean;
    }
  }
  for (index_t a = 0; a < coils; ++a) {
    for (index_t b = 0; b < coils; ++b) {
      const Complex* x = centered.data() + a * samples;
      const Complex* y = centered.data() + b * samples;
      Complex product = 0;
      for (index_t s = 0; s < samples; ++s) product += x[s] * std::conj(y[s]);
      sum[static_cast<std::size_t>(a * coils + b)] += product;
    }
  }
}

double dwell_factor(const NoiseOptions& o) {
  if (!o.noise_dwell && !o.imaging_dwell) return 1;
  const double noise = o.noise_dwell.value_or(0), imaging = o.imaging_dwell.value_or(0);
  if (!(noise > 0) || !(imaging > 0) || !(o.bandwidth > 0)) {
    throw ValueError(
        fmt::format("[noise_covariance] dwell times and bandwidth: got {}, {} and {}, expected "
                    "positive numbers",
                    noise, imaging, o.bandwidth));
  }
  return noise / imaging / o.bandwidth;
}

// Measured samples at the border of k-space (C, [z,] y, x), as one readout (C, samples).
Tensor border_of(const Tensor& kspace) {
  const Tensor dense = kspace.contiguous();
  const Sample* data = dense.data<Sample>();
  const index_t coils = kspace.shape(0), points = coils > 0 ? kspace.numel() / coils : 0;
  std::vector<index_t> taken;
  for (index_t p = 0; p < points; ++p) {
    index_t rest = p;
    bool is_border = false, is_measured = false;
    for (std::size_t axis = kspace.rank(); axis-- > 1;) {
      const index_t n = kspace.shape(static_cast<index_t>(axis)), j = rest % n;
      rest /= n;
      is_border |=
          n > 1 && std::abs(static_cast<double>(2 * j + 1 - n)) > kBorder * static_cast<double>(n);
    }
    for (index_t c = 0; c < coils && is_border; ++c) {
      is_measured |= data[c * points + p] != Sample(0);
    }
    if (is_measured) taken.push_back(p);
  }
  const auto samples = std::ssize(taken);
  Tensor border = Tensor::empty({coils, samples}, DType::complex64);
  auto* out = border.mutable_data<Sample>();
  for (index_t c = 0; c < coils; ++c) {
    for (const index_t p : taken) *out++ = data[c * points + p];
  }
  return border;
}

}  // namespace

Tensor noise_covariance(const Tensor& noise, const NoiseOptions& options) {
  if ((noise.rank() != 2 && noise.rank() != 3) || noise.dtype() != DType::complex64) {
    throw ShapeError(
        fmt::format("[noise_covariance] got {} {}, expected complex64 (coil, sample) or (readout, "
                    "coil, sample)",
                    name_of(noise.dtype()), to_string(noise.shape())));
  }
  expect_finite("noise_covariance", "the noise", noise);
  const double factor = dwell_factor(options);
  const Tensor dense = noise.contiguous();
  const index_t readouts = noise.rank() == 3 ? noise.shape(0) : 1;
  const index_t coils = noise.shape(-2), samples = noise.shape(-1);
  if (coils == 0 || readouts * samples < 2) {
    throw ValueError(
        fmt::format("[noise_covariance] too little noise: got the shape {}, expected at "
                    "least two samples of a coil",
                    to_string(noise.shape())));
  }
  std::vector<Complex> sum(static_cast<std::size_t>(coils * coils));
  for (index_t r = 0; r < readouts; ++r) {
    add_readout(dense.data<Sample>() + r * coils * samples, coils, samples, sum);
  }
  for (Complex& v : sum) v *= factor / static_cast<double>(readouts * samples - 1);
  return Tensor::from(sum, Extents{coils, coils});
}

Tensor whiten(const Tensor& kspace, const std::optional<Tensor>& covariance,
              const WhitenOptions& options) {
  if (covariance && options.from_border) {
    throw ValueError("[whiten] got a covariance and from_border, expected one of them");
  }
  if (covariance) return prewhitened(kspace, *covariance);
  if (!options.from_border) {
    throw ValueError(
        "[whiten] there are no noise readouts: expected a covariance. Try from_border");
  }
  if (kspace.rank() < 2 || kspace.dtype() != DType::complex64) {
    throw ShapeError(fmt::format("[whiten] got {} {}, expected complex64 (coil, .., x)",
                                 name_of(kspace.dtype()), to_string(kspace.shape())));
  }
  const Tensor border = border_of(kspace);
  if (border.shape(1) < 2 * border.shape(0)) {
    throw ValueError(fmt::format(
        "[whiten] too little noise at the border of k-space: got {} samples of {} coils, expected "
        "twice as many as coils",
        border.shape(1), border.shape(0)));
  }
  return prewhitened(kspace, noise_covariance(border, {}));
}

}  // namespace palimpsest
