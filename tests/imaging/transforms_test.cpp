// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/transforms.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "palimpsest/base/error.hpp"
#include "palimpsest/graph/type.hpp"
#include "palimpsest/imaging/forward_model.hpp"
#include "palimpsest/imaging/patterns.hpp"
#include "palimpsest/imaging/phantom.hpp"
#include "palimpsest/imaging/reconstruct.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using Sample = std::complex<float>;

double relative(const Tensor& a, const Tensor& b) {
  const auto x = a.to_vector<std::complex<double>>(), y = b.to_vector<std::complex<double>>();
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    error += std::norm(x[i] - y[i]);
    norm += std::norm(y[i]);
  }
  return std::sqrt(error / norm);
}

TEST(Transform, IsTheSumOverTheNamedAxes) {
  const Tensor x = Tensor::random_normal({3, 4, 5}, DType::complex128, {1, 1});
  const Tensor y = transform(x, {0});
  const auto values = x.to_vector<std::complex<double>>(),
             out = y.to_vector<std::complex<double>>();
  for (int k = 0; k < 3; ++k) {
    std::complex<double> sum = 0;
    for (int j = 0; j < 3; ++j) {
      sum += values[static_cast<std::size_t>(j * 20 + 7)] *
             std::polar(1.0, -2 * std::numbers::pi * (j - 1) * (k - 1) / 3);
    }
    EXPECT_NEAR(std::abs(out[static_cast<std::size_t>(k * 20 + 7)] - sum / std::sqrt(3.0)), 0,
                1e-12);
  }
}

TEST(Transform, InverseUndoesItInEveryNorm) {
  const Tensor x = Tensor::random_normal({3, 6, 5}, DType::complex64, {1, 1});
  for (const FftNorm norm : {FftNorm::ortho, FftNorm::backward}) {
    for (const bool centered : {false, true}) {
      const Tensor y = transform(x, {2, 0}, {.norm = norm, .centered = centered});
      const Tensor back =
          transform(y, {2, 0}, {.inverse = true, .norm = norm, .centered = centered});
      EXPECT_LT(relative(back, x), 1e-6);
    }
  }
}

TEST(Transform, HoldsWhatItAnnounces) {
  for (const std::vector<index_t>& axes :
       {std::vector<index_t>{1, 2}, std::vector<index_t>{0}, std::vector<index_t>{2, 0}}) {
    const Tensor x = Tensor::random_normal({8, 32, 24}, DType::complex64, {1, 1});
    const MemoryScope scope;
    const Tensor y = transform(x, axes);
    const index_t planned = plan_transform({DType::complex64, x.shape(), {}}, axes);
    EXPECT_GE(planned, static_cast<index_t>(scope.peak_bytes()));
    EXPECT_LE(planned, static_cast<index_t>(scope.peak_bytes()) + x.nbytes());
  }
}

TEST(Transform, RefusesOtherAxesAndRealNumbers) {
  const Tensor x = Tensor::ones({2, 3}, DType::complex64);
  expect_error<ValueError>([&] { transform(x, {}); }, "axes: got none");
  expect_error<ValueError>([&] { transform(x, {0, 0}); }, "0, 0");
  expect_error<ValueError>([&] { transform(x, {2}); }, "2 axes");
  expect_error<DTypeError>([&] { transform(Tensor::ones({2}), {0}); }, "complex");
}

TEST(EllipseKspace, AgreesWithTheTransformOfTheImage) {
  for (const auto& [ny, nx] : {std::pair<index_t, index_t>{128, 96}, {97, 128}}) {
    const Tensor image = ellipse_image(modified_shepp_logan(), ny, nx).to(DType::complex64);
    const Tensor grid = transform(image, {0, 1});
    const Tensor exact = ellipse_kspace(modified_shepp_logan(), ny, nx);
    // In the middle of k-space the extent of a pixel matters little.
    const auto middle = [&](const Tensor& k) {
      return k.narrow(0, ny / 2 - 8, 17).narrow(1, nx / 2 - 8, 17).contiguous();
    };
    EXPECT_LT(relative(middle(grid), middle(exact)), 0.01) << ny;
    // Towards the border, pixels average and the grid aliases.
    EXPECT_LT(relative(grid, exact), 0.12) << ny;
  }
}

TEST(EllipseKspace, IsTheSameOnAndOffTheGrid) {
  Tensor lines = Tensor::empty({8, 10, 2}, DType::float32);
  float* k = lines.mutable_data<float>();
  for (index_t y = 0; y < 8; ++y) {
    for (index_t x = 0; x < 10; ++x) {
      *k++ = static_cast<float>(x - 5);
      *k++ = static_cast<float>(y - 4);
    }
  }
  EXPECT_LT(relative(ellipse_kspace(modified_shepp_logan(), lines, 8, 10),
                     ellipse_kspace(modified_shepp_logan(), 8, 10)),
            1e-6);
  expect_error<ShapeError>(
      [] {
        ellipse_kspace(modified_shepp_logan(), Tensor::ones({3, 3}), 4, 4);
      },
      "(readouts, samples, 2)");
  expect_error<ValueError>([] { ellipse_kspace(modified_shepp_logan(), 0, 4); }, "empty");
}

TEST(TrajectoryTransform, ReturnsToTheImage) {
  const Tensor spokes = radial_trajectory({.spokes = 80, .samples = 64});
  const Tensor object = ellipse_image(modified_shepp_logan(), 32, 32).to(DType::complex64);
  const NamedLinop A = trajectory_transform(spokes, {32, 32});
  const Tensor samples = A(object);
  EXPECT_EQ(samples.shape(), (Extents{80, 64}));
  Tensor stacked = Tensor::empty({2, 80, 64}, DType::complex64);
  stacked.copy_from(samples);
  const Tensor found = inverse_trajectory_transform(stacked, spokes, {32, 32}, {.iterations = 60});
  EXPECT_EQ(found.shape(), (Extents{2, 32, 32}));
  // Spokes do not cover the corners of k-space, so the samples are reproduced but not the whole
  // image.
  EXPECT_LT(relative(A(found.select(0, 1)), samples), 0.01);
  EXPECT_LT(relative(found.select(0, 1), object), 0.15);
  const Tensor smooth =
      inverse_trajectory_transform(samples, spokes, {32, 32}, {.iterations = 20, .lambda = 10});
  EXPECT_GT(relative(smooth, object), 0.5);
  const auto with = [&](const char* term) {
    return InverseTransformOptions{.iterations = 30, .regularizers = {parse_regularizer(term)}};
  };
  const Tensor flat = inverse_trajectory_transform(stacked, spokes, {32, 32}, with("tv:0.001"));
  EXPECT_EQ(flat.shape(), (Extents{2, 32, 32}));
  const Reconstruction of_one_coil = reconstruct(
      samples.unsqueeze(0), Tensor::full<std::complex<float>>({1, 32, 32}, 1),
      {.trajectory = spokes},
      {.regularizers = {parse_regularizer("tv:0.001")}, .iterations = 30, .tolerance = 0});
  EXPECT_TRUE(equal(flat.select(0, 1), of_one_coil.image));
  InverseTransformOptions both = with("tv:0.001");
  both.lambda = 1;
  expect_error<ValueError>(
      [&] {
        inverse_trajectory_transform(samples, spokes, {32, 32}, both);
      },
      "lambda and regularizers");
  expect_error<ShapeError>([&] { trajectory_transform(spokes, {32}); }, "[trajectory]");
  expect_error<ShapeError>(
      [&] {
        inverse_trajectory_transform(object, spokes, {32, 32}, {});
      },
      "80 readouts of 64 samples");
  expect_error<ValueError>(
      [&] {
        inverse_trajectory_transform(samples, spokes, {32, 32}, {.iterations = 0});
      },
      "iterations");
}

TEST(FakeKspace, PutsMeasuredSamplesBack) {
  const Tensor maps = Tensor::ones({2, 4, 4}, DType::complex64);
  const NamedLinop A = sense_model(maps);
  const Tensor image = Tensor::random_normal({4, 4}, DType::complex64, {1, 1});
  const Tensor plain = fake_kspace(A, image);
  EXPECT_TRUE(equal(plain, A(image)));
  Tensor measured = Tensor::zeros({2, 4, 4}, DType::complex64);
  measured.set<Sample>({1, 2, 3}, Sample(7, 1));
  const Tensor replaced = fake_kspace(A, image, measured);
  EXPECT_EQ(replaced.at<Sample>({1, 2, 3}), Sample(7, 1));
  EXPECT_EQ(replaced.at<Sample>({0, 2, 3}), plain.at<Sample>({0, 2, 3}));
  expect_error<ShapeError>([&] { fake_kspace(A, image, image); }, "[replace]");
}

TEST(AdjointImage, WeighsSamplesBefore) {
  const NamedLinop A = sense_model(Tensor::ones({2, 4, 4}, DType::complex64));
  const Tensor k = Tensor::random_normal({2, 4, 4}, DType::complex64, {1, 1});
  const Tensor twice = adjoint_image(A, k, Tensor::full<float>({4, 4}, 2.0F));
  Tensor doubled = k.clone();
  for (index_t i = 0; i < k.numel(); ++i) doubled.mutable_data<Sample>()[i] *= 2.0F;
  EXPECT_LT(relative(twice, A.H()(doubled)), 1e-6);
  EXPECT_TRUE(equal(adjoint_image(A, k), A.H()(k)));
  expect_error<ShapeError>([&] { adjoint_image(A, k, Tensor::ones({3})); }, "[weights]");
  for (const auto& [value, text] :
       {std::pair(-1.0F, "got -1 at (1, 2)"), {NAN, "the first at (1, 2)"}, {0.0F, "all are 0"}}) {
    Tensor wrong = Tensor::full<float>({4, 4}, value == 0 ? 0.0F : 1.0F);
    wrong.set<float>({1, 2}, value);
    expect_error<ValueError>([&] { adjoint_image(A, k, wrong); }, text);
  }
}

TEST(VolumePattern, HasTheWantedNumberOfSamplesAndAFullCentre) {
  const PatternOptions options = {
      .kind = PatternKind::random, .acceleration = 6, .center = 8, .seed = 4, .ellipse = true};
  const Tensor mask = volume_pattern({20, 24, 30}, options);
  EXPECT_EQ(count_samples(mask), 2400);
  EXPECT_EQ(count_samples(mask.narrow(0, 6, 8).narrow(1, 8, 8).narrow(2, 11, 8).contiguous()), 512);
  EXPECT_TRUE(equal(mask, volume_pattern({20, 24, 30}, options)));
  EXPECT_FALSE(mask.at<bool>({0, 0, 0}));
  // Denser in the middle than outside.
  const Tensor half = volume_pattern(
      {32, 32, 32},
      {.kind = PatternKind::random, .acceleration = 4, .center = 0, .seed = 1, .spread = 3});
  const index_t inside =
      count_samples(half.narrow(0, 8, 16).narrow(1, 8, 16).narrow(2, 8, 16).contiguous());
  EXPECT_GT(inside, 3 * 32768 / 4 / 8 / 2);
  PatternOptions poisson = options;
  poisson.kind = PatternKind::poisson;
  expect_error<ValueError>([&] { volume_pattern({4, 4, 4}, poisson); }, "random or full");
  expect_error<ValueError>([&] { volume_pattern({4, 0, 4}, options); }, "empty");
  expect_error<ValueError>([&] { volume_pattern({8, 8, 8}, options); }, "centre alone");
}

}  // namespace
}  // namespace palimpsest
