// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/rewrite/passes/inplace.hpp"

namespace palimpsest::testing {

/// Runs all in-place passes, one after the other; returns the number of replacements.
inline int run_in_place(FunctionGraph& graph, const RewriteHints& hints) {
  int applied = 0;
  for (const auto pass : {run_updates_in_place, run_products_in_place, run_transforms_in_place,
                          run_elementwise_in_place, run_keys_in_place}) {
    applied += pass(graph, hints);
  }
  return applied;
}

}  // namespace palimpsest::testing
