// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/trajectories.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "palimpsest/base/error.hpp"
#include "palimpsest/linop/transforms/nufft.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

double total_of(const Tensor& a) {
  const std::vector<float> v = a.to_vector<float>();
  return std::accumulate(v.begin(), v.end(), 0.0);
}

double angle(const Tensor& k, index_t spoke, index_t sample) {
  return std::atan2(static_cast<double>(k.at<float>({spoke, sample, 1})),
                    static_cast<double>(k.at<float>({spoke, sample, 0}))) *
         180 / std::numbers::pi;
}

TEST(RadialTrajectory, SpokesSpreadOverHalfATurn) {
  const Tensor k = radial_trajectory({.spokes = 6, .samples = 16});
  ASSERT_EQ(k.shape(), (Extents{6, 16, 2}));
  EXPECT_FLOAT_EQ(k.at<float>({0, 0, 0}), -4);
  EXPECT_FLOAT_EQ(k.at<float>({0, 8, 0}), 0);
  EXPECT_FLOAT_EQ(k.at<float>({0, 15, 0}), 3.5F);
  EXPECT_NEAR(angle(k, 1, 15), 30, 1e-4);
  EXPECT_NEAR(angle(k, 5, 15), 150, 1e-4);
  const Tensor full = radial_trajectory({.spokes = 6, .samples = 16, .full = true});
  EXPECT_NEAR(angle(full, 1, 15), 60, 1e-4);
  const Tensor half = radial_trajectory({.spokes = 1, .samples = 4, .half_shift = true});
  EXPECT_FLOAT_EQ(half.at<float>({0, 0, 0}), -0.75F);
  EXPECT_FLOAT_EQ(half.at<float>({0, 3, 0}), 0.75F);
}

TEST(RadialTrajectory, GoldenAnglesAreTheKnownOnes) {
  EXPECT_NEAR(golden_angle(1), 111.2461, 5e-5);
  EXPECT_NEAR(golden_angle(2), 68.7539, 5e-5);
  EXPECT_NEAR(golden_angle(7), 23.6281, 5e-5);
  const Tensor k = radial_trajectory({.spokes = 4, .samples = 8, .golden = 7});
  EXPECT_NEAR(angle(k, 3, 7), 3 * 23.6281, 2e-4);
  // After a hundred thousand spokes the angle is as exact as at the start.
  const Tensor many = radial_trajectory({.spokes = 100001, .samples = 2, .golden = 1});
  const double expected = std::remainder(100000 * golden_angle(1) + 180, 360);
  EXPECT_NEAR(std::remainder(angle(many, 100000, 0) - expected, 360), 0, 1e-4);
}

TEST(RadialTrajectory, BartCountsFromTheOtherAxis) {
  const Tensor k =
      radial_trajectory({.spokes = 3, .samples = 128, .convention = TrajectoryConvention::bart});
  EXPECT_NEAR(k.at<float>({0, 0, 0}), 0, 1e-5);
  EXPECT_FLOAT_EQ(k.at<float>({0, 0, 1}), -31.75F);
  EXPECT_FLOAT_EQ(k.at<float>({0, 127, 1}), 31.75F);
  EXPECT_NEAR(angle(k, 1, 127), 30, 1e-4);
  const Tensor golden = radial_trajectory(
      {.spokes = 2, .samples = 128, .golden = 1, .convention = TrajectoryConvention::bart});
  EXPECT_NEAR(angle(golden, 1, 127), 90 - 111.2461, 1e-3);
}

TEST(StackOfStars, IsRadialInEveryMeasuredPlane) {
  const RadialOptions radial{.spokes = 5, .samples = 12};
  const Tensor k = stack_of_stars(radial, {.planes = 9, .acceleration = 2});
  ASSERT_EQ(k.shape(), (Extents{5, 5, 12, 3}));  // planes 0, 2, 4, 6, 8
  EXPECT_FLOAT_EQ(k.at<float>({0, 0, 0, 2}), -4);
  EXPECT_FLOAT_EQ(k.at<float>({2, 4, 3, 2}), 0);
  EXPECT_TRUE(equal(k.select(0, 3).narrow(2, 0, 2).contiguous(), radial_trajectory(radial)));
  const Tensor turned = stack_of_stars(radial, {.planes = 3, .rotated = true});
  EXPECT_NEAR(angle(turned.select(0, 1).contiguous(), 0, 11), 36 * (std::numbers::phi - 1), 1e-4);
}

TEST(KooshBall, SpreadsEvenlyOverTheSphere) {
  const Tensor k = koosh_ball({.spokes = 2000, .samples = 9, .oversampling = 1});
  ASSERT_EQ(k.shape(), (Extents{2000, 9, 3}));
  double mean[3] = {0, 0, 0}, square[3] = {0, 0, 0};
  for (index_t i = 0; i < 2000; ++i) {
    double norm2 = 0;
    for (index_t d = 0; d < 3; ++d) {
      const double v = static_cast<double>(k.at<float>({i, 8, d}));
      norm2 += v * v;
      mean[d] += v / 2000;
      square[d] += v * v / 2000;
    }
    EXPECT_NEAR(std::sqrt(norm2), 4, 1e-5);
  }
  for (int d = 0; d < 3; ++d) {
    EXPECT_NEAR(mean[d], 0, 0.02);
    EXPECT_NEAR(square[d], 16.0 / 3, 0.05);
  }
  // Chan et al.: the second direction.
  const double z = 2 * 0.465571 - 1;
  EXPECT_NEAR(k.at<float>({1, 8, 2}), 4 * z, 1e-5);
}

TEST(SpiralTrajectory, KeepsTheLimitsOfTheScanner) {
  const SpiralOptions o{.interleaves = 8, .matrix = 96, .field_of_view_mm = 220};
  const Tensor k = spiral_trajectory(o);
  const index_t n = k.shape(1);
  ASSERT_GT(n, 100);
  // Gradients in mT/m and slew rates in T/m/s, by differences.
  const double per_meter = 1 / (o.field_of_view_mm * 1e-3), gamma = 42.577478518e6;
  const double dt = o.time_step_us * 1e-6;
  const auto gradient = [&](index_t j, index_t d) {
    return static_cast<double>(k.at<float>({0, j + 1, d}) - k.at<float>({0, j, d})) * per_meter /
           (gamma * dt);
  };
  double fastest = 0, steepest = 0;
  for (index_t j = 0; j + 2 < n; ++j) {
    fastest = std::max(fastest, std::hypot(gradient(j, 0), gradient(j, 1)) * 1e3);
    steepest = std::max(
        steepest,
        std::hypot(gradient(j + 1, 0) - gradient(j, 0), gradient(j + 1, 1) - gradient(j, 1)) / dt);
  }
  EXPECT_LE(fastest, 40 * 1.001);
  EXPECT_LE(steepest, 150 * 1.03);  // coordinates are rounded to single precision
  EXPECT_GT(std::max(fastest / 40, steepest / 150), 0.9);
  EXPECT_FLOAT_EQ(k.at<float>({0, 0, 0}), 0);
  const double end = std::hypot(static_cast<double>(k.at<float>({3, n - 1, 0})),
                                static_cast<double>(k.at<float>({3, n - 1, 1})));
  EXPECT_NEAR(end, 48, 0.5);
}

// All interleaves together leave gaps of at most a cycle per field of view between turns.
TEST(SpiralTrajectory, TurnsLieACycleApart) {
  const Tensor k = spiral_trajectory({.interleaves = 4, .matrix = 32});
  std::vector<double> crossings;
  for (index_t i = 0; i < 4; ++i) {
    for (index_t j = 1; j < k.shape(1); ++j) {
      const double x = static_cast<double>(k.at<float>({i, j, 0}));
      const double y = static_cast<double>(k.at<float>({i, j, 1}));
      if (x > 0 && static_cast<double>(k.at<float>({i, j - 1, 1})) < 0 && y >= 0) {
        crossings.push_back(std::hypot(x, y));
      }
    }
  }
  std::sort(crossings.begin(), crossings.end());
  ASSERT_GE(crossings.size(), 13U);
  for (std::size_t c = 1; c < crossings.size(); ++c) {
    EXPECT_NEAR(crossings[c] - crossings[c - 1], 1, 0.1);
  }
  const Tensor sparse =
      spiral_trajectory({.interleaves = 4, .matrix = 32, .outer_undersampling = 3});
  EXPECT_LT(sparse.shape(1), k.shape(1));
}

TEST(EpiTrajectory, LinesAlternateAndShotsInterleave) {
  const Tensor k = epi_trajectory({.lines = 8, .echo_train = 4, .samples = 6});
  ASSERT_EQ(k.shape(), (Extents{8, 6, 2}));
  EXPECT_FLOAT_EQ(k.at<float>({0, 0, 0}), -3);
  EXPECT_FLOAT_EQ(k.at<float>({0, 5, 0}), 2);
  EXPECT_FLOAT_EQ(k.at<float>({1, 0, 0}), 2);
  EXPECT_FLOAT_EQ(k.at<float>({1, 5, 0}), -3);
  EXPECT_FLOAT_EQ(k.at<float>({0, 0, 1}), -4);
  EXPECT_FLOAT_EQ(k.at<float>({1, 0, 1}), -2);
  EXPECT_FLOAT_EQ(k.at<float>({4, 0, 1}), -3);  // the second shot
  // With ramps samples are denser at the ends, and symmetric.
  const Tensor ramped = epi_trajectory({.lines = 2, .echo_train = 2, .samples = 64, .ramp = 0.2});
  const auto x = [&](index_t j) { return static_cast<double>(ramped.at<float>({0, j, 0})); };
  EXPECT_LT(x(1) - x(0), 0.3);
  EXPECT_NEAR(x(32) - x(31), 1.25, 1e-4);
  EXPECT_NEAR(x(0) + x(63), -1, 1e-4);
  EXPECT_NEAR(ramped.at<float>({1, 63, 0}), x(0), 1e-5);
}

TEST(DensityCompensation, AnalyticWeightsAddUpToTheDisc) {
  const Tensor k = radial_trajectory({.spokes = 33, .samples = 128});
  const Tensor w = density_compensation(k, DensityMethod::analytic);
  EXPECT_NEAR(total_of(w), 3217.19, 0.01);
  EXPECT_NEAR(std::numbers::pi * 32 * 32, 3216.99, 0.005);
  const Tensor ball =
      density_compensation(koosh_ball({.spokes = 50, .samples = 129}), DensityMethod::analytic);
  // Both ends are samples: a shell of half a step is added.
  EXPECT_NEAR(total_of(ball) / (4 * std::numbers::pi / 3 * std::pow(32.25, 3)), 1, 1e-3);
}

TEST(DensityCompensation, PipeMenonAgreesWithTheAnalyticWeights) {
  const Tensor k = radial_trajectory({.spokes = 101, .samples = 128});
  const Tensor exact = density_compensation(k, DensityMethod::analytic);
  const Tensor w = density_compensation(k, DensityMethod::pipe);
  // Single weights depend on the position of a sample on the grid; their means over rings do not.
  for (index_t j = 20; j < 110; ++j) {
    if (std::abs(j - 64) < 4) continue;  // the kernel smooths the middle
    EXPECT_NEAR(total_of(w.narrow(1, j, 1)) / total_of(exact.narrow(1, j, 1)), 1, 0.1) << j;
  }
}

// Weights add up to the area of a disc of any radius, up to the width of the kernel.
TEST(DensityCompensation, WeightsOfASpiralAddUpToDiscs) {
  const Tensor k = spiral_trajectory({.interleaves = 16, .matrix = 32});
  const Tensor w = density_compensation(k, DensityMethod::pipe);
  for (const double r : {2.0, 3.0, 5.0, 8.0, 11.0, 14.0}) {
    double area = 0;
    for (index_t i = 0; i < k.shape(0); ++i) {
      for (index_t j = 0; j < k.shape(1); ++j) {
        const double x = static_cast<double>(k.at<float>({i, j, 0}));
        const double y = static_cast<double>(k.at<float>({i, j, 1}));
        if (std::hypot(x, y) < r) area += static_cast<double>(w.at<float>({i, j}));
      }
    }
    EXPECT_NEAR(area / (std::numbers::pi * r * r), 1, 0.05) << r;
  }
}

TEST(DensityCompensation, MakesTheAdjointAnInverse) {
  const index_t n = 32;
  const Tensor k = radial_trajectory({.spokes = 64, .samples = 64});
  const NamedLinop F = Nufft(coordinates_of_grid(k), {n, n}, "Sp Ro", {.scale = NufftScale::none});
  Tensor image = Tensor::zeros({n, n}, DType::complex64);
  image.narrow(0, 10, 12).narrow(1, 8, 14).fill<std::complex<float>>(1.0F);
  for (const DensityMethod method : {DensityMethod::analytic, DensityMethod::pipe}) {
    const std::vector<float> weights = density_compensation(k, method).to_vector<float>();
    std::vector<std::complex<float>> data = F(image).to_vector<std::complex<float>>();
    for (std::size_t i = 0; i < data.size(); ++i) data[i] *= weights[i];
    const Tensor back = F.H()(Tensor::from(data, Extents{64, 64}));
    EXPECT_NEAR(std::abs(back.at<std::complex<float>>({16, 15})) / (n * n), 1, 0.1);
    EXPECT_NEAR(std::abs(back.at<std::complex<float>>({3, 27})) / (n * n), 0, 0.1);
  }
}

TEST(Trajectories, NameWhatIsWrong) {
  expect_error<ValueError>([] { radial_trajectory({.spokes = 0, .samples = 4}); }, "spokes: got 0");
  expect_error<ValueError>(
      [] { radial_trajectory({.spokes = 1, .samples = 4, .oversampling = 0}); },
      "oversampling: got 0");
  expect_error<ValueError>([] { radial_trajectory({.spokes = 1, .samples = 4, .golden = -1}); },
                           "golden: got -1");
  expect_error<ValueError>([] { golden_angle(0); }, "at least 1");
  expect_error<ValueError>([] { stack_of_stars({.spokes = 1, .samples = 2}, {.planes = 0}); },
                           "planes: got 0");
  expect_error<ValueError>([] { koosh_ball({.spokes = 1, .samples = 0}); }, "samples: got 0");
  expect_error<ValueError>([] { spiral_trajectory({.s_max = -1}); }, "s_max: got -1");
  expect_error<ValueError>([] { spiral_trajectory({.g_max = 1e-4, .s_max = 1e-4}); }, "too long");
  expect_error<ValueError>([] { epi_trajectory({.lines = 7, .echo_train = 2}); }, "echo_train");
  expect_error<ValueError>([] { epi_trajectory({.ramp = 0.6}); }, "ramp: got 0.6");
  expect_error<ShapeError>(
      [] {
        density_compensation(Tensor::zeros({4, 2}, DType::float32), DensityMethod::pipe);
      },
      "(readout, sample, 2 or 3)");
  expect_error<ValueError>(
      [] {
        density_compensation(spiral_trajectory({.interleaves = 4, .matrix = 16}),
                             DensityMethod::analytic);
      },
      "Try pipe");
  Tensor bad = radial_trajectory({.spokes = 2, .samples = 8});
  bad.set<float>({1, 1, 0}, std::numeric_limits<float>::infinity());
  expect_error<ValueError>([&] { density_compensation(bad, DensityMethod::pipe); }, "not finite");
}

}  // namespace
}  // namespace palimpsest
