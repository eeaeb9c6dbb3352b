// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/fusion/fuse_sums.hpp"

#include "palimpsest/ops/elementwise/elementwise_sums.hpp"
#include "palimpsest/rewrite/prelude.hpp"

namespace palimpsest {
namespace {

constexpr index_t kFewElements = 64;
constexpr int kMostSumRegisters = 32;
constexpr std::size_t kMostSumUses = 16;

using Kind = SumOfOutputs::Kind;

// An elementwise step with sums, on its way from the nodes that it replaces.
struct SumStep {
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
};

bool is_all_of(const Axes& axes, const Variable& x) { return axes.size() == x.rank(); }

// x summed up by itself: the step that a reduction is.
std::optional<SumStep> step_of_sum(const Apply& node) {
  if (node.output_count() != 1 || node.input_count() == 0) return {};
  SumStep step;
  const auto sum = [&](Kind kind, int a, int b) {
    step.sums.push_back({node.output(0), kind, a, b});
    step.shape = node.input(0).type().shape;
  };
  const Variable& x = node.input(0);
  if (op_of<ops::Norm2>(node)) {
    if (!is_inexact(x.dtype())) return {};
    const int r = step.read(x);
    sum(Kind::norm2, r, r);
  } else if (const auto* const reduce = op_of<ops::Reduce>(node)) {
    if (reduce->reduce_op() != ReduceOp::sum || !is_all_of(reduce->axes(), x) ||
        !is_inexact(x.dtype())) {
      return {};
    }
    const int r = step.read(x);
    sum(Kind::plain, r, r);
  } else if (const auto* const contract = op_of<ops::Contract>(node)) {
    const Contraction& c = contract->contraction();
    const bool is_inner =
        c.out.empty() && std::equal(c.a.begin(), c.a.end(), c.b.begin(), c.b.end());
    if (!is_inner || (c.conj_a && c.conj_b) || !is_inexact(x.dtype())) return {};
    if (!(x.type().shape == node.input(1).type().shape)) return {};
    const int a = step.read(x), b = step.read(node.input(1));
    if (c.conj_b) {
      sum(Kind::conj_product, b, a);
    } else {
      sum(c.conj_a ? Kind::conj_product : Kind::product, a, b);
    }
  } else {
    return {};
  }
  return step;
}

bool has_few_elements(const Extents& shape) {
  index_t n = 1;
  for (const index_t extent : shape) {
    if (extent == kUnknown) return false;
    n *= extent;
  }
  return n < kFewElements;
}

// The step that an elementwise node is, with sums or without; nothing for other nodes.
std::optional<SumStep> step_of_arrays(const Apply& node) {
  const ElementwiseProgram* program = nullptr;
  std::vector<SumOfOutputs> sums;
  std::size_t n_arrays = node.output_count();
  if (const auto* const plain = op_of<ops::Elementwise>(node)) {
    if (plain->is_in_place()) return {};
    program = &plain->program();
  } else if (const auto* const with_sums = op_of<ops::ElementwiseSums>(node)) {
    if (with_sums->is_in_place() || !with_sums->filtered().empty()) return {};
    program = &with_sums->program();
    sums = with_sums->sums();
    n_arrays = with_sums->n_arrays();
  } else {
    return {};
  }
  SumStep step;
  std::vector<int> operands;
  for (const Variable& v : node.inputs()) operands.push_back(step.read(v));
  const std::vector<int> made = step.program.append(*program, operands);
  for (std::size_t k = 0; k < n_arrays; ++k) {
    step.arrays.push_back({node.output(k), made[k]});
  }
  for (std::size_t s = 0; s < sums.size(); ++s) {
    step.sums.push_back({node.output(n_arrays + s), sums[s].kind,
                         made[static_cast<std::size_t>(sums[s].a)],
                         made[static_cast<std::size_t>(sums[s].b)]});
  }
  if (node.input_count() == 0) return {};
  step.shape = node.input(0).type().shape;
  for (const Variable& v : node.inputs()) {
    for (std::size_t k = 0; k < step.shape.size(); ++k) {
      const index_t extent = v.type().shape[k];
      const bool says_more = step.shape[k] == 1 || (step.shape[k] == kUnknown && extent != 1);
      if (says_more) step.shape[k] = extent;
    }
  }
  return step;
}

class SumFusion {
 public:
  explicit SumFusion(FunctionGraph& graph) : graph_(graph) {}

  int run() {
    int fused = 0;
    for (const Apply& node : graph_.toposort()) {
      if (!graph_.contains(node)) continue;
      std::optional<SumStep> step = step_of_sum(node);
      if (!step || has_few_elements(step->shape)) continue;
      fused += spread(node, std::move(*step));
    }
    return fused;
  }

 private:
  // Joins the node with one neighbour after the other.
  int spread(Apply node, SumStep step) {
    int joined = 0;
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (const Apply& other : neighbours(node)) {
        const std::optional<SumStep> next = step_of_arrays(other);
        if (!next || !(next->shape == step.shape)) continue;
        const Apply with = join(node, step, other, *next);
        if (!with.defined()) continue;
        node = with;
        step = *step_of_arrays(node);
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

  // A step for both; undefined if there is none. Arrays of only one of them may stay, so that
  // none lives longer than before.
  Apply join(const Apply& node, const SumStep& step, const Apply& other, const SumStep& next) {
    const auto reads = [](const Apply& reader, const Apply& maker) {
      return std::any_of(reader.inputs().begin(), reader.inputs().end(),
                         [&](const Variable& v) { return v.owner() == maker; });
    };
    const bool other_is_first = reads(node, other);
    const SumStep &first = other_is_first ? next : step, &second = other_is_first ? step : next;
    if (first.program.n_registers() + second.program.n_registers() > kMostSumRegisters) return {};
    SumStep made;
    made.shape = step.shape;
    std::vector<std::pair<Variable, int>> known;  // results of the first step
    append(made, first, known);
    for (const SumStep::Array& array : made.arrays) known.emplace_back(array.old, array.made);
    append(made, second, known);
    for (const SumStep::Array& array : first.arrays) {
      if (gathers_terms(first, second, array.old)) return {};
    }
    std::erase_if(made.arrays,
                  [&](const SumStep::Array& array) { return is_between(array.old, node, other); });
    const auto of = [&](const SumStep& part) {
      return std::any_of(part.arrays.begin(), part.arrays.end(), [&](const SumStep::Array& array) {
        return std::any_of(made.arrays.begin(), made.arrays.end(),
                           [&](const SumStep::Array& kept) { return kept.old == array.old; });
      });
    };
    if (of(step) && of(next)) return {};
    return put(made, node, other);
  }

  // Arrays that are added up one after the other are in memory two at a time; in one pass, all of
  // them would be.
  static bool gathers_terms(const SumStep& first, const SumStep& second, const Variable& v) {
    const auto computed = std::count_if(first.inputs.begin(), first.inputs.end(),
                                        [](const Variable& input) { return is_computed(input); });
    const auto it = std::find(second.inputs.begin(), second.inputs.end(), v);
    const auto array = std::find_if(first.arrays.begin(), first.arrays.end(),
                                    [&](const SumStep::Array& a) { return a.old == v; });
    if (computed < 2 || it == second.inputs.end() || array == first.arrays.end()) return false;
    const int read = second.registers[static_cast<std::size_t>(it - second.inputs.begin())];
    const auto is_sum = [](const ElementwiseProgram& program, auto&& is_wanted) {
      const auto steps = program.instructions();
      return std::any_of(steps.begin(), steps.end(),
                         [&](const auto& i) { return i.op == ScalarOp::add && is_wanted(i); });
    };
    return is_sum(first.program, [&](const auto& i) { return i.destination == array->made; }) &&
           is_sum(second.program,
                  [&](const auto& i) { return i.sources[0] == read || i.sources[1] == read; });
  }

  static void append(SumStep& made, const SumStep& part,
                     const std::vector<std::pair<Variable, int>>& known) {
    std::vector<int> operands;
    for (const Variable& v : part.inputs) {
      const auto it = std::find_if(known.begin(), known.end(),
                                   [&](const auto& entry) { return entry.first == v; });
      operands.push_back(it != known.end() ? it->second : made.read(v));
    }
    // All registers of the part, by their numbers there.
    ElementwiseProgram all = part.program;
    for (const SumStep::Array& array : part.arrays) all.output(array.made);
    for (const SumStep::Sum& sum : part.sums) {
      all.output(sum.a);
      all.output(sum.b);
    }
    const std::vector<int> registers = made.program.append(all, operands);
    std::size_t k = 0;
    for (const SumStep::Array& array : part.arrays)
      made.arrays.push_back({array.old, registers[k++]});
    for (const SumStep::Sum& sum : part.sums) {
      made.sums.push_back({sum.old, sum.kind, registers[k], registers[k + 1]});
      k += 2;
    }
  }

  Apply put(const SumStep& made, const Apply& a, const Apply& b) {
    ElementwiseProgram program = made.program;
    for (const SumStep::Array& array : made.arrays) program.output(array.made);
    std::vector<int> outputs;
    for (const SumStep::Array& array : made.arrays) outputs.push_back(array.made);
    const auto position = [&](int r) {
      const auto it = std::find(outputs.begin(), outputs.end(), r);
      if (it != outputs.end()) return static_cast<int>(it - outputs.begin());
      outputs.push_back(r);
      program.output(r);
      return static_cast<int>(outputs.size()) - 1;
    };
    std::vector<SumOfOutputs> sums;
    for (const SumStep::Sum& sum : made.sums) {
      if (outputs.size() + 2 > ElementwiseProgram::kMaxOutputs) return {};
      const int pa = position(sum.a);
      const bool is_product = sum.kind >= Kind::product;
      sums.push_back({sum.kind, pa, is_product ? position(sum.b) : 0});
    }
    const auto op =
        std::make_shared<const ops::ElementwiseSums>(std::move(program), made.arrays.size(), sums);
    const Apply with = op->make_node(made.inputs);
    std::vector<std::pair<Variable, Variable>> pairs;
    const auto replace = [&](const Variable& old) {
      const Variable v = with.output(pairs.size());
      pairs.emplace_back(old, v);
      return v.type() == old.type();
    };
    bool fits = true;
    for (const SumStep::Array& array : made.arrays) fits = replace(array.old) && fits;
    for (const SumStep::Sum& sum : made.sums) fits = replace(sum.old) && fits;
    if (!fits) return {};
    const Origin* const origin = origin_of(a);
    pass_origin(origin && origin->limit ? a : b, with);
    return replace_if_consistent(graph_, pairs, "fuse_sums") ? with : Apply();
  }

  FunctionGraph& graph_;
};

}  // namespace

RewriteResult fuse_sums(FunctionGraph& graph, const RewriteHints&) {
  return SumFusion(graph).run();
}

}  // namespace palimpsest
