// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>
#include <span>

#include "palimpsest/base/view.hpp"

namespace palimpsest {

/// Bytes of scratch for a matrix of these extents.
std::size_t singular_vectors_scratch(DType dtype, index_t rows, index_t columns);

/// a = u diag(s) vh for each matrix of the last two axes, in double precision. A matrix with an
/// element that is not finite gives NaN.
///
/// Shapes   a (.., rows, columns), out (.., k, rows + 1 + columns), k the smaller side: row i is
///          column i of u, s_i and row i of vh; s descends
void singular_vectors(const ConstView& a, const MutableView& out, std::span<std::byte> scratch);

}  // namespace palimpsest
