// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <vector>

#include "imaging/simulated.hpp"
#include "palimpsest/base/config.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/imaging/sensitivities.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::coil_kspace;
using testing::expect_error;
using testing::head_kspace;
using testing::Sample;
using Complex = std::complex<double>;

EspiritOptions at(index_t y, index_t x, index_t height, index_t width) {
  EspiritOptions options;
  options.area = CalibrationArea{{0, y, x}, {1, height, width}};
  return options;
}

// a^H b| of the coil values at a point; maps are (1, C, y, x) or (C, y, x).
double agreement(const Tensor& a, const Tensor& b, index_t y, index_t x) {
  Complex overlap = 0;
  for (index_t c = 0; c < a.shape(0); ++c) {
    overlap += std::conj(Complex(a.at<Sample>({c, y, x}))) * Complex(b.at<Sample>({c, y, x}));
  }
  return std::abs(overlap);
}

TEST(Espirit, MapsAreThoseOfTheCoilsWithinTheObject) {
  const index_t ny = 64, nx = 56;
  const Tensor image = ellipse_image(modified_shepp_logan(), ny, nx);
  const Tensor maps = ring_coil_maps(6, ny, nx);
  const MapsResult result = espirit(coil_kspace(image, maps));
  ASSERT_EQ(result.maps.shape(), (Extents{1, 6, ny, nx}));
  ASSERT_EQ(result.eigenvalues.shape(), (Extents{1, ny, nx}));
  for (index_t y = 0; y < ny; ++y) {
    for (index_t x = 0; x < nx; ++x) {
      if (image.at<float>({y, x}) < 0.15F) continue;
      EXPECT_GT(agreement(maps, result.maps.select(0, 0), y, x), 0.995) << y << ", " << x;
    }
  }
}

TEST(Espirit, MapsAreZeroExactlyWhereTheEigenvalueIsBelowTheCropValue) {
  const Ellipse disc{1, 0.4, 0.4, 0, 0, 0};
  const Tensor image = ellipse_image({&disc, 1}, 64, 64);
  const MapsResult r = espirit(coil_kspace(image, ring_coil_maps(8, 64, 64)));
  index_t n_cropped = 0;
  for (index_t y = 0; y < 64; ++y) {
    for (index_t x = 0; x < 64; ++x) {
      const bool is_cropped = r.eigenvalues.at<float>({0, y, x}) < 0.8F;
      n_cropped += is_cropped ? 1 : 0;
      EXPECT_NEAR(agreement(r.maps.select(0, 0), r.maps.select(0, 0), y, x), is_cropped ? 0 : 1,
                  1e-5);
    }
  }
  EXPECT_GT(n_cropped, 1000);
  EXPECT_LT(n_cropped, 64 * 64 - 500);
}

// If all vectors are kept, every window is in their span.
TEST(Espirit, EigenvaluesAreOneWhenAllVectorsAreKept) {
  EspiritOptions options = at(10, 8, 12, 12);
  options.kernel = 3;
  options.rank = 1000;
  options.sets = 3;
  const MapsResult r = espirit(head_kspace(3, 32, 28), options);
  EXPECT_EQ(r.vectors, r.of_vectors);
  for (const float e : r.eigenvalues.to_vector<float>()) EXPECT_NEAR(e, 1, 1e-5);
}

// A vector v gives G = w w^H / kernel^d, w_a(r) = sum over u of v_a(u) exp(2 pi i u r / N).
class OneVector : public ::testing::TestWithParam<Extents> {
 protected:
  static constexpr index_t kKernel = 3;

  // The window that best agrees with all windows of the area, by the power method.
  static std::vector<Complex> dominant_window(const Tensor& area) {
    const Extents e = area.shape();
    const bool is_volume = e.size() == 4;
    const index_t nz = is_volume ? e[1] : 1, ny = e[e.size() - 2], nx = e[e.size() - 1];
    const index_t kz = is_volume ? kKernel : 1;
    const std::vector<Sample> v = area.contiguous().to_vector<Sample>();
    std::vector<std::vector<Complex>> windows;
    for (index_t z = 0; z + kz <= nz; ++z) {
      for (index_t y = 0; y + kKernel <= ny; ++y) {
        for (index_t x = 0; x + kKernel <= nx; ++x) {
          auto& w = windows.emplace_back();
          for (index_t c = 0; c < e[0]; ++c) {
            for (index_t i = 0; i < kz * kKernel * kKernel; ++i) {
              const index_t dz = i / (kKernel * kKernel), dy = i / kKernel % kKernel,
                            dx = i % kKernel;
              w.emplace_back(
                  v[static_cast<std::size_t>(((c * nz + z + dz) * ny + y + dy) * nx + x + dx)]);
            }
          }
        }
      }
    }
    std::vector<Complex> p = windows[windows.size() / 2];
    for (int step = 0; step < 300; ++step) {
      std::vector<Complex> next(p.size());
      for (const auto& w : windows) {
        Complex product = 0;
        for (std::size_t i = 0; i < p.size(); ++i) product += std::conj(w[i]) * p[i];
        for (std::size_t i = 0; i < p.size(); ++i) next[i] += product * w[i];
      }
      double norm2 = 0;
      for (const Complex n : next) norm2 += std::norm(n);
      for (std::size_t i = 0; i < p.size(); ++i) p[i] = next[i] / std::sqrt(norm2);
    }
    return p;
  }
};

TEST_P(OneVector, GivesTheTransformOfThatVector) {
  const Extents shape = GetParam();
  const bool is_volume = shape.size() == 4;
  // Smooth k-space, so that one vector dominates.
  const std::vector<float> noise =
      Tensor::random_normal({element_count(shape) * 2}, DType::float32, {7, 0}).to_vector<float>();
  Tensor kspace = Tensor::zeros(shape, DType::complex64);
  auto* values = kspace.mutable_data<Sample>();
  const index_t per_coil = element_count(shape) / shape[0];
  for (index_t i = 0; i < element_count(shape); ++i) {
    const auto c = static_cast<float>(i / per_coil), x = static_cast<float>(i % shape.back());
    values[i] = std::polar(1 + c, 0.3F * x * (c + 1)) +
                0.05F * Sample(noise[static_cast<std::size_t>(2 * i)],
                               noise[static_cast<std::size_t>(2 * i + 1)]);
  }
  EspiritOptions options;
  options.kernel = kKernel;
  options.rank = 1;
  options.crop = 0;
  options.rotate_phase = false;
  options.calibration = 8;
  const MapsResult r = espirit(kspace, options);
  const std::vector<Complex> v = dominant_window(calibration_samples(kspace, r.area));
  const index_t kz = is_volume ? kKernel : 1, window = kz * kKernel * kKernel;
  const index_t nz = is_volume ? shape[1] : 1, ny = shape[shape.size() - 2], nx = shape.back();
  const std::vector<Sample> maps = r.maps.to_vector<Sample>();
  const std::vector<float> eigenvalues = r.eigenvalues.to_vector<float>();
  for (index_t p = 0; p < per_coil; ++p) {
    const index_t z = p / (ny * nx), y = p / nx % ny, x = p % nx;
    double energy = 0;
    Complex overlap = 0;
    for (index_t c = 0; c < shape[0]; ++c) {
      Complex w = 0;
      for (index_t i = 0; i < window; ++i) {
        const index_t uz = i / (kKernel * kKernel), uy = i / kKernel % kKernel, ux = i % kKernel;
        const auto turn = [](index_t u, index_t j, index_t n) {
          return static_cast<double>(u * (j - n / 2)) / static_cast<double>(n);
        };
        w += v[static_cast<std::size_t>(c * window + i)] *
             std::polar(
                 1.0, 2 * std::numbers::pi * (turn(uz, z, nz) + turn(uy, y, ny) + turn(ux, x, nx)));
      }
      energy += std::norm(w);
      overlap += std::conj(Complex(maps[static_cast<std::size_t>(c * per_coil + p)])) * w;
    }
    EXPECT_NEAR(eigenvalues[static_cast<std::size_t>(p)], energy / static_cast<double>(window),
                1e-5);
    // If two eigenvalues are 0, their vectors are arbitrary.
    if (energy <= 1e-4) continue;
    EXPECT_NEAR(std::abs(overlap) / std::sqrt(energy), 1, 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, OneVector,
                         ::testing::Values(Extents{2, 11, 20}, Extents{3, 8, 9},
                                           Extents{2, 5, 9, 8}, Extents{1, 9, 9}));

TEST(Espirit, SetsAreOrthonormalAndOrdered) {
  EspiritOptions options;
  options.sets = 3;
  options.crop = 0;
  const MapsResult r = espirit(head_kspace(5, 40, 36), options);
  for (index_t y = 0; y < 40; y += 3) {
    for (index_t x = 0; x < 36; ++x) {
      for (index_t m = 0; m < 3; ++m) {
        for (index_t k = 0; k < 3; ++k) {
          Complex product = 0;
          for (index_t c = 0; c < 5; ++c) {
            product += std::conj(Complex(r.maps.at<Sample>({m, c, y, x}))) *
                       Complex(r.maps.at<Sample>({k, c, y, x}));
          }
          EXPECT_NEAR(std::abs(product - (m == k ? 1.0 : 0.0)), 0, 1e-5);
        }
        if (m > 0) {
          EXPECT_LE(r.eigenvalues.at<float>({m, y, x}), r.eigenvalues.at<float>({m - 1, y, x}));
        }
      }
    }
  }
}

// Without eigenvalues, points whose eigenvalue bound is below the crop value skip LAPACK.
TEST(Espirit, CroppedVectorsAreTheSameWithoutTheirEigenvalues) {
  for (const index_t sets : {1, 2, 4}) {
    for (const double crop : {0.0, 0.02, 0.3, 0.8, 0.95}) {
      EspiritOptions kept;
      kept.sets = sets;
      kept.crop = crop;
      kept.calibration = 16;
      EspiritOptions bare = kept;
      bare.keep_eigenvalues = false;
      const Tensor kspace = head_kspace(6, 48, 44);
      const std::vector<Sample> a = espirit(kspace, kept).maps.to_vector<Sample>();
      const std::vector<Sample> b = espirit(kspace, bare).maps.to_vector<Sample>();
      for (std::size_t i = 0; i < a.size(); ++i) {
        ASSERT_EQ(a[i] == Sample(0), b[i] == Sample(0)) << sets << ", " << crop << ", " << i;
        ASSERT_LE(std::abs(a[i] - b[i]), 3e-5F) << sets << ", " << crop << ", " << i;
      }
    }
  }
}

// The first of two sets is computed by LAPACK, a single one by power iterations.
TEST(Espirit, PowerStepsFindTheVectorsOfLapack) {
  const Tensor kspace = head_kspace(6, 48, 44);
  EspiritOptions two;
  two.sets = 2;
  const MapsResult a = espirit(kspace), b = espirit(kspace, two);
  EXPECT_EQ(a.vectors, b.vectors);
  for (index_t y = 0; y < 48; ++y) {
    for (index_t x = 0; x < 44; ++x) {
      EXPECT_NEAR(a.eigenvalues.at<float>({0, y, x}), b.eigenvalues.at<float>({0, y, x}), 1e-5);
      for (index_t c = 0; c < 6; ++c) {
        EXPECT_LE(std::abs(a.maps.at<Sample>({0, c, y, x}) - b.maps.at<Sample>({0, c, y, x})),
                  3e-5F)
            << c << ", " << y << ", " << x;
      }
    }
  }
}

TEST(Espirit, FewerWindowsThanColumnsGiveTheSameSpace) {
  // 12 coils: 49 windows of 432 columns, then 361 windows of 108 columns.
  const Tensor image = ellipse_image(modified_shepp_logan(), 40, 40);
  const Tensor true_maps = ring_coil_maps(12, 40, 40);
  const Tensor kspace = coil_kspace(image, true_maps);
  const MapsResult few = espirit(kspace, at(14, 14, 12, 12));
  EXPECT_EQ(few.of_vectors, 432);
  EXPECT_LT(few.vectors, 49);
  EXPECT_GT(agreement(true_maps, few.maps.select(0, 0), 20, 20), 0.99);
}

TEST(Espirit, TheUnitsOfTheDataDoNotMatter) {
  const Tensor kspace = head_kspace(4, 32, 32);
  const MapsResult plain = espirit(kspace);
  std::vector<Sample> small = kspace.to_vector<Sample>();
  for (Sample& v : small) v *= 0x1p-60F;
  const MapsResult scaled = espirit(Tensor::from(small, kspace.shape()));
  EXPECT_EQ(plain.maps.to_vector<Sample>(), scaled.maps.to_vector<Sample>());
}

TEST(Espirit, SoftMapsFadeOut) {
  const Tensor kspace = head_kspace(4, 32, 32);
  EspiritOptions options;
  options.soft = true;
  const MapsResult r = espirit(kspace, options);
  for (index_t y = 0; y < 32; ++y) {
    for (index_t x = 0; x < 32; ++x) {
      const double t = (std::sqrt(std::max(0.0F, r.eigenvalues.at<float>({0, y, x}))) - 0.8) / 0.2;
      const double weight = t <= -1 ? 0 : t >= 1 ? 1 : 0.5 + t / (1 + t * t);
      const Tensor maps = r.maps.select(0, 0);
      EXPECT_NEAR(std::sqrt(agreement(maps, maps, y, x)), weight, 1e-4);
    }
  }
}

TEST(Espirit, IntensityAndPhaseAreOptions) {
  const Tensor kspace = head_kspace(4, 32, 32);
  EspiritOptions options;
  options.intensity = true;
  const MapsResult unit = espirit(kspace), intense = espirit(kspace, options);
  for (index_t y = 0; y < 32; ++y) {
    for (index_t x = 0; x < 32; ++x) {
      double norm1 = 0;
      for (index_t c = 0; c < 4; ++c) norm1 += std::abs(intense.maps.at<Sample>({0, c, y, x}));
      const Sample s = unit.maps.at<Sample>({0, 1, y, x});
      EXPECT_NEAR(norm1, s == Sample(0) ? 0 : 2, 1e-5);
      EXPECT_NEAR(std::arg(intense.maps.at<Sample>({0, 1, y, x})), std::arg(s), 1e-5);
    }
  }
  // With the phase turned, the maps of one coil are real and positive.
  const MapsResult one = espirit(kspace.narrow(0, 0, 1));
  for (const Sample v : one.maps.to_vector<Sample>()) {
    EXPECT_NEAR(v.imag(), 0, 1e-6);
    EXPECT_GE(v.real(), 0);
  }
}

TEST(Espirit, TheNumberOfThreadsDoesNotMatter) {
  const Tensor kspace = head_kspace(5, 50, 37);
  EspiritOptions two;
  two.sets = 2;
  for (const EspiritOptions& options : {EspiritOptions{}, two}) {
    const MapsResult all = espirit(kspace, options);
    const ConfigScope scope([] {
      ConfigOverrides one;
      one.threads = 1;
      return one;
    }());
    const MapsResult one = espirit(kspace, options);
    EXPECT_EQ(all.maps.to_vector<Sample>(), one.maps.to_vector<Sample>());
    EXPECT_EQ(all.eigenvalues.to_vector<float>(), one.eigenvalues.to_vector<float>());
  }
}

TEST(Espirit, ThePlanIsWhatIsHeld) {
  const Tensor kspace = head_kspace(5, 50, 37), many = head_kspace(20, 32, 32);
  EspiritOptions two, small = at(19, 12, 12, 13), bare, scattered = at(10, 10, 11, 12);
  two.sets = 2;
  small.kernel = 3;
  bare.keep_eigenvalues = false;
  const auto expect_planned = [](const Tensor& data, const EspiritOptions& options) {
    const MemoryScope scope;
    const MapsResult r = espirit(data, options);
    EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()),
              plan_espirit(data.shape(), options).peak_bytes());
  };
  for (const EspiritOptions& options : {EspiritOptions{}, two, small, bare}) {
    expect_planned(kspace, options);
  }
  expect_planned(many, EspiritOptions{});
  expect_planned(many, scattered);  // fewer windows than columns
  EspiritOptions weighted;
  weighted.threshold = std::nullopt;
  expect_planned(kspace, weighted);
  // With an output array, only the workspace is held.
  ScratchArray array(::testing::TempDir(), {1, 5, 50, 37}, DType::complex64);
  const MemoryScope scope;
  espirit(kspace, array, bare);
  EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()),
            plan_espirit(kspace.shape(), bare, true).peak_bytes());
  EXPECT_LT(plan_espirit(kspace.shape(), bare, true).peak_bytes(),
            plan_espirit(kspace.shape(), bare).peak_bytes() + 1);
}

TEST(Espirit, AnArrayGetsTheSameMaps) {
  const Tensor kspace = head_kspace(4, 32, 30);
  EspiritOptions options;
  for (const std::optional<double> crop : {std::optional<double>(0.8), std::optional<double>()}) {
    options.crop = crop;
    ScratchArray array(::testing::TempDir(), {1, 4, 32, 30}, DType::complex64);
    const MapsResult into = espirit(kspace, array, options);
    EXPECT_FALSE(into.maps.defined());
    EXPECT_EQ(array.map().to_vector<Sample>(), espirit(kspace, options).maps.to_vector<Sample>());
  }
  ScratchArray wrong(::testing::TempDir(), {4, 32, 30}, DType::complex64);
  expect_error<ShapeError>([&] { espirit(kspace, wrong); }, "(1, 4, 32, 30)");
}

// k-space with noise of variance `sigma2` for each complex sample.
Tensor noisy(const Tensor& kspace, double sigma2) {
  std::vector<Sample> values = kspace.to_vector<Sample>();
  const std::vector<Sample> noise =
      Tensor::random_normal(kspace.shape(), DType::complex64, {11, 0}).to_vector<Sample>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] += static_cast<float>(std::sqrt(sigma2)) * noise[i];
  }
  return Tensor::from(values, kspace.shape());
}

TEST(Espirit, AutomaticWeightsFollowTheNoise) {
  const Tensor kspace = head_kspace(4, 40, 40);
  EspiritOptions options;
  options.threshold = std::nullopt;
  options.sigma2 = 0;
  // Nothing is noise. Without any, rounding errors would decide whether the smallest value is 0.
  EXPECT_EQ(espirit(noisy(kspace, 1e-4), options).vectors, 144);
  options.sigma2 = 1e6;
  EXPECT_EQ(espirit(kspace, options).vectors, 0);  // everything is
  options.sigma2 = std::nullopt;
  index_t last = 144;
  for (const double sigma2 : {1e-4, 1e-2, 1.0}) {
    const MapsResult found = espirit(noisy(kspace, sigma2), options);
    EspiritOptions told = options;
    told.sigma2 = sigma2;
    // The noise level estimated from the smallest singular values is about the true one.
    EXPECT_NEAR(static_cast<double>(found.vectors),
                static_cast<double>(espirit(noisy(kspace, sigma2), told).vectors), 20)
        << sigma2;
    EXPECT_LT(found.vectors, last);
    last = found.vectors;
  }
}

TEST(Espirit, AnAutomaticCropValueRisesWithTheNoise) {
  const Tensor kspace = noisy(head_kspace(4, 32, 32), 1e-3);
  EspiritOptions options;
  options.crop = std::nullopt;
  options.sigma2 = 0;
  const MapsResult all = espirit(kspace, options);
  EXPECT_NEAR(all.crop, 0.5, 0.0101);  // every point helps to explain the data
  options.sigma2 = 1e6;
  const MapsResult none = espirit(kspace, options);
  EXPECT_GT(none.crop, 0.98);
  options.sigma2 = std::nullopt;
  const MapsResult some = espirit(kspace, options);
  EXPECT_GE(some.crop, all.crop);
  EXPECT_LE(some.crop, none.crop);
  EspiritOptions fixed;
  fixed.crop = some.crop;
  EXPECT_EQ(some.maps.to_vector<Sample>(), espirit(kspace, fixed).maps.to_vector<Sample>());
}

TEST(Espirit, NamesWhatIsWrong) {
  const Tensor kspace = head_kspace(3, 24, 24);
  expect_error<ValueError>([&] { espirit(kspace, at(8, 8, 7, 12)); }, "too small: got 1 x 7 x 12");
  expect_error<ValueError>([&] { espirit(kspace, at(20, 8, 8, 12)); }, "outside of k-space");
  expect_error<ValueError>(
      [] {
        espirit(Tensor::zeros({2, 24, 24}, DType::complex64));
      },
      "too small");
  expect_error<ValueError>(
      [] {
        espirit(Tensor::zeros({2, 24, 24}, DType::complex64), at(2, 2, 12, 12));
      },
      "holds no signal");
  Tensor with_nan = kspace.clone();
  with_nan.set<Sample>({1, 12, 12}, Sample(std::numeric_limits<float>::quiet_NaN(), 0));
  expect_error<ValueError>([&] { espirit(with_nan); }, "NaN");
  expect_error<DTypeError>([] { espirit(Tensor::ones({2, 24, 24})); }, "float64");
  expect_error<ShapeError>([] { espirit(Tensor::ones({24, 24}, DType::complex64)); }, "coil");
  EspiritOptions options;
  options.sets = 4;
  expect_error<ValueError>([&] { espirit(kspace, options); }, "sets: got 4");
  options = {};
  options.kernel = 0;
  expect_error<ValueError>([&] { espirit(kspace, options); }, "kernel: got 0");
  options = {};
  options.threshold = 1;
  expect_error<ValueError>([&] { espirit(kspace, options); }, "threshold: got 1");
  options = {};
  options.percent = -1;
  expect_error<ValueError>([&] { espirit(kspace, options); }, "percent: got -1");
  options = {};
  options.rank = 0;
  expect_error<ValueError>([&] { espirit(kspace, options); }, "rank: got 0");
  options = {};
  options.crop = std::numeric_limits<double>::quiet_NaN();
  expect_error<ValueError>([&] { espirit(kspace, options); }, "crop: got nan");
  options.crop = std::nullopt;
  options.soft = true;
  expect_error<ValueError>([&] { plan_espirit(kspace.shape(), options); }, "soft");
}

// The head of sigpy-mri-tutorial, complex64 (8, 230, 180), if the file is available.
TEST(Espirit, FindsTheKnownNumbersOfAMeasuredHead) {
  const char* const path = std::getenv("PALIMPSEST_TEST_HEAD");
  if (!path) GTEST_SKIP() << "PALIMPSEST_TEST_HEAD names no file";
  EspiritOptions two;
  two.sets = 2;
  const MapsResult r = espirit(read_npy(path), two);
  EXPECT_EQ(r.area, (CalibrationArea{{0, 103, 78}, {1, 24, 24}}));
  EXPECT_EQ(r.vectors, 56);
  EXPECT_EQ(r.of_vectors, 288);
  const std::vector<float> e = r.eigenvalues.to_vector<float>();
  EXPECT_EQ(std::count_if(e.begin(), e.begin() + 41400, [](float v) { return v >= 0.8F; }), 33557);
  EXPECT_EQ(std::count_if(e.begin() + 41400, e.end(), [](float v) { return v >= 0.8F; }), 155);
}

}  // namespace
}  // namespace palimpsest
