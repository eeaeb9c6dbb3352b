// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/device.hpp"

#include "palimpsest/base/strided_copy.hpp"
#include "palimpsest/ops/common.hpp"
#include "palimpsest/ops/device_op.hpp"

namespace palimpsest::ops {

Apply ToDevice::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  TensorType type = inputs[0].type();
  type.device = target_;
  return node(inputs, {std::move(type)});
}

std::vector<Variable> ToDevice::pullback(const Apply& apply,
                                         std::span<const Variable> cotangents) const {
  if (!cotangents[0].defined()) return {Variable()};
  return {to_device(cotangents[0], apply.input(0).type().device)};
}

// All devices are host memory spaces: an address is enough.
void ToDevice::run(RunContext& context) const { strided_copy(context.input(0), context.output(0)); }

Variable to_device(const Variable& x, Device target) {
  if (x.type().device == target) return x;
  return std::make_shared<ToDevice>(target)->make_node({&x, 1}).output(0);
}

}  // namespace palimpsest::ops
