// SPDX-License-Identifier: Apache-2.0
// recon with virtual coils, and with one side of k-space estimated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "cli/run_command.hpp"
#include "palimpsest/imaging/forward_model.hpp"
#include "palimpsest/imaging/phantom.hpp"
#include "palimpsest/imaging/scan_reconstruction.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "palimpsest/io/npy.hpp"
#include "support/difference.hpp"

namespace palimpsest::cli {
namespace {

using testing::difference_of_magnitudes;
using ::testing::HasSubstr;
using Sample = std::complex<float>;

class VirtualCoils : public ::testing::Test {
 protected:
  VirtualCoils() {
    const CommandResult made =
        run_command({"simulate", dir / "scan.h5", "--size", "64", "--coils", "8", "--center", "20",
                     "--save-maps", dir / "maps.npy", "--save-kspace", dir / "k.npy", "--reference",
                     dir / "reference.npy"});
    EXPECT_EQ(made.code, 0) << made.err;
  }
  Tensor image(std::vector<std::string> words) const {
    words.insert(words.begin(), "recon");
    words.insert(words.end(), {"--save", dir / "o.npy", "--json"});
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.code, 0) << result.err;
    return read_npy(dir / "o.npy");
  }
  std::string refusal(std::vector<std::string> words) const {
    words.insert(words.begin(), "recon");
    words.insert(words.end(), {"--save", dir / "o.npy"});
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.code, 2) << result.out;
    return result.err;
  }
  ScratchDirectory dir;
};

TEST_F(VirtualCoils, AsManyAsThereAreChangeNothing) {
  for (const char* input : {"scan.h5", "k.npy"}) {
    const std::vector<std::string> given = {dir / input, "--maps", dir / "maps.npy"};
    const Tensor all = image(given);
    std::vector<std::string> mixed = given;
    mixed.insert(mixed.end(), {"--compress", "8"});
    EXPECT_LT(difference_of_magnitudes(image(mixed), all), 1e-4) << input;
  }
}

TEST_F(VirtualCoils, FewKeepTheImage) {
  const Tensor all = image({dir / "k.npy"});
  const Tensor five = image({dir / "k.npy", "--compress", "5"});
  EXPECT_LT(difference_of_magnitudes(five, all), 0.05);
  EXPECT_LT(difference_of_magnitudes(image({dir / "scan.h5", "--compress", "5"}), five), 1e-4);
  const Tensor given = image({dir / "k.npy", "--compress", "5", "--maps", dir / "maps.npy"});
  EXPECT_LT(difference_of_magnitudes(given, all), 0.1);
  // Two files and a solve: compress, then recon.
  ASSERT_EQ(run_command({"compress", dir / "k.npy", dir / "five.npy", "--to", "5", "--maps",
                         dir / "maps.npy", "--save-maps", dir / "five_maps.npy"})
                .code,
            0);
  const Tensor apart = image({dir / "five.npy", "--maps", dir / "five_maps.npy"});
  EXPECT_LT(difference_of_magnitudes(given, apart), 1e-3);
}

TEST_F(VirtualCoils, ReportsNameWhatIsKept) {
  const CommandResult result =
      run_command({"recon", dir / "scan.h5", "--compress", "4", "-o", dir / "o.png"});
  EXPECT_THAT(result.out, HasSubstr("8 coils compressed to 4, without whitening"));
  EXPECT_THAT(result.out, HasSubstr("energy kept in 4 virtual coils: 9"));
}

TEST_F(VirtualCoils, AlongSpokesToo) {
  const Tensor trajectory = radial_trajectory({.spokes = 60, .samples = 128});
  const Tensor truth = read_npy(dir / "reference.npy").to(DType::complex64);
  const NamedLinop A = sense_model(read_npy(dir / "maps.npy"), {.trajectory = trajectory});
  write_npy(dir / "radial.npy", A(truth).contiguous());
  write_npy(dir / "t.npy", trajectory);
  // The same number of iterations: rounding decides where progress ends.
  const std::vector<std::string> given = {dir / "radial.npy",
                                          "--trajectory",
                                          dir / "t.npy",
                                          "--maps",
                                          dir / "maps.npy",
                                          "--tolerance",
                                          "0",
                                          "--iterations",
                                          "20"};
  std::vector<std::string> mixed = given;
  mixed.insert(mixed.end(), {"--compress", "8"});
  EXPECT_LT(difference_of_magnitudes(image(mixed), image(given)), 2e-3);
}

TEST_F(VirtualCoils, WrongNumbersAreRefused) {
  EXPECT_THAT(refusal({dir / "k.npy", "--compress", "9"}),
              HasSubstr("[--compress] got 9 virtual coils, expected 1 to 8"));
  EXPECT_THAT(refusal({dir / "k.npy", "--compress", "0"}), HasSubstr("got 0 virtual coils"));
  EXPECT_THAT(refusal({dir / "k.npy", "--compress", "3", "--sets", "4"}),
              HasSubstr("[--sets] got 4, expected at most 3"));
}

// Rows above the 40th of 64 are missing.
class MissingSide : public VirtualCoils {
 protected:
  MissingSide() {
    Tensor k = (sense_model(read_npy(dir / "maps.npy"))(
                    read_npy(dir / "reference.npy").to(DType::complex64)))
                   .contiguous()
                   .clone();
    k.narrow(1, 40, 24).fill(0);
    write_npy(dir / "partial.npy", k);
    // Maps of smooth phase leave the image without one.
    truth = read_npy(dir / "reference.npy").to(DType::complex64);
  }
  double error(const std::string& method) const {
    return difference_of_magnitudes(image({dir / "partial.npy", "--maps", dir / "maps.npy",
                                           "--partial", method, "--method", "adjoint"}),
                                    truth);
  }
  Tensor truth;
};

TEST_F(MissingSide, IsMadeUpOfASmoothPhase) {
  const double zeros = error("none");
  EXPECT_LT(error("homodyne"), 0.7 * zeros);
  EXPECT_LT(error("pocs"), 0.7 * zeros);
}

TEST_F(MissingSide, IsSaid) {
  const CommandResult zeros =
      run_command({"plan", dir / "partial.npy", "--maps", dir / "maps.npy"});
  EXPECT_THAT(zeros.out,
              HasSubstr("one side of k-space is missing along Ny, 24 of 64 lines: zeros"));
  const CommandResult made = run_command(
      {"plan", dir / "partial.npy", "--maps", dir / "maps.npy", "--partial", "homodyne"});
  EXPECT_THAT(made.out, HasSubstr("24 of 64 lines: homodyne"));
  EXPECT_THAT(made.out, HasSubstr("partial Fourier"));
}

TEST_F(MissingSide, IsRefusedWhereNoneIs) {
  EXPECT_THAT(refusal({dir / "k.npy", "--partial", "homodyne"}),
              HasSubstr("[--partial] " + (dir / "k.npy") + " is measured on both sides"));
  Tensor corner = read_npy(dir / "partial.npy").clone();
  corner.narrow(2, 40, 24).fill(0);
  write_npy(dir / "corner.npy", corner);
  EXPECT_THAT(refusal({dir / "corner.npy", "--partial", "pocs", "--maps", dir / "maps.npy"}),
              HasSubstr("[--partial] " + (dir / "corner.npy") +
                        ": one side of k-space is missing "
                        "along both axis 0 and axis 1"));
  EXPECT_THAT(refusal({dir / "partial.npy", "--partial", "pocs", "--sets", "2"}),
              HasSubstr("got 2 sets of maps"));
}

TEST_F(MissingSide, AnnouncedIsMeasured) {
  for (const char* maps : {"maps.npy", ""}) {
    for (const auto partial : {PartialFourier::homodyne, PartialFourier::pocs}) {
      for (const auto method : {ReconstructMethod::adjoint, ReconstructMethod::cg}) {
        ScanReconstructionOptions options;
        options.kspace = dir / "partial.npy";
        options.method = method;
        if (*maps != 0) options.maps = dir / maps;
        options.iterations = 2;
        options.partial = partial;
        options.virtual_coils = 1;
        options.scratch = dir.path();
        ScanReconstruction whole(options);
        whole.run();
        EXPECT_LE(whole.measured_bytes(), whole.plan().peak_bytes);
        EXPECT_LE(static_cast<double>(whole.plan().peak_bytes),
                  1.05 * static_cast<double>(whole.measured_bytes()))
            << maps << name_of(partial) << name_of(method);
      }
    }
  }
}

}  // namespace
}  // namespace palimpsest::cli
