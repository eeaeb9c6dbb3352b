// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/fusion/join_passes.hpp"

#include <span>

#include "palimpsest/ops/elementwise/joined_passes.hpp"
#include "palimpsest/ops/index/index_op.hpp"
#include "palimpsest/rewrite/prelude.hpp"

namespace palimpsest {
namespace {

using ops::ElementwiseSums;

index_t elements(const Extents& shape) {
  index_t n = 1;
  for (const index_t extent : shape) n *= extent;
  return n;
}

// True if the node shows its input, dense, with other extents.
bool is_reshaping(const Apply& node) {
  if (!op_of<ops::Squeeze>(node) && !op_of<ops::ExpandDims>(node) && !op_of<ops::Reshape>(node) &&
      !op_of<ops::Subtensor>(node)) {
    return false;
  }
  const TensorType& x = node.input(0).type();
  if (!x.is_fully_known()) return false;
  const auto layout = node.op().view_layout(node, 0, Layout::dense(x.dtype, x.shape));
  return layout && layout->byte_offset == 0 && layout->is_dense() &&
         elements(layout->extents) == elements(x.shape);
}

// The array that v shows in other extents; undefined where others read it too.
Variable array_behind(const FunctionGraph& graph, Variable v) {
  while (v.owner().defined() && !graph.is_output(v) && !v.is_indestructible() &&
         graph.use_count(v) == 1 && v.type().is_fully_known()) {
    if (!is_reshaping(v.owner())) return v;
    v = v.owner().input(0);
  }
  return {};
}

// The arrays of the first step that the second one reads.
struct Links {
  Apply first;
  std::vector<HandedOn> handed;  // `output`: of the first step as it is
  Extents shape;
};

Links links_of(const FunctionGraph& graph, const Apply& second, const ElementwiseSums& step) {
  Links links;
  for (const FilteredInput& f : step.filtered()) {
    const Variable& read = second.input(static_cast<std::size_t>(f.input));
    const Variable v = array_behind(graph, read);
    if (!v.defined()) continue;
    const auto* const maker = op_of<ElementwiseSums>(v.owner());
    if (maker == nullptr || maker->is_in_place()) continue;
    if (v.index() >= static_cast<int>(maker->n_arrays())) continue;
    if (links.first.defined() && !(links.first == v.owner())) continue;
    links.first = v.owner();
    links.shape = read.type().shape;
    links.handed.push_back({v.index(), f.input});
  }
  return links;
}

// The step with only those arrays that are not handed on; outputs by their old numbers.
std::shared_ptr<const ElementwiseSums> without_handed(const ElementwiseSums& step,
                                                      const std::vector<HandedOn>& handed,
                                                      std::vector<int>& order) {
  const auto is_handed = [&](int output) {
    return std::any_of(handed.begin(), handed.end(),
                       [&](const HandedOn& link) { return link.output == output; });
  };
  const auto n = static_cast<int>(step.program().outputs().size());
  for (int k = 0; k < n; ++k) order.push_back(k);
  const auto behind = std::stable_partition(order.begin(), order.end(), [&](int k) {
    return k < static_cast<int>(step.n_arrays()) && !is_handed(k);
  });
  ElementwiseProgram program;
  std::vector<int> registers;
  for (const int r : step.program().inputs()) {
    registers.push_back(program.input(step.program().dtype_of_register(r)));
  }
  const std::vector<int> made = program.append(step.program(), registers);
  for (const int k : order) program.output(made[static_cast<std::size_t>(k)]);
  const auto place = [&](int k) {
    return static_cast<int>(std::find(order.begin(), order.end(), k) - order.begin());
  };
  std::vector<SumOfOutputs> sums = step.sums();
  for (SumOfOutputs& sum : sums) sum = {sum.kind, place(sum.a), place(sum.b)};
  return std::make_shared<const ElementwiseSums>(
      std::move(program), static_cast<std::size_t>(behind - order.begin()), std::move(sums),
      ops::Elementwise::Overwrites(), step.filtered());
}

// The inputs of both steps without those that are handed on; nothing if the second one reads an
// array of the first one as it is.
std::optional<std::vector<Variable>> inputs_of_joined(const Links& links, const Apply& second) {
  std::vector<Variable> inputs(links.first.inputs().begin(), links.first.inputs().end());
  for (std::size_t i = 0; i < second.input_count(); ++i) {
    const bool is_link =
        std::any_of(links.handed.begin(), links.handed.end(),
                    [&](const HandedOn& link) { return link.input == static_cast<int>(i); });
    if (is_link) continue;
    if (second.input(i).owner() == links.first) return std::nullopt;
    inputs.push_back(second.input(i));
  }
  return inputs;
}

// Puts one node in the place of both: the first node's arrays with the numbers in `order`, the
// second node's arrays, then the sums of both.
bool replace_both(FunctionGraph& graph, const Apply& first, const Apply& second,
                  std::span<const int> order, std::size_t n_kept, const Apply& with) {
  std::vector<std::pair<Variable, Variable>> pairs;
  const auto replace = [&](const Variable& old) {
    pairs.emplace_back(old, with.output(pairs.size()));
  };
  const std::size_t a = op_of<ElementwiseSums>(first)->n_arrays(),
                    b = op_of<ElementwiseSums>(second)->n_arrays();
  for (std::size_t k = 0; k < n_kept; ++k)
    replace(first.output(static_cast<std::size_t>(order[k])));
  for (std::size_t k = 0; k < b; ++k) replace(second.output(k));
  for (std::size_t k = a; k < first.output_count(); ++k) replace(first.output(k));
  for (std::size_t k = b; k < second.output_count(); ++k) replace(second.output(k));
  pass_origin(second, with);
  return replace_if_consistent(graph, pairs, "join_passes");
}

int join_into(FunctionGraph& graph, const Apply& second) {
  const auto* const step = op_of<ElementwiseSums>(second);
  if (step == nullptr || step->is_in_place() || step->filtered().empty()) return 0;
  Links links = links_of(graph, second, *step);
  if (!links.first.defined()) return 0;
  const auto inputs = inputs_of_joined(links, second);
  if (!inputs) return 0;
  std::vector<int> order;
  const auto one = without_handed(*op_of<ElementwiseSums>(links.first), links.handed, order);
  for (HandedOn& link : links.handed) {
    const auto at = std::find(order.begin(), order.end(), link.output);
    link.output = static_cast<int>(at - order.begin());
  }
  const auto two = std::static_pointer_cast<const ElementwiseSums>(step->shared_from_this());
  using ops::JoinedPasses;
  if (!JoinedPasses::can_join(*one, *two, links.handed, links.shape)) return 0;
  const auto op = std::make_shared<const JoinedPasses>(one, two, links.handed, links.shape);
  const Apply with = op->make_node(*inputs);
  return replace_both(graph, links.first, second, order, one->n_arrays(), with) ? 1 : 0;
}

}  // namespace

RewriteResult join_passes(FunctionGraph& graph, const RewriteHints&) {
  int joined = 0;
  for (const Apply& node : graph.toposort()) {
    if (graph.contains(node)) joined += join_into(graph, node);
  }
  return joined;
}

}  // namespace palimpsest
