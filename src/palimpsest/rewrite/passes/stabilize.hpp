// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Expressions that lose digits or overflow on the way become functions that do not: log(1 + x),
/// exp(x) - 1, log(sum(exp(x))), log(exp(x) / y), such as of a softmax, 1 / (1 + exp(-x)), 1 -
/// sigmoid(x), log(sigmoid(x)), log(1 + exp(x)), log(exp(x)). Real numbers only.
///
/// Contract  the same function of real numbers, with other rounding errors; where the expression
///           overflows although its value is a number, the result is that number
/// Order     to a fixed point, so that log(1 - sigmoid(x)) takes two steps
RewriteResult stabilize(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
