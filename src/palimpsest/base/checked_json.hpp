// SPDX-License-Identifier: Apache-2.0
// Internal: reads JSON that may say anything.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "palimpsest/base/failure.hpp"

namespace palimpsest::io_detail {

/// A value of a parsed file and where it is. Asking for what it is not is a FormatError naming the
/// file and the place: `[a.pal] manifest: "offset" of tensor 3 is no size`.
class CheckedJson {
 public:
  using Json = nlohmann::ordered_json;

  CheckedJson(const Json& value, std::string_view file, std::string where)
      : value_(&value), file_(file), where_(std::move(where)) {}

  const Json& raw() const { return *value_; }
  const std::string& where() const { return where_; }
  [[noreturn]] void fail(std::string_view what) const {
    fail_format(file_, fmt::format("manifest: {} {}", where_, what));
  }

  bool has(const char* key) const { return value_->is_object() && value_->contains(key); }
  CheckedJson at(const char* key) const {
    if (!has(key)) fail(fmt::format("has no \"{}\"", key));
    return {*value_->find(key), file_, fmt::format("\"{}\" of {}", key, where_)};
  }
  /// Elements of a list; `what` names one: `tensor 3`.
  std::size_t size() const {
    if (!value_->is_array()) fail("is no list");
    return value_->size();
  }
  CheckedJson element(std::size_t i, std::string_view what) const {
    if (i >= size()) fail("is too short");
    return {(*value_)[i], file_, fmt::format("{} {}", what, i)};
  }

  bool is_null() const { return value_->is_null(); }
  const std::string& text() const {
    if (!value_->is_string()) fail("is no text");
    return value_->get_ref<const std::string&>();
  }
  bool flag() const {
    if (!value_->is_boolean()) fail("is neither true nor false");
    return value_->get<bool>();
  }
  std::int64_t integer() const {
    const bool fits = value_->is_number_unsigned()
                          ? value_->get<std::uint64_t>() <= std::uint64_t{INT64_MAX}
                          : value_->is_number_integer();
    if (!fits) fail("is no integer");
    return value_->get<std::int64_t>();
  }
  /// Not negative.
  std::int64_t size_value() const {
    const bool fits =
        value_->is_number_unsigned() && value_->get<std::uint64_t>() <= std::uint64_t{INT64_MAX};
    if (!fits) fail("is no size");
    return value_->get<std::int64_t>();
  }
  /// Below a bound.
  std::size_t index(std::size_t count) const {
    const std::int64_t value = size_value();
    if (static_cast<std::size_t>(value) >= count) {
      fail_format(file_, fmt::format("index: {} is {}, but there are {}", where_, value, count));
    }
    return static_cast<std::size_t>(value);
  }

 private:
  const Json* value_;
  std::string_view file_;
  std::string where_;
};

}  // namespace palimpsest::io_detail
