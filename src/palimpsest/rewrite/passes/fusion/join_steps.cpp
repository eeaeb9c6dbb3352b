// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/fusion/join_steps.hpp"

#include <set>
#include <span>

#include "palimpsest/base/pointer_map.hpp"
#include "palimpsest/ops/elementwise/elementwise_sums.hpp"
#include "palimpsest/rewrite/prelude.hpp"

namespace palimpsest {
namespace {

constexpr int kMostJoined = 32;  // registers
constexpr std::size_t kMostOutputs = ElementwiseProgram::kMaxOutputs;
constexpr std::size_t kMostSumUses = 16, kMostUses = 64, kMostWaiting = 256;

using Kind = SumOfOutputs::Kind;

// A step over arrays of one shape, on its way from the nodes that it replaces.
struct Pass {
  ElementwiseProgram program;  // without outputs
  std::vector<Variable> inputs;
  std::vector<int> registers;  // of the inputs
  struct Array {
    Variable old;
    int made;
  };
  struct Sum {
    Variable old;
    Kind kind;
    int a, b;
  };
  std::vector<Array> arrays;
  std::vector<Sum> sums;
  Extents shape;  // of all that is computed

  int read(const Variable& v) {
    const auto it = std::find(inputs.begin(), inputs.end(), v);
    if (it != inputs.end()) return registers[static_cast<std::size_t>(it - inputs.begin())];
    inputs.push_back(v);
    registers.push_back(program.input(v.dtype()));
    return registers.back();
  }

  // Adds the results of `part`, from arrays that are here already and from further inputs.
  void append(const Pass& part) {
    std::vector<int> operands;
    for (const Variable& v : part.inputs) {
      const auto known =
          std::find_if(arrays.begin(), arrays.end(), [&](const Array& a) { return a.old == v; });
      operands.push_back(known != arrays.end() ? known->made : read(v));
    }
    ElementwiseProgram all = part.program;
    for (const Array& array : part.arrays) all.output(array.made);
    for (const Sum& sum : part.sums) {
      all.output(sum.a);
      all.output(sum.b);
    }
    const std::vector<int> made = program.append(all, operands);
    std::size_t k = 0;
    for (const Array& array : part.arrays) arrays.push_back({array.old, made[k++]});
    for (const Sum& sum : part.sums) {
      sums.push_back({sum.old, sum.kind, made[k], made[k + 1]});
      k += 2;
    }
    shape = part.shape;
  }
};

// The pass that a sum over all elements is; nothing for other nodes.
std::optional<Pass> pass_of_sum(const Apply& node) {
  if (node.output_count() != 1 || node.input_count() == 0) return {};
  const Variable& x = node.input(0);
  if (!is_inexact(x.dtype())) return {};
  Pass pass;
  pass.shape = x.type().shape;
  const auto sum = [&](Kind kind, int a, int b) {
    pass.sums.push_back({node.output(0), kind, a, b});
    return pass;
  };
  if (op_of<ops::Norm2>(node)) {
    const int r = pass.read(x);
    return sum(Kind::norm2, r, r);
  }
  if (const auto* const reduce = op_of<ops::Reduce>(node)) {
    if (reduce->reduce_op() != ReduceOp::sum || reduce->axes().size() != x.rank()) return {};
    const int r = pass.read(x);
    return sum(Kind::plain, r, r);
  }
  const auto* const contract = op_of<ops::Contract>(node);
  if (contract == nullptr) return {};
  const Contraction& c = contract->contraction();
  const bool is_inner = c.out.empty() && std::equal(c.a.begin(), c.a.end(), c.b.begin(), c.b.end());
  if (!is_inner || (c.conj_a && c.conj_b)) return {};
  if (!(x.type().shape == node.input(1).type().shape)) return {};
  const int a = pass.read(x), b = pass.read(node.input(1));
  if (c.conj_b) return sum(Kind::conj_product, b, a);
  return sum(c.conj_a ? Kind::conj_product : Kind::product, a, b);
}

// The pass that an elementwise step is, with sums or without; nothing for other nodes.
std::optional<Pass> pass_of_arrays(const Apply& node) {
  const ElementwiseProgram* program = nullptr;
  std::span<const SumOfOutputs> sums;
  std::size_t n_arrays = node.output_count();
  if (const auto* const plain = op_of<ops::Elementwise>(node)) {
    if (plain->is_in_place()) return {};
    program = &plain->program();
  } else if (const auto* const with_sums = op_of<ops::ElementwiseSums>(node)) {
    if (with_sums->is_in_place() || !with_sums->filtered().empty()) return {};
    program = &with_sums->program();
    sums = with_sums->sums();
    n_arrays = with_sums->n_arrays();
  }
  if (program == nullptr || node.input_count() == 0) return {};
  Pass pass;
  std::vector<int> operands;
  for (const Variable& v : node.inputs()) operands.push_back(pass.read(v));
  const std::vector<int> made = pass.program.append(*program, operands);
  for (std::size_t k = 0; k < n_arrays; ++k) pass.arrays.push_back({node.output(k), made[k]});
  for (std::size_t s = 0; s < sums.size(); ++s) {
    pass.sums.push_back({node.output(n_arrays + s), sums[s].kind,
                         made[static_cast<std::size_t>(sums[s].a)],
                         made[static_cast<std::size_t>(sums[s].b)]});
  }
  pass.shape = node.input(0).type().shape;
  for (const Variable& v : node.inputs()) {
    for (std::size_t k = 0; k < pass.shape.size(); ++k) {
      const index_t extent = v.type().shape[k];
      const bool says_more = pass.shape[k] == 1 || (pass.shape[k] == kUnknown && extent != 1);
      if (says_more) pass.shape[k] = extent;
    }
  }
  return pass;
}

// The node of a pass; undefined if it has too many outputs.
Apply node_of(const Pass& pass, SharedOps& ops) {
  ElementwiseProgram program = pass.program;
  std::vector<int> outputs;
  const auto position = [&](int r) {
    const auto it = std::find(outputs.begin(), outputs.end(), r);
    if (it != outputs.end()) return static_cast<int>(it - outputs.begin());
    outputs.push_back(r);
    program.output(r);
    return static_cast<int>(outputs.size()) - 1;
  };
  for (const Pass::Array& array : pass.arrays) {
    outputs.push_back(array.made);
    program.output(array.made);
  }
  if (pass.sums.empty()) {
    return ops.op_of(std::move(program))->make_node(pass.inputs);
  }
  std::vector<SumOfOutputs> sums;
  for (const Pass::Sum& sum : pass.sums) {
    if (outputs.size() + 2 > kMostOutputs) return {};
    const int a = position(sum.a);
    sums.push_back({sum.kind, a, sum.kind >= Kind::product ? position(sum.b) : 0});
  }
  const auto op = std::make_shared<const ops::ElementwiseSums>(std::move(program),
                                                               pass.arrays.size(), std::move(sums));
  return op->make_node(pass.inputs);
}

// Puts one node in the place of both; undefined if the graph refuses it, such as for a value that
// goes from one of them through a third node to the other.
Apply put(FunctionGraph& graph, const Pass& pass, const Apply& with, const Apply& a, const Apply& b,
          std::string_view reason) {
  std::vector<std::pair<Variable, Variable>> pairs;
  const auto replace = [&](const Variable& old) {
    const Variable v = with.output(pairs.size());
    pairs.emplace_back(old, v);
    return v.type() == old.type();
  };
  bool fits = true;
  for (const Pass::Array& array : pass.arrays) fits = replace(array.old) && fits;
  for (const Pass::Sum& sum : pass.sums) fits = replace(sum.old) && fits;
  if (!fits) return {};
  const Origin* const origin = origin_of(a);
  pass_origin(origin && origin->limit ? a : b, with);
  return replace_if_consistent(graph, pairs, reason) ? with : Apply();
}

bool are_too_long(const Pass& a, const Pass& b) {
  return a.program.n_registers() + b.program.n_registers() > kMostJoined ||
         a.arrays.size() + b.arrays.size() > kMostOutputs;
}

// -- results -------------------------------------------------------------------------------------

bool is_broadcast_in(const Variable& v, const Apply& node) {
  const Extents &from = v.type().shape, &to = node.output(0).type().shape;
  for (std::size_t k = 0; k < from.size(); ++k) {
    if (from[k] == 1 && to[k] != 1) return true;
  }
  return false;
}

class ResultJoin {
 public:
  ResultJoin(FunctionGraph& graph, const RewriteHints& hints, SharedOps& ops)
      : graph_(graph), ops_(ops) {
    for (const auto& [value, memory] : hints.preferred_memory) {
      if (!value.owner().defined()) continue;
      preferred_memory_.try_emplace(value.owner().node()).first->push_back(memory);
    }
  }

  int run() {
    int joined = 0;
    for (const Apply& node : graph_.toposort()) {
      if (!graph_.contains(node) || !is_candidate(node)) continue;
      joined += join_earlier(node) ? 1 : 0;
    }
    return joined;
  }

 private:
  bool is_candidate(const Apply& node) const {
    const auto* const step = op_of<ops::Elementwise>(node);
    if (step == nullptr || step->is_in_place()) return false;
    const std::vector<Variable> outputs = node.outputs();
    return std::all_of(outputs.begin(), outputs.end(), [&](const Variable& v) {
      return graph_.is_output(v) && !v.is_indestructible();
    });
  }

  // Joins the node with earlier candidates that compute its inputs or read the same, as long as one
  // fits. The result waits for later nodes.
  bool join_earlier(Apply node) {
    bool has_joined = false;
    for (Apply with = joined_with_one(node); with.defined(); with = joined_with_one(node)) {
      node = with;
      has_joined = true;
    }
    for (const Variable& v : node.inputs()) {
      if (!is_broadcast_in(v, node)) waiting_[v.node()] = node;
    }
    for (const Variable& v : node.outputs()) waiting_[v.node()] = node;
    kept_.push_back(node);
    return has_joined;
  }

  Apply joined_with_one(const Apply& node) {
    for (const Variable& v : node.inputs()) {
      const Apply* const found = is_broadcast_in(v, node) ? nullptr : waiting_.find(v.node());
      if (found == nullptr || !graph_.contains(*found)) continue;
      if (!(found->output(0).type().shape == node.output(0).type().shape)) continue;
      const Apply with = joined(*found, node);
      if (with.defined()) return with;
    }
    return {};
  }

  Apply joined(const Apply& a, const Apply& b) {
    std::optional<Pass> made = pass_of_arrays(a);
    const std::optional<Pass> part = pass_of_arrays(b);
    if (!made || !part || are_too_long(*made, *part)) return {};
    made->append(*part);
    const Apply with = node_of(*made, ops_);
    if (!overwrites_as_much(a, b, with)) return {};
    return put(graph_, *made, with, a, b, "fuse_elementwise");
  }

  // Values that a node could overwrite if it runs in one step with `other`.
  std::vector<Variable> overwritable(const Apply& node, const Apply& other) const {
    std::vector<Variable> found;
    for (const Variable& v : node.inputs()) {
      if (v.owner() == other || v.is_constant() || is_broadcast_in(v, node) ||
          std::find(found.begin(), found.end(), v) != found.end()) {
        continue;
      }
      const bool may_be = graph_.is_input(v) ? !graph_.is_protected(v) : !graph_.is_output(v);
      const std::vector<Use> uses =
          graph_.use_count(v) <= kMostUses ? graph_.uses(v) : std::vector<Use>{Use{}};
      const bool is_last = std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
        return use.node == node || use.node == other;
      });
      if (may_be && is_last) found.push_back(v);
    }
    // A shared variable is overwritten by its new value after all readers of the old one.
    if (const std::vector<Variable>* const memories = preferred_memory_.find(node.node())) {
      for (const Variable& memory : *memories) {
        if (std::find(found.begin(), found.end(), memory) == found.end()) found.push_back(memory);
      }
    }
    return found;
  }

  // True if one step can overwrite as many values as two steps could.
  bool overwrites_as_much(const Apply& a, const Apply& b, const Apply& with) const {
    std::vector<Variable> found = overwritable(a, b);
    const std::vector<Variable> of_b = overwritable(b, a);
    std::size_t most =
        std::min(found.size(), a.output_count()) + std::min(of_b.size(), b.output_count());
    for (const Variable& v : of_b) {
      if (std::find(found.begin(), found.end(), v) == found.end()) found.push_back(v);
    }
    most = std::min(most, found.size());
    if (most < 2) return true;
    std::set<int> allowed;
    for (std::size_t i = 0; i < with.input_count(); ++i) {
      if (std::find(found.begin(), found.end(), with.input(i)) != found.end()) {
        allowed.insert(static_cast<int>(i));
      }
    }
    const OpPtr op = with.op().inplace_on_inputs(with, allowed);
    return op && overwritten_inputs(op->make_node(with.inputs())).size() >= most;
  }

  FunctionGraph& graph_;
  SharedOps& ops_;
  PointerMap<const ApplyNode, std::vector<Variable>> preferred_memory_;  // of a step's results
  PointerMap<const VariableNode, Apply> waiting_;
  std::vector<Apply> kept_;  // so that no address in waiting_ is used twice
};

// -- sums ----------------------------------------------------------------------------------------

index_t known_elements(const Extents& shape) {
  index_t n = 1;
  for (const index_t extent : shape) n *= extent == kUnknown ? 1 : extent;
  return n;
}

class SumJoin {
 public:
  SumJoin(FunctionGraph& graph, index_t least) : graph_(graph), least_(least) {}

  int run() {
    int joined = 0;
    for (const Apply& node : graph_.toposort()) {
      if (!graph_.contains(node)) continue;
      std::optional<Pass> pass = pass_of_sum(node);
      if (pass && known_elements(pass->shape) >= least_) joined += spread(node, std::move(*pass));
    }
    return joined;
  }

 private:
  // Joins the node with one neighbour after the other.
  int spread(Apply node, Pass pass) {
    int joined = 0;
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (const Apply& other : neighbours(node)) {
        const std::optional<Pass> next = pass_of_arrays(other);
        if (!next || !(next->shape == pass.shape)) continue;
        const Apply with = joined_with(node, pass, other, *next);
        if (!with.defined()) continue;
        node = with;
        pass = *pass_of_arrays(node);
        ++joined;
        goes_on = true;
        break;
      }
    }
    return joined;
  }

  // Makers of this node's inputs, then other readers of these inputs, then readers of its outputs.
  std::vector<Apply> neighbours(const Apply& node) const {
    std::vector<Apply> found;
    const auto add = [&](const Apply& other) {
      const bool is_known = std::find(found.begin(), found.end(), other) != found.end();
      if (!is_known && !(other == node)) found.push_back(other);
    };
    for (const Variable& v : node.inputs()) {
      if (v.owner().defined() && graph_.contains(v.owner())) add(v.owner());
    }
    const auto add_readers = [&](const Variable& v) {
      if (v.rank() == 0 || graph_.use_count(v) > kMostSumUses) return;
      for (const Use& use : graph_.uses(v)) {
        if (use.node.defined()) add(use.node);
      }
    };
    for (const Variable& v : node.inputs()) add_readers(v);
    for (const Variable& v : node.outputs()) add_readers(v);
    return found;
  }

  // True if nothing but these two nodes reads the value.
  bool is_between(const Variable& v, const Apply& a, const Apply& b) const {
    if (graph_.is_output(v) || v.is_indestructible() || graph_.use_count(v) > kMostSumUses) {
      return false;
    }
    const std::vector<Use> uses = graph_.uses(v);
    return std::all_of(uses.begin(), uses.end(),
                       [&](const Use& use) { return use.node == a || use.node == b; });
  }

  // A node for both; undefined if there is none. Arrays of only one of them may stay, so that none
  // lives longer than before.
  Apply joined_with(const Apply& node, const Pass& pass, const Apply& other, const Pass& next) {
    if (are_too_long(pass, next)) return {};
    const bool other_is_first = std::any_of(node.inputs().begin(), node.inputs().end(),
                                            [&](const Variable& v) { return v.owner() == other; });
    const Pass &first = other_is_first ? next : pass, &second = other_is_first ? pass : next;
    for (const Pass::Array& array : first.arrays) {
      if (gathers_terms(first, second, array)) return {};
    }
    Pass made;
    made.append(first);
    made.append(second);
    std::erase_if(made.arrays,
                  [&](const Pass::Array& array) { return is_between(array.old, node, other); });
    const auto stays = [&](const Pass& part) {
      return std::any_of(part.arrays.begin(), part.arrays.end(), [&](const Pass::Array& array) {
        return std::any_of(made.arrays.begin(), made.arrays.end(),
                           [&](const Pass::Array& kept) { return kept.old == array.old; });
      });
    };
    if (stays(pass) && stays(next)) return {};
    const bool is_beside = !other_is_first && !reads(other, node);
    if (is_beside && (waits_for(other, node) || waits_for(node, other))) return {};
    const Apply with = node_of(made, ops_);
    return with.defined() ? put(graph_, made, with, node, other, "fuse_sums") : Apply();
  }

  static bool reads(const Apply& reader, const Apply& node) {
    return std::any_of(reader.inputs().begin(), reader.inputs().end(),
                       [&](const Variable& v) { return v.owner() == node; });
  }

  // True if a reader of the node's arrays needs results of `other`: made in one step with them, the
  // arrays would lie in memory meanwhile.
  bool waits_for(const Apply& node, const Apply& other) const {
    PointerMap<const ApplyNode, bool> seen;
    std::vector<Apply> open{other};
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (i > kMostWaiting) return true;
      for (const Variable& v : open[i].outputs()) {
        if (graph_.use_count(v) > kMostWaiting) return true;
        for (const Use& use : graph_.uses(v)) {
          if (use.node.defined() && seen.try_emplace(use.node.node()).second) {
            open.push_back(use.node);
          }
        }
      }
    }
    const std::vector<Variable> made = node.outputs();
    return std::any_of(made.begin(), made.end(), [&](const Variable& v) {
      if (v.rank() == 0) return false;
      const std::vector<Use> uses = graph_.uses(v);
      return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
        return use.node.defined() && seen.find(use.node.node()) != nullptr;
      });
    });
  }

  // Arrays that are added up one after the other are in memory two at a time; in one pass, all of
  // them would be.
  static bool gathers_terms(const Pass& first, const Pass& second, const Pass::Array& array) {
    const auto computed = std::count_if(first.inputs.begin(), first.inputs.end(),
                                        [](const Variable& input) { return is_computed(input); });
    const auto it = std::find(second.inputs.begin(), second.inputs.end(), array.old);
    if (computed < 2 || it == second.inputs.end()) return false;
    const int read = second.registers[static_cast<std::size_t>(it - second.inputs.begin())];
    const auto is_sum = [](const ElementwiseProgram& program, auto&& is_wanted) {
      const auto steps = program.instructions();
      return std::any_of(steps.begin(), steps.end(),
                         [&](const auto& i) { return i.op == ScalarOp::add && is_wanted(i); });
    };
    return is_sum(first.program, [&](const auto& i) { return i.destination == array.made; }) &&
           is_sum(second.program,
                  [&](const auto& i) { return i.sources[0] == read || i.sources[1] == read; });
  }

  FunctionGraph& graph_;
  SharedOps ops_;
  index_t least_;
};

}  // namespace

int join_results(FunctionGraph& graph, const RewriteHints& hints, SharedOps& ops) {
  return ResultJoin(graph, hints, ops).run();
}

int join_sums(FunctionGraph& graph, index_t least) { return SumJoin(graph, least).run(); }

}  // namespace palimpsest
