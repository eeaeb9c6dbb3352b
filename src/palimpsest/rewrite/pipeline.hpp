// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palimpsest/graph/function_graph.hpp"
#include "palimpsest/rewrite/inplace_report.hpp"

namespace palimpsest {

/// What the compiler knows about a graph beyond its nodes.
struct RewriteHints {
  /// (value, memory): the value is to replace the content of this input, so it is best computed
  /// in place there.
  std::vector<std::pair<Variable, Variable>> preferred_memory;
  /// Gets what in-place passes left alone; null: nobody wants to know.
  std::vector<InplaceRefusal>* refusals = nullptr;
};

/// One pass over a graph: changes it through FunctionGraph's edits and returns how often.
struct Rewrite {
  std::string_view name;
  double position;  // passes that introduce destroying ops have 49.5 or more
  std::string_view tag;
  int (*run)(FunctionGraph& graph, const RewriteHints& hints);
};

/// All rewrites, ordered by position: the one list.
std::span<const Rewrite> rewrite_list();

/// Which rewrites run, by name or tag; `all` is a tag of each.
struct RewriteSelection {
  std::vector<std::string> excluding = {};
  std::vector<std::string> including = {};  // although excluded
  std::vector<std::string> never = {};
  bool contains(const Rewrite& rewrite) const;
};

/// A rewrite that threw; the graph may be in any state.
class RewriteFailure : public std::runtime_error {
 public:
  RewriteFailure(const Rewrite& rewrite, std::exception_ptr cause);
  const std::string& rewrite() const { return rewrite_; }
  const std::exception_ptr& cause() const { return cause_; }

 private:
  std::string rewrite_;
  std::exception_ptr cause_;
};

/// What one rewrite did to a graph.
struct RewriteProfile {
  std::string name;
  int applied = 0;
  double seconds = 0;
};

/// Runs those that are selected, in order. RewriteFailure for whatever one of them throws.
/// `reports` gets an entry for each.
void rewrite_graph(FunctionGraph& graph, const RewriteHints& hints,
                   const RewriteSelection& selection = {},
                   std::vector<RewriteProfile>* reports = nullptr);

}  // namespace palimpsest
