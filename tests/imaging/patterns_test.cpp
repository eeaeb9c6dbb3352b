// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/patterns.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
index_t samples_in(const Tensor& mask, index_t y, index_t x, index_t height, index_t width) {
  return count_samples(mask.narrow(0, y, height).narrow(1, x, width));
}

class RandomPatterns : public ::testing::TestWithParam<PatternKind> {};

TEST_P(RandomPatterns, HaveExactlyTheWantedNumberOfSamples) {
  for (const double acceleration : {1.0, 1.3, 2.0, 4.0, 8.0, 12.0}) {
    for (const std::uint64_t seed : {0U, 1U, 77U}) {
      const Tensor mask = sampling_pattern(
          224, 192, {.kind = GetParam(), .acceleration = acceleration, .center = 24, .seed = seed});
      EXPECT_EQ(count_samples(mask), std::llround(224 * 192 / acceleration))
          << "acceleration " << acceleration << ", seed " << seed;
    }
  }
}

TEST_P(RandomPatterns, SampleTheCentreFully) {
  const Tensor mask =
      sampling_pattern(101, 80, {.kind = GetParam(), .acceleration = 6, .center = 20, .seed = 3});
  EXPECT_EQ(samples_in(mask, 101 / 2 - 10, 80 / 2 - 10, 20, 20), 400);
}

TEST_P(RandomPatterns, AreDenserInTheMiddleThanOutside) {
  const Tensor mask =
      sampling_pattern(128, 128, {.kind = GetParam(), .acceleration = 5, .center = 16, .seed = 3});
  const double ring =
      static_cast<double>(samples_in(mask, 40, 40, 48, 48) - 16 * 16) / (48 * 48 - 16 * 16);
  const double corner = static_cast<double>(samples_in(mask, 0, 0, 32, 32)) / (32 * 32);
  EXPECT_GT(ring, 2 * corner);
  EXPECT_GT(corner, 0.01);
}

TEST_P(RandomPatterns, DependOnTheSeedAlone) {
  const PatternOptions options{.kind = GetParam(), .acceleration = 4, .center = 8, .seed = 5};
  PatternOptions other = options;
  other.seed = 6;
  EXPECT_TRUE(equal(sampling_pattern(64, 48, options), sampling_pattern(64, 48, options)));
  EXPECT_FALSE(equal(sampling_pattern(64, 48, options), sampling_pattern(64, 48, other)));
}

INSTANTIATE_TEST_SUITE_P(Kinds, RandomPatterns,
                         ::testing::Values(PatternKind::poisson, PatternKind::random),
                         [](const auto& kind) {
                           return kind.param == PatternKind::poisson ? "Poisson" : "Random";
                         });

// The share of samples outside the centre that have a direct neighbour.
double touching(const Tensor& mask, index_t center) {
  const index_t n = mask.shape(0);
  index_t samples = 0, with_neighbour = 0;
  for (index_t y = 0; y + 1 < n; ++y) {
    for (index_t x = 0; x + 1 < n; ++x) {
      if (std::abs(y - n / 2) < center && std::abs(x - n / 2) < center) continue;
      if (!mask.at<bool>({y, x})) continue;
      ++samples;
      if (mask.at<bool>({y, x + 1}) || mask.at<bool>({y + 1, x})) ++with_neighbour;
    }
  }
  return static_cast<double>(with_neighbour) / static_cast<double>(samples);
}

TEST(PoissonPattern, KeepsSamplesApart) {
  PatternOptions options{.kind = PatternKind::poisson, .acceleration = 8, .center = 16, .seed = 1};
  const double poisson = touching(sampling_pattern(128, 128, options), 32);
  options.kind = PatternKind::random;
  EXPECT_LT(poisson, 0.02);
  EXPECT_GT(touching(sampling_pattern(128, 128, options), 32), 0.1);
}

TEST(UniformPattern, IsALatticeWithACentre) {
  const Tensor mask =
      sampling_pattern(60, 60, {.kind = PatternKind::uniform, .acceleration = 4, .center = 0});
  EXPECT_EQ(count_samples(mask), 900);
  // Sheared: the nearest neighbours are diagonal, two rows and two columns away or further.
  for (index_t x = 0; x < 56; ++x) {
    EXPECT_EQ(mask.at<bool>({0, x}), mask.at<bool>({0, x + 4}));
    EXPECT_NE(mask.at<bool>({0, x}) && mask.at<bool>({1, x}), true);
  }
  const Tensor with_center =
      sampling_pattern(60, 60, {.kind = PatternKind::uniform, .acceleration = 4, .center = 10});
  EXPECT_EQ(samples_in(with_center, 25, 25, 10, 10), 100);
}

TEST(FullPattern, MeasuresEverything) {
  EXPECT_EQ(count_samples(sampling_pattern(9, 7, {.kind = PatternKind::full})), 63);
}

TEST(SamplingPattern, RejectsWhatCannotBe) {
  expect_error<ValueError>([] { sampling_pattern(64, 64, {.acceleration = 0.5}); }, "at least 1");
  expect_error<ValueError>([] { sampling_pattern(64, 64, {.acceleration = 50, .center = 24}); },
                           "centre alone has 576");
  expect_error<ValueError>(
      [] { sampling_pattern(64, 64, {.kind = PatternKind::uniform, .acceleration = 2.5}); },
      "needs an integer");
  expect_error<ValueError>([] { sampling_pattern(0, 64, {}); }, "positive sizes");
  expect_error<ValueError>([] { parse_pattern("spiral"); }, "poisson, random");
}

TEST(SamplingPattern, AnEllipseHasNoCornersAndAsManySamples) {
  for (const PatternKind kind : {PatternKind::poisson, PatternKind::random}) {
    const Tensor mask = sampling_pattern(
        96, 80, {.kind = kind, .acceleration = 3, .center = 12, .seed = 2, .ellipse = true});
    EXPECT_EQ(count_samples(mask), std::llround(96 * 80 / 3.0));
    for (index_t y = 0; y < 96; ++y) {
      for (index_t x = 0; x < 80; ++x) {
        if (std::hypot((y - 48) / 48.0, (x - 40) / 40.0) > 1.0001) {
          EXPECT_FALSE(mask.at<bool>({y, x}));
        }
      }
    }
  }
  expect_error<ValueError>([] { sampling_pattern(32, 32, {.acceleration = 1.1, .ellipse = true}); },
                           "the ellipse has");
}

TEST(SamplingPattern, WithoutSpreadTheDensityIsEven) {
  const auto middle = [](double spread) {
    const Tensor mask =
        sampling_pattern(96, 96, {.acceleration = 5, .center = 0, .seed = 2, .spread = spread});
    return count_samples(mask.narrow(0, 24, 48).narrow(1, 24, 48));
  };
  EXPECT_NEAR(static_cast<double>(middle(0)), 48 * 48 / 5.0, 40);
  EXPECT_GT(middle(3), middle(1));
  EXPECT_GT(middle(1), middle(0) + 50);
  expect_error<ValueError>([] { sampling_pattern(32, 32, {.spread = -1}); }, "spread: got -1");
}

TEST(CaipiPattern, ShiftsEveryMeasuredRow) {
  const Tensor mask = caipi_pattern(12, 12, 2, 3, 1);
  EXPECT_EQ(count_samples(mask), 24);
  EXPECT_TRUE(mask.at<bool>({6, 6}));
  EXPECT_TRUE(mask.at<bool>({8, 7}));
  EXPECT_TRUE(mask.at<bool>({4, 5}));
  EXPECT_FALSE(mask.at<bool>({8, 6}));
  EXPECT_FALSE(mask.at<bool>({7, 6}));
  const Tensor centered = caipi_pattern(12, 12, 2, 3, 1, 4);
  EXPECT_EQ(count_samples(centered.narrow(0, 4, 4).narrow(1, 4, 4)), 16);
  expect_error<ValueError>([] { caipi_pattern(8, 8, 0, 2, 1); }, "steps 0 and 2");
}

TEST(PartialPattern, HasTheFirstLines) {
  const Tensor rows = partial_pattern({10, 6}, 0.65, 0);
  EXPECT_EQ(count_samples(rows), 7 * 6);  // round(6.5)
  EXPECT_FALSE(rows.at<bool>({7, 0}));
  EXPECT_EQ(count_samples(partial_pattern({10, 6}, 1, 1)), 60);
  expect_error<ValueError>([] { partial_pattern({4, 4}, 0.5, 0); }, "(0.5, 1]");
  expect_error<ShapeError>([] { partial_pattern({4, 4}, 0.75, 2); }, "axis: got 2");
}

TEST(LinePatterns, FramesHaveTheirLinesAtOtherPlaces) {
  const Tensor golden = line_patterns(64, {.lines = 8, .frames = 5});
  EXPECT_TRUE(golden.at<bool>({0, 32}));
  for (index_t t = 0; t < 5; ++t) EXPECT_EQ(count_samples(golden.select(0, t)), 8);
  EXPECT_FALSE(equal(golden.select(0, 0), golden.select(0, 1)));
  // Evenly spread offsets fill everything after n / lines frames.
  const Tensor even = line_patterns(64, {.lines = 8, .frames = 8, .golden = false});
  for (index_t k = 0; k < 64; ++k) EXPECT_EQ(count_samples(even.narrow(1, k, 1)), 1) << k;
  const Tensor centered = line_patterns(30, {.lines = 3, .frames = 4, .center = 6});
  EXPECT_EQ(count_samples(centered.narrow(1, 12, 6)), 24);
  expect_error<ValueError>([] { line_patterns(8, {.lines = 9}); }, "got 9 of 8 lines");
}

TEST(Interleaved, FramesAreDisjointAndComplete) {
  const Tensor pattern = sampling_pattern(40, 30, {.acceleration = 3, .center = 0, .seed = 4});
  const Tensor frames = interleaved(pattern, 4);
  for (index_t y = 0; y < 40; ++y) {
    for (index_t x = 0; x < 30; ++x) {
      EXPECT_EQ(count_samples(frames.narrow(1, y, 1).narrow(2, x, 1)),
                pattern.at<bool>({y, x}) ? 1 : 0);
    }
  }
  const Tensor shared = interleaved(Tensor::full<bool>({8, 8}, true), 2, 4);
  EXPECT_EQ(count_samples(shared), 64 + 16);
  expect_error<ShapeError>([] { interleaved(Tensor::full<bool>({8}, true), 2); }, "(ny, nx)");
}

}  // namespace
}  // namespace palimpsest
