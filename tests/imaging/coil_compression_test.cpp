// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/coil_compression.hpp"

#include <gtest/gtest.h>

#include <complex>
#include <cstdlib>
#include <numeric>

#include "imaging/simulated.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/io/npy.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::coil_kspace;
using testing::expect_error;
using testing::head_kspace;
using testing::Sample;

double energy(const Tensor& a) {
  double sum = 0;
  for (const Sample v : a.to_vector<Sample>()) sum += std::norm(std::complex<double>(v));
  return sum;
}

TEST(CompressCoils, ByDefaultTurnsTheCoilsAndKeepsTheEnergy) {
  const Tensor kspace = head_kspace(6, 40, 36);
  for (const auto method : {CompressionMethod::svd, CompressionMethod::geometric}) {
    const CompressedKspace r = compress_coils(kspace, {.method = method});
    EXPECT_EQ(r.kspace.shape(), kspace.shape());
    EXPECT_NEAR(energy(r.kspace), energy(kspace), 1e-4 * energy(kspace));
    const std::vector<double>& e = r.compression.energies;
    EXPECT_EQ(e.size(), 6U);
    EXPECT_NEAR(std::accumulate(e.begin(), e.end(), 0.0), 1, 1e-12);
    EXPECT_TRUE(std::is_sorted(e.rbegin(), e.rend()));
    // The adjoint restores everything.
    EXPECT_TRUE(allclose(r.compression.kspace.H()(r.kspace), kspace, 1e-4, 1e-3));
  }
}

TEST(CompressCoils, KeepsAsMuchEnergyAsItIsAskedFor) {
  const Tensor kspace = head_kspace(8, 40, 36);
  for (const auto method : {CompressionMethod::svd, CompressionMethod::geometric}) {
    for (const double wanted : {0.5, 0.9, 0.99}) {
      const CompressedKspace r = compress_coils(
          kspace,
          {.energy = wanted, .method = method, .area = CalibrationArea{{0, 0, 0}, {1, 40, 36}}});
      EXPECT_GE(energy(r.kspace), wanted * energy(kspace));
      const index_t n = r.kspace.shape(0);
      if (n > 1) {
        const CompressedKspace fewer = compress_coils(
            kspace,
            {.to = n - 1, .method = method, .area = CalibrationArea{{0, 0, 0}, {1, 40, 36}}});
        EXPECT_LT(energy(fewer.kspace), wanted * energy(kspace));
      }
    }
  }
}

// Two proportional coils are one coil.
TEST(CompressCoils, FindsTheCoilsThatThereAre) {
  const Tensor two = head_kspace(2, 32, 30);
  Tensor four = Tensor::empty({4, 32, 30}, DType::complex64);
  four.narrow(0, 0, 2).copy_from(two);
  std::vector<Sample> turned = two.to_vector<Sample>();
  for (Sample& v : turned) v *= Sample(0, 2);
  four.narrow(0, 2, 2).copy_from(Tensor::from(turned, two.shape()));
  const CompressedKspace r = compress_coils(four, {.energy = 0.99999});
  EXPECT_EQ(r.kspace.shape(0), 2);
  EXPECT_NEAR(energy(r.kspace), energy(four), 1e-4 * energy(four));
}

// The geometric method is at least as good with equally many coils, and its maps are smooth.
TEST(CompressCoils, TheGeometricMethodKeepsMoreAndTurnsSlowly) {
  const Tensor kspace = head_kspace(8, 48, 64);
  const CalibrationArea all{{0, 0, 0}, {1, 48, 64}};
  const CompressedKspace s = compress_coils(kspace, {.to = 3, .area = all});
  const CompressedKspace g =
      compress_coils(kspace, {.to = 3, .method = CompressionMethod::geometric, .area = all});
  EXPECT_GE(energy(g.kspace), energy(s.kspace) * (1 - 1e-5));
  const Tensor a = g.compression.matrices;
  ASSERT_EQ(a.shape(), (Extents{64, 3, 8}));
  for (index_t x = 1; x < 64; ++x) {
    // Rows are orthonormal, and the product with the matrix of the last position is Hermitian and
    // >= 0.
    for (index_t i = 0; i < 3; ++i) {
      for (index_t j = 0; j < 3; ++j) {
        std::complex<double> gram = 0, turn = 0, back = 0;
        for (index_t c = 0; c < 8; ++c) {
          const auto now = [&](index_t k) { return std::complex<double>(a.at<Sample>({x, k, c})); };
          const auto last = [&](index_t k) {
            return std::complex<double>(a.at<Sample>({x - 1, k, c}));
          };
          gram += now(i) * std::conj(now(j));
          turn += now(i) * std::conj(last(j));
          back += now(j) * std::conj(last(i));
        }
        EXPECT_NEAR(std::abs(gram - (i == j ? 1.0 : 0.0)), 0, 1e-5);
        EXPECT_NEAR(std::abs(turn - std::conj(back)), 0, 1e-5);
        EXPECT_GE(i == j ? turn.real() : 0, -1e-5);
      }
    }
  }
}

// Compressing coil images and then transforming is transforming and then compressing.
TEST(CompressCoils, MapsGoThroughTheSameMatrices) {
  const Tensor image = ellipse_image(modified_shepp_logan(), 32, 30);
  const Tensor maps = ring_coil_maps(5, 32, 30);
  const Tensor kspace = coil_kspace(image, maps);
  for (const auto method : {CompressionMethod::svd, CompressionMethod::geometric}) {
    const CompressedKspace r = compress_coils(kspace, {.to = 3, .method = method});
    EXPECT_TRUE(allclose(coil_kspace(image, r.compression.image(maps)), r.kspace, 1e-4, 1e-4));
  }
}

TEST(CompressCoils, TakesVolumes) {
  const Tensor plane = head_kspace(4, 20, 24);
  Tensor volume = Tensor::zeros({4, 10, 20, 24}, DType::complex64);
  for (index_t z = 3; z < 8; ++z) volume.select(1, z).copy_from(plane);
  const CompressedKspace r =
      compress_coils(volume, {.to = 2, .method = CompressionMethod::geometric});
  EXPECT_EQ(r.kspace.shape(), (Extents{2, 10, 20, 24}));
  EXPECT_GT(energy(r.kspace), 0.8 * energy(volume));
}

TEST(CompressCoils, NamesWhatIsWrong) {
  const Tensor kspace = head_kspace(3, 24, 24);
  expect_error<ValueError>([&] { compress_coils(kspace, {.to = 4}); }, "1 to 3 virtual coils");
  expect_error<ValueError>([&] { compress_coils(kspace, {.energy = 1.5}); }, "energy: got 1.5");
  expect_error<ShapeError>([&] { compress_coils(kspace.select(0, 0)); }, "(coil, y, x)");
  expect_error<DTypeError>([] { compress_coils(Tensor::ones({2, 8, 8})); }, "complex64");
  expect_error<ValueError>(
      [] {
        compress_coils(Tensor::zeros({2, 8, 8}, DType::complex64));
      },
      "no signal");
  Tensor edge = kspace.clone();
  edge.narrow(1, 10, 4).fill<Sample>(Sample(0));
  expect_error<ValueError>([&] { compress_coils(edge, {.method = CompressionMethod::geometric}); },
                           "calibration area");
  EXPECT_EQ(compress_coils(edge, {.to = 1}).kspace.shape(0), 1);  // svd: all samples
}

TEST(CompressCoils, FindsTheKnownEnergiesOfAMeasuredHead) {
  const char* const path = std::getenv("PALIMPSEST_TEST_HEAD");
  if (!path) GTEST_SKIP() << "PALIMPSEST_TEST_HEAD names no file";
  const CompressedKspace r = compress_coils(read_npy(path), {.energy = 0.98});
  EXPECT_EQ(r.kspace.shape(0), 4);
  const double known[] = {0.563, 0.284, 0.106, 0.033, 0.009, 0.003, 0.002, 0.000};
  for (std::size_t k = 0; k < 8; ++k) EXPECT_NEAR(r.compression.energies[k], known[k], 6e-4);
}

TEST(RemoveOversampling, KeepsTheMiddleOfTheImage) {
  const Tensor image = ellipse_image(modified_shepp_logan(), 16, 20);
  Tensor wide = Tensor::zeros({16, 40}, DType::float32);
  wide.narrow(1, 10, 20).copy_from(image);
  const auto kspace_of = [](const Tensor& plane) {
    return testing::transformed(plane.to(DType::complex64).unsqueeze(0).contiguous());
  };
  EXPECT_TRUE(allclose(remove_oversampling(kspace_of(wide), 20), kspace_of(image), 1e-4, 1e-4));
  const Tensor same = kspace_of(image);
  EXPECT_TRUE(equal(remove_oversampling(same, 20), same));
  expect_error<ValueError>([&] { remove_oversampling(same, 21); }, "1 to 20");
  expect_error<ValueError>([&] { remove_oversampling(same, 0); }, "size: got 0");
}

}  // namespace
}  // namespace palimpsest
