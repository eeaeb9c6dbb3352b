// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/tensor/checked_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/failure.hpp"

namespace palimpsest::io_detail {

struct Json::Object {
  std::vector<std::string> keys;
  Array values;
};

Json::Json() = default;
Json::Json(Value value) : value_(std::move(value)) {}
Json::Json(const Json& other) {
  std::visit(
      [this](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_trivially_copyable_v<T>) {
          value_ = value;
        } else {
          value_ = std::make_unique<typename T::element_type>(*value);
        }
      },
      other.value_);
}
Json::Json(Json&& other) noexcept : value_(std::exchange(other.value_, Value())) {}
Json& Json::operator=(Json other) noexcept {
  value_.swap(other.value_);
  return *this;
}
Json::~Json() = default;

void Json::set(bool value) { value_ = value; }
void Json::set(std::int64_t value) { value_ = value; }
void Json::set(std::uint64_t value) { value_ = value; }
Json::Json(double value) : value_(value) {}
Json::Json(std::string text) : value_(std::make_unique<std::string>(std::move(text))) {}
Json::Json(const char* text) : Json(std::string(text)) {}
Json::Json(std::initializer_list<Member> members) : Json(object()) {
  for (const auto& [key, value] : members) (*this)[key] = value;
}
Json Json::object() { return Json(Value(std::make_unique<Object>())); }
Json Json::array(std::initializer_list<Json> values) {
  return Json(Value(std::make_unique<Array>(values)));
}

bool Json::boolean() const { return std::get<bool>(value_); }
std::int64_t Json::integer() const {
  return is_size() ? static_cast<std::int64_t>(size_value()) : std::get<std::int64_t>(value_);
}
std::uint64_t Json::size_value() const { return std::get<std::uint64_t>(value_); }
double Json::number() const {
  if (is<double>()) return std::get<double>(value_);
  return is_size() ? static_cast<double>(size_value()) : static_cast<double>(integer());
}
const std::string& Json::text() const { return *std::get<std::unique_ptr<std::string>>(value_); }
const std::vector<std::string>& Json::keys() const {
  return std::get<std::unique_ptr<Object>>(value_)->keys;
}
const Json::Array& Json::values() const {
  return is_object() ? std::get<std::unique_ptr<Object>>(value_)->values
                     : *std::get<std::unique_ptr<Array>>(value_);
}

std::size_t Json::size() const { return is_array() || is_object() ? values().size() : 0; }
const Json& Json::operator[](std::size_t i) const { return values()[i]; }
Json& Json::operator[](std::size_t i) { return const_cast<Json&>(std::as_const(*this)[i]); }

const Json* Json::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  const auto at = std::find(keys().begin(), keys().end(), key);
  return at == keys().end() ? nullptr : &values()[static_cast<std::size_t>(at - keys().begin())];
}
Json& Json::operator[](std::string_view key) {
  if (is_null()) *this = object();
  if (const Json* known = find(key)) return const_cast<Json&>(*known);
  Object& members = *std::get<std::unique_ptr<Object>>(value_);
  members.keys.emplace_back(key);
  return members.values.emplace_back();
}
void Json::push_back(Json value) {
  if (is_null()) *this = array();
  std::get<std::unique_ptr<Array>>(value_)->push_back(std::move(value));
}

/// Builds a value from the events of a parser; each function returns whether to go on.
class JsonParser {
 public:
  using Library = nlohmann::ordered_json;

  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) { return add(value); }
  bool number_float(double value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Library::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool key(std::string& value) {
    next_ = &(*open_.back())[value];
    return true;
  }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) {
    return false;
  }

  static Json parse(std::string_view text) {
    JsonParser parser;
    if (!Library::sax_parse(text, &parser)) return Json(Json::Value(Json::Discarded()));
    return std::move(parser.root_);
  }
  static Library library_value(const Json& json) {
    if (json.is_array()) {
      Library result = Library::array();
      for (const Json& value : json.values()) result.push_back(library_value(value));
      return result;
    }
    if (json.is_object()) {
      Library result = Library::object();
      for (std::size_t i = 0; i < json.size(); ++i) {
        result.emplace(json.keys()[i], library_value(json[i]));
      }
      return result;
    }
    if (json.is_string()) return json.text();
    if (json.is_boolean()) return json.boolean();
    if (json.is_size()) return json.size_value();
    if (json.is_integer()) return json.integer();
    return json.is_number() ? Library(json.number()) : Library();
  }

 private:
  static constexpr std::size_t kDeepest = 1000;

  Json* put(Json&& value) {
    if (open_.empty()) return &(root_ = std::move(value));
    if (open_.back()->is_object()) return &(*next_ = std::move(value));
    open_.back()->push_back(std::move(value));
    return &(*open_.back())[open_.back()->size() - 1];
  }
  bool add(Json&& value) {
    put(std::move(value));
    return true;
  }
  // Values that are open stay where they are: only the innermost one grows.
  bool open(Json&& value) {
    open_.push_back(put(std::move(value)));
    return open_.size() <= kDeepest;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  Json root_;
  std::vector<Json*> open_;
  Json* next_ = nullptr;  // the member of the innermost object that has its key only
};

Json parse_json(std::string_view text) { return JsonParser::parse(text); }
std::string text_of_json(const Json& json, int indent) {
  try {
    return JsonParser::library_value(json).dump(indent);
  } catch (const nlohmann::detail::exception& error) {
    throw FormatError(std::string("a text is not UTF-8: ") + error.what());
  }
}

void CheckedJson::fail(std::string_view what) const {
  fail_format(file_, fmt::format("manifest: {} {}", where_, what));
}

bool CheckedJson::has(const char* key) const { return value_->find(key) != nullptr; }

CheckedJson CheckedJson::at(const char* key) const {
  const Json* value = value_->find(key);
  if (!value) fail(fmt::format("has no \"{}\"", key));
  return {*value, file_, fmt::format("\"{}\" of {}", key, where_)};
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
  return value_->text();
}

bool CheckedJson::flag() const {
  if (!value_->is_boolean()) fail("is neither true nor false");
  return value_->boolean();
}

std::int64_t CheckedJson::integer() const {
  const bool fits = value_->is_integer() &&
                    (!value_->is_size() || value_->size_value() <= std::uint64_t{INT64_MAX});
  if (!fits) fail("is not an integer");
  return value_->integer();
}

std::int64_t CheckedJson::size_value() const {
  if (!value_->is_size() || value_->size_value() > std::uint64_t{INT64_MAX}) fail("is not a size");
  return value_->integer();
}

std::size_t CheckedJson::index(std::size_t count) const {
  const std::int64_t value = size_value();
  if (static_cast<std::size_t>(value) >= count) {
    fail_format(file_, fmt::format("index: {} is {}, but there are {}", where_, value, count));
  }
  return static_cast<std::size_t>(value);
}

}  // namespace palimpsest::io_detail
