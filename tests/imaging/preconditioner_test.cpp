// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/recon/preconditioner.hpp"

#include <gtest/gtest.h>

#include <complex>

#include "palimpsest/imaging/trajectories.hpp"
#include "palimpsest/linop/transforms/fft.hpp"
#include "palimpsest/linop/transforms/nufft.hpp"

namespace palimpsest {
namespace {

using Sample = std::complex<float>;

constexpr index_t kRows = 48, kColumns = 40;

TEST(Preconditioner, BoundsTheNormalOperatorForEachFrequency) {
  const Tensor trajectory = radial_trajectory({.spokes = 21, .samples = 64, .oversampling = 2});
  const Extents extents{kRows, kColumns};
  const Dims image("Ny Nx"), k("Ky Kx");
  const NamedLinop F = Nufft(coordinates_of_grid(trajectory), extents, "Sp Ro",
                             {.input = image, .kspace = k, .batch = "C"});
  const SpectralBound bound = spectral_bound({F}, image, extents, false);
  EXPECT_NEAR(bound.mean, 21 * 64.0 / (kRows * kColumns), 0.1 * bound.mean);
  const Tensor steps = spectral_steps(bound, 1, 0);
  const NamedLinop D = Fft(2, {.batch = "C", .grid = Grid{image, k}, .centered = true});
  const auto energy = [](const Tensor& x) {
    double sum = 0;
    for (const Sample value : x.contiguous().to_vector<Sample>()) sum += double{std::norm(value)};
    return sum;
  };
  for (std::uint64_t seed = 1; seed < 6; ++seed) {
    // Random numbers plus a low frequency, where spokes are densest.
    Tensor x = Tensor::random_normal({1, kRows, kColumns}, DType::complex64, {seed});
    if (seed > 3) x = Tensor::full<Sample>({1, kRows, kColumns}, Sample(1));
    const std::vector<Sample> spectrum = D(x).contiguous().to_vector<Sample>();
    double limit = 0;
    for (std::size_t i = 0; i < spectrum.size(); ++i) {
      limit += double{std::norm(spectrum[i])} * 2 * 0.99 / double{steps.data<float>()[i]};
    }
    EXPECT_LE(energy(F(x)), limit) << seed;
  }
}

}  // namespace
}  // namespace palimpsest
