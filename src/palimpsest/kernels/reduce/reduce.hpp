// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "palimpsest/base/view.hpp"
#include "palimpsest/kernels/arrays/filtered_rows.hpp"
#include "palimpsest/kernels/elementwise/elementwise.hpp"

namespace palimpsest {

// GCC warns that the scoped `all` shadows the index `all` of tensor.hpp.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class ReduceOp : std::uint8_t { sum, prod, max, min, any, all };
#pragma GCC diagnostic pop

std::string_view name_of(ReduceOp op);

/// The default dtype of a reduction: sum and prod of bools and of integers are int64 (uint64 if
/// unsigned), any and all are bool, else the operand's dtype.
/// Errors   DTypeError: max or min of complex numbers
DType result_dtype(ReduceOp op, DType operand);

/// Reduces x over `axes` (sorted, counted from the front) into out.
///
/// Math     sums and products in out's dtype, blocked and then pairwise: the error grows with the
///          logarithm of the count. max and min propagate NaN. Empty reductions: sum 0, prod 1, any
///          false, all true
/// Shapes   out has x's extents without `axes`, in order; for keepdims omit the strides of the
///          reduced axes
/// DTypes   x is converted to out's dtype first; any, all: out is bool; max, min: not complex
/// Aliases  disjoint. max and min need at least one element
/// Cost     one pass; at most 256 KiB of stack per thread. The order of the terms depends on shapes
///          and strides alone, not on the number of threads
void run_reduce(ReduceOp op, const ConstView& x, std::span<const index_t> axes,
                const MutableView& out);

/// Reduces the output of a program without storing it.
///
/// Math     bit for bit run_elementwise into a dense row-major array, then run_reduce
/// Shapes   the inputs have the same extents, broadcast by stride 0; out as for run_reduce
/// DTypes   an input may have another dtype than its register; the rest as for run_reduce
/// Aliases  out is disjoint from the inputs, which may overlap in any way
/// Cost     one pass over the inputs; at most 384 KiB of stack per thread
void run_fused_reduce(ReduceOp op, const ElementwiseProgram& program,
                      std::span<const ConstView> inputs, std::span<const index_t> axes,
                      const MutableView& out);

/// A sum over all elements of outputs of a program.
struct SumOfOutputs {
  enum class Kind : std::uint8_t {
    plain,         ///< of output a
    norm2,         ///< of |a|^2
    product,       ///< of a b
    conj_product,  ///< of conj(a) b
  };
  Kind kind = Kind::plain;
  int a = 0, b = 0;  ///< outputs of the program; b of products only
  friend bool operator==(const SumOfOutputs&, const SumOfOutputs&) = default;
};
/// The dtype of the sum of outputs of these dtypes. DTypeError: not floating or complex, or factors
/// of two dtypes.
DType sum_dtype(const SumOfOutputs& sum, const ElementwiseProgram& program);

/// Runs a program and sums its outputs in one pass. The first outputs are stored in `arrays`, the
/// others are not stored. `filtered` inputs are computed as they are read.
///
/// Math     bit for bit run_elementwise, and run_reduce, run_norm2, run_inner of its outputs, dense
///          in row-major order
/// Shapes   inputs and arrays have the same extents, inputs broadcast by stride 0; sums have rank 0
/// DTypes   an input may have another dtype than its register; a sum has sum_dtype()
/// Aliases  an array may be one of the inputs that are not filtered; otherwise outputs are disjoint
///          from everything
/// Cost     one pass; at most 256 KiB of scratch per thread. The program has at most 40 registers,
///          and at most 4 inputs are filtered
void run_elementwise_sums(const ElementwiseProgram& program, std::span<const SumOfOutputs> sums,
                          std::span<const ConstView> inputs, std::span<const MutableView> arrays,
                          std::span<const MutableView> results,
                          std::span<const FilteredInput> filtered = {});

/// out = sum over all elements of a * b, a conjugated if `conj_a`: as accurate as run_reduce.
///
/// Shapes   a and b have the same extents, broadcast by stride 0; out has rank 0
/// DTypes   out floating or complex (int64 too); a and b are converted to it first
/// Aliases  a and b may overlap in any way; out is disjoint
void run_inner(const ConstView& a, bool conj_a, const ConstView& b, const MutableView& out);

/// out = sum over all elements of |x|^2.
///
/// DTypes   out float32, float64 or int64; x is real or complex, converted to out's precision first
void run_norm2(const ConstView& x, const MutableView& out);

}  // namespace palimpsest
