// SPDX-License-Identifier: Apache-2.0
// Internal: lists of numbers as arguments.
#pragma once

#include "palimpsest/python/convert.hpp"

namespace palimpsest::python {

/// Axes of an array, or numbers along x, y and z.
template <class T>
struct NumbersAlongAxes {
  static std::vector<T> from(nb::handle object) {
    std::vector<T> numbers;
    if (nb::try_cast<std::vector<T>>(object, numbers)) return numbers;
    throw TypeError("got " + class_name(object) + ", expected a list of numbers.");
  }
};
template <>
struct From<std::vector<index_t>> : NumbersAlongAxes<index_t> {
  static constexpr auto name = nb::detail::const_name("Sequence[int]");
};
template <>
struct From<std::vector<double>> : NumbersAlongAxes<double> {
  static constexpr auto name = nb::detail::const_name("Sequence[float]");
};

}  // namespace palimpsest::python
