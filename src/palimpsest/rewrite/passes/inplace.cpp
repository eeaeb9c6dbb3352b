// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/inplace.hpp"

#include <set>
#include <tuple>
#include <typeinfo>

#include "palimpsest/graph/graph_state.hpp"
#include "palimpsest/graph/inplace_query.hpp"
#include "palimpsest/ops/create/random_op.hpp"
#include "palimpsest/ops/elementwise/elementwise_sums.hpp"
#include "palimpsest/ops/index/gather_op.hpp"
#include "palimpsest/ops/index/index_op.hpp"
#include "palimpsest/ops/transforms/fft_op.hpp"
#include "palimpsest/ops/transforms/weighted_fft_op.hpp"
#include "palimpsest/rewrite/memory_of_values.hpp"
#include "palimpsest/rewrite/prelude.hpp"

namespace palimpsest {
namespace {

enum class Family { updates, products, transforms, elementwise, keys };

Family family_of(const Op& op) {
  if (typeid(op) == typeid(ops::Elementwise)) return Family::elementwise;
  const auto is = [&]<class... T>() { return (dynamic_cast<const T*>(&op) || ...); };
  if (is.template operator()<ops::UpdateSubtensor, ops::UpdateAt>()) return Family::updates;
  if (is.template operator()<ops::AddContract>()) return Family::products;
  if (is.template operator()<ops::Fft, ops::WeightedFft>()) return Family::transforms;
  if (is.template operator()<ops::NextKey>()) return Family::keys;
  return Family::elementwise;
}

// An input that the node could overwrite, and how good it would be.
struct Candidate {
  int input;
  OpPtr op;
  Apply variant = {};  // made when it is asked for
  bool realizes = false, continues = false, is_last = false;
  double bytes = 0;
};

class InplacePass {
 public:
  InplacePass(FunctionGraph& graph, const RewriteHints& hints, Family family, const char* reason)
      : graph_(graph),
        hints_(hints),
        family_(family),
        reason_(reason),
        order_(graph.toposort()),
        memory_(graph, order_) {
    for (const auto& [value, memory] : hints.preferred_memory) {
      mark_chain(value, memory);
      updates_[value.node()] = memory.node();
    }
  }

  int run() {
    int applied = 0;
    for (std::size_t place = 0; place < order_.size(); ++place) {
      const Apply& node = order_[place];
      if (family_of(node.op()) != family_ || !overwritten_inputs(node).empty()) continue;
      if (put_in_place(node, place)) ++applied;
    }
    return applied;
  }

 private:
  // Every value on the way to `value` from which in-place steps could lead there: they would best
  // lie in `memory` too.
  void mark_chain(const Variable& value, const Variable& memory) {
    std::vector<Variable> pending{value};
    while (!pending.empty()) {
      const Variable v = pending.back();
      pending.pop_back();
      if (!wanted_.try_emplace(v.node(), memory.node()).second) continue;
      const Apply owner = v.owner();
      if (!owner.defined() || !graph_.contains(owner)) continue;
      const auto is_alike = [&](const Variable& other) {
        return other.type().shape == value.type().shape && other.dtype() == value.dtype();
      };
      // Another output has already led to the same inputs.
      auto& seen = marked_outputs_[owner.node()];
      if (std::any_of(seen.begin(), seen.end(), is_alike)) continue;
      if (owner.output_count() > 1) seen.push_back(v);
      for (const Variable& input : owner.inputs()) {
        if (is_alike(input)) pending.push_back(input);
      }
    }
  }

  // The text of an op with many parts, such as a loop, is cut off: each part may be refused.
  const std::string& text_of(const Apply& node) {
    if (described_ == node) return description_;
    constexpr std::size_t kLongest = 160;
    described_ = node;
    description_ = node.op().str();
    if (description_.size() > kLongest)
      description_.replace(kLongest - 3, std::string::npos, "...");
    return description_;
  }

  void refuse(const Apply& node, int input, InconsistencyKind kind) {
    if (!hints_.refusals) return;
    const std::string variable =
        input < 0 ? std::string() : node.input(static_cast<std::size_t>(input)).str();
    hints_.refusals->push_back({{}, text_of(node), input, variable, kind});
  }

  // Asking whether an input may be overwritten can cost as much as there are readers of it, so that
  // it is asked about one after the other.
  bool put_in_place(const Apply& node, std::size_t place) {
    std::set<int> all;
    for (int i = 0; i < static_cast<int>(node.input_count()); ++i) all.insert(i);
    if (may_overwrite_several(node)) return put_together(node, place, std::move(all));
    std::vector<Candidate> candidates = candidates_of(node, all);
    if (candidates.size() > 1) {
      rank(candidates, node, place);
      if (try_all(node, candidates)) return true;
    }
    return try_one(node, candidates);
  }

  bool try_one(const Apply& node, std::vector<Candidate>& candidates) {
    return std::any_of(candidates.begin(), candidates.end(), [&](Candidate& c) {
      return is_possible(node, c) && try_variant(node, c.variant, c.input);
    });
  }

  // The variant on these inputs. Each of several results goes to its preferred memory.
  OpPtr variant_op(const Apply& node, const std::set<int>& allowed) {
    const auto* const step = op_of<ops::Elementwise>(node);
    const auto* const with_sums = op_of<ops::ElementwiseSums>(node);
    const std::size_t n = step ? node.output_count() : with_sums ? with_sums->n_arrays() : 0;
    if (n < 2) return node.op().inplace_on_inputs(node, allowed);
    ops::Elementwise::Overwrites preferred(n, ops::Elementwise::kNone);
    for (std::size_t k = 0; k < preferred.size(); ++k) {
      for (const int i : allowed) {
        const VariableNode* const root = memory_.root(node.input(static_cast<std::size_t>(i)));
        for (const auto* const map : {&wanted_, &updates_}) {
          const auto* const memory = map->find(node.output(k).node());
          if (memory && *memory == root) preferred[k] = i;
        }
      }
    }
    return step ? step->inplace_on_inputs(node, allowed, preferred)
                : with_sums->inplace_on_inputs(node, allowed, preferred);
  }

  // True if the op can overwrite several inputs by an output each, as a loop with several states
  // can.
  bool may_overwrite_several(const Apply& node) const {
    return node.output_count() > 1 && node.input_count() > 1 && family_ != Family::keys &&
           typeid(node.op()) != typeid(ops::Elementwise) &&
           typeid(node.op()) != typeid(ops::ElementwiseSums);
  }

  // All inputs that are possible at once. A variant on a single input costs as much as one on all:
  // it is made where nothing but trying tells, and only once all together are refused.
  bool put_together(const Apply& node, std::size_t place, std::set<int> allowed) {
    InconsistencyKind refusal = InconsistencyKind::none;  // of all that are left together
    while (const OpPtr op = node.op().inplace_on_inputs(node, allowed)) {
      const Apply variant = op->make_node(node.inputs());
      const auto answers = inplace_refusals(graph_, node, variant);
      if (answers.empty()) return false;
      const std::size_t before = allowed.size();
      for (const auto& [input, answer] : answers) {
        const bool tries = !answer && refusal != InconsistencyKind::none;
        const InconsistencyKind kind =
            tries ? refusal_alone(node, input) : answer.value_or(InconsistencyKind::none);
        if (kind != InconsistencyKind::none) refuse(node, input, kind);
        if (kind != InconsistencyKind::none || !is_worth(node, input)) allowed.erase(input);
      }
      if (allowed.size() < before) {
        refusal = InconsistencyKind::none;
        continue;
      }
      if (refusal != InconsistencyKind::none) {
        refuse(node, -1, refusal);
        std::vector<Candidate> candidates = candidates_of(node, allowed);
        rank(candidates, node, place);
        return try_one(node, candidates);
      }
      refusal = replace(node, variant);
      if (refusal == InconsistencyKind::none) return true;
      if (answers.size() > 1) continue;
      refuse(node, answers.begin()->first, refusal);
      allowed.erase(answers.begin()->first);
      refusal = InconsistencyKind::none;
    }
    return false;
  }

  InconsistencyKind refusal_alone(const Apply& node, int input) {
    const OpPtr op = node.op().inplace_on_inputs(node, {input});
    if (!op) return InconsistencyKind::none;
    return inplace_refusal(graph_, node, op->make_node(node.inputs()), input);
  }

  // Inputs that a kernel can overwrite and for which that is worth it.
  std::vector<Candidate> candidates_of(const Apply& node, const std::set<int>& allowed) {
    std::vector<Candidate> result;
    for (const int input : allowed) {
      const Variable& v = node.input(static_cast<std::size_t>(input));
      const auto is_same = [&](const Candidate& c) {
        return node.input(static_cast<std::size_t>(c.input)) == v;
      };
      if (std::any_of(result.begin(), result.end(), is_same)) continue;
      OpPtr op = variant_op(node, {input});
      if (!op) continue;
      Candidate candidate{input, std::move(op)};
      if (helps(node, candidate, v)) result.push_back(std::move(candidate));
    }
    return result;
  }

  bool is_possible(const Apply& node, Candidate& c) {
    if (!c.variant.defined()) c.variant = c.op->make_node(node.inputs());
    if (!overwritten_inputs(c.variant).contains(c.input)) return false;
    const InconsistencyKind kind = inplace_refusal(graph_, node, c.variant, c.input);
    if (kind != InconsistencyKind::none) refuse(node, c.input, kind);
    return kind == InconsistencyKind::none;
  }

  // Keys are small: overwriting one pays only if it avoids a copy into a shared variable.
  bool helps(const Apply& node, Candidate& candidate, const Variable& v) {
    const VariableNode* const root = memory_.root(v);
    for (const Variable& out : node.outputs()) {
      const auto *const update = updates_.find(out.node()), *const wanted =
                                                                wanted_.find(out.node());
      candidate.realizes |= update && *update == root;
      candidate.continues |= wanted && *wanted == root;
    }
    candidate.bytes = MemoryOfValues::bytes(v);
    if (family_ == Family::keys) return candidate.realizes || candidate.continues;
    return is_worth(node, candidate.input);
  }

  bool is_worth(const Apply& node, int input) {
    const Variable& v = node.input(static_cast<std::size_t>(input));
    if (!memory_.would_keep_more(v, node.output(0))) return true;
    refuse(node, input, InconsistencyKind::none);
    return false;
  }

  void rank(std::vector<Candidate>& candidates, const Apply& node, std::size_t place) {
    for (Candidate& c : candidates) {
      c.is_last = memory_.is_last_reader(node.input(static_cast<std::size_t>(c.input)), place);
    }
    const auto key = [](const Candidate& c) {
      return std::tuple(!c.realizes, !c.continues, -c.bytes, !c.is_last);
    };
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&](const Candidate& a, const Candidate& b) { return key(a) < key(b); });
  }

  // An op that can overwrite several inputs in one run: all that are possible by themselves.
  bool try_all(const Apply& node, std::vector<Candidate>& candidates) {
    const auto variant_of_all = [&] {
      std::set<int> allowed;
      for (const Candidate& c : candidates) allowed.insert(c.input);
      const OpPtr op = variant_op(node, allowed);
      return op ? op->make_node(node.inputs()) : Apply();
    };
    Apply variant = variant_of_all();
    if (!variant.defined()) return false;
    std::set<int> overwritten = overwritten_inputs(variant);
    if (overwritten.size() < 2) {
      for (Candidate& c : candidates) {
        if (overwritten.contains(c.input)) c.variant = variant;
      }
      return false;
    }
    std::erase_if(candidates, [&](Candidate& c) { return !is_possible(node, c); });
    variant = variant_of_all();
    return variant.defined() && overwritten_inputs(variant).size() > 1 &&
           try_variant(node, variant, -1);
  }

  bool try_variant(const Apply& node, const Apply& variant, int input) {
    const InconsistencyKind refusal = replace(node, variant);
    if (refusal != InconsistencyKind::none) refuse(node, input, refusal);
    return refusal == InconsistencyKind::none;
  }

  // Puts the variant in the node's place; why not, if that is refused.
  InconsistencyKind replace(const Apply& node, const Apply& variant) {
    std::vector<std::pair<Variable, Variable>> pairs;
    for (std::size_t k = 0; k < node.output_count(); ++k) {
      pairs.emplace_back(node.output(k), variant.output(k));
    }
    try {
      graph_.replace_all_validate(pairs, reason_);
    } catch (const InconsistencyError& error) {
      kept_.push_back(variant);
      return error.kind();
    }
    for (const auto& [old, with] : pairs) {
      for (auto* const map : {&wanted_, &updates_}) {
        if (const auto* const memory = map->find(old.node())) {
          const VariableNode* const same = *memory;  // adding moves it
          map->try_emplace(with.node(), same);
        }
      }
      memory_.replaced(old, with);
    }
    return InconsistencyKind::none;
  }

  FunctionGraph& graph_;
  const RewriteHints& hints_;
  const Family family_;
  const char* const reason_;
  const std::vector<Apply> order_;
  MemoryOfValues memory_;
  // Values, and the inputs of the graph in whose memory they should lie, or will be stored.
  PointerMap<const VariableNode, const VariableNode*> wanted_, updates_;
  PointerMap<const ApplyNode, std::vector<Variable>> marked_outputs_;  // one of each type
  std::vector<Apply> kept_;  // so that no address is used twice
  Apply described_;          // the node that was refused last
  std::string description_;  // of its op
};

// Most graphs have no node of most families, which is found out without sorting them.
int run_family(FunctionGraph& graph, const RewriteHints& hints, Family family, const char* reason) {
  const bool has_any =
      graph.state().any_node([&](const Apply& node) { return family_of(node.op()) == family; });
  return has_any ? InplacePass(graph, hints, family, reason).run() : 0;
}

}  // namespace

std::string InplaceRefusal::str() const {
  std::string text = (body.empty() ? body : body + ": ") + node + ": ";
  text += input < 0 ? "several inputs" : "input " + std::to_string(input) + " " + variable;
  const bool is_fault = kind != InconsistencyKind::none;
  return text + ": " + (is_fault ? std::string(name_of(kind)) : "part of a bigger buffer");
}

int run_updates_in_place(FunctionGraph& graph, const RewriteHints& hints) {
  return run_family(graph, hints, Family::updates, "run_updates_in_place");
}
int run_products_in_place(FunctionGraph& graph, const RewriteHints& hints) {
  return run_family(graph, hints, Family::products, "run_products_in_place");
}
int run_transforms_in_place(FunctionGraph& graph, const RewriteHints& hints) {
  return run_family(graph, hints, Family::transforms, "run_transforms_in_place");
}
int run_elementwise_in_place(FunctionGraph& graph, const RewriteHints& hints) {
  return run_family(graph, hints, Family::elementwise, "run_elementwise_in_place");
}
int run_keys_in_place(FunctionGraph& graph, const RewriteHints& hints) {
  return run_family(graph, hints, Family::keys, "run_keys_in_place");
}

}  // namespace palimpsest
