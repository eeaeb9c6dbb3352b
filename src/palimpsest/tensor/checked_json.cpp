// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/tensor/checked_json.hpp"

#include <fmt/format.h>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/failure.hpp"

namespace palimpsest::io_detail {

Json parse_json(std::string_view text) {
  constexpr int kMostLevels = 1000;  // the library prints by recursion
  bool is_too_deep = false;
  Json json = Json::parse(
      text,
      [&](int depth, Json::parse_event_t, Json&) {
        is_too_deep = is_too_deep || depth >= kMostLevels;
        return !is_too_deep;
      },
      /*allow_exceptions=*/false);
  if (is_too_deep) return Json::value_t::discarded;
  return json;
}

std::string text_of_json(const Json& json, int indent) {
  try {
    return json.dump(indent);
  } catch (const Json::type_error&) {
    throw FormatError("a text is not UTF-8");
  }
}

void CheckedJson::fail(std::string_view what) const {
  fail_format(file_, fmt::format("manifest: {} {}", where_, what));
}

bool CheckedJson::has(const char* key) const {
  return value_->is_object() && value_->contains(key);
}

CheckedJson CheckedJson::at(const char* key) const {
  if (!has(key)) fail(fmt::format("has no \"{}\"", key));
  return {*value_->find(key), file_, fmt::format("\"{}\" of {}", key, where_)};
}

std::size_t CheckedJson::size() const {
  if (!value_->is_array()) fail("is not a list");
  return value_->size();
}

CheckedJson CheckedJson::element(std::size_t i, std::string_view what) const {
  if (i >= size()) fail("is too short");
  return {(*value_)[i], file_, fmt::format("{} {}", what, i)};
}

const std::string& CheckedJson::text() const {
  if (!value_->is_string()) fail("is not a text");
  return value_->get_ref<const std::string&>();
}

bool CheckedJson::flag() const {
  if (!value_->is_boolean()) fail("is neither true nor false");
  return value_->get<bool>();
}

std::int64_t CheckedJson::integer() const {
  const bool fits = value_->is_number_unsigned()
                        ? value_->get<std::uint64_t>() <= std::uint64_t{INT64_MAX}
                        : value_->is_number_integer();
  if (!fits) fail("is not an integer");
  return value_->get<std::int64_t>();
}

std::int64_t CheckedJson::size_value() const {
  const bool fits =
      value_->is_number_unsigned() && value_->get<std::uint64_t>() <= std::uint64_t{INT64_MAX};
  if (!fits) fail("is not a size");
  return value_->get<std::int64_t>();
}

std::size_t CheckedJson::index(std::size_t count) const {
  const std::int64_t value = size_value();
  if (static_cast<std::size_t>(value) >= count) {
    fail_format(file_, fmt::format("index: {} is {}, but there are {}", where_, value, count));
  }
  return static_cast<std::size_t>(value);
}

}  // namespace palimpsest::io_detail
