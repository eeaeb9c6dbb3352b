// SPDX-License-Identifier: Apache-2.0
// Other extents, the same elements in row-major order.

#include "palimpsest/kernels/arrays/copy.hpp"
#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/shape/shape_op.hpp"

namespace palimpsest::ops {
namespace {

// Element by element in row-major order, where neither side can be seen with the other's extents.
void copy_in_order(const ConstView& in, const MutableView& out) {
  const std::size_t size = item_size(in.dtype);
  const index_t count = element_count(in.extents);
  struct Walk {
    std::span<const index_t> extents, strides;
    SmallVector<index_t, 8> position;
    index_t offset = 0;
    void next() {
      for (std::size_t k = extents.size(); k-- > 0;) {
        offset += strides[k];
        if (++position[k] < extents[k]) return;
        offset -= extents[k] * strides[k];
        position[k] = 0;
      }
    }
  };
  Walk from{in.extents, in.strides, SmallVector<index_t, 8>(in.rank())};
  Walk to{out.extents, out.strides, SmallVector<index_t, 8>(out.rank())};
  const auto bytes = static_cast<index_t>(size);
  for (index_t i = 0; i < count; ++i, from.next(), to.next()) {
    std::copy_n(static_cast<const std::byte*>(in.data) + from.offset * bytes, size,
                static_cast<std::byte*>(out.data) + to.offset * bytes);
  }
}

void copy_reshaped(const ConstView& in, const MutableView& out) {
  Strides strides;
  if (view_strides(out.extents, out.strides, in.extents, strides)) {
    run_copy(in, {out.data, out.dtype, in.extents, strides});
  } else if (view_strides(in.extents, in.strides, out.extents, strides)) {
    run_copy({in.data, in.dtype, out.extents, strides}, out);
  } else {
    copy_in_order(in, out);
  }
}

// The extents of the result; inputs[0] are those of x.
Extents reshaped(const ExtentPrograms& shape, std::span<const Extents> inputs) {
  Extents result = evaluate(shape, inputs, "reshape");
  if (!is_known(inputs[0])) return result;
  const index_t count = element_count(inputs[0]);
  const auto open = std::find_if(shape.begin(), shape.end(), [](const ExtentProgram& program) {
    return program.is_number() && program.evaluate({}) == kUnknown;
  });
  if (open != shape.end()) {
    index_t& extent = result[static_cast<std::size_t>(open - shape.begin())];
    extent = 1;
    if (!is_known(result)) {
      extent = kUnknown;
      return result;
    }
    const index_t others = element_count(result);
    extent = others > 0 && count % others == 0 ? count / others : kUnknown;
    if (extent == kUnknown) result[0] = kUnknown;
  } else if (!is_known(result)) {
    return result;
  }
  if (!is_known(result) || element_count(result) != count) {
    throw ShapeError("[reshape] numbers of elements differ: got " + to_string(inputs[0]) +
                     ", expected as many as in " + text_of(shape));
  }
  return result;
}

// w with the extents of x: a view where at most one of them is unknown, or is in w too.
Variable reshape_like(const Variable& w, const Variable& x) {
  ExtentPrograms shape;
  int n_open = 0;
  for (std::size_t k = 0; k < x.rank(); ++k) {
    const index_t extent = x.type().shape[k];
    shape.push_back(extent == kUnknown ? ExtentProgram::of_input(1, k) : ExtentProgram(extent));
    n_open += extent == kUnknown ? 1 : 0;
  }
  if (n_open <= 1) return reshape(w, x.type().shape);
  const Variable inputs[] = {w, x};
  return std::make_shared<ReshapeTo>(std::move(shape))->make_node(inputs).output(0);
}

}  // namespace

Extents Reshape::result_extents(std::span<const index_t> in) const {
  const Extents extents(in);
  return reshaped(shape_, {&extents, 1});
}

std::optional<Layout> Reshape::layout_of(const Layout& in) const {
  Extents extents = result_extents(in.extents);
  Strides strides;
  if (!view_strides(in.extents, in.strides, extents, strides)) return {};
  return with(in, std::move(extents), std::move(strides));
}

std::vector<Variable> Reshape::pullback(const Apply& apply, CotangentSpan cotangents) const {
  return {reshape_like(cotangents[0], apply.input(0))};
}

void Reshape::run(RunContext& context) const { copy_reshaped(context.input(0), context.output(0)); }

Apply ReshapeTo::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, std::max<std::size_t>(inputs.size(), 1), name());
  const TensorType& x = inputs[0].type();
  return node(inputs, {{x.dtype, reshaped(shape_, shapes_of(inputs)), x.device}});
}

std::vector<Extents> ReshapeTo::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  return {reshaped(shape_, inputs)};
}

std::vector<Variable> ReshapeTo::pullback(const Apply& apply, CotangentSpan cotangents) const {
  std::vector<Variable> result(apply.input_count());
  result[0] = reshape_like(cotangents[0], apply.input(0));
  return result;
}

void ReshapeTo::run(RunContext& context) const {
  copy_reshaped(context.input(0), context.output(0));
}

Variable reshape(const Variable& x, const ShapeArgument& shape) {
  SymbolicShape symbolic = symbolic_shape(shape, {x}, "reshape");
  if (symbolic.extents.size() > kMaxRank) {
    throw ShapeError("[reshape] number of axes: got " + std::to_string(symbolic.extents.size()) +
                     ", expected at most " + std::to_string(kMaxRank));
  }
  int n_open = 0;
  for (const ExtentProgram& program : symbolic.extents) {
    if (!program.is_number()) continue;
    const index_t extent = *program.evaluate({});
    n_open += extent == kUnknown ? 1 : 0;
    if (extent < kUnknown || n_open > 1) {
      throw ShapeError("[reshape] got " + text_of(symbolic.extents) +
                       ", expected at most one -1 and none below");
    }
  }
  if (symbolic.arrays.size() > 1) {
    return std::make_shared<ReshapeTo>(std::move(symbolic.extents))
        ->make_node(symbolic.arrays)
        .output(0);
  }
  const auto op = std::make_shared<Reshape>(std::move(symbolic.extents));
  const Extents result = op->result_extents(x.type().shape);
  if (result == x.type().shape && is_known(result)) return x;
  // Numbers where they are known: equal results have equal ops.
  if (is_known(result))
    return std::make_shared<Reshape>(numbers(result))->make_node({&x, 1}).output(0);
  return op->make_node({&x, 1}).output(0);
}

Variable ravel(const Variable& x) { return x.rank() == 1 ? x : reshape(x, {kUnknown}); }

void register_ops_of_reshape() {
  register_type<Reshape>();
  register_type<ReshapeTo>();
}

}  // namespace palimpsest::ops
