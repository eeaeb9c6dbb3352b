// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "palimpsest/kernels/index.hpp"
#include "palimpsest/ops/common.hpp"
#include "palimpsest/ops/elementwise.hpp"
#include "palimpsest/ops/gather_op.hpp"
#include "palimpsest/ops/index.hpp"

namespace palimpsest::ops {
namespace {

using Shapes = std::span<const Extents>;

std::vector<Extents> shapes_of(std::span<const Variable> variables) {
  std::vector<Extents> result;
  for (const Variable& v : variables) result.push_back(v.type().shape);
  return result;
}

// The common extents of index arrays; those that are declared 1 broadcast.
Extents points_shape(Shapes actual, Shapes declared, std::string_view who) {
  Extents result = actual[0];
  for (std::size_t k = 0; k < result.size(); ++k) {
    std::size_t source = 0;
    while (source + 1 < actual.size() && declared[source][k] == 1) ++source;
    result[k] = actual[source][k];
    for (std::size_t i = source + 1; i < actual.size(); ++i) {
      if (declared[i][k] != 1) result[k] = agreed_extent(result, actual[i], k, who);
    }
  }
  return result;
}

void check_indices(std::span<const Variable> indices, bool constant, std::string_view who) {
  if (indices.empty()) {
    throw ValueError("[" + std::string(who) + "] got no index array, expected at least one");
  }
  for (const Variable& v : indices) {
    if (v.dtype() != DType::int64 || v.rank() != indices[0].rank()) {
      throw DTypeError("[" + std::string(who) + "] index array: got " + v.type().str() +
                       ", expected int64 of " + std::to_string(indices[0].rank()) + " axes");
    }
    if (constant && !v.is_constant()) {
      throw ValueError("[" + std::string(who) + "] index array: got " + v.str() +
                       ", expected a constant");
    }
  }
}

// Constants are checked against every extent that is known.
void check_constants(std::span<const Variable> indices, std::span<const index_t> sizes,
                     std::string_view who) {
  for (std::size_t d = 0; d < indices.size(); ++d) {
    if (indices[d].is_constant() && sizes[d] != kUnknown) {
      check_index_range(indices[d].constant_value().view_of(), sizes[d], who);
    }
  }
}

// The index arrays of one rank, as int64; constants stay constants.
std::vector<Variable> normalized(std::span<const Variable> indices, std::string_view who) {
  std::vector<Variable> result;
  for (const Variable& v : indices) {
    if (!is_integer(v.dtype())) {
      throw DTypeError("[" + std::string(who) + "] index array: got " + v.type().str() +
                       ", expected integers");
    }
    result.push_back(astype(v, DType::int64));
  }
  return with_equal_ranks(result);
}

bool are_constant(std::span<const Variable> indices) {
  return std::all_of(indices.begin(), indices.end(),
                     [](const Variable& v) { return v.is_constant(); });
}

// The index views broadcast against each other. `strides` owns what the views point to.
struct IndexViews {
  IndexViews(std::span<const ConstView> indices, std::span<const index_t> points)
      : views(indices.size()), strides(indices.size() * points.size()) {
    for (std::size_t d = 0; d < indices.size(); ++d) {
      views[d] = stretched(indices[d], points, {strides.data() + d * points.size(), points.size()});
    }
  }
  SmallVector<ConstView, 4> views;
  SmallVector<index_t, 16> strides;
};

void check_ranges(std::span<const ConstView> indices, std::span<const index_t> sizes,
                  std::string_view who) {
  for (std::size_t d = 0; d < indices.size(); ++d) check_index_range(indices[d], sizes[d], who);
}

std::vector<Variable> with_data(const Variable& data, std::span<const Variable> indices) {
  std::vector<Variable> inputs{data};
  inputs.insert(inputs.end(), indices.begin(), indices.end());
  return inputs;
}

Linearity linear_in_data(const Apply& apply, int in) {
  return in == 0 && is_inexact(apply.input(0).dtype()) ? Linearity::complex : Linearity::no;
}

}  // namespace

// -- gather ------------------------------------------------------------------------------------

std::string Gather::parameters() const {
  return parameter("constant_indices", constant_indices_ ? 1 : 0);
}

Apply Gather::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, std::max<std::size_t>(inputs.size(), 1), name());
  const auto indices = inputs.subspan(1);
  check_indices(indices, constant_indices_, "gather");
  const Device device = common_device(inputs, "gather");
  const TensorType& x = inputs[0].type();
  if (indices.size() > x.rank()) {
    throw ShapeError("[gather] number of index arrays: got " + std::to_string(indices.size()) +
                     ", expected at most one per axis of " + x.str());
  }
  const std::size_t n_batch = x.rank() - indices.size();
  const std::span<const index_t> shape = x.shape;
  check_constants(indices, shape.subspan(n_batch), "gather");
  Extents result = shape.first(n_batch);
  const std::vector<Extents> shapes = shapes_of(indices);
  for (index_t extent : points_shape(shapes, shapes, "gather")) result.push_back(extent);
  return node(inputs, {{x.dtype, std::move(result), device}});
}

std::vector<Extents> Gather::infer_shapes(const Apply& apply,
                                          std::span<const Extents> inputs) const {
  const auto indices = apply.inputs().subspan(1);
  const std::size_t n_batch = inputs[0].size() - indices.size();
  const std::span<const index_t> shape = inputs[0];
  check_constants(indices, shape.subspan(n_batch), "gather");
  Extents result = shape.first(n_batch);
  const Extents points = points_shape(inputs.subspan(1), shapes_of(indices), "gather");
  for (index_t extent : points) result.push_back(extent);
  return {std::move(result)};
}

Linearity Gather::linear_in(const Apply& apply, int in) const { return linear_in_data(apply, in); }

std::vector<Variable> Gather::pullback(const Apply& apply,
                                       std::span<const Variable> cotangents) const {
  const TensorType& x = apply.input(0).type();
  const auto indices = apply.inputs().subspan(1);
  const Extents sizes = std::span<const index_t>(x.shape).subspan(x.rank() - indices.size());
  if (std::find(sizes.begin(), sizes.end(), kUnknown) != sizes.end()) {
    throw NotSupported("[gather] derivative with unknown extents: got " + x.str() +
                       ". Try specify_shape on the input");
  }
  std::vector<Variable> result(apply.input_count());
  result[0] = scatter_add(cotangents[0], indices, sizes);
  return result;
}

void Gather::run(RunContext& context) const {
  const ConstView& x = context.input(0);
  const MutableView& y = context.output(0);
  const auto indices = context.inputs().subspan(1);
  const std::size_t n_batch = x.rank() - indices.size();
  if (!constant_indices_) check_ranges(indices, x.extents.subspan(n_batch), "gather");
  const IndexViews points(indices, y.extents.subspan(n_batch));
  run_gather(x, points.views, y);
}

Variable gather(const Variable& x, std::span<const Variable> indices) {
  const std::vector<Variable> points = normalized(indices, "gather");
  return std::make_shared<Gather>(are_constant(points))->make_node(with_data(x, points)).output(0);
}

// -- scatter -----------------------------------------------------------------------------------

std::string ScatterAdd::parameters() const {
  return parameter("sizes", sizes_) + ", " +
         parameter("constant_indices", constant_indices_ ? 1 : 0);
}

Apply ScatterAdd::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, std::max<std::size_t>(inputs.size(), 1), name());
  const auto indices = inputs.subspan(1);
  check_indices(indices, constant_indices_, "scatter_add");
  const Device device = common_device(inputs, "scatter_add");
  const TensorType& y = inputs[0].type();
  if (indices.size() != sizes_.size() || indices[0].rank() > y.rank()) {
    throw ShapeError("[scatter_add] got " + y.str() + " and " + std::to_string(indices.size()) +
                     " index arrays of " + std::to_string(indices[0].rank()) +
                     " axes, expected one array per extent of " + to_string(sizes_) +
                     " and no more axes than the values have");
  }
  element_count(sizes_);
  check_constants(indices, sizes_, "scatter_add");
  const std::vector<Extents> shapes = shapes_of(inputs);
  return node(inputs, {{y.dtype, infer_shapes_of(shapes, shapes), device}});
}

Extents ScatterAdd::infer_shapes_of(std::span<const Extents> actual,
                                    std::span<const Extents> declared) const {
  const Extents& y = actual[0];
  const Extents points = points_shape(actual.subspan(1), declared.subspan(1), "scatter_add");
  const std::size_t n_batch = y.size() - points.size();
  for (std::size_t k = 0; k < points.size(); ++k) {
    const index_t values = y[n_batch + k];
    if (values != points[k] && values != kUnknown && points[k] != kUnknown) {
      throw ShapeError("[scatter_add] axis " + std::to_string(n_batch + k) +
                       ": values and points differ: got " + to_string(y) + " and " +
                       to_string(points));
    }
  }
  Extents result = std::span<const index_t>(y).first(n_batch);
  for (index_t size : sizes_) result.push_back(size);
  return result;
}

std::vector<Extents> ScatterAdd::infer_shapes(const Apply& apply,
                                              std::span<const Extents> inputs) const {
  return {infer_shapes_of(inputs, shapes_of(apply.inputs()))};
}

Linearity ScatterAdd::linear_in(const Apply& apply, int in) const {
  return linear_in_data(apply, in);
}

std::vector<Variable> ScatterAdd::pullback(const Apply& apply,
                                           std::span<const Variable> cotangents) const {
  std::vector<Variable> result(apply.input_count());
  result[0] = gather(cotangents[0], apply.inputs().subspan(1));
  return result;
}

void ScatterAdd::run(RunContext& context) const {
  const ConstView& y = context.input(0);
  const auto indices = context.inputs().subspan(1);
  if (!constant_indices_) check_ranges(indices, sizes_, "scatter_add");
  const IndexViews points(indices, y.extents.last(indices[0].rank()));
  run_scatter_add(y, points.views, context.output(0), ScatterStart::zero);
}

Variable scatter_add(const Variable& y, std::span<const Variable> indices, Extents sizes) {
  const std::vector<Variable> points = normalized(indices, "scatter_add");
  return std::make_shared<ScatterAdd>(std::move(sizes), are_constant(points))
      ->make_node(with_data(y, points))
      .output(0);
}

}  // namespace palimpsest::ops
