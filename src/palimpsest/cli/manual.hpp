// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "palimpsest/cli/command_line.hpp"

namespace palimpsest::cli {

/// The manual page palimpsest.1: roff, with a section for each command.
std::string manual_page(const std::vector<CommandFacts>& commands, const std::string& version);

/// A script that lets `bash`, `zsh` or `fish` complete command lines.
std::string completion_script(const std::string& shell, const std::vector<CommandFacts>& commands);

/// Texts of `help`: their names, and each of them.
const std::vector<std::string>& help_topics();
std::string help_text(const std::string& topic);

}  // namespace palimpsest::cli
