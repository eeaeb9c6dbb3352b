// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/merge.hpp"

#include <string>
#include <unordered_map>

namespace palimpsest {
namespace {

// Constants above this size are merged only by identity: comparing them costs more than it saves.
constexpr index_t kLargestComparedBytes = 4096;

class Merger {
 public:
  explicit Merger(FunctionGraph& graph) : graph_(graph) {}

  int run() {
    int merged = 0;
    for (const Apply& node : graph_.toposort()) {
      for (std::size_t i = 0; i < node.input_count(); ++i) merged += merge_constant(node.input(i));
      if (!overwritten_inputs(node).empty()) continue;
      const auto [it, is_new] = nodes_.emplace(key_of(node), node);
      if (is_new) continue;
      for (std::size_t k = 0; k < node.output_count(); ++k) {
        graph_.replace(node.output(k), it->second.output(k), "merge_duplicates");
      }
      ++merged;
    }
    return merged;
  }

 private:
  static std::string key_of(const Apply& node) {
    std::string key = node.op().str();
    for (const Variable& v : node.inputs()) {
      key += '|';
      key += std::to_string(reinterpret_cast<std::uintptr_t>(v.node()));
    }
    for (const Variable& v : node.outputs()) key += v.is_indestructible() ? '!' : '.';
    return key;
  }

  int merge_constant(const Variable& v) {
    if (!v.is_constant() || v.constant_value().nbytes() > kLargestComparedBytes) return 0;
    std::vector<Variable>& equals = constants_[v.type().str()];
    for (const Variable& other : equals) {
      if (other == v) return 0;
      if (!equal(other.constant_value(), v.constant_value())) continue;
      graph_.replace(v, other, "merge_duplicates");
      return 1;
    }
    equals.push_back(v);
    return 0;
  }

  FunctionGraph& graph_;
  std::unordered_map<std::string, Apply> nodes_;
  std::unordered_map<std::string, std::vector<Variable>> constants_;
};

}  // namespace

int merge_duplicates(FunctionGraph& graph, const RewriteHints&) { return Merger(graph).run(); }

}  // namespace palimpsest
