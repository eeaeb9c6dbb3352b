// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/loop/run_time_extent_op.hpp"
#include "palimpsest/ops/prelude.hpp"

namespace palimpsest::ops {
namespace {

Extents extents_of(index_t n) {
  if (n < 0) {
    throw ShapeError("[extent] got " + std::to_string(n) + ", expected no negative number");
  }
  return {n};
}

}  // namespace

Apply RunTimeExtent::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  const TensorType& n = inputs[0].type();
  if (n.dtype != DType::int64 || n.rank() != 0) {
    throw TypeError("[extent] got " + n.str() + ", expected int64 ()");
  }
  return node(inputs, {{DType::bool_, {kUnknown}, n.device}});
}

std::vector<Extents> RunTimeExtent::infer_shapes(const Apply&, ExtentsSpan) const {
  return {{kUnknown}};
}

std::vector<Extents> RunTimeExtent::measured_shapes(const Apply&,
                                                    std::span<const ConstView> inputs) const {
  return {extents_of(*static_cast<const index_t*>(inputs[0].data))};
}

void RunTimeExtent::run(RunContext& context) const {
  const bool no = false;
  strided_fill(&no, context.output(0));
}

void register_ops_of_run_time_extent() { register_type<RunTimeExtent>(); }

}  // namespace palimpsest::ops
