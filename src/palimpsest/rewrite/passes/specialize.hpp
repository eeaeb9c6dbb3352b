// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Replaces elementwise operations with special constants by cheaper ones: x * 1, x / 1, x^1, x +
/// -0, x - 0, x * -1, the division by a power of two, the square of an integer. A contraction that
/// sums over axes of one element is a product.
///
/// Contract  values are unchanged, bit for bit: operations stay that are not exact for NaN,
///           infinities or a zero of some sign, such as x + 0 and a complex number times 1
/// Order     to a fixed point
RewriteResult specialize(FunctionGraph& graph, const RewriteHints& hints);

/// Small powers become products and roots, |z|^2 becomes abs2, complex factors of 1 go.
///
/// Contract  equal up to rounding; if a power is infinite or NaN for some argument, so is its
///           replacement, except for complex infinities times 1
/// Order     to a fixed point
RewriteResult specialize_powers(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
