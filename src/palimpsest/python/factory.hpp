// SPDX-License-Identifier: Apache-2.0
// Internal: functions of C++ whose last argument is an aggregate of options. Its fields are
// keywords with the types and defaults of C++.
#pragma once

#include <tuple>

#include "palimpsest/python/options.hpp"

namespace palimpsest::python {

/// An argument in front of the options: its name, and its default if it has one.
struct Positional {
  Positional(const char* given) : name(given) {}
  template <class T>
  Positional(const char* given, T otherwise) : name(given), value(nb::cast(otherwise)) {}

  const char* name;
  nb::object value = {};
};

/// A value of an enumeration by its name. Other objects than texts are of the wrong type.
template <class E>
struct Named {
  E value;
  operator E() const { return value; }
};
template <class T>
using Bound = std::conditional_t < requires {
  Names<T>::list;
}
, Named<T>, T > ;

template <class T>
struct FieldOf {
  const char* name;
  T* value;
};

}  // namespace palimpsest::python

template <class E>
struct nanobind::detail::type_caster<palimpsest::python::Named<E>>
    : palimpsest::python::LazyCaster<E> {
  using Value = palimpsest::python::Named<E>;
  template <class>
  using Cast = Value;
  bool from_python(handle object, std::uint8_t flags, cleanup_list* cleanup) noexcept {
    return PyUnicode_Check(object.ptr()) &&
           palimpsest::python::LazyCaster<E>::from_python(object, flags, cleanup);
  }
  operator Value() { return {palimpsest::python::From<E>::from(this->source)}; }
};

namespace palimpsest::python {

/// The default of a field as an object of Python.
template <class T>
nb::object default_object(const T& value) {
  if constexpr (is_optional<T>) {
    if (value) throw InternalError("[python] an optional field has a default.");
    return nb::none();
  } else if constexpr (requires { Names<T>::list; }) {
    return nb::cast(Names<T>::list[static_cast<std::size_t>(value)]);
  } else if constexpr (requires { From<T>::shown(value); }) {
    return From<T>::shown(value);
  } else if constexpr (std::same_as<T, Dims>) {
    std::string text;
    for (const ND& d : value) text += (text.empty() ? "" : " ") + d.str();
    return value.empty() ? nb::object(nb::make_tuple()) : nb::cast(text);
  } else if constexpr (std::same_as<T, ND>) {
    return nb::cast(value.str());
  } else if constexpr (std::same_as<T, Parameter> || std::same_as<T, DimMap>) {
    return nb::none();  // they are empty
  } else {
    return nb::cast(value);
  }
}

/// The argument with a default, or without one for an object that is not valid.
template <std::uint32_t Flags>
nb::arg_v_t<Flags, false> with_default(const nb::arg_t<Flags, false>& named, nb::object value) {
  return {named, std::move(value)};
}
/// An argument of nanobind; `absent`: None stands for a value that is not there.
template <class T, bool absent = is_optional<T> || std::same_as<T, DimMap>>
auto argument(const Positional& p) {
  if constexpr (absent) {
    return with_default(nb::arg(p.name).none(), p.value);
  } else {
    return with_default(nb::arg(p.name), p.value);
  }
}
template <class T>
auto argument_of(const FieldOf<T>& field) {
  constexpr bool absent = is_optional<T> || std::same_as<T, DimMap> || std::same_as<T, Parameter>;
  return argument<T, absent>({keyword_of(field.name), default_object(*field.value)});
}

/// Type that Python gets for a function's result.
template <class T>
struct ObjectFor {
  using Type = T;
};

/// Binds `f(arguments.., options)` as `name(arguments.., *, fields of options)`.
template <class R, class... P>
void def_factory(nb::module_& m, const char* name, R (*f)(P...),
                 const Positional (&names)[sizeof...(P) - 1], const char* doc = "") {
  using Given = std::tuple<std::remove_cvref_t<P>...>;
  using Options = std::tuple_element_t<sizeof...(P) - 1, Given>;
  static constexpr auto fields_of = [](Options& options) {
    return Fields<Options>::tuple(
        []<class T>(const char* field, T& value) {
          return FieldOf<T>{field, &value};
        },
        options);
  };
  Options defaults;
  const auto define = [&]<std::size_t... I>(std::index_sequence<I...>) {
    std::apply(
        [&]<class... F>(const FieldOf<F>&... field) {
          m.def(
              name,
              [f](std::tuple_element_t<I, Given>... given, Bound<F>... values) ->
              typename ObjectFor<R>::Type {
                Options options;
                std::apply([&](const auto&... to) { ((*to.value = std::move(values)), ...); },
                           fields_of(options));
                return {f(given..., options)};
              },
              argument<std::tuple_element_t<I, Given>>(names[I])..., nb::kw_only(),
              argument_of(field)..., doc);
        },
        fields_of(defaults));
  };
  define(std::make_index_sequence<sizeof...(P) - 1>());
}

}  // namespace palimpsest::python
