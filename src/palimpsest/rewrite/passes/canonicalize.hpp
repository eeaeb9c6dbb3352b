// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Brings elementwise expressions into the form that later passes look for: two signs, conjugations
/// or negations in a row go, signs move into sums and differences and out of even functions, parts
/// of a complex number made of two parts are these parts, chains of lossless conversions are one,
/// choices between equal values are none.
///
/// Contract  values are unchanged, bit for bit, for NaN, infinities and both zeros too
/// Order     to a fixed point
RewriteResult canonicalize(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
