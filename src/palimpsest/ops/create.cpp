// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/create.hpp"

#include "palimpsest/base/strided_copy.hpp"
#include "palimpsest/ops/common.hpp"
#include "palimpsest/ops/create_op.hpp"
#include "palimpsest/ops/reduce.hpp"

namespace palimpsest::ops {
namespace {

void check_scalar(const Variable& value, std::string_view who) {
  if (value.rank() != 0) {
    throw ShapeError("[" + std::string(who) + "] value: got " + value.type().str() +
                     ", expected one of no axes");
  }
}

}  // namespace

std::string Full::parameters() const { return parameter("shape", shape_); }

Apply Full::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  check_scalar(inputs[0], "full");
  byte_count(shape_, inputs[0].dtype());
  return node(inputs, {{inputs[0].dtype(), shape_, inputs[0].type().device}});
}

std::vector<Variable> Full::pullback(const Apply&, std::span<const Variable> cotangents) const {
  return {sum(cotangents[0])};
}

void Full::run(RunContext& context) const {
  strided_fill(context.input(0).data, context.output(0));
}

Apply FullLike::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 2, name());
  check_scalar(inputs[0], "full_like");
  const Device device = common_device(inputs, name());
  return node(inputs, {{inputs[0].dtype(), inputs[1].type().shape, device}});
}

std::vector<Variable> FullLike::pullback(const Apply&, std::span<const Variable> cotangents) const {
  return {sum(cotangents[0]), Variable()};
}

void FullLike::run(RunContext& context) const {
  strided_fill(context.input(0).data, context.output(0));
}

std::string AxisCount::parameters() const {
  return parameter("axes", axes_) + ", dtype=" + std::string(name_of(dtype_));
}

Apply AxisCount::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  normalize_axes(axes_, inputs[0].rank(), name());
  return node(inputs, {{dtype_, Extents(), inputs[0].type().device}});
}

void AxisCount::run(RunContext& context) const {
  index_t count = 1;
  for (index_t axis : axes_) count *= context.input(0).extents[static_cast<std::size_t>(axis)];
  const ConstView number{&count, DType::int64, {}, {}};
  strided_copy(number, context.output(0));
}

Variable full(Extents shape, const Variable& value) {
  return std::make_shared<Full>(std::move(shape))->make_node({&value, 1}).output(0);
}

Variable zeros(Extents shape, DType dtype, Device device) {
  return full(std::move(shape), constant(Tensor::zeros({}, dtype, device)));
}

Variable zeros_like(const Variable& x) {
  const TensorType& type = x.type();
  if (type.is_fully_known()) return zeros(type.shape, type.dtype, type.device);
  const Variable inputs[] = {constant(Tensor::zeros({}, type.dtype, type.device)), x};
  return std::make_shared<FullLike>()->make_node(inputs).output(0);
}

}  // namespace palimpsest::ops
