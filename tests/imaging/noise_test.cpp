// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/noise.hpp"

#include <gtest/gtest.h>

#include <complex>

#include "imaging/simulated.hpp"
#include "palimpsest/base/error.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::Sample;
using Complex = std::complex<double>;

// Correlated noise of three coils: (3, samples).
Tensor mixed_noise(index_t samples) {
  const std::vector<Sample> white =
      Tensor::random_normal({3, samples}, DType::complex64, {5, 0}).to_vector<Sample>();
  const Sample mix[3][3] = {
      {{2, 0}, {0, 1}, {0, 0}}, {{0.5F, 0}, {1, 0}, {0, 0}}, {{0, 0}, {1, 1}, {3, 0}}};
  std::vector<Sample> result(white.size());
  for (index_t c = 0; c < 3; ++c) {
    for (index_t s = 0; s < samples; ++s) {
      for (index_t k = 0; k < 3; ++k) {
        result[static_cast<std::size_t>(c * samples + s)] +=
            mix[c][k] * white[static_cast<std::size_t>(k * samples + s)];
      }
    }
  }
  return Tensor::from(result, Extents{3, samples});
}

TEST(NoiseCovariance, IsTheMeanOfProductsWithoutTheMeanOfReadouts) {
  // Two readouts of two coils with offsets, which are removed.
  const std::vector<Sample> noise = {{11, 0}, {9, 0},  {5, 1}, {5, -1},  // first readout
                                     {-2, 3}, {-4, 3}, {0, 8}, {0, 6}};  // second
  const Tensor psi = noise_covariance(Tensor::from(noise, Extents{2, 2, 2}), {});
  // Centred: coil 0 (1, -1), (1, -1); coil 1 (i, -i), (i, -i); three degrees of freedom.
  const std::vector<Complex> expected = {{4.0 / 3, 0}, {0, -4.0 / 3}, {0, 4.0 / 3}, {4.0 / 3, 0}};
  EXPECT_TRUE(allclose(psi, Tensor::from(expected, Extents{2, 2}), 1e-12, 1e-12));
}

TEST(NoiseCovariance, FollowsTheDwellTimes) {
  const Tensor noise = mixed_noise(100);
  const Tensor plain = noise_covariance(noise, {});
  const Tensor scaled =
      noise_covariance(noise, {.noise_dwell = 5, .imaging_dwell = 2, .bandwidth = 0.5});
  EXPECT_NEAR(scaled.at<Complex>({1, 0}).real(), 5 * plain.at<Complex>({1, 0}).real(), 1e-9);
  const Tensor usual = noise_covariance(noise, {.noise_dwell = 2, .imaging_dwell = 2});
  EXPECT_NEAR(usual.at<Complex>({0, 0}).real(), plain.at<Complex>({0, 0}).real() / 0.793, 1e-9);
}

TEST(Whiten, MakesTheCovarianceTheIdentity) {
  const Tensor noise = mixed_noise(4000);
  const Tensor white = whiten(noise, noise_covariance(noise, {}));
  EXPECT_TRUE(allclose(noise_covariance(white, {}), Tensor::eye(3, DType::complex128), 1e-4, 1e-4));
}

TEST(Whiten, TakesTheBorderWhereNothingElseIsThere) {
  // Noise everywhere, and a signal in the middle that is ignored.
  Tensor kspace = mixed_noise(80 * 80).view({3, 80, 80}).clone();
  kspace.narrow(1, 20, 40).narrow(2, 20, 40).fill<Sample>(Sample(1000, 0));
  const Tensor white = whiten(kspace, std::nullopt, {.from_border = true});
  const Tensor corner = white.narrow(1, 0, 20).clone().view({3, 20 * 80});
  EXPECT_TRUE(allclose(noise_covariance(corner, {}), Tensor::eye(3, DType::complex128), 0.2, 0.2));
}

TEST(Whiten, NamesWhatIsWrong) {
  const Tensor noise = mixed_noise(50);
  expect_error<ValueError>([&] { whiten(noise, std::nullopt); }, "noise");
  expect_error<ValueError>([&] { whiten(noise, std::nullopt, {.from_border = true}); },
                           "got 2 samples");
  expect_error<ShapeError>([&] { whiten(noise, Tensor::eye(2, DType::complex128)); }, "(2, 2)");
  expect_error<ValueError>(
      [&] {
        whiten(noise, Tensor::zeros({3, 3}, DType::complex128));
      },
      "not positive definite at coil 0");
  expect_error<ShapeError>([] { noise_covariance(Tensor::ones({2, 9}), {}); }, "complex64");
  expect_error<ValueError>(
      [] {
        noise_covariance(Tensor::ones({2, 1}, DType::complex64), {});
      },
      "two samples");
  expect_error<ValueError>([&] { noise_covariance(noise, {.noise_dwell = 2}); }, "dwell");
}

}  // namespace
}  // namespace palimpsest
