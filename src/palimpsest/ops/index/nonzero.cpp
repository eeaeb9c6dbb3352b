// SPDX-License-Identifier: Apache-2.0

#include "palimpsest/ops/control/control_op.hpp"
#include "palimpsest/ops/loop/loop_op.hpp"
#include "palimpsest/ops/loop/run_time_extent_op.hpp"
#include "palimpsest/ops/prelude.hpp"

namespace palimpsest::ops {
namespace {

// Calls visit(position) for every true element, in row-major order.
template <class Visit>
void for_each_true(const ConstView& mask, const Visit& visit) {
  const index_t n = element_count(mask.extents);
  Extents position(mask.extents.size(), 0);
  index_t offset = 0;
  for (index_t i = 0; i < n; ++i) {
    if (static_cast<const bool*>(mask.data)[offset]) visit(position);
    for (std::size_t k = position.size(); k-- > 0;) {
      offset += mask.strides[k];
      if (++position[k] < mask.extents[k]) break;
      offset -= mask.extents[k] * mask.strides[k];
      position[k] = 0;
    }
  }
}

}  // namespace

void Nonzero::check(std::span<const index_t> mask, std::span<const index_t> array) const {
  for (std::size_t k = 0; k < mask.size(); ++k) {
    const index_t n = axis_ + k < array.size() ? array[axis_ + k] : 0;
    if (n == kUnknown || mask[k] == kUnknown || n == mask[k]) continue;
    throw ShapeError("[index] axis " + std::to_string(axis_ + k) + ": got a mask of extents " +
                     to_string(Extents(mask.begin(), mask.end())) + " for an array of extents " +
                     to_string(Extents(array.begin(), array.end())) +
                     ", expected equal ones along the axes of the mask");
  }
}

Apply Nonzero::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, inputs.size() > 1 ? 2 : 1, "nonzero");
  const TensorType& mask = inputs[0].type();
  if (!is_bool(mask.dtype)) {
    throw DTypeError("[nonzero] mask: got " + mask.str() + ", expected bools. Try a comparison");
  }
  if (mask.rank() == 0) {
    throw ShapeError("[nonzero] mask: got " + mask.str() + ", expected at least one axis");
  }
  if (inputs.size() > 1) check(mask.shape, inputs[1].type().shape);
  const Device device = common_device(inputs, "nonzero");
  return node(inputs, std::vector<TensorType>(mask.rank(), {DType::int64, {kUnknown}, device}));
}

std::vector<Extents> Nonzero::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  if (inputs.size() > 1) check(inputs[0], inputs[1]);
  return std::vector<Extents>(inputs[0].size(), Extents{kUnknown});
}

std::vector<Extents> Nonzero::measured_shapes(const Apply&,
                                              std::span<const ConstView> inputs) const {
  index_t n = 0;
  for_each_true(inputs[0], [&](const Extents&) { ++n; });
  return std::vector<Extents>(inputs[0].extents.size(), Extents{n});
}

void Nonzero::run(RunContext& context) const {
  const std::size_t rank = context.outputs().size();
  index_t i = 0;
  for_each_true(context.input(0), [&](const Extents& position) {
    for (std::size_t k = 0; k < rank; ++k) {
      const MutableView& out = context.output(k);
      static_cast<index_t*>(out.data)[i * out.strides[0]] = position[k];
    }
    ++i;
  });
}

std::vector<Variable> nonzero(const Variable& mask) {
  return std::make_shared<Nonzero>()->make_node({&mask, 1}).outputs();
}

bool may_decide_extents(const Apply& apply) {
  const Op* const op = &apply.op();
  if (const auto* const loop = dynamic_cast<const Loop*>(op)) return loop->may_decide_extents();
  return dynamic_cast<const MeasuredOp*>(op) || dynamic_cast<const IfElse*>(op);
}

void register_ops_of_nonzero() { register_type<Nonzero>(); }

}  // namespace palimpsest::ops
