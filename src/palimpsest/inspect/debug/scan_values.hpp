// SPDX-License-Identifier: Apache-2.0
// Internal: the search for numbers that should not be there.
#pragma once

#include <string>
#include <string_view>

#include "palimpsest/base/view.hpp"

namespace palimpsest {

enum class BadNumber { none, nan, infinite, big };
/// `NaN`, `infinity`, `a big value`.
std::string_view name_of(BadNumber kind);

/// The kinds of numbers that count as bad.
struct NumberLimits {
  bool nan = true;
  bool infinite = true;
  bool big = false;
  double largest = 0;  // of a big one, in absolute value
};

/// Result of a scan. `kind`, `index` and `value` are those of the first bad number, row-major.
struct NumberScan {
  index_t bad = 0;  // elements
  index_t elements = 0;
  BadNumber kind = BadNumber::none;
  Extents index;
  std::string value;
  explicit operator bool() const { return bad > 0; }
};

/// Looks at every element; a complex one is bad if a part is. Integers and bools never are.
NumberScan scan_numbers(const ConstView& view, const NumberLimits& limits);

}  // namespace palimpsest
