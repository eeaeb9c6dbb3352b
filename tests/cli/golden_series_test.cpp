// SPDX-License-Identifier: Apache-2.0
// Dynamic series along golden-angle spokes, in the smallest possible memory.
#include <cmath>
#include <complex>

#include "cli/recon_runs.hpp"
#include "palimpsest/imaging/coil_maps.hpp"
#include "palimpsest/imaging/phantom.hpp"
#include "palimpsest/imaging/reconstruct.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "support/difference.hpp"

namespace palimpsest::cli {
namespace {

using testing::difference;
using ::testing::HasSubstr;
using Sample = std::complex<float>;

constexpr index_t kFrames = 16, kCoils = 6, kN = 40, kSpokes = 9;
// Bytes of all coils and frames.
constexpr index_t kCoilStack = kFrames * kCoils * kN * kN * 8;

class GoldenSeries : public ReconRuns {
 protected:
  GoldenSeries() {
    const Tensor head = ellipse_image(modified_shepp_logan(), kN, kN);
    Tensor frames = Tensor::zeros({kFrames, kN, kN}, DType::complex64);
    Tensor basis = Tensor::empty({kFrames, 3}, DType::float64);
    for (index_t t = 0; t < kFrames; ++t) {
      const double angle = 2 * 3.14159265358979 * static_cast<double>(t) / kFrames;
      auto* b = basis.mutable_data<double>() + 3 * t;
      b[0] = 0.25;
      b[1] = std::sin(angle) * 0.35;
      b[2] = std::cos(angle) * 0.35;
      for (index_t i = 0; i < kN * kN; ++i) {
        const double change = i % kN < kN / 2 ? 1 + 0.3 * std::sin(angle) : 1.0;
        frames.mutable_data<Sample>()[t * kN * kN + i] =
            head.data<float>()[i] * static_cast<float>(change);
      }
    }
    const Tensor trajectory =
        radial_trajectory({.spokes = kFrames * kSpokes, .samples = 2 * kN, .golden = 1});
    const Tensor samples =
        sense_model(maps, {.trajectory = trajectory.view({kFrames, kSpokes, 2 * kN, 2})})(frames);
    write_npy(dir / "k.npy", samples.contiguous()
                                 .permute({1, 0, 2, 3})
                                 .contiguous()
                                 .view({kCoils, kFrames * kSpokes, 2 * kN}));
    write_npy(dir / "t.npy", trajectory);
    write_npy(dir / "maps.npy", maps);
    write_npy(dir / "basis.npy", basis);
  }
  std::vector<std::string> given(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {dir / "k.npy",          "--maps",      dir / "maps.npy",
                                    "--trajectory",         dir / "t.npy", "--frames",
                                    std::to_string(kSpokes)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static std::vector<std::string> with(std::vector<std::string> words, const char* option,
                                       const std::string& value) {
    words.insert(words.end(), {option, value});
    return words;
  }

  Tensor maps = ring_coil_maps(kCoils, kN, kN);
};

TEST_F(GoldenSeries, EveryBudgetDownToTheSmallestGivesTheSameImages) {
  for (const char* term : {"tv(T):0.02", "lr(;T):0.02", "llr(Nx=8,Ny=8;T):0.02,shift=none"}) {
    SCOPED_TRACE(term);
    const std::vector<std::string> reg = {"--reg", term, "--iterations", "6", "--tolerance", "0"};
    const Tensor whole = recon(given(), reg);
    const auto most = report.at("announced_peak_bytes").get<index_t>();
    EXPECT_EQ(report.at("plan").at("large_arrays"), "memory");
    const index_t least = smallest(given(), reg);
    EXPECT_LT(least, most * 85 / 100);
    for (const index_t budget : {most, (most + least) / 2, least}) {
      const Tensor image = recon(given(), with(reg, "--memory", std::to_string(budget)));
      EXPECT_LT(difference(image, whole), 1e-5) << budget;
      EXPECT_LE(report.at("announced_peak_bytes").get<index_t>(), budget);
    }
    EXPECT_EQ(report.at("plan").at("large_arrays"), "files");
    std::vector<std::string> below = with(reg, "--memory", std::to_string(least - 1));
    below.insert(below.begin(), {"recon", "--save", dir / "o.npy"});
    const CommandResult refused = run(below, given());
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, HasSubstr("Try --memory " + std::to_string(least)));
  }
}

// Locations of samples alone take a tenth of this small stack: it shows that kernels and coils are
// not held.
TEST_F(GoldenSeries, ASubspaceTakesAFractionOfTheCoilStack) {
  for (const char* term : {"l2:0.001", "llr(Nx=8,Ny=8;B):0.01,shift=none", "tv:0.01"}) {
    SCOPED_TRACE(term);
    const std::vector<std::string> how = {
        "--basis", dir / "basis.npy", "--reg", term, "--iterations", "6", "--tolerance", "0"};
    const Tensor whole = recon(given(), how);
    const index_t least = smallest(given(), how);
    EXPECT_LT(least, kCoilStack * 4 / 10);
    EXPECT_LT(difference(recon(given(), with(how, "--memory", std::to_string(least))), whole),
              1e-5);
    const index_t next = least * 11 / 10;
    EXPECT_LT(difference(recon(given(), with(how, "--memory", std::to_string(next))), whole), 1e-5);
  }
}

// Each frame has its own operators, which are made while maps of the frame before exist.
TEST_F(GoldenSeries, FramesOneByOneFitInTheSmallestBudget) {
  write_npy(dir / "phase.npy", Tensor::ones({kN, kN}, DType::float32));
  write_npy(dir / "w.npy", Tensor::full<float>({kFrames * kSpokes, 2 * kN}, 0.5F));
  const std::vector<std::string> reg = {"--reg", "l1wav:0.01,shift=none", "--iterations", "2"};
  for (const auto& more : std::vector<std::vector<std::string>>{
           {}, {"--phase", dir / "phase.npy"}, {"--compress", "3"}, {"--weights", dir / "w.npy"}}) {
    SCOPED_TRACE(more.empty() ? "" : more[0]);
    const Tensor whole = recon(given(more), reg);
    const auto most = report.at("announced_peak_bytes").get<index_t>();
    const index_t least = smallest(given(more), reg);
    for (const index_t budget : {(most + least) / 2, least}) {
      const Tensor image = recon(given(more), with(reg, "--memory", std::to_string(budget)));
      EXPECT_LT(difference(image, whole), 1e-5) << budget;
    }
  }
}

TEST_F(GoldenSeries, CheckpointsGoOnWithKernelsInFiles) {
  const std::vector<std::string> reg = {"--reg", "tv(T):0.02", "--iterations", "6"};
  const std::string least = std::to_string(smallest(given(), reg));
  const std::vector<std::string> little = with(reg, "--memory", least);
  const Tensor whole = recon(given(), little);
  recon(given(), with(little, "--checkpoint", dir / "c"));
  std::vector<std::string> words = with(little, "--resume", dir / "c");
  words.insert(words.begin(), {"recon", "--save", dir / "again.npy"});
  const CommandResult resumed = run(words, given());
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_TRUE(equal(read_npy(dir / "again.npy"), whole));
}

TEST_F(GoldenSeries, EstimatedMapsPhasesAndBallsFitInTheSmallestBudget) {
  write_npy(dir / "phase.npy", Tensor::ones({kN, kN}, DType::float32));
  std::vector<std::string> without_maps = given();
  without_maps.erase(without_maps.begin() + 1, without_maps.begin() + 3);
  const std::vector<std::string> reg = {"--reg", "tv(T):0.02", "--iterations", "3"};
  const std::vector<std::string> phase = {"--phase", dir / "phase.npy"};
  const std::vector<std::string> ball = {"--reg", "ball:0.5"};
  for (const auto& scan : {without_maps, given(phase), given(ball)}) {
    const Tensor whole = recon(scan, reg);
    const index_t least = smallest(scan, reg);
    EXPECT_LT(difference(recon(scan, with(reg, "--memory", std::to_string(least))), whole), 1e-4);
  }
}

}  // namespace
}  // namespace palimpsest::cli
