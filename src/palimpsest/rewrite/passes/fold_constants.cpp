// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/fold_constants.hpp"

#include <algorithm>

#include "palimpsest/device/devices.hpp"
#include "palimpsest/memory/lent_memory.hpp"
#include "palimpsest/ops/control/control_op.hpp"
#include "palimpsest/rewrite/patterns.hpp"

namespace palimpsest {
namespace {

// Up to here a result may be bigger than the constants it is computed from.
constexpr index_t kSmallBytes = 1024;

index_t bytes_of(const TensorType& type) {
  return element_count(type.shape) * static_cast<index_t>(item_size(type.dtype));
}

bool can_be_computed(const Apply& node) {
  const Op& op = node.op();
  if (op.can_fail() || !op.inner_results().empty() || op_of<ops::IfElse>(node)) return false;
  if (!overwritten_inputs(node).empty() || !op.output_aliases(node).empty()) return false;
  if (node.input_count() == 0) return false;  // made when needed: a step, not memory for ever
  index_t in = 0, out = 0;
  for (const Variable& v : node.inputs()) {
    if (!v.is_constant()) return false;
    in += v.constant_value().nbytes();
  }
  for (const Variable& v : node.outputs()) {
    if (!v.type().is_fully_known()) return false;
    out += bytes_of(v.type());
  }
  // A view costs nothing, its copy does.
  return out <= (op.view_map(node).empty() ? std::max(in, kSmallBytes) : kSmallBytes);
}

Replacements compute(const FunctionGraph&, const Apply& node) {
  if (!can_be_computed(node)) return {};
  std::vector<Tensor> values;  // keeps the elements of the views alive
  for (const Variable& v : node.inputs()) values.push_back(v.constant_value());
  std::vector<ConstView> inputs;
  std::vector<Layout> layouts;
  for (const Tensor& value : values) {
    inputs.push_back(value.view_of());
    layouts.push_back({value.dtype(), value.shape(), value.strides(), 0});
  }
  std::vector<Tensor> results;
  std::vector<MutableView> outputs;
  for (const Variable& v : node.outputs()) {
    results.push_back(Tensor::empty(v.type().shape, v.dtype(), host_of(v.type().device)));
  }
  for (Tensor& t : results) outputs.push_back(t.mutable_view());
  Tensor scratch =
      Tensor::empty({static_cast<index_t>(node.op().scratch_bytes(node, layouts))}, DType::uint8);
  RunContext context(inputs, outputs,
                     {static_cast<std::byte*>(scratch.raw_mutable_data()),
                      static_cast<std::size_t>(scratch.nbytes())});
  try {
    node.op().run(context);
  } catch (...) {
    for (const Tensor& t : values) LentMemory::share(t.storage());
    for (const Tensor& t : results) LentMemory::share(t.storage());
    throw;
  }
  context.take_set_outputs();
  Replacements with;
  for (std::size_t k = 0; k < results.size(); ++k) {
    with.push_back(constant(results[k], {}, node.output(k).type().device));
  }
  return with;
}

}  // namespace

RewriteResult fold_constants(FunctionGraph& graph, const RewriteHints&) {
  const NodeRewrite rule{"fold_constants", compute};
  return walk(graph, {&rule, 1});
}

}  // namespace palimpsest
