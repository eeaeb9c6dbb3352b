// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/quality/g_factor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "palimpsest/base/error.hpp"
#include "palimpsest/imaging/coil_maps.hpp"
#include "palimpsest/imaging/patterns.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using ::testing::HasSubstr;
using Complex = std::complex<double>;

TEST(GFactor, IsOneWithoutAcceleration) {
  const Tensor maps = ring_coil_maps(4, 12, 12);
  const GFactor found = g_factor(maps, Tensor::full<bool>({12, 12}, true), {.replicas = 3});
  EXPECT_EQ(found.acceleration, 1);
  for (const float g : found.g.to_vector<float>()) EXPECT_EQ(g, 1);
  EXPECT_EQ(found.warning, "");
}

// Regular twofold undersampling folds two points: g follows exactly from their matrix S^H S.
TEST(GFactor, OfALatticeIsThatOfTheFoldedPoints) {
  const index_t n = 16;
  const Tensor maps = ring_coil_maps(4, n, n);
  Tensor mask = Tensor::full<bool>({n, n}, false);
  for (index_t y = 0; y < n; y += 2) {
    Tensor row = mask.narrow(0, y, 1);
    row.fill<bool>(true);
  }
  const index_t replicas = 400;
  const GFactor found =
      g_factor(maps, mask, {.replicas = replicas, .seed = 5, .reconstruct = {.iterations = 30}});
  EXPECT_EQ(found.acceleration, 2);
  const auto* s = maps.data<std::complex<float>>();
  double ratio_sum = 0;
  for (index_t y = 0; y < n; ++y) {
    for (index_t x = 0; x < n; ++x) {
      const index_t other = (y + n / 2) % n;
      double aa = 0, bb = 0;
      Complex ab = 0;
      for (index_t c = 0; c < 4; ++c) {
        const Complex a(s[(c * n + y) * n + x]), b(s[(c * n + other) * n + x]);
        aa += std::norm(a), bb += std::norm(b), ab += std::conj(a) * b;
      }
      const double exact = std::sqrt(aa * bb / (aa * bb - std::norm(ab)));
      const double ratio = double{found.g.at<float>({y, x})} / exact;
      ratio_sum += ratio;
      // Each deviation is estimated to 2.5 %, their quotient to 3.5 %.
      EXPECT_NEAR(ratio, 1, 0.18) << y << " " << x;
    }
  }
  EXPECT_NEAR(ratio_sum / static_cast<double>(n * n), 1, 0.02);
}

TEST(GFactor, WarnsOfNonlinearMethodsAndRefusesWhatIsWrong) {
  const Tensor maps = ring_coil_maps(2, 8, 8);
  const Tensor mask = Tensor::full<bool>({8, 8}, true);
  GFactorOptions tv = {.replicas = 2};
  tv.reconstruct.regularizers = {parse_regularizer("tv:0.01")};
  tv.reconstruct.iterations = 2;
  EXPECT_THAT(g_factor(maps, mask, tv).warning, HasSubstr("nonlinear"));
  expect_error<ValueError>([&] { g_factor(maps, mask, {.replicas = 1}); }, "replicas");
  expect_error<ValueError>(
      [&] {
        g_factor(maps, Tensor::full<bool>({8, 8}, false));
      },
      "no samples");
  expect_error<ShapeError>([&] { g_factor(maps, Tensor::ones({8, 8})); }, "expected bool");
}

}  // namespace
}  // namespace palimpsest
