// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <unordered_map>

#include "palimpsest/inspect/print.hpp"
#include "palimpsest/run/shared.hpp"

namespace palimpsest {
namespace {

std::string dot_text(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

bool names(const AliasMap& map, int input) {
  return std::any_of(map.begin(), map.end(),
                     [&](const auto& entry) { return entry.second.contains(input); });
}

class DotWriter {
 public:
  explicit DotWriter(const DebugPrintOptions& options) : options_(options) {}

  std::string write(std::span<const Variable> inputs, std::span<const Variable> outputs,
                    std::span<const Apply> nodes,
                    std::span<const std::pair<Apply, Apply>> constraints, const Plan* plan) {
    text_ = "digraph {\n  node [fontname=\"monospace\"];\n";
    for (const Variable& v : inputs) add_root(v, "lightgreen");
    for (const Apply& node : nodes) add_node(node);
    if (plan && options_.print_memory) add_clusters(*plan);
    for (const Apply& node : nodes) add_edges(node);
    for (std::size_t i = 0; i < outputs.size(); ++i) add_output(outputs[i], i);
    for (const auto& [before, after] : constraints) {
      text_ += "  " + id_of(before.node()) + " -> " + id_of(after.node()) +
               " [style=dashed, color=gray];\n";
    }
    return std::move(text_) + "}\n";
  }

 private:
  std::string id_of(const void* node) {
    return "n" + std::to_string(ids_.try_emplace(node, ids_.size()).first->second);
  }

  void add_root(const Variable& v, std::string color) {
    if (!drawn_.emplace(v.node(), true).second) return;
    if (container_of(v)) color = "cyan";
    if (v.is_constant()) color = "lightgray";
    const std::string label = options_.print_type ? v.str() + "\\n" + v.type().str() : v.str();
    text_ += "  " + id_of(v.node()) + " [label=" + dot_text(label) +
             ", shape=box, style=filled, fillcolor=" + color + "];\n";
  }

  void add_node(const Apply& node) {
    for (const Variable& v : node.inputs()) {
      if (v.is_root()) add_root(v, "lightpink");  // a root that is not in the list of inputs
    }
    text_ +=
        "  " + id_of(node.node()) + " [label=" + dot_text(node.op().name()) + ", shape=ellipse];\n";
  }

  const void* source_of(const Variable& v) const {
    const Apply owner = v.owner();
    return owner.defined() ? static_cast<const void*>(owner.node()) : v.node();
  }

  void add_edges(const Apply& node) {
    const AliasMap views = node.op().view_map(node);
    const std::set<int> overwritten = overwritten_inputs(node);
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      const Variable& v = node.input(i);
      const int index = static_cast<int>(i);
      const std::string color =
          overwritten.contains(index) ? "red" : (names(views, index) ? "blue" : "black");
      std::string label = v.is_root() ? "" : v.name();
      if (options_.print_type) label += (label.empty() ? "" : " ") + v.type().str();
      text_ += "  " + id_of(source_of(v)) + " -> " + id_of(node.node()) + " [color=" + color +
               (label.empty() ? "" : ", label=" + dot_text(label)) + "];\n";
    }
  }

  void add_output(const Variable& v, std::size_t i) {
    const std::string id = "out" + std::to_string(i);
    if (v.is_root()) add_root(v, "lightgreen");
    text_ += "  " + id + " [label=" + dot_text("output " + std::to_string(i)) +
             ", shape=box, style=filled, fillcolor=lightblue];\n";
    text_ += "  " + id_of(source_of(v)) + " -> " + id + ";\n";
  }

  void add_clusters(const Plan& plan) {
    std::map<int, std::vector<const PlannedStep*>> by_buffer;
    for (const PlannedStep& step : plan.steps) {
      for (int slot : step.outputs) {
        by_buffer[plan.slots[static_cast<std::size_t>(slot)].buffer].push_back(&step);
      }
    }
    for (const auto& [b, steps] : by_buffer) {
      const PlannedBuffer& buffer = plan.buffers[static_cast<std::size_t>(b)];
      std::string label = std::string(name_of(buffer.kind)) + " " + std::to_string(buffer.bytes);
      if (buffer.kind == BufferKind::arena) label += " @" + std::to_string(buffer.offset);
      text_ += "  subgraph cluster_" + std::to_string(b) + " { label=" + dot_text(label) + ";";
      for (const PlannedStep* step : steps) text_ += " " + id_of(step->node.node()) + ";";
      text_ += " }\n";
    }
  }

  DebugPrintOptions options_;
  std::unordered_map<const void*, std::size_t> ids_;
  std::unordered_map<const VariableNode*, bool> drawn_;
  std::string text_;
};

}  // namespace

std::string to_dot(const Variable& v, const DebugPrintOptions& options) {
  const std::vector<Apply> nodes = applications_of({&v, 1});
  return DotWriter(options).write({}, {&v, 1}, nodes, {}, nullptr);
}

std::string to_dot(const FunctionGraph& graph, const DebugPrintOptions& options, const Plan* plan) {
  return DotWriter(options).write(graph.inputs(), graph.outputs(), graph.toposort(),
                                  graph.order_constraints(), plan);
}

}  // namespace palimpsest
