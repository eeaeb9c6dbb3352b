// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/parameters.hpp"

#include <charconv>

namespace palimpsest::ops {

std::string written(index_t value) { return std::to_string(value); }
std::string written(std::size_t value) { return std::to_string(value); }
std::string written(bool value) { return value ? "1" : "0"; }
std::string written(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}
std::string written(DType value) { return std::string(name_of(value)); }
std::string written(const Device& value) { return value.str(); }
std::string written(const std::string& value) { return value; }
std::string written(std::span<const index_t> values) { return to_string(values); }
std::string written(const ExtentPrograms& values) { return text_of(values); }

void read(ParameterText& text, index_t& value) { value = text.integer(); }
void read(ParameterText& text, std::size_t& value) {
  const index_t number = text.integer();
  if (number < 0) throw FormatError("negative number " + std::to_string(number));
  value = static_cast<std::size_t>(number);
}
void read(ParameterText& text, bool& value) { value = text.flag(); }
void read(ParameterText& text, double& value) { value = text.number(); }
void read(ParameterText& text, DType& value) { value = text.dtype(); }
void read(ParameterText& text, Device& value) {
  std::string name(text.word());
  if (text.take(":")) name += ":" + std::to_string(text.integer());
  try {
    value = Device::parse(name);
  } catch (const ValueError& error) {
    throw FormatError(error.what());
  }
}
void read(ParameterText& text, std::string& value) {
  const std::string_view rest = text.rest();
  text.expect(rest);
  value = rest;
}
void read(ParameterText& text, Extents& values) { values = text.integers(); }
void read(ParameterText& text, ExtentPrograms& values) { values = text.programs(); }

void check_axis(std::size_t axis) {
  if (axis >= kMaxRank) throw FormatError("axis " + std::to_string(axis));
}
void check_axes(const Axes& axes) {
  for (std::size_t k = 0; k < axes.size(); ++k) {
    if (axes[k] < 0 || axes[k] >= static_cast<index_t>(kMaxRank)) {
      throw FormatError("axis " + std::to_string(axes[k]));
    }
    if (k > 0 && axes[k] <= axes[k - 1]) throw FormatError("axes that are not sorted");
  }
}

void fields::append_each(std::vector<std::string>& names, std::span<const std::string_view> words) {
  std::vector<std::string> longer;
  for (const std::string& name : names) {
    for (const std::string_view word : words) longer.emplace_back(name).append(word);
  }
  names = std::move(longer);
}

std::size_t fields::take_longest(std::string_view& name, std::span<const std::string_view> words) {
  std::size_t best = words.size();
  for (std::size_t k = 0; k < words.size(); ++k) {
    if (!name.starts_with(words[k])) continue;
    if (best == words.size() || words[k].size() > words[best].size()) best = k;
  }
  if (best == words.size()) throw FormatError("no such name");
  name.remove_prefix(words[best].size());
  return best;
}

void fields::add_entry(std::string& text, std::string_view key, std::string_view value) {
  if (!text.empty()) text += ", ";
  if (!key.empty()) text.append(key).append("=");
  text += value;
}

void register_names(std::vector<std::string> names,
                    OpPtr (*restore)(std::string_view name, ParameterText& text)) {
  for (std::string& name : names) {
    register_op(std::move(name), [restore](std::string_view called, std::string_view parameters) {
      ParameterText text(parameters);
      OpPtr op = restore(called, text);
      text.end();
      return op;
    });
  }
}

}  // namespace palimpsest::ops
