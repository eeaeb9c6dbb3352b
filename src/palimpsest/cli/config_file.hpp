// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "palimpsest/cli/command_line.hpp"

namespace palimpsest::cli {

/// The words of a command line with those that the file of `--config` adds.
///
/// The file is a JSON object; its keys are the long names of options without dashes. A number or a
/// text is the value of an option, a list its values, true a flag; false leaves a flag out. Options
/// on the command line win. Commands without `--config`, and other words, are unchanged.
///
/// Errors   UsageError naming the file: it cannot be read, does not hold an object, has an option
///          that the command lacks, or a value of another kind
std::vector<std::string> with_config_file(const std::vector<std::string>& words,
                                          const CommandLine& line);

}  // namespace palimpsest::cli
