// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "palimpsest/kernels/elementwise/elementwise.hpp"

namespace palimpsest {

/// y = x at offset `before` per axis; other elements are those at `value`, which has y's dtype.
///
/// Shapes   before + extents of x <= extents of y, per axis
/// Aliases  disjoint
/// Cost     every element of y is written once
void run_pad(const ConstView& x, std::span<const index_t> before, const void* value,
             const MutableView& y);

/// Source of an element at position i, which may lie outside an array of n elements.
enum class PadRule : std::uint8_t {
  edge,     // the nearest element
  wrap,     // element i modulo n
  reflect,  // mirrored at the first and the last element, which are not repeated
};
index_t source_of(PadRule rule, index_t i, index_t n);

/// y = x at offset `before` per axis, other elements by the rule.
///
/// Shapes   before + extents of x <= extents of y, per axis; no axis of x is empty
/// Aliases  disjoint
/// Cost     every element of y is written once
void run_pad_around(const ConstView& x, std::span<const index_t> before, PadRule rule,
                    const MutableView& y);

/// The adjoint: every element of y is the sum of all elements of w that run_pad_around copies from
/// it.
///
/// Shapes   as run_pad_around, w for its y and y for its x; one dtype
/// Aliases  disjoint; `sum` adds two numbers of the dtype
/// Cost     one pass over w, which is copied into scratch (as many bytes, 64-byte aligned)
void run_fold(const ConstView& w, std::span<const index_t> before, PadRule rule,
              const ElementwiseProgram& sum, const MutableView& y, std::span<std::byte> scratch);

}  // namespace palimpsest
