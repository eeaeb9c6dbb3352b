// SPDX-License-Identifier: Apache-2.0
// Internal: matrices transposed line by line, in registers of 32 bytes.
#pragma once

#include <cstddef>

#include "palimpsest/copy/transpose.hpp"

namespace palimpsest {

/// The number of columns of `item`-byte elements that are in registers at a time; 0 if the
/// processor lacks the instructions that the functions below need.
index_t columns_of_lines(std::size_t item);

/// Transposes as many elements as fill a line, from as many rows, at a time, and writes each line
/// of y once, streamed if t says so. If rows of y begin within a line, a streamed line is put
/// together from two squares. If rows of both sides are whole pages apart, neighbours fall into one
/// set of the caches; then squares of lines are visited along diagonals.
///
/// Shapes   rows of x a multiple of the elements of a line; fewer columns than columns_of_lines()
///          only where rows of x lie one after the other
/// Aliases  disjoint
/// Cost     one pass; 64 KiB of stack
void transpose_lines(std::size_t item, const Transposition& t);

/// The same for adjacent rows of y with at most 64 elements that do not fill lines.
///
/// Aliases  disjoint
/// Cost     one pass; 8 KiB of stack
void transpose_short_rows(std::size_t item, const Transposition& t);

}  // namespace palimpsest
