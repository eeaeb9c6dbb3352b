// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/reconstruct.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "imaging/simulated.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/imaging/patterns.hpp"
#include "palimpsest/imaging/recon/preconditioner.hpp"
#include "palimpsest/imaging/sensitivities.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "support/difference.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::coil_kspace;
using testing::difference;
using testing::expect_error;
using testing::Sample;

constexpr index_t kCoils = 4, kRows = 48, kColumns = 40;

Tensor masked(const Tensor& kspace, const Tensor& mask) {
  std::vector<Sample> values = kspace.to_vector<Sample>();
  const std::vector<bool> taken = mask.to_vector<bool>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!taken[i % taken.size()]) values[i] = 0;
  }
  return Tensor::from(values, kspace.shape());
}

Tensor with_noise(const Tensor& kspace, const Tensor& mask, double level) {
  const Tensor noise = Tensor::random_normal(kspace.shape(), DType::complex64, {7});
  std::vector<Sample> values = kspace.to_vector<Sample>();
  const std::vector<Sample> added = noise.to_vector<Sample>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += static_cast<float>(level) * added[i];
  return masked(Tensor::from(values, kspace.shape()), mask);
}

struct Head {
  Tensor image = ellipse_image(modified_shepp_logan(), kRows, kColumns);
  Tensor maps = ring_coil_maps(kCoils, kRows, kColumns);
  Tensor mask = sampling_pattern(kRows, kColumns, {.acceleration = 4, .center = 12, .seed = 3});
  Tensor full = coil_kspace(image, maps);
  Tensor kspace = with_noise(full, mask, 0.02);
};

double error_of(const Head& head, const std::string& reg, int iterations) {
  ReconstructOptions options{.iterations = iterations, .tolerance = 0};
  if (!reg.empty()) options.regularizers = {parse_regularizer(reg)};
  return difference(reconstruct(head.kspace, head.maps, {}, options).image, head.image);
}

TEST(Reconstruct, AFullGridGivesTheImageByEveryMethod) {
  const Head head;
  for (const auto method :
       {ReconstructMethod::adjoint, ReconstructMethod::cg, ReconstructMethod::fista}) {
    const auto result =
        reconstruct(head.full, head.maps, {}, {.method = method, .iterations = 60, .tolerance = 0});
    EXPECT_LT(difference(result.image, head.image), 1e-3) << name_of(method);
    EXPECT_EQ(result.method, method);
  }
}

TEST(Reconstruct, SparsityBeatsLeastSquaresWhichBeatsZeros) {
  const Head head;
  const double zeros = difference(
      reconstruct(head.kspace, head.maps, {}, {.method = ReconstructMethod::adjoint}).image,
      head.image);
  const double squares = error_of(head, "l2:0.01", 30);
  const double wavelet = error_of(head, "l1wav:0.01", 100);
  const double variation = error_of(head, "tv:0.01", 200);
  EXPECT_LT(squares, 0.8 * zeros);
  EXPECT_LT(wavelet, 0.9 * squares);
  EXPECT_LT(variation, 0.7 * squares);
}

// A ramp has no second-order cost, while total variation penalizes its slope.
TEST(Reconstruct, GeneralizedVariationKeepsSlopes) {
  const Tensor maps = ring_coil_maps(4, 32, 36);
  std::vector<float> ramp(std::size_t{32} * 36);
  for (std::size_t i = 0; i < ramp.size(); ++i) {
    ramp[i] = 1 + std::abs(static_cast<float>(i % 36) - 18) / 9;
  }
  const Tensor image = Tensor::from(ramp, Extents{32, 36});
  const Tensor kspace = coil_kspace(image, maps);
  const auto error = [&](const char* reg) {
    const Tensor found =
        reconstruct(kspace, maps, {},
                    {.regularizers = {parse_regularizer(reg)}, .iterations = 300, .tolerance = 0})
            .image;
    EXPECT_EQ(found.shape(), image.shape());
    return difference(found, image);
  };
  EXPECT_LT(error("tgv:0.2"), 0.5 * error("tv:0.2"));
}

TEST(Reconstruct, TheUnitsOfTheDataDoNotMatter) {
  const Head head;
  const ReconstructOptions options{.regularizers = {parse_regularizer("l1wav:0.01,shift=none")},
                                   .iterations = 20};
  const auto once = reconstruct(head.kspace, head.maps, {}, options);
  const Tensor louder = (head.kspace.to(DType::complex128)).to(DType::complex64);
  std::vector<Sample> values = louder.to_vector<Sample>();
  for (Sample& v : values) v *= 1024.0f;
  const auto more = reconstruct(Tensor::from(values, head.kspace.shape()), head.maps, {}, options);
  EXPECT_NEAR(more.scale, 1024 * once.scale, 1e-6 * more.scale);
  std::vector<Sample> back = more.image.to_vector<Sample>();
  for (Sample& v : back) v /= 1024.0f;
  EXPECT_LT(difference(Tensor::from(back, once.image.shape()), once.image), 1e-6);
}

TEST(Reconstruct, KeepScaleGivesTheScaledImage) {
  const Head head;
  const auto plain = reconstruct(head.kspace, head.maps, {}, {.scale = 4.0});
  auto kept = reconstruct(head.kspace, head.maps, {}, {.scale = 4.0, .keep_scale = true});
  std::vector<Sample> values = kept.image.to_vector<Sample>();
  for (Sample& v : values) v *= 4.0f;
  EXPECT_LT(difference(Tensor::from(values, kept.image.shape()), plain.image), 1e-6);
}

TEST(Reconstruct, ABudgetCutsTheSolveAndChangesLittle) {
  Head head;
  head.maps = ring_coil_maps(24, kRows, kColumns);  // more than one step takes
  head.kspace = with_noise(coil_kspace(head.image, head.maps), head.mask, 0.02);
  ReconstructOptions options{.regularizers = {parse_regularizer("l1wav:0.01,shift=none")},
                             .iterations = 10};
  const Tensor whole = reconstruct(head.kspace, head.maps, {}, options).image;
  const SolvePlan plan = plan_reconstruct(head.kspace, head.maps, {}, options);
  EXPECT_EQ(plan.tiles, 1);
  options.budget_bytes = plan.total_bytes() * 9 / 10;
  const SolvePlan cut = plan_reconstruct(head.kspace, head.maps, {}, options);
  EXPECT_GT(cut.tiles, 1);
  EXPECT_LE(cut.total_bytes(), *options.budget_bytes);
  EXPECT_LT(difference(reconstruct(head.kspace, head.maps, {}, options).image, whole), 1e-5);
}

TEST(Reconstruct, ASeriesGainsFromItsOtherFrames) {
  const Head head;
  constexpr index_t kFrames = 6;
  Tensor kspace = Tensor::zeros({kFrames, kCoils, kRows, kColumns}, DType::complex64);
  Tensor masks = Tensor::zeros({kFrames, kRows, kColumns}, DType::bool_);
  for (index_t t = 0; t < kFrames; ++t) {
    const Tensor mask = sampling_pattern(
        kRows, kColumns,
        {.acceleration = 8, .center = 8, .seed = static_cast<std::uint64_t>(t + 1)});
    masks.select(0, t).copy_from(mask);
    kspace.select(0, t).copy_from(masked(head.full, mask));
  }
  const auto error = [&](const std::string& reg) {
    ReconstructOptions options{
        .regularizers = {parse_regularizer(reg)}, .iterations = 80, .tolerance = 0};
    const Tensor image = reconstruct(kspace, head.maps, {.mask = masks}, options).image;
    EXPECT_EQ(image.shape(), (Extents{kFrames, kRows, kColumns})) << reg;
    return difference(image.select(0, 2).contiguous(), head.image);
  };
  const double alone = error("l2:0.001");
  for (const char* reg : {"tv(T):0.05", "l1fft(T):0.02", "lr(;T):0.05", "llr(Ny=8,Nx=8;T):0.02"}) {
    EXPECT_LT(error(reg), 0.6 * alone) << reg;
  }
}

TEST(Reconstruct, SamplesAlongSpokesGiveTheImage) {
  const Head head;
  const Tensor trajectory = radial_trajectory({.spokes = 60, .samples = 96, .oversampling = 2});
  const NamedLinop A = sense_model(head.maps, {.trajectory = trajectory});
  const Tensor kspace = A(head.image.to(DType::complex64)).contiguous();
  const auto image = [&](const std::string& reg, int iterations, bool toeplitz) {
    return reconstruct(
               kspace, head.maps, {.trajectory = trajectory, .toeplitz = toeplitz},
               {.regularizers = {parse_regularizer(reg)}, .iterations = iterations, .tolerance = 0})
        .image;
  };
  const Tensor squares = image("l2:0", 40, true), sharp = image("tv:0.0003", 200, true);
  EXPECT_LT(difference(squares, head.image), 0.1);
  EXPECT_LT(difference(sharp, head.image), 0.11);
  EXPECT_LT(difference(image("l2:0", 40, false), squares), 1e-2);
}

// With steps of 1 / L the distance is 0.2 to 0.5 after as many iterations.
TEST(Reconstruct, ThirtyIterationsAlongSpokesComeNearTheMinimum) {
  const Head head;
  const Tensor trajectory = radial_trajectory({.spokes = 34, .samples = 96, .oversampling = 2});
  const NamedLinop A = sense_model(head.maps, {.trajectory = trajectory});
  const Tensor kspace = A(head.image.to(DType::complex64)).contiguous();
  const auto image = [&](const std::string& reg, int iterations) {
    return reconstruct(
               kspace, head.maps, {.trajectory = trajectory},
               {.regularizers = {parse_regularizer(reg)}, .iterations = iterations, .tolerance = 0})
        .image;
  };
  for (const char* reg : {"tv:0.01", "tv:0.001"}) {
    EXPECT_LT(difference(image(reg, 30), image(reg, 2000)), 0.12) << reg;
  }
}

// The phase of these maps would make the steps too long: one step for all frequencies is used
// instead.
TEST(Reconstruct, MapsOfSteepPhaseDoNotLetItDiverge) {
  const Head head;
  const Tensor trajectory = radial_trajectory({.spokes = 34, .samples = 96, .oversampling = 2});
  Tensor maps = head.maps.clone();
  Sample* v = maps.mutable_data<Sample>();
  for (index_t i = 0; i < maps.numel(); ++i) {
    v[i] *= std::polar(1.0F, 0.9F * static_cast<float>(i % kColumns + i / kColumns % kRows));
  }
  EXPECT_GT(mean_square_frequency(maps, 2), kDilation * kDilation);
  EXPECT_LT(mean_square_frequency(head.maps, 2), kDilation * kDilation);
  const NamedLinop A = sense_model(maps, {.trajectory = trajectory});
  const Tensor kspace = A(head.image.to(DType::complex64)).contiguous();
  const auto result = reconstruct(
      kspace, maps, {.trajectory = trajectory},
      {.regularizers = {parse_regularizer("tv:0.001")}, .iterations = 100, .tolerance = 0});
  EXPECT_LT(difference(result.image, head.image), 0.9);
  EXPECT_LT(result.solve.history.back().residual, result.solve.history[5].residual);
}

TEST(Reconstruct, TwoSetsOfMapsGiveTwoImages) {
  const Head head;
  Tensor maps = Tensor::zeros({2, kCoils, kRows, kColumns}, DType::complex64);
  maps.select(0, 0).copy_from(head.maps);
  const auto result = reconstruct(with_noise(head.full, head.mask, 0), maps, {.mask = head.mask},
                                  {.regularizers = {parse_regularizer("l1wav:0.001,joint=M")},
                                   .iterations = 30,
                                   .tolerance = 0});
  EXPECT_EQ(result.image.shape(), (Extents{2, kRows, kColumns}));
  EXPECT_LT(difference(result.image.select(0, 0).contiguous(), head.image), 0.3);
  for (const Sample v : result.image.select(0, 1).contiguous().to_vector<Sample>()) {
    EXPECT_EQ(v, Sample(0));
  }
}

// |A x - y| of the measured points.
double misfit(const Head& head, const KspaceSampling& sampling, const Tensor& kspace,
              const Tensor& image) {
  const Tensor found = sense_model(head.maps, sampling)(image).contiguous();
  double sum = 0;
  for (index_t i = 0; i < kspace.numel(); ++i) {
    sum += std::norm(found.data<Sample>()[i] - kspace.data<Sample>()[i]);
  }
  return std::sqrt(sum);
}

// The minimum with a data term is also the minimum within the ball on whose border it lies.
TEST(Reconstruct, WithinABallIsTheMinimumThatLiesOnItsBorder) {
  const Head head;
  const KspaceSampling sampling{.mask = head.mask};
  for (const char* text :
       {"l1wav:0.01,shift=none", "tv:0.01", "l2:0.05", "l1fft(Nx):0.02", "tgv:0.02"}) {
    SCOPED_TRACE(text);
    std::vector<Regularizer> regs = {parse_regularizer(text)};
    const auto free = reconstruct(head.kspace, head.maps, sampling,
                                  {.regularizers = regs, .iterations = 3000, .tolerance = 0});
    const double radius = misfit(head, sampling, head.kspace, free.image);
    regs.push_back(parse_regularizer("ball:" + std::to_string(radius)));
    for (const double scale : {1.0, 2.0}) {
      // Both weights are in the unit of the scale.
      regs.back().lambda = radius / scale;
      const auto found =
          reconstruct(head.kspace, head.maps, sampling,
                      {.regularizers = regs, .iterations = 1000, .tolerance = 0, .scale = scale});
      EXPECT_EQ(found.method, ReconstructMethod::primal_dual);
      EXPECT_LT(difference(found.image, free.image), 1e-2);
      EXPECT_NEAR(misfit(head, sampling, head.kspace, found.image), radius, 1e-2 * radius);
    }
  }
}

TEST(Reconstruct, ABallTakesWeightsOfAMaskSpokesSeriesAndBudgets) {
  const Head head;
  const auto expect_within = [&](const KspaceSampling& sampling, const Tensor& kspace,
                                 const std::string& term) {
    SCOPED_TRACE(term);
    std::vector<Regularizer> regs = {parse_regularizer(term), parse_regularizer("ball:1")};
    const Tensor image =
        Tensor::zeros(reconstruct(kspace, head.maps, sampling, {.iterations = 1}).image.shape(),
                      DType::complex64);
    const double radius = 0.1 * misfit(head, sampling, kspace, image);
    regs.back().lambda = radius;
    ReconstructOptions how{.regularizers = regs, .iterations = 200, .tolerance = 0, .scale = 1};
    const auto found = reconstruct(kspace, head.maps, sampling, how);
    EXPECT_LT(misfit(head, sampling, kspace, found.image), 1.02 * radius);
    EXPECT_GT(misfit(head, sampling, kspace, found.image), 0.5 * radius);
    how.budget_bytes = plan_reconstruct(kspace, head.maps, sampling, how).total_bytes();
    EXPECT_LT(difference(reconstruct(kspace, head.maps, sampling, how).image, found.image), 1e-3);
    EXPECT_LE(plan_reconstruct(kspace, head.maps, sampling, how).total_bytes(), *how.budget_bytes);
    how.budget_bytes = 1000;
    expect_error<BudgetError>(
        [&] { reconstruct(kspace, head.maps, sampling, how); },
        "[reconstruct] nothing fits into the budget: got 1000 bytes, the smallest");
    try {
      plan_reconstruct(kspace, head.maps, sampling, how);
    } catch (const BudgetError& error) {
      const std::string text = error.what(), before = "Try a budget of ";
      how.budget_bytes = std::stoll(text.substr(text.find(before) + before.size()));
    }
    EXPECT_GT(*how.budget_bytes, 1000);
    EXPECT_LE(plan_reconstruct(kspace, head.maps, sampling, how).total_bytes(), *how.budget_bytes);
  };
  Tensor half = head.mask.to(DType::float32).contiguous();
  for (index_t i = 0; i < half.numel(); i += 3) half.mutable_data<float>()[i] *= 0.5F;
  const Tensor image = head.image.to(DType::complex64);
  expect_within({.mask = half}, sense_model(head.maps, {.mask = half})(image).contiguous(), "tv:1");
  const Tensor spokes = radial_trajectory({.spokes = 34, .samples = 96, .oversampling = 2});
  const KspaceSampling along{.trajectory = spokes};
  expect_within(along, sense_model(head.maps, along)(image).contiguous(), "l1wav:1");
  Tensor series = Tensor::zeros({2, kRows, kColumns}, DType::bool_), frames;
  for (index_t t = 0; t < 2; ++t) {
    series.select(0, t).copy_from(sampling_pattern(
        kRows, kColumns,
        {.acceleration = 3, .center = 12, .seed = 4 + static_cast<std::uint64_t>(t)}));
  }
  frames = image.unsqueeze(0).expand({2, kRows, kColumns}).contiguous();
  expect_within({.mask = series}, sense_model(head.maps, {.mask = series})(frames).contiguous(),
                "tv(T):1");
  expect_error<ValueError>(
      [&] {
        reconstruct(sense_model(head.maps, {.mask = series})(frames).contiguous(), head.maps,
                    {.mask = series, .basis = Tensor::ones({2, 1}, DType::float32)},
                    {.regularizers = {parse_regularizer("ball:1")}});
      },
      "'ball:1': got a basis too");
}

// If the squares of the maps add up to 1, a gradient step of length 1 restores the measured
// samples.
TEST(Reconstruct, PocsProjectsOntoDataMapsAndConstraintByTurns) {
  const Head head;
  const NamedLinop F =
      sense_model(head.maps, {.mask = Tensor::ones(head.mask.shape(), DType::bool_)});
  const auto found = reconstruct(head.kspace, head.maps, {.mask = head.mask},
                                 {.regularizers = {parse_regularizer("real")},
                                  .method = ReconstructMethod::pocs,
                                  .iterations = 7});
  EXPECT_EQ(found.method, ReconstructMethod::pocs);
  Tensor z = head.kspace.clone(), x;
  for (int k = 0; k < 7; ++k) {
    x = F.H()(z).contiguous().clone();
    auto* v = x.mutable_data<Sample>();
    for (index_t i = 0; i < x.numel(); ++i) v[i] = v[i].real();
    z = F(x).contiguous().clone();
    const index_t n = head.mask.numel();
    for (index_t i = 0; i < z.numel(); ++i) {
      if (head.mask.data<bool>()[i % n]) {
        z.mutable_data<Sample>()[i] = head.kspace.data<Sample>()[i];
      }
    }
  }
  EXPECT_LT(difference(found.image, x), 1e-5);
}

TEST(Reconstruct, DataWhereTheMaskIsZeroAreRefused) {
  const Head head;
  Tensor kspace = head.kspace.clone();
  index_t at = 0;
  while (head.mask.data<bool>()[at]) ++at;
  kspace.set<Sample>({1, at / kColumns, at % kColumns}, Sample(3, -1));
  expect_error<ValueError>([&] { reconstruct(kspace, head.maps, {.mask = head.mask}); },
                           "k-space and mask differ at (1, " + std::to_string(at / kColumns) +
                               ", " + std::to_string(at % kColumns) + "): got 3-1i, expected 0");
}

TEST(Reconstruct, DataThatDoNotFitMapsAndMaskAreRefused) {
  const Head head;
  const Tensor mask = measured_points(head.kspace);
  const Tensor c = head.kspace;
  for (const Tensor& kspace :
       {c.narrow(0, 0, 2), Tensor::zeros({9, kRows, kColumns}, DType::complex64),
        c.narrow(2, 0, kColumns / 2),
        Tensor::zeros({c.shape(0), 2 * kRows, kColumns}, c.dtype())}) {
    expect_error<ShapeError>([&] { reconstruct(kspace, head.maps, {.mask = mask}); },
                             "[reconstruct] k-space: got the shape");
  }
}

TEST(Reconstruct, APhaseIsAsGoodAsMapsThatHaveIt) {
  const Head head;
  Tensor phase = Tensor::empty({kRows, kColumns}, DType::float32);
  for (index_t i = 0; i < phase.numel(); ++i) {
    phase.mutable_data<float>()[i] = 0.05F * static_cast<float>(i % kColumns);
  }
  Tensor maps = head.maps.clone();
  for (index_t i = 0; i < maps.numel(); ++i) {
    maps.mutable_data<Sample>()[i] *= std::polar(1.0F, phase.data<float>()[i % phase.numel()]);
  }
  const KspaceSampling along{
      .trajectory = radial_trajectory({.spokes = 34, .samples = 96, .oversampling = 2})};
  const Tensor spokes = sense_model(maps, along)(head.image.to(DType::complex64)).contiguous();
  for (const char* reg : {"l2:0.01", "real", "l1wav:0.01,shift=none"}) {
    SCOPED_TRACE(reg);
    // After 10 and 20 iterations with l2 data that differ by 1e-7 give images that differ by 1e-3.
    ReconstructOptions how{.regularizers = {parse_regularizer(reg)}, .iterations = 5};
    const Tensor expected = reconstruct(head.kspace, maps, {}, how).image;
    const Tensor expected_along = reconstruct(spokes, maps, along, how).image;
    how.phase = phase;
    EXPECT_LT(difference(reconstruct(head.kspace, head.maps, {}, how).image, expected), 1e-4);
    EXPECT_LT(difference(reconstruct(spokes, head.maps, along, how).image, expected_along), 1e-4);
    EXPECT_GT(plan_reconstruct(head.kspace, head.maps, {}, how).operator_bytes,
              plan_reconstruct(head.kspace, head.maps, {}, {}).operator_bytes);
  }
  const auto with = [&](const Tensor& other) {
    return [&head, other] { reconstruct(head.kspace, head.maps, {}, {.phase = other}); };
  };
  expect_error<ShapeError>(with(phase.permute({1, 0})), "phase: got the shape (40, 48)");
  expect_error<ValueError>(with(Tensor::full<float>({kRows, kColumns}, INFINITY)), "phase: NaN");
}

TEST(Reconstruct, WhatCannotBeDoneIsNamed) {
  const Head head;
  const auto run = [&](const ReconstructOptions& options) {
    return [&head, options] { reconstruct(head.kspace, head.maps, {}, options); };
  };
  const std::vector<Regularizer> tv = {parse_regularizer("tv:0.01")};
  expect_error<ValueError>(run({.regularizers = tv, .method = ReconstructMethod::cg}), "cannot");
  expect_error<ValueError>(run({.regularizers = tv, .method = ReconstructMethod::fista}),
                           "Try primal-dual");
  expect_error<ValueError>(run({.method = ReconstructMethod::admm}), "Try cg");
  expect_error<ValueError>(run({.regularizers = tv, .method = ReconstructMethod::adjoint}),
                           "adjoint cannot");
  expect_error<ValueError>(run({.regularizers = tv, .method = ReconstructMethod::pocs}),
                           "pocs cannot");
  const std::vector<Regularizer> ball = {parse_regularizer("ball:1")};
  for (const auto method :
       {ReconstructMethod::adjoint, ReconstructMethod::cg, ReconstructMethod::fista,
        ReconstructMethod::pogm, ReconstructMethod::admm, ReconstructMethod::pocs}) {
    expect_error<ValueError>(run({.regularizers = ball, .method = method}), "Try primal-dual");
  }
  expect_error<ValueError>(run({.iterations = 0}), "iterations");
  expect_error<ValueError>(run({.scale = 0.0}), "scale");
  expect_error<ValueError>(run({.regularizers = {parse_regularizer("tv(T):0.01")}}),
                           "no dimension T in the image (Ny, Nx)");
  Tensor bad = head.kspace.clone();
  bad.set<Sample>({0, 1, 2}, Sample(std::numeric_limits<float>::quiet_NaN(), 0));
  expect_error<ValueError>([&] { reconstruct(bad, head.maps); }, "NaN");
  expect_error<ShapeError>([&] { reconstruct(head.kspace, ring_coil_maps(kCoils, 8, 8)); }, "mask");
}

}  // namespace
}  // namespace palimpsest
