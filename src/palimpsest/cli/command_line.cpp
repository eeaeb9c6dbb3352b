// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/command_line.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <sstream>

#include "palimpsest/base/edit_distance.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/cli/config_file.hpp"
#include "palimpsest/cli/option_words.hpp"
#include "palimpsest/cli/prelude.hpp"
#include "palimpsest/memory/copy_stats.hpp"

namespace palimpsest::cli {
namespace {

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::string joined(const std::vector<std::string>& words, const std::string& between = ", ") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

// Prints the counts of lazy copies to standard error: standard output belongs to the command.
void print_stats() {
  const CopyCounts counts = CopyStats::process();
  const auto number = [](std::uint64_t n) { return with_commas(static_cast<index_t>(n)); };
  const auto bytes = [&](std::uint64_t n) { return number(n) + " bytes"; };
  const std::string table = aligned_table({
      {"lazy clones", number(counts.lazy_clones), bytes(counts.lazy_bytes)},
      {"copied when written", number(counts.copies), bytes(counts.copied_bytes)},
      {"taken over when written", number(counts.take_overs)},
      {"overwritten, nothing copied", number(counts.overwrites)},
      {"copied at once", number(counts.eager_copies), bytes(counts.eager_copied_bytes)},
  });
  std::fprintf(stderr, "copy-on-write\n%sbytes that were never copied: %s\n", table.c_str(),
               number(counts.bytes_avoided()).c_str());
}

// Errors of the library name its options: here they get the names of the command.
void print_error(const std::string& who, const std::string& text) {
  std::fprintf(stderr, "%s: %s\n", who.c_str(), in_words_of_command(text).c_str());
}

}  // namespace

std::string nearest_word(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t least = 1 + word.size() / 3;
  for (const std::string& candidate : candidates) {
    // A beginning is as good as one mistake: --iter means --iterations.
    const bool begins = word.size() > 3 && candidate.starts_with(word);
    const std::size_t distance = begins ? 1 : edit_distance(word, candidate);
    if (distance <= least && (best.empty() || distance < least)) {
      best = candidate;
      least = distance;
    }
  }
  return best;
}

namespace {

// A rule between options. With needs_one false, `given` (with this value, if one is named) must not
// stand beside any of `others`; with true, it needs at least one of them.
struct Rule {
  std::string given, value;
  std::vector<std::string> others;
  bool needs_one = false;
};

bool is_given(const CLI::App& app, const std::string& name) {
  return app.get_option(name)->count() > 0;
}

// The value that it was given, or else its default.
bool has_value(const CLI::App& app, const std::string& name, const std::string& value) {
  const CLI::Option* option = app.get_option(name);
  return (option->count() > 0 ? option->results().back() : option->get_default_str()) == value;
}

void check_rule(const CLI::App& app, const Rule& rule) {
  const bool applies =
      rule.value.empty() ? is_given(app, rule.given) : has_value(app, rule.given, rule.value);
  if (!applies) return;
  const auto other = std::find_if(rule.others.begin(), rule.others.end(),
                                  [&](const std::string& name) { return is_given(app, name); });
  if (rule.needs_one && other == rule.others.end()) {
    throw UsageError("[" + rule.given + "] has no effect without " + joined(rule.others, " or ") +
                     ". Try to add one, or to leave " + rule.given + " out");
  }
  if (!rule.needs_one && other != rule.others.end()) {
    throw UsageError("[" + *other + "] has no effect with " + rule.given +
                     (rule.value.empty() ? "" : " " + rule.value) +
                     (is_given(app, rule.given) ? ". Try to leave one out"
                                                : ", the default. Try another " + rule.given));
  }
}

}  // namespace

struct Command::Impl {
  CLI::App* app = nullptr;
  std::function<void()> run;
  std::vector<Rule> rules;
  std::map<std::string, std::vector<std::string>> choices;  // by the names as given
  bool shows_stats = false;
};

namespace {

// A shell gives an empty word for a variable that is not set.
CLI::Validator not_empty() {
  return {[](const std::string& given) -> std::string {
            return given.empty() ? "got an empty text, expected a value" : "";
          },
          "", ""};
}

// Decimal numbers that fit: CLI11 takes 010 as 8, and too many digits as the largest number.
template <class T>
CLI::Validator number(const char* expected) {
  return {[expected](const std::string& given) -> std::string {
            T value{};
            const char* const end = given.data() + given.size();
            const auto [at, error] = std::from_chars(given.data(), end, value);
            const bool is_good =
                at == end && error == std::errc() && std::isfinite(static_cast<double>(value));
            return is_good ? "" : "got '" + given + "', expected " + expected;
          },
          "", ""};
}
CLI::Validator whole_number() { return number<index_t>("a whole number"); }
CLI::Validator real_number() { return number<double>("a number"); }

}  // namespace

Command& Command::argument(const std::string& name, std::string& target, const std::string& help) {
  impl_->app->add_option(name, target, help)->check(not_empty())->required();
  return *this;
}

Command& Command::arguments(const std::string& name, std::vector<std::string>& target,
                            const std::string& help) {
  impl_->app->add_option(name, target, help)->check(not_empty())->required();
  return *this;
}

Command& Command::option(const std::string& names, const std::string& value, std::string& target,
                         const std::string& help) {
  CLI::Option* option =
      impl_->app->add_option(names, target, help)->check(not_empty())->type_name(value);
  if (!target.empty()) option->capture_default_str();
  return *this;
}

Command& Command::option(const std::string& names, const std::string& value, index_t& target,
                         const std::string& help) {
  impl_->app->add_option(names, target, help)
      ->check(whole_number())
      ->type_name(value)
      ->capture_default_str();
  return *this;
}

Command& Command::option(const std::string& names, const std::string& value, double& target,
                         const std::string& help) {
  impl_->app->add_option(names, target, help)
      ->check(real_number())
      ->type_name(value)
      ->capture_default_str();
  return *this;
}

Command& Command::option(const std::string& names, const std::string& value,
                         std::optional<index_t>& target, const std::string& help) {
  impl_->app
      ->add_option_function<index_t>(
          names, [&target](const index_t& given) { target = given; }, help)
      ->check(whole_number())
      ->type_name(value);
  return *this;
}

Command& Command::option(const std::string& names, const std::string& value,
                         std::optional<double>& target, const std::string& help) {
  impl_->app
      ->add_option_function<double>(
          names, [&target](const double& given) { target = given; }, help)
      ->check(real_number())
      ->type_name(value);
  return *this;
}

Command& Command::option(const std::string& names, const std::string& value,
                         std::vector<std::string>& target, const std::string& help) {
  impl_->app->add_option(names, target, help)
      ->type_name(value)
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);  // the next word is an argument
  return *this;
}

namespace {

CLI::Validator one_of(const std::vector<std::string>& values) {
  const auto known = [values](const std::string& given) -> std::string {
    if (std::find(values.begin(), values.end(), given) != values.end()) return {};
    const std::string near = nearest_word(given, values);
    return "got '" + given + "', expected one of " + joined(values) +
           (near.empty() ? "" : ". Try '" + near + "'");
  };
  return {known, "", ""};
}

}  // namespace

Command& Command::choice(const std::string& names, const std::vector<std::string>& values,
                         std::string& target, const std::string& help) {
  impl_->choices[names] = values;
  impl_->app->add_option(names, target, help + ": " + joined(values))
      ->check(one_of(values))
      ->type_name("NAME")
      ->capture_default_str();
  return *this;
}

Command& Command::word(const std::string& name, const std::vector<std::string>& values,
                       std::string& target, const std::string& help) {
  impl_->choices[name] = values;
  CLI::Option* option = impl_->app->add_option(name, target, help + ": " + joined(values));
  option->check(one_of(values))->type_name("")->required(target.empty());
  if (!target.empty()) option->capture_default_str();
  return *this;
}

Command& Command::flag(const std::string& names, bool& target, const std::string& help) {
  impl_->app->add_flag(names, target, help);
  return *this;
}

Command& Command::needs(const std::string& option, const std::vector<std::string>& others) {
  impl_->rules.push_back({option, "", others, true});
  return *this;
}

Command& Command::excludes(const std::string& option, const std::vector<std::string>& others,
                           const std::string& value) {
  impl_->rules.push_back({option, value, others, false});
  return *this;
}

Command& Command::action(std::function<void()> run) {
  impl_->run = std::move(run);
  return *this;
}

struct CommandLine::Impl {
  CLI::App app;
  std::vector<std::shared_ptr<Command::Impl>> commands;
  std::vector<std::string> words;
  std::string of_config;  // text for errors: the values from --config; empty for none

  /// The subcommand whose arguments are being read, or null. It is the first word that is no
  /// option: a file after an unknown command may have the name of a command.
  const CLI::App* current() const {
    const auto used = app.get_subcommands();
    const auto first = std::find_if(words.begin() + !words.empty(), words.end(),
                                    [](const std::string& w) { return !w.starts_with('-'); });
    if (used.empty() || first == words.end()) return nullptr;
    return used.front()->check_name(*first) ? used.front() : nullptr;
  }
  std::string name() const {
    return app.get_name() + (current() == nullptr ? "" : " " + current()->get_name());
  }
  /// The text with advice, unless it gives some itself.
  std::string with_advice(std::string text) const {
    if (text.find("Try ") == std::string::npos) {
      while (!text.empty() && text.back() == '.') text.pop_back();
      text += ". Try " + name() + " --help";
    }
    return text + of_config;
  }
  void run_commands();
  std::string usage_error(const CLI::ParseError& error) const;
  std::string unknown_word() const;
};

// An error about the first word that no option or argument takes, with the nearest known word.
std::string CommandLine::Impl::unknown_word() const {
  std::vector<std::string> extra = app.remaining(true);
  std::erase(extra, "--");  // ends the options; not an argument
  if (extra.empty()) return {};
  const std::string word = extra.front().substr(0, extra.front().find('='));
  const bool is_option = word.size() > 1 && word[0] == '-';
  if (!is_option && current() != nullptr) {
    return "too many arguments: got '" + word + "'. Try " + name() + " --help";
  }
  const CLI::App* const app_used = current() == nullptr ? &app : current();
  const std::string near =
      nearest_word(word, is_option ? option_names(*app_used) : command_names(app));
  const std::string bart = is_option ? "" : ", or " + name() + " help bart";
  return std::string("unknown ") + (is_option ? "option" : "command") + " '" + word + "'. Try " +
         (near.empty() ? name() + " --help" + bart : "'" + near + "'");
}

std::string CommandLine::Impl::usage_error(const CLI::ParseError& error) const {
  const std::string unknown = unknown_word();
  if (!unknown.empty()) return unknown;
  if (error.get_name() == "RequiredError" && current() == nullptr) {
    return "which command? Expected one of " + joined(command_names(app)) + ". Try " + name() +
           " --help";
  }
  std::string text = error.what();
  std::replace(text.begin(), text.end(), '\n', ' ');
  const std::size_t name_end = text.find(": ");
  if (text.find("At Most 1 required") != std::string::npos && name_end != std::string::npos) {
    text = "[" + text.substr(0, name_end) + "] is given several times, expected once";
  }
  return with_advice(text);
}

CommandLine::CommandLine(const std::string& name, const std::string& description,
                         const std::string& version)
    : impl_(std::make_unique<Impl>()) {
  impl_->app.name(name);
  impl_->app.description(description);
  impl_->app.set_version_flag("--version", version);
  impl_->app.require_subcommand(1);
}

CommandLine::~CommandLine() = default;

Command CommandLine::add(const std::string& name, const std::string& description) {
  auto command = std::make_shared<Command::Impl>();
  command->app = impl_->app.add_subcommand(name, description);
  command->app->allow_extras();
  command->app->add_flag("--stats", command->shows_stats,
                         "Bytes that copy-on-write copied and saved, on standard error");
  impl_->commands.push_back(command);
  return Command(command);
}

std::vector<std::string> CommandLine::commands() const { return command_names(impl_->app); }

namespace {

OptionFacts facts_of(const CLI::Option& option,
                     const std::map<std::string, std::vector<std::string>>& choices) {
  OptionFacts facts;
  facts.takes_value = option.get_items_expected_max() > 0;
  facts.help = option.get_description();
  facts.default_value = option.get_default_str();
  for (const std::string& name : option.get_snames()) facts.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) facts.names.push_back("--" + name);
  if (facts.names.empty()) facts.names.push_back(option.get_name(true));
  facts.name = facts.names.back();
  if (facts.takes_value) facts.value = option.get_type_name();
  for (const auto& [names, words] : choices) {
    if (("," + names + ",").find("," + facts.name + ",") != std::string::npos) {
      facts.choices = words;
    }
  }
  return facts;
}

}  // namespace

// By the formatter: help() of a line with a command is that of the command.
std::string CommandLine::help() const {
  const CLI::App& app = impl_->app;
  return app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal);
}

std::vector<CommandFacts> CommandLine::facts() const {
  std::vector<CommandFacts> all;
  for (const auto& command : impl_->commands) {
    CommandFacts facts{command->app->get_name(), command->app->get_description(), {}, {}};
    for (const CLI::Option* option : command->app->get_options()) {
      const bool is_argument = option->get_positional();
      (is_argument ? facts.arguments : facts.options)
          .push_back(facts_of(*option, command->choices));
    }
    all.push_back(std::move(facts));
  }
  return all;
}

std::vector<OptionFacts> CommandLine::options(const std::string& command) const {
  std::vector<OptionFacts> result;
  for (const CommandFacts& facts : facts()) {
    if (facts.name != command) continue;
    for (const OptionFacts& option : facts.options) {
      if (option.name != "--help" && option.name != "--stats") result.push_back(option);
    }
  }
  return result;
}

void CommandLine::Impl::run_commands() {
  for (const auto& command : commands) {
    if (!command->app->parsed()) continue;
    for (const Rule& rule : command->rules) check_rule(*command->app, rule);
    command->run();
    flush_standard_output();
    if (command->shows_stats) print_stats();
  }
}

const std::vector<std::string>& CommandLine::words() const { return impl_->words; }

int CommandLine::run(int argc, const char* const* argv) {
  impl_->words = {argv, argv + argc};
  try {
    try {
      const std::vector<std::string> words =
          with_config_file({argv + std::min(argc, 1), argv + argc}, *this);
      const std::size_t n_given = impl_->words.empty() ? 0 : impl_->words.size() - 1;
      if (words.size() > n_given) {
        const std::size_t n_added = words.size() - n_given;
        impl_->of_config =
            " (--config gives " +
            joined({words.begin() + 1, words.begin() + 1 + static_cast<std::ptrdiff_t>(n_added)},
                   " ") +
            ")";
      }
      // CLI11 takes them from the last to the first.
      std::vector<std::string> reversed(words.rbegin(), words.rend());
      impl_->app.parse(std::move(reversed));
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() != 0) throw;
      std::ostringstream text;  // help and version
      impl_->app.exit(error, text, text);
      print_to_reader(text.str());
      return kDone;
    }
    const std::string unknown = impl_->unknown_word();
    if (!unknown.empty()) throw UsageError(unknown);
    impl_->run_commands();
    return kDone;
  } catch (const EndedEarly& end) {
    return end.code;
  } catch (const CLI::ParseError& error) {
    print_error(impl_->name(), impl_->usage_error(error));
    return kWrongUsage;
  } catch (const UsageError& error) {
    print_error(impl_->name(), impl_->with_advice(error.what()));
    return kWrongUsage;
  } catch (const ValueError& error) {  // an error of imaging/ about a value of the user
    print_error(impl_->name(), impl_->with_advice(error.what()));
    return kWrongUsage;
  } catch (const TypeError& error) {
    print_error(impl_->name(), impl_->with_advice(error.what()));
    return kWrongUsage;
  } catch (const FormatError& error) {
    print_error(impl_->name(), error.what());
    return kWrongUsage;
  } catch (const std::bad_alloc&) {
    print_error(impl_->name(), "out of memory. Try a smaller scan, or close other programs");
    return kFailed;
  } catch (const std::exception& error) {
    print_error(impl_->name(), error.what());
    return kFailed;
  }
}

}  // namespace palimpsest::cli
