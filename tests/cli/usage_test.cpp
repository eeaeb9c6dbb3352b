// SPDX-License-Identifier: Apache-2.0
// Help texts and version of the command, and its errors for wrong usage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ostream>

#include "cli/run_command.hpp"
#include "palimpsest/cli/command_line.hpp"

namespace palimpsest::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(NearestWord, FindsWhatWasMeant) {
  const std::vector<std::string> words = {"--iterations", "--lambda", "--maps", "--save-maps"};
  EXPECT_EQ(nearest_word("--iteration", words), "--iterations");
  EXPECT_EQ(nearest_word("--iter", words), "--iterations");
  EXPECT_EQ(nearest_word("--lamdba", words), "--lambda");
  EXPECT_EQ(nearest_word("--map", words), "--maps");
  EXPECT_EQ(nearest_word("--colour", words), "");
}

TEST(Usage, VersionAndHelpAreDone) {
  const CommandResult version = run_command({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out, "palimpsest " PALIMPSEST_VERSION "\n");
  const CommandResult help = run_command({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* command :
       {"recon", "simulate", "convert", "compare", "show", "info", "doctor"}) {
    EXPECT_THAT(help.out, HasSubstr(command));
    const CommandResult own = run_command({command, "--help"});
    EXPECT_EQ(own.code, 0);
    EXPECT_THAT(own.err, IsEmpty());
  }
  EXPECT_THAT(run_command({"recon", "--help"}).out, AllOf(HasSubstr("--lambda"), HasSubstr("30")));
}

TEST(Usage, OptionsMayStandBeforeArguments) {
  const ScratchDirectory dir;
  write_file(dir / "config.json", R"({"reg": ["l2:0.1", "l2:0.2"]})");
  for (const auto& words :
       {std::vector<std::string>{"recon", "--reg", "l2:0.1", dir / "none.h5", "-o", dir / "x.png"},
        {"recon", "--config", dir / "config.json", dir / "none.h5", "-o", dir / "x.png"}}) {
    EXPECT_THAT(run_command(words).err, HasSubstr("none.h5] cannot be read"));
  }
}

struct WrongUsage {
  std::vector<std::string> arguments;
  std::string text;
};
void PrintTo(const WrongUsage& usage, std::ostream* stream) {
  for (const std::string& word : usage.arguments) *stream << word << " ";
}

class WrongUsages : public ::testing::TestWithParam<WrongUsage> {};

TEST_P(WrongUsages, AreCode2AndOneOrTwoLines) {
  const CommandResult result = run_command(GetParam().arguments);
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, HasSubstr(GetParam().text));
  EXPECT_THAT(result.err, AllOf(HasSubstr("palimpsest"), HasSubstr("Try ")));
  EXPECT_GE(result.error_lines(), 1);
  EXPECT_LE(result.error_lines(), 2);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, WrongUsages,
    ::testing::Values(
        WrongUsage{{}, "which command"},
        WrongUsage{{"recno"}, "unknown command 'recno'. Try 'recon'"},
        WrongUsage{
            {"pics", "-R", "W:7:0:0.01", "ksp", "maps", "out"},
            "palimpsest: unknown command 'pics'. Try palimpsest --help, or palimpsest help bart"},
        WrongUsage{{"--verion"}, "unknown option '--verion'. Try '--version'"},
        WrongUsage{{"recon"}, "INPUT"},
        WrongUsage{{"recon", "in.npy", "-o", "x.png", "--iteration", "3"},
                   "unknown option '--iteration'. Try '--iterations'"},
        WrongUsage{{"recon", "in.npy", "--lamda=1"}, "unknown option '--lamda'. Try '--lambda'"},
        WrongUsage{{"recon", "a.npy", "b.npy", "-o", "x.png"}, "too many arguments: got 'b.npy'"},
        WrongUsage{{"recon", "in.npy", "-o", "x.png", "--method", "cgsense"}, "Try 'cg-sense'"},
        WrongUsage{{"recon", "in.npy", "-o", "x.png", "--iterations", "many"}, "--iterations"},
        WrongUsage{{"recon", "in.npy", "-o", "x.png", "--iterations", "0"}, "at least 1"},
        WrongUsage{{"recon", "in.npy", "-o", "x.png", "--lambda", "-1"}, "at least 0"},
        WrongUsage{{"recon", "in.npy", "-o", "x.png", "--lambda", "nan"},
                   "--lambda: got 'nan', expected a number"},
        WrongUsage{{"recon", "in.npy", "-o", "x.png", "--tolerance", "1e400"},
                   "--tolerance: got '1e400', expected a number"},
        WrongUsage{{"recon", "in.npy", "-o", "x.png", "--iterations", "99999999999999999999"},
                   "--iterations: got '99999999999999999999', expected a whole number"},
        WrongUsage{{"recon", "in.npy", "-o", "x.png", "--slice", "1.5"},
                   "--slice: got '1.5', expected a whole number"},
        WrongUsage{{"recon", "in.npy", "-o", "x.png", "--iterations", "9999999999"},
                   "[--iterations] got 9999999999, expected 1 to 1000000000"},
        WrongUsage{{"recon", "in.npy", "-o", "x.png", "--save", ""},
                   "--save: got an empty text, expected a value"},
        WrongUsage{{"recon", "", "-o", "x.png"}, "INPUT: got an empty text"},
        WrongUsage{{"recon", "in.npy", "-o", "x.png", "--lambda", "1", "--lambda", "2"},
                   "[--lambda] is given several times, expected once"},
        WrongUsage{{"recon", "in.npy", "-o", "x.png", "--resume", "."},
                   "[--resume] . cannot be read, expected a checkpoint"},
        WrongUsage{{"convert", "in.npy", "x.nii", "--columns", "-1"}, "[--columns] got -1"},
        WrongUsage{{"pattern", "x.npy", "--frames", "99999999999"}, "[--frames] got 99999999999"},
        WrongUsage{{"simulate", "x.h5", "--acceleration", "1e9", "--center", "0"},
                   "[--acceleration] 1000000000 leaves no samples"},
        WrongUsage{{"nufft", "in.npy", "x.npy", "--inverse", "--lambda", "-1"},
                   "[--lambda] got -1"},
        WrongUsage{{"recon", "in.npy", "-o", "x.png", "--bits", "12"}, "8 or 16"},
        WrongUsage{{"recon", "in.npy"}, "no output is named"},
        WrongUsage{{"plan", "in.npy", "--ranks", "0"}, "[--ranks] got 0"},
        WrongUsage{{"plan", "in.npy", "--place", "Q=2"}, "[--place] got 'Q=2'"},
        WrongUsage{{"plan", "in.npy", "--place", "C=x"}, "expected a number of at least 1"},
        WrongUsage{{"plan", "in.npy", "--ranks", "4", "--place", "C=3"},
                   "expected 4, those of --ranks"},
        WrongUsage{{"recon", "in.npy", "-o", "x.png", "--place", "C=2"}, "those of the run"},
        WrongUsage{{"simulate"}, "OUTPUT.h5"},
        WrongUsage{{"simulate", "x.h5", "--pattern", "poison"}, "Try 'poisson'"},
        WrongUsage{{"simulate", "x.h5", "--coils", "0"}, "--coils"},
        WrongUsage{{"simulate", "x.h5", "--noise", "-1"}, "--noise"},
        WrongUsage{{"simulate", "x.h5", "--size", "100000"}, "--size"},
        WrongUsage{{"simulate", "x.png"}, "x.h5"}, WrongUsage{{"doctor", "--jsno"}, "'--json'"}));

TEST(Usage, DoctorKnowsThisMachine) {
  const CommandResult result = run_command({"doctor"});
  EXPECT_EQ(result.code, 0);
  for (const char* text : {"threads", "SIMD", "OpenBLAS", "cpu:0", PALIMPSEST_VERSION}) {
    EXPECT_THAT(result.out, HasSubstr(text));
  }
  EXPECT_THAT(run_command({"doctor", "--json"}).out, HasSubstr("\"SIMD target\": "));
}

void set_variable(const char* name, const char* value) {
  if (value != nullptr) {
    setenv(name, value, 1);
  } else {
    unsetenv(name);
  }
}

// Runs doctor with one variable of the environment; null: unset. It is as before afterwards.
std::string doctor_with(const char* name, const char* value) {
  const char* const before = std::getenv(name);
  const std::string kept = before != nullptr ? before : "";
  set_variable(name, value);
  const std::string text = run_command({"doctor"}).out;
  set_variable(name, before != nullptr ? kept.c_str() : nullptr);
  return text;
}

TEST(Usage, DoctorSaysWhatTheEnvironmentChanges) {
  EXPECT_THAT(doctor_with("PALIMPSEST_LOG", "error"), HasSubstr("PALIMPSEST_LOG=error"));
  EXPECT_THAT(doctor_with("PALIMPSEST_LOG", nullptr), Not(HasSubstr("PALIMPSEST_LOG")));
}

TEST(Usage, DoctorSaysWhoChoseTheKernelsOfBlas) {
  EXPECT_THAT(doctor_with("OPENBLAS_CORETYPE", nullptr),
              AllOf(HasSubstr("products checked"), Not(HasSubstr("OPENBLAS_CORETYPE"))));
  EXPECT_THAT(doctor_with("OPENBLAS_CORETYPE", "Nehalem"),
              HasSubstr("kernels for Nehalem, chosen by OPENBLAS_CORETYPE, products checked"));
}

}  // namespace
}  // namespace palimpsest::cli
