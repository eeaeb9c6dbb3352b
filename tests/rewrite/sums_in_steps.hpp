// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/rewrite/passes/fusion/join_steps.hpp"
#include "palimpsest/run/mode.hpp"

namespace palimpsest::testing {

/// The mode with sums of `least` elements and more in elementwise steps, not of long vectors only.
inline Mode sums_in_steps(const Mode& mode, index_t least) {
  Rewrite rewrite{.name = "fuse_sums", .position = 49.2, .tags = {"reorders"}, .run = {}};
  rewrite.run = [least](FunctionGraph& graph, const RewriteHints&) {
    return RewriteResult(join_sums(graph, least));
  };
  return mode.with_rewrite(std::move(rewrite));
}

}  // namespace palimpsest::testing
