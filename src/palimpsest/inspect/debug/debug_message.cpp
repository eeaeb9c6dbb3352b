// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/inspect/debug/debug_message.hpp"

#include <fmt/format.h>

#include "palimpsest/inspect/print.hpp"

namespace palimpsest {

std::string call_text(const Apply& node) {
  std::string text = node.op().name() + "(";
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    text += (i > 0 ? ", " : "") + node.input(i).str();
  }
  return text + ")";
}

std::string RunLabel::str() const {
  return fmt::format("destination pattern {}, {}", pattern,
                     threads > 0 ? std::to_string(threads) + " thread" : std::string("threads"));
}

DebugMessage::DebugMessage(std::string_view check, const StepContext& context)
    : context_(context),
      text_(fmt::format("[DebugMode: {}] {} (step {}, node {})", check, context.node.op().name(),
                        context.step >= 0 ? std::to_string(context.step) : "-",
                        context.number >= 0 ? std::to_string(context.number) : "-")) {}

DebugMessage& DebugMessage::line(std::string_view text) {
  text_ += fmt::format("\n  {}", text);
  return *this;
}

DebugMessage& DebugMessage::value(std::string_view what, const DebugValue& v) {
  return line(fmt::format("{}: {}", what, v.defined() ? v.str() : "unknown"));
}

std::string DebugMessage::finish(const RunLabel* label, std::string_view hint) {
  line(fmt::format("op: {}, {} pass", context_.node.op().str(), context_.pass));
  if (!context_.reason.empty()) line("introduced by the rewrite " + context_.reason);
  if (label) line("run: " + label->str());
  for (std::size_t i = 0; i < context_.inputs.size(); ++i) {
    line(fmt::format("input {}: {}: strides {}, {}", i, context_.node.input(i).str(),
                     i < context_.layouts.size() ? to_string(context_.layouts[i].strides) : "?",
                     context_.inputs[i].defined() ? context_.inputs[i].str() : "unknown"));
  }
  line("graph:");
  const std::string graph = debugprint(context_.node.output(0), {.depth = 4});
  for (std::size_t at = 0; at < graph.size();) {
    const std::size_t end = std::min(graph.find('\n', at), graph.size());
    line("  " + graph.substr(at, end - at));
    at = end + 1;
  }
  return text_ + "\n  Hint: " + std::string(hint);
}

}  // namespace palimpsest
