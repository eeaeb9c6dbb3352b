// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/inspect/debug/scan_values.hpp"

#include <fmt/format.h>

#include <cmath>

namespace palimpsest {
namespace {

BadNumber bad_number_of(double x, const NumberLimits& limits) {
  if (std::isnan(x)) return limits.nan ? BadNumber::nan : BadNumber::none;
  if (std::isinf(x)) return limits.infinite ? BadNumber::infinite : BadNumber::none;
  return limits.big && std::abs(x) > limits.largest ? BadNumber::big : BadNumber::none;
}

template <class T>
BadNumber bad_number_of(const std::complex<T>& z, const NumberLimits& limits) {
  const BadNumber real = bad_number_of(static_cast<double>(z.real()), limits);
  return real != BadNumber::none ? real : bad_number_of(static_cast<double>(z.imag()), limits);
}

std::string written(double x) { return fmt::format("{}", x); }
template <class T>
std::string written(const std::complex<T>& z) {
  return fmt::format("{}{:+}j", z.real(), z.imag());
}

// Calls visit(element) in row-major order until it has seen them all; `index` is that of the
// element.
template <class T, class Visit>
void for_each_element(const ConstView& view, Extents& index, Visit visit) {
  index = Extents(view.rank(), 0);
  for (index_t extent : view.extents) {
    if (extent == 0) return;
  }
  const T* element = static_cast<const T*>(view.data);
  for (;;) {
    visit(*element);
    std::size_t axis = view.rank();
    while (axis > 0) {
      --axis;
      element += view.strides[axis];
      if (++index[axis] < view.extents[axis]) break;
      element -= view.strides[axis] * view.extents[axis];
      index[axis] = 0;
      if (axis == 0) return;
    }
    if (view.rank() == 0) return;
  }
}

}  // namespace

std::string_view name_of(BadNumber kind) {
  static constexpr std::string_view kNames[] = {"nothing", "NaN", "infinity", "a big value"};
  return kNames[static_cast<std::size_t>(kind)];
}

NumberScan scan_numbers(const ConstView& view, const NumberLimits& limits) {
  NumberScan scan;
  if (!is_inexact(view.dtype)) return scan;
  visit_inexact(view.dtype, "scan_numbers", [&](auto tag) {
    using T = typename decltype(tag)::type;
    Extents index;
    for_each_element<T>(view, index, [&](const T& element) {
      ++scan.elements;
      const BadNumber kind = bad_number_of(element, limits);
      if (kind == BadNumber::none) return;
      if (++scan.bad > 1) return;
      scan.kind = kind;
      scan.index = index;
      scan.value = written(element);
    });
  });
  return scan;
}

}  // namespace palimpsest
