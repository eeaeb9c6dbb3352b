// SPDX-License-Identifier: Apache-2.0
// Internal: the texts of DebugMode.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "palimpsest/inspect/debug/debug_errors.hpp"
#include "palimpsest/run/debug_value.hpp"

namespace palimpsest {

/// A node in one pass, and its inputs.
struct StepContext {
  std::string_view pass;  // `reference`, `isolated`, `production`
  Apply node;
  int step = -1;       // of the plan; -1: none
  int number = -1;     // of the node in its graph
  std::string reason;  // the rewrite that introduced it
  std::vector<DebugValue> inputs;
  std::vector<Layout> layouts;  // of the inputs
  /// Per output: does a later step read it?
  std::vector<bool> is_read_later;
};

/// Conditions of one run of a step.
struct RunLabel {
  std::string pattern = "first";
  int threads = 1;
  std::string str() const;
};

/// Collects the text of an error: the first line names check, op, step and node.
class DebugMessage {
 public:
  DebugMessage(std::string_view check, const StepContext& context);
  DebugMessage& line(std::string_view text);
  DebugMessage& value(std::string_view what, const DebugValue& v);
  /// Appends the conditions of the run, the inputs, the graph to depth 4 and the hint; returns the
  /// text.
  std::string finish(const RunLabel* label, std::string_view hint);

 private:
  const StepContext& context_;
  std::string text_;
};

/// `Add(x, y)`.
std::string call_text(const Apply& node);

}  // namespace palimpsest
