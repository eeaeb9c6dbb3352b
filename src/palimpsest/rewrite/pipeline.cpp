// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/pipeline.hpp"

#include "palimpsest/rewrite/fusion.hpp"
#include "palimpsest/rewrite/inplace.hpp"
#include "palimpsest/rewrite/linear_identities.hpp"
#include "palimpsest/rewrite/merge.hpp"

namespace palimpsest {
namespace {

constexpr Rewrite kRewrites[] = {
    {"merge_duplicates", 0, merge_duplicates},
    {"apply_linear_identities", 1.3, apply_linear_identities},
    {"fuse_elementwise", 49, fuse_elementwise},
    {"merge_duplicates", 49.1, merge_duplicates},
    {"run_in_place", 50.5, run_in_place},
};

}  // namespace

std::span<const Rewrite> rewrite_list() { return kRewrites; }

void rewrite_graph(FunctionGraph& graph, const RewriteHints& hints) {
  for (const Rewrite& rewrite : rewrite_list()) rewrite.run(graph, hints);
}

}  // namespace palimpsest
