// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Removes pairs of linear ops that undo each other: a Fourier transform and its inverse or adjoint
/// over the same axes (up to a factor), two conjugations.
///
/// Contract  equal up to rounding: what is removed is not computed
/// Order     one sweep in topological order, so that chains collapse from the inside
int apply_linear_identities(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
