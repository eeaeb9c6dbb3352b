// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// The grammar of dimension names, shared by single dimensions and sequences of them. Internal.

namespace palimpsest::named {

/// Blanks and commas: between tokens, never part of one.
bool is_separator(char c);
bool is_upper(char c);
bool is_digit(char c);

/// The end of the token that starts at `start`. A separator must not be there.
/// Errors   ValueError with the whole text and the position
std::size_t token_end(std::string_view text, std::size_t start);

/// The number of trailing digits of a name: the length of its index.
std::size_t index_digits(std::string_view name);

/// `text` in double quotes as error messages show it; control characters are spelled out.
std::string quoted(std::string_view text);

}  // namespace palimpsest::named
