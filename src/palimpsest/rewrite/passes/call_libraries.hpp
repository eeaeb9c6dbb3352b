// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Finds products that one call of a linear algebra library computes: beta z + alpha x y of
/// matrices and vectors becomes gemm, gemv or ger; a sum of products over axes becomes a
/// contraction, that over all axes an inner product; a sum of squares becomes norm2.
///
/// Contract  equal up to rounding: terms are added in another order. alpha and beta are numbers or
///           0-d values; intermediate values that something else reads stay, and then so does all
/// Order     to a fixed point
RewriteResult call_libraries(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
