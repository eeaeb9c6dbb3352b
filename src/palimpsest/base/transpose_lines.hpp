// SPDX-License-Identifier: Apache-2.0
// Internal: matrices transposed line by line, in registers of 32 bytes.
#pragma once

#include <cstddef>

#include "palimpsest/base/transpose.hpp"

namespace palimpsest {

/// How many columns of elements of `item` bytes transpose_lines takes at a time; 0 if the processor
/// does not have what it needs.
index_t columns_of_lines(std::size_t item);

/// Transposes as many elements as fill a line, from as many rows, at a time, and writes each line of y
/// once: streamed if t says so; then rows of y that begin within a line go through a buffer. Where rows
/// of both sides are whole pages apart, so that neighbours fall into one set of the caches, squares of
/// lines are visited along diagonals.
///
/// Shapes   rows of x a multiple of the elements of a line, its columns one of columns_of_lines()
/// Aliases  disjoint
/// Cost     one pass; 20 KiB of stack
void transpose_lines(std::size_t item, const Transposition& t);

}  // namespace palimpsest
