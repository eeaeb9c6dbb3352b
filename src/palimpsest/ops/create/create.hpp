// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {
namespace ops {

/// The extents of x, int64 (rank,), and one of them, int64 (): constants where they are known.
/// Cost     nothing is read but the extents
Variable shape(const Variable& x);
Variable shape(const Variable& x, index_t axis);

/// A new array filled with the value, which broadcasts.
/// Errors   NotSupported: an extent that depends on more than extents of other arrays; ShapeError
Variable alloc(const Operand& value, const ShapeArgument& shape);
/// A new array filled with one number.
Variable full(const ShapeArgument& shape, const Operand& value);
Variable zeros(const ShapeArgument& shape, DType dtype = DType::float64, Device device = {});
Variable ones(const ShapeArgument& shape, DType dtype = DType::float64, Device device = {});
/// A new array whose elements have no particular value, to be written.
Variable empty(const ShapeArgument& shape, DType dtype = DType::float64, Device device = {});

/// An array with the type and the extents of x, known or not.
Variable full_like(const Variable& x, const Operand& value);
Variable zeros_like(const Variable& x);
Variable ones_like(const Variable& x);
Variable empty_like(const Variable& x);

/// 0, 1, ..., n - 1; n may be computed from extents.
/// Errors   ShapeError: n below 0
Variable arange(const Operand& n, DType dtype = DType::int64, Device device = {});
/// start, start + step, ... as long as it is in front of stop; int64 from integers, else float64.
Variable arange(const WeakNumber& start, const WeakNumber& stop, const WeakNumber& step = 1,
                std::optional<DType> dtype = {}, Device device = {});
/// n numbers at equal distances, both ends included.
Variable linspace(double first, double last, index_t n, DType dtype = DType::float64,
                  Device device = {});
/// (n, m) with ones where column - row = k, else zeros; m is n unless given.
Variable eye(const Operand& n, std::optional<Operand> m = {}, index_t k = 0,
             DType dtype = DType::float64, Device device = {});

}  // namespace ops
}  // namespace palimpsest
