// SPDX-License-Identifier: Apache-2.0
// The reconstructions of `help bart`, compared with `pics` of BART where it is installed.
#include <gtest/gtest.h>

#include <complex>

#include "cli/bart_command.hpp"
#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/npy.hpp"

namespace palimpsest::cli {
namespace {

class FromPics : public BesideBart {
 protected:
  void SetUp() override {
    BesideBart::SetUp();
    if (IsSkipped()) return;
    bart("phantom -x 64 -k -s 4 full");
    bart("ecalib -O -m 1 full maps");
    measure("1", "ksp");
  }
  /// Two thirds of the samples of the phantom; the pattern depends on the seed.
  void measure(const std::string& seed, const std::string& name) {
    bart("poisson -Y 64 -Z 64 -y 1.2 -z 1.2 -C 24 -s " + seed + " p");
    bart("reshape 7 64 64 1 p pattern");
    bart("fmac full pattern " + name);
  }
  /// Four frames that grow brighter, along BART's dimension `axis`.
  void measure_series(const std::string& axis) {
    std::string frames;
    for (const char* t : {"4", "6", "8", "9"}) {
      measure(t, "frame");
      bart(std::string("scale 0.") + t + " frame f" + t);
      frames += std::string(" f") + t;
    }
    bart("join " + axis + frames + " series");
  }
  void recon(const std::string& kspace, const std::vector<std::string>& more) {
    std::vector<std::string> words = {
        "recon",  dir / kspace + ".cfl", "--maps",      dir / "maps.cfl",
        "--save", dir / "own.cfl",       "--tolerance", "0"};
    words.insert(words.end(), more.begin(), more.end());
    ours(words);
  }
};

TEST_F(FromPics, L2IsL2) {
  bart("pics -S -l2 -r 0.01 -i 30 ksp maps theirs");
  recon("ksp", {"--reg", "l2:0.01", "--iterations", "30"});
  EXPECT_LT(nrmse("theirs.cfl", "own.cfl"), 1e-4);
}

TEST_F(FromPics, WithoutSTheScaleIsKept) {
  bart("pics -l2 -r 0.01 -i 30 ksp maps theirs");
  recon("ksp", {"--reg", "l2:0.01", "--iterations", "30", "--keep-scale"});
  EXPECT_TRUE(allclose(read_cfl(dir / "own").view_as_real(),
                       read_cfl(dir / "theirs").view_as_real(), 1e-3, 1e-3));
}

TEST_F(FromPics, L1IsWavelets) {
  bart("pics -S -l1 -r 0.01 -i 100 ksp maps theirs");
  recon("ksp", {"--reg", "l1wav:0.01", "--iterations", "100"});
  EXPECT_LT(nrmse("theirs.cfl", "own.cfl"), 0.05);
}

TEST_F(FromPics, TIsTotalVariation) {
  bart("pics -S -R T:7:0:0.01 -i 300 ksp maps theirs");
  recon("ksp", {"--reg", "tv:0.01", "--iterations", "300"});
  EXPECT_LT(nrmse("theirs.cfl", "own.cfl"), 1e-3);
}

// BART adds up the parts of the gradient and the rows of the second derivatives; here all of them
// are joined.
TEST_F(FromPics, GIsGeneralizedVariation) {
  bart("pics -S -R G:7:0:0.01 -i 300 ksp maps theirs");
  recon("ksp", {"--reg", "tgv:0.01", "--iterations", "300"});
  EXPECT_LT(nrmse("theirs.cfl", "own.cfl"), 0.03);
}

// Neither has converged: after 1,000 iterations they differ by 0.0036.
TEST_F(FromPics, PIsABall) {
  bart("pics -w 1 -P 100 -R T:7:0:1 -i 400 ksp maps theirs");
  recon("ksp", {"--reg", "ball:100", "--reg", "tv:1", "--iterations", "400", "--scale", "1"});
  EXPECT_LT(nrmse("theirs.cfl", "own.cfl"), 0.02);
}

// BART takes the scale of a series from its first frame, so it is given here.
TEST_F(FromPics, TOfDimension10IsTemporal) {
  measure_series("10");
  bart("pics -S -w 1000 -R T:1024:0:0.01 -i 200 series maps theirs");
  recon("series", {"--reg", "tv(T):0.01", "--iterations", "300", "--scale", "1000"});
  EXPECT_LT(nrmse("theirs.cfl", "own.cfl"), 1e-4);
}

TEST_F(FromPics, LIsLocallyLowRank) {
  measure_series("10");
  bart("pics -S -n -m -w 1000 -R L:7:7:0.01 -b 8 -i 200 series maps theirs");
  recon("series", {"--reg", "llr(Nx=8,Ny=8;T):0.01,scale=bart,shift=none", "--iterations", "100",
                   "--scale", "1000"});
  EXPECT_LT(nrmse("theirs.cfl", "own.cfl"), 1e-4);
  // FISTA of BART ends with a step towards the data, not with a threshold.
  bart("pics -S -w 1000 -R L:7:7:0.01 -b 8 -i 60 series maps theirs");
  recon("series",
        {"--reg", "llr(Nx=8,Ny=8;T):0.01,scale=bart", "--iterations", "60", "--scale", "1000"});
  EXPECT_LT(nrmse("theirs.cfl", "own.cfl"), 0.03);
}

TEST_F(FromPics, WIsAStart) {
  bart("pics -S -w 1 -l2 -r 0.01 -i 4 ksp maps start");
  bart("pics -S -w 1 -W start -l2 -r 0.01 -i 3 ksp maps theirs");
  recon("ksp", {"--reg", "l2:0.01", "--iterations", "3", "--start", dir / "start.cfl"});
  EXPECT_LT(nrmse("theirs.cfl", "own.cfl"), 1e-4);
}

TEST_F(FromPics, TrajectoriesAndWeights) {
  bart("traj -r -x 64 -o 2 -y 33 traj");
  bart("phantom -k -s 4 -t traj samples");
  bart("pics -S -t traj -l2 -r 0.01 -i 50 samples maps theirs");
  const std::vector<std::string> words = {"--trajectory", dir / "traj.cfl", "--reg",
                                          "l2:0.01",      "--iterations",   "50"};
  recon("samples", words);
  EXPECT_LT(nrmse("theirs.cfl", "own.cfl"), 0.01);
  // The weights of `pics` count twice: in the model and in the data.
  bart("rss 1 traj weights");
  bart("fmac weights weights squares");
  bart("pics -S -t traj -p weights -l2 -r 0.01 -i 50 samples maps theirs");
  std::vector<std::string> weighted = words;
  weighted.insert(weighted.end(), {"--weights", dir / "squares.cfl"});
  recon("samples", weighted);
  EXPECT_LT(nrmse("theirs.cfl", "own.cfl"), 0.018);
}

TEST_F(FromPics, TwoSetsOfMapsAreTwoSets) {
  bart("ecalib -O -m 2 full maps");
  bart("pics -S -w 1 -l2 -r 0.01 -i 30 ksp maps both");
  bart("rss 16 both theirs");
  recon("ksp", {"--reg", "l2:0.01", "--iterations", "30"});
  EXPECT_LT(nrmse("theirs.cfl", "own.cfl"), 1e-3);
  // The own copy of these maps has two sets too, as NPY.
  recon("ksp", {"--reg", "l2:0.01", "--iterations", "30", "--save-maps", dir / "m.npy"});
  ours({"recon", dir / "ksp.cfl", "--maps", dir / "m.npy", "--save", dir / "again.cfl", "--reg",
        "l2:0.01", "--iterations", "30", "--tolerance", "0"});
  EXPECT_LT(nrmse("own.cfl", "again.cfl"), 1e-6);
}

TEST_F(FromPics, KspaceOfOneCoilHasNoAxisOfCoils) {
  bart("phantom -x 64 -k ksp");
  bart("ones 2 64 64 maps");
  bart("pics -S -w 1 -l2 -r 0.01 -i 30 ksp maps theirs");
  recon("ksp", {"--reg", "l2:0.01", "--iterations", "30"});
  EXPECT_LT(nrmse("theirs.cfl", "own.cfl"), 1e-4);
  bart("traj -r -x 64 -o 2 -y 33 traj");
  bart("phantom -k -t traj samples");
  bart("pics -S -t traj -l2 -r 0.01 -i 50 samples maps theirs");
  recon("samples", {"--trajectory", dir / "traj.cfl", "--reg", "l2:0.01", "--iterations", "50"});
  EXPECT_LT(nrmse("theirs.cfl", "own.cfl"), 0.02);
  ours({"maps", dir / "ksp.cfl", dir / "m.npy"});
  EXPECT_EQ(read_npy(dir / "m.npy").shape(), (Extents{1, 64, 64}));
}

TEST_F(FromPics, BIsABasis) {
  using Sample = std::complex<float>;
  measure_series("5");
  const std::vector<Sample> rows = {1, 1, 1, 1, 0.1F, 0.4F, 0.7F, 1};
  write_cfl(dir / "basis", Tensor::from(rows, Extents{2, 4, 1, 1, 1, 1, 1}));
  bart("pics -S -w 1 -B basis -l2 -r 0.001 -i 50 series maps theirs");
  recon("series", {"--basis", dir / "basis.cfl", "--reg", "l2:0.001", "--iterations", "50"});
  EXPECT_LT(nrmse("theirs.cfl", "own.cfl"), 1e-3);
}

}  // namespace
}  // namespace palimpsest::cli
