// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/pipeline.hpp"

#include <algorithm>
#include <limits>

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/base/interrupt.hpp"
#include "palimpsest/base/log.hpp"
#include "palimpsest/base/stop_watch.hpp"
#include "palimpsest/graph/graph_state.hpp"
#include "palimpsest/rewrite/passes/call_libraries.hpp"
#include "palimpsest/rewrite/passes/canonicalize.hpp"
#include "palimpsest/rewrite/passes/collect_terms.hpp"
#include "palimpsest/rewrite/passes/combine_rolls.hpp"
#include "palimpsest/rewrite/passes/dense_operands.hpp"
#include "palimpsest/rewrite/passes/drop_useless.hpp"
#include "palimpsest/rewrite/passes/fold_constants.hpp"
#include "palimpsest/rewrite/passes/fold_shapes.hpp"
#include "palimpsest/rewrite/passes/fusion/fuse_filters.hpp"
#include "palimpsest/rewrite/passes/fusion/fuse_reductions.hpp"
#include "palimpsest/rewrite/passes/fusion/fusion.hpp"
#include "palimpsest/rewrite/passes/fusion/join_steps.hpp"
#include "palimpsest/rewrite/passes/fusion/weigh_spectra.hpp"
#include "palimpsest/rewrite/passes/inplace.hpp"
#include "palimpsest/rewrite/passes/join_messages.hpp"
#include "palimpsest/rewrite/passes/linear_identities.hpp"
#include "palimpsest/rewrite/passes/merge.hpp"
#include "palimpsest/rewrite/passes/resolve_slices.hpp"
#include "palimpsest/rewrite/passes/specialize.hpp"
#include "palimpsest/rewrite/passes/split_buffers.hpp"
#include "palimpsest/rewrite/passes/stabilize.hpp"

namespace palimpsest {
namespace {

// Tags besides the name. Only a rewrite with the tag `reorders` may change bits of a result against
// the graph as it was written.
std::set<std::string> fast(std::set<std::string> tags) {
  tags.insert("fast_run");
  return tags;
}
std::set<std::string> always(std::set<std::string> tags) {
  tags.insert("fast_compile");
  return fast(std::move(tags));
}

// Shorter vectors are in a cache, where steps of their own are as quick: the recurrence of
// conjugate gradients takes 0.75 of the time at 1024 x 1024, an iteration at 64 x 64 would take
// 1.03.
RewriteResult fuse_long_sums(FunctionGraph& graph, const RewriteHints&) {
  constexpr index_t kLongVector = 65536;
  return join_sums(graph, kLongVector);
}

// Ordered by position.
std::vector<Rewrite> library() {
  return {
      {"join_messages", 0, always({"messages"}), join_messages,
       "sums over processes that stand side by side travel in one message"},
      {"merge_duplicates", 0, always({"merge"}), merge_duplicates,
       "equal ops on equal inputs, and equal constants, become one"},
      {"fold_shapes", 0.5, fast({"shapes"}), fold_shapes,
       "known extents become constants; extents are taken from the sources of arrays"},
      {"drop_useless", 0.6, always({"useless"}), drop_useless,
       "useless nodes are dropped: conversions, reshapes, whole slices, unused outputs of loops"},
      {"fold_constants", 0.9, fast({"constants"}), fold_constants,
       "values of constants are computed"},
      {"canonicalize", 1, fast({}), canonicalize,
       "signs, conjugations, parts of complex numbers and conversions that cancel are cancelled"},
      {"merge_duplicates", 1.2, always({"merge"}), merge_duplicates,
       "ops and constants that became equal become one"},
      {"resolve_slices", 1.3, fast({"identities"}), resolve_slices,
       "slices of pads and joins are taken from their inputs"},
      {"apply_linear_identities", 1.3, fast({"identities", "reorders"}), apply_linear_identities,
       "transforms that undo each other, sums of repeated values, products of diagonals and of "
       "matrices"},
      {"combine_rolls", 1.4, fast({"identities"}), combine_rolls,
       "rolls of rolls become one pass over memory"},
      {"stabilize", 1.5, fast({"reorders"}), stabilize,
       "log(1 + x), log(sum(exp(x))), ... become functions that neither overflow nor lose digits"},
      {"call_libraries", 1.7, always({"library", "reorders"}), call_libraries,
       "products and sums become gemm, gemv, ger, contractions, inner products"},
      {"specialize", 2, fast({}), specialize,
       "x * 1, x - 0, divisions by powers of two, sums of one product: where no bit changes"},
      {"specialize_powers", 2, fast({"reorders"}), specialize_powers,
       "small powers become products and roots, squared absolute values become abs2"},
      {"fold_constants", 2.5, fast({"constants"}), fold_constants,
       "new values of constants are computed"},
      {"collect_terms", 48, fast({"reorders"}), collect_terms,
       "equal terms of sums become multiples, numbers in sums and products become one"},
      {"weigh_spectra", 48.5, fast({"fusion", "reorders"}), weigh_spectra,
       "a transform, weights and the transform back become one step, with zeros around them, or "
       "with coil maps and their sum"},
      {"fuse_elementwise", 49, fast({"fusion"}), fuse_elementwise,
       "chains of elementwise ops become one step"},
      {"fuse_reductions", 49, fast({"fusion"}), fuse_reductions,
       "a reduction computes an operand that only it reads"},
      {"merge_duplicates", 49.1, always({"merge"}), merge_duplicates,
       "ops and constants that became equal become one"},
      {"fuse_sums", 49.2, fast({"fusion", "reorders"}), fuse_long_sums,
       "norms and inner products of long vectors are summed up where their operand is made or "
       "read"},
      {"fuse_filters", 49.3, fast({"fusion"}), fuse_filters,
       "finite differences and other stencils are computed in the step with sums that reads them"},
      {"split_buffers", 49.4, fast({"split"}), split_buffers,
       "each step that could overwrite the result of a cheap op gets one of its own"},
      {"run_updates_in_place", 50.1, fast({"inplace"}), run_updates_in_place,
       "`set` and `inc` overwrite their target if it has no later reader"},
      {"run_products_in_place", 50.2, fast({"inplace", "reorders"}), run_products_in_place,
       "gemm, gemv and ger add to their accumulator in place, in any layout"},
      {"run_transforms_in_place", 50.3, fast({"inplace"}), run_transforms_in_place,
       "transforms overwrite their input"},
      {"run_elementwise_in_place", 50.5, fast({"inplace"}), run_elementwise_in_place,
       "elementwise ops, cumulative sums and ops of users overwrite an input"},
      {"run_keys_in_place", 50.9, fast({"inplace"}), run_keys_in_place,
       "keys of random numbers that a shared variable holds are counted up where they are"},
  };
}

bool has_any(const Rewrite& rewrite, const std::set<std::string>& tags) {
  return std::any_of(tags.begin(), tags.end(),
                     [&](const auto& tag) { return rewrite.has_tag(tag); });
}

bool has_all(const Rewrite& rewrite, const std::set<std::string>& tags) {
  return std::all_of(tags.begin(), tags.end(),
                     [&](const auto& tag) { return rewrite.has_tag(tag); });
}

// The rewrites that run, in order. The pointers refer to the library's list and the selection.
std::vector<const Rewrite*> chosen(const RewriteSelection& selection) {
  std::vector<const Rewrite*> result;
  const auto& added = selection.added;
  const auto is_added = [&](const Rewrite& rewrite) {
    return std::any_of(added.begin(), added.end(),
                       [&](const Rewrite& other) { return other.name == rewrite.name; });
  };
  for (const Rewrite& rewrite : rewrite_list()) {
    if (selection.contains(rewrite) && !is_added(rewrite)) result.push_back(&rewrite);
  }
  for (const Rewrite& rewrite : added) {
    const bool may_run =
        has_all(rewrite, selection.requiring) && !has_any(rewrite, selection.excluding);
    if (may_run) result.push_back(&rewrite);
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const auto* a, const auto* b) { return a->position < b->position; });
  return result;
}

// A pass that says nothing and overwrites something all the same is wrong.
void check_result(const FunctionGraph& graph, const Rewrite& rewrite, std::size_t overwritten) {
  if (rewrite.position < kFirstInplacePosition && graph.overwritten_count() > overwritten) {
    throw InternalError("[" + rewrite.name + "] introduced an op that overwrites an input at " +
                        "position " + std::to_string(rewrite.position) +
                        ", expected 49.5 or later");
  }
  graph.validate();
}

class Runner {
 public:
  Runner(FunctionGraph& graph, const RewriteHints& hints, const RewriteOptions& options,
         std::vector<RewriteProfile>* reports)
      : graph_(graph), hints_(hints), options_(options), reports_(reports) {
    for (const auto& [value, memory] : hints.preferred_memory) {
      const auto& outputs = graph.outputs();
      positions_.push_back(std::find(outputs.begin(), outputs.end(), value) - outputs.begin());
    }
  }

  void run() {
    auto features = options_.selection.features;
    std::stable_sort(features.begin(), features.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    auto next = features.begin();
    const auto attach_up_to = [&](double position) {
      for (; next != features.end() && next->first <= position; ++next) {
        graph_.add_feature(next->second());
      }
    };
    order_messages(graph_);
    for (const Rewrite* rewrite : chosen(options_.selection)) {
      attach_up_to(rewrite->position);
      check_interrupt();
      run(*rewrite);
    }
    attach_up_to(std::numeric_limits<double>::infinity());
  }

 private:
  // Passes replace outputs: the hints name those that there are.
  void renew_hints() {
    for (std::size_t i = 0; i < positions_.size(); ++i) {
      const auto position = static_cast<std::size_t>(positions_[i]);
      if (position >= graph_.outputs().size()) continue;
      hints_.preferred_memory[i].first = graph_.outputs()[position];
    }
  }

  void run(const Rewrite& rewrite) {
    renew_hints();
    const StopWatch watch;
    const graph_detail::EditCounts before = graph_.state().edits;
    const std::size_t overwritten = graph_.overwritten_count();
    const std::size_t n_refusals = hints_.refusals ? hints_.refusals->size() : 0;
    const FunctionGraph::Token token = graph_.checkpoint();
    RewriteResult result;
    try {
      result = rewrite.run(graph_, hints_);
      check_result(graph_, rewrite, overwritten);
    } catch (...) {
      graph_.revert(token);
      graph_.release(token);
      if (hints_.refusals) hints_.refusals->resize(n_refusals);
      react(rewrite);
      return;
    }
    graph_.release(token);
    const graph_detail::EditCounts& now = graph_.state().edits;
    // Variants that a pass checked and then did not try count as refused as well.
    const std::size_t n_left = hints_.refusals ? hints_.refusals->size() - n_refusals : 0;
    const std::size_t n_refused = std::max(now.refused - before.refused, n_left);
    report({rewrite.name, result.applied, std::max(result.refused, static_cast<int>(n_refused)),
            watch.seconds(), now.validation_seconds - before.validation_seconds, rewrite.position});
  }

  // In a handler.
  void react(const Rewrite& rewrite) const {
    if (options_.on_error == Reaction::raise) throw;
    if (options_.on_error == Reaction::ignore) return;
    std::string text = "an object that is not an exception";
    try {
      throw;
    } catch (const std::exception& error) {
      text = error.what();
    } catch (...) {
    }
    log(LogLevel::warn, "[function] rewrite " + rewrite.name + " failed and is left out: " + text);
  }

  void report(RewriteProfile profile) {
    if (!reports_) return;
    const auto known = std::find_if(reports_->begin(), reports_->end(), [&](const auto& r) {
      return r.name == profile.name && r.position == profile.position;
    });
    if (known == reports_->end()) {
      reports_->push_back(std::move(profile));
      return;
    }
    known->applied += profile.applied;
    known->refused += profile.refused;
    known->seconds += profile.seconds;
    known->validation_seconds += profile.validation_seconds;
  }

  FunctionGraph& graph_;
  RewriteHints hints_;
  std::vector<std::ptrdiff_t> positions_;  // among the outputs, of each preferred memory's value
  const RewriteOptions& options_;
  std::vector<RewriteProfile>* reports_;
};

}  // namespace

bool Rewrite::has_tag(std::string_view tag) const {
  return tag == "all" || tag == name || std::find(tags.begin(), tags.end(), tag) != tags.end();
}

std::span<const Rewrite> rewrite_list() {
  return immortal([] { return library(); });
}

void RewriteSelection::add(Rewrite rewrite) {
  if (rewrite.name.empty()) throw ValueError("[with_rewrite] the rewrite has no name");
  if (!rewrite.run) throw ValueError("[with_rewrite] " + rewrite.name + " has nothing to run");
  if (!(rewrite.position >= 0)) {
    throw ValueError("[with_rewrite] position of " + rewrite.name + ": got " +
                     std::to_string(rewrite.position) + ", expected 0 or more");
  }
  if (rewrite.has_tag("inplace") && rewrite.position < kFirstInplacePosition) {
    throw ValueError("[with_rewrite] " + rewrite.name +
                     " introduces ops that overwrite inputs: " + "got position " +
                     std::to_string(rewrite.position) + ", expected 49.5 or later");
  }
  added.push_back(std::move(rewrite));
}

void RewriteSelection::add(NodeRewrite rewrite, double position, std::set<std::string> tags) {
  if (!rewrite.apply) throw ValueError("[with_rewrite] " + rewrite.name + " has nothing to apply");
  if (rewrite.introduces_destroyers) tags.insert("inplace");
  const std::string name = rewrite.name;
  add(Rewrite{name, position, std::move(tags),
              [rewrite = std::move(rewrite)](FunctionGraph& graph, const RewriteHints&) {
                return walk(graph, {&rewrite, 1});
              }});
}

bool RewriteSelection::contains(const Rewrite& rewrite) const {
  return has_any(rewrite, including) && has_all(rewrite, requiring) && !has_any(rewrite, excluding);
}

bool RewriteSelection::keeps_bits() const {
  const auto list = chosen(*this);
  return std::none_of(list.begin(), list.end(),
                      [](const Rewrite* rewrite) { return rewrite->has_tag("reorders"); });
}

std::vector<Rewrite> RewriteSelection::list() const {
  std::vector<Rewrite> result;
  for (const Rewrite* rewrite : chosen(*this)) result.push_back(*rewrite);
  return result;
}

void rewrite_graph(FunctionGraph& graph, const RewriteHints& hints, const RewriteOptions& options,
                   std::vector<RewriteProfile>* reports) {
  if (options.trace) graph.set_trace(options.trace);
  Runner(graph, hints, options, reports).run();
  if (options.selection.keeps_bits()) make_operands_dense(graph);
  if (options.trace) graph.set_trace({});
}

}  // namespace palimpsest
