// SPDX-License-Identifier: Apache-2.0
// The command on bad input and bad outputs: an error with a remedy, an exit code, nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <complex>
#include <filesystem>
#include <limits>
#include <utility>

#include "cli/run_command.hpp"
#include "palimpsest/base/random.hpp"
#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/ismrmrd.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/io/png.hpp"

namespace palimpsest::cli {
namespace {

using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

using Sample = std::complex<float>;

class WrongInput : public ::testing::Test {
 protected:
  // Expects a correct failure: exit code, one or two lines, no new file.
  void expect_refused(std::vector<std::string> arguments, int code, const std::string& text,
                      const RunOptions& options = {}) {
    const std::vector<std::string> before = dir.names();
    const CommandResult result = run_command(arguments, options);
    const std::string words = ::testing::PrintToString(arguments);
    EXPECT_EQ(result.code, code) << words << "\n" << result.err;
    EXPECT_THAT(result.err, HasSubstr(text)) << words;
    EXPECT_GE(result.error_lines(), 1) << words;
    // The announcement of the peak takes one more line.
    EXPECT_LE(result.error_lines(), result.err.starts_with("announced") ? 3 : 2) << result.err;
    EXPECT_THAT(result.err, Not(ContainsRegex("[^.][.][.][ \n]"))) << "a doubled full stop";
    EXPECT_THAT(result.err, Not(HasSubstr("] ["))) << "two names of one thing";
    EXPECT_EQ(dir.names(), before) << words;
  }
  // Expects a refusal of any kind.
  void expect_some_refusal(const std::vector<std::string>& arguments, const std::string& what) {
    const std::vector<std::string> before = dir.names();
    const CommandResult result = run_command(arguments);
    EXPECT_THAT(result.code, AnyOf(1, 2)) << what << "\n" << result.err;
    EXPECT_THAT(result.err, Not(HasSubstr("Sanitizer"))) << what;
    EXPECT_GE(result.error_lines(), 1) << what;
    EXPECT_LE(result.error_lines(), 2) << what << "\n" << result.err;
    EXPECT_THAT(result.err, Not(ContainsRegex("[^.][.][.][ \n]"))) << what;
    EXPECT_EQ(dir.names(), before) << what;
  }
  void make_scan() {
    const CommandResult result = run_command(
        {"simulate", dir / "scan.h5", "--size", "32", "--coils", "4", "--center", "12"});
    ASSERT_EQ(result.code, 0) << result.err;
  }
  Tensor random_kspace(Extents shape) {
    return Tensor::random_normal(shape, DType::complex64, {1, 2});
  }
  std::string picture() const { return dir / "x.png"; }

  ScratchDirectory dir;
};

TEST_F(WrongInput, MissingFiles) {
  expect_refused({"recon", dir / "none.npy", "-o", picture()}, 2, "none.npy");
  expect_refused({"recon", dir / "none.h5", "-o", picture()}, 2, "none.h5");
  expect_refused({"info", dir / "none"}, 2, "none");
  expect_refused({"recon", dir.path(), "-o", picture()}, 2, dir.path());
  expect_refused({"simulate", dir / "x.h5", "--image", dir / "none.nii.gz"}, 2, "none.nii.gz");
  expect_refused({"compare", dir / "a.npy", dir / "b.npy"}, 2, "a.npy");
}

TEST_F(WrongInput, KspaceOfWrongRankOrType) {
  write_npy(dir / "2.npy", random_kspace({32, 32}));
  expect_refused({"recon", dir / "2.npy", "-o", picture()}, 2,
                 "wrong rank of k-space: got the shape (32, 32)");
  write_npy(dir / "6.npy", random_kspace({2, 2, 2, 2, 4, 4}));
  expect_refused({"recon", dir / "6.npy", "-o", picture()}, 2, "expected (coil, y, x)");
  write_npy(dir / "0.npy", random_kspace({4, 0, 8}));
  expect_refused({"recon", dir / "0.npy", "-o", picture()}, 2, "is empty: got the shape (4, 0, 8)");
  write_npy(dir / "real.npy", Tensor::ones({4, 32, 32}, DType::float32));
  expect_refused({"recon", dir / "real.npy", "-o", picture()}, 2,
                 "got float32, expected complex64");
  write_npy(dir / "zero.npy", Tensor::zeros({4, 32, 32}, DType::complex64));
  expect_refused({"recon", dir / "zero.npy", "-o", picture()}, 2, "nothing is measured");
}

TEST_F(WrongInput, NanAndInfinityInTheData) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Tensor kspace = random_kspace({4, 32, 32});
    kspace.set<Sample>({2, 5, 7}, Sample(0, bad));
    write_npy(dir / "nan.npy", kspace);
    expect_refused({"recon", dir / "nan.npy", "-o", picture()}, 2,
                   "got 1 of them, the first at (2, 0, 5, 7)");
    expect_refused({"recon", dir / "nan.npy", "--memory", "100M", "-o", picture()}, 2,
                   "got 1 of them, the first at (2, 0, 5, 7)");
  }
  Tensor maps = random_kspace({4, 32, 32});
  maps.set<Sample>({0, 3, 3}, Sample(std::numeric_limits<float>::infinity(), 0));
  write_npy(dir / "maps.npy", maps);
  write_npy(dir / "k.npy", random_kspace({4, 32, 32}));
  expect_refused({"recon", dir / "k.npy", "--maps", dir / "maps.npy", "-o", picture()}, 2,
                 "Try to set them to 0, which means no signal there");
  make_scan();
  RawScan scan = read_ismrmrd(dir / "scan.h5");
  scan.samples.set<Sample>({17}, Sample(std::numeric_limits<float>::quiet_NaN(), 0));
  write_ismrmrd(dir / "nan.h5", scan);
  expect_refused({"recon", dir / "nan.h5", "-o", picture()}, 2, "NaN or infinite");
  Tensor image = Tensor::ones({8, 8}, DType::float32);
  image.set<float>({1, 2}, std::numeric_limits<float>::quiet_NaN());
  write_npy(dir / "nan_image.npy", image);
  expect_refused({"simulate", dir / "x.h5", "--image", dir / "nan_image.npy"}, 2,
                 "the first at (1, 2)");
  expect_refused({"compare", dir / "nan_image.npy", dir / "nan_image.npy"}, 2, "NaN");
}

TEST_F(WrongInput, NumbersOutOfRangeAreRefusedByOption) {
  write_npy(dir / "k.npy", random_kspace({4, 32, 32}));
  write_npy(dir / "maps.npy", random_kspace({4, 32, 32}));
  const auto refused = [&](const std::vector<std::string>& more, const std::string& text) {
    std::vector<std::string> words = {"recon",          dir / "k.npy", "--maps",
                                      dir / "maps.npy", "-o",          picture()};
    words.insert(words.end(), more.begin(), more.end());
    expect_refused(words, 2, text);
  };
  Tensor start = random_kspace({32, 32});
  start.set<Sample>({3, 5}, Sample(0, std::numeric_limits<float>::quiet_NaN()));
  write_npy(dir / "start.npy", start);
  refused({"--start", dir / "start.npy"},
          "[--start] " + (dir / "start.npy") +
              ": NaN or infinite values, the first is element 101 at (3, 5): got 1 of them");
  refused({"--tolerance", "-1"}, "[--tolerance] got -1");
  refused({"--memory", "1G", "--scratch", dir / "none"}, "[--scratch] there is no directory");
  refused({"--reg", "tvv:1"}, "nonneg, real, ball; the nearest ones are tv");
  refused({"--reg", "auto"}, "expected one of l2, l1");
  EXPECT_THAT(run_command({"plan", dir / "k.npy", "--reg", "auto"}).err,
              ::testing::Not(HasSubstr("nearest")));
  refused({"--reg", "l1wav(Nx):0.1,levels=-1"}, "expected auto or a number of at least 1");
}

// Weights of samples, in both commands that take them.
TEST_F(WrongInput, WeightsThatAreNone) {
  ASSERT_EQ(run_command({"traj", dir / "t.npy", "--spokes", "24", "--samples", "32"}).code, 0);
  write_npy(dir / "k.npy", random_kspace({4, 24, 32}));
  for (const auto& [value, text] :
       {std::pair(-0.5F, "got -0.5 at (2, 3), expected numbers >= 0"),
        {std::numeric_limits<float>::infinity(), "got 1 of them, the first at (2, 3)"},
        {0.0F, "all are 0, expected some above 0"}}) {
    Tensor weights = Tensor::full<float>({24, 32}, value == 0 ? 0.0F : 1.0F);
    weights.set<float>({2, 3}, value);
    write_npy(dir / "w.npy", weights);
    expect_refused({"recon", dir / "k.npy", "--trajectory", dir / "t.npy", "--weights",
                    dir / "w.npy", "-o", picture()},
                   2, text);
    expect_refused({"nufft", dir / "k.npy", dir / "x.npy", "--adjoint", "--size", "16,16",
                    "--trajectory", dir / "t.npy", "--weights", dir / "w.npy"},
                   2, text);
  }
}

TEST_F(WrongInput, HugeNumbersThatOverflowAreAnErrorNotAPicture) {
  Tensor kspace = random_kspace({4, 32, 32});
  kspace.fill<Sample>(Sample(3e38F, 3e38F));
  write_npy(dir / "huge.npy", kspace);
  expect_some_refusal({"recon", dir / "huge.npy", "-o", picture()}, "huge values");
}

TEST_F(WrongInput, NoDenseCentre) {
  Tensor kspace = random_kspace({4, 32, 32});
  for (index_t y = 1; y < 32; y += 2) kspace.select(1, y).fill<Sample>(0);
  write_npy(dir / "k.npy", kspace);
  expect_refused({"recon", dir / "k.npy", "-o", picture()}, 2, "Try --maps FILE");
}

TEST_F(WrongInput, MapsThatDoNotFit) {
  write_npy(dir / "k.npy", random_kspace({4, 32, 32}));
  write_npy(dir / "maps.npy", random_kspace({3, 32, 32}));
  expect_refused({"recon", dir / "k.npy", "--maps", dir / "maps.npy", "-o", picture()}, 2,
                 "got the shape (3, 32, 32), expected (4, 32, 32)");
  expect_refused({"recon", dir / "k.npy", "--maps", dir / "none.npy", "-o", picture()}, 2,
                 "none.npy");
}

TEST_F(WrongInput, FilesOfOtherFormats) {
  write_png(dir / "image.png", Tensor::ones({4, 4}, DType::float32));
  expect_refused({"recon", dir / "image.png", "-o", picture()}, 2, "is an image");
  write_file(dir / "text.npy", "this is no array\n");
  expect_refused({"recon", dir / "text.npy", "-o", picture()}, 2, "text.npy");
  write_file(dir / "empty.h5", "");
  expect_refused({"recon", dir / "empty.h5", "-o", picture()}, 2, "empty.h5");
  expect_refused({"recon", "/dev/null", "-o", picture()}, 2, "/dev/null");
  expect_refused({"simulate", dir / "x.h5", "--image", dir / "image.png"}, 2,
                 "expected an image as NIfTI");
}

TEST_F(WrongInput, AVolumeUndersampledAlongItsReadout) {
  Tensor kspace = random_kspace({2, 4, 16, 16});
  kspace.narrow(3, 3, 1).narrow(2, 2, 1).fill<Sample>(0);
  write_npy(dir / "volume.npy", kspace);
  expect_refused({"recon", dir / "volume.npy", "-o", picture()}, 2,
                 "too small: got 4 x 10 x 16 points");
}

TEST_F(WrongInput, SlicesThatAreNotThere) {
  make_scan();
  expect_refused({"recon", dir / "scan.h5", "--slice", "9", "-o", picture()}, 2, "slice");
  write_npy(dir / "volume.npy", Tensor::ones({4, 8, 8}));
  expect_refused({"simulate", dir / "x.h5", "--image", dir / "volume.npy", "--slice", "4"}, 2,
                 "expected 0 to 3 along z");
}

// Previously the peak was announced first, and the message began with two names.
TEST_F(WrongInput, ARawScanWithoutWhatIsAskedForIsRefusedFirst) {
  make_scan();
  const std::string scan = dir / "scan.h5";
  for (const auto& [option, text] : std::vector<std::pair<std::string, std::string>>{
           {"--prewhiten", "prewhitening needs noise readouts"},
           {"--slice=9", "no readouts of slice 9"},
           {"--repetition=9", "no readouts of repetition 9"}}) {
    const std::string line = "palimpsest recon: [" + scan + "] " + text;
    expect_refused({"recon", scan, option, "-o", picture()}, 2, line);
    EXPECT_THAT(run_command({"recon", scan, option, "-o", picture()}).err, StartsWith(line));
    const CommandResult plan = run_command({"plan", scan, option});
    EXPECT_EQ(plan.code, 2);
    EXPECT_THAT(plan.err, HasSubstr("[" + scan + "] " + text));
  }
}

// Damaged copies of good files: truncated, and with changed bytes in the structure of the format.
TEST_F(WrongInput, TruncatedFiles) {
  make_scan();
  write_npy(dir / "good.npy", random_kspace({4, 16, 16}));
  write_cfl(dir / "good", random_kspace({4, 16, 16}));
  const std::string header = read_file(dir / "good.hdr");
  for (const double part : {0.0, 0.001, 0.1, 0.5, 0.9, 0.999}) {
    for (const char* name : {"scan.h5", "good.npy", "good.cfl"}) {
      const std::string ending = std::string(name).substr(std::string(name).find('.'));
      const std::string content = read_file(dir / name);
      const auto length = static_cast<std::size_t>(part * static_cast<double>(content.size()));
      write_file(dir / ("bad" + ending), content.substr(0, length));
      write_file(dir / "bad.hdr", header);
      expect_some_refusal({"recon", dir / ("bad" + ending), "-o", picture()},
                          std::string(name) + " cut to " + std::to_string(length));
    }
  }
}

TEST_F(WrongInput, HostileHeaders) {
  const auto npy = [](const std::string& header) {
    const std::string text = header + "\n";
    return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(text.size()) + '\0' + text;
  };
  const std::string head = "{'descr': '<c8', 'fortran_order': False, 'shape': ";
  const std::vector<std::string> arrays = {
      npy(head + "(4, 4611686018427387904, 4), }"),
      npy(head + "(-4, 16, 16), }"),
      npy(head + "(99999, 99999, 99999), }"),
      npy(head + "(4, 16, 16"),
      npy("{'descr': '|O', 'fortran_order': False, 'shape': (4, 16, 16), }"),
      npy("")};
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    write_file(dir / "bad.npy", arrays[i] + std::string(64, 'x'));
    expect_some_refusal({"recon", dir / "bad.npy", "-o", picture()}, "array " + std::to_string(i));
    expect_some_refusal({"info", dir / "bad.npy"}, "array " + std::to_string(i));
  }
  write_file(dir / "bad.cfl", std::string(64, 'x'));
  for (const char* sizes :
       {"9223372036854775807 9223372036854775807", "-1 -1", "", "a b c", "0 0 0"}) {
    write_file(dir / "bad.hdr", std::string("# Dimensions\n") + sizes + "\n");
    expect_some_refusal({"recon", dir / "bad.cfl", "-o", picture()}, sizes);
  }
}

TEST_F(WrongInput, ChangedBytesNeverCrash) {
  make_scan();
  const std::string good = read_file(dir / "scan.h5");
  for (std::uint64_t trial = 0; trial < 24; ++trial) {
    std::string bad = good;
    // Half of the changes hit the first KiB, where the structure begins.
    for (std::uint64_t k = 0; k < 16; ++k) {
      const std::uint64_t range = k % 2 == 0 ? 1024 : bad.size();
      bad[random_bits({trial, 1}, k) % range] = static_cast<char>(random_bits({trial, 2}, k));
    }
    write_file(dir / "bad.h5", bad);
    const CommandResult result = run_command({"recon", dir / "bad.h5", "--json"});
    EXPECT_THAT(result.code, AnyOf(0, 1, 2)) << "trial " << trial << "\n" << result.err;
    EXPECT_LE(result.error_lines(), 2) << result.err;
    EXPECT_THAT(result.err, Not(HasSubstr("Sanitizer")));
  }
}

// A sparse file of zeros: reading all of it leaves time to truncate the file.
TEST_F(WrongInput, AMappedFileThatBecomesShorterIsSaid) {
  const std::string path = dir / "k.npy";
  write_npy(path, Tensor::zeros({1, 1, 1}, DType::complex64));
  std::string text = read_file(path);
  const std::string shape = "(1, 1, 1)";
  text.replace(text.find(shape), shape.size() + 9, "(8, 4096, 4096), }");
  write_file(path, text.substr(0, 128));
  std::filesystem::resize_file(path, 128 + (index_t{1} << 30));
  const auto cut_when_mapped = [&](int process) {
    const std::string maps = "/proc/" + std::to_string(process) + "/maps";
    for (int i = 0; i < 20000 && read_file(maps).find("k.npy") == std::string::npos; ++i) {
      usleep(500);
    }
    std::filesystem::resize_file(path, 128);
  };
  const CommandResult result =
      run_command({"recon", path, "--save", dir / "x.npy"}, {.meanwhile = cut_when_mapped});
  EXPECT_EQ(result.code, 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("a mapped file became shorter while it was read"));
  EXPECT_EQ(dir.names(), std::vector<std::string>{"k.npy"});
}

TEST_F(WrongInput, OutputDirectoriesThatAreMissingOrReadOnly) {
  write_npy(dir / "k.npy", random_kspace({4, 32, 32}));
  expect_refused({"recon", dir / "k.npy", "-o", dir / "none/x.png"}, 2, "there is no directory");
  expect_refused({"recon", dir / "k.npy", "-o", dir.path()}, 2, "is a directory");
  expect_refused({"recon", dir / "k.npy", "-o", dir / "x.tif"}, 2, "x.png");
  expect_refused({"recon", dir / "k.npy", "-o", picture(), "--report", picture()}, 2, ".json");
  expect_refused({"recon", dir / "k.npy", "--save", dir / "a.npy", "--save-maps", dir / "a.npy"}, 2,
                 "two outputs are the same file");
  chmod(dir.path().c_str(), 0555);
  for (const auto& [option, name] : std::vector<std::pair<std::string, std::string>>{
           {"-o", "x.png"}, {"--save", "x.npy"}, {"--report", "x.json"}}) {
    expect_refused({"recon", dir / "k.npy", option, dir / name}, 1, "cannot be written",
                   {.obeys_permissions = true});
  }
  expect_refused({"simulate", dir / "x.h5"}, 1, "cannot be written", {.obeys_permissions = true});
}

TEST_F(WrongInput, AFullDiskLeavesNothingBehind) {
  make_scan();
  const std::vector<std::string> base = {"recon", dir / "scan.h5", "--iterations", "2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return more;
  };
  // The picture fits, the array does not: neither may stay.
  expect_refused(with({"-o", picture(), "--save", dir / "x.npy"}), 1, "x.npy",
                 {.largest_file_bytes = 4096});
  expect_refused(with({"--save", "/dev/full"}), 1, "/dev/full");
  expect_refused(with({"-o", "/dev/full"}), 1, "/dev/full");
  expect_refused(with({"--report", "/dev/full"}), 1, "/dev/full");
  expect_refused({"simulate", dir / "y.h5", "--size", "32", "--center", "12"}, 1, "y.h5",
                 {.largest_file_bytes = 4096});
  // Scratch files of a small budget.
  const std::string advice = run_command(with({"--memory", "1", "--json"})).err;
  const std::string least = advice.substr(advice.find("Try --memory ") + 13);
  expect_refused(with({"--memory", least.substr(0, least.find_first_not_of("0123456789")),
                       "--scratch", dir.path(), "--json"}),
                 1, "[scratch] a file in", {.largest_file_bytes = 4096});
}

TEST_F(WrongInput, AFailedRunKeepsTheOldFile) {
  make_scan();
  write_file(dir / "x.npy", "old");
  expect_refused({"recon", dir / "scan.h5", "--iterations", "2", "--save", dir / "x.npy"}, 1,
                 "x.npy", {.largest_file_bytes = 4096});
  EXPECT_EQ(read_file(dir / "x.npy"), "old");
}

TEST_F(WrongInput, ComparedImagesMustFit) {
  write_npy(dir / "a.npy", Tensor::ones({8, 8}));
  write_npy(dir / "b.npy", Tensor::ones({8, 9}));
  write_npy(dir / "c.npy", Tensor::ones({8}));
  expect_refused({"compare", dir / "a.npy", dir / "b.npy", "-o", picture()}, 2, "differ in shape");
  expect_refused({"compare", dir / "c.npy", dir / "c.npy"}, 2, "wrong rank");
  expect_refused({"compare", dir / "a.npy", dir / "a.npy", "--report", dir / "a.npy"}, 2,
                 "not a report of");
  expect_refused({"compare", dir / "a.npy", dir / "a.npy", "--label", "x", "--label", "y"}, 2,
                 "--label");
}

}  // namespace
}  // namespace palimpsest::cli
