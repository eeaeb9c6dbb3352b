// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/merge.hpp"

#include <functional>
#include <string>
#include <typeinfo>
#include <unordered_map>

#include "palimpsest/base/pointer_map.hpp"
#include "palimpsest/ops/control/debugging_op.hpp"
#include "palimpsest/rewrite/patterns.hpp"

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
      if (!overwritten_inputs(node).empty() || op_of<ops::Breakpoint>(node)) continue;
      if (const Apply* const equal = equal_to(node)) merged += merge(node, *equal);
    }
    return merged;
  }

 private:
  struct First {
    Apply node;
    bool is_keyed = false;
  };

  // An earlier node that computes the same. Most nodes are told apart by their inputs: only those
  // that come second get a key, and with them the one that came first.
  const Apply* equal_to(const Apply& node) {
    const auto [first, is_new] = first_.try_emplace(fingerprint(node), First{node});
    if (is_new) return nullptr;
    if (!first->second.is_keyed) {
      first->second.is_keyed = true;
      nodes_.emplace(key_of(first->second.node), first->second.node);
    }
    const auto [equal, is_different] = nodes_.emplace(key_of(node), node);
    return is_different ? nullptr : &equal->second;
  }

  static std::size_t fingerprint(const Apply& node) {
    const Op& op = node.op();
    std::size_t hash = typeid(op).hash_code();
    for (const Variable& v : node.inputs()) {
      hash = hash * 0x9E3779B97F4A7C15u + std::hash<Variable>{}(v);
    }
    return hash;
  }

  static std::string key_of(const Apply& node) {
    std::string key = node.op().str();
    for (const Variable& v : node.inputs()) {
      key += '|';
      key += std::to_string(reinterpret_cast<std::uintptr_t>(v.node()));
    }
    for (const Variable& v : node.outputs()) key += tags_of(v);
    return key;
  }

  // Refuses if an output is overwritten in both nodes; else validation decides.
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

  // Merges constants of equal type and bytes: 0 and -0 differ, NaN equals NaN.
  int merge_constant(const Variable& v) {
    if (!v.is_constant() || known_.contains(v.node())) return 0;
    if (v.constant_value().nbytes() > kLargestComparedBytes) return 0;
    const Tensor dense = v.constant_value().contiguous();
    std::string key = v.type().str() + tags_of(v) + '|';
    key.append(static_cast<const char*>(dense.raw_data()),
               static_cast<std::size_t>(dense.nbytes()));
    const auto [it, is_new] = constants_.emplace(std::move(key), v);
    if (is_new) known_.insert(v.node());
    if (is_new || it->second == v) return 0;
    graph_.replace(v, it->second, "merge_duplicates");
    return 1;
  }

  static std::string tags_of(const Variable& v) {
    return std::string(v.tags().indestructible ? "!" : ".") + (v.tags().nan_guard ? "" : "n");
  }

  FunctionGraph& graph_;
  std::unordered_map<std::size_t, First> first_;
  std::unordered_map<std::string, Apply> nodes_;
  std::unordered_map<std::string, Variable> constants_;
  PointerSet<VariableNode> known_;  // those of constants_
};

}  // namespace

int merge_duplicates(FunctionGraph& graph, const RewriteHints&) { return Merger(graph).run(); }

}  // namespace palimpsest
