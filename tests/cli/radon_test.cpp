// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/transforms/radon.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "cli/option_samples.hpp"
#include "cli/run_command.hpp"
#include "palimpsest/io/mrc.hpp"
#include "palimpsest/io/npy.hpp"

namespace palimpsest::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

class RadonCommand : public ::testing::Test {
 protected:
  CommandResult run(const std::vector<std::string>& words) {
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.code, 0) << ::testing::PrintToString(words) << "\n" << result.err;
    return result;
  }
  void refuse(std::vector<std::string> words, const std::string& text) {
    words.insert(words.begin(), "radon");
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.code, 2) << ::testing::PrintToString(words);
    EXPECT_THAT(result.err, HasSubstr(text)) << ::testing::PrintToString(words);
    EXPECT_THAT(result.out, IsEmpty());
  }
  double error(const std::string& image) {
    const CommandResult result =
        run({"compare", dir / "p.npy", dir / image, "--mask", "none", "--json"});
    return Json::parse(result.out)["images"][0]["nrmse"].get<double>();
  }
  // A phantom p.npy, and its sinogram s.npy of 90 angles and 91 elements.
  void make_sinogram() {
    run({"phantom", dir / "p.npy", "--size", "64,64"});
    run({"radon", dir / "p.npy", dir / "s.npy", "--views", "90"});
  }

  ScratchDirectory dir;
};

TEST_F(RadonCommand, GoesThereAndBack) {
  make_sinogram();
  const Tensor sinogram = read_npy(dir / "s.npy");
  EXPECT_EQ(sinogram.shape(), (Extents{90, 91}));
  EXPECT_EQ(sinogram.dtype(), DType::float32);
  run({"radon", dir / "s.npy", dir / "f.npy", "--views", "90", "--filtered", "--size", "64,64"});
  EXPECT_LT(error("f.npy"), 0.35);
  run({"radon", dir / "s.npy", dir / "i.npy", "--views", "90", "--inverse", "--size", "64,64"});
  EXPECT_LT(error("i.npy"), 0.2);
  EXPECT_LT(error("i.npy"), error("f.npy"));
  run({"radon", dir / "s.npy", dir / "l.npy", "--views", "90", "--inverse", "--size", "64,64",
       "--iterations", "5", "--lambda", "0.01"});
  run({"radon", dir / "s.npy", dir / "a.npy", "--views", "90", "--adjoint"});
  EXPECT_EQ(read_npy(dir / "a.npy").shape(), (Extents{91, 91}));
}

TEST_F(RadonCommand, ComputesWhatTheOperatorDoes) {
  run({"phantom", dir / "p.npy", "--size", "20,20"});
  write_file(dir / "a.tlt", "-60\n  0\n30.5\n");
  run({"radon", dir / "p.npy", dir / "s.npy", "--angles", dir / "a.tlt", "--detectors", "17",
       "--spacing", "1.5", "--center", "7"});
  const double degree = std::numbers::pi / 180;
  const Tensor angles = Tensor::from<double>({-60 * degree, 0, 30.5 * degree}).to(DType::float32);
  const NamedLinop A = Radon(angles, {20, 20}, {.n_detectors = 17, .spacing = 1.5, .center = 7.0});
  EXPECT_TRUE(equal(read_npy(dir / "s.npy"), A(read_npy(dir / "p.npy"))));
  write_npy(dir / "a.npy", Tensor::from<double>({-60, 0, 30.5}));
  run({"radon", dir / "s.npy", dir / "b.npy", "--angles", dir / "a.npy", "--spacing", "1.5",
       "--center", "7", "--adjoint", "--size", "20,20"});
  EXPECT_TRUE(equal(read_npy(dir / "b.npy"), A.H()(read_npy(dir / "s.npy"))));
}

// The mean of a sphere follows from its filtered projections, for every number of detectors.
TEST_F(RadonCommand, FilteredSlicesHaveTheUnitsOfTheObject) {
  Tensor disk = Tensor::zeros({40, 40}, DType::float32);
  for (index_t i = 0; i < 40; ++i) {
    for (index_t j = 0; j < 40; ++j) {
      if (std::hypot(double(i) - 19.5, double(j) - 19.5) < 14) disk.set<float>({i, j}, 2.5F);
    }
  }
  write_npy(dir / "d.npy", disk);
  for (const char* spacing : {"0.5", "1", "2"}) {
    run({"radon", dir / "d.npy", dir / "s.npy", "--views", "120", "--spacing", spacing});
    run({"radon", dir / "s.npy", dir / "f.npy", "--views", "120", "--spacing", spacing,
         "--filtered", "--size", "40,40"});
    const auto middle = read_npy(dir / "f.npy").narrow(0, 15, 10).narrow(1, 15, 10);
    double mean = 0;
    for (const float v : middle.clone().to_vector<float>()) mean += static_cast<double>(v) / 100;
    EXPECT_NEAR(mean, 2.5, 0.1) << spacing;
  }
}

TEST_F(RadonCommand, TiltSeriesBecomeVolumes) {
  const Tensor volume = Tensor::random_uniform({3, 12, 10}, DType::float32, {4});
  write_mrc(dir / "v.mrc", {.data = volume, .spacing_angstrom = {5, 5, 5}});
  run({"radon", dir / "v.mrc", dir / "t.mrc", "--views", "6", "--detectors", "10",
       "--projections"});
  const MrcImage series = read_mrc(dir / "t.mrc");
  EXPECT_EQ(series.data.shape(), (Extents{6, 3, 10}));
  EXPECT_NEAR(series.spacing_angstrom[1], 5, 1e-5);
  run({"radon", dir / "t.mrc", dir / "r.rec", "--views", "6", "--projections", "--adjoint",
       "--size", "12,10"});
  EXPECT_EQ(read_mrc(dir / "r.rec").data.shape(), (Extents{3, 12, 10}));
  run({"radon", dir / "v.mrc", dir / "s.npy", "--views", "6", "--detectors", "10"});
  EXPECT_TRUE(equal(read_npy(dir / "s.npy").transpose(0, 1).clone(), series.data));
  EXPECT_THAT(run({"info", dir / "t.mrc"}).out, HasSubstr("MRC"));
}

TEST_F(RadonCommand, ThreadsChangeNoBit) {
  make_sinogram();
  for (const char* how : {"--adjoint", "--filtered", "--inverse"}) {
    for (const char* threads : {"1", "2"}) {
      run({"radon", dir / "s.npy", dir / ("t" + std::string(threads) + ".npy"), "--views", "90",
           how, "--threads", threads});
    }
    EXPECT_EQ(read_file(dir / "t1.npy"), read_file(dir / "t2.npy")) << how;
  }
  run({"radon", dir / "p.npy", dir / "one.npy", "--views", "90", "--threads", "1"});
  EXPECT_EQ(read_file(dir / "one.npy"), read_file(dir / "s.npy"));
}

TEST_F(RadonCommand, SaysWhatItDid) {
  make_sinogram();
  const Json json =
      Json::parse(run({"radon", dir / "p.npy", dir / "t.npy", "--views", "4", "--json"}).out);
  EXPECT_EQ(json.at("angles"), 4);
  EXPECT_EQ(json.at("announced_peak_bytes"), json.at("measured_peak_bytes"));
  for (const char* how : {"--adjoint", "--filtered", "--inverse"}) {
    const Json one = Json::parse(
        run({"radon", dir / "s.npy", dir / "t.npy", "--views", "90", how, "--json"}).out);
    EXPECT_GE(one.at("announced_peak_bytes"), one.at("measured_peak_bytes")) << how;
  }
  const CommandResult dry =
      run({"radon", dir / "s.npy", dir / "x.npy", "--views", "90", "--inverse", "--dry-run"});
  EXPECT_THAT(dry.out, HasSubstr("peak: "));
  EXPECT_THAT(dir.names(), ::testing::Not(::testing::Contains("x.npy")));
  EXPECT_THAT(run({"radon", "--help"}).out, HasSubstr("--filtered"));
}

TEST_F(RadonCommand, RefusesWhatIsWrong) {
  make_sinogram();
  const std::string p = dir / "p.npy", s = dir / "s.npy", x = dir / "x.npy";
  refuse({p, x}, "[--angles] or --views is needed");
  refuse({p, x, "--views", "0"}, "[--views] got 0");
  refuse({p, dir / "x.png", "--views", "3"}, "x.png");
  refuse({dir / "none.npy", x, "--views", "3"}, "no such file");
  refuse({p, x, "--angles", dir / "none.tlt"}, "no such file");
  write_file(dir / "bad.tlt", "1 2 three");
  refuse({p, x, "--angles", dir / "bad.tlt"}, "something else behind 2 numbers");
  write_file(dir / "empty.tlt", "");
  refuse({p, x, "--angles", dir / "empty.tlt"}, "got 0 angles");
  refuse({p, x, "--angles", p}, "expected a real array of one axis");
  refuse({p, x, "--angles", s, "--views", "3"}, "--views");
  refuse({s, x, "--views", "3", "--adjoint"}, "got 3 angles for the shape (90, 91)");
  refuse({s, x, "--views", "90", "--adjoint", "--projections"}, "expected 3 axes or more");
  refuse({s, x, "--views", "90", "--adjoint", "--size", "3"}, "--size");
  refuse({s, x, "--views", "90", "--inverse", "--iterations", "0"}, "--iterations");
  refuse({p, x, "--views", "3", "--spacing", "-1"}, "spacing");
  refuse({p, x, "--views", "3", "--lambda", "1"}, "--inverse");
  refuse({p, x, "--views", "3", "--detectors", "0"}, "--detectors");
  EXPECT_THAT(dir.names(), ::testing::Not(::testing::Contains("x.npy")));
}

}  // namespace

// Slices, sinograms and projections of a cube.
CommandSamples samples_of_radon(const ScratchDirectory& dir) {
  write_npy(dir / "cube.npy", Tensor::random_uniform({12, 12, 12}, DType::float32, {3}));
  write_file(dir / "angles.tlt", "-60 -50 -40 -30 -20 -10 0 10 20 30 40 50\n");
  CommandSamples command = computing(dir, "radon", {dir / "cube.npy", dir / "o.npy"},
                                     {{"--angles", {{"--angles", dir / "angles.tlt"}}},
                                      {"--views", {{"--views", "12"}}},
                                      {"--detectors", {{"--detectors", "9"}}},
                                      {"--spacing", {{"--spacing", "1.5"}}},
                                      {"--center", {{"--center", "4"}}},
                                      {"--projections", {{"--projections"}}},
                                      {"--adjoint", {{"--adjoint"}}},
                                      {"--filtered", {{"--filtered"}}},
                                      {"--inverse", {{"--inverse"}}},
                                      {"--size", {{"--size", "10,11"}, {"--filtered"}}},
                                      {"--iterations", {{"--iterations", "3"}, {"--inverse"}}},
                                      {"--lambda", {{"--lambda", "0.1"}, {"--inverse"}}}});
  command.usual = {{{"--views", "12"}, {"--views", "--angles"}}};
  command.invisible.insert("--views");  // the run without it gives it as a usual word
  return command;
}

}  // namespace palimpsest::cli
