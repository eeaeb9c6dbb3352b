// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/pipeline.hpp"

#include <algorithm>
#include <chrono>

#include "palimpsest/rewrite/fusion.hpp"
#include "palimpsest/rewrite/inplace.hpp"
#include "palimpsest/rewrite/linear_identities.hpp"
#include "palimpsest/rewrite/merge.hpp"

namespace palimpsest {
namespace {

constexpr Rewrite kRewrites[] = {
    {"merge_duplicates", 0, "merge", merge_duplicates},
    {"apply_linear_identities", 1.3, "identities", apply_linear_identities},
    {"fuse_elementwise", 49, "fusion", fuse_elementwise},
    {"merge_duplicates", 49.1, "merge", merge_duplicates},
    {"run_updates_in_place", 50.1, "inplace", run_updates_in_place},
    {"run_products_in_place", 50.2, "inplace", run_products_in_place},
    {"run_transforms_in_place", 50.3, "inplace", run_transforms_in_place},
    {"run_elementwise_in_place", 50.5, "inplace", run_elementwise_in_place},
    {"run_keys_in_place", 50.9, "inplace", run_keys_in_place},
};

std::string text_of(const std::exception_ptr& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "what is no exception";
  }
}

}  // namespace

bool RewriteSelection::contains(const Rewrite& rewrite) const {
  const auto names_it = [&](const std::string& word) {
    return word == rewrite.name || word == rewrite.tag || word == "all";
  };
  const auto any = [&](const std::vector<std::string>& words) {
    return std::any_of(words.begin(), words.end(), names_it);
  };
  return !any(never) && (!any(excluding) || any(including));
}

RewriteFailure::RewriteFailure(const Rewrite& rewrite, std::exception_ptr cause)
    : std::runtime_error("rewrite " + std::string(rewrite.name) + " failed: " + text_of(cause)),
      rewrite_(rewrite.name),
      cause_(std::move(cause)) {}

std::span<const Rewrite> rewrite_list() { return kRewrites; }

void rewrite_graph(FunctionGraph& graph, const RewriteHints& hints,
                   const RewriteSelection& selection, std::vector<RewriteProfile>* reports) {
  for (const Rewrite& rewrite : rewrite_list()) {
    if (!selection.contains(rewrite)) continue;
    const auto start = std::chrono::steady_clock::now();
    try {
      const int applied = rewrite.run(graph, hints);
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
      if (reports) reports->push_back({std::string(rewrite.name), applied, time.count()});
    } catch (...) {
      throw RewriteFailure(rewrite, std::current_exception());
    }
  }
}

}  // namespace palimpsest
