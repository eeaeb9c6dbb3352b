// SPDX-License-Identifier: Apache-2.0
// Internal: JSON of files. The parser and the printer are compiled once, in checked_json.cpp: each
// file that includes this one would take seconds more.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace palimpsest::io_detail {

using Json = nlohmann::ordered_json;

/// The value of a text; a discarded one, if it is not JSON or nested deeper than 1,000 levels.
Json parse_json(std::string_view text);
/// In one line, or with an indent in lines.
///
/// Errors  FormatError: a text in it is not UTF-8
std::string text_of_json(const Json& json, int indent = -1);

/// A value of a parsed file and its place. Asking for another kind is a FormatError naming the file
/// and the place: `[a.pal] manifest: "offset" of tensor 3 is not a size`.
class CheckedJson {
 public:
  CheckedJson(const Json& value, std::string_view file, std::string where)
      : value_(&value), file_(file), where_(std::move(where)) {}

  const Json& raw() const { return *value_; }
  const std::string& where() const { return where_; }
  [[noreturn]] void fail(std::string_view what) const;

  bool has(const char* key) const;
  CheckedJson at(const char* key) const;
  /// Elements of a list; `what` names one: `tensor 3`.
  std::size_t size() const;
  CheckedJson element(std::size_t i, std::string_view what) const;

  bool is_null() const { return value_->is_null(); }
  const std::string& text() const;
  bool flag() const;
  std::int64_t integer() const;
  /// Not negative.
  std::int64_t size_value() const;
  /// Below a bound.
  std::size_t index(std::size_t count) const;

 private:
  const Json* value_;
  std::string_view file_;
  std::string where_;
};

}  // namespace palimpsest::io_detail
