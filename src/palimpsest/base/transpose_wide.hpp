// SPDX-License-Identifier: Apache-2.0
// Internal: squares of elements exchanged in registers of 32 bytes.
#pragma once

#include <cstddef>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// Rows of x, as many as elements fit into 32 bytes and x_row apart, become columns: element j of row k
/// comes to y + j y_row, k-th place. Takes whole squares of the n elements of a row; returns how many
/// elements that are.
using ExchangeSquares = index_t (*)(const std::byte* x, index_t x_row, index_t n, std::byte* y,
                                    index_t y_row);
/// For elements of 4, 8 or 16 bytes; null if the processor has no such registers.
ExchangeSquares wide_squares(std::size_t item);

}  // namespace palimpsest
