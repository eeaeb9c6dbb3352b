// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/corrections/radial_delays.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/imaging/coil_maps.hpp"
#include "palimpsest/imaging/forward_model.hpp"
#include "palimpsest/imaging/phantom.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

constexpr index_t kSize = 64, kCoils = 6;

// Measured along the true trajectory.
Tensor measured(const Tensor& trajectory) {
  const Tensor maps = ring_coil_maps(kCoils, kSize, kSize);
  const Tensor image = ellipse_image(modified_shepp_logan(), kSize, kSize).to(DType::complex64);
  return sense_model(maps, {.trajectory = trajectory})(image);
}

void expect_near(const RadialDelays& got, const RadialDelays& expected, double within) {
  EXPECT_NEAR(got.xx, expected.xx, within);
  EXPECT_NEAR(got.yy, expected.yy, within);
  EXPECT_NEAR(got.xy, expected.xy, within);
}

TEST(RadialDelays, AreFoundFromCrossingSpokes) {
  const Tensor even = radial_trajectory({.spokes = 21, .samples = 128});
  const Tensor golden = radial_trajectory({.spokes = 34, .samples = 127, .golden = 1});
  const Tensor full =
      radial_trajectory({.spokes = 25, .samples = 128, .full = true, .half_shift = true});
  for (const Tensor& nominal : {even, golden, full}) {
    for (const RadialDelays& truth :
         {RadialDelays{}, RadialDelays{0.31, -0.17, 0.08}, RadialDelays{-1.2, -0.9, -0.25}}) {
      expect_near(estimate_delays(measured(corrected(nominal, truth)), nominal), truth, 0.02);
    }
  }
}

TEST(RadialDelays, StandNoiseAndAnyUnit) {
  const Tensor nominal = radial_trajectory({.spokes = 55, .samples = 128, .golden = 1});
  const RadialDelays truth{0.4, 0.1, -0.15};
  const Tensor clean = measured(corrected(nominal, truth));
  const double size = norm(clean).item<double>() / std::sqrt(static_cast<double>(clean.numel()));
  const Tensor noise = Tensor::random_normal(clean.shape(), DType::complex64, {7, 0});
  const Tensor kspace = clean + noise * (0.05 * size);
  expect_near(estimate_delays(kspace, nominal), truth, 0.06);
  expect_near(estimate_delays(clean * 1e-12, nominal), truth, 0.02);
  expect_near(estimate_delays(clean * 1e12, nominal), truth, 0.02);
}

TEST(RadialDelays, MoveSpokesAlongAndAcross) {
  const Tensor nominal = radial_trajectory({.spokes = 2, .samples = 8});  // along x, along y
  const Tensor moved = corrected(nominal, {.xx = 0.5, .yy = -0.25, .xy = 0.125});
  EXPECT_FLOAT_EQ(moved.at<float>({0, 3, 0}), nominal.at<float>({0, 3, 0}) + 0.5F);
  EXPECT_FLOAT_EQ(moved.at<float>({0, 3, 1}), nominal.at<float>({0, 3, 1}) + 0.125F);
  EXPECT_FLOAT_EQ(moved.at<float>({1, 3, 0}), nominal.at<float>({1, 3, 0}) + 0.125F);
  EXPECT_FLOAT_EQ(moved.at<float>({1, 3, 1}), nominal.at<float>({1, 3, 1}) - 0.25F);
}

TEST(RadialDelays, ErrorsSayWhatIsWrong) {
  const Tensor nominal = radial_trajectory({.spokes = 6, .samples = 32});
  const Tensor kspace = Tensor::random_normal({2, 6, 32}, DType::complex64, {1, 0});
  expect_error<ShapeError>([&] { estimate_delays(kspace, nominal.narrow(0, 0, 5)); },
                           "expected (C, 5, 32)");
  expect_error<ShapeError>(
      [&] {
        corrected(Tensor::zeros({4, 3}, DType::float32), {});
      },
      "(spokes, samples, 2)");
  expect_error<DTypeError>([&] { estimate_delays(kspace.to(DType::complex128), nominal); },
                           "complex64");
  expect_error<DTypeError>([&] { corrected(nominal.to(DType::float64), {}); }, "float32");
  const Tensor spiral = spiral_trajectory({.interleaves = 2, .matrix = 32});
  expect_error<ValueError>([&] { corrected(spiral, {}); }, "expected a radial trajectory");
  Tensor broken = nominal.clone();
  broken.set<float>({2, 31, 0}, std::numeric_limits<float>::quiet_NaN());
  expect_error<ValueError>([&] { corrected(broken, {}); }, "spoke 2");
  const Tensor parallel = radial_trajectory({.spokes = 60, .samples = 32}).narrow(0, 0, 6);
  expect_error<ValueError>([&] { estimate_delays(kspace, parallel); }, "pairs of spokes");
  expect_error<ValueError>(
      [&] {
        estimate_delays(Tensor::zeros({2, 6, 32}, DType::complex64), nominal);
      },
      "no signal");
}

}  // namespace
}  // namespace palimpsest
