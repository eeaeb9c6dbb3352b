// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/products/contract_op.hpp"

namespace palimpsest::ops {

Extents Diagonal::result_extents(std::span<const index_t> in) const {
  Extents result;
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (k != row_axis_ && k != column_axis_) result.push_back(in[k]);
  }
  const index_t rows = in[row_axis_], columns = in[column_axis_];
  index_t length = kUnknown;
  if (rows != kUnknown && columns != kUnknown) {
    length = std::max<index_t>(0, std::min(rows - std::max<index_t>(-offset_, 0),
                                           columns - std::max<index_t>(offset_, 0)));
  }
  result.push_back(length);
  return result;
}

std::optional<Layout> Diagonal::layout_of(const Layout& in) const {
  Strides strides;
  for (std::size_t k = 0; k < in.strides.size(); ++k) {
    if (k != row_axis_ && k != column_axis_) strides.push_back(in.strides[k]);
  }
  strides.push_back(in.strides[row_axis_] + in.strides[column_axis_]);
  Layout result = with(in, result_extents(in.extents), std::move(strides));
  if (element_count(result.extents) > 0) {
    const index_t first =
        offset_ >= 0 ? offset_ * in.strides[column_axis_] : -offset_ * in.strides[row_axis_];
    result.byte_offset += first * static_cast<index_t>(item_size(in.dtype));
  }
  return result;
}

std::vector<Variable> Diagonal::pullback(const Apply& apply, CotangentSpan cotangents) const {
  const Variable inputs[] = {cotangents[0], apply.input(0)};
  return {std::make_shared<DiagonalInto>(offset_, row_axis_, column_axis_)
              ->make_node(inputs)
              .output(0)};
}

Apply DiagonalInto::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 2, name());
  const TensorType &w = inputs[0].type(), &x = inputs[1].type();
  const Extents expected = Diagonal(offset_, row_axis_, column_axis_).result_extents(x.shape);
  if (w.rank() != expected.size()) {
    throw ShapeError("[DiagonalInto] number of axes: got " + w.str() + ", expected " +
                     std::to_string(expected.size()));
  }
  for (std::size_t k = 0; k < w.rank(); ++k) agreed_extent(w.shape, expected, k, name());
  return node(inputs, {{w.dtype, x.shape, common_device(inputs, name())}});
}

std::vector<Extents> DiagonalInto::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  const Extents expected = Diagonal(offset_, row_axis_, column_axis_).result_extents(inputs[1]);
  for (std::size_t k = 0; k < expected.size(); ++k) agreed_extent(inputs[0], expected, k, name());
  return {inputs[1]};
}

std::vector<Variable> DiagonalInto::pullback(const Apply&, CotangentSpan cotangents) const {
  return {std::make_shared<Diagonal>(offset_, row_axis_, column_axis_)
              ->make_node({&cotangents[0], 1})
              .output(0),
          Variable()};
}

void DiagonalInto::run(RunContext& context) const {
  const MutableView& out = context.output(0);
  const std::array<std::byte, 16> zero{};
  strided_fill(zero.data(), out);
  const std::optional<Layout> target = Diagonal(offset_, row_axis_, column_axis_)
                                           .layout_of({out.dtype, out.extents, out.strides, 0});
  strided_copy(context.input(0), {static_cast<std::byte*>(out.data) + target->byte_offset,
                                  out.dtype, target->extents, target->strides});
}

Variable diagonal(const Variable& x, index_t offset, index_t a, index_t b) {
  const index_t row = normalize_axis(a, x.rank(), "diagonal");
  const index_t column = normalize_axis(b, x.rank(), "diagonal");
  if (row == column) {
    throw ShapeError("[diagonal] axes: got " + std::to_string(a) + " and " + std::to_string(b) +
                     ", expected two different ones");
  }
  return std::make_shared<Diagonal>(offset, static_cast<std::size_t>(row),
                                    static_cast<std::size_t>(column))
      ->make_node({&x, 1})
      .output(0);
}

Variable trace(const Variable& x, index_t offset, index_t a, index_t b) {
  return sum(diagonal(x, offset, a, b), {Axes{-1}, false});
}

void register_ops_of_diagonal() {
  register_type<Diagonal>();
  register_type<DiagonalInto>();
}

}  // namespace palimpsest::ops
