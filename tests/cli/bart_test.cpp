// SPDX-License-Identifier: Apache-2.0
// The rows of `help bart`, compared with BART where it is installed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <numeric>

#include "cli/bart_command.hpp"
#include "palimpsest/imaging/patterns.hpp"
#include "palimpsest/imaging/results/image_formats.hpp"
#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/npy.hpp"

namespace palimpsest::cli {
namespace {

using Sample = std::complex<float>;

class FromBart : public BesideBart {
 protected:
  std::vector<double> magnitudes(const char* name) const {
    std::vector<double> found;
    for (const Sample v : read_cfl(dir / name).to_vector<Sample>()) found.push_back(std::abs(v));
    return found;
  }
  double median_difference() const {
    std::vector<double> a = magnitudes("theirs");
    const std::vector<double> b = magnitudes("own");
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::abs(a[i] - b.at(i));
    std::nth_element(a.begin(), a.begin() + std::ssize(a) / 2, a.end());
    return a[a.size() / 2];
  }
  double correlation() const {
    const std::vector<double> a = magnitudes("theirs"), b = magnitudes("own");
    const auto inner = [](const auto& x, const auto& y) {
      return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
    };
    return inner(a, b) / std::sqrt(inner(a, a) * inner(b, b));
  }
};

TEST_F(FromBart, EcalibIsMaps) {
  bart("phantom -x 64 -k -s 4 k");
  bart("ecalib -O -t 0.001 -c 0.8 -k 6 -r 24 -m 1 k exact");
  bart("ecalib -t 0.001 -c 0.8 -k 6 -r 24 -m 1 k usual");
  ours({"maps", dir / "k.cfl", dir / "m.cfl", "--threshold", "0.001", "--crop", "0.8", "--kernel",
        "6", "--calibration", "24", "--sets", "1"});
  EXPECT_LT(nrmse("exact.cfl", "m.cfl"), 1e-4);
  // BART's power iterations end early.
  EXPECT_LT(nrmse("usual.cfl", "m.cfl"), 0.02);
  bart("ecalib -O -r 24 -m 2 k two");
  ours({"maps", dir / "k.cfl", dir / "n.cfl", "--sets", "2"});
  // The eigenvalue of a point at the edge of the crop may lie on either side of it by rounding, so
  // that the point is 0 in one of the two: two points of four coils at most.
  const auto theirs = read_cfl(dir / "two").to_vector<Sample>();
  const auto own = read_cfl(dir / "n").to_vector<Sample>();
  ASSERT_EQ(theirs.size(), own.size());
  double miss = 0, size = 0;
  int cropped = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const double a = std::abs(theirs[i]), b = std::abs(own[i]);
    if ((a == 0) != (b == 0)) {
      ++cropped;
    } else {
      miss += (a - b) * (a - b);
      size += a * a;
    }
  }
  EXPECT_LE(cropped, 8);
  EXPECT_LT(std::sqrt(miss / size), 1e-3);
}

TEST_F(FromBart, FakekspIsSimulateFakeKspace) {
  bart("phantom -x 32 image");
  bart("phantom -x 32 -k -s 4 k");
  bart("ecalib -m 1 k maps");
  for (const std::string option : {"", "-r "}) {
    bart("fakeksp " + option + "image k maps theirs");
    std::vector<std::string> words = {"simulate",      dir / "own.cfl",   "--fake-kspace",
                                      "--image",       dir / "image.cfl", "--maps",
                                      dir / "maps.cfl"};
    if (!option.empty()) words.insert(words.end(), {"--replace", dir / "k.cfl"});
    ours(words);
    EXPECT_LT(nrmse("theirs.cfl", "own.cfl"), 1e-5) << option;
  }
}

TEST_F(FromBart, CaldirIsMapsDirect) {
  bart("phantom -x 64 -k -s 4 k");
  bart("caldir 24 k theirs");
  ours({"maps", dir / "k.cfl", dir / "own.cfl", "--method", "direct", "--calibration", "24"});
  // If the middle of k-space is not the middle of the block, BART shifts it, which is a phase
  // common to all coils.
  const auto theirs = read_cfl(dir / "theirs").to_vector<Sample>();
  const auto own = read_cfl(dir / "own").to_vector<Sample>();
  ASSERT_EQ(theirs.size(), own.size());
  const std::size_t points = own.size() / 4;
  for (std::size_t p = 0; p < points; ++p) {
    Sample product = 0;
    for (std::size_t c = 0; c < 4; ++c) {
      product += std::conj(theirs[c * points + p]) * own[c * points + p];
    }
    ASSERT_NEAR(std::abs(product), 1, 1e-4) << p;
  }
}

// BART's blocks have 20 points.
TEST_F(FromBart, WalshIsMapsWalsh) {
  bart("phantom -x 64 -k -s 4 k");
  bart("walsh k covariance");
  bart("ecaltwo 64 64 1 covariance sets");
  bart("slice 4 0 sets theirs");
  ours({"maps", dir / "k.cfl", dir / "own.cfl", "--method", "walsh", "--block", "21"});
  bart("fft -u -i 3 k coils");
  const auto coils = read_cfl(dir / "coils").to_vector<Sample>();
  const auto theirs = read_cfl(dir / "theirs").to_vector<Sample>();
  const auto own = read_cfl(dir / "own").to_vector<Sample>();
  ASSERT_EQ(theirs.size(), own.size());
  // Factors of lines through the origin, weighted with the image.
  const std::size_t points = own.size() / 4;
  double sum = 0, weights = 0;
  for (std::size_t p = 0; p < points; ++p) {
    Sample product = 0;
    double weight = 0, a = 0, b = 0;
    for (std::size_t c = p; c < own.size(); c += points) {
      product += std::conj(theirs[c]) * own[c];
      weight += std::norm(coils[c]);
      a += std::norm(theirs[c]);
      b += std::norm(own[c]);
    }
    sum += weight * std::abs(product) / std::sqrt(a * b);
    weights += weight;
  }
  EXPECT_GT(sum / weights, 0.99);
}

TEST_F(FromBart, CcIsCompress) {
  bart("phantom -x 64 -k -s 8 k");
  bart("cc -p 4 k theirs");
  ours({"compress", dir / "k.cfl", dir / "own.cfl", "--to", "4"});
  // Each virtual coil has a phase of its own.
  EXPECT_LT(nrmse("theirs.cfl", "own.cfl", /*complex=*/false), 1e-4);
  bart("cc -p 4 -G k theirs");
  ours({"compress", dir / "k.cfl", dir / "own.cfl", "--to", "4", "--method", "geometric"});
  EXPECT_LT(nrmse("theirs.cfl", "own.cfl", /*complex=*/false), 1e-3);
}

TEST_F(FromBart, WhitenIsWhiten) {
  bart("phantom -x 64 -k -s 4 k");
  bart("zeros 4 500 1 1 4 z");
  bart("noise -n 2 z n");
  bart("whiten k n theirs");
  ours({"whiten", dir / "k.cfl", dir / "own.cfl", "--noise", dir / "n.cfl"});
  EXPECT_LT(nrmse("theirs.cfl", "own.cfl"), 0.01);
}

TEST_F(FromBart, FftIsFft) {
  bart("phantom -x 64 p");
  bart("fft -u 3 p theirs");
  ours({"fft", dir / "p.cfl", dir / "own.cfl", "--dims", "Nx:Ny"});
  EXPECT_LT(nrmse("theirs.cfl", "own.cfl"), 1e-6);
  bart("fft -u -i 3 theirs back");
  ours({"fft", dir / "own.cfl", dir / "own_back.cfl", "--dims", "Nx:Ny", "--inverse"});
  EXPECT_LT(nrmse("back.cfl", "own_back.cfl"), 1e-6);
}

TEST_F(FromBart, TrajIsTraj) {
  for (const std::string samples : {"64", "48"}) {
    bart("traj -r -x " + samples + " -y 33 t");
    ours({"traj", dir / "own.cfl", "--spokes", "33", "--samples", samples, "--oversampling", "1",
          "--convention", "bart"});
    const Tensor theirs = read_cfl(dir / "t").to(DType::complex64).view_as_real();
    const Tensor own = read_cfl(dir / "own").view_as_real();
    ASSERT_EQ(theirs.shape(), own.shape());
    EXPECT_TRUE(allclose(own, theirs, 1e-5, 1e-4)) << samples;
  }
  // -x of `traj` counts samples before oversampling.
  bart("traj -r -x 64 -y 33 -o 2 t");
  ours({"traj", dir / "own.cfl", "--spokes", "33", "--samples", "128", "--oversampling", "2",
        "--convention", "bart"});
  EXPECT_LT(nrmse("t.cfl", "own.cfl"), 2e-5);
}

TEST_F(FromBart, NufftIsNufft) {
  bart("phantom -x 64 p");
  bart("traj -r -x 64 -y 33 t");
  bart("nufft t p theirs");
  ours({"nufft", dir / "p.cfl", dir / "own.cfl", "--trajectory", dir / "t.cfl"});
  // BART's kernel is narrower than that of an accuracy of 1e-4.
  EXPECT_LT(nrmse("theirs.cfl", "own.cfl"), 0.003);
  bart("nufft -a -d 64:64:1 t theirs a");
  ours({"nufft", dir / "theirs.cfl", dir / "own_a.cfl", "--trajectory", dir / "t.cfl", "--adjoint",
        "--size", "64,64"});
  EXPECT_LT(nrmse("a.cfl", "own_a.cfl"), 0.003);
  bart("nufft -i -m 20 -d 64:64:1 t theirs i");
  ours({"nufft", dir / "theirs.cfl", dir / "own_i.cfl", "--trajectory", dir / "t.cfl", "--inverse",
        "--size", "64,64", "--iterations", "20"});
  EXPECT_LT(nrmse("i.cfl", "own_i.cfl"), 0.05);
}

TEST_F(FromBart, PoissonAndUpatArePatterns) {
  bart("poisson -Y 64 -Z 64 -y 2 -z 2 -C 12 theirs");
  ours({"pattern", dir / "own.cfl", "--size", "64,64", "--acceleration", "4", "--center", "12"});
  EXPECT_EQ(read_cfl(dir / "own").shape(), read_cfl(dir / "theirs").shape());
  // BART's centre block has 2 c - 1 points from N/2 - c + 1 on: with c = 1 the lattice has all of
  // them.
  bart("upat -Y 32 -Z 32 -y 2 -z 2 -c 1 lattice");
  ours({"pattern", dir / "u.cfl", "--kind", "caipi", "--size", "32,32", "--step", "2,2", "--center",
        "0"});
  EXPECT_TRUE(equal(read_cfl(dir / "u"), read_cfl(dir / "lattice")));
}

// BART's rows are our columns, and ours have edges between 0 and 1.
TEST_F(FromBart, PhantomIsPhantom) {
  bart("phantom -x 128 p");
  bart("transpose 0 1 p theirs");
  ours({"phantom", dir / "own.cfl", "--size", "128,128"});
  EXPECT_LT(median_difference(), 1e-6);
  bart("phantom -x 128 -k k");
  bart("transpose 0 1 k theirs");
  ours({"phantom", dir / "own.cfl", "--size", "128,128", "--kspace"});
  EXPECT_GT(correlation(), 0.999);
}

TEST_F(FromBart, SliceAndResizeAreConvert) {
  bart("phantom -x 64 -k -s 4 k");
  bart("slice 0 10 k theirs");
  ours({"convert", dir / "k.cfl", dir / "own.cfl", "--slice", "Nx=10"});
  EXPECT_EQ(nrmse("theirs.cfl", "own.cfl"), 0);
  bart("resize 0 48 k theirs");
  ours({"convert", dir / "k.cfl", dir / "own.cfl", "--slice", "Nx=0:48"});
  EXPECT_EQ(nrmse("theirs.cfl", "own.cfl"), 0);
}

TEST_F(FromBart, ShowMIsInfo) {
  bart("phantom -x 64 -k -s 4 k");
  const CommandResult result = run_command({"info", dir / "k.cfl"});
  EXPECT_THAT(result.out, ::testing::HasSubstr("(4, 1, 64, 64)"));
}

TEST_F(FromBart, NrmseIsCompare) {
  bart("phantom -x 64 p");
  bart("noise -n 0.01 p x");
  ASSERT_EQ(std::system(("cd '" + dir.path() + "' && bart nrmse -s p x > out 2> err").c_str()), 0);
  // Two lines: the factor, the error.
  const std::string out = read_file(dir / "out");
  const double theirs = std::stod(out.substr(out.find('\n') + 1));
  // BART's error is relative to the scaled image, whose square is 1 - nrmse^2 of the reference's.
  const double own = nrmse("p.cfl", "x.cfl");
  EXPECT_NEAR(own / std::sqrt(1 - own * own), theirs, 1e-4);
}

TEST_F(FromBart, ToimgIsShow) {
  bart("phantom -x 64 p");
  bart("toimg p theirs.png");
  ours({"show", dir / "p.cfl", "-o", dir / "own.png"});
  ours({"convert", dir / "own.png", dir / "pixels.npy"});
  EXPECT_EQ(read_npy(dir / "pixels.npy").shape(), (Extents{64, 64}));
}

}  // namespace
}  // namespace palimpsest::cli
