// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

/// One of the two ends of an operator.
enum class VectorSide { input, output };

/// The sum over all processes of a number (an inner product, the square of a norm) that each has
/// computed from its part of the vectors on that side of A; the number itself where vectors are
/// whole.
Variable total(const NamedLinop& A, VectorSide side, const Variable& number);

}  // namespace palimpsest
