// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/manual.hpp"

#include <fmt/format.h>

namespace palimpsest::cli {
namespace {

// roff takes dashes, backslashes and lines that begin with a dot or a quote for its own.
std::string roff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n')) {
      result += "\\&";
      result += c;
    } else {
      result += c;
    }
  }
  return result;
}

std::string option_heading(const OptionFacts& option) {
  std::string names;
  for (const std::string& name : option.names) {
    names += (names.empty() ? "" : ", ") + ("\\fB" + roff(name) + "\\fR");
  }
  if (!option.takes_value) return names;
  names += " \\fI" + roff(option.value.empty() ? "VALUE" : option.value) + "\\fR";
  if (!option.default_value.empty()) names += " (default: " + roff(option.default_value) + ")";
  return names;
}

std::string command_section(const CommandFacts& command) {
  std::string text = fmt::format(".SH {}\n{}.\n.PP\n\\fBpalimpsest {}\\fR [options]",
                                 "\"palimpsest " + roff(command.name) + "\"",
                                 roff(command.description), roff(command.name));
  for (const OptionFacts& argument : command.arguments) {
    text += " \\fI" + roff(argument.name) + "\\fR";
  }
  text += "\n";
  for (const OptionFacts& argument : command.arguments) {
    text += fmt::format(".TP\n\\fI{}\\fR\n{}\n", roff(argument.name), roff(argument.help));
  }
  for (const OptionFacts& option : command.options) {
    text += fmt::format(".TP\n{}\n{}\n", option_heading(option), roff(option.help));
  }
  return text;
}

}  // namespace

std::string manual_page(const std::vector<CommandFacts>& commands, const std::string& version) {
  std::string text = fmt::format(
      ".TH PALIMPSEST 1 \"\" \"palimpsest {}\" \"User Commands\"\n"
      ".SH NAME\npalimpsest \\- reconstruct images from raw scans on a known number of bytes\n"
      ".SH SYNOPSIS\n\\fBpalimpsest\\fR \\fICOMMAND\\fR [options] [arguments]\n"
      ".SH DESCRIPTION\n",
      roff(version));
  for (const CommandFacts& command : commands) {
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(command.name), roff(command.description));
  }
  for (const CommandFacts& command : commands) text += command_section(command);
  for (const std::string& topic : help_topics()) {
    if (help_text(topic).empty()) continue;
    text += fmt::format(".SH \"{}\"\n.nf\n{}.fi\n", roff(topic), roff(help_text(topic)));
  }
  return text;
}

}  // namespace palimpsest::cli
