// SPDX-License-Identifier: Apache-2.0
// Every option, and every pair of options, of every command: honoured, or refused by name.
//
// The options come from the command line's own definition; the table below has a value for each of
// them. An option counts as honoured if it changes the printed or written output of a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <regex>
#include <set>

#include "cli/option_samples.hpp"
#include "palimpsest/cli/command_line.hpp"
#include "palimpsest/cli/commands.hpp"
#include "palimpsest/imaging/forward_model.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "palimpsest/io/cartesian.hpp"
#include "palimpsest/io/ismrmrd.hpp"
#include "palimpsest/io/npy.hpp"
#include "support/long_run.hpp"

namespace palimpsest::cli {
namespace {

struct Outcome {
  int code = 0;
  std::string text;  // all printed and written text
  std::string error;
};

// Seconds and measured bytes differ from run to run.
std::string without_measurements(const std::string& text) {
  static const std::regex measured(
      R"re([^\n]*(seconds|"(read|sensitivities|solve|write|measured[a-z_]*|process[a-z_]*)")[^\n]*\n|)re"
      R"(measured [0-9,]+ bytes[^\n]*|[^\n]*>peak, measured<[^\n]*|[^\n]*>peak of the process<[^\n]*|)"
      R"(bytes, [0-9.]+ s<)");
  return std::regex_replace(text, measured, "");
}

class OptionPairs : public ::testing::Test {
 protected:
  OptionPairs() { make_inputs(); }

  void make_inputs();
  CommandSamples plan_samples() const;
  CommandSamples recon_samples() const;
  std::vector<CommandSamples> samples() const;

  Outcome run(const CommandSamples& command, const std::vector<std::string>& words) {
    std::vector<std::string> arguments = {command.name};
    const auto* special = &command.arguments;
    for (const std::string& word : words) {
      const auto it = command.options.find(word);
      if (it != command.options.end() && !it->second.arguments.empty()) {
        special = &it->second.arguments;
      }
    }
    arguments.insert(arguments.end(), special->begin(), special->end());
    arguments.insert(arguments.end(), words.begin(), words.end());
    for (const Usual& usual : command.usual) {
      if (usual.is_of_arguments && special != &command.arguments) continue;
      const auto is_given = [&](const std::string& option) {
        return std::find(words.begin(), words.end(), option) != words.end();
      };
      if (std::any_of(usual.unless.begin(), usual.unless.end(), is_given)) continue;
      arguments.insert(arguments.end(), usual.words.begin(), usual.words.end());
    }
    const CommandResult result = run_command(arguments);
    Outcome outcome{result.code, without_measurements(result.out + result.err), result.err};
    for (const std::string& name : dir.names()) {
      if (inputs_.contains(name)) continue;
      const std::string content = read_file(dir / name);
      const bool is_report = name.ends_with(".json") || name.ends_with(".html");
      outcome.text += name + ":" + (is_report ? without_measurements(content) : content);
      std::remove((dir / name).c_str());
    }
    return outcome;
  }

  // The words of some options and of the options that they need.
  static std::vector<std::string> words_of(const CommandSamples& command,
                                           const std::vector<std::string>& options,
                                           const std::vector<std::string>& needs_of) {
    std::vector<std::string> words;
    const auto add = [&words](const std::vector<std::string>& more) {
      if (!more.empty() && std::find(words.begin(), words.end(), more.front()) == words.end()) {
        words.insert(words.end(), more.begin(), more.end());
      }
    };
    for (const std::string& option : options) add(command.options.at(option).words);
    for (const std::string& option : needs_of) add(command.options.at(option).also);
    return words;
  }

  void expect_honoured_or_refused(const CommandSamples& command, const std::string& a,
                                  const std::string& b) {
    SCOPED_TRACE(command.name + " " + a + " " + b);
    const std::vector<std::string> given = words_of(command, {a, b}, {a, b});
    const Outcome both = run(command, given);
    // With --strict the two iterations of a run, which do not converge, are the exit code.
    if (both.code != 0 && both.code != kNotConverged) {
      EXPECT_EQ(both.code, 2) << both.error;
      // The message names one of the two, or an option that they need.
      EXPECT_TRUE(std::any_of(given.begin(), given.end(), [&](const std::string& word) {
        return word.starts_with("--") && both.error.find(word) != std::string::npos;
      })) << both.error;
      return;
    }
    for (const auto& [kept, left] : {std::pair(a, b), std::pair(b, a)}) {
      if (command.subsumed.contains({kept, left}) || command.invisible.contains(left)) continue;
      const std::vector<std::string> words = words_of(command, {kept}, {a, b});
      // An option that the other one needs is honoured as a separate option.
      if (std::find(words.begin(), words.end(), left) != words.end()) continue;
      const Outcome alone = run(command, words);
      // If the rest alone is refused, the option made the run possible.
      EXPECT_TRUE(alone.code != 0 || alone.text != both.text) << left << " is ignored";
    }
  }

  ScratchDirectory dir;
  std::set<std::string> inputs_;
  std::vector<CommandSamples> step_samples_;
};

TEST_F(OptionPairs, EveryOptionHasASample) {
  CommandLine line("palimpsest", "", "");
  add_commands(line);
  // All figures of `bench` are measured; the others print texts.
  std::vector<std::string> names = {"bench", "completion", "help"};
  for (const CommandSamples& command : samples()) {
    names.push_back(command.name);
    std::set<std::string> known, defined;
    for (const auto& [name, sample] : command.options) {
      known.insert(name);
      EXPECT_TRUE(sample.words.front() == name) << name;
    }
    for (const OptionFacts& option : line.options(command.name)) defined.insert(option.name);
    EXPECT_EQ(known, defined) << command.name;
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAreArray(line.commands()));
}

TEST_F(OptionPairs, EveryOptionIsHonoured) {
  for (const CommandSamples& command : samples()) {
    for (const auto& [name, sample] : command.options) {
      const Outcome with = run(command, words_of(command, {name}, {name}));
      const Outcome without = run(command, words_of(command, {}, {name}));
      const bool is_strict = name == "--strict";  // two iterations do not converge
      EXPECT_EQ(with.code, is_strict ? kNotConverged : 0) << command.name << " " << name << "\n"
                                                          << with.error;
      if (command.invisible.contains(name)) continue;
      EXPECT_TRUE(without.code != 0 || with.text != without.text)
          << command.name << " " << name << " is ignored";
      if (sample.also.empty()) continue;
      // Without the options that it needs it is refused, or honoured nevertheless.
      const Outcome bare = run(command, sample.words);
      if (bare.code != 0) {
        EXPECT_EQ(bare.code, 2) << bare.error;
        EXPECT_THAT(bare.error, ::testing::HasSubstr(name)) << command.name;
      } else {
        EXPECT_NE(bare.text, run(command, {}).text) << command.name << " " << name;
      }
    }
  }
}

// Every 16th pair, of commands for single steps every 48th; all of them in a long run.
TEST_F(OptionPairs, EveryPairIsHonouredOrRefusedByName) {
  std::size_t number = 0;
  for (const CommandSamples& command : samples()) {
    const std::size_t step = testing::length_factor() > 1 ? 1 : command.common.empty() ? 16 : 48;
    for (auto a = command.options.begin(); a != command.options.end(); ++a) {
      for (auto b = std::next(a); b != command.options.end(); ++b) {
        // Options that all of these commands share have the same code.
        const bool are_common =
            command.common.contains(a->first) && command.common.contains(b->first);
        if (are_common && command.name != "fft") continue;
        if (number++ % step == 0) expect_honoured_or_refused(command, a->first, b->first);
      }
    }
  }
  EXPECT_GT(number, 100U);
}

// Each value of an option with choices, beside each other option: every third, all in a long run.
TEST_F(OptionPairs, EveryChoiceHonoursOrRefusesTheOtherOptions) {
  CommandLine line("palimpsest", "", "");
  add_commands(line);
  const std::size_t step = testing::length_factor() > 1 ? 1 : 3;
  std::size_t number = 0;
  for (const CommandSamples& command : step_samples_) {
    if (command.common.empty()) continue;
    for (const OptionFacts& option : line.options(command.name)) {
      for (const std::string& word : option.choices) {
        const Outcome base = run(command, {option.name, word});
        if (base.code != 0) {
          // It needs another option.
          EXPECT_THAT(base.error, ::testing::HasSubstr("[" + option.name + "]"));
          continue;
        }
        for (const auto& [other, sample] : command.options) {
          if (other == option.name || command.common.contains(other)) continue;
          if (number++ % step != 0) continue;
          SCOPED_TRACE(command.name + " " + option.name + " " + word + " " + other);
          std::vector<std::string> words = {option.name, word};
          words.insert(words.end(), sample.words.begin(), sample.words.end());
          const Outcome both = run(command, words);
          if (both.code == 0) {
            EXPECT_NE(both.text, base.text) << other << " is ignored";
          } else {
            EXPECT_EQ(both.code, 2) << both.error;
            const auto is_named = [&](const std::string& w) {
              return w.starts_with("--") && both.error.find(w) != std::string::npos;
            };
            EXPECT_TRUE(std::any_of(sample.words.begin(), sample.words.end(), is_named))
                << both.error;
          }
        }
      }
    }
  }
  EXPECT_GT(number, 100U);
}

// Two of every counter, each with its own image, and readouts of noise.
RawScan several_images(const RawScan& one) {
  RawScan scan;
  scan.header = one.header;
  const std::vector<std::complex<float>> samples = one.samples.to_vector<std::complex<float>>();
  std::vector<std::complex<float>> all;
  for (int number = 0; number < 32; ++number) {
    const Tensor noise = Tensor::random_normal(one.samples.shape(), DType::complex64,
                                               {5, static_cast<std::uint64_t>(number)});
    const auto factor = static_cast<float>(1 + number);
    for (Readout readout : one.readouts) {
      const bool is_in_center = readout.step_1 >= 8 && readout.step_1 < 24;
      if (readout.step_1 % 2 == 1 && !is_in_center) continue;
      readout.slice = number & 1;
      readout.contrast = number >> 1 & 1;
      readout.phase = number >> 2 & 1;
      readout.set = number >> 3 & 1;
      readout.repetition = number >> 4;
      readout.first_sample += std::ssize(all);
      scan.readouts.push_back(readout);
    }
    const auto added = noise.to_vector<std::complex<float>>();
    for (std::size_t i = 0; i < samples.size(); ++i) {
      all.push_back(factor * samples[i] + 1e-3F * added[i]);
    }
  }
  scan.samples = Tensor::from(all);
  add_noise_readout(scan, Tensor::random_normal({one.header.n_coils, 64}, DType::complex64, {6}));
  return scan;
}

// Scans, k-space, maps and images.
void OptionPairs::make_inputs() {
  const auto make = [&](const std::vector<std::string>& words) {
    const CommandResult result = run_command(words);
    ASSERT_EQ(result.code, 0) << result.err;
  };
  make({"simulate", dir / "one.h5", "--size", "32", "--coils", "4", "--reference",
        dir / "image.npy", "--save-maps", dir / "maps.npy", "--save-kspace", dir / "k.npy",
        "--pattern", "full"});
  write_ismrmrd(dir / "several.h5", several_images(read_ismrmrd(dir / "one.h5")));
  make({"recon", dir / "one.h5", "--iterations", "2", "--save", dir / "other.npy", "--report",
        dir / "report.json"});
  make({"recon", dir / "several.h5", "--slice", "0", "--contrast", "0", "--cardiac-phase", "0",
        "--set", "0", "--iterations", "1", "--save", dir / "start.npy", "--checkpoint",
        dir / "begun"});
  const Tensor trajectory = radial_trajectory({.spokes = 40, .samples = 64});
  const NamedLinop A = sense_model(read_npy(dir / "maps.npy"), {.trajectory = trajectory});
  write_npy(dir / "radial.npy", A(read_npy(dir / "image.npy").to(DType::complex64)).contiguous());
  write_npy(dir / "t.npy", trajectory);
  write_npy(dir / "w.npy", density_compensation(trajectory, DensityMethod::analytic));
  write_npy(dir / "phase.npy", Tensor::full<float>({32, 32}, 0.5F));
  write_file(dir / "config.json", "{\"lambda\": 0}");
  // Every second line is missing outside the centre: complete data would be solved in two
  // iterations.
  Tensor plane = read_npy(dir / "k.npy").clone().unsqueeze(1);
  for (index_t line = 1; line < 32; line += 2) {
    if (line < 8 || line >= 24) plane.narrow(2, line, 1).fill(0);
  }
  write_npy(dir / "series.npy", plane.unsqueeze(0).expand({2, 4, 1, 32, 32}).contiguous());
  write_npy(dir / "basis.npy", Tensor::ones({2, 1}, DType::float32));
  Tensor part = read_npy(dir / "k.npy").clone();
  part.narrow(1, 22, 10).fill(0);
  write_npy(dir / "partial.npy", part);
  write_npy(dir / "volume.npy", Tensor::random_normal({6, 32, 34}, DType::float32, {1}));
  step_samples_ = step_samples(dir);
  for (const std::string& name : dir.names()) inputs_.insert(name);
}

CommandSamples OptionPairs::plan_samples() const {
  const std::vector<std::string> trajectory = {"--trajectory", dir / "t.npy"};
  CommandSamples command{
      .name = "plan",
      .arguments = {dir / "several.h5"},
      .options = {{"--method", {{"--method", "adjoint"}}},
                  {"--iterations", {{"--iterations", "3"}}},
                  {"--tolerance", {{"--tolerance", "0.9"}}},
                  {"--maps", {{"--maps", dir / "maps.npy"}}},
                  {"--reg", {{"--reg", "tv:0.01"}}},
                  {"--sets", {{"--sets", "2"}}},
                  {"--scale", {{"--scale", "7"}, {"--reg", "tv:0.01"}}},
                  {"--compress", {{"--compress", "3"}}},
                  {"--partial", {{"--partial", "homodyne"}, {}, {dir / "partial.npy"}}},
                  {"--keep-scale", {{"--keep-scale"}}},
                  {"--trajectory", {trajectory, {}, {dir / "radial.npy"}}},
                  {"--weights", {{"--weights", dir / "w.npy"}, trajectory}},
                  {"--as", {{"--as", "T=repetition"}}},
                  {"--frames", {{"--frames", "20"}, trajectory}},
                  {"--basis", {{"--basis", dir / "basis.npy"}, {}, {dir / "series.npy"}}},
                  {"--start", {{"--start", dir / "start.npy"}}},
                  {"--lambda", {{"--lambda", "0"}}},
                  {"--memory", {{"--memory", "8M"}}},
                  {"--scratch", {{"--scratch", dir.path()}, {"--memory", "8M"}}},
                  {"--slice", {{"--slice", "1"}}},
                  {"--contrast", {{"--contrast", "1"}}},
                  {"--cardiac-phase", {{"--cardiac-phase", "1"}}},
                  {"--phase", {{"--phase", dir / "phase.npy"}}},
                  {"--set", {{"--set", "1"}}},
                  {"--repetition", {{"--repetition", "1"}}},
                  {"--prewhiten", {{"--prewhiten"}}},
                  {"--matrix", {{"--matrix", "40x36"}}},
                  {"--fov", {{"--fov", "24x28"}}},
                  {"--share-maps", {{"--share-maps"}}},
                  {"--report", {{"--report", dir / "r.json"}}},
                  {"--plan", {{"--plan", dir / "p.txt"}}},
                  {"--threads", {{"--threads", "2"}}},
                  {"--place", {{"--place", "C=1"}}},
                  {"--ranks", {{"--ranks", "2"}}},
                  {"--log", {{"--log", dir / "l.txt"}}},
                  {"--config", {{"--config", dir / "config.json"}}},
                  {"--quiet", {{"--quiet"}}},
                  {"--json", {{"--json"}}}},
      .usual = {{{"--slice", "0"}, {"--slice"}, true},
                {{"--contrast", "0"}, {"--contrast"}, true},
                {{"--cardiac-phase", "0"}, {"--cardiac-phase"}, true},
                {{"--set", "0"}, {"--set"}, true}},
      .invisible = {"--scratch", "--scale", "--keep-scale", "--threads", "--quiet", "--place",
                    "--iterations", "--tolerance", "--share-maps"}};
  // Both give the same number.
  command.subsumed.insert({"--lambda", "--config"});
  command.subsumed.insert({"--config", "--lambda"});
  // The choice of the image does not change its plan.
  for (const char* option : {"--slice", "--contrast", "--cardiac-phase", "--set"}) {
    command.invisible.insert(option);
  }
  return command;
}

CommandSamples OptionPairs::recon_samples() const {
  CommandSamples command = plan_samples();
  command.name = "recon";
  // Limits of time and resumed runs do not change the image. Lines of progress have times.
  command.invisible = {"--scratch",  "--memory",     "--time-limit", "--every",
                       "--resume",   "--threads",    "--place",      "--partial-on-interrupt",
                       "--progress", "--share-maps", "--strict"};
  command.options.erase("--ranks");
  command.options.insert(
      {{"--output", {{"--output", dir / "i.png"}}},
       {"--bits", {{"--bits", "16"}, {"--output", dir / "i.png"}}},
       {"--part", {{"--part", "phase"}, {"--output", dir / "i.png"}}},
       {"--columns", {{"--columns", "1"}, {"--output", dir / "i.png"}, {dir / "series.npy"}}},
       {"--html", {{"--html", dir / "i.html"}}},
       {"--save", {{"--save", dir / "i.npy"}}},
       {"--save-maps", {{"--save-maps", dir / "m.npy"}}},
       {"--time-limit", {{"--time-limit", "2h"}}},
       {"--seed", {{"--seed", "7"}, {"--reg", "l1wav:0.01"}}},
       {"--checkpoint", {{"--checkpoint", dir / "c"}}},
       {"--every", {{"--every", "1h"}, {"--checkpoint", dir / "c"}}},
       {"--resume", {{"--resume", dir / "begun"}}},
       {"--partial-on-interrupt", {{"--partial-on-interrupt"}}},
       {"--strict", {{"--strict"}}},
       {"--progress", {{"--progress", "json"}}},
       {"--dry-run", {{"--dry-run"}}}});
  command.usual.push_back({{"--save", dir / "usual.npy"}, {"--save"}});
  command.usual.push_back({{"--iterations", "2"}, {"--iterations", "--method"}});
  // A converged run needs no checkpoint.
  command.subsumed.insert({"--tolerance", "--checkpoint"});
  // The residual is small enough before the last iteration.
  command.subsumed.insert({"--tolerance", "--iterations"});
  // A report alone is printed.
  command.subsumed.insert({"--json", "--quiet"});
  // Two iterations with another term than l2 end before progress is looked at.
  for (const char* option : {"--reg", "--scale", "--seed"}) {
    command.subsumed.insert({option, "--tolerance"});
  }
  // A dry run reconstructs nothing.
  for (const char* option :
       {"--output", "--bits",       "--part",          "--columns",    "--html",
        "--save",   "--save-maps",  "--quiet",         "--iterations", "--tolerance",
        "--slice",  "--contrast",   "--cardiac-phase", "--set",        "--seed",
        "--phase",  "--checkpoint", "--scale",         "--keep-scale", "--progress"}) {
    command.subsumed.insert({"--dry-run", option});
  }
  return command;
}

std::vector<CommandSamples> OptionPairs::samples() const {
  const std::string image = dir / "volume.npy";
  const std::vector<std::string> of_image = {"--fake-kspace", "--image", dir / "image.npy"};
  std::vector<std::string> fake = of_image;
  fake.insert(fake.end(), {"--maps", dir / "maps.npy"});
  std::vector<CommandSamples> all = {recon_samples(), plan_samples()};
  all.push_back(
      {.name = "simulate",
       .arguments = {dir / "new.h5"},
       .options = {{"--image", {{"--image", image}}},
                   {"--axis", {{"--axis", "x"}, {"--image", image}}},
                   {"--slice", {{"--slice", "1"}, {"--image", image}}},
                   {"--size", {{"--size", "36"}}},
                   {"--coils", {{"--coils", "3"}}},
                   {"--pattern", {{"--pattern", "random"}}},
                   {"--acceleration", {{"--acceleration", "2"}}},
                   {"--center", {{"--center", "12"}}},
                   {"--noise", {{"--noise", "0.1"}}},
                   {"--seed", {{"--seed", "7"}}},
                   {"--reference", {{"--reference", dir / "r.npy"}}},
                   {"--save-maps", {{"--save-maps", dir / "m.npy"}}},
                   {"--save-kspace", {{"--save-kspace", dir / "s.npy"}}},
                   {"--fake-kspace", {fake, {}, {dir / "new.npy"}}},
                   {"--maps", {{"--maps", dir / "maps.npy"}, of_image, {dir / "new.npy"}}},
                   {"--replace", {{"--replace", dir / "partial.npy"}, fake, {dir / "new.npy"}}},
                   {"--json", {{"--json"}}}},
       .usual = {{{"--size", "32"}, {"--size", "--image"}},
                 {{"--coils", "2"}, {"--coils", "--fake-kspace"}}}});
  all.push_back(
      {.name = "compare",
       .arguments = {dir / "image.npy", dir / "other.npy"},
       .options = {{"--output", {{"--output", dir / "c.png"}}},
                   {"--mask", {{"--mask", "none"}}},
                   {"--complex", {{"--complex"}}},
                   {"--label", {{"--label", "name"}}},
                   {"--report", {{"--report", dir / "report.json"}}},
                   {"--error-scale", {{"--error-scale", "3"}, {"--output", dir / "c.png"}}},
                   {"--json", {{"--json"}}}}});
  all.push_back(
      {.name = "info", .arguments = {dir / "one.h5"}, .options = {{"--json", {{"--json"}}}}});
  all.push_back({.name = "doctor", .arguments = {}, .options = {{"--json", {{"--json"}}}}});
  all.insert(all.end(), step_samples_.begin(), step_samples_.end());
  return all;
}

}  // namespace
}  // namespace palimpsest::cli
