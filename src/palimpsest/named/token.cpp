// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/named/token.hpp"

#include <charconv>

#include "palimpsest/base/error.hpp"

namespace palimpsest::named {
namespace {

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_beyond_ascii(char c) { return static_cast<unsigned char>(c) >= 0x80; }
bool starts_name(char c) { return is_upper(c) || is_lower(c) || is_beyond_ascii(c); }
bool continues_name(char c) { return is_lower(c) || is_digit(c) || c == '_' || is_beyond_ascii(c); }

std::string complaint(std::string_view text, std::string_view what, std::size_t position,
                      std::string_view got, std::string_view expected) {
  return "[Dim(" + quoted(text) + ")] " + std::string(what) + " at position " +
         std::to_string(position) + ": got " + quoted(got) + ", expected " + std::string(expected);
}

// `digits` stands at `position` and is an index or an ordinal.
void check_number(std::string_view text, std::size_t position, std::string_view digits) {
  if (digits.size() > 1 && digits[0] == '0') {
    throw ValueError(
        complaint(text, "a number has a leading zero", position, digits, "the number without it"));
  }
  int value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (!digits.empty() && read.ec != std::errc{}) {
    throw OverflowError(complaint(text, "a number does not fit in 31 bits", position, digits,
                                  "at most 2147483647"));
  }
}

std::size_t ellipsis_end(std::string_view text, std::size_t start) {
  std::size_t end = start;
  while (end < text.size() && text[end] == '.') ++end;
  if (end - start != 3) {
    throw ValueError(complaint(text, "malformed ellipsis", start, text.substr(start, end - start),
                               "three dots"));
  }
  return end;
}

std::size_t parenthesis_end(std::string_view text, std::size_t start) {
  std::size_t end = start + 1;
  while (end < text.size() && is_digit(text[end])) ++end;
  if (text[start] == ')' || end == text.size() || text[end] != ')') {
    throw ValueError(complaint(text, "malformed parenthesis", start,
                               text.substr(start, end + 1 - start),
                               "\"()\" or a number in parentheses such as \"(1)\""));
  }
  check_number(text, start + 1, text.substr(start + 1, end - start - 1));
  return end + 1;
}

// `~`, digits and a lower-case letter, of a dimension inside a derived operator: behind the name,
// before its index.
std::size_t mark_end(std::string_view text, std::size_t start) {
  std::size_t end = start + 1;
  while (end < text.size() && is_digit(text[end])) ++end;
  if (end > start + 1 && end < text.size() && is_lower(text[end])) return end + 1;
  throw ValueError(complaint(text, "malformed mark", start, text.substr(start, end - start),
                             "letters, digits or underscores"));
}

std::size_t name_end(std::string_view text, std::size_t start) {
  std::size_t end = start + 1;
  while (end < text.size() && continues_name(text[end])) ++end;
  while (end < text.size() && text[end] == '~') {
    end = mark_end(text, end);
    while (end < text.size() && is_digit(text[end])) ++end;
  }
  const std::size_t digits = index_digits(text.substr(start, end - start));
  check_number(text, end - digits, text.substr(end - digits, digits));
  return end;
}

}  // namespace

bool is_separator(char c) {
  return c == ' ' || c == ',' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t index_digits(std::string_view name) {
  std::size_t count = 0;
  while (count < name.size() && is_digit(name[name.size() - 1 - count])) ++count;
  return count;
}

std::size_t token_end(std::string_view text, std::size_t start) {
  const char c = text[start];
  if (c == '.') return ellipsis_end(text, start);
  if (c == '(' || c == ')') return parenthesis_end(text, start);
  if (starts_name(c)) return name_end(text, start);
  const std::string_view got = text.substr(start, 1);
  if (is_digit(c) || c == '_') {
    throw ValueError(complaint(text, "a dimension starts with a digit or an underscore", start, got,
                               "a letter, a parenthesis or an ellipsis"));
  }
  throw ValueError(complaint(text, "unexpected character", start, got,
                             "letters, digits, underscores, parentheses or an ellipsis"));
}

std::string quoted(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string result = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      result += "\\x";
      result += kHex[byte / 16];
      result += kHex[byte % 16];
    } else {
      result += c;
    }
  }
  return result + "\"";
}

}  // namespace palimpsest::named
