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
      merged += merge(node, it->second);
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
    for (const Variable& v : node.outputs()) key += tags_of(v);
    return key;
  }

  // What overwrites one of the two decides whether it may be the other one too.
  int merge(const Apply& node, const Apply& with) {
    std::vector<std::pair<Variable, Variable>> pairs;
    for (std::size_t k = 0; k < node.output_count(); ++k) {
      const Variable old = node.output(k), first = with.output(k);
      if (graph_.overwritten_count() > 0 && is_overwritten(old) && is_overwritten(first)) return 0;
      pairs.emplace_back(old, first);
    }
    try {
      graph_.replace_all_validate(pairs, "merge_duplicates");
    } catch (const InconsistencyError&) {
      return 0;
    }
    for (const auto& [old, first] : pairs) {
      if (first.name().empty() && !old.name().empty()) first.named(old.name());
    }
    return 1;
  }

  bool is_overwritten(const Variable& v) const { return !graph_.destroyers(v).empty(); }

  // Of equal type and bytes: a zero is another number than its negative, and NaN the same as NaN.
  int merge_constant(const Variable& v) {
    if (!v.is_constant() || v.constant_value().nbytes() > kLargestComparedBytes) return 0;
    const Tensor dense = v.constant_value().contiguous();
    std::string key = v.type().str() + tags_of(v) + '|';
    key.append(static_cast<const char*>(dense.raw_data()),
               static_cast<std::size_t>(dense.nbytes()));
    const auto [it, is_new] = constants_.emplace(std::move(key), v);
    if (is_new || it->second == v) return 0;
    graph_.replace(v, it->second, "merge_duplicates");
    return 1;
  }

  static std::string tags_of(const Variable& v) {
    return std::string(v.tags().indestructible ? "!" : ".") + (v.tags().nan_guard ? "" : "n");
  }

  FunctionGraph& graph_;
  std::unordered_map<std::string, Apply> nodes_;
  std::unordered_map<std::string, Variable> constants_;
};

}  // namespace

int merge_duplicates(FunctionGraph& graph, const RewriteHints&) { return Merger(graph).run(); }

}  // namespace palimpsest
