// SPDX-License-Identifier: Apache-2.0
// Raw files as scanners write them, reconstructed without options: slices, repetitions, separate
// calibration, EPI, spokes and spirals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numbers>

#include "cli/command_test.hpp"
#include "cli/raw_scan_maker.hpp"
#include "palimpsest/base/random.hpp"
#include "palimpsest/cli/recon/image.hpp"
#include "palimpsest/imaging/coil_maps.hpp"
#include "palimpsest/imaging/forward_model.hpp"
#include "palimpsest/imaging/phantom.hpp"
#include "palimpsest/imaging/quality/metrics.hpp"
#include "palimpsest/imaging/scan.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "palimpsest/io/cartesian.hpp"
#include "palimpsest/io/ismrmrd.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/linop/transforms/fft.hpp"

namespace palimpsest::cli {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
using Sample = std::complex<float>;

constexpr index_t kN = 48, kCoils = 5;

class RawScans : public CommandTest {
 protected:
  // A phantom that moves with `time`.
  static Tensor phantom(double time = 0) {
    std::vector<Ellipse> ellipses(modified_shepp_logan().begin(), modified_shepp_logan().end());
    for (std::size_t i = 2; i < ellipses.size(); ++i) ellipses[i].center_x += 0.03 * time;
    return ellipse_image(ellipses, kN, kN).to(DType::complex64);
  }
  static Tensor maps() { return ring_coil_maps(kCoils, kN, kN); }
  static void add_noise(Tensor& samples, std::uint64_t stream) {
    const Tensor noise = Tensor::random_normal(samples.shape(), DType::complex64, {11, stream});
    auto* v = samples.mutable_data<Sample>();
    const Sample* n = noise.data<Sample>();
    for (index_t i = 0; i < samples.numel(); ++i) v[i] += 1e-3F * n[i];
  }
  static RawScanHeader header(const std::string& trajectory) {
    RawScanHeader header;
    header.trajectory = trajectory;
    header.n_coils = kCoils;
    header.encoded.matrix = header.recon.matrix = {kN, kN, 1};
    header.encoded.field_of_view_mm = header.recon.field_of_view_mm = {240, 240, 5};
    header.step_1_limit = EncodingLimit{0, kN - 1, kN / 2};
    return header;
  }
  static Tensor kspace(const Tensor& image, std::uint64_t stream) {
    Tensor k = sense_model(maps())(image).contiguous();
    add_noise(k, stream);
    return k;
  }
  static RawScan along(const Tensor& trajectory, const Tensor& image, const std::string& name) {
    RawScan scan = empty_scan(header(name));
    Tensor k = sense_model(maps(), {.trajectory = trajectory})(image).contiguous();
    add_noise(k, 5);
    for (index_t i = 0; i < trajectory.shape(0); ++i) {
      append(scan, {.step_1 = i}, k.select(1, i), trajectory.select(0, i));
    }
    return scan;
  }
  Json recon(const RawScan& scan, const std::vector<std::string>& more = {}) {
    write_ismrmrd(dir / "scan.h5", scan);
    std::vector<std::string> arguments{"recon", dir / "scan.h5", "--save", dir / "x.npy", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return report_of(arguments);
  }
  double error(const Tensor& reference, std::optional<index_t> part = {}) const {
    const Tensor image = read_npy(dir / "x.npy");
    return image_quality(reference, part ? image.select(0, *part).contiguous() : image,
                         {.mask = Tensor::full(reference.shape(), true)})
        .nrmse;
  }
};

TEST_F(RawScans, AllSlicesAreReconstructed) {
  RawScan scan = empty_scan(header("cartesian"));
  for (index_t s = 0; s < 3; ++s) {
    const Tensor k = kspace(phantom(static_cast<double>(2 * s)), static_cast<std::uint64_t>(s));
    append_lines(scan, k, 0, 1, {.slice = s});
  }
  const Json report = recon(scan);
  EXPECT_EQ(report.at("sizes").at("slices"), 3);
  EXPECT_EQ(read_npy(dir / "x.npy").shape(), (Extents{3, kN, kN}));
  for (index_t s = 0; s < 3; ++s) {
    EXPECT_LT(error(phantom(static_cast<double>(2 * s)), s), 0.03) << s;
  }
  recon(scan, {"--slice", "2", "--save-maps", dir / "m.npy"});
  EXPECT_LT(error(phantom(4)), 0.03);
  EXPECT_EQ(read_npy(dir / "m.npy").shape(), (Extents{kCoils, kN, kN}));
  recon(scan, {"--save-maps", dir / "m.npy"});
  EXPECT_EQ(read_npy(dir / "m.npy").shape(), (Extents{3, kCoils, kN, kN}));
}

TEST_F(RawScans, RepetitionsAreFramesOnRequestAndElseAveraged) {
  RawScan scan = empty_scan(header("cartesian"));
  for (index_t r = 0; r < 4; ++r) {
    const Tensor k = kspace(phantom(static_cast<double>(r)), static_cast<std::uint64_t>(r));
    append_lines(scan, k, r % 2, 2, {.repetition = r, .time_stamp = 10 * r});
  }
  recon(scan);
  EXPECT_EQ(read_npy(dir / "x.npy").shape(), (Extents{kN, kN}));
  const Json report = recon(scan, {"--as", "T=repetition", "--lambda", "0.001"});
  EXPECT_EQ(report.at("plan").at("solves"), 4);
  EXPECT_EQ(read_npy(dir / "x.npy").shape(), (Extents{4, kN, kN}));
  for (index_t r = 0; r < 4; ++r) EXPECT_LT(error(phantom(static_cast<double>(r)), r), 0.2) << r;
  const Json tied = recon(scan, {"--as", "T=repetition", "--reg", "tv(T):0.003", "--iterations",
                                 "30", "--tolerance", "0"});
  EXPECT_EQ(tied.at("plan").at("solves"), 1);
  EXPECT_EQ(tied.at("plan").at("frames_of_solve"), 4);
  EXPECT_LT(error(phantom(0), 0), 0.25);
  const CommandResult refused =
      run_command({"recon", dir / "scan.h5", "--reg", "tv(T):0.003", "--save", dir / "y.npy"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("no dimension T in the image (Ny, Nx). Try --as"));
}

// Two courses in time; each slice has a different second one, and every frame misses lines that
// others have.
TEST_F(RawScans, RepetitionsOfSlicesAreSumsOfFewImages) {
  constexpr index_t kFrames = 5;
  Tensor basis = Tensor::empty({kFrames, 2}, DType::float32);
  RawScan scan = empty_scan(header("cartesian"));
  for (index_t r = 0; r < kFrames; ++r) {
    for (index_t s = 0; s < 2; ++s) {
      const float course = std::exp(-(s == 0 ? 0.1F : 0.6F) * static_cast<float>(r));
      basis.set<float>({r, s}, course);
      Tensor k = kspace(phantom(static_cast<double>(2 * s)), static_cast<std::uint64_t>(s));
      auto* v = k.mutable_data<Sample>();
      for (index_t i = 0; i < k.numel(); ++i) v[i] *= course;
      append_lines(scan, k, r % 2, 2, {.slice = s, .repetition = r});
    }
  }
  // The announced peak does not include the weights of the slice before.
  recon(scan, {"--as", "T=repetition", "--reg", "tv(T):0.01", "--iterations", "2"});
  recon(scan, {"--as", "T=repetition", "--iterations", "2"});
  write_npy(dir / "basis.npy", basis);
  for (const std::string output : {"y.nii", "y.nii.gz", "y.cfl", "y.png"}) {
    recon(scan, {"--as", "T=repetition", "--basis", dir / "basis.npy", "--lambda", "0.001", "-o",
                 dir / output});
  }
  const Tensor images = read_npy(dir / "x.npy");
  EXPECT_EQ(images.shape(), (Extents{2, 2, kN, kN}));
  for (index_t s = 0; s < 2; ++s) {
    const Tensor own = images.select(0, s).select(0, s).contiguous();
    EXPECT_LT(image_quality(phantom(static_cast<double>(2 * s)), own,
                            {.mask = Tensor::full(own.shape(), true)})
                  .nrmse,
              0.1)
        << s;
  }
}

TEST_F(RawScans, SeparateCalibrationLinesGiveTheMaps) {
  RawScan scan = empty_scan(header("cartesian"));
  scan.header.calibration_mode = "separate";
  scan.header.acceleration = {2, 1};
  const Tensor k = kspace(phantom(), 1);
  Readout calibration;
  calibration.set_flag(ReadoutFlag::calibration);
  append_lines(scan, k, kN / 2 - 10, 1, calibration, kN / 2 + 10);
  append_lines(scan, k, 0, 2, {});
  const Json report = recon(scan, {"--lambda", "0.001"});
  EXPECT_EQ(report.at("calibration"), "separate lines");
  EXPECT_LT(error(phantom()), 0.05);
}

// k-space (C, x) with this phase along x in its image, read backwards.
Tensor reversed(const Tensor& line) {
  const NamedLinop F = Fft(1, {.norm = FftNorm::ortho, .centered = true});
  Tensor image = F.H()(line.contiguous()).contiguous();
  auto* v = image.mutable_data<Sample>();
  for (index_t i = 0; i < image.numel(); ++i) {
    v[i] *= Sample(std::polar(1.0, 0.6 + 0.09 * static_cast<double>(i % kN - kN / 2)));
  }
  const Tensor turned = F(image).contiguous();
  Tensor backwards = turned.clone();
  for (index_t x = 0; x < kN; ++x) backwards.select(1, x).copy_from(turned.select(1, kN - 1 - x));
  return backwards;
}

TEST_F(RawScans, EchoesOfEpiAreAlignedByTheirNavigators) {
  const Tensor k = kspace(phantom(), 1);
  const auto scan_of = [&](bool has_navigators) {
    RawScan scan = empty_scan(header("epi"));
    for (int i = 0; i < 3 && has_navigators; ++i) {
      Readout navigator;
      navigator.set_flag(ReadoutFlag::phase_correction);
      if (i == 1) navigator.set_flag(ReadoutFlag::reverse);
      const Tensor line = k.select(1, kN / 2);
      append(scan, navigator, i == 1 ? reversed(line) : line);
    }
    for (index_t y = 0; y < kN; ++y) {
      Readout readout{.step_1 = y};
      if (y % 2 == 1) readout.set_flag(ReadoutFlag::reverse);
      append(scan, readout, y % 2 == 1 ? reversed(k.select(1, y)) : k.select(1, y));
    }
    return scan;
  };
  recon(scan_of(true), {"--lambda", "0"});
  EXPECT_LT(error(phantom()), 0.03);
  recon(scan_of(false), {"--lambda", "0"});
  EXPECT_GT(error(phantom()), 0.2);
  const CommandResult said = run_command({"recon", dir / "scan.h5", "--save", dir / "x.npy"});
  EXPECT_THAT(said.out, HasSubstr("no phase correction: the scan has no navigator lines"));
}

TEST_F(RawScans, SpokesNeedNoOptions) {
  const Tensor trajectory = radial_trajectory({.spokes = 60, .samples = 2 * kN});
  const Json report = recon(along(trajectory, phantom(), "radial"));
  EXPECT_EQ(report.at("sizes").at("image"), "(48, 48)");
  EXPECT_LT(error(phantom()), 0.15);
  EXPECT_LT(error(phantom()), 0.15);
  recon(along(trajectory, phantom(), "radial"), {"--method", "adjoint"});
  EXPECT_GT(error(phantom()), 0.15);
  // Coordinates as fractions of k-space give the same result.
  RawScan parts = along(trajectory, phantom(), "radial");
  auto* c = parts.trajectory.mutable_data<float>();
  for (index_t i = 0; i < parts.trajectory.numel(); ++i) c[i] /= static_cast<float>(kN);
  recon(parts);
  EXPECT_LT(error(phantom()), 0.15);
}

TEST_F(RawScans, SpiralsToo) {
  constexpr index_t kInterleaves = 8, kSamples = 500;
  Tensor trajectory = Tensor::empty({kInterleaves, kSamples, 2}, DType::float32);
  auto* k = trajectory.mutable_data<float>();
  for (index_t i = 0; i < kInterleaves; ++i) {
    for (index_t j = 0; j < kSamples; ++j) {
      const double s = static_cast<double>(j) / kSamples;
      const double angle = 2 * std::numbers::pi * (6 * s + static_cast<double>(i) / kInterleaves);
      *k++ = static_cast<float>(kN / 2 * s * std::cos(angle));
      *k++ = static_cast<float>(kN / 2 * s * std::sin(angle));
    }
  }
  recon(along(trajectory, phantom(), "spiral"));
  EXPECT_LT(error(phantom()), 0.15);
}

TEST_F(RawScans, GoldenAngleSpokesBecomeFrames) {
  const Tensor trajectory = radial_trajectory({.spokes = 84, .samples = 2 * kN, .golden = 1});
  const RawScan scan = along(trajectory, phantom(), "goldenangle");
  const Json single = recon(scan, {"--frames", "28", "--lambda", "0.1"});
  EXPECT_EQ(single.at("plan").at("solves"), 3);
  for (index_t t = 0; t < 3; ++t) EXPECT_LT(error(phantom(), t), 0.3) << t;
  const Json tied = recon(scan, {"--frames", "28/14", "--reg", "llr(Nx=8,Ny=8;T):0.005",
                                 "--iterations", "30", "--tolerance", "0"});
  EXPECT_EQ(tied.at("plan").at("frames_of_solve"), 5);
  EXPECT_LT(error(phantom(), 2), 0.3);
  // The announced peak includes step sizes for each frequency, for coupled and single frames.
  for (const char* term : {"tv(T):0.001", "tv:0.0005"}) {
    recon(scan, {"--frames", "28", "--reg", term, "--iterations", "30", "--tolerance", "0"});
    EXPECT_LT(error(phantom(), 1), 0.25) << term;
  }
  const CommandResult refused =
      run_command({"recon", dir / "scan.h5", "--frames", "85", "--save", dir / "y.npy"});
  EXPECT_THAT(refused.err, HasSubstr("[--frames] got 85 readouts for a frame of "));
}

// Repetitions of a scan along a trajectory are no mean: their readouts make one image, or frames.
TEST_F(RawScans, RepetitionsAlongATrajectoryAreNoMean) {
  const Tensor trajectory = radial_trajectory({.spokes = 84, .samples = 2 * kN, .golden = 1});
  RawScan scan = along(trajectory, phantom(), "goldenangle");
  for (std::size_t i = 0; i < scan.readouts.size(); ++i) {
    scan.readouts[i].repetition = static_cast<index_t>(i / 42);
  }
  write_ismrmrd(dir / "scan.h5", scan);
  const auto plan = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"plan", dir / "scan.h5"});
    return run_command(more).out;
  };
  EXPECT_THAT(plan({}), HasSubstr("readouts of 2 repetitions and 1 average in one image\n"));
  EXPECT_THAT(plan({"--frames", "21"}), ::testing::Not(HasSubstr("repetition")));
  EXPECT_THAT(plan({"--frames", "21"}), HasSubstr("4 frames"));
}

TEST_F(RawScans, TrajectoriesThatReachTooFarAreToldOf) {
  const Tensor trajectory = radial_trajectory({.spokes = 30, .samples = 2 * kN});
  RawScan scan = along(trajectory, phantom(), "radial");
  const auto warnings = [&] {
    write_ismrmrd(dir / "far.h5", scan);
    return run_command({"recon", dir / "far.h5", "--save", dir / "y.npy"}).out;
  };
  EXPECT_THAT(warnings(), ::testing::Not(HasSubstr("units?")));
  scan.trajectory = scan.trajectory.clone();
  for (index_t i = 0; i < scan.trajectory.numel(); ++i) {
    scan.trajectory.mutable_data<float>()[i] *= 2;
  }
  EXPECT_THAT(warnings(), HasSubstr("units? The trajectory reaches 2 times the k-space"));
}

TEST_F(RawScans, WhatCannotBeHonouredIsRefusedByName) {
  const Tensor trajectory = radial_trajectory({.spokes = 30, .samples = 2 * kN});
  RawScan scan = along(trajectory, phantom(), "radial");
  const auto refusal = [&](const RawScan& refused, const std::vector<std::string>& more = {}) {
    write_ismrmrd(dir / "bad.h5", refused);
    std::vector<std::string> arguments{"recon", dir / "bad.h5", "--save", dir / "y.npy"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.code, 2) << result.err;
    return result.err;
  };
  RawScan bare = scan;
  bare.trajectory = Tensor();
  for (Readout& readout : bare.readouts) readout.n_trajectory_axes = 0;
  EXPECT_THAT(refusal(bare), HasSubstr("'radial', and its readouts have no coordinates"));
  RawScan stack = scan;
  stack.readouts.back().step_2 = 1;
  EXPECT_THAT(refusal(stack), HasSubstr("a stack of planes along z"));
  EXPECT_THAT(refusal(scan, {"--trajectory", dir / "t.npy"}), HasSubstr("[--trajectory]"));
  RawScan broken = scan;
  broken.trajectory = scan.trajectory.clone();
  broken.trajectory.mutable_data<float>()[7] = std::nanf("");
  EXPECT_THAT(refusal(broken), HasSubstr("a coordinate that is NaN"));
  RawScan odd = scan;
  odd.readouts[1].repetition = 1;
  EXPECT_THAT(refusal(odd, {"--as", "T=repetition"}), HasSubstr("has 30 readouts in 2 frames"));
  EXPECT_THAT(refusal(odd, {"--as", "T=slice"}), HasSubstr("expected T=contrast"));
}

// 60 files, and 10,000 with PALIMPSEST_LONG=167: bytes changed, ends cut off, blocks of zeros.
TEST_F(RawScans, MutilatedFilesAreReadOrRefused) {
  write_ismrmrd(dir / "radial.h5",
                along(radial_trajectory({.spokes = 20, .samples = kN}), phantom(), "radial"));
  RawScan grid = empty_scan(header("cartesian"));
  append_lines(grid, kspace(phantom(), 1), 0, 1, {});
  write_ismrmrd(dir / "grid.h5", grid);
  const std::string whole[] = {read_file(dir / "radial.h5"), read_file(dir / "grid.h5")};
  std::uint64_t drawn = 0;
  const auto pick = [&](std::size_t n) {
    return static_cast<std::size_t>(random_bits({17, 1}, drawn++) % n);
  };
  index_t refused = 0;
  const char* const factor = std::getenv("PALIMPSEST_LONG");
  const index_t files = 60 * (factor == nullptr ? 1 : std::atoi(factor));
  for (index_t i = 0; i < files; ++i) {
    std::string bytes = whole[i % 2];
    // Half of the changes are in the first part, where the structure of the file lies.
    const std::size_t within = i % 4 < 2 ? std::min<std::size_t>(bytes.size(), 8192) : bytes.size();
    switch (pick(3)) {
      case 0:
        bytes.resize(pick(bytes.size()));
        break;
      case 1:
        for (index_t k = 0; k < 1 + i % 8; ++k) {
          bytes[pick(within)] = static_cast<char>(pick(256));
        }
        break;
      default: {
        const std::size_t first = pick(within), last = std::min(bytes.size(), first + 512);
        std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(first),
                  bytes.begin() + static_cast<std::ptrdiff_t>(last), '\0');
      }
    }
    write_file(dir / "bad.h5", bytes);
    try {
      read_scan(dir / "bad.h5");
    } catch (const Error& error) {
      ++refused;
      EXPECT_THAT(error.what(), HasSubstr("bad.h5")) << i;
    }
  }
  EXPECT_GT(refused, files / 4);
}

TEST_F(RawScans, ReadScanHasEverything) {
  RawScan raw = empty_scan(header("cartesian"));
  Readout place{.slice = 4};
  place.position = {1, 2, 3};
  place.phase_direction = {0, 0.6F, 0.8F};
  const Tensor k = kspace(phantom(), 1);
  append_lines(raw, k, 0, 2, place);
  add_noise_readout(raw, Tensor::random_normal({kCoils, 64}, DType::complex64, {6}));
  write_ismrmrd(dir / "scan.h5", raw);
  const Scan scan = read_scan(dir / "scan.h5");
  EXPECT_EQ(scan.kspace.shape(), (Extents{1, 1, kCoils, 1, kN, kN}));
  EXPECT_EQ(scan.layout.slices, std::vector<index_t>{4});
  EXPECT_EQ(scan.mask->shape(), (Extents{1, 1, 1, kN, kN}));
  EXPECT_EQ(scan.noise->shape(), (Extents{kCoils, 64}));
  EXPECT_EQ(scan.geometry.position_mm, (std::array<double, 3>{1, 2, 3}));
  EXPECT_NEAR(scan.geometry.directions[1][2], 0.8, 1e-6);
  EXPECT_EQ(scan.geometry.voxel_mm, (std::array<double, 3>{5, 5, 5}));
  const Tensor line = scan.kspace.select(0, 0).select(0, 0).select(1, 0).select(1, 2);
  EXPECT_TRUE(equal(line.contiguous(), k.select(1, 2).contiguous()));
  EXPECT_THROW(read_scan(dir / "scan.h5", {.slice = 0}), ValueError);
}

}  // namespace
}  // namespace palimpsest::cli
