// SPDX-License-Identifier: Apache-2.0
// recon --basis: the frames of a series are sums of the images.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "cli/recon_runs.hpp"
#include "palimpsest/imaging/coil_maps.hpp"
#include "palimpsest/imaging/phantom.hpp"
#include "palimpsest/imaging/reconstruct.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/npy.hpp"
#include "support/difference.hpp"

namespace palimpsest::cli {
namespace {

using testing::difference;
using ::testing::HasSubstr;
using Sample = std::complex<float>;

constexpr index_t kFrames = 6, kCoils = 5, kRows = 36, kColumns = 36, kSpokes = 9;

class Basis : public ReconRuns {
 protected:
  Basis() {
    write_npy(dir / "maps.npy", maps);
    write_npy(dir / "basis.npy", basis);
    write_npy(dir / "k.npy", kspace.unsqueeze(2).contiguous());
    const Tensor samples = sense_model(maps, {.trajectory = trajectory})(frames).contiguous();
    spokes =
        samples.permute({1, 0, 2, 3}).contiguous().view({kCoils, kFrames * kSpokes, 2 * kColumns});
    write_npy(dir / "spokes.npy", spokes);
    write_npy(dir / "t.npy", trajectory.view({kFrames * kSpokes, 2 * kColumns, 2}));
  }
  // The head with a brightness that changes from frame to frame, differently in its halves.
  static Tensor series() {
    const Tensor head = ellipse_image(modified_shepp_logan(), kRows, kColumns);
    Tensor result = Tensor::zeros({kFrames, kRows, kColumns}, DType::complex64);
    for (index_t i = 0; i < result.numel(); ++i) {
      const index_t t = i / head.numel(), p = i % head.numel();
      const double rate = p % kColumns < kColumns / 2 ? 0.1 : 0.5;
      result.mutable_data<Sample>()[i] =
          head.data<float>()[p] * static_cast<float>(std::exp(-rate * static_cast<double>(t)));
    }
    return result;
  }
  static Tensor decays() {
    Tensor result = Tensor::empty({kFrames, 2}, DType::float64);
    for (index_t t = 0; t < kFrames; ++t) {
      result.mutable_data<double>()[2 * t] = std::exp(-0.1 * static_cast<double>(t));
      result.mutable_data<double>()[2 * t + 1] = std::exp(-0.5 * static_cast<double>(t));
    }
    return result;
  }
  static Tensor random_mask() {
    Tensor mask = Tensor::zeros({kFrames, kRows, kColumns}, DType::bool_);
    const Tensor numbers = Tensor::random_normal(mask.shape(), DType::float32, {3});
    for (index_t i = 0; i < mask.numel(); ++i) {
      const index_t y = i / kColumns % kRows, x = i % kColumns;
      const bool is_middle = std::abs(y - kRows / 2) < 9 && std::abs(x - kColumns / 2) < 9;
      mask.mutable_data<bool>()[i] = is_middle || numbers.data<float>()[i] > 0.5F;
    }
    return mask;
  }
  std::vector<std::string> on_grid(const std::string& name = "basis.npy") const {
    return {dir / "k.npy", "--maps", dir / "maps.npy", "--basis", dir / name};
  }
  std::vector<std::string> on_spokes(const std::string& name = "basis.npy") const {
    return {dir / "spokes.npy",      "--maps",      dir / "maps.npy",
            "--trajectory",          dir / "t.npy", "--frames",
            std::to_string(kSpokes), "--basis",     dir / name};
  }
  Tensor maps = ring_coil_maps(kCoils, kRows, kColumns), basis = decays(), frames = series();
  Tensor mask = random_mask();
  Tensor kspace = sense_model(maps, {.mask = mask})(frames).contiguous();
  Tensor trajectory =
      radial_trajectory({.spokes = kFrames * kSpokes, .samples = 2 * kColumns, .golden = 1})
          .view({kFrames, kSpokes, 2 * kColumns, 2});
  Tensor spokes;
};

TEST_F(Basis, TheImagesAreThoseOfTheLibrary) {
  for (const char* term :
       {"l2:0.001", "l1wav:0.005,shift=none", "tv:0.002", "llr(Ny=4,Nx=4):0.01", "tgv:0.002"}) {
    for (const bool is_curved : {false, true}) {
      const int n = is_curved ? 40 : 12;
      const std::vector<std::string> reg = {"--reg",           term,          "--iterations",
                                            std::to_string(n), "--tolerance", "0"};
      const ReconstructOptions how{
          .regularizers = {parse_regularizer(term)}, .iterations = n, .tolerance = 0};
      SCOPED_TRACE(std::string(term) + (is_curved ? " along spokes" : " on a grid"));
      KspaceSampling sampling{.basis = basis};
      (is_curved ? sampling.trajectory : sampling.mask) = is_curved ? trajectory : mask;
      const Tensor y = is_curved ? spokes.view({kCoils, kFrames, kSpokes, 2 * kColumns})
                                       .permute({1, 0, 2, 3})
                                       .contiguous()
                                 : kspace;
      const Tensor image = recon(is_curved ? on_spokes() : on_grid(), reg);
      EXPECT_EQ(image.shape(), (Extents{2, kRows, kColumns}));
      const double miss = difference(image, reconstruct(y, maps, sampling, how).image);
      // The bounds of the largest eigenvalue, and so the step sizes, differ along spokes.
      EXPECT_LT(miss, !is_curved ? 1e-4 : std::string(term).starts_with("l2") ? 1e-3 : 0.1);
      EXPECT_EQ(report.at("plan").at("solves"), 1);
      EXPECT_EQ(report.at("plan").at("frames_of_solve"), kFrames);
      EXPECT_EQ(report.at("sizes").at("coefficients"), 2);
    }
  }
}

TEST_F(Basis, EveryBudgetIsAnnouncedKeptAndGivesTheSameImages) {
  for (const char* term : {"l2:0.001", "tv:0.002"}) {
    const std::vector<std::string> reg = {"--reg", term, "--iterations", "4", "--tolerance", "0"};
    const Tensor image = recon(on_grid(), reg);
    const auto whole = report.at("announced_peak_bytes").get<index_t>();
    const index_t least = smallest(on_grid(), reg);
    EXPECT_LT(least, whole * 8 / 10);
    for (const index_t budget : {whole * 9 / 10, least}) {
      std::vector<std::string> more = reg;
      more.insert(more.end(), {"--memory", std::to_string(budget)});
      EXPECT_LT(difference(recon(on_grid(), more), image), 1e-5) << budget;
      EXPECT_LE(report.at("announced_peak_bytes").get<index_t>(), budget);
    }
  }
  const std::vector<std::string> few = {"--iterations", "3", "--tolerance", "0"};
  const Tensor image = recon(on_spokes(), few);
  std::vector<std::string> more = few;
  const auto whole = report.at("announced_peak_bytes").get<index_t>();
  more.insert(more.end(), {"--memory", std::to_string(whole * 95 / 100)});
  EXPECT_LT(difference(recon(on_spokes(), more), image), 1e-5);
}

TEST_F(Basis, TheFramesOfTwoDecaysComeBack) {
  for (const auto& given : {on_grid(), on_spokes()}) {
    const Tensor image =
        recon(given, {"--reg", "l2:1e-5", "--iterations", "100", "--tolerance", "0"});
    Tensor found = Tensor::zeros(frames.shape(), DType::complex64);
    const index_t n = kRows * kColumns;
    for (index_t i = 0; i < found.numel(); ++i) {
      for (index_t b = 0; b < 2; ++b) {
        found.mutable_data<Sample>()[i] += static_cast<float>(basis.data<double>()[i / n * 2 + b]) *
                                           image.data<Sample>()[b * n + i % n];
      }
    }
    EXPECT_LT(difference(found, frames), given.front() == dir / "k.npy" ? 2e-3 : 0.15);
  }
}

TEST_F(Basis, EstimatedMapsAndSetsAreTakenAlong) {
  const std::vector<std::string> given = {dir / "k.npy", "--basis", dir / "basis.npy"};
  const Tensor one = recon(given, {"--reg", "l1wav:0.001"});
  EXPECT_EQ(one.shape(), (Extents{2, kRows, kColumns}));
  EXPECT_EQ(recon(given, {"--sets", "2", "--compress", "4"}).shape(), one.shape());
  EXPECT_EQ(recon(on_grid(), {"--method", "adjoint"}).shape(), one.shape());
  EXPECT_EQ(recon(on_spokes(), {"--method", "adjoint"}).shape(), one.shape());
  EXPECT_EQ(recon(on_grid(), {"--reg", "tv(B):0.01", "--keep-scale"}).shape(), one.shape());
}

TEST_F(Basis, VolumesAreSolvedPlaneByPlane) {
  constexpr index_t kPlanes = 8, kN = 12;
  const Tensor volume = Tensor::random_normal({kFrames, 2, kN, kN, kPlanes}, DType::complex64, {5});
  Tensor sampled = volume.clone();
  for (index_t t = 0; t < kFrames; ++t) sampled.select(0, t).narrow(1, t, 5).fill(0);
  write_npy(dir / "k.npy", sampled);
  write_npy(dir / "maps.npy", Tensor::random_normal({2, kN, kN, kPlanes}, DType::complex64, {6}));
  Tensor identity = Tensor::zeros({kFrames, kFrames}, DType::float32);
  for (index_t t = 0; t < kFrames; ++t) identity.mutable_data<float>()[t * (kFrames + 1)] = 1;
  write_npy(dir / "identity.npy", identity);
  const std::vector<std::string> how = {"--lambda", "0.1",         "--iterations",
                                        "60",       "--tolerance", "0"};
  std::vector<std::string> plain = on_grid();
  plain.resize(3);
  const Tensor expected = recon(plain, how);
  EXPECT_EQ(report.at("plan").at("solves"), kPlanes * kFrames);
  EXPECT_LT(difference(recon(on_grid("identity.npy"), how), expected), 1e-4);
  EXPECT_EQ(report.at("plan").at("solves"), kPlanes);
  const Tensor two = recon(on_grid(), how);
  EXPECT_EQ(two.shape(), (Extents{2, kN, kN, kPlanes}));
  std::vector<std::string> less = how;
  less.insert(less.end(), {"--memory", std::to_string(smallest(on_grid(), how))});
  EXPECT_LT(difference(recon(on_grid(), less), two), 1e-5);
}

TEST_F(Basis, AStartAndACheckpointGoOn) {
  const std::vector<std::string> reg = {"--reg", "tv:0.001"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), reg.begin(), reg.end());
    return more;
  };
  const Tensor whole = recon(on_grid(), with({"--iterations", "10"}));
  recon(on_grid(), with({"--iterations", "10", "--checkpoint", dir / "c"}));
  EXPECT_TRUE(equal(recon(on_grid(), with({"--iterations", "10", "--resume", dir / "c"})), whole));
  write_npy(dir / "start.npy", whole);
  const Tensor more = recon(on_grid(), with({"--iterations", "1", "--start", dir / "start.npy"}));
  EXPECT_LT(difference(more, whole), 0.05);
  std::vector<std::string> other = on_grid();
  other.resize(3);
  EXPECT_THAT(refusal(other, {"--start", dir / "start.npy"}), HasSubstr("[--start]"));
}

// Announced peaks count weights once, and the HTML page: exact except for programs.
TEST_F(Basis, WeightsAndPagesAreAnnouncedAsTheyAre) {
  write_npy(dir / "w.npy", Tensor::full<float>({kFrames * kSpokes, 2 * kColumns}, 0.5F));
  std::vector<std::string> spokes_alone = on_spokes();
  spokes_alone.resize(spokes_alone.size() - 2);
  for (const char* readouts : {"9", "9/4", "54"}) {
    for (const char* term : {"l2:0.01", "tv(T):0.01", "tv:0.01"}) {
      if (std::string(readouts) == "54" && std::string(term) == "tv(T):0.01") continue;
      SCOPED_TRACE(std::string(readouts) + " " + term);
      std::vector<std::string> given = spokes_alone;
      given[6] = readouts;
      recon(given, {"--reg", term, "--weights", dir / "w.npy", "--iterations", "2"});
    }
  }
  recon(on_spokes(), {"--weights", dir / "w.npy", "--iterations", "2"});
  recon(on_grid(), {"--html", dir / "x.html"});
  recon(on_grid(), {"--html", dir / "x.html", "--save-maps", dir / "m.npy"});
}

TEST_F(Basis, BartsOrderIsReadAndWritten) {
  const Tensor expected = recon(on_grid());
  write_cfl(
      dir / "b",
      basis.to(DType::complex64).permute({1, 0}).contiguous().view({2, kFrames, 1, 1, 1, 1, 1}));
  EXPECT_TRUE(equal(recon(on_grid("b.cfl")), expected));
  recon(on_grid("b.cfl"), {"-o", dir / "x.cfl"});
  const Tensor written = read_cfl(dir / "x");
  EXPECT_EQ(written.shape(), (Extents{2, 1, 1, 1, 1, kRows, kColumns}));
  EXPECT_TRUE(equal(written.contiguous().view(expected.shape()), expected));
  // In BART one coefficient has no axis.
  const Tensor first = basis.narrow(1, 0, 1).to(DType::complex64).contiguous();
  write_cfl(dir / "b", first.view({kFrames, 1, 1, 1, 1, 1}));
  EXPECT_EQ(recon(on_grid("b.cfl")).shape(), (Extents{1, kRows, kColumns}));
  recon(on_grid(), {"-o", dir / "x.nii", "--html", dir / "x.html"});
  EXPECT_THAT(read_file(dir / "x.html"), HasSubstr("2 coefficients of 6 frames"));
  const Json inputs = report.at("inputs");
  EXPECT_TRUE(std::any_of(inputs.begin(), inputs.end(),
                          [](const Json& input) { return input.at("role") == "basis"; }));
}

TEST_F(Basis, RanksShareTheCoils) {
  const CommandResult plan = run({"plan", "--ranks", "2"}, on_grid());
  EXPECT_EQ(plan.code, 0) << plan.err;
}

TEST_F(Basis, WhatCannotBeDoneIsRefusedByName) {
  std::vector<std::string> plane = on_grid();
  write_npy(dir / "plane.npy", kspace.select(0, 0).contiguous());
  plane[0] = dir / "plane.npy";
  EXPECT_THAT(refusal(plane), HasSubstr("plane.npy is not a series"));
  const auto with = [&](const Tensor& other) {
    write_npy(dir / "other.npy", other);
    const std::string message = refusal(on_grid("other.npy"));
    EXPECT_THAT(message, HasSubstr("[--basis] " + dir / "other.npy"));
    EXPECT_EQ(refusal(on_spokes("other.npy")), message);
    return message;
  };
  EXPECT_THAT(with(basis.narrow(0, 0, 5).contiguous()), HasSubstr("expected 6 rows"));
  EXPECT_THAT(with(Tensor::ones({6, 7}, DType::float32)), HasSubstr("expected 1 to 6 columns"));
  EXPECT_THAT(with(Tensor::ones({6}, DType::float32)), HasSubstr("(frames, coefficients)"));
  EXPECT_THAT(with(Tensor::zeros({6, 2}, DType::float32)), HasSubstr("column 0 is 0 everywhere"));
  EXPECT_THAT(with(Tensor::full<double>({6, 2}, 1e300)), HasSubstr("NaN or infinite"));
  for (const char* term :
       {"tv(T):0.1", "l1fft(T):0.1", "lr(;T):0.1", "llr(Ny=4,Nx=4;T):0.1", "l1wav:0.1,joint=T"}) {
    EXPECT_THAT(refusal(on_grid(), {"--reg", term}),
                HasSubstr("no dimension T in the image (B, Ny, Nx) of --basis"))
        << term;
  }
  std::vector<std::string> plain = on_grid();
  plain.resize(3);
  EXPECT_THAT(refusal(plain, {"--reg", "tv(B):0.1"}), HasSubstr("no dimension B in the image"));
  EXPECT_THAT(refusal(on_grid(), {"--partial", "pocs"}), HasSubstr("[--partial]"));
  EXPECT_THAT(refusal(on_grid(), {"--reg", "ball:1"}), HasSubstr("'ball:1': got --basis too"));
  write_npy(dir / "w.npy", Tensor::ones({kFrames * kSpokes, 2 * kColumns}, DType::float32));
  std::vector<std::string> spokes_alone = on_spokes();
  spokes_alone.resize(spokes_alone.size() - 2);
  EXPECT_THAT(refusal(spokes_alone, {"--reg", "ball:1", "--weights", dir / "w.npy"}),
              HasSubstr("'ball:1': got --weights too"));
  EXPECT_THAT(refusal(on_grid(), {"--save", dir / "x.h5"}), HasSubstr("[--basis] " + dir / "x.h5"));
  write_file(dir / "text.txt", "1 2 3");
  EXPECT_THAT(refusal(on_grid("text.txt")), HasSubstr("text.txt"));
  EXPECT_THAT(refusal(on_grid("none.npy")), HasSubstr("none.npy"));
}

}  // namespace
}  // namespace palimpsest::cli
