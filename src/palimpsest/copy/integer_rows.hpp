// SPDX-License-Identifier: Apache-2.0
// Internal: casts of rows of floating-point numbers to integers.
#pragma once

#include <cstddef>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// Casts n dense numbers at x to dense integers at y. `careful` does the same for pieces with
/// numbers whose integer parts do not fit a signed integer of 32 bits (64 for wider results).
using IntegerRow = void (*)(const std::byte* x, std::byte* y, index_t n,
                            void (*careful)(const std::byte* x, std::byte* y, index_t n));

/// The row for numbers of 4 or 8 bytes and integers of 1, 2, 4 or 8 bytes, signed or not, on the
/// vectors of this processor.
IntegerRow integer_row(std::size_t number_bytes, std::size_t integer_bytes);

}  // namespace palimpsest
