// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/random.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

/// End of an operator.
enum class VectorSide { input, output };

/// The sum over all processes of a number (an inner product, the square of a norm) that each has
/// computed from its part of the vectors on that side of A; the number itself where vectors are
/// whole.
Variable total(const NamedLinop& A, VectorSide side, const Variable& number);
/// True if several processes hold parts of A.
bool is_in_parts(const NamedLinop& A);
/// True if `here` is true on a process that holds a part of A. All of them call it; one message to
/// each.
bool on_any_process(const NamedLinop& A, bool here);
/// This process' slice of one array of normal numbers for all processes, shaped as the vectors on
/// `side` of A; where the extents of the whole are not known, other numbers in each process.
Tensor random_part(const NamedLinop& A, VectorSide side, const TensorType& part, RandomKey key);
/// The dimensions of the vectors on that side of A that processes hold in parts, with the names of
/// the part of A that cuts them; empty for whole vectors.
Dims cut_dims(const NamedLinop& A, VectorSide side);

}  // namespace palimpsest
