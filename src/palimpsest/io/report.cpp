// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "palimpsest/base/atomic_file.hpp"

namespace palimpsest {

namespace {

/// Bytes from 0x80 on pass through: UTF-8 stays UTF-8.
std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        result += "\\\"";
        break;
      case '\\':
        result += "\\\\";
        break;
      case '\n':
        result += "\\n";
        break;
      case '\t':
        result += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          result += c;
        }
    }
  }
  return result + "\"";
}

std::string json_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

/// The lines after the first one shifted to the right; strings hold no line ends of their own.
std::string indented(std::string_view json) {
  std::string result;
  for (const char c : json) {
    result += c;
    if (c == '\n') result += "  ";
  }
  return result;
}

template <class T, class ToJson>
std::string json_array(const std::vector<T>& values, ToJson to_json) {
  std::string result = "[";
  for (const T& value : values) {
    if (result.size() > 1) result += ", ";
    result += to_json(value);
  }
  return result + "]";
}

}  // namespace

void write_text_atomically(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

JsonReport& JsonReport::set_raw(std::string_view key, std::string json) {
  const auto known = std::find_if(members_.begin(), members_.end(),
                                  [&](const auto& member) { return member.first == key; });
  if (known != members_.end()) {
    known->second = std::move(json);
  } else {
    members_.emplace_back(key, std::move(json));
  }
  return *this;
}

JsonReport& JsonReport::set(std::string_view key, bool value) {
  return set_raw(key, value ? "true" : "false");
}

JsonReport& JsonReport::set(std::string_view key, double value) {
  return set_raw(key, json_number(value));
}

JsonReport& JsonReport::set(std::string_view key, std::string_view value) {
  return set_raw(key, json_string(value));
}

JsonReport& JsonReport::set(std::string_view key, const JsonReport& value) {
  return set_raw(key, value.body());
}

JsonReport& JsonReport::set(std::string_view key, const std::vector<double>& values) {
  return set_raw(key, json_array(values, json_number));
}

JsonReport& JsonReport::set(std::string_view key, const std::vector<std::string>& values) {
  return set_raw(key, json_array(values, json_string));
}

JsonReport& JsonReport::set(std::string_view key, const std::vector<JsonReport>& values) {
  return set_raw(key, json_array(values, [](const JsonReport& value) { return value.body(); }));
}

std::string JsonReport::body() const {
  if (members_.empty()) return "{}";
  std::string result = "{";
  for (const auto& [key, json] : members_) {
    if (result.size() > 1) result += ",";
    result += "\n  " + json_string(key) + ": " + indented(json);
  }
  return result + "\n}";
}

std::string JsonReport::text() const { return body() + "\n"; }

}  // namespace palimpsest
