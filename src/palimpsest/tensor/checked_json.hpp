// SPDX-License-Identifier: Apache-2.0
// Internal: JSON of files. The library that parses and prints it is included in checked_json.cpp
// only: each unit that includes it takes two seconds more to compile.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace palimpsest::io_detail {

/// A value of JSON; null at first. Objects keep the order of their members.
class Json {
 public:
  struct Member;

  Json();
  Json(std::nullptr_t) : Json() {}
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(Json other) noexcept;
  ~Json();

  template <std::same_as<bool> T>
  Json(T value) : Json() {
    set(value);
  }
  template <std::signed_integral T>
  Json(T value) : Json() {
    set(std::int64_t{value});
  }
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) Json(T value) : Json() { set(std::uint64_t{value}); }
  Json(double value);
  Json(std::string text);
  Json(const char* text);
  /// An array.
  template <class T>
  Json(const std::vector<T>& values) : Json(array()) {
    for (const T& value : values) push_back(value);
  }
  /// An object.
  Json(std::initializer_list<Member> members);
  static Json object();
  static Json array(std::initializer_list<Json> values = {});

  bool is_null() const { return is<std::monostate>(); }
  bool is_boolean() const { return is<bool>(); }
  bool is_integer() const { return is<std::int64_t>() || is_size(); }
  /// An integer that is not negative, in a parsed text.
  bool is_size() const { return is<std::uint64_t>(); }
  bool is_number() const { return is<double>() || is_integer(); }
  bool is_string() const { return is<std::unique_ptr<std::string>>(); }
  bool is_array() const { return is<std::unique_ptr<Array>>(); }
  bool is_object() const { return is<std::unique_ptr<Object>>(); }
  /// What is not JSON.
  bool is_discarded() const { return is<Discarded>(); }

  // Preconditions: they are of these kinds.
  bool boolean() const;
  std::int64_t integer() const;
  std::uint64_t size_value() const;
  /// Of any number.
  double number() const;
  const std::string& text() const;
  /// Of an object, in the order of its values.
  const std::vector<std::string>& keys() const;

  /// Of an array or an object; otherwise none.
  std::size_t size() const;
  const Json& operator[](std::size_t i) const;
  Json& operator[](std::size_t i);
  /// The member of an object, or null if there is none.
  const Json* find(std::string_view key) const;
  /// The same, made if there is none. Null becomes an object.
  Json& operator[](std::string_view key);
  /// To an array. Null becomes one.
  void push_back(Json value);

 private:
  friend class JsonParser;
  using Array = std::vector<Json>;
  struct Object;
  struct Discarded {};
  using Value = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double,
                             std::unique_ptr<std::string>, std::unique_ptr<Array>,
                             std::unique_ptr<Object>, Discarded>;

  explicit Json(Value value);
  void set(bool value);
  void set(std::int64_t value);
  void set(std::uint64_t value);
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(value_);
  }
  const Array& values() const;

  Value value_;
};

struct Json::Member {
  std::string key;
  Json value;
};

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
