// SPDX-License-Identifier: Apache-2.0
// palimpsest completion: scripts that let a shell complete command lines.

#include "palimpsest/cli/manual.hpp"
#include "palimpsest/cli/prelude.hpp"

namespace palimpsest::cli {
namespace {

std::string spaced(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::vector<std::string> names_of(const CommandFacts& command) {
  std::vector<std::string> names;
  for (const OptionFacts& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

// Arguments that are one of a few words, such as that of `completion` itself.
std::vector<std::string> words_of_argument(const CommandFacts& command) {
  return command.arguments.empty() ? std::vector<std::string>{} : command.arguments.front().choices;
}

bool is_folder(const OptionFacts& option) { return option.value == "FOLDER"; }
bool is_file(const OptionFacts& option) {
  return option.value.starts_with("FILE") || option.value == "FILES";
}

std::string bash_script(const std::vector<CommandFacts>& commands) {
  std::vector<std::string> all = {"--help", "--version"};
  for (const CommandFacts& command : commands) all.push_back(command.name);
  std::string text = fmt::format(
      "# bash completion of palimpsest; source it, or put it where bash-completion looks\n"
      "_palimpsest() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  local command=${{COMP_WORDS[1]}}\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W '{}' -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case $command in\n",
      spaced(all));
  for (const CommandFacts& command : commands) {
    text += fmt::format("    {})\n      case $before in\n", command.name);
    for (const OptionFacts& option : command.options) {
      if (!option.takes_value) continue;
      std::string pattern;
      for (const std::string& name : option.names) pattern += (pattern.empty() ? "" : "|") + name;
      const std::string reply =
          !option.choices.empty()
              ? fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$word\"))", spaced(option.choices))
          : is_folder(option) ? "COMPREPLY=($(compgen -d -- \"$word\"))"
          : is_file(option)   ? "COMPREPLY=($(compgen -f -- \"$word\"))"
                              : ":";
      text += fmt::format("        {}) {}; return ;;\n", pattern, reply);
    }
    const std::vector<std::string> words = words_of_argument(command);
    const std::string argument = words.empty() ? "-f" : fmt::format("-W '{}'", spaced(words));
    text += fmt::format(
        "      esac\n"
        "      case $word in\n"
        "        -*) COMPREPLY=($(compgen -W '{}' -- \"$word\")) ;;\n"
        "        *) COMPREPLY=($(compgen {} -- \"$word\")) ;;\n"
        "      esac ;;\n",
        spaced(names_of(command)), argument);
  }
  return text + "  esac\n}\ncomplete -o filenames -F _palimpsest palimpsest\n";
}

// Between single quotes, in a description of zsh or fish.
std::string in_quotes(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result;
}

// In zsh's _arguments, brackets and colons have a meaning.
std::string zsh_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return in_quotes(result);
}

std::string zsh_action(const OptionFacts& option) {
  if (!option.takes_value) return {};
  const std::string what = zsh_text(option.value.empty() ? "value" : option.value);
  if (!option.choices.empty()) return fmt::format(":{}:({})", what, spaced(option.choices));
  if (is_folder(option)) return fmt::format(":{}:_files -/", what);
  if (is_file(option)) return fmt::format(":{}:_files", what);
  return fmt::format(":{}: ", what);
}

std::string zsh_script(const std::vector<CommandFacts>& commands) {
  std::string text = "#compdef palimpsest\n_palimpsest() {\n  local -a commands\n  commands=(\n";
  for (const CommandFacts& command : commands) {
    text += fmt::format("    '{}:{}'\n", command.name, zsh_text(command.description));
  }
  text +=
      "  )\n"
      "  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
      "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n";
  for (const CommandFacts& command : commands) {
    text += fmt::format("    {})\n      _arguments \\\n", command.name);
    for (const OptionFacts& option : command.options) {
      for (const std::string& name : option.names) {
        text += fmt::format("        '*{}{}[{}]{}' \\\n", name,
                            option.takes_value && name.size() > 2 ? "=" : "", zsh_text(option.help),
                            zsh_action(option));
      }
    }
    const std::vector<std::string> words = words_of_argument(command);
    text += fmt::format("        '*:argument:{}' ;;\n",
                        words.empty() ? "_files" : "(" + spaced(words) + ")");
  }
  return text + "  esac\n}\n_palimpsest \"$@\"\n";
}

std::string fish_script(const std::vector<CommandFacts>& commands) {
  std::string text =
      "# fish completion of palimpsest\n"
      "complete -c palimpsest -n __fish_use_subcommand -f\n"
      "complete -c palimpsest -n __fish_use_subcommand -l help -s h -d 'Print help'\n"
      "complete -c palimpsest -n __fish_use_subcommand -l version -d 'Print the version'\n";
  for (const CommandFacts& command : commands) {
    text += fmt::format("complete -c palimpsest -n __fish_use_subcommand -a {} -d '{}'\n",
                        command.name, in_quotes(command.description));
    const std::string when =
        fmt::format("complete -c palimpsest -n '__fish_seen_subcommand_from {}'", command.name);
    for (const OptionFacts& option : command.options) {
      std::string names;
      for (const std::string& name : option.names) {
        names += name.size() == 2 ? " -s " + name.substr(1) : " -l " + name.substr(2);
      }
      const std::string value = !option.takes_value ? ""
                                : !option.choices.empty()
                                    ? fmt::format(" -x -a '{}'", spaced(option.choices))
                                : is_file(option) || is_folder(option) ? " -r -F"
                                                                       : " -x";
      text += fmt::format("{}{}{} -d '{}'\n", when, names, value, in_quotes(option.help));
    }
    const std::vector<std::string> words = words_of_argument(command);
    if (!words.empty()) text += fmt::format("{} -f -a '{}'\n", when, spaced(words));
  }
  return text;
}

}  // namespace

std::string completion_script(const std::string& shell, const std::vector<CommandFacts>& commands) {
  if (shell == "bash") return bash_script(commands);
  return shell == "zsh" ? zsh_script(commands) : fish_script(commands);
}

void add_completion(CommandLine& line) {
  const auto shell = std::make_shared<std::string>();
  line.add("completion", "Print a script that completes command lines: for bash, zsh or fish")
      .word("SHELL", {"bash", "zsh", "fish"}, *shell, "Shell that the script is for")
      .action([shell, &line] { print_to_reader(completion_script(*shell, line.facts())); });
}

}  // namespace palimpsest::cli
