// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"
#include "palimpsest/kernels/elementwise/scalar_op.hpp"
#include "palimpsest/tensor/tensor.hpp"

/// Ops that overwrite their first operand, for graphs of functions with `accept_inplace` and for
/// rewrites. The operand must have no later reader, and must not be a constant, an output or an
/// argument that is not lent; function() checks that. Other graphs do not need these ops: rewrites
/// put pure ops in place where that is safe.
///
/// Aliases  destroy_map {0: {0}}, of where_inplace {0: {1}}; the result lies in that operand's
///          memory
/// Errors   DTypeError, ShapeError: the result does not fit that operand; ValueError: it cannot be
///          overwritten, because it is a broadcast view or shares memory with another operand
namespace PALIMPSEST_API palimpsest {
namespace inplace {

// A function for each scalar one: `add_inplace(x, y)` is x + y in the memory of x.
#define PALIMPSEST_INPLACE_1(name) Variable name##_inplace(const Variable& x);
#define PALIMPSEST_INPLACE_2(name) Variable name##_inplace(const Variable& x, const Operand& y);
#define PALIMPSEST_INPLACE_3(name) \
  Variable name##_inplace(const Variable& x, const Operand& y, const Operand& z);
#define PALIMPSEST_INPLACE(name, arity, rule) PALIMPSEST_INPLACE_##arity(name)
PALIMPSEST_FOR_EACH_SCALAR_OP(PALIMPSEST_INPLACE)
#undef PALIMPSEST_INPLACE
#undef PALIMPSEST_INPLACE_1
#undef PALIMPSEST_INPLACE_2
#undef PALIMPSEST_INPLACE_3

/// x with the elements of a basic index replaced by the value, or increased by it. The value may
/// show elements of x: it is read before any is written.
Variable set_subtensor_inplace(const Variable& x, std::vector<Index> index, const Variable& value);
Variable inc_subtensor_inplace(const Variable& x, std::vector<Index> index, const Variable& value);
/// The same for y = x(...), arrays among the entries included.
/// Errors   ValueError: y is not an indexed value
Variable set_subtensor_inplace(const Variable& y, const Operand& value);
Variable inc_subtensor_inplace(const Variable& y, const Operand& value);

/// beta z + alpha x y, and so on, in the memory of z; x and y may share memory with each other.
Variable gemm_inplace(const Variable& z, const Operand& alpha, const Variable& x, const Variable& y,
                      const Operand& beta);
Variable gemv_inplace(const Variable& z, const Operand& alpha, const Variable& x, const Variable& y,
                      const Operand& beta);
Variable ger_inplace(const Variable& z, const Operand& alpha, const Variable& x, const Variable& y);

}  // namespace inplace
}  // namespace palimpsest
