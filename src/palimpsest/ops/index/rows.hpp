// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {
namespace ops {

// Rows of an array at a position that is computed. Positions count modulo the number of rows:
// nothing can be out of range, so that a shared variable may be updated in place by its rows.

/// x[position], a copy; position int64 without axes.
/// Errors   ValueError: x has no rows, the position has axes; DTypeError: position not int64
Variable row(const Variable& x, const Variable& position);
/// x with this row replaced by the value, which broadcasts and is converted to the dtype of x.
/// Aliases  in place of x where x is not needed any more
Variable set_row(const Variable& x, const Variable& position, const Variable& value);

}  // namespace ops
}  // namespace palimpsest
