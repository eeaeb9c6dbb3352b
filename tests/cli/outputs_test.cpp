// SPDX-License-Identifier: Apache-2.0
// Files and standard output of a run: no input is overwritten, all appear or none, and failure to
// write is exit code 1.
#include "palimpsest/cli/outputs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <complex>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/run_command.hpp"
#include "palimpsest/cli/failure.hpp"
#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/npy.hpp"

namespace palimpsest::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

class OutputFiles : public ::testing::Test {
 protected:
  // Refused before anything is written: code 2, the text, every file as it was.
  void expect_refused(const std::vector<std::string>& arguments, const std::string& text,
                      const RunOptions& options = {}, int code = 2) {
    const std::vector<std::string> names = dir.names();
    std::vector<std::string> contents;
    for (const std::string& name : names) contents.push_back(read_file(dir / name));
    const CommandResult result = run_command(arguments, options);
    const std::string words = ::testing::PrintToString(arguments);
    EXPECT_EQ(result.code, code) << words << "\n" << result.err << result.out;
    EXPECT_THAT(result.err, HasSubstr(text)) << words;
    ASSERT_EQ(dir.names(), names) << words;
    for (std::size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(read_file(dir / names[i]), contents[i]) << words << " " << names[i];
    }
  }
  void write_kspace(const std::string& name) {
    write_npy(dir / name, Tensor::random_normal({4, 32, 32}, DType::complex64, {1, 2}));
  }
  ScratchDirectory dir;
};

TEST_F(OutputFiles, AnOutputThatIsAnInputIsRefusedInEveryCommand) {
  write_kspace("k.npy");
  write_kspace("maps.npy");
  fs::create_symlink("k.npy", dir / "link.npy");
  fs::create_symlink(".", dir / "folder");
  fs::create_hard_link(dir / "k.npy", dir / "hard.npy");
  for (const char* name : {"k.npy", "link.npy", "hard.npy", "folder/k.npy", "./k.npy"}) {
    expect_refused({"recon", dir / "k.npy", "--save", dir / name}, "the input");
    expect_refused({"recon", dir / name, "--save", dir / "k.npy"}, "the input");
    expect_refused({"recon", dir / "k.npy", "--maps", dir / "maps.npy", "--memory", "1G", "--save",
                    dir / name},
                   "the input");
    expect_refused({"simulate", dir / "x.h5", "--image", dir / "k.npy", "--reference", dir / name},
                   "the input");
  }
  expect_refused(
      {"recon", dir / "k.npy", "--maps", dir / "maps.npy", "--save-maps", dir / "maps.npy"},
      "the input");
  // Contents decide formats of inputs, so that an image may have any name.
  fs::copy(dir / "k.npy", dir / "image.png");
  expect_refused({"compare", dir / "image.png", dir / "k.npy", "-o", dir / "image.png"},
                 "the input");
  expect_refused({"compare", dir / "k.npy", dir / "image.png", "-o", dir / "image.png"},
                 "the input");
  fs::copy(dir / "k.npy", dir / "report.png");
  expect_refused({"compare", dir / "k.npy", dir / "k.npy", "--report", dir / "report.png", "-o",
                  dir / "report.png"},
                 "the input");
}

TEST_F(OutputFiles, ACheckpointIsAnOutput) {
  write_kspace("k.npy");
  write_kspace("maps.npy");
  const std::vector<std::string> base = {"recon",  dir / "k.npy", "--maps",   dir / "maps.npy",
                                         "--save", dir / "x.npy", "--report", dir / "r.json"};
  const auto with = [&](const std::string& checkpoint) {
    std::vector<std::string> words = base;
    words.insert(words.end(), {"--checkpoint", checkpoint});
    return words;
  };
  expect_refused(with(dir / "k.npy"), "the input");
  expect_refused(with(dir / "maps.npy"), "the input");
  expect_refused(with(dir / "x.npy"), "two outputs are the same file");
  expect_refused(with(dir / "r.json"), "two outputs are the same file");
  expect_refused(with(dir / "none/r.ck"), "there is no directory");
  expect_refused(with(dir.path()), "is a directory");
  std::vector<std::string> words = base;
  words.insert(words.end(), {"--resume", dir / "none.ck"});
  expect_refused(words, "none.ck");
  // A run goes on in its own checkpoint, and in no other input.
  words = with(dir / "r.ck");
  words.insert(words.end(), {"--tolerance", "0", "--iterations", "3"});
  EXPECT_EQ(run_command(words).code, 0);
  words.back() = "6";
  words.insert(words.end(), {"--resume", dir / "r.ck"});
  EXPECT_EQ(run_command(words).code, 0);
  words = base;
  words.insert(words.end(), {"--resume", dir / "r.ck", "--checkpoint", dir / "k.npy"});
  expect_refused(words, "the input");
}

TEST_F(OutputFiles, BothFilesOfACflAreInputs) {
  write_cfl(dir / "k", Tensor::random_normal({4, 8, 8}, DType::complex64, {1, 2}));
  fs::create_hard_link(dir / "k.hdr", dir / "k.png");
  for (const char* name : {"k", "k.cfl", "k.hdr"}) {
    expect_refused({"recon", dir / name, "-o", dir / "k.png"}, "the input");
  }
}

TEST_F(OutputFiles, StandardOutputIsAnOutputToo) {
  write_kspace("k.npy");
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"info", dir / "k.npy"},
                                                    {"recon", dir / "k.npy", "--json"},
                                                    {"compare", dir / "k.npy", dir / "k.npy"}}) {
    expect_refused(arguments, "would be overwritten by standard output",
                   {.standard_output = dir / "k.npy"});
  }
  write_file(dir / "x.npy", "");
  expect_refused({"recon", dir / "k.npy", "--save", dir / "x.npy"}, "two outputs are the same file",
                 {.standard_output = dir / "x.npy"});
}

TEST_F(OutputFiles, TwoNamesOfOneFileAreOneOutput) {
  write_kspace("k.npy");
  write_file(dir / "a.npy", "a");
  fs::create_symlink("a.npy", dir / "b.npy");
  fs::create_symlink("none.npy", dir / "c.npy");
  expect_refused({"recon", dir / "k.npy", "--save", dir / "a.npy", "--save-maps", dir / "b.npy"},
                 "two outputs are the same file");
  expect_refused({"recon", dir / "k.npy", "--save", dir / "none.npy", "--save-maps", dir / "c.npy"},
                 "two outputs are the same file");
}

TEST_F(OutputFiles, TheEndingOfANameIsItsFormat) {
  write_kspace("k.npy");
  for (const char* name : {"x.jpg", "x", "x.png.gz", ".png", "png"}) {
    expect_refused({"recon", dir / "k.npy", "-o", dir / name}, "expected '.png', '.nii'");
  }
  for (const char* name : {"x", "x.png"}) {
    expect_refused({"recon", dir / "k.npy", "--save", dir / name}, "expected '.nii', '.nii.gz'");
  }
  for (const char* name : {"x", "x.nii", "x.png"}) {
    expect_refused({"recon", dir / "k.npy", "--save-maps", dir / name}, "expected '.npy'");
  }
  expect_refused({"recon", dir / "k.npy", "--html", dir / "x.htm"}, "expected '.html'");
  expect_refused({"recon", dir / "k.npy", "--report", dir / "x.txt"}, "expected '.json'");
  expect_refused({"recon", dir / "k.npy", "--plan", dir / "x.pdf"}, ".svg, .json or .txt");
  expect_refused({"simulate", dir / "x.dat"}, "expected '.h5'");
  expect_refused({"simulate", dir / "x.h5", "--reference", dir / "x"}, "expected '.npy'");
  expect_refused({"compare", dir / "k.npy", dir / "k.npy", "-o", dir / "x.jpeg"},
                 "expected '.png'");
  EXPECT_EQ(run_command({"recon", dir / "k.npy", "-o", dir / "X.PNG"}).code, 0);
  EXPECT_EQ(read_file(dir / "X.PNG").substr(1, 3), "PNG");
}

TEST_F(OutputFiles, LinksAreFollowedAlsoToWhatIsNotThereYet) {
  write_kspace("k.npy");
  fs::create_directory(dir / "folder");
  fs::create_symlink("folder/image.npy", dir / "link.npy");
  fs::create_symlink("link.npy", dir / "link2.npy");
  for (int i = 0; i < 2; ++i) {
    const CommandResult result = run_command({"recon", dir / "k.npy", "--save", dir / "link2.npy"});
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_TRUE(fs::is_symlink(dir / "link.npy") && fs::is_symlink(dir / "link2.npy"));
    EXPECT_EQ(read_npy(dir / "folder/image.npy").shape(), (Extents{32, 32}));
  }
  fs::create_symlink("nowhere/image.npy", dir / "bad.npy");
  expect_refused({"recon", dir / "k.npy", "--save", dir / "bad.npy"}, "there is no directory");
  fs::create_symlink("circle.npy", dir / "circle.npy");
  expect_refused({"recon", dir / "k.npy", "--save", dir / "circle.npy"}, "circle.npy", {}, 1);
}

TEST_F(OutputFiles, NamesMayBeAsLongAsTheSystemAllows) {
  write_kspace("k.npy");
  for (const std::size_t length : {250U, 255U}) {
    const std::string name = std::string(length - 4, 'n') + ".npy";
    const CommandResult result = run_command({"recon", dir / "k.npy", "--save", dir / name});
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_TRUE(fs::exists(dir / name));
  }
  const std::string name = std::string(252, 'n') + ".npy";
  expect_refused({"recon", dir / "k.npy", "--save", dir / name}, "the name is too long: got 256");
}

TEST_F(OutputFiles, AFileThatIsReadOnlyStays) {
  write_kspace("k.npy");
  write_file(dir / "x.npy", "old");
  chmod((dir / "x.npy").c_str(), 0444);
  expect_refused({"recon", dir / "k.npy", "--save", dir / "x.npy"}, "cannot be written",
                 {.obeys_permissions = true}, 1);
}

TEST_F(OutputFiles, AFullDiskBehindStandardOutputIsCode1AndLeavesNoFile) {
  ASSERT_EQ(run_command({"simulate", dir / "s.h5", "--size", "64", "--coils", "4"}).code, 0);
  ASSERT_EQ(
      run_command({"recon", dir / "s.h5", "--save", dir / "x.npy", "--save-maps", dir / "m.npy"})
          .code,
      0);
  for (const std::string output : {"/dev/full", "closed"}) {
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"--version"},
          {"--help"},
          {"recon", "--help"},
          {"info", dir / "x.npy"},
          {"info", dir / "x.npy", "--json"},
          {"doctor"},
          {"doctor", "--json"},
          {"plan", dir / "s.h5", "--maps", dir / "m.npy"},
          {"plan", dir / "s.h5", "--maps", dir / "m.npy", "--json"},
          {"compare", dir / "x.npy", dir / "x.npy", "-o", dir / "new.png"},
          {"compare", dir / "x.npy", dir / "x.npy", "--json"},
          {"simulate", dir / "new.h5", "--size", "64"},
          {"simulate", dir / "new.h5", "--size", "64", "--json"},
          {"recon", dir / "s.h5", "--iterations", "2", "--save", dir / "new.npy"},
          {"recon", dir / "s.h5", "--iterations", "2", "--json"},
          {"recon", dir / "s.h5", "--maps", dir / "m.npy", "--memory", "1G", "--save",
           dir / "new.npy"}}) {
      expect_refused(arguments, "[standard output] cannot be written", {.standard_output = output},
                     1);
    }
  }
}

TEST_F(OutputFiles, TooManyOpenFilesIsSaid) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer opens files of its own";
#endif
  ASSERT_EQ(run_command({"simulate", dir / "s.h5", "--size", "64"}).code, 0);
  for (const index_t n : {4, 5, 6, 7, 8}) {
    const CommandResult result = run_command({"info", dir / "s.h5"}, {.most_open_files = n});
    if (result.code == 0) continue;
    // If a library file cannot be opened, the message comes from the loader and gives a number.
    EXPECT_THAT(result.err, AnyOf(HasSubstr("Too many open files"), HasSubstr("Error 24"))) << n;
    EXPECT_THAT(result.err, Not(HasSubstr("damaged"))) << n;
  }
  EXPECT_NE(run_command({"info", dir / "s.h5"}, {.most_open_files = 6}).code, 0);
}

TEST_F(OutputFiles, NamesThatAreNotUtf8GiveValidJson) {
  const std::string name = "k\xff\xc3(\xe2\x82\xac\xed\xa0\x80.npy";
  write_kspace(name);
  const CommandResult result = run_command({"info", dir / name, "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const auto report = nlohmann::json::parse(result.out);
  EXPECT_THAT(report.at("file").get<std::string>(),
              HasSubstr("k\\xff\\xc3(\xe2\x82\xac\\xed\\xa0\\x80.npy"));
}

TEST_F(OutputFiles, WordsAfterTwoDashesAreArguments) {
  write_kspace("-x.npy");
  const std::string before = fs::current_path();
  fs::current_path(dir.path());
  const CommandResult result = run_command({"info", "--json", "--", "-x.npy"});
  const CommandResult more = run_command({"info", "--", "-x.npy", "-y.npy"});
  fs::current_path(before);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("(4, 32, 32)"));
  EXPECT_EQ(more.code, 2);
}

// -- the class itself -----------------------------------------------------------------------------

TEST(Outputs, AllOfThemAppearOrNone) {
  const ScratchDirectory dir;
  write_file(dir / "a.npy", "old a");
  chmod((dir / "a.npy").c_str(), 0640);
  const auto write_all = [&](Outputs& outputs) {
    for (const char* name : {"a.npy", "b.npy", "c.npy"}) {
      outputs.announce(dir / name, ".npy");
      outputs.write(dir / name, [&](const std::string& path) { write_file(path, "new"); });
    }
  };
  {
    Outputs outputs;
    write_all(outputs);
    // The third file can no longer get its name.
    fs::create_directory(dir / "c.npy");
    EXPECT_THROW(outputs.commit(), IoError);
  }
  EXPECT_EQ(read_file(dir / "a.npy"), "old a");
  EXPECT_THAT(dir.names(), ElementsAre("a.npy", "c.npy"));
  fs::remove(dir / "c.npy");
  Outputs outputs;
  write_all(outputs);
  outputs.commit();
  EXPECT_THAT(dir.names(), ElementsAre("a.npy", "b.npy", "c.npy"));
  EXPECT_EQ(read_file(dir / "a.npy"), "new");
  EXPECT_EQ(fs::status(dir / "a.npy").permissions(), fs::perms(0640));
}

TEST(Outputs, InputsMayBeNamedAfterOutputs) {
  const ScratchDirectory dir;
  write_file(dir / "a.npy", "a");
  Outputs outputs;
  outputs.announce(dir / "a.npy", ".npy");
  EXPECT_THROW(outputs.reads(dir / "a.npy"), UsageError);
  EXPECT_NO_THROW(outputs.reads(""));
  EXPECT_NO_THROW(outputs.reads(dir / "none.npy"));
}

}  // namespace
}  // namespace palimpsest::cli
