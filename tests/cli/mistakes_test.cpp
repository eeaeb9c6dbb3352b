// SPDX-License-Identifier: Apache-2.0
// Mistakes of users and the messages they get: a table that docs/howto/mistakes.md shows. With
// PALIMPSEST_WRITE_DOCS set the page is written instead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <filesystem>
#include <limits>

#include "cli/run_command.hpp"
#include "palimpsest/io/ismrmrd.hpp"
#include "palimpsest/io/npy.hpp"
#include "support/page_part.hpp"

namespace palimpsest::cli {
namespace {

using Sample = std::complex<float>;

struct Mistake {
  const char* what;
  std::vector<std::string> words;
  /// A part of the message.
  const char* text;
  int code = 2;
};

const std::vector<Mistake>& mistakes() {
  static const std::vector<Mistake> all = {
      {"No command", {}, "which command?"},
      {"A misspelt command", {"recno", "k.npy"}, "Try 'recon'"},
      {"A misspelt option", {"recon", "k.npy", "--lamda", "0.1"}, "Try '--lambda'"},
      {"An input that is not there", {"recon", "kk.npy", "-o", "x.png"}, "kk.npy"},
      {"No output", {"recon", "k.npy"}, "Try -o image.png"},
      {"An output of an unknown format", {"convert", "k.npy", "k.mat"}, "'.nii.gz'"},
      {"An output in a folder that is not there",
       {"show", "image.npy", "-o", "out/x.png"},
       "mkdir -p"},
      {"An output that is an input", {"fft", "k.npy", "k.npy"}, "overwrite the input"},
      {"Two outputs of one name",
       {"maps", "k.npy", "m.npy", "--eigenvalues", "m.npy"},
       "two outputs are the same file"},
      {"A folder as output", {"convert", "k.npy", "."}, "is a directory"},
      {"Real numbers as k-space", {"maps", "image.npy", "m.npy"}, "must be complex"},
      {"One coil without its axis", {"maps", "plane.npy", "m.npy"}, "expected (coil, y, x)"},
      {"k-space of zeros", {"maps", "zeros.npy", "m.npy"}, "no samples"},
      {"NaN in k-space", {"maps", "nan.npy", "m.npy"}, "the first at (1, 2, 3)"},
      {"NaN in an image", {"show", "nan_image.npy"}, "NaN or infinite"},
      {"A raw scan where an image is expected",
       {"compare", "scan.h5", "scan.h5"},
       "a raw scan and no images"},
      {"An image where k-space is expected", {"maps", "image.png", "m.npy"}, "expected k-space"},
      {"A damaged file", {"info", "broken.h5"}, "Try to copy it again"},
      {"A text file with another ending", {"info", "notes.npy"}, "notes.npy"},
      {"Images of two sizes", {"compare", "image.npy", "small.npy"}, "differ in shape"},
      {"A reference of zeros", {"compare", "black.npy", "image.npy"}, "0 everywhere"},
      {"More labels than images",
       {"compare", "image.npy", "image.npy", "--label", "a", "--label", "b"},
       "at most one each"},
      {"An option without effect",
       {"maps", "k.npy", "m.npy", "--method", "walsh", "--crop", "0.8"},
       "has no effect with --method walsh"},
      {"Too small a calibration area",
       {"maps", "k.npy", "m.npy", "--calibration", "4"},
       "too small"},
      {"More sets of maps than coils", {"maps", "k.npy", "m.npy", "--sets", "9"}, "sets"},
      {"A word for a number",
       {"maps", "k.npy", "m.npy", "--crop", "most"},
       "expected a number or auto"},
      {"A budget without a unit that is known",
       {"maps", "k.npy", "m.npy", "--memory", "2 cats"},
       "--memory"},
      {"A budget that is too small",
       {"maps", "k.npy", "m.npy", "--memory", "10k"},
       "expected at least",
       1},
      {"No noise to whiten by", {"whiten", "k.npy", "w.npy"}, "Try --noise FILE"},
      {"Noise of other coils", {"whiten", "k.npy", "w.npy", "--noise", "noise.npy"}, "of 4 coils"},
      {"More virtual coils than coils", {"compress", "k.npy", "c.npy", "--to", "9"}, "to"},
      {"Two ways to choose the coils",
       {"compress", "k.npy", "c.npy", "--to", "2", "--energy", "0.9"},
       "has no effect with --to"},
      {"A pattern of one number", {"pattern", "p.npy", "--size", "128"}, "such as 128,96"},
      {"An acceleration below 1", {"pattern", "p.npy", "--acceleration", "0.5"}, "acceleration"},
      {"Spokes of a spiral", {"traj", "t.npy", "--kind", "spiral", "--spokes", "8"}, "no effect"},
      {"A dimension that the array lacks",
       {"fft", "k.npy", "y.npy", "--dims", "Nx:T"},
       "no dimension T"},
      {"No trajectory", {"nufft", "image.npy", "y.npy"}, "[--trajectory]"},
      {"No size of the image",
       {"nufft", "plane.npy", "y.npy", "--trajectory", "t.npy", "--adjoint"},
       "Try --size"},
      {"Samples of another trajectory",
       {"nufft", "plane.npy", "y.npy", "--trajectory", "t.npy", "--adjoint", "--size", "16,16"},
       "like the trajectory"},
      {"A slice outside of the array",
       {"convert", "k.npy", "x.npy", "--slice", "Ny=99"},
       "expected 0 to"},
      {"A slice of an axis without a name",
       {"convert", "k.npy", "x.npy", "--slice", "T=1"},
       "no axis T"},
      {"Names for another number of axes",
       {"convert", "k.npy", "x.npy", "--axes", "Ny,Nx"},
       "3 axes"},
      {"A window that does not increase",
       {"show", "image.npy", "-o", "x.png", "--window", "1:0"},
       "increase"},
      {"A misspelt key in a configuration",
       {"maps", "k.npy", "m.npy", "--config", "c.json"},
       "Try 'calibration'"},
      {"An unknown shell", {"completion", "csh"}, "bash, zsh, fish"},
      {"An unknown topic", {"help", "me"}, "exit-codes"},
  };
  return all;
}

class Mistakes : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = std::filesystem::current_path();
    std::filesystem::current_path(dir.path());
    done({"phantom", "k.npy", "--size", "32,32", "--coils", "4", "--kspace"});
    done({"phantom", "image.npy", "--size", "32,32"});
    done({"show", "image.npy", "-o", "image.png"});
    done({"traj", "t.npy", "--spokes", "5", "--samples", "16"});
    done({"simulate", "scan.h5", "--size", "16", "--coils", "2"});
    const Tensor k = read_npy("k.npy");
    write_npy("plane.npy", k.select(0, 0));
    write_npy("zeros.npy", Tensor::zeros(k.shape(), DType::complex64));
    Tensor bad = k.clone();
    bad.set<Sample>({1, 2, 3}, Sample(std::numeric_limits<float>::quiet_NaN(), 0));
    write_npy("nan.npy", bad);
    write_npy("nan_image.npy", bad.select(0, 1));
    write_npy("small.npy", Tensor::ones({8, 8}, DType::float32));
    write_npy("black.npy", Tensor::zeros({32, 32}, DType::float32));
    write_npy("noise.npy", Tensor::random_normal({3, 100}, DType::complex64, {1, 1}));
    write_file("broken.h5", read_file("scan.h5").substr(0, 2000));
    write_file("notes.npy", "remember the milk\n");
    write_file("c.json", "{\"calibraton\": 20}\n");
  }
  void TearDown() override { std::filesystem::current_path(before_); }
  static void done(const std::vector<std::string>& words) {
    const CommandResult result = run_command(words);
    ASSERT_EQ(result.code, 0) << result.err;
  }
  ScratchDirectory dir;
  std::filesystem::path before_;
};

std::string quoted(const std::string& word) {
  return word.find_first_of(" '();") == std::string::npos ? word : "'" + word + "'";
}

TEST_F(Mistakes, GetTheMessagesThatThePageShows) {
  ASSERT_GE(mistakes().size(), 40U);
  std::string made;
  for (const Mistake& mistake : mistakes()) {
    const auto before = dir.names();
    const CommandResult result = run_command(mistake.words);
    EXPECT_EQ(result.code, mistake.code) << mistake.what << "\n" << result.err;
    EXPECT_THAT(result.err, ::testing::HasSubstr(mistake.text)) << mistake.what;
    EXPECT_EQ(dir.names(), before) << mistake.what;
    EXPECT_LE(result.error_lines(), 2) << result.err;
    made += "\n" + std::string(mistake.what) + ":\n\n```text\n$ palimpsest";
    for (const std::string& word : mistake.words) made += " " + quoted(word);
    std::string message = result.err;
    const std::size_t at = message.find(dir.path());
    if (at != std::string::npos) message.replace(at, dir.path().size(), "/home/me/scans");
    made += "\n" + message + "```\n";
  }
  testing::expect_page_has(PALIMPSEST_SOURCE_DIR "/docs/howto/mistakes.md", made,
                           "<!-- begin of the mistakes -->\n", "\n<!-- end of the mistakes -->");
}

}  // namespace
}  // namespace palimpsest::cli
