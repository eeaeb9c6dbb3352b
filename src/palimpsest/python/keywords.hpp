// SPDX-License-Identifier: Apache-2.0
// Internal: options of a function as keywords, for functions that have many.
#pragma once

#include <set>
#include <type_traits>

#include "palimpsest/python/convert.hpp"
#include "palimpsest/python/plan_object.hpp"

namespace palimpsest::python {

template <class T>
T value_of_keyword(nb::handle object, const char* name) {
  if constexpr (requires { From<T>::from(object); }) {
    return from_python<T>(object);
  } else {
    T value{};
    if (!nb::try_cast<T>(object, value)) {
      throw TypeError("[" + std::string(name) + "] got " + class_name(object) + ", expected " +
                      (std::is_same_v<T, bool>          ? "a bool"
                       : std::is_same_v<T, std::string> ? "a text"
                       : std::is_integral_v<T>          ? "an integer"
                                                        : "a number") +
                      ".");
    }
    return value;
  }
}

/// The keywords of one call. Each option is taken once; what is left over is refused.
class Keywords {
 public:
  Keywords(const char* who, nb::kwargs given) : who_(who), given_(std::move(given)) {}

  /// Sets the option where the keyword was given. None leaves it as it is.
  template <class T>
  void take(const char* name, T& option) {
    if (const nb::object found = find(name); found.is_valid() && !found.is_none()) {
      option = value_of_keyword<T>(found, name);
    }
  }
  template <class T>
  void take(const char* name, std::optional<T>& option) {
    if (const nb::object found = find(name); found.is_valid() && !found.is_none()) {
      option = value_of_keyword<T>(found, name);
    }
  }
  /// Not valid where the keyword was not given, or is None.
  nb::object take(const char* name) {
    nb::object found = find(name);
    return found.is_valid() && found.is_none() ? nb::object() : found;
  }
  /// TypeError naming what is left over, and all that there is.
  void expect_none_left() const {
    for (const auto& [key, value] : given_) {
      const std::string name = nb::cast<std::string>(key);
      if (known_.contains(name)) continue;
      std::string all;
      for (const std::string& known : known_) all += (all.empty() ? "" : ", ") + known;
      throw TypeError("[" + std::string(who_) + "] got an unknown option '" + name +
                      "', expected one of: " + all + ".");
    }
  }

 private:
  nb::object find(const char* name) {
    known_.insert(name);
    return given_.contains(name) ? nb::object(given_[name]) : nb::object();
  }

  const char* who_;
  nb::kwargs given_;
  std::set<std::string> known_;
};

}  // namespace palimpsest::python
