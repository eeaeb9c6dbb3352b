// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest::cli {

/// Exit codes of the command.
inline constexpr int kDone = 0, kFailed = 1, kWrongUsage = 2, kTimeLimit = 3, kNotConverged = 4,
                     kInterrupted = 130;

/// Ends a command with another exit code than kDone. Its results are written already.
struct EndedEarly {
  int code = kDone;
};

/// A subcommand: its options and arguments, and its work. Targets must outlive the run; a target
/// keeps its value when the option is absent, and the help shows that value as the default.
class Command {
 public:
  /// An argument that must be given.
  Command& argument(const std::string& name, std::string& target, const std::string& help);
  /// Arguments, one or more.
  Command& arguments(const std::string& name, std::vector<std::string>& target,
                     const std::string& help);
  /// `names` as `-o,--output`; `value` stands for the value in the help.
  Command& option(const std::string& names, const std::string& value, std::string& target,
                  const std::string& help);
  Command& option(const std::string& names, const std::string& value, index_t& target,
                  const std::string& help);
  Command& option(const std::string& names, const std::string& value, double& target,
                  const std::string& help);
  Command& option(const std::string& names, const std::string& value,
                  std::optional<index_t>& target, const std::string& help);
  Command& option(const std::string& names, const std::string& value, std::optional<double>& target,
                  const std::string& help);
  Command& option(const std::string& names, const std::string& value,
                  std::vector<std::string>& target, const std::string& help);
  Command& choice(const std::string& names, const std::vector<std::string>& values,
                  std::string& target, const std::string& help);
  Command& flag(const std::string& names, bool& target, const std::string& help);
  /// An argument that is one of a few words; it may be left out if `target` has a value.
  Command& word(const std::string& name, const std::vector<std::string>& values,
                std::string& target, const std::string& help);
  /// Refuses `option`, when it is given, unless one of `others` is given too.
  Command& needs(const std::string& option, const std::vector<std::string>& others);
  /// Refuses `others` beside `option`; with a `value`, beside that value of it only.
  Command& excludes(const std::string& option, const std::vector<std::string>& others,
                    const std::string& value = {});
  /// Sets the work of the command. An exception becomes a line on standard error and an exit code.
  Command& action(std::function<void()> run);

 private:
  friend class CommandLine;
  struct Impl;
  explicit Command(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

/// An option or an argument of a command, as its help shows it.
struct OptionFacts {
  /// The longest name, such as `--output`; of an argument its only one.
  std::string name;
  bool takes_value = false;
  /// All names, the short ones first.
  std::vector<std::string> names = {};
  /// Placeholder of the value in the help; the value if the option is absent; the allowed words.
  std::string value = {}, default_value = {};
  std::vector<std::string> choices = {};
  std::string help = {};
};

/// A command, as its help shows it.
struct CommandFacts {
  std::string name, description;
  std::vector<OptionFacts> arguments, options;
};

/// The whole command line: subcommands, help, version, errors in one or two lines with a
/// suggestion. `--` ends the options: words after it are arguments.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& description, const std::string& version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command add(const std::string& name, const std::string& description);
  /// Names of the commands, in the order in which they were added.
  std::vector<std::string> commands() const;
  /// The options of a command, without those that every command has.
  std::vector<OptionFacts> options(const std::string& command) const;
  /// The commands, one a line, as `--help` prints them.
  std::string help() const;
  /// All commands with all that they take: the table that help, completion and manual are made of.
  std::vector<CommandFacts> facts() const;
  /// The words given to run(), the name of the program first.
  const std::vector<std::string>& words() const;
  /// Runs the subcommand that the arguments name; returns the exit code and throws nothing.
  int run(int argc, const char* const* argv);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The candidate that a misspelt word most likely means; empty when none is near.
std::string nearest_word(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace palimpsest::cli
