// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/control/device.hpp"

#include "palimpsest/base/config.hpp"
#include "palimpsest/base/log.hpp"
#include "palimpsest/ops/control/device_op.hpp"
#include "palimpsest/ops/prelude.hpp"

namespace palimpsest::ops {

Apply ToDevice::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  TensorType type = inputs[0].type();
  type.device = target_;
  return node(inputs, {std::move(type)});
}

std::vector<Variable> ToDevice::pullback(const Apply& apply, CotangentSpan cotangents) const {
  if (!cotangents[0].defined()) return {Variable()};
  return {to_device(cotangents[0], apply.input(0).type().device)};
}

// All devices are host memory spaces: an address is enough.
void ToDevice::run(RunContext& context) const {
  const ConstView& x = context.input(0);
  if (config().log_device_transfers) {
    // A user asks for this message by name, so its level is shown unless it is switched off.
    log(LogLevel::warn, "[ToDevice] " + std::string(name_of(x.dtype)) + " " + to_string(x.extents) +
                            ", " + std::to_string(byte_count(x.extents, x.dtype)) + " bytes, to " +
                            target_.str());
  }
  strided_copy(x, context.output(0));
}

Variable to_device(const Variable& x, Device target) {
  if (x.type().device == target) return x;
  return std::make_shared<ToDevice>(target)->make_node({&x, 1}).output(0);
}

void register_ops_of_device() { register_type<ToDevice>(); }

}  // namespace palimpsest::ops
