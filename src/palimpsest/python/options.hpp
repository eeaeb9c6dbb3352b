// SPDX-License-Identifier: Apache-2.0
// Internal: aggregates of options as keywords. headers.py lists their fields; the signature that
// help(), stubs and errors show is made of these and of the defaults of C++.
#pragma once

#include <array>
#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>

#include "options.inc"  // made by headers.py
#include "palimpsest/ops/transforms/nufft.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/convert.hpp"
#include "palimpsest/python/plan_object.hpp"
#include "palimpsest/solve/solve.hpp"

namespace palimpsest::python {

/// `visit(v, options)` calls `v(name, field)` for each field, in order.
template <class Options>
struct Fields;

/// At namespace scope, for an aggregate that a binding takes.
#define PALIMPSEST_OPTIONS(Name)      \
  template <>                         \
  struct Fields<Name> {               \
    template <class V, class O>       \
    static void visit(V& v, O& o) {   \
      PALIMPSEST_FIELDS_##Name(v, o); \
    }                                 \
  };

/// Two aggregates with fields that are keywords of one function.
template <class A, class B>
struct Both {
  A first;
  B second;
};
template <class A, class B>
struct Fields<Both<A, B>> {
  template <class V, class O>
  static void visit(V& v, O& o) {
    Fields<A>::visit(v, o.first);
    Fields<B>::visit(v, o.second);
  }
};

/// The name of a field in Python.
const char* keyword_of(const char* field);
/// An object of Python that threads without the lock of the interpreter may give up. It is cleared
/// at the end of the module: the garbage collector does not see the cycles that it is part of.
std::shared_ptr<GlobalObject> shared_object(nb::object object);
/// A callback of Python. Its exceptions end the solve and arrive as they are.
std::function<bool(const SolveInfo&)> as_callback(nb::handle f);
/// A callback that shows how far a solve is, then calls `callback`. None: nothing is shown.
std::function<bool(const SolveInfo&)> with_progress(nb::handle progress, int iterations,
                                                    std::function<bool(const SolveInfo&)> callback);

// -- fields as texts ----------------------------------------------------------------------------

template <class T>
constexpr bool is_optional = false;
template <class T>
constexpr bool is_optional<std::optional<T>> = true;
/// None stands for an empty value.
template <class T>
constexpr bool is_empty_by_none = std::same_as<T, DimMap> || std::same_as<T, Parameter>;
using Callback = std::function<bool(const SolveInfo&)>;

/// The type of a field as an annotation.
template <class T>
std::string annotation() {
  if constexpr (is_optional<T>) {
    return annotation<typename T::value_type>() + " | None";
  } else if constexpr (std::same_as<T, Callback>) {
    return "Callable[[SolveInfo], bool | None] | None";
  } else if constexpr (std::same_as<T, CheckpointOptions>) {
    return "str";
  } else if constexpr (requires { T::kName; }) {
    return T::kName;
  } else if constexpr (std::is_base_of_v<nb::handle, T>) {
    return nb::detail::make_caster<T>::Name.text;
  } else if constexpr (requires { From<T>::name; }) {
    return From<T>::name.text;
  } else if constexpr (std::same_as<T, bool>) {
    return "bool";
  } else if constexpr (std::integral<T>) {
    return "int";
  } else if constexpr (std::floating_point<T>) {
    return "float";
  } else {
    static_assert(std::same_as<T, std::string>,
                  "no annotation is known for the type of this field");
    return "str";
  }
}

std::string literal_of(double value);
[[noreturn]] void refuse_keyword(nb::handle object, const char* name, const char* expected);
template <class T>
std::string literal(const T& value) {
  if constexpr (is_optional<T>) {
    return value ? literal(*value) : "None";
  } else if constexpr (std::same_as<T, bool>) {
    return value ? "True" : "False";
  } else if constexpr (std::integral<T>) {
    return std::to_string(value);
  } else if constexpr (std::floating_point<T>) {
    return literal_of(value);
  } else if constexpr (requires { From<T>::shown(value); }) {
    return nb::cast<std::string>(nb::repr(From<T>::shown(value)));
  } else if constexpr (is_empty_by_none<T>) {
    return "None";
  } else if constexpr (std::same_as<T, Dims>) {
    std::string text;
    for (const ND& d : value) text += (text.empty() ? "'" : " ") + d.str();
    return text.empty() ? "()" : text + "'";
  } else if constexpr (requires { Names<T>::list; }) {
    return "'" + std::string(Names<T>::list[static_cast<std::size_t>(value)]) + "'";
  } else if constexpr (std::same_as<T, std::string>) {
    return "'" + value + "'";
  } else if constexpr (std::same_as<T, ND>) {
    return "'" + value.str() + "'";
  } else if constexpr (std::same_as<T, PerAxis>) {
    return literal_of(value[0]);
  } else if constexpr (requires { value.empty(); }) {
    return value.empty() ? "()" : "...";
  } else {
    return "None";
  }
}

/// Appends `name: type = default` of each field.
class SignatureWriter {
 public:
  explicit SignatureWriter(std::string& text) : text_(text) {}
  template <class T>
  void operator()(const char* field, const T& value) {
    const char* const name = keyword_of(field);
    const bool is_budget = std::string_view(name) == "budget";
    const std::string type = annotation<T>() + (is_empty_by_none<T> ? " | None" : "");
    add(name, is_budget ? "int | str | None" : type, literal(value));
    if constexpr (std::same_as<T, std::optional<CheckpointOptions>>) {
      const CheckpointOptions defaults;
      add("checkpoint_every_s", "float", literal_of(defaults.every_s));
      add("checkpoint_every_iterations", "int", std::to_string(defaults.every_iterations));
    }
    if constexpr (std::same_as<T, Callback>) add("progress", "Progress | None", "None");
  }

 private:
  void add(const char* name, const std::string& type, const std::string& value) {
    text_ += std::string(", ") + name + ": " + type + " = " + value;
  }

  std::string& text_;
};

// -- fields of a call ---------------------------------------------------------------------------

template <class T>
T value_of_keyword(nb::handle object, const char* name) {
  if constexpr (requires { From<T>::from(object); }) {
    return from_python<T>(object);
  } else if constexpr (std::same_as<T, bool>) {
    if (!PyBool_Check(object.ptr())) refuse_keyword(object, name, "a bool");
    return object.ptr() == Py_True;
  } else {
    T value{};
    if (!nb::try_cast<T>(object, value)) {
      refuse_keyword(object, name,
                     std::is_same_v<T, std::string> ? "a text"
                     : std::is_integral_v<T>        ? "an integer"
                                                    : "a number");
    }
    return value;
  }
}

/// The keywords of one call. Each is taken once; keywords that are left over are refused.
class KeywordReader {
 public:
  explicit KeywordReader(nb::kwargs given) : given_(std::move(given)) {}

  /// Reads a value. None stands for an absent optional, and for the default of any other field.
  template <class T>
  void operator()(const char* field, T& option) {
    const char* const name = keyword_of(field);
    const nb::object found = find_renamed(field, name);
    if constexpr (std::same_as<T, Callback>) {
      if (found.is_valid() && !found.is_none()) option = as_callback(found);
    } else if constexpr (std::same_as<T, std::optional<CheckpointOptions>>) {
      take_checkpoint(found, option);
    } else if constexpr (is_optional<T>) {
      if (found.is_valid()) take_optional(found, name, option);
    } else if (found.is_valid() && !found.is_none()) {
      option = value_of_keyword<T>(found, name);
    }
  }
  /// Not valid where the keyword was not given.
  nb::object find(const char* name);
  /// The same, where the field had the name `old` in an earlier release.
  nb::object find_renamed(std::string_view old, const char* name);
  /// TypeError naming the keywords that are left over, and all known ones.
  void expect_none_left(const char* who) const;

 private:
  template <class T>
  void take_optional(nb::handle found, const char* name, std::optional<T>& option) {
    if (found.is_none()) {
      option = std::nullopt;
    } else if (std::string_view(name) == "budget") {
      if constexpr (std::integral<T>) option = bytes_of(found);
    } else if (std::string_view(name) == "x0") {
      if constexpr (std::same_as<T, Tensor>) option = data_of(found);
    } else {
      option = value_of_keyword<T>(found, name);
    }
  }
  void take_checkpoint(nb::handle path, std::optional<CheckpointOptions>& option);

  nb::kwargs given_;
  std::vector<const char*> known_;
  std::size_t taken_ = 0;
};

template <class Options>
Options options_of(const char* who, nb::kwargs given) {
  KeywordReader reader(std::move(given));
  Options options;
  Fields<Options>::visit(reader, options);
  if constexpr (requires { options.take_words(); }) options.take_words();
  if constexpr (requires { options.callback, options.max_iterations; }) {
    options.callback =
        with_progress(reader.find("progress"), options.max_iterations, std::move(options.callback));
  } else if constexpr (requires { options.second.callback; }) {
    const int most = iterations_of(options.second.iterations, options.second.regularizers);
    options.second.callback =
        with_progress(reader.find("progress"), most, std::move(options.second.callback));
  }
  reader.expect_none_left(who);
  return options;
}

// -- functions ------------------------------------------------------------------------------------

/// An array or the type of one, as it was given.
struct TypeGiven : nb::handle {
  using nb::handle::handle;
};

}  // namespace palimpsest::python

namespace nanobind::detail {

template <>
struct type_caster<palimpsest::python::TypeGiven> {
  NB_TYPE_CASTER(palimpsest::python::TypeGiven, const_name("TensorType | ArrayLike"))
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    value = palimpsest::python::TypeGiven(source.ptr());
    return true;
  }
};

}  // namespace nanobind::detail

namespace palimpsest::python {

/// An argument in front of the options: its name, and its default if it has one.
struct Positional {
  Positional(const char* given) : name(given) {}
  template <class T>
  Positional(const char* given, T otherwise) : name(given), value(nb::cast(otherwise)) {}

  const char* name;
  nb::object value = {};
};

template <class T>
std::string signature_of(const Positional& p) {
  std::string text = std::string(p.name) + ": " + annotation<T>();
  if constexpr (std::same_as<T, DimMap>) text += " | None";
  if (p.value.is_valid()) return text + " = " + nb::cast<std::string>(nb::repr(p.value));
  return is_optional<T> ? text + " = None" : text;
}

/// The argument with a default, or without one for an object that is not valid.
template <std::uint32_t Flags>
nb::arg_v_t<Flags, false> with_default(const nb::arg_t<Flags, false>& named, nb::object value) {
  return {named, std::move(value)};
}
template <class T>
auto argument(const Positional& p) {
  if constexpr (is_optional<T>) {
    return with_default(nb::arg(p.name).none(), p.value.is_valid() ? p.value : nb::none());
  } else if constexpr (std::same_as<T, DimMap>) {
    return with_default(nb::arg(p.name).none(), p.value);
  } else {
    return with_default(nb::arg(p.name), p.value);
  }
}

/// Type that Python gets for a function's result.
template <class T>
struct ObjectFor {
  using Type = T;
};
template <class T>
std::string result_type() {
  if constexpr (requires { From<T>::name; }) {
    return kResultName<T>.text;
  } else if constexpr (requires { T::kName; } || std::is_arithmetic_v<T>) {
    return annotation<T>();
  } else {
    throw InternalError("[python] no annotation is known for the type of a result.");
  }
}

/// Binds `f(arguments.., options)` as `name(arguments.., *, fields of options)`. `result`: the type
/// of the result as an annotation; null: that of R.
template <class R, class... P>
void def_with_options(nb::module_& m, const char* name, R (*f)(P...),
                      std::initializer_list<Positional> names, const char* result = nullptr) {
  using Given = std::tuple<std::remove_cvref_t<P>...>;
  using Result = typename ObjectFor<R>::Type;
  constexpr std::size_t kFront = sizeof...(P) - 1;
  using Options = std::tuple_element_t<kFront, Given>;
  if (names.size() != kFront) throw InternalError("[python] wrong number of names of arguments.");
  const Positional* const front = names.begin();
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    std::string text = std::string("def ") + name + "(";
    ((text += (I ? ", " : "") + signature_of<std::tuple_element_t<I, Given>>(front[I])), ...);
    text += kFront ? ", *" : "*";
    const Options defaults;
    SignatureWriter writer(text);
    Fields<Options>::visit(writer, defaults);
    text += ") -> " + (result ? result : result_type<Result>());
    m.def(
        name,
        [name, f](std::tuple_element_t<I, Given>... given, nb::kwargs keywords) -> Result {
          const auto options = options_of<Options>(name, std::move(keywords));
          if constexpr (std::same_as<Result, R>) {
            return f(given..., options);
          } else {
            return {f(given..., options)};
          }
        },
        argument<std::tuple_element_t<I, Given>>(front[I])..., "options"_a, nb::sig(text.c_str()));
  }
  (std::make_index_sequence<kFront>());
}

}  // namespace palimpsest::python
