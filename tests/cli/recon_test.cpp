// SPDX-License-Identifier: Apache-2.0
// The command on good input: from a simulated raw file to a correct image.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/run_command.hpp"
#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/imaging/forward_model.hpp"
#include "palimpsest/imaging/quality/metrics.hpp"
#include "palimpsest/imaging/results/image.hpp"
#include "palimpsest/io/cartesian.hpp"
#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/ismrmrd.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/io/png.hpp"
#include "palimpsest/linop/transforms/fft.hpp"

namespace palimpsest::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void expect_done(const std::vector<std::string>& arguments) {
  const CommandResult result = run_command(arguments);
  ASSERT_EQ(result.code, 0) << result.err;
}

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Compares over all points.
Quality compared(const Tensor& reference, const Tensor& image) {
  return image_quality(reference, image, {.mask = Tensor::full<bool>(reference.shape(), true)});
}

double nrmse(const std::string& reference, const std::string& image) {
  return compared(read_npy(reference), read_npy(image)).nrmse;
}

class Recon : public ::testing::Test {
 protected:
  void simulate(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"simulate",    dir / "scan.h5", "--size",
                                          "64",          "--reference",   dir / "ref.npy",
                                          "--save-maps", dir / "maps.npy"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto has = [&more](const char* word) {
      return std::find(more.begin(), more.end(), word) != more.end();
    };
    if (!has("--center") && !has("full")) {
      arguments.insert(arguments.end(), {"--center", "16"});
    }
    expect_done(arguments);
  }
  // k-space (coil, y, x) of the simulated scan.
  Tensor kspace() const {
    const Tensor grid = cartesian_kspace(read_ismrmrd(dir / "scan.h5")).kspace;
    return grid.select(grid.shape(3) == 1 ? 3 : 1, 0).contiguous();
  }
  ScratchDirectory dir;
};

TEST_F(Recon, PlanOfAnIterationIsWrittenInTheFormatOfItsName) {
  simulate();
  const auto plan = [&](const std::string& name, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"recon", dir / "scan.h5", "--plan", dir / name};
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_done(arguments);
    return file_text(dir / name);
  };
  EXPECT_THAT(plan("plan.svg"), HasSubstr("</svg>"));
  EXPECT_THAT(plan("plan.txt"), HasSubstr("most bytes of the arena are live at step"));
  const auto json = nlohmann::json::parse(plan("plan.json"));
  EXPECT_GT(json["peak_bytes"], 0);
  EXPECT_GT(json["steps"].size(), 3U);
  const auto adjoint = nlohmann::json::parse(plan("adjoint.json", {"--method", "adjoint"}));
  EXPECT_LT(adjoint["steps"].size(), json["steps"].size());
}

TEST_F(Recon, PlanOfAnotherFormatIsAMistake) {
  simulate();
  const CommandResult result = run_command({"recon", dir / "scan.h5", "--plan", dir / "plan.png"});
  EXPECT_NE(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("expected a name that ends in .svg, .json or .txt"));
}

TEST_F(Recon, CgSenseIsFarBetterThanZeroFilled) {
  simulate();
  expect_done({"recon", dir / "scan.h5", "--method", "adjoint", "--save", dir / "zf.npy"});
  expect_done({"recon", dir / "scan.h5", "--lambda", "0.001", "--save", dir / "cg.npy"});
  EXPECT_EQ(read_npy(dir / "cg.npy").shape(), (Extents{64, 64}));
  EXPECT_LT(nrmse(dir / "ref.npy", dir / "cg.npy"), nrmse(dir / "ref.npy", dir / "zf.npy") / 3);
}

TEST_F(Recon, TrueMapsAndNoNoiseGiveTheImageBack) {
  simulate({"--noise", "0", "--acceleration", "2"});
  expect_done({"recon", dir / "scan.h5", "--maps", dir / "maps.npy", "--lambda", "0",
               "--iterations", "300", "--tolerance", "1e-6", "--save", dir / "cg.npy"});
  EXPECT_LT(nrmse(dir / "ref.npy", dir / "cg.npy"), 1e-3);
}

TEST_F(Recon, AFullScanIsExactWithTheAdjoint) {
  simulate({"--noise", "0", "--pattern", "full"});
  expect_done({"recon", dir / "scan.h5", "--method", "adjoint", "--maps", dir / "maps.npy",
               "--save", dir / "full.npy"});
  EXPECT_LT(nrmse(dir / "ref.npy", dir / "full.npy"), 1e-5);
}

TEST_F(Recon, TheReportSaysWhatTheRunTook) {
  simulate();
  expect_done({"recon", dir / "scan.h5", "-o", dir / "x.png", "--iterations", "7", "--tolerance",
               "0", "--report", dir / "report.json"});
  const auto report = nlohmann::json::parse(read_file(dir / "report.json"));
  EXPECT_EQ(report.at("sizes").at("coils"), 8);
  EXPECT_EQ(report.at("sizes").at("rows"), 64);
  EXPECT_EQ(report.at("sizes").at("samples_per_coil"), 64 * 64 / 4);
  EXPECT_EQ(report.at("method"), "cg-sense");
  EXPECT_EQ(report.at("iterations"), 7);
  EXPECT_EQ(report.at("residuals").size(), 7U);
  EXPECT_LT(report.at("residuals").back(), report.at("residuals").front());
  EXPECT_GT(report.at("announced_peak_bytes"), 0);
  EXPECT_LE(report.at("measured_peak_bytes"), report.at("announced_peak_bytes"));
  EXPECT_GT(report.at("process_peak_bytes"), report.at("measured_peak_bytes"));
  for (const char* stage : {"read", "sensitivities", "solve", "write"}) {
    EXPECT_GE(report.at("seconds").at(stage), 0);
  }
}

TEST_F(Recon, ThePeakOfTheAdjointIsTheAnnouncedOne) {
  simulate();
  const CommandResult result =
      run_command({"recon", dir / "scan.h5", "--method", "adjoint", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, IsEmpty());
  const auto report = nlohmann::json::parse(result.out);
  EXPECT_GT(report.at("announced_peak_bytes"), 0);
  EXPECT_LE(report.at("measured_peak_bytes"), report.at("announced_peak_bytes"));
}

TEST_F(Recon, AnnouncesThePeakAndDrawsNoBarInAPipe) {
  simulate();
  const CommandResult result = run_command({"recon", dir / "scan.h5", "-o", dir / "x.png"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, ::testing::MatchesRegex("announced peak: [0-9,]+ bytes\n"));
  EXPECT_THAT(result.out, HasSubstr("wrote "));
}

TEST_F(Recon, StatsSayWhatCopyOnWriteDidAndLeaveStandardOutputAlone) {
  simulate();
  const CommandResult result =
      run_command({"recon", dir / "scan.h5", "--method", "adjoint", "--json", "--stats"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(nlohmann::json::accept(result.out));
  EXPECT_THAT(result.err, HasSubstr("copy-on-write\nlazy clones"));
  EXPECT_THAT(result.err, ::testing::ContainsRegex("bytes that were never copied: [0-9,]+\n"));
}

TEST_F(Recon, ArraysAndRawFilesGiveTheSameImage) {
  simulate();
  write_npy(dir / "k.npy", kspace());
  write_cfl(dir / "k", kspace().unsqueeze(1));
  write_npy(dir / "k128.npy", kspace().to(DType::complex128));
  expect_done({"recon", dir / "scan.h5", "--save", dir / "raw.npy"});
  for (const char* name : {"k.npy", "k.cfl", "k", "k128.npy"}) {
    expect_done({"recon", dir / name, "--save", dir / "array.npy"});
    EXPECT_TRUE(equal(read_npy(dir / "raw.npy"), read_npy(dir / "array.npy"))) << name;
  }
}

TEST_F(Recon, PicturesHave8Or16Bits) {
  simulate();
  expect_done({"recon", dir / "scan.h5", "--iterations", "3", "-o", dir / "8.png"});
  expect_done(
      {"recon", dir / "scan.h5", "--iterations", "3", "-o", dir / "16.png", "--bits", "16"});
  EXPECT_EQ(read_png(dir / "8.png").dtype(), DType::uint8);
  EXPECT_EQ(read_png(dir / "16.png").dtype(), DType::uint16);
  EXPECT_EQ(read_png(dir / "16.png").shape(), (Extents{64, 64}));
}

TEST_F(Recon, ReadoutOversamplingIsRemoved) {
  simulate({"--noise", "0", "--pattern", "full"});
  expect_done({"recon", dir / "scan.h5", "--method", "adjoint", "--maps", dir / "maps.npy",
               "--save", dir / "plain.npy"});
  // Twice the field of view along the readout: zeros around the coil images.
  const Tensor maps = read_npy(dir / "maps.npy"), image = read_npy(dir / "ref.npy");
  Tensor wide_maps = center_pad(maps, 64, 128), wide_image = center_pad(image, 64, 128);
  write_npy(dir / "wide.npy", wide_image);
  RawScan raw = read_ismrmrd(dir / "scan.h5");
  RawScanHeader header = raw.header;
  header.encoded.matrix[0] = 128;
  header.encoded.field_of_view_mm[0] = 128;
  const Tensor wide = sense_model(wide_maps)(wide_image).contiguous();
  write_ismrmrd(dir / "wide.h5",
                cartesian_scan(wide.unsqueeze(1), Tensor::full<bool>({1, 64}, true), header));
  expect_done({"recon", dir / "wide.h5", "--method", "adjoint", "--maps", dir / "maps.npy",
               "--save", dir / "cut.npy"});
  EXPECT_EQ(read_npy(dir / "cut.npy").shape(), (Extents{64, 64}));
  EXPECT_LT(nrmse(dir / "plain.npy", dir / "cut.npy"), 1e-5);
}

// A 3-D scan that is one plane, times a profile along a fully sampled readout.
TEST_F(Recon, VolumesAreReconstructedPlaneByPlane) {
  simulate();
  expect_done({"recon", dir / "scan.h5", "--save", dir / "plane.npy"});
  const Tensor plane = kspace();
  const std::vector<float> profile = {0, 1, 2, 0.5F, 0};  // image domain
  Tensor volume = Tensor::zeros({8, 64, 64, 5}, DType::complex64);
  for (index_t x = 0; x < 5; ++x) {
    Tensor place = volume.select(3, x);
    place.copy_from(plane);
    Tensor dense = place.contiguous();
    auto* values = dense.mutable_data<std::complex<float>>();
    for (index_t i = 0; i < dense.numel(); ++i) values[i] *= profile[static_cast<std::size_t>(x)];
    place.copy_from(dense);
  }
  write_npy(dir / "volume.npy", Fft(1, {.centered = true})(volume));
  expect_done({"recon", dir / "volume.npy", "--save", dir / "images.npy", "-o", dir / "x.png"});
  const Tensor images = read_npy(dir / "images.npy");
  ASSERT_EQ(images.shape(), (Extents{64, 64, 5}));
  for (const index_t x : {1, 2, 3}) {
    const Quality found = compared(read_npy(dir / "plane.npy"), images.select(2, x).contiguous());
    EXPECT_LT(found.nrmse, 1e-3);
    EXPECT_NEAR(found.factor.real(), 1 / profile[static_cast<std::size_t>(x)], 1e-3);
  }
  EXPECT_LT(quantile(magnitude(images.select(2, 0)), 1), 1e-4);
}

// Planes without data are not solved; maps of a file are read for some planes at a time.
TEST_F(Recon, EachPlaneHasItsMapsBesideEmptyPlanes) {
  const Tensor maps = Tensor::random_normal({4, 10, 12, 36}, DType::complex64, {5});
  Tensor image = Tensor::random_normal({10, 12, 36}, DType::complex64, {6});
  for (const index_t x : {0, 1, 16, 17, 32}) image.select(2, x).fill<std::complex<float>>(0);
  write_npy(dir / "maps.npy", maps);
  write_npy(dir / "volume.npy", Fft(3, {.centered = true})(maps * image));
  for (const char* memory : {"1G", "900k"}) {
    expect_done({"recon", dir / "volume.npy", "--maps", dir / "maps.npy", "--memory", memory,
                 "--save", dir / "images.npy"});
    EXPECT_LT(compared(image, read_npy(dir / "images.npy")).nrmse, 0.01) << memory;
  }
}

// Phase encoding along one axis, every other line and calibration lines, as scanners do it.
TEST_F(Recon, LinesWithCalibrationLinesAndOneRepetition) {
  simulate({"--noise", "0.001", "--pattern", "full"});
  Tensor lines = kspace();
  for (index_t y = 1; y < 64; y += 2) {
    if (y < 20 || y >= 44) lines.select(1, y).fill<std::complex<float>>(0);
  }
  Tensor mask = Tensor::full<bool>({1, 64}, true);
  for (index_t y = 1; y < 64; y += 2) {
    if (y < 20 || y >= 44) mask.set<bool>({0, y}, false);
  }
  RawScan first = cartesian_scan(lines.unsqueeze(1), mask, read_ismrmrd(dir / "scan.h5").header);
  write_ismrmrd(dir / "lines.h5", first);
  expect_done({"recon", dir / "lines.h5", "--repetition", "0", "--lambda", "0.001", "--save",
               dir / "lines.npy"});
  EXPECT_LT(nrmse(dir / "ref.npy", dir / "lines.npy"), 0.03);
  EXPECT_THAT(run_command({"recon", dir / "lines.h5", "--repetition", "3", "--json"}).err,
              HasSubstr("repetition"));
}

TEST_F(Recon, CompareMakesATableAndAPicture) {
  simulate();
  expect_done({"recon", dir / "scan.h5", "--method", "adjoint", "--save", dir / "zf.npy",
               "--report", dir / "zf.json"});
  expect_done({"recon", dir / "scan.h5", "--save", dir / "cg.npy", "--report", dir / "cg.json"});
  const CommandResult result =
      run_command({"compare", dir / "ref.npy", dir / "zf.npy", dir / "cg.npy", "--label",
                   "zero-filled", "--label", "CG-SENSE", "--report", dir / "zf.json", "--report",
                   dir / "cg.json", "-o", dir / "all.png"});
  ASSERT_EQ(result.code, 0) << result.err;
  for (const char* text : {"NRMSE", "seconds", "announced peak", "measured peak", "CG-SENSE"}) {
    EXPECT_THAT(result.out, HasSubstr(text));
  }
  // Four panels of 64 x 64 with labels above and numbers below.
  EXPECT_EQ(read_png(dir / "all.png").shape(), (Extents{104, 324}));
}

TEST_F(Recon, InfoKnowsEveryFormat) {
  simulate();
  write_cfl(dir / "k", kspace());
  expect_done({"recon", dir / "scan.h5", "--iterations", "2", "-o", dir / "x.png"});
  EXPECT_THAT(run_command({"info", dir / "scan.h5"}).out, HasSubstr("ISMRMRD"));
  EXPECT_THAT(run_command({"info", dir / "ref.npy"}).out, HasSubstr("(64, 64)"));
  EXPECT_THAT(run_command({"info", dir / "k.cfl"}).out, HasSubstr("(8, 64, 64)"));
  EXPECT_THAT(run_command({"info", dir / "x.png", "--json"}).out,
              HasSubstr("\"dtype\": \"uint8\""));
}

TEST_F(Recon, PhantomsHaveTheSizeThatWasAskedFor) {
  for (const char* size : {"8", "32", "33", "97"}) {
    expect_done({"simulate", dir / "s.h5", "--size", size, "--reference", dir / "ref.npy"});
    const index_t n = std::stoll(size);
    EXPECT_EQ(read_npy(dir / "ref.npy").shape(), (Extents{n, n}));
    if (n < 32) continue;  // too small for coil maps out of the centre
    expect_done({"recon", dir / "s.h5", "--save", dir / "image.npy"});
    EXPECT_EQ(read_npy(dir / "image.npy").shape(), (Extents{n, n}));
    EXPECT_LT(nrmse(dir / "ref.npy", dir / "image.npy"), 0.3) << n;
  }
  const CommandResult result =
      run_command({"simulate", dir / "s.h5", "--size", "32", "--center", "24", "--json"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("--center"));
}

// A centre was accepted by its full extent; it gave zero maps and a black image.
TEST_F(Recon, ACentreTooSmallForCoilMapsIsRefused) {
  for (const char* center : {"8", "9", "10"}) {
    simulate({"--pattern", "random", "--acceleration", "3", "--center", center});
    const CommandResult result = run_command({"recon", dir / "scan.h5", "-o", dir / "x.png"});
    EXPECT_EQ(result.code, 2) << center;
    EXPECT_THAT(result.err, HasSubstr("expected at least 11 x 11"));
  }
}

TEST_F(Recon, InfoListsWhatAScanHolds) {
  simulate();
  RawScan scan = read_ismrmrd(dir / "scan.h5");
  for (std::size_t i = 0; i < scan.readouts.size(); ++i) {
    scan.readouts[i].slice = static_cast<index_t>(i % 5);
    scan.readouts[i].repetition = static_cast<index_t>(3 * (i % 2));
  }
  scan.readouts[0].set_flag(ReadoutFlag::calibration_and_imaging);
  write_ismrmrd(dir / "several.h5", scan);
  const std::string text = run_command({"info", dir / "several.h5"}).out;
  EXPECT_THAT(text, ::testing::ContainsRegex("slices +5: 0 to 4\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("repetitions +2: 0, 3\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("calibration mode +none given\n"));
  EXPECT_THAT(text, ::testing::Not(::testing::ContainsRegex(" \n"))) << "a line without a value";
  const auto report =
      nlohmann::json::parse(run_command({"info", dir / "several.h5", "--json"}).out);
  EXPECT_EQ(report.at("slices"), (std::vector<double>{0, 1, 2, 3, 4}));
  EXPECT_EQ(report.at("repetitions"), (std::vector<double>{0, 3}));
  for (const char* one : {"contrasts", "phases", "sets", "averages", "segments"}) {
    EXPECT_EQ(report.at(one), std::vector<double>{0}) << one;
  }
  EXPECT_EQ(report.at("calibration readouts"), 1);
  EXPECT_EQ(report.at("trajectory"), "cartesian");
}

// Previously the first slice was reconstructed without a message.
TEST_F(Recon, OfSeveralImagesOneMustBeNamed) {
  simulate({"--pattern", "full"});
  const RawScan one = read_ismrmrd(dir / "scan.h5");
  using Counter = index_t Readout::*;
  const std::vector<std::pair<Counter, std::string>> counters = {
      {&Readout::contrast, "contrast"}, {&Readout::phase, "phase"}, {&Readout::set, "set"}};
  for (const auto& [counter, name] : counters) {
    const std::string option = name == "phase" ? "--cardiac-phase" : "--" + name;
    RawScan scan = one;
    const auto n = scan.readouts.size();
    for (std::size_t i = 0; i < n; ++i) {
      scan.readouts.push_back(scan.readouts[i]);
      scan.readouts.back().*counter = 2;
    }
    write_ismrmrd(dir / "several.h5", scan);
    for (const char* command : {"recon", "plan"}) {
      const CommandResult refused = run_command({command, dir / "several.h5", "--json"});
      EXPECT_EQ(refused.code, 2);
      EXPECT_THAT(refused.err, HasSubstr("[" + option + "] "));
      EXPECT_THAT(refused.err, HasSubstr("has 2 " + name + "s, 0 to 2"));
      EXPECT_THAT(refused.err, HasSubstr("Try " + option + " 0"));
    }
    expect_done(
        {"recon", dir / "several.h5", option, "2", "--iterations", "2", "--save", dir / "x.npy"});
    write_npy(dir / "k.npy", kspace());
    const CommandResult array =
        run_command({"recon", dir / "k.npy", option, "0", "--save", dir / "x.npy"});
    EXPECT_EQ(array.code, 2);
    EXPECT_THAT(array.err, HasSubstr("[" + option + "] "));
  }
}

TEST_F(Recon, WhatIsAveragedIsSaid) {
  simulate({"--pattern", "full"});
  RawScan scan = read_ismrmrd(dir / "scan.h5");
  const auto n = scan.readouts.size();
  for (std::size_t i = 0; i < 5 * n; ++i) {
    scan.readouts.push_back(scan.readouts[i % n]);
    scan.readouts.back().repetition = static_cast<index_t>(i / n) % 3;
    scan.readouts.back().average = static_cast<index_t>(i / n) / 3;
  }
  write_ismrmrd(dir / "several.h5", scan);
  EXPECT_THAT(run_command({"recon", dir / "several.h5", "-o", dir / "x.png"}).out,
              HasSubstr("mean of 3 repetitions and 2 averages\n"));
  EXPECT_THAT(
      run_command({"recon", dir / "several.h5", "--repetition", "1", "-o", dir / "x.png"}).out,
      HasSubstr("mean of 1 repetition and 2 averages\n"));
}

// Separate calibration lines were dropped, so maps could not be estimated.
TEST_F(Recon, SeparateCalibrationLinesGiveTheCoilMaps) {
  simulate({"--noise", "0.001", "--pattern", "full"});
  const RawScan full = read_ismrmrd(dir / "scan.h5");
  RawScan scan = full;
  scan.header.calibration_mode = "separate";
  scan.readouts.clear();
  for (const Readout& readout : full.readouts) {
    if (readout.step_1 % 2 == 0) scan.readouts.push_back(readout);
    if (readout.step_1 < 20 || readout.step_1 >= 44) continue;
    scan.readouts.push_back(readout);
    scan.readouts.back().set_flag(ReadoutFlag::calibration);
  }
  write_ismrmrd(dir / "separate.h5", scan);
  const std::vector<std::string> base = {"recon", dir / "separate.h5", "--lambda", "0.001"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return more;
  };
  const CommandResult result = run_command(with({"--save", dir / "x.npy"}));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("24 x 24 centre of separate calibration lines"));
  EXPECT_LT(nrmse(dir / "ref.npy", dir / "x.npy"), 0.03);
  // The announced bytes of sorted lines are the held bytes.
  const auto report = nlohmann::json::parse(run_command(with({"--json"})).out);
  EXPECT_LE(report.at("measured_peak_bytes"), report.at("announced_peak_bytes"));
  const index_t peak = report.at("announced_peak_bytes");
  expect_done(with({"--memory", std::to_string(peak), "--save", dir / "y.npy"}));
  EXPECT_LT(compared(read_npy(dir / "x.npy"), read_npy(dir / "y.npy")).nrmse, 1e-5);
}

TEST_F(Recon, UnitsOfKspaceDoNotMatter) {
  simulate();
  const Tensor k = kspace();
  write_npy(dir / "k.npy", k);
  expect_done({"recon", dir / "k.npy", "--iterations", "30", "--save", dir / "x.npy", "--report",
               dir / "r.json"});
  const auto iterations = nlohmann::json::parse(read_file(dir / "r.json")).at("iterations");
  const auto scaled = [&](double factor, DType dtype) {
    Tensor values = k.to(DType::complex128).clone();
    auto* v = values.mutable_data<std::complex<double>>();
    for (index_t i = 0; i < values.numel(); ++i) v[i] *= factor;
    write_npy(dir / "s.npy", values.to(dtype));
  };
  for (const double factor : {1e-28, 1e-24, 1e-20, 1e-10, 1e10, 1e18, 1e28}) {
    scaled(factor, DType::complex64);
    expect_done({"recon", dir / "s.npy", "--iterations", "30", "--save", dir / "y.npy", "--report",
                 dir / "r.json"});
    EXPECT_EQ(nlohmann::json::parse(read_file(dir / "r.json")).at("iterations"), iterations);
    const Quality c = compared(read_npy(dir / "x.npy"), read_npy(dir / "y.npy"));
    EXPECT_LT(c.nrmse, 1e-3) << factor;
    EXPECT_NEAR(c.factor.real() * factor, 1, 1e-3) << factor;
  }
  // Solves with a term proportional to |x| too, by all methods.
  const auto start_at = [&](double value) {
    const auto of_single = static_cast<float>(value);
    write_npy(dir / "start.npy", Tensor::full<std::complex<float>>({64, 64}, of_single));
  };
  for (const std::vector<std::string>& more : {std::vector<std::string>{"tv:0.01"},
                                               {"tv:0.01", "--method", "admm"},
                                               {"tgv:0.01"},
                                               {"l1wav:0.01", "--start", dir / "start.npy"},
                                               {"l1wav:0.01", "--method", "pogm"}}) {
    std::vector<std::string> words = {"recon", dir / "k.npy", "--save", dir / "x.npy", "--reg"};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--iterations", "30", "--tolerance", "0"});
    start_at(1);
    expect_done(words);
    words[1] = dir / "s.npy";
    words[3] = dir / "y.npy";
    for (const double factor : {1e-28, 1e-20, 1e18, 1e28}) {
      scaled(factor, DType::complex64);
      start_at(factor);
      expect_done(words);
      const Quality c = compared(read_npy(dir / "x.npy"), read_npy(dir / "y.npy"));
      EXPECT_LT(c.nrmse, 1e-3) << more[0] << " " << factor;
      EXPECT_NEAR(c.factor.real() * factor, 1, 1e-3) << more[0] << " " << factor;
    }
  }
  scaled(1e-20, DType::complex64);
  EXPECT_THAT(run_command({"recon", dir / "s.npy", "--reg", "ball:1", "--save", dir / "y.npy"}).err,
              HasSubstr("[reg] 'ball:1': the largest real or imaginary part of k-space"));
  for (const double factor : {1e-200, 1e-35, 1e36, 1e200}) {
    scaled(factor, DType::complex128);
    const CommandResult result = run_command({"recon", dir / "s.npy", "--save", dir / "y.npy"});
    EXPECT_EQ(result.code, 2) << factor << result.out;
    EXPECT_THAT(result.err, HasSubstr("s.npy")) << factor;
  }
}

TEST_F(Recon, SavedMapsOfSeveralSetsAreMaps) {
  simulate();
  expect_done({"recon", dir / "scan.h5", "--sets", "2", "--save-maps", dir / "m.npy", "--save",
               dir / "x.npy"});
  expect_done(
      {"recon", dir / "scan.h5", "--maps", dir / "m.npy", "--save", dir / "y.npy", "--json"});
  EXPECT_LT(nrmse(dir / "x.npy", dir / "y.npy"), 1e-5);
  const CommandResult refused = run_command({"recon", dir / "scan.h5", "--maps", dir / "m.npy",
                                             "--compress", "3", "--save", dir / "y.npy"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("2 sets of maps"));
}

TEST_F(Recon, ABlackImageIsAnError) {
  simulate();
  write_npy(dir / "zero.npy", Tensor::zeros({8, 64, 64}, DType::complex64));
  for (const char* method : {"cg-sense", "adjoint"}) {
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{}, {"--memory", "100M"}}) {
      std::vector<std::string> arguments = {"recon",    dir / "scan.h5", "--maps", dir / "zero.npy",
                                            "--method", method,          "-o",     dir / "x.png"};
      arguments.insert(arguments.end(), more.begin(), more.end());
      const CommandResult result = run_command(arguments);
      EXPECT_EQ(result.code, 2);
      EXPECT_THAT(result.err, HasSubstr("[--maps] the image is 0 everywhere"));
    }
  }
}

TEST_F(Recon, SlicesOfBartStaySlices) {
  simulate({"--pattern", "full"});
  const Tensor one = kspace();
  Tensor both = Tensor::empty({2, 1, one.shape(0), 1, one.shape(1), one.shape(2)}, one.dtype());
  both.select(0, 0).copy_from(one.unsqueeze(1).unsqueeze(0));
  both.select(0, 1).copy_from(one.flip(std::vector<index_t>{1}).unsqueeze(1).unsqueeze(0));
  // BART's dimensions 13 (slices) and 3 to 0.
  write_cfl(dir / "k",
            both.view({2, 1, 1, 1, 1, 1, 1, 1, 1, 1, one.shape(0), 1, one.shape(1), one.shape(2)}));
  const auto recon = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "recon");
    words.insert(words.end(), {"--iterations", "3"});
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  };
  EXPECT_THAT(recon({dir / "k.cfl", "--save", dir / "x.cfl"}), HasSubstr("64 x 64, 2 slices"));
  EXPECT_THAT(file_text(dir / "x.hdr"), HasSubstr("64 64 1 1 1 1 1 1 1 1 1 1 1 2 1 1"));
  recon({dir / "k.cfl", "--save", dir / "slices.npy"});
  for (index_t s = 0; s < 2; ++s) {
    recon({dir / "k.cfl", "--slice", std::to_string(s), "--save", dir / "slice.npy"});
    write_npy(dir / "one.npy", both.select(0, s).squeeze(0).squeeze(1).contiguous());
    recon({dir / "one.npy", "--save", dir / "alone.npy"});
    EXPECT_TRUE(equal(read_npy(dir / "slice.npy"), read_npy(dir / "alone.npy"))) << s;
    EXPECT_TRUE(
        equal(read_npy(dir / "slices.npy").select(0, s).contiguous(), read_npy(dir / "alone.npy")))
        << s;
  }
  const CommandResult outside =
      run_command({"recon", dir / "k.cfl", "--slice", "2", "--save", dir / "none.npy"});
  EXPECT_EQ(outside.code, 2);
  EXPECT_THAT(outside.err, HasSubstr("[--slice] got 2, expected 0 to 1"));
}

TEST_F(Recon, TermsThatLeaveNothingAreNamed) {
  simulate();
  for (const std::vector<std::string>& terms :
       {std::vector<std::string>{"l1wav:1e6"}, {"ball:1e6", "tv:1"}}) {
    std::vector<std::string> arguments = {"recon", dir / "scan.h5", "-o", dir / "x.png"};
    for (const std::string& term : terms) arguments.insert(arguments.end(), {"--reg", term});
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err, HasSubstr("[--reg] the image is 0 everywhere: weights are too large"));
  }
}

// A ball needs two iterations to leave 0, and an image of zeros is none.
TEST_F(Recon, FewIterationsAreNoErrorUnlessTheyLeaveNothing) {
  simulate();
  for (const std::vector<std::string>& terms : {std::vector<std::string>{"ball:0.1"},
                                                {"tv:0.01", "ball:0.1"},
                                                {"tv:0.01", "nonneg"},
                                                {"real"}}) {
    std::vector<std::string> arguments = {"recon", dir / "scan.h5", "--iterations", "1",
                                          "-o",    dir / "x.png",   "--save",       dir / "x.npy"};
    for (const std::string& term : terms) arguments.insert(arguments.end(), {"--reg", term});
    const CommandResult result = run_command(arguments);
    const auto written = std::filesystem::exists(dir / "x.npy");
    std::filesystem::remove(dir / "x.npy");
    if (terms.back() != "ball:0.1") {
      EXPECT_EQ(result.code, 0) << result.err;
      continue;
    }
    EXPECT_EQ(result.code, 2);
    EXPECT_FALSE(written);
    EXPECT_THAT(result.err, HasSubstr("[--iterations] the image is 0 everywhere after 1 of them"));
  }
}

TEST_F(Recon, ErrorsOfTermsNameThem) {
  simulate({"--pattern", "full"});
  for (const std::string term :
       {"tv(Nx,Qy):0.01", "l1wav:0.01,levels=99", "lr(Ny;Qy):1", "l1wav:0.1,joint=M", "tv(T):0.01",
        "l1wav:1e300", "l2:1e300", "tv:1,iso=1,iso=0", "l1wav:1,wavelet=haarx",
        "llr:1,shift=none,shift=none"}) {
    const CommandResult result =
        run_command({"recon", dir / "scan.h5", "--reg", term, "-o", dir / "x.png"});
    EXPECT_EQ(result.code, 2) << term;
    EXPECT_THAT(result.err, HasSubstr("[reg] '" + term + "'")) << term;
  }
  EXPECT_THAT(run_command({"recon", dir / "scan.h5", "--reg", "tv:3e38", "--scale", "7", "-o",
                           dir / "x.png"})
                  .err,
              HasSubstr("[reg] 'tv:3e38': its weight times the scale, 7"));
}

TEST_F(Recon, ProgressIsLinesOfJson) {
  simulate();
  const CommandResult result = run_command({"recon", dir / "scan.h5", "--iterations", "5",
                                            "--tolerance", "0", "--progress", "json", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const index_t announced = nlohmann::json::parse(result.out).at("announced_peak_bytes");
  ASSERT_EQ(result.error_lines(), 2) << "the first and the last iteration";
  const std::size_t end = result.err.find('\n');
  const auto first = nlohmann::json::parse(result.err.substr(0, end));
  const auto last = nlohmann::json::parse(result.err.substr(end));
  EXPECT_EQ(first.at("stage"), "solve");
  EXPECT_EQ(first.at("iteration"), 1);
  EXPECT_TRUE(first.at("seconds_left").is_null());
  EXPECT_EQ(last.at("iteration"), 5);
  EXPECT_EQ(last.at("iterations"), 5);
  EXPECT_EQ(last.at("seconds_left"), 0);
  EXPECT_LT(last.at("residual"), first.at("residual"));
  EXPECT_EQ(last.at("announced_peak_bytes"), announced);
  EXPECT_LE(last.at("peak_bytes"), announced);
  EXPECT_GT(last.at("peak_bytes"), 0);
}

TEST_F(Recon, AFinishedSolveIsConvergedHoweverManyIterationsAreAllowed) {
  simulate();
  expect_done({"recon", dir / "scan.h5", "--iterations", "700", "--tolerance", "0", "--save",
               dir / "x.npy", "--report", dir / "r.json"});
  EXPECT_EQ(nlohmann::json::parse(read_file(dir / "r.json")).at("status"), "converged");
}

TEST_F(Recon, TheSameSeedMakesTheSameScan) {
  simulate();
  const Tensor first = kspace();
  simulate();
  EXPECT_TRUE(equal(first, kspace()));
  simulate({"--seed", "1"});
  EXPECT_FALSE(equal(first, kspace()));
  EXPECT_THAT(dir.names(), ElementsAre("maps.npy", "ref.npy", "scan.h5"));
}

}  // namespace
}  // namespace palimpsest::cli
