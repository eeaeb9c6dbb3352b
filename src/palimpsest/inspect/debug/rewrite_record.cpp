// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/inspect/debug/rewrite_record.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "palimpsest/inspect/debug/debug_errors.hpp"

namespace palimpsest {
namespace {

constexpr std::size_t kShownEvents = 5;
// In place of an index: the node was there at the start.
constexpr std::size_t kOriginal = static_cast<std::size_t>(-1);

std::string variable_text(const Variable& v) {
  const Apply owner = v.owner();
  if (!owner.defined()) return v.str();
  return fmt::format("output {} of {}", v.index(), owner.op().str());
}

}  // namespace

void RewriteRecord::on_import(const FunctionGraph&, const Apply& node, std::string_view reason) {
  events_.push_back(fmt::format("import {}: {}", reason, node.op().str()));
  if (!index_.emplace(node.node(), introduced_.size()).second) return;
  introduced_.push_back({node, std::string(reason)});
}

void RewriteRecord::on_prune(const FunctionGraph&, const Apply& node, std::string_view reason) {
  events_.push_back(fmt::format("prune {}: {}", reason, node.op().str()));
  index_.emplace(node.node(), kOriginal);  // should it come back, no rewrite has brought it
}

// Taking a change back is the opposite change.
void RewriteRecord::on_change_input(const FunctionGraph&, const Use& use, const Variable& old,
                                    const Variable& with, std::string_view reason) {
  events_.push_back(
      fmt::format("change {}: {} {} from {} to {}", reason, use.node.defined() ? "input" : "output",
                  use.node.defined() ? fmt::format("{} of {}", use.index, use.node.op().str())
                                     : std::to_string(use.index),
                  variable_text(old), variable_text(with)));
  const auto find = [&](const Variable& from, const Variable& to) {
    return std::find_if(replacements_.rbegin(), replacements_.rend(),
                        [&](const Replacement& r) { return r.old == from && r.with == to; });
  };
  if (const auto back = find(with, old); back != replacements_.rend() && back->uses > 0) {
    --back->uses;
    return;
  }
  if (const auto again = find(old, with); again != replacements_.rend()) {
    ++again->uses;
    return;
  }
  replacements_.push_back({old, with, std::string(reason), 1});
}

std::string RewriteRecord::reason_of(const Apply& node) const {
  const auto it = index_.find(node.node());
  if (it == index_.end() || it->second == kOriginal) return {};
  return introduced_[it->second].reason;
}

void check_same_events(const RewriteRecord& first, const RewriteRecord& other, int run) {
  const auto& a = first.events();
  const auto& b = other.events();
  const std::size_t n = std::min(a.size(), b.size());
  std::size_t at = 0;
  while (at < n && a[at] == b[at]) ++at;
  if (at == n && a.size() == b.size()) return;
  std::string text = fmt::format(
      "[DebugMode: StochasticOrder] rewriting the same graph did not do the same in run 0 and in "
      "run {}: event {} differs",
      run, at);
  const auto append = [&](int which, const std::vector<std::string>& events) {
    text += fmt::format("\n  run {}:", which);
    for (std::size_t i = at - std::min(at, kShownEvents); i <= at; ++i) {
      text += "\n    " + (i < events.size() ? events[i] : std::string("(the end)"));
    }
  };
  append(0, a);
  append(run, b);
  throw StochasticOrder(text +
                            "\n  Hint: look for a rewrite that iterates over addresses, or that "
                            "keeps state from one graph to the next.",
                        {});
}

}  // namespace palimpsest
