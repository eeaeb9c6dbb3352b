// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace palimpsest::cli {

/// A name that messages of the library use, and the words of the command for it.
struct OptionWord {
  /// `ScanOptions.slice`, or a function such as `compress_coils()`.
  const char* name;
  /// `--slice`, or `palimpsest compress`.
  const char* word;
};

/// The words for all names that messages of the library use and that the command knows differently.
std::span<const OptionWord> option_words();

/// The text with the words of the command in place of the names of the library.
std::string in_words_of_command(const std::string& text);

}  // namespace palimpsest::cli
