// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/parameter_text.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace palimpsest::ops {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

void ParameterText::fail(std::string_view expected) const {
  throw FormatError("expected " + std::string(expected) + " at '" +
                    std::string(text_.substr(0, 40)) + "'");
}

bool ParameterText::take(std::string_view characters) {
  if (!text_.starts_with(characters)) return false;
  text_.remove_prefix(characters.size());
  return true;
}

void ParameterText::expect(std::string_view characters) {
  if (!take(characters)) fail("'" + std::string(characters) + "'");
}

index_t ParameterText::integer() {
  index_t value = 0;
  const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
  if (error != std::errc()) fail("an integer");
  text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
  return value;
}

double ParameterText::number() {
  double value = 0;
  const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
  if (error != std::errc()) fail("a number");
  text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
  return value;
}

Extents ParameterText::integers() {
  Extents values;
  expect("(");
  while (!take(")")) {
    if (!values.empty() && !take(", ")) {
      expect(",");
      expect(")");
      break;
    }
    values.push_back(integer());
  }
  return values;
}

std::string_view ParameterText::word() {
  std::size_t n = 0;
  while (n < text_.size() && is_word(text_[n])) ++n;
  if (n == 0) fail("a word");
  const std::string_view result = text_.substr(0, n);
  text_.remove_prefix(n);
  return result;
}

DType ParameterText::dtype() { return parse_dtype(word()); }

// `2 i0[1] *`
ExtentProgram ParameterText::program() {
  using Code = ExtentProgram::Code;
  static constexpr std::pair<std::string_view, Code> kSigns[] = {
      {"+", Code::add},       {"//", Code::floor_div}, {"*", Code::mul},  {"%", Code::mod},
      {"min", Code::minimum}, {"max", Code::maximum},  {"neg", Code::neg}};
  ExtentProgram program;
  int depth = 0;  // operands that wait
  const auto apply = [&](Code code) {
    const int operands = code == Code::neg ? 1 : 2;
    if (depth < operands) fail("operands before a sign");
    depth -= operands - 1;
    program.apply(code);
  };
  do {
    if (take("i")) {
      const index_t input = integer();
      expect("[");
      const index_t axis = integer();
      expect("]");
      if (input < 0 || axis < 0) fail("an input and an axis");
      program.extent(static_cast<std::size_t>(input), static_cast<std::size_t>(axis));
      ++depth;
      continue;
    }
    bool is_sign = false;
    for (const auto& [sign, code] : kSigns) {
      if (is_sign || !take(sign)) continue;
      apply(code);
      is_sign = true;
    }
    if (is_sign) continue;
    // A minus is a sign of its own unless digits follow.
    if (text_.starts_with("-") && (text_.size() < 2 || !is_word(text_[1]))) {
      expect("-");
      apply(Code::sub);
    } else {
      program.number(integer());
      ++depth;
    }
  } while (take(" "));
  if (depth != 1) fail("one number of each program");
  return program;
}

ExtentPrograms ParameterText::programs() {
  ExtentPrograms result;
  expect("(");
  while (!take(")")) {
    if (!result.empty() && !take(", ")) {
      expect(",");
      expect(")");
      break;
    }
    result.push_back(program());
  }
  return result;
}

void ParameterText::entry(std::string_view key) {
  if (!is_first_) expect(", ");
  is_first_ = false;
  if (key.empty()) return;
  expect(key);
  expect("=");
}

bool ParameterText::take_entry(std::string_view word) {
  const ParameterText before = *this;
  if ((is_first_ || take(", ")) && take(word)) {
    is_first_ = false;
    return true;
  }
  *this = before;
  return false;
}

std::size_t ParameterText::entry_among(std::string_view key,
                                       std::span<const std::string_view> words) {
  const ParameterText before = *this;
  if (is_first_ || take(", ")) {
    is_first_ = true;
    if (key.empty() || (take(key) && take("="))) {
      std::size_t best = words.size();
      for (std::size_t k = 0; k < words.size(); ++k) {
        if (words[k].empty() || !text_.starts_with(words[k])) continue;
        if (best == words.size() || words[k].size() > words[best].size()) best = k;
      }
      if (best < words.size()) {
        expect(words[best]);
        is_first_ = false;
        return best;
      }
    }
  }
  *this = before;
  const auto none = std::ranges::find(words, "");
  if (!key.empty() || none == words.end()) fail("one of the words for a parameter");
  return static_cast<std::size_t>(none - words.begin());
}

index_t ParameterText::integer(std::string_view name) {
  entry(name);
  return integer();
}

Extents ParameterText::integers(std::string_view name) {
  entry(name);
  return integers();
}

void ParameterText::end() {
  if (!text_.empty()) fail("the end");
}

}  // namespace palimpsest::ops
