// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/byte_size.hpp"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>

namespace palimpsest {

index_t parse_bytes(std::string_view text, std::string_view who) {
  const auto fail = [&] {
    throw ValueError(
        fmt::format("[{}] got {}, expected a number of bytes such as 300M or 1.5G", who, text));
  };
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc() || !(number >= 0)) fail();
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (unit.ends_with('B')) unit.remove_suffix(1);
  const bool binary = unit.ends_with('i');
  if (binary) unit.remove_suffix(1);
  constexpr std::string_view kUnits = "KMGT";
  if (unit.size() > 1 || (unit.empty() && binary)) fail();
  double factor = 1;
  if (!unit.empty()) {
    const auto letter = static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0])));
    const std::size_t power = kUnits.find(letter);
    if (power == std::string_view::npos) fail();
    factor = std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1));
  }
  if (number * factor > 9e18) fail();
  return static_cast<index_t>(number * factor);
}

std::string with_commas(index_t n) {
  std::string text = std::to_string(n);
  const std::ptrdiff_t first = n < 0 ? 1 : 0;
  for (auto i = static_cast<std::ptrdiff_t>(text.size()) - 3; i > first; i -= 3) {
    text.insert(static_cast<std::size_t>(i), ",");
  }
  return text;
}

}  // namespace palimpsest
