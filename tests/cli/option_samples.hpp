// SPDX-License-Identifier: Apache-2.0
// Values for each option of each command, for the tests of options.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/run_command.hpp"

namespace palimpsest::cli {

// A way to give an option. `also`: options that it needs, unless the other option of the pair
// includes them.
struct Sample {
  std::vector<std::string> words;
  std::vector<std::string> also = {};
  // Replaces the arguments of the command and its usual words.
  std::vector<std::string> arguments = {};
};

// Words that every run gets unless it has one of these options.
struct Usual {
  std::vector<std::string> words, unless;
  bool is_of_arguments = false;
};

struct CommandSamples {
  std::string name;
  std::vector<std::string> arguments;
  std::map<std::string, Sample> options;
  std::vector<Usual> usual = {};
  // Pairs where the first option makes the second one superfluous.
  std::set<std::pair<std::string, std::string>> subsumed = {};
  // Options that do not affect printed or written output.
  std::set<std::string> invisible = {};
  // Options that all computing commands share.
  std::set<std::string> common = {};
};

/// Samples of a command that computes, with the shared options.
CommandSamples computing(const ScratchDirectory& dir, std::string name,
                         std::vector<std::string> arguments, std::map<std::string, Sample> options);
/// Samples of the commands for single steps: those of option_samples.cpp and all `CommandSamples
/// samples_of_<name>(const ScratchDirectory& dir)` in tests of commands. Writes their inputs; the
/// arrays k.npy, maps.npy and image.npy of `dir` exist already.
std::vector<CommandSamples> step_samples(const ScratchDirectory& dir);

}  // namespace palimpsest::cli
