// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/config.hpp"
#include "palimpsest/graph/function_graph.hpp"
#include "palimpsest/rewrite/inplace_report.hpp"
#include "palimpsest/rewrite/node_rewrite.hpp"

namespace PALIMPSEST_API palimpsest {

/// Knowledge of the compiler about a graph beyond its nodes.
struct RewriteHints {
  /// (value, memory): the value is to replace the content of this input, so it is best computed
  /// in place there.
  std::vector<std::pair<Variable, Variable>> preferred_memory;
  /// Receives the refusals of in-place passes; may be null.
  std::vector<InplaceRefusal>* refusals = nullptr;
};

/// Passes that introduce ops that overwrite something have at least this position: from there on
/// inputs that are not lent are protected.
inline constexpr double kFirstInplacePosition = 49.5;

/// A pass over a graph: changes it through FunctionGraph's edits and returns the number of
/// changes.
struct Rewrite {
  std::string name;
  double position = 0;
  /// Words by which modes choose; the name is one, and so is `all`.
  std::set<std::string> tags;
  std::function<RewriteResult(FunctionGraph& graph, const RewriteHints& hints)> run;
  /// A line of description.
  std::string what = {};
  bool has_tag(std::string_view tag) const;
};

/// The passes of the library, ordered by position: the one list.
std::span<const Rewrite> rewrite_list();

/// Makes the feature that follows one graph.
using FeatureMaker = std::function<std::shared_ptr<Feature>()>;

/// Selection of the rewrites that run.
///
/// A pass of the list runs if it has a tag of `including`, every tag of `requiring` and none of
/// `excluding`. One that was added runs unless it lacks a required tag or has an excluded one; it
/// takes the place of those that have its name.
struct RewriteSelection {
  std::set<std::string> including = {"fast_run"};
  std::set<std::string> excluding = {};
  std::set<std::string> requiring = {};
  std::vector<Rewrite> added = {};
  /// Attached to the graph before the first pass of at least this position, and kept.
  std::vector<std::pair<double, FeatureMaker>> features = {};

  /// Errors  ValueError: no name; a position below 49.5 for a rewrite that overwrites (tag
  ///         `inplace`, or introduces_destroyers)
  void add(Rewrite rewrite);
  void add(NodeRewrite rewrite, double position, std::set<std::string> tags);
  /// True if a pass of the list would run.
  bool contains(const Rewrite& rewrite) const;
  /// True if no running pass has the tag `reorders`. Results are then those of the graph as it was
  /// written, bit for bit.
  bool keeps_bits() const;
  /// By position; at equal positions those of the library first.
  std::vector<Rewrite> list() const;
};

/// Effect of one pass on a graph and on the graphs inside it.
struct RewriteProfile {
  std::string name;
  int applied = 0;
  int refused = 0;
  double seconds = 0;
  /// Part of these seconds for checking whether needed values would be overwritten.
  double validation_seconds = 0;
  double position = 0;
};

struct RewriteOptions {
  RewriteSelection selection = {};
  /// Reaction to a pass that throws, changes a type or lets a needed value be overwritten. The
  /// graph is as before the pass; then the error is thrown, logged, or dropped.
  Reaction on_error = Reaction::raise;
  /// Gets one line for each attempt and each refusal.
  std::function<void(const std::string&)> trace = {};
};

/// Runs the selected passes, in order; the passes in force are added to `reports`, each once. If
/// bits are kept, operands of ops that round by layout are made dense at the end.
/// Errors  with on_error = raise the exceptions of passes; InconsistencyError, InternalError: a
///         pass left a graph in which a needed value is overwritten, or overwrites below position
///         49.5
void rewrite_graph(FunctionGraph& graph, const RewriteHints& hints,
                   const RewriteOptions& options = {},
                   std::vector<RewriteProfile>* reports = nullptr);

}  // namespace palimpsest
