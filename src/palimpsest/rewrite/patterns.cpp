// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/patterns.hpp"

#include <cmath>

#include "palimpsest/ops/elementwise/elementwise_op.hpp"
#include "palimpsest/ops/shape/shape_op.hpp"

namespace palimpsest {

namespace {

std::optional<ScalarOp> op_of_one_step(const ops::Elementwise* op) {
  if (!op || op->is_in_place()) return {};
  const auto instructions = op->program().instructions();
  // Converted operands have instructions of their own.
  if (instructions.size() != 1 || op->program().outputs().size() != 1) return {};
  return op->scalar_op();
}

}  // namespace

std::optional<ScalarOp> plain_op(const Apply& node) {
  return op_of_one_step(op_of<ops::Elementwise>(node));
}

bool is_plain(const Apply& node, ScalarOp op) { return plain_op(node) == op; }
bool is_plain(const Variable& v, ScalarOp op) {
  return op_of_one_step(op_of<ops::Elementwise>(v)) == op;
}

std::optional<std::complex<double>> scalar_value(const Variable& v) {
  Variable at = v;
  while (op_of<ops::ExpandDims>(at) || op_of<ops::Squeeze>(at) || op_of<ops::Reshape>(at)) {
    at = at.owner().input(0);
  }
  if (!at.is_constant()) return {};
  const Tensor& value = at.constant_value();
  if (value.numel() != 1) return {};
  return value.item<std::complex<double>>();
}

bool is_number(const Variable& v, double value) {
  const auto found = scalar_value(v);
  return found && *found == value;
}

bool is_exactly(const Variable& v, double value) {
  const auto found = scalar_value(v);
  return found && *found == value && std::signbit(found->real()) == std::signbit(value);
}

bool replace_if_consistent(FunctionGraph& graph, FunctionGraph::Pairs pairs,
                           std::string_view reason) {
  try {
    graph.replace_all_validate(pairs, reason);
  } catch (const CycleError&) {
    return false;
  } catch (const InconsistencyError&) {
    return false;
  }
  return true;
}

bool only_reader_is(const FunctionGraph& graph, const Variable& v, const Apply& node) {
  if (graph.use_count(v) > node.input_count()) return false;  // there may be very many
  for (const Use& use : graph.uses(v)) {
    if (!(use.node == node)) return false;
  }
  return true;
}

bool is_private_to(const FunctionGraph& graph, const Variable& v, const Apply& node) {
  const Apply owner = v.owner();
  return owner.defined() && graph.contains(owner) && only_reader_is(graph, v, node);
}

Replacements if_it_fits(const Apply& node, const Variable& with) {
  if (!with.defined() || with == node.output(0)) return {};
  const TensorType &result = node.output(0).type(), &type = with.type();
  if (!result.is_super(type)) return {};
  for (std::size_t k = 0; k < type.rank(); ++k) {
    if (type.shape[k] == 1 && result.shape[k] != 1) return {};
  }
  return {with};
}

Replacements if_it_fits(const Apply& node, const std::optional<Variable>& with) {
  return with ? if_it_fits(node, *with) : Replacements();
}

Variable number_like(double value, const Variable& like) {
  return constant(
      Tensor::full(Extents(like.rank(), 1), value, like.type().device).to(like.dtype()));
}

bool is_real_floating(const Variable& v) { return is_inexact(v.dtype()) && !is_complex(v.dtype()); }

bool is_computed(Variable v) {
  while (v.owner().defined()) {
    const Apply node = v.owner();
    const AliasMap views = node.op().view_map(node);
    const auto shown = views.find(v.index());
    if (shown == views.end() || shown->second.size() != 1) return true;
    v = node.input(static_cast<std::size_t>(*shown->second.begin()));
  }
  return false;
}

}  // namespace palimpsest
