// SPDX-License-Identifier: Apache-2.0
// Views between complex arrays and their parts.
#include "palimpsest/ops/elementwise/elementwise_op.hpp"
#include "palimpsest/ops/prelude.hpp"

namespace palimpsest::ops {

Apply ComplexPart::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  if (!is_complex(inputs[0].dtype())) {
    throw DTypeError("[" + name() + "] got " + inputs[0].type().str() +
                     ", expected a complex array");
  }
  return ViewOp::make_node(inputs);
}

std::optional<Layout> ComplexPart::layout_of(const Layout& in) const {
  Layout result = in;
  result.dtype = real_of(in.dtype);
  for (index_t& stride : result.strides) stride *= 2;
  if (imaginary_) result.byte_offset += static_cast<index_t>(item_size(result.dtype));
  return result;
}

std::vector<Variable> ComplexPart::pullback(const Apply&, CotangentSpan cotangents) const {
  const Variable& w = cotangents[0];
  const Variable zero =
      with_rank(constant(Tensor::zeros({}, w.dtype(), w.type().device)), w.rank());
  return {imaginary_ ? make_complex(zero, w) : make_complex(w, zero)};
}

Apply ViewAsReal::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  if (!is_complex(inputs[0].dtype())) {
    throw DTypeError("[view_as_real] got " + inputs[0].type().str() + ", expected a complex array");
  }
  if (inputs[0].rank() == kMaxRank) {
    throw ShapeError("[view_as_real] number of axes: got " + std::to_string(kMaxRank) +
                     ", expected fewer");
  }
  return ViewOp::make_node(inputs);
}

Extents ViewAsReal::result_extents(std::span<const index_t> in) const {
  Extents result = in;
  result.push_back(2);
  return result;
}

std::optional<Layout> ViewAsReal::layout_of(const Layout& in) const {
  Layout result = in;
  result.dtype = real_of(in.dtype);
  for (index_t& stride : result.strides) stride *= 2;
  result.extents.push_back(2);
  result.strides.push_back(1);
  return result;
}

std::vector<Variable> ViewAsReal::pullback(const Apply&, CotangentSpan cotangents) const {
  return {view_as_complex(cotangents[0])};
}

Apply ViewAsComplex::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  if (!is_floating(inputs[0].dtype())) {
    throw DTypeError("[view_as_complex] got " + inputs[0].type().str() +
                     ", expected float32 or float64");
  }
  return ViewOp::make_node(inputs);
}

Extents ViewAsComplex::result_extents(std::span<const index_t> in) const {
  if (in.empty() || (in.back() != 2 && in.back() != kUnknown)) {
    throw ShapeError("[view_as_complex] last extent: got " + to_string(in) + ", expected 2");
  }
  return in.first(in.size() - 1);
}

std::optional<Layout> ViewAsComplex::layout_of(const Layout& in) const {
  Layout result = in;
  result.dtype = complex_of(in.dtype);
  result.extents.pop_back();
  result.strides.pop_back();
  if (in.strides.back() != 1) return {};
  if (in.byte_offset % static_cast<index_t>(item_size(result.dtype)) != 0) return {};
  for (std::size_t k = 0; k < result.strides.size(); ++k) {
    if (result.strides[k] % 2 != 0 && result.extents[k] > 1) return {};
    result.strides[k] /= 2;
  }
  return result;
}

std::vector<Variable> ViewAsComplex::pullback(const Apply&, CotangentSpan cotangents) const {
  return {view_as_real(cotangents[0])};
}

void ViewAsComplex::run(RunContext& context) const {
  const MutableView& out = context.output(0);
  const std::optional<Layout> pairs =
      ViewAsReal().layout_of({out.dtype, out.extents, out.strides, 0});
  strided_copy(context.input(0), {out.data, pairs->dtype, pairs->extents, pairs->strides});
}

Variable real(const Variable& x) {
  if (!is_complex(x.dtype())) return x;
  return std::make_shared<ComplexPart>(false)->make_node({&x, 1}).output(0);
}
Variable imag(const Variable& x) {
  if (!is_complex(x.dtype())) return zeros_like(x);
  return std::make_shared<ComplexPart>(true)->make_node({&x, 1}).output(0);
}
Variable view_as_real(const Variable& x) {
  return std::make_shared<ViewAsReal>()->make_node({&x, 1}).output(0);
}
Variable view_as_complex(const Variable& x) {
  return std::make_shared<ViewAsComplex>()->make_node({&x, 1}).output(0);
}

void register_ops_of_complex_views() {
  register_type<ComplexPart>();
  register_type<ViewAsComplex>();
  register_type<ViewAsReal>();
}

}  // namespace palimpsest::ops
