// SPDX-License-Identifier: Apache-2.0
// What the tests of options give to each option of each command.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/run_command.hpp"

namespace palimpsest::cli {

// One way to give an option. `also`: what it needs beside it, unless the other option gives that.
struct Sample {
  std::vector<std::string> words;
  std::vector<std::string> also = {};
  // In place of those of the command, and without its usual words.
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
  // By the meaning of the first option the second has nothing to do.
  std::set<std::pair<std::string, std::string>> subsumed = {};
  // Options whose effect is not in what is printed or written.
  std::set<std::string> invisible = {};
  // Those that all commands have that compute.
  std::set<std::string> common = {};
};

/// Those of a command that computes, with the options that all of these have.
CommandSamples computing(const ScratchDirectory& dir, std::string name,
                         std::vector<std::string> arguments, std::map<std::string, Sample> options);
/// Of the commands for single steps: those of option_samples.cpp and of all
/// `CommandSamples samples_of_<name>(const ScratchDirectory& dir)` in the tests of commands. Writes
/// their inputs, besides the arrays k.npy, maps.npy and image.npy of `dir`, which are there.
std::vector<CommandSamples> step_samples(const ScratchDirectory& dir);

}  // namespace palimpsest::cli
