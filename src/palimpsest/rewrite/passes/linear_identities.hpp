// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Simplifies linear ops: a Fourier transform and its inverse or adjoint over the same axes leave a
/// factor; conjugation of a factor is part of a contraction, and so is the transpose of a product
/// of matrices; the sum over axes along which a value is repeated is a multiple of it; two constant
/// diagonals that are smaller than their operand are multiplied by one another first; so are two
/// constant matrices such as A^H and A if the product is smaller than both together.
///
/// Contract  equal up to rounding: removed operations are not computed
/// Order     to a fixed point, so that chains collapse from the inside
RewriteResult apply_linear_identities(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
