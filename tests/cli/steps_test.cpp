// SPDX-License-Identifier: Apache-2.0
// The commands of single steps: maps, whiten, compress, pattern, traj, fft, nufft, phantom, bench.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/command_test.hpp"
#include "palimpsest/imaging/coil_compression.hpp"
#include "palimpsest/imaging/forward_model.hpp"
#include "palimpsest/imaging/noise.hpp"
#include "palimpsest/imaging/patterns.hpp"
#include "palimpsest/imaging/sensitivities.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "palimpsest/imaging/transforms.hpp"
#include "palimpsest/io/cartesian.hpp"
#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/ismrmrd.hpp"
#include "palimpsest/io/npy.hpp"

namespace palimpsest::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Json = nlohmann::json;
using Sample = std::complex<float>;

class Steps : public CommandTest {
 protected:
  // The announced peak of a run is kept, and is at most `loosest` times the measured one.
  void expect_announced(std::vector<std::string> words, double loosest) {
    words.insert(words.end(), {"--report", dir / "peak.json"});
    run(words);
    const Json report = Json::parse(read_file(dir / "peak.json"));
    const double announced = report.at("announced_peak_bytes"),
                 measured = report.at("measured_peak_bytes");
    EXPECT_LE(measured, announced) << ::testing::PrintToString(words);
    EXPECT_LE(announced, loosest * measured) << ::testing::PrintToString(words);
  }
  void make_kspace() {
    run({"phantom", dir / "k.npy", "--size", "48,40", "--coils", "4", "--kspace", "--save-maps",
         dir / "true.npy"});
  }
};

TEST_F(Steps, MapsAreThoseOfTheLibrary) {
  make_kspace();
  const Tensor k = read_npy(dir / "k.npy");
  run({"maps", dir / "k.npy", dir / "m.npy"});
  EXPECT_TRUE(equal(read_npy(dir / "m.npy"), espirit(k).maps.squeeze(0)));
  run({"maps", dir / "k.npy", dir / "two.cfl", "--sets", "2", "--calibration", "20", "--kernel",
       "5", "--threshold", "0.002", "--crop", "0.7", "--soft", "--intensity", "--keep-phase",
       "--eigenvalues", dir / "e.npy"});
  const MapsResult two = espirit(k, {.calibration = 20,
                                     .kernel = 5,
                                     .threshold = 0.002,
                                     .crop = 0.7,
                                     .sets = 2,
                                     .soft = true,
                                     .intensity = true,
                                     .rotate_phase = false});
  EXPECT_TRUE(equal(read_cfl(dir / "two").squeeze(2), two.maps));
  EXPECT_TRUE(equal(read_npy(dir / "e.npy"), two.eigenvalues));
  run({"maps", dir / "k.npy", dir / "w.npy", "--method", "walsh", "--block", "5"});
  EXPECT_TRUE(equal(read_npy(dir / "w.npy"), walsh(coil_images(k), {.block = 5}).squeeze(0)));
  run({"maps", dir / "k.npy", dir / "d.npy", "--method", "direct", "--calibration", "16"});
  EXPECT_TRUE(equal(read_npy(dir / "d.npy"), direct_maps(k, {.calibration = 16}).squeeze(0)));
  run({"maps", dir / "k.npy", dir / "r.npy", "--rank", "20"});
  run({"maps", dir / "k.npy", dir / "p.npy", "--percent", "3"});
  const CommandResult automatic = run({"maps", dir / "k.npy", dir / "a.npy", "--threshold", "auto",
                                       "--crop", "auto", "--noise-variance", "1e-4", "--json"});
  EXPECT_GT(Json::parse(automatic.out).at("crop").get<double>(), 0.4);
}

TEST_F(Steps, MapsAnnounceTheirPeak) {
  make_kspace();
  expect_announced({"maps", dir / "k.npy", dir / "m.npy"}, 1.0);
  expect_announced(
      {"maps", dir / "k.npy", dir / "m.npy", "--sets", "2", "--eigenvalues", dir / "e.npy"}, 1.0);
  expect_announced({"maps", dir / "k.npy", dir / "m.npy", "--method", "walsh"}, 1.3);
  expect_announced({"maps", dir / "k.npy", dir / "m.npy", "--method", "direct"}, 1.3);
}

TEST_F(Steps, MapsWithoutRoomGoThroughAFile) {
  run({"phantom", dir / "k.npy", "--size", "200,180", "--coils", "4", "--kspace"});
  const std::vector<std::string> words = {
      "maps", dir / "k.npy", dir / "m.npy", "--kernel", "3", "--calibration", "8"};
  const auto limited = [&](index_t bytes) {
    std::vector<std::string> result = words;
    result.insert(result.end(), {"--memory", std::to_string(bytes)});
    return result;
  };
  const auto planned = [&](std::vector<std::string> with) {
    with.insert(with.end(), {"--dry-run", "--json"});
    return Json::parse(run(with).out).at("announced_peak_bytes").get<index_t>();
  };
  const index_t whole = planned(words), most = whole * 6 / 10;
  EXPECT_LE(planned(limited(most)), most);
  run(words);
  const Tensor maps = read_npy(dir / "m.npy");
  expect_announced(limited(most), 1.0);
  EXPECT_TRUE(equal(read_npy(dir / "m.npy"), maps));
}

// The area is found before the peak is announced.
TEST_F(Steps, MapsOfASmallAreaAnnounceIt) {
  make_kspace();
  run({"pattern", dir / "p.npy", "--size", "48,40", "--acceleration", "4", "--center", "10"});
  Tensor k = read_npy(dir / "k.npy").contiguous();
  const Tensor mask = read_npy(dir / "p.npy");
  for (index_t i = 0; i < k.numel(); ++i) {
    if (!mask.data<bool>()[i % mask.numel()]) k.mutable_data<Sample>()[i] = 0;
  }
  write_npy(dir / "k.npy", k);
  expect_announced({"maps", dir / "k.npy", dir / "m.npy"}, 1.0);
}

TEST_F(Steps, MapsRefuseWhatIsWrong) {
  make_kspace();
  const std::string k = dir / "k.npy", x = dir / "x.npy";
  refuse({"maps", k, x, "--threshold", "much"}, "expected a number or auto");
  refuse({"maps", k, x, "--sets", "9"}, "sets");
  refuse({"maps", k, x, "--crop", "auto", "--noise-variance", "0"}, "[--noise-variance] got 0");
  refuse({"maps", k, x, "--kernel", "60"}, "kernel");
  refuse({"maps", k, x, "--calibration", "3"}, "too small");
  refuse({"maps", k, x, "--method", "walsh", "--crop", "0.5"}, "no effect with --method walsh");
  refuse({"maps", k, x, "--method", "walsh", "--block", "4"}, "odd");
  refuse({"maps", k, x, "--method", "nlinv"}, "espirit");
  refuse({"maps", k, k}, "overwrite the input");
  refuse({"maps", k, dir / "x.png"}, "expected '.nii'");
  refuse({"maps", k, x, "--memory", "1000"}, "does not suffice", 1);
  refuse({"maps", k, x, "--memory", "much"}, "--memory");
  refuse({"maps", k, x, "--threads", "0"}, "at least 1");
  write_npy(dir / "real.npy", Tensor::ones({4, 8, 8}, DType::float32));
  refuse({"maps", dir / "real.npy", x}, "must be complex");
  write_npy(dir / "zero.npy", Tensor::zeros({4, 32, 32}, DType::complex64));
  refuse({"maps", dir / "zero.npy", x}, "no samples");
  write_npy(dir / "flat.npy", Tensor::ones({8, 8}, DType::complex64));
  refuse({"maps", dir / "flat.npy", x}, "(coil, y, x)");
  Tensor bad = read_npy(k).clone();
  bad.set<Sample>({1, 2, 3}, Sample(0, std::numeric_limits<float>::quiet_NaN()));
  write_npy(dir / "nan.npy", bad);
  refuse({"maps", dir / "nan.npy", x}, "the first at (1, 2, 3)");
}

TEST_F(Steps, WhitenTakesNoiseCovarianceOrBorder) {
  make_kspace();
  const Tensor k = read_npy(dir / "k.npy");
  write_npy(dir / "n.npy", Tensor::random_normal({4, 500}, DType::complex64, {1, 9}));
  run({"whiten", dir / "k.npy", dir / "w.npy", "--noise", dir / "n.npy", "--save-covariance",
       dir / "c.npy"});
  const Tensor psi = noise_covariance(read_npy(dir / "n.npy"), {});
  EXPECT_TRUE(equal(read_npy(dir / "c.npy"), psi));
  EXPECT_TRUE(equal(read_npy(dir / "w.npy"), whiten(k, psi)));
  run({"whiten", dir / "k.npy", dir / "v.npy", "--covariance", dir / "c.npy"});
  EXPECT_TRUE(equal(read_npy(dir / "v.npy"), read_npy(dir / "w.npy")));
  run({"whiten", dir / "k.npy", dir / "b.cfl", "--from-border"});
  EXPECT_TRUE(equal(read_cfl(dir / "b").squeeze(1), whiten(k, {}, {.from_border = true})));
  expect_announced({"whiten", dir / "k.npy", dir / "w.npy", "--covariance", dir / "c.npy"}, 1.05);
  refuse({"whiten", dir / "k.npy", dir / "x.npy"}, "no noise readouts");
  refuse({"whiten", dir / "k.npy", dir / "x.npy", "--noise", dir / "k.npy"},
         "expected complex noise");
  write_npy(dir / "singular.npy", Tensor::ones({4, 4}, DType::complex128));
  refuse({"whiten", dir / "k.npy", dir / "x.npy", "--covariance", dir / "singular.npy"},
         "positive definite");
  write_npy(dir / "three.npy", Tensor::ones({3, 3}, DType::complex128));
  refuse({"whiten", dir / "k.npy", dir / "x.npy", "--covariance", dir / "three.npy"}, "(4, 4)");
  refuse({"whiten", dir / "k.npy", dir / "x.npy", "--from-border", "--noise", dir / "n.npy"},
         "no effect");
  for (const double wrong : {1.0, std::numeric_limits<double>::quiet_NaN()}) {
    Tensor bad = psi.clone();
    bad.set<std::complex<double>>({1, 2}, wrong);
    write_npy(dir / "bad.npy", bad);
    refuse({"whiten", dir / "k.npy", dir / "x.npy", "--covariance", dir / "bad.npy"},
           "element (1, 2)");
  }
}

TEST_F(Steps, WhitenUsesTheNoiseReadoutsOfARawScan) {
  run({"simulate", dir / "s.h5", "--size", "16", "--coils", "3", "--pattern", "full"});
  refuse({"whiten", dir / "s.h5", dir / "x.npy"}, "no noise readouts");
  RawScan scan = read_ismrmrd(dir / "s.h5");
  add_noise_readout(scan, Tensor::random_normal({3, 400}, DType::complex64, {1, 2}));
  write_ismrmrd(dir / "n.h5", scan);
  run({"whiten", dir / "n.h5", dir / "w.npy"});
  EXPECT_EQ(read_npy(dir / "w.npy").shape(), (Extents{3, 16, 16}));
}

TEST_F(Steps, CompressKeepsTheEnergyThatItSays) {
  make_kspace();
  const Tensor k = read_npy(dir / "k.npy");
  const Json json = Json::parse(
      run({"compress", dir / "k.npy", dir / "c.npy", "--to", "3", "--save-matrix", dir / "m.npy",
           "--maps", dir / "true.npy", "--save-maps", dir / "maps.npy", "--json"})
          .out);
  const CompressedKspace known = compress_coils(k, {.to = 3});
  EXPECT_TRUE(equal(read_npy(dir / "c.npy"), known.kspace));
  EXPECT_TRUE(equal(read_npy(dir / "m.npy"), known.compression.matrices));
  EXPECT_EQ(read_npy(dir / "maps.npy").shape(), (Extents{3, 48, 40}));
  EXPECT_EQ(json.at("virtual_coils"), 3);
  EXPECT_GT(json.at("kept_energy").get<double>(), 0.9);
  run({"compress", dir / "k.npy", dir / "e.npy", "--energy", "0.9"});
  EXPECT_LT(read_npy(dir / "e.npy").shape(0), 4);
  run({"compress", dir / "k.npy", dir / "g.npy", "--to", "2", "--method", "geometric"});
  EXPECT_EQ(read_npy(dir / "g.npy").shape(0), 2);
  expect_announced({"compress", dir / "k.npy", dir / "c.npy", "--to", "3"}, 1.3);
  refuse({"compress", dir / "k.npy", dir / "x.npy", "--to", "9"}, "to");
  refuse({"compress", dir / "k.npy", dir / "x.npy", "--energy", "2"}, "energy");
  refuse({"compress", dir / "k.npy", dir / "x.npy", "--to", "2", "--energy", "0.9"}, "no effect");
  refuse({"compress", dir / "k.npy", dir / "x.npy", "--maps", dir / "true.npy"}, "--save-maps");
}

TEST_F(Steps, PatternsAreThoseOfTheLibrary) {
  run({"pattern", dir / "p.npy", "--size", "60,50", "--acceleration", "5", "--center", "10",
       "--seed", "3", "--spread", "2", "--ellipse"});
  EXPECT_TRUE(equal(
      read_npy(dir / "p.npy"),
      sampling_pattern(
          60, 50, {.acceleration = 5, .center = 10, .seed = 3, .spread = 2, .ellipse = true})));
  run({"pattern", dir / "c.npy", "--kind", "caipi", "--size", "24,20", "--step", "2,3", "--shift",
       "1", "--center", "6"});
  EXPECT_TRUE(equal(read_npy(dir / "c.npy"), caipi_pattern(24, 20, 2, 3, 1, 6)));
  run({"pattern", dir / "h.npy", "--kind", "partial", "--size", "24,20", "--fraction", "0.625",
       "--axis", "z"});
  EXPECT_TRUE(equal(read_npy(dir / "h.npy"), partial_pattern({24, 20}, 0.625, 1)));
  run({"pattern", dir / "l.npy", "--kind", "lines", "--size", "32,1", "--lines", "5", "--frames",
       "4", "--evenly", "--center", "4"});
  EXPECT_TRUE(equal(read_npy(dir / "l.npy"),
                    line_patterns(32, {.lines = 5, .frames = 4, .golden = false, .center = 4})));
  run({"pattern", dir / "v.npy", "--kind", "random", "--size", "12,10,8", "--center", "4"});
  EXPECT_EQ(count_samples(read_npy(dir / "v.npy")), 240);
  run({"pattern", dir / "t.npy", "--size", "40,40", "--frames", "3", "--center", "6"});
  EXPECT_EQ(read_npy(dir / "t.npy").shape(), (Extents{3, 40, 40}));
  run({"pattern", dir / "b.cfl", "--size", "40,30", "--center", "6"});
  EXPECT_EQ(read_cfl(dir / "b").shape(), (Extents{30, 40, 1}));
  refuse({"pattern", dir / "x.npy", "--size", "40"}, "--size");
  refuse({"pattern", dir / "x.npy", "--size", "40,40", "--frames", "0"}, "[--frames] got 0");
  refuse({"traj", dir / "x.npy", "--kind", "tiny", "--tiny", "0"}, "[--tiny] got 0");
  refuse({"pattern", dir / "x.npy", "--size", "40,0"}, "at least 1");
  refuse({"pattern", dir / "x.npy", "--size", "40,40,40"}, "Try random");
  refuse({"pattern", dir / "x.npy", "--kind", "lines", "--acceleration", "3"}, "no effect");
  refuse({"pattern", dir / "x.npy", "--kind", "partial", "--fraction", "0.3"}, "fraction");
  refuse({"pattern", dir / "x.npy", "--acceleration", "0.5"}, "acceleration");
}

TEST_F(Steps, TrajectoriesAreThoseOfTheLibrary) {
  run({"traj", dir / "r.npy", "--spokes", "9", "--samples", "16", "--oversampling", "1", "--full",
       "--half-shift"});
  EXPECT_TRUE(equal(
      read_npy(dir / "r.npy"),
      radial_trajectory(
          {.spokes = 9, .samples = 16, .oversampling = 1, .full = true, .half_shift = true})));
  run({"traj", dir / "g.npy", "--kind", "golden", "--spokes", "9", "--weights", dir / "w.npy",
       "--density", "analytic"});
  const Tensor golden = radial_trajectory({.spokes = 9, .samples = 128, .golden = 1});
  EXPECT_TRUE(equal(read_npy(dir / "g.npy"), golden));
  EXPECT_TRUE(
      equal(read_npy(dir / "w.npy"), density_compensation(golden, DensityMethod::analytic)));
  run({"traj", dir / "t.npy", "--kind", "tiny", "--tiny", "5", "--spokes", "3"});
  run({"traj", dir / "s.npy", "--kind", "stack", "--planes", "6", "--acceleration", "2",
       "--rotated", "--spokes", "4", "--samples", "8"});
  EXPECT_EQ(read_npy(dir / "s.npy").shape(2), 3);
  run({"traj", dir / "k.npy", "--kind", "koosh", "--spokes", "12", "--samples", "8"});
  run({"traj", dir / "a.npy", "--kind", "spiral", "--interleaves", "4", "--matrix", "32", "--fov",
       "200", "--g-max", "30", "--s-max", "120", "--undersampling", "1.5", "--time-step", "8"});
  EXPECT_EQ(read_npy(dir / "a.npy").shape(0), 4);
  run({"traj", dir / "e.npy", "--kind", "epi", "--lines", "16", "--echo-train", "8", "--samples",
       "20", "--ramp", "0.1"});
  EXPECT_EQ(read_npy(dir / "e.npy").shape(), (Extents{16, 20, 2}));
  run({"traj", dir / "b.cfl", "--spokes", "5", "--samples", "8", "--convention", "bart",
       "--weights", dir / "bw.cfl"});
  EXPECT_EQ(read_cfl(dir / "b").shape(), (Extents{5, 8, 3}));
  run({"traj", dir / "again.npy", "--input", dir / "b.cfl"});
  EXPECT_TRUE(equal(
      read_npy(dir / "again.npy"),
      radial_trajectory({.spokes = 5, .samples = 8, .convention = TrajectoryConvention::bart})));
  refuse({"traj", dir / "x.npy", "--kind", "spiral", "--spokes", "3"}, "no effect");
  refuse({"traj", dir / "x.npy", "--spokes", "0"}, "spokes");
  refuse({"traj", dir / "x.npy", "--kind", "epi", "--lines", "7", "--echo-train", "3"},
         "echo_train");
  refuse({"traj", dir / "x.npy", "--density", "pipe"}, "no effect without --weights");
  refuse({"traj", dir / "x.npy", "--input", dir / "w.npy"}, "expected a trajectory");
}

TEST_F(Steps, FftGoesThereAndBack) {
  const Tensor x = Tensor::random_normal({2, 12, 10}, DType::complex64, {1, 4});
  write_npy(dir / "x.npy", x);
  run({"fft", dir / "x.npy", dir / "y.npy", "--axes", "C,Ny,Nx", "--dims", "Nx:Ny"});
  EXPECT_TRUE(equal(read_npy(dir / "y.npy").contiguous(), transform(x, {2, 1}).contiguous()));
  run({"fft", dir / "y.npy", dir / "z.npy", "--inverse"});
  EXPECT_TRUE(allclose(read_npy(dir / "z.npy").view_as_real(), x.view_as_real(), 1e-5, 1e-5));
  run({"fft", dir / "x.npy", dir / "u.npy", "--dims", "Nx", "--norm", "backward", "--uncentered"});
  EXPECT_TRUE(equal(read_npy(dir / "u.npy"),
                    transform(x, {2}, {.norm = FftNorm::backward, .centered = false})));
  write_npy(dir / "real.npy", Tensor::ones({8, 8}, DType::float64));
  run({"fft", dir / "real.npy", dir / "r.npy"});
  EXPECT_EQ(read_npy(dir / "r.npy").dtype(), DType::complex128);
  expect_announced({"fft", dir / "x.npy", dir / "y.npy"}, 2.0);
  refuse({"fft", dir / "x.npy", dir / "w.npy", "--dims", "Nx:Q"}, "no dimension Q");
  // A plane of BART has a dimension Nz, of one point.
  run({"convert", dir / "x.npy", dir / "x.cfl", "--axes", "C,Ny,Nx"});
  run({"fft", dir / "x.cfl", dir / "plane.cfl", "--dims", "Nx:Ny:Nz"});
  run({"convert", dir / "plane.cfl", dir / "plane.npy"});
  run({"fft", dir / "x.npy", dir / "plane2.npy", "--axes", "C,Ny,Nx", "--dims", "Nx:Ny"});
  EXPECT_TRUE(equal(read_npy(dir / "plane.npy"), read_npy(dir / "plane2.npy")));
  refuse({"fft", dir / "x.npy", dir / "w.npy", "--axes", "C,Ny,Nx", "--dims", "Nx:Ny:Nz"},
         "no dimension Nz");
  refuse({"fft", dir / "x.cfl", dir / "w.npy", "--dims", "Nx:Q"}, "no dimension Q");
  refuse({"fft", dir / "x.cfl", dir / "w.npy", "--dims", "Nz"}, "these have one point each");
  refuse({"fft", dir / "x.npy", dir / "w.npy", "--dims", "Nx:Nx"}, "axes");
  refuse({"fft", dir / "x.npy", dir / "x.npy"}, "overwrite");
}

TEST_F(Steps, NufftGoesThereAndBack) {
  run({"phantom", dir / "p.npy", "--size", "32,32"});
  run({"traj", dir / "t.npy", "--spokes", "60", "--samples", "64", "--weights", dir / "w.npy"});
  run({"nufft", dir / "p.npy", dir / "y.npy", "--trajectory", dir / "t.npy"});
  EXPECT_EQ(read_npy(dir / "y.npy").shape(), (Extents{60, 64}));
  run({"nufft", dir / "y.npy", dir / "i.npy", "--trajectory", dir / "t.npy", "--inverse", "--size",
       "32,32", "--iterations", "40"});
  const Json good = Json::parse(run({"compare", dir / "p.npy", dir / "i.npy", "--json"}).out);
  // Spokes leave the corners of k-space out.
  EXPECT_LT(good["images"][0]["nrmse"].get<double>(), 0.15);
  run({"nufft", dir / "y.npy", dir / "a.npy", "--trajectory", dir / "t.npy", "--adjoint", "--size",
       "32,32", "--weights", dir / "w.npy"});
  run({"nufft", dir / "y.npy", dir / "l.npy", "--trajectory", dir / "t.npy", "--inverse", "--size",
       "32,32", "--lambda", "0.01"});
  // Exact samples of the ellipses make the phantom too.
  run({"phantom", dir / "e.npy", "--size", "32,32", "--kspace", "--trajectory", dir / "t.npy"});
  run({"nufft", dir / "e.npy", dir / "f.npy", "--trajectory", dir / "t.npy", "--inverse", "--size",
       "32,32", "--iterations", "20"});
  const Json exact = Json::parse(run({"compare", dir / "p.npy", dir / "f.npy", "--json"}).out);
  EXPECT_LT(exact["images"][0]["nrmse"].get<double>(), 0.25);
  refuse({"nufft", dir / "p.npy", dir / "x.npy"}, "--trajectory");
  refuse({"nufft", dir / "y.npy", dir / "x.npy", "--trajectory", dir / "t.npy", "--adjoint"},
         "--size");
  refuse({"nufft", dir / "p.npy", dir / "x.npy", "--trajectory", dir / "t.npy", "--adjoint",
          "--size", "32,32"},
         "like the trajectory");
  refuse({"nufft", dir / "p.npy", dir / "x.npy", "--trajectory", dir / "p.npy"},
         "expected a trajectory");
  refuse({"nufft", dir / "y.npy", dir / "x.npy", "--trajectory", dir / "t.npy", "--inverse",
          "--size", "32,32", "--iterations", "0"},
         "at least 1");
  EXPECT_THAT(run({"nufft", dir / "y.npy", dir / "a.npy", "--trajectory", dir / "t.npy",
                   "--adjoint", "--size", "16,16"})
                  .err,
              HasSubstr("units?"));
}

TEST_F(Steps, NufftTakesRegularizers) {
  run({"phantom", dir / "p.npy", "--size", "32,32"});
  run({"traj", dir / "t.npy", "--spokes", "16", "--samples", "64"});
  run({"nufft", dir / "p.npy", dir / "y.npy", "--trajectory", dir / "t.npy"});
  const Tensor y = read_npy(dir / "y.npy");
  write_npy(dir / "two.npy", y.unsqueeze(0).expand({2, 16, 64}).contiguous());
  const auto inverse = [&](const std::string& in, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"nufft",       dir / in,    dir / "x.npy", "--trajectory",
                                      dir / "t.npy", "--inverse", "--size",      "32,32"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  run(inverse("y.npy", {"--reg", "tv:0.001", "--reg", "nonneg", "--iterations", "7"}));
  EXPECT_TRUE(equal(read_npy(dir / "x.npy"),
                    inverse_trajectory_transform(y, read_npy(dir / "t.npy"), {32, 32},
                                                 {.iterations = 7,
                                                  .regularizers = {parse_regularizer("tv:0.001"),
                                                                   parse_regularizer("nonneg")}})));
  expect_announced(inverse("two.npy", {"--reg", "tv:0.002"}), 1.3);
  EXPECT_EQ(read_npy(dir / "x.npy").shape(), (Extents{2, 32, 32}));
  expect_announced(inverse("y.npy", {"--reg", "l1wav:0.002"}), 1.3);
  expect_announced(inverse("y.npy", {"--reg", "l2:0.002"}), 1.3);
  expect_announced(inverse("y.npy", {"--reg", "l2:0.002", "--reg", "ball:1"}), 1.3);
  refuse(inverse("y.npy", {"--reg", "tv:1", "--lambda", "1"}),
         "[--reg] has no effect with --lambda");
  refuse(inverse("y.npy", {"--reg", "tv(T):1"}), "[reg] 'tv(T):1': no dimension T");
  refuse({"nufft", dir / "y.npy", dir / "z.npy", "--trajectory", dir / "t.npy", "--adjoint",
          "--size", "32,32", "--reg", "tv:1"},
         "[--reg] has no effect without --inverse");
}

TEST_F(Steps, NumbersBeyondTheDataAreRefusedByName) {
  make_kspace();
  refuse({"maps", dir / "k.npy", dir / "x.npy", "--kernel", "9223372036854775807"}, "too small");
  run({"phantom", dir / "p.npy", "--size", "16,16"});
  run({"traj", dir / "t.npy", "--spokes", "9", "--samples", "16"});
  run({"nufft", dir / "p.npy", dir / "s.npy", "--trajectory", dir / "t.npy"});
  refuse({"nufft", dir / "s.npy", dir / "x.npy", "--trajectory", dir / "t.npy", "--inverse",
          "--size", "16,16", "--lambda", "-1"},
         "[--lambda] got -1");
  refuse({"compare", dir / "p.npy", dir / "p.npy", "--report", dir.path()}, "cannot be opened");
  refuse({"recon", dir / "k.npy", "-o", dir / "x.png", "--tolerance", "2"}, "[--tolerance] got 2");
  Tensor bad = read_npy(dir / "p.npy").clone();
  bad.set<float>({3, 4}, std::numeric_limits<float>::quiet_NaN());
  write_npy(dir / "p.npy", bad);
  refuse({"convert", dir / "p.npy", dir / "x.png"},
         "[" + dir / "x.png" +
             "] NaN or infinite values in the image: got 1 of them, the first at "
             "(3, 4)");
}

TEST_F(Steps, FakeKspaceIsThatOfTheModelWithMeasuredSamples) {
  make_kspace();
  run({"pattern", dir / "p.npy", "--size", "48,40", "--acceleration", "3", "--center", "14"});
  const Tensor full = read_npy(dir / "k.npy"), mask = read_npy(dir / "p.npy");
  Tensor k = full.clone();
  for (index_t i = 0; i < k.numel(); ++i) {
    if (!mask.data<bool>()[i % mask.numel()]) k.mutable_data<Sample>()[i] = 0;
  }
  write_npy(dir / "k.npy", k);
  run({"recon", dir / "k.npy", "--maps", dir / "true.npy", "--save", dir / "i.npy"});
  const std::vector<std::string> words = {"simulate",    dir / "f.npy", "--fake-kspace", "--image",
                                          dir / "i.npy", "--maps",      dir / "true.npy"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const Tensor image = read_npy(dir / "i.npy"), maps = read_npy(dir / "true.npy");
  run(words);
  const Tensor model = read_npy(dir / "f.npy").clone();
  EXPECT_TRUE(equal(model, fake_kspace(sense_model(maps), image)));
  const CommandResult replaced = run(with({"--replace", dir / "k.npy", "--json"}));
  EXPECT_EQ(Json::parse(replaced.out).at("shape"), "(4, 48, 40)");
  EXPECT_TRUE(equal(read_npy(dir / "f.npy"), fake_kspace(sense_model(maps), image, k)));
  // A raw scan of two phase encodes has a readout of one point.
  write_npy(dir / "k.npy", k.unsqueeze(-1));
  const Tensor same = read_npy(dir / "f.npy").clone();
  run(with({"--replace", dir / "k.npy"}));
  EXPECT_TRUE(equal(read_npy(dir / "f.npy"), same));
  // Frames, and sets of maps.
  write_npy(dir / "i.npy", image.unsqueeze(0).expand({3, 48, 40}).contiguous());
  run(words);
  EXPECT_TRUE(equal(read_npy(dir / "f.npy").select(0, 2), model));
  write_npy(dir / "true.npy", maps.unsqueeze(0).expand({3, 4, 48, 40}).contiguous());
  run(words);
  EXPECT_EQ(read_npy(dir / "f.npy").shape(), (Extents{4, 48, 40}));
  write_npy(dir / "i.npy", image.narrow(0, 0, 8));
  refuse(words, "has the shape (3, 4, 48, 40) for the image (8, 40)");
  write_npy(dir / "i.npy", image);
  write_npy(dir / "true.npy", maps);
  write_npy(dir / "k.npy", k.narrow(0, 0, 2));
  refuse(with({"--replace", dir / "k.npy"}), "expected (4, 48, 40)");
  refuse(with({"--noise", "1"}), "[--noise] has no effect with --fake-kspace");
  refuse({"simulate", dir / "x.npy", "--fake-kspace", "--image", dir / "i.npy"}, "--maps");
  refuse({"simulate", dir / "x.npy", "--fake-kspace", "--maps", dir / "true.npy"}, "--image");
  refuse({"simulate", dir / "x.h5", "--maps", dir / "true.npy"}, "without --fake-kspace");
  refuse({"simulate", dir / "x.h5", "--fake-kspace", "--image", dir / "i.npy", "--maps",
          dir / "true.npy"},
         "expected '.npy', '.cfl' or '.hdr'");
}

TEST_F(Steps, PhantomsInImageAndKspaceAgree) {
  run({"phantom", dir / "p.npy", "--size", "96,96"});
  EXPECT_EQ(read_npy(dir / "p.npy").dtype(), DType::float32);
  run({"phantom", dir / "k.npy", "--size", "96,96", "--kspace"});
  run({"fft", dir / "k.npy", dir / "i.npy", "--inverse"});
  const Json json =
      Json::parse(run({"compare", dir / "p.npy", dir / "i.npy", "--complex", "--json"}).out);
  EXPECT_LT(json["images"][0]["nrmse"].get<double>(), 0.15);
  EXPECT_NEAR(json["images"][0]["scale"].get<double>(), 1, 0.05);
  make_kspace();
  EXPECT_EQ(read_npy(dir / "true.npy").shape(), (Extents{4, 48, 40}));
  refuse({"phantom", dir / "x.npy", "--coils", "0"}, "--coils");
  refuse({"phantom", dir / "x.npy", "--size", "8"}, "--size");
  refuse({"phantom", dir / "x.npy", "--trajectory", dir / "k.npy"}, "no effect without --kspace");
}

TEST_F(Steps, BenchMeasuresOperators) {
  const Json json =
      Json::parse(run({"bench", "--size", "32", "--coils", "2", "--rounds", "1", "--json"}).out);
  ASSERT_EQ(json.at("results").size(), 6U);
  for (const Json& one : json.at("results")) EXPECT_GT(one.at("seconds").get<double>(), 0);
  refuse({"bench", "--size", "1"}, "8 to 4096");
  refuse({"bench", "--rounds", "0"}, "--rounds");
}

TEST_F(Steps, CommonOptionsHoldForAll) {
  make_kspace();
  const CommandResult dry = run({"maps", dir / "k.npy", dir / "m.npy", "--dry-run"});
  EXPECT_THAT(dry.out, HasSubstr("peak: "));
  EXPECT_THAT(dry.err, IsEmpty());
  EXPECT_THAT(dir.names(), ElementsAre("k.npy", "true.npy"));
  const CommandResult loud = run({"maps", dir / "k.npy", dir / "m.npy", "--log", dir / "l.txt"});
  EXPECT_THAT(loud.err, HasSubstr("announced peak"));
  EXPECT_EQ(read_file(dir / "l.txt"), loud.err);
  EXPECT_THAT(run({"maps", dir / "k.npy", dir / "m.npy", "--quiet"}).err, IsEmpty());
  write_file(dir / "c.json", R"({"sets": 2, "threads": 1, "soft": true, "json": false})");
  run({"maps", dir / "k.npy", dir / "two.npy", "--config", dir / "c.json"});
  EXPECT_EQ(read_npy(dir / "two.npy").shape(0), 2);
  run({"maps", dir / "k.npy", dir / "one.npy", "--config", dir / "c.json", "--sets", "1"});
  EXPECT_EQ(read_npy(dir / "one.npy").shape(0), 4);
  const Json report =
      Json::parse(run({"maps", dir / "k.npy", dir / "m.npy", "--json", "--threads", "2"}).out);
  EXPECT_EQ(report.at("version"), 2);
  EXPECT_EQ(report.at("command"), "maps");
}

TEST_F(Steps, ConfigurationsAreChecked) {
  make_kspace();
  const std::vector<std::string> words = {"maps", dir / "k.npy", dir / "m.npy", "--config",
                                          dir / "c.json"};
  const auto refuse_text = [&](const std::string& text, const std::string& expected) {
    write_file(dir / "c.json", text);
    refuse(words, expected);
  };
  refuse_text(R"({"setts": 2})", "unknown option 'setts'. Try 'sets'");
  refuse_text(R"([1])", "not a JSON object");
  refuse_text(R"({"sets": )", "not a JSON object");
  refuse_text(R"({"soft": 1})", "expected true or false");
  refuse_text(R"({"sets": {}})", "expected a number or a text");
  refuse_text(R"({"sets": "two"})", "--sets");
  refuse_text(R"({"config": "d.json"})", "unknown option 'config'. Try maps --help");
  refuse_text(R"({"log": ""})", "the value of 'log' is \"\", expected a number or a text");
  refuse({"maps", dir / "k.npy", dir / "m.npy", "--config", dir / "none.json"}, "none.json");
}

}  // namespace
}  // namespace palimpsest::cli
