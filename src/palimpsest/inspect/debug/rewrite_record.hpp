// SPDX-License-Identifier: Apache-2.0
// Internal: record of the rewrites of a graph.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "palimpsest/graph/function_graph.hpp"

namespace palimpsest {

/// Follows a graph while it is rewritten: every event as a line that does not depend on addresses,
/// every replacement with its reason, every node that a rewrite brought along.
class RewriteRecord final : public Feature {
 public:
  struct Replacement {
    Variable old, with;
    std::string reason;
    /// The number of times that it is in force; 0: all attempts were refused or taken back.
    int uses = 0;
  };
  struct Introduced {
    Apply node;
    std::string reason;
  };

  void on_import(const FunctionGraph& graph, const Apply& node, std::string_view reason) override;
  void on_prune(const FunctionGraph& graph, const Apply& node, std::string_view reason) override;
  void on_change_input(const FunctionGraph& graph, const Use& use, const Variable& old,
                       const Variable& with, std::string_view reason) override;

  const std::vector<std::string>& events() const { return events_; }
  void add_event(std::string line) { events_.push_back(std::move(line)); }
  const std::vector<Replacement>& replacements() const { return replacements_; }
  /// Nodes that were not there at the start, refused ones included, in order of arrival.
  const std::vector<Introduced>& introduced() const { return introduced_; }
  /// The rewrite that brought a node; empty: it was there at the start.
  std::string reason_of(const Apply& node) const;

 private:
  std::vector<std::string> events_;
  std::vector<Replacement> replacements_;
  std::vector<Introduced> introduced_;
  std::unordered_map<const ApplyNode*, std::size_t> index_;
};

/// StochasticOrder naming the first event that differs, with those before it in both records.
void check_same_events(const RewriteRecord& first, const RewriteRecord& other, int run);

}  // namespace palimpsest
