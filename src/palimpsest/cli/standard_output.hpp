// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace palimpsest::cli {

/// Opens those of the standard files 0 to 2 that the caller closed, so that no file of the run gets
/// their numbers. A closed standard output then fails like a full disk. Call it first in main().
void open_standard_files();

/// Writes text to standard output. IoError: full disk, closed output, reader gone.
void print(std::string_view text);

/// Writes a text that is all the command does, such as the manual page. No error: a reader that has
/// gone, such as `head`. IoError: full disk, closed output.
void print_to_reader(std::string_view text);

/// Hands everything that was printed to the system. IoError as print().
void flush_standard_output();

}  // namespace palimpsest::cli
