// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "palimpsest/inspect/print.hpp"
#include "palimpsest/inspect/root_text.hpp"

namespace palimpsest {
namespace {

std::string characters(std::size_t number) {
  std::string text;
  do {
    text.insert(text.begin(), static_cast<char>('A' + number % 26));
    number /= 26;
  } while (number > 0);
  return text;
}

// `{0: [0, 1]}`
std::string written_tree(const AliasMap& map) {
  std::string text = "{";
  for (const auto& [output, inputs] : map) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(output) + ": [";
    bool first = true;
    for (int i : inputs) {
      text += (first ? "" : ", ") + std::to_string(i);
      first = false;
    }
    text += "]";
  }
  return text + "}";
}

class TreePrinter {
 public:
  TreePrinter(const DebugPrintOptions& options, std::span<const Apply> order, const Plan* plan)
      : options_(options) {
    for (std::size_t i = 0; i < order.size(); ++i) position_[order[i].node()] = i;
    if (plan && options.print_memory) find_places(*plan);
  }

  void print(const Variable& root) {
    std::vector<Line> pending{{root, "", "", 1}};
    print_lines(pending);
  }

  // The graphs inside of ops that were shown, and inside of those in them.
  void print_inner_graphs() {
    if (!options_.print_inner_graphs) return;
    for (std::size_t next = 0; next < inner_.size(); ++next) {
      const Apply node = inner_[next];
      text_ += "\ninside of " + node.op().name() + " [id " + id_of(node.node()) + "]\n";
      for (const Variable& v : node.op().inner_results()) print(v);
    }
  }

  std::string take() { return std::move(text_); }

 private:
  // `prefix` stands before the text, `below` before the glyphs of its inputs.
  struct Line {
    Variable variable;
    std::string prefix, below;
    int depth;
    bool is_dots = false;
  };

  void print_lines(std::vector<Line>& pending) {
    while (!pending.empty()) {
      const Line line = std::move(pending.back());
      pending.pop_back();
      if (line.is_dots) {
        text_ += line.prefix + "···\n";
        continue;
      }
      text_ += line.prefix + described(line.variable) + "\n";
      push_inputs(line, pending);
    }
  }

  void push_inputs(const Line& line, std::vector<Line>& pending) {
    const Apply owner = line.variable.owner();
    if (!owner.defined() || owner.input_count() == 0) return;
    if (options_.depth >= 0 && line.depth >= options_.depth) return;
    if (options_.stop_on_name && !line.variable.name().empty() && line.depth > 1) return;
    const bool is_new = shown_.insert(owner.node()).second;
    if (is_new && !owner.op().inner_results().empty()) inner_.push_back(owner);
    if (!is_new) {
      pending.push_back({{}, line.below + " └─ ", "", 0, true});
      return;
    }
    for (std::size_t i = owner.input_count(); i-- > 0;) {
      const bool last = i + 1 == owner.input_count();
      pending.push_back({owner.input(i), line.below + (last ? " └─ " : " ├─ "),
                         line.below + (last ? "   " : " │ "), line.depth + 1, false});
    }
  }

  std::string id_of(const void* node) {
    if (options_.id_type == IdType::addresses) {
      return std::to_string(reinterpret_cast<std::uintptr_t>(node));
    }
    const std::size_t number = ids_.try_emplace(node, ids_.size()).first->second;
    return options_.id_type == IdType::integers ? std::to_string(number) : characters(number);
  }

  std::string described(const Variable& v) {
    const Apply owner = v.owner();
    const bool is_op = owner.defined();
    std::string text = is_op ? owner.op().name() : root_text(v);
    if (is_op && owner.output_count() > 1) text += "." + std::to_string(v.index());
    const void* const node = is_op ? static_cast<const void*>(owner.node()) : v.node();
    if (options_.id_type != IdType::none) text += " [id " + id_of(node) + "]";
    if (options_.print_type) text += " <" + v.type().str() + ">";
    if (!is_op) return text;
    if (!v.name().empty()) text += " '" + v.name() + "'";
    const AliasMap destroys = owner.op().destroy_map(owner), views = owner.op().view_map(owner);
    if (options_.print_destroy_map && !destroys.empty()) text += " d=" + written_tree(destroys);
    if (options_.print_view_map && !views.empty()) text += " v=" + written_tree(views);
    if (options_.print_regions) text += regions(owner, views);
    const auto at = position_.find(owner.node());
    if (options_.print_order && at != position_.end()) text += " " + std::to_string(at->second);
    const auto place = places_.find(v.node());
    if (place != places_.end()) text += place->second;
    return text;
  }

  static std::string regions(const Apply& node, const AliasMap& views) {
    std::string text;
    for (const auto& [output, inputs] : views) {
      for (int i : inputs) {
        text += " r=" + std::to_string(output) + "<-" + std::to_string(i) + ":" +
                node.op().view_region(node, output, i).str();
      }
    }
    for (int i : overwritten_inputs(node)) {
      text += " w=" + std::to_string(i) + ":" + node.op().write_region(node, i).str();
    }
    return text;
  }

  void find_places(const Plan& plan) {
    for (const PlannedStep& step : plan.steps) {
      for (std::size_t k = 0; k < step.outputs.size(); ++k) {
        const Slot& slot = plan.slots[static_cast<std::size_t>(step.outputs[k])];
        const PlannedBuffer& buffer = plan.buffers[static_cast<std::size_t>(slot.buffer)];
        if (buffer.kind != BufferKind::arena) continue;
        places_[step.node.output(k).node()] =
            " @" + std::to_string(buffer.offset) + "+" + std::to_string(buffer.bytes);
      }
    }
  }

  DebugPrintOptions options_;
  std::vector<Apply> inner_;  // shown nodes with a graph inside
  std::unordered_map<const ApplyNode*, std::size_t> position_;
  std::unordered_set<const ApplyNode*> shown_;
  std::unordered_map<const void*, std::size_t> ids_;
  std::unordered_map<const VariableNode*, std::string> places_;
  std::string text_;
};

std::string printed(std::span<const Variable> list, std::span<const Apply> order, const Plan* plan,
                    const DebugPrintOptions& options) {
  TreePrinter printer(options, order, plan);
  for (const Variable& v : list) printer.print(v);
  printer.print_inner_graphs();
  return printer.take();
}

}  // namespace

std::string debugprint(const Variable& v, const DebugPrintOptions& options) {
  return printed({&v, 1}, {}, nullptr, options);
}

std::string debugprint(const std::vector<Variable>& list, const DebugPrintOptions& options) {
  return printed(list, {}, nullptr, options);
}

std::string debugprint(const FunctionGraph& graph, const DebugPrintOptions& options,
                       const Plan* plan) {
  return printed(graph.outputs(), graph.toposort(), plan, options);
}

}  // namespace palimpsest
