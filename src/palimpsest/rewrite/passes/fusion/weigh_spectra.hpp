// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// A transform, a product of the spectrum with weights and the transform back become one step, if
/// nothing else reads the spectrum. Lines along one axis are transformed there and back while they
/// are in cache.
///
/// Contract  values change by rounding
/// Order     once over the graph, before products are fused with other elementwise ops
RewriteResult weigh_spectra(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
