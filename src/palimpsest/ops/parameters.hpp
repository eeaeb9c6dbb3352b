// SPDX-License-Identifier: Apache-2.0
// Internal: parameters of ops as data. An op lists its parameters once, in the order of its
// constructor's arguments, as typed fields. Its name, its text and its restoration follow:
//
//   class PartOf final : public Declared<PartOf> {
//    public:
//     PartOf(std::size_t axis, std::size_t position);
//     static constexpr auto declaration() {
//       return declare("PartOf", axis_field("axis", &PartOf::axis_),
//                      field("position", &PartOf::position_));
//     }
//
// An op whose fields can contradict each other has `static std::string misfit(arguments)`: the
// fault, or an empty text.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "palimpsest/graph/op.hpp"
#include "palimpsest/graph/op_registry.hpp"
#include "palimpsest/ops/parameter_text.hpp"

namespace palimpsest {

struct Contraction;
class GriddingPlan;
struct Stencil;

namespace ops {

/// The argument of Op::pullback(): cotangents of the outputs.
using CotangentSpan = std::span<const Variable>;
/// The argument of Op::infer_shapes(): extents of the inputs.
using ExtentsSpan = std::span<const Extents>;

// Texts of values, and values of texts. A text takes all that is left. Types of ops have such
// functions where they are defined.
std::string written(index_t value);
std::string written(std::size_t value);
std::string written(bool value);
std::string written(double value);
std::string written(DType value);
std::string written(const Device& value);
std::string written(const std::string& value);
std::string written(std::span<const index_t> values);
std::string written(const ExtentPrograms& values);
std::string written(const Contraction& value);
std::string written(const GriddingPlan& value);
std::string written(const Stencil& value);
void read(ParameterText& text, index_t& value);
void read(ParameterText& text, std::size_t& value);
void read(ParameterText& text, bool& value);
void read(ParameterText& text, double& value);
void read(ParameterText& text, DType& value);
void read(ParameterText& text, Device& value);
void read(ParameterText& text, std::string& value);
void read(ParameterText& text, Extents& values);
void read(ParameterText& text, ExtentPrograms& values);
void read(ParameterText& text, Contraction& value);
void read(ParameterText& text, Stencil& value);
/// FormatError: an axis that no array has; axes that are not sorted.
void check_axis(std::size_t axis);
void check_axes(const Axes& axes);

/// A type without a default has a specialization.
template <class T>
T read_value(ParameterText& text) {
  T value{};
  read(text, value);
  return value;
}

namespace fields {

/// A field that does not appear in the name.
struct InText {
  template <class Op>
  void add_name(const Op&, std::string&) const {}
  void add_names(std::vector<std::string>&) const {}
};
/// A field that is a part of the name only.
struct InName {
  template <class Op>
  void add_text(const Op&, std::string&) const {}
};
/// Adds one entry of a list to a text.
void add_entry(std::string& text, std::string_view key, std::string_view value);
/// Replaces each name by those that it becomes with each of the words behind it.
void append_each(std::vector<std::string>& names, std::span<const std::string_view> words);
/// Removes the longest of the words that the name starts with, and returns its position in `words`.
/// Errors  FormatError: none
std::size_t take_longest(std::string_view& name, std::span<const std::string_view> words);

/// `key=value`; without a key, the value.
template <class Op, class T>
struct Field : InText {
  std::string_view key;
  T Op::*member;
  void (*check)(const T&) = nullptr;

  void add_text(const Op& op, std::string& text) const {
    add_entry(text, key, written(op.*member));
  }
  T read(std::string_view&, ParameterText& text) const {
    text.entry(key);
    T value = read_value<T>(text);
    if (check) check(value);
    return value;
  }
};

/// A word if it holds, and nothing if it does not.
template <class Op>
struct Flag : InText {
  std::string_view word;
  bool Op::*member;

  void add_text(const Op& op, std::string& text) const {
    if (op.*member) add_entry(text, "", word);
  }
  bool read(std::string_view&, ParameterText& text) const { return text.take_entry(word); }
};

/// Words for the values of an enumeration or of a bool.
template <class T, std::size_t kCount>
struct Words {
  std::array<std::pair<std::string_view, T>, kCount> words;

  std::string_view word_of(T value) const {
    std::size_t k = 0;
    while (k + 1 < kCount && words[k].second != value) ++k;
    return words[k].first;
  }
  std::array<std::string_view, kCount> all_words() const {
    std::array<std::string_view, kCount> result;
    for (std::size_t k = 0; k < kCount; ++k) result[k] = words[k].first;
    return result;
  }
};

/// `key=word`. A value without a key and with an empty word leaves no trace.
template <class Op, class T, std::size_t kCount>
struct Choice : InText, Words<T, kCount> {
  std::string_view key;
  T Op::*member;

  void add_text(const Op& op, std::string& text) const {
    const std::string_view word = this->word_of(op.*member);
    if (!word.empty()) add_entry(text, key, word);
  }
  T read(std::string_view&, ParameterText& text) const {
    return this->words[text.entry_among(key, this->all_words())].second;
  }
};

/// A value that decides a part of the name.
template <class Op, class T, std::size_t kCount>
struct Named : InName, Words<T, kCount> {
  T Op::*member;

  void add_name(const Op& op, std::string& name) const { name += this->word_of(op.*member); }
  void add_names(std::vector<std::string>& names) const { append_each(names, this->all_words()); }
  // The name is one of those that the declaration spells, so the longest part that fits is right.
  T read(std::string_view& name, ParameterText&) const {
    return this->words[take_longest(name, this->all_words())].second;
  }
};

}  // namespace fields

/// `key=value`; without a key, the value.
template <class Op, class T>
constexpr fields::Field<Op, T> field(std::string_view key, T Op::*member) {
  return {{}, key, member};
}
template <class Op, class T>
constexpr fields::Field<Op, T> field(T Op::*member) {
  return {{}, "", member};
}
/// An axis, counted from the front.
template <class Op>
constexpr fields::Field<Op, std::size_t> axis_field(std::string_view key, std::size_t Op::*member) {
  return {{}, key, member, [](const std::size_t& axis) { check_axis(axis); }};
}
/// Axes, counted from the front, sorted, each once.
template <class Op>
constexpr fields::Field<Op, Axes> axes_field(Axes Op::*member) {
  return {{}, "axes", member, [](const Axes& axes) { check_axes(axes); }};
}
template <class Op>
constexpr fields::Flag<Op> flag(std::string_view word, bool Op::*member) {
  return {{}, word, member};
}
template <class Op, class T, std::size_t kCount>
constexpr fields::Choice<Op, T, kCount> choice(
    std::string_view key, T Op::*member, const std::pair<std::string_view, T> (&words)[kCount]) {
  return {{}, {std::to_array(words)}, key, member};
}
template <class Op, class T, std::size_t kCount>
constexpr fields::Named<Op, T, kCount> named(
    T Op::*member, const std::pair<std::string_view, T> (&words)[kCount]) {
  return {{}, {std::to_array(words)}, member};
}
/// True if the op works in place; then its name ends with InPlace.
template <class Op>
constexpr fields::Named<Op, bool, 2> in_place_field(bool Op::*member) {
  return named<Op, bool, 2>(member, {{"", false}, {"InPlace", true}});
}

/// A name and fields, as a function that passes them on: tuples take much longer to compile.
template <class... Fields>
constexpr auto declare(std::string_view name, Fields... fields) {
  return [=](auto&& use) { return use(name, fields...); };
}

/// The base of an op with a declaration. `Base`: Op or a class derived from it.
template <class T, class Base = Op>
class Declared : public Base {
 public:
  using Base::Base;
  std::string name() const final {
    static constexpr auto declaration = T::declaration();
    return declaration([this](std::string_view name, const auto&... f) {
      std::string result(name);
      (f.add_name(self(), result), ...);
      return result;
    });
  }
  std::string parameters() const final {
    static constexpr auto declaration = T::declaration();
    return declaration([this](std::string_view, const auto&... f) {
      std::string result;
      (f.add_text(self(), result), ...);
      return result;
    });
  }

 private:
  const T& self() const { return static_cast<const T&>(*this); }
};

/// The op of a name and a text that an op of this type wrote.
/// Errors  FormatError: another text
template <class T>
OpPtr restored(std::string_view name, ParameterText& text) {
  static constexpr auto declaration = T::declaration();
  return declaration([&](std::string_view first, const auto&... f) -> OpPtr {
    name.remove_prefix(first.size());
    // In braces the fields are read from left to right. All are held by the same code, as Op*.
    if constexpr (requires { T::misfit(f.read(name, text)...); }) {
      std::tuple values{f.read(name, text)...};
      const std::string reason = std::apply(T::misfit, values);
      if (!reason.empty()) throw FormatError(reason);
      return std::apply([](auto&... v) { return OpPtr(static_cast<Op*>(new T(std::move(v)...))); },
                        values);
    } else {
      return OpPtr(static_cast<Op*>(new T{f.read(name, text)...}));
    }
  });
}

/// Registers the function that makes an op of its text, under each of these names.
void register_names(std::vector<std::string> names,
                    OpPtr (*restore)(std::string_view name, ParameterText& text));

/// Enrols an op under each of its names. An op whose name or text follows from a part of it has
/// `static std::vector<std::string> names()` and `static OpPtr restored(name, ParameterText&)`.
template <class T>
void register_type() {
  if constexpr (requires { T::names(); }) {
    register_names(T::names(), T::restored);
  } else {
    static constexpr auto declaration = T::declaration();
    std::vector<std::string> names;
    declaration([&names](std::string_view name, const auto&... f) {
      names.emplace_back(name);
      (f.add_names(names), ...);
    });
    register_names(std::move(names), restored<T>);
  }
}

}  // namespace ops
}  // namespace palimpsest
