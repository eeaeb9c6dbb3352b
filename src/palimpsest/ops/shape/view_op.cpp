// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/shape/view_op.hpp"

#include "palimpsest/kernels/arrays/copy.hpp"
#include "palimpsest/ops/common.hpp"
#include "palimpsest/ops/parameters.hpp"
#include "palimpsest/ops/shape/contiguous_op.hpp"

namespace palimpsest::ops {

Apply ViewOp::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  const TensorType& type = inputs[0].type();
  return node(inputs, {{dtype_of_result(type.dtype), result_extents(type.shape), type.device}});
}

std::optional<Layout> ViewOp::view_layout(const Apply&, int, const Layout& in) const {
  return layout_of(in);
}

Region ViewOp::view_region(const Apply& apply, int, int) const {
  const TensorType& in = apply.input(0).type();
  Region region = region_of(in.shape);
  if (region.is_box() || !in.is_fully_known()) return region;
  const std::optional<Layout> layout = layout_of(Layout::dense(in.dtype, in.shape));
  return layout ? Region::of(*layout) : Region::unknown();
}

std::vector<Extents> ViewOp::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  return {result_extents(inputs[0])};
}

void ViewOp::run(RunContext& context) const {
  const ConstView& in = context.input(0);
  const std::optional<Layout> layout = layout_of({in.dtype, in.extents, in.strides, 0});
  if (!layout) throw InternalError("[" + str() + "] has neither a view nor a copy of its input");
  run_copy({static_cast<const std::byte*>(in.data) + layout->byte_offset, layout->dtype,
            layout->extents, layout->strides},
           context.output(0));
}

void Contiguous::run(RunContext& context) const { run_copy(context.input(0), context.output(0)); }

void register_ops_of_view_op() { register_type<Contiguous>(); }

}  // namespace palimpsest::ops
