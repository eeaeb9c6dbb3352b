// SPDX-License-Identifier: Apache-2.0
// Series whose frames are sums of a few images: a temporal subspace.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <vector>

#include "imaging/simulated.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/imaging/reconstruct.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "support/difference.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::difference;
using testing::expect_error;
using testing::Sample;
using Number = std::complex<double>;

Tensor random(const Extents& shape, std::uint64_t stream) {
  return Tensor::random_normal(shape, DType::complex64, {17, stream});
}

// bool: about half of the points; different in each frame.
Tensor random_mask(const Extents& shape, std::uint64_t stream) {
  Tensor mask = Tensor::zeros(shape, DType::bool_);
  const Tensor numbers = Tensor::random_normal(shape, DType::float32, {17, stream});
  for (index_t i = 0; i < mask.numel(); ++i) {
    mask.mutable_data<bool>()[i] = numbers.data<float>()[i] > 0;
  }
  return mask;
}

// Rows of numbers.
struct Matrix {
  std::size_t rows, columns;
  std::vector<Number> v = std::vector<Number>(rows * columns);
  Number& at(std::size_t i, std::size_t j) { return v[i * columns + j]; }
};

// The contribution of one point of a coil image to a sample: frequencies in cycles per field of
// view.
Number wave(double ky, double kx, index_t y, index_t x, index_t ny, index_t nx) {
  const double turns = ky * static_cast<double>(y - ny / 2) / static_cast<double>(ny) +
                       kx * static_cast<double>(x - nx / 2) / static_cast<double>(nx);
  return std::polar(1 / std::sqrt(static_cast<double>(ny * nx)), -2 * std::numbers::pi * turns);
}

// The model as a matrix, from the frequencies of each frame: rows (frame, coil, sample), columns
// (coefficient, y, x).
Matrix model_of(const Tensor& maps, const Tensor& basis,
                const std::vector<std::vector<std::pair<double, double>>>& frequencies) {
  const index_t coils = maps.shape(0), ny = maps.shape(1), nx = maps.shape(2), n = ny * nx;
  const index_t columns = basis.shape(1);
  std::size_t rows = 0;
  for (const auto& frame : frequencies) rows += frame.size() * static_cast<std::size_t>(coils);
  Matrix A{rows, static_cast<std::size_t>(columns * n)};
  std::size_t row = 0;
  for (std::size_t t = 0; t < frequencies.size(); ++t) {
    for (index_t c = 0; c < coils; ++c) {
      for (const auto& [ky, kx] : frequencies[t]) {
        for (index_t b = 0; b < columns; ++b) {
          const Number factor(basis.data<Sample>()[static_cast<index_t>(t) * columns + b]);
          for (index_t p = 0; p < n; ++p) {
            A.at(row, static_cast<std::size_t>(b * n + p)) =
                factor * Number(maps.data<Sample>()[c * n + p]) *
                wave(ky, kx, p / nx, p % nx, ny, nx);
          }
        }
        ++row;
      }
    }
  }
  return A;
}

// (A^H A + lambda)^-1 A^H y, by elimination.
std::vector<Number> least_squares(Matrix A, const std::vector<Sample>& y, double lambda) {
  const std::size_t n = A.columns;
  Matrix N{n, n + 1};
  for (std::size_t r = 0; r < A.rows; ++r) {
    for (std::size_t i = 0; i < n; ++i) {
      const Number left = std::conj(A.at(r, i));
      for (std::size_t j = 0; j < n; ++j) N.at(i, j) += left * A.at(r, j);
      N.at(i, n) += left * Number(y[r]);
    }
  }
  for (std::size_t i = 0; i < n; ++i) N.at(i, i) += lambda;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t r = 0; r < n; ++r) {
      if (r == i) continue;
      const Number factor = N.at(r, i) / N.at(i, i);
      for (std::size_t j = i; j <= n; ++j) N.at(r, j) -= factor * N.at(i, j);
    }
  }
  std::vector<Number> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = N.at(i, n) / N.at(i, i);
  return x;
}

double error_of(const Tensor& image, const std::vector<Number>& expected) {
  const std::vector<Sample> found = image.to_vector<Sample>();
  if (found.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double miss = 0, size = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    miss += std::norm(Number(found[i]) - expected[i]);
    size += std::norm(expected[i]);
  }
  return std::sqrt(miss / size);
}

TEST(Subspace, OnAGridTheCoefficientsAreThoseOfADenseSolve) {
  constexpr index_t kFrames = 5, kCoils = 3, kNy = 6, kNx = 5;
  const Tensor maps = random({kCoils, kNy, kNx}, 1), basis = random({kFrames, 2}, 2);
  const Tensor mask = random_mask({kFrames, kNy, kNx}, 3);
  const Tensor kspace = mask.unsqueeze(1) * random({kFrames, kCoils, kNy, kNx}, 4);
  std::vector<std::vector<std::pair<double, double>>> frequencies(kFrames);
  std::vector<Sample> y;
  for (index_t t = 0; t < kFrames; ++t) {
    for (index_t c = 0; c < kCoils; ++c) {
      for (index_t p = 0; p < kNy * kNx; ++p) {
        if (!mask.data<bool>()[t * kNy * kNx + p]) continue;
        y.push_back(kspace.data<Sample>()[(t * kCoils + c) * kNy * kNx + p]);
        if (c > 0) continue;
        frequencies[static_cast<std::size_t>(t)].emplace_back(p / kNx - kNy / 2, p % kNx - kNx / 2);
      }
    }
  }
  const auto expected = least_squares(model_of(maps, basis, frequencies), y, 0.5);
  const Reconstruction result = reconstruct(
      kspace, maps, {.mask = mask, .basis = basis},
      {.regularizers = {parse_regularizer("l2:0.5")}, .iterations = 200, .tolerance = 0});
  EXPECT_EQ(result.image.shape(), (Extents{2, kNy, kNx}));
  EXPECT_LT(error_of(result.image, expected), 1e-5);
}

TEST(Subspace, AlongSpokesTheCoefficientsAreThoseOfADenseSolve) {
  constexpr index_t kFrames = 4, kCoils = 2, kN = 8, kSpokes = 5, kSamples = 16;
  const Tensor maps = random({kCoils, kN, kN}, 1);
  const Tensor basis = Tensor::random_normal({kFrames, 2}, DType::float32, {5});
  const Tensor all =
      radial_trajectory({.spokes = kFrames * kSpokes, .samples = kSamples, .golden = 1});
  const Tensor trajectory = all.view({kFrames, kSpokes, kSamples, 2});
  const Tensor kspace = random({kFrames, kCoils, kSpokes, kSamples}, 4);
  std::vector<std::vector<std::pair<double, double>>> frequencies(kFrames);
  for (index_t i = 0; i < kFrames * kSpokes * kSamples; ++i) {
    const float* k = trajectory.data<float>() + 2 * i;
    frequencies[static_cast<std::size_t>(i / (kSpokes * kSamples))].emplace_back(k[1], k[0]);
  }
  const auto expected = least_squares(model_of(maps, basis.to(DType::complex64), frequencies),
                                      kspace.to_vector<Sample>(), 2);
  const Reconstruction result =
      reconstruct(kspace, maps, {.trajectory = trajectory, .basis = basis},
                  {.regularizers = {parse_regularizer("l2:2")}, .iterations = 200, .tolerance = 0});
  EXPECT_EQ(result.image.shape(), (Extents{2, kN, kN}));
  EXPECT_LT(error_of(result.image, expected), 2e-3);
}

TEST(Subspace, TheModelIsThatOfTheFrames) {
  const Tensor maps = random({2, 3, 10, 8}, 1), basis = random({4, 2}, 2);
  const Tensor image = random({2, 2, 10, 8}, 3);  // coefficients, sets
  Tensor frames = Tensor::zeros({4, 2, 10, 8}, DType::complex64);
  const index_t n = image.numel() / 2;
  for (index_t t = 0; t < 4; ++t) {
    for (index_t i = 0; i < n; ++i) {
      frames.mutable_data<Sample>()[t * n + i] =
          basis.data<Sample>()[2 * t] * image.data<Sample>()[i] +
          basis.data<Sample>()[2 * t + 1] * image.data<Sample>()[n + i];
    }
  }
  const Tensor spokes = radial_trajectory({.spokes = 12, .samples = 16, .golden = 1});
  for (const KspaceSampling& series : {KspaceSampling{.mask = random_mask({4, 10, 8}, 5)},
                                       KspaceSampling{.trajectory = spokes.view({4, 3, 16, 2})}}) {
    KspaceSampling sampling = series;
    sampling.basis = basis;
    EXPECT_EQ(image_dimensions(maps, series), Dims("T M Ny Nx"));
    EXPECT_EQ(image_dimensions(maps, sampling), Dims("B M Ny Nx"));
    const Tensor y = sense_model(maps, sampling)(image);
    EXPECT_LT(difference(y.contiguous(), sense_model(maps, series)(frames).contiguous()), 1e-5);
  }
}

// With an identity basis each image is a frame.
TEST(Subspace, AnIdentityGivesTheFramesByEveryMethod) {
  constexpr index_t kFrames = 3;
  const Tensor maps = ring_coil_maps(3, 16, 14);
  Tensor identity = Tensor::zeros({kFrames, kFrames}, DType::float32);
  for (index_t t = 0; t < kFrames; ++t) identity.mutable_data<float>()[t * (kFrames + 1)] = 1;
  const Tensor image = random({kFrames, 16, 14}, 8);
  const Tensor spokes = radial_trajectory({.spokes = 30, .samples = 32, .golden = 1});
  for (const KspaceSampling& series :
       {KspaceSampling{.mask = random_mask({kFrames, 16, 14}, 5)},
        KspaceSampling{.trajectory = spokes.view({kFrames, 10, 32, 2})}}) {
    const Tensor kspace = sense_model(maps, series)(image).contiguous();
    KspaceSampling sampling = series;
    sampling.basis = identity;
    const auto found = [&](const KspaceSampling& how, const char* reg, ReconstructMethod method) {
      ReconstructOptions options{.method = method, .iterations = 400, .tolerance = 0};
      if (reg[0] != 0) options.regularizers = {parse_regularizer(reg)};
      return reconstruct(kspace, maps, how, options);
    };
    const auto expect_same = [&](const char* with_t, const char* with_b, ReconstructMethod method) {
      const Reconstruction plain = found(series, with_t, method);
      const Reconstruction with_basis = found(sampling, with_b, method);
      EXPECT_NEAR(with_basis.scale, plain.scale, 1e-4 * plain.scale) << with_b;
      EXPECT_LT(difference(with_basis.image, plain.image), 5e-3) << with_b << name_of(method);
    };
    expect_same("", "", ReconstructMethod::adjoint);
    expect_same("l2:0.05", "l2:0.05", ReconstructMethod::cg);
    expect_same("llr(Ny=4,Nx=4;T):0.2,shift=none", "llr(Ny=4,Nx=4):0.2,shift=none",
                ReconstructMethod::fista);
    expect_same("lr(;T):0.3", "lr(;B):0.3", ReconstructMethod::pogm);
    expect_same("l1wav:0.1,shift=none,joint=T", "l1wav:0.1,shift=none,joint=B",
                ReconstructMethod::fista);
    expect_same("tv(T):0.1", "tv(B):0.1", ReconstructMethod::admm);
    expect_same("tv:0.1", "tv:0.1", ReconstructMethod::automatic);
    expect_same("tgv:0.1", "tgv:0.1", ReconstructMethod::automatic);
  }
}

// Signals that decay at three rates; three coefficients represent all.
TEST(Subspace, ThreeDecaysAreFoundInAnUndersampledSeries) {
  constexpr index_t kFrames = 16, kN = 24, kDecays = 3;
  constexpr double kRates[kDecays] = {0.05, 0.2, 0.6};
  // The exponentials, made orthonormal.
  std::vector<std::vector<double>> columns;
  for (const double rate : kRates) {
    std::vector<double> column(kFrames);
    for (std::size_t t = 0; t < kFrames; ++t) column[t] = std::exp(-rate * static_cast<double>(t));
    for (const auto& other : columns) {
      double product = 0;
      for (std::size_t t = 0; t < kFrames; ++t) product += other[t] * column[t];
      for (std::size_t t = 0; t < kFrames; ++t) column[t] -= product * other[t];
    }
    double norm2 = 0;
    for (const double v : column) norm2 += v * v;
    for (double& v : column) v /= std::sqrt(norm2);
    columns.push_back(column);
  }
  Tensor basis = Tensor::empty({kFrames, kDecays}, DType::float64);
  Tensor frames = Tensor::zeros({kFrames, kN, kN}, DType::complex64);
  for (index_t t = 0; t < kFrames; ++t) {
    for (index_t b = 0; b < kDecays; ++b) {
      basis.mutable_data<double>()[t * kDecays + b] =
          columns[static_cast<std::size_t>(b)][static_cast<std::size_t>(t)];
    }
    for (index_t p = 0; p < kN * kN; ++p) {
      // Three discs.
      for (index_t d = 0; d < kDecays; ++d) {
        const double y = static_cast<double>(p / kN) - 7 - 4 * static_cast<double>(d);
        const double x = static_cast<double>(p % kN) - 12;
        if (y * y + x * x > 16) continue;
        frames.mutable_data<Sample>()[t * kN * kN + p] +=
            static_cast<float>(std::exp(-kRates[d] * static_cast<double>(t)));
      }
    }
  }
  const Tensor maps = ring_coil_maps(4, kN, kN);
  const Tensor spokes = radial_trajectory({.spokes = kFrames * 6, .samples = 2 * kN, .golden = 1});
  for (const KspaceSampling& series :
       {KspaceSampling{.mask = random_mask({kFrames, kN, kN}, 5)},
        KspaceSampling{.trajectory = spokes.view({kFrames, 6, 2 * kN, 2})}}) {
    KspaceSampling sampling = series;
    sampling.basis = basis;
    const Tensor kspace = sense_model(maps, series)(frames).contiguous();
    const Tensor image =
        reconstruct(
            kspace, maps, sampling,
            {.regularizers = {parse_regularizer("l2:1e-6")}, .iterations = 300, .tolerance = 0})
            .image;
    Tensor found = Tensor::zeros(frames.shape(), DType::complex64);
    for (index_t t = 0; t < kFrames; ++t) {
      for (index_t b = 0; b < kDecays; ++b) {
        const auto factor = static_cast<float>(basis.data<double>()[t * kDecays + b]);
        for (index_t p = 0; p < kN * kN; ++p) {
          found.mutable_data<Sample>()[t * kN * kN + p] +=
              factor * image.data<Sample>()[b * kN * kN + p];
        }
      }
    }
    EXPECT_LT(difference(found, frames), series.mask ? 1e-3 : 0.15);
  }
}

TEST(Subspace, ABudgetCutsTheSolveAndChangesLittle) {
  const Tensor maps = ring_coil_maps(6, 24, 20), basis = random({8, 2}, 2);
  const Tensor mask = random_mask({8, 24, 20}, 3);
  const Tensor kspace = mask.unsqueeze(1) * random({8, 6, 24, 20}, 4);
  ReconstructOptions options{.regularizers = {parse_regularizer("l1wav:0.1,shift=none")},
                             .iterations = 10};
  const KspaceSampling sampling{.mask = mask, .basis = basis};
  const Tensor whole = reconstruct(kspace, maps, sampling, options).image;
  const SolvePlan plan = plan_reconstruct(kspace, maps, sampling, options);
  EXPECT_EQ(plan.tiles, 1);
  // No array of all frames exists: the frames of one coil alone are as large as the whole peak.
  EXPECT_LT(plan.peak_bytes, 8 * 6 * 24 * 20 * 8);
  options.budget_bytes = plan.total_bytes() * 9 / 10;
  const SolvePlan cut = plan_reconstruct(kspace, maps, sampling, options);
  EXPECT_GT(cut.tiles, 1);
  EXPECT_LE(cut.total_bytes(), *options.budget_bytes);
  EXPECT_LT(difference(reconstruct(kspace, maps, sampling, options).image, whole), 1e-5);
}

TEST(Subspace, WhatCannotBeDoneIsNamed) {
  const Tensor maps = ring_coil_maps(3, 16, 14), mask = random_mask({4, 16, 14}, 3);
  const Tensor kspace = mask.unsqueeze(1) * random({4, 3, 16, 14}, 4);
  const auto with = [&](const Tensor& basis, const char* reg = "l2:1") {
    return [&, basis, reg] {
      reconstruct(kspace, maps, {.mask = mask, .basis = basis},
                  {.regularizers = {parse_regularizer(reg)}, .iterations = 1});
    };
  };
  expect_error<ValueError>(with(random({3, 2}, 1)), "expected 4 rows, one for each frame");
  expect_error<ValueError>(with(random({4, 5}, 1)), "expected 1 to 4 columns");
  expect_error<ValueError>(with(random({4}, 1)), "expected numbers (frames, coefficients)");
  expect_error<ValueError>(with(Tensor::zeros({4, 2}, DType::bool_)), "expected numbers");
  Tensor bad = random({4, 2}, 1);
  bad.set<Sample>({2, 1}, Sample(0, std::numeric_limits<float>::infinity()));
  expect_error<ValueError>(with(bad),
                           "NaN or infinite value in single precision at row 2, column 1");
  Tensor empty = random({4, 2}, 1);
  for (const double magnitude : {1e-25, 1e25}) {
    empty.narrow(1, 1, 1).fill(magnitude);
    expect_error<ValueError>(with(empty), "the largest magnitude of column 1 is");
  }
  empty.narrow(1, 1, 1).fill(0);
  expect_error<ValueError>(with(empty), "column 1 is 0 everywhere");
  expect_error<ValueError>(with(random({4, 2}, 1), "tv(T):1"),
                           "no dimension T in the image (B, Ny, Nx)");
  expect_error<ValueError>(with(random({4, 2}, 1), "llr(Ny=4;T):1"), "no dimension T");
  expect_error<ValueError>(
      [&] {
        sense_model(maps, {.mask = mask.select(0, 0), .basis = random({4, 2}, 1)});
      },
      "[basis] there are no frames");
  expect_error<ValueError>(
      [&] {
        sense_model(maps, {.basis = random({4, 2}, 1)});
      },
      "[basis] there are no frames");
  expect_error<ShapeError>(
      [&] {
        sense_model(maps, {.trajectory = Tensor::zeros({2, 2, 3, 4, 2}, DType::float32)});
      },
      "or frames of it");
}

}  // namespace
}  // namespace palimpsest
