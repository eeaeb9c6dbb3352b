// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Brings elementwise expressions into the form that later passes look for: drops two signs,
/// conjugations or negations in a row, moves signs into sums and differences and out of even
/// functions, replaces parts of a complex number made of two parts by these, joins chains of
/// lossless conversions, and drops choices between equal values.
///
/// Contract  values are unchanged, bit for bit, for NaN, infinities and both zeros too
/// Order     to a fixed point
RewriteResult canonicalize(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
