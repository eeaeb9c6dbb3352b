// SPDX-License-Identifier: Apache-2.0

#include "palimpsest/kernels/arrays/index.hpp"
#include "palimpsest/ops/index/gather_op.hpp"
#include "palimpsest/ops/index/rows.hpp"
#include "palimpsest/ops/prelude.hpp"

namespace palimpsest::ops {
namespace {

std::vector<Variable> with_data(const Variable& data, std::span<const Variable> indices) {
  std::vector<Variable> inputs{data};
  inputs.insert(inputs.end(), indices.begin(), indices.end());
  return inputs;
}

Linearity linear_in_data(const Apply& apply, int in) {
  return in == 0 && is_inexact(apply.input(0).dtype()) ? Linearity::complex : Linearity::no;
}

// The last n axes of an array of this rank.
Axes last_axes(std::size_t rank, std::size_t n) {
  Axes result;
  for (std::size_t k = rank - n; k < rank; ++k) result.push_back(static_cast<index_t>(k));
  return result;
}

}  // namespace

// -- gather ------------------------------------------------------------------------------------

Apply Gather::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, std::max<std::size_t>(inputs.size(), 1), name());
  const auto indices = inputs.subspan(1);
  index_.check(inputs[0], indices, "gather");
  const TensorType& x = inputs[0].type();
  Extents shape = index_.extents(x.shape, shapes_of(indices), indices, "gather");
  return node(inputs, {{x.dtype, std::move(shape), common_device(inputs, "gather")}});
}

std::vector<Extents> Gather::infer_shapes(const Apply& apply, ExtentsSpan inputs) const {
  const auto indices = apply.inputs().subspan(1);
  index_.check_constants(indices, inputs[0], "gather");
  return {index_.extents(inputs[0], inputs.subspan(1), indices, "gather")};
}

Linearity Gather::linear_in(const Apply& apply, int in) const { return linear_in_data(apply, in); }

// A single pass if the points are the last axes and their sizes are known.
std::vector<Variable> Gather::pullback(const Apply& apply, CotangentSpan cotangents) const {
  std::vector<Variable> result(apply.input_count());
  const Variable& x = apply.input(0);
  if (!is_inexact(x.dtype())) return result;
  const auto indices = apply.inputs().subspan(1);
  const std::size_t n_batch = x.rank() - indices.size();
  const Extents sizes = std::span<const index_t>(x.type().shape).subspan(n_batch);
  const bool is_last =
      index_.position == n_batch && index_.axes == last_axes(x.rank(), indices.size());
  if (is_last && !index_.wraps && is_known(sizes)) {
    result[0] = scatter_add(cotangents[0], indices, sizes);
  } else {
    result[0] = update_at(UpdateAt::Kind::increase, zeros_like(x), index_, indices, cotangents[0]);
  }
  return result;
}

void Gather::run(RunContext& context) const {
  const ConstView& x = context.input(0);
  const Positions positions(index_, context.inputs().subspan(1), x.extents);
  const auto indices = positions.views();
  for (std::size_t d = 0; can_fail() && d < indices.size(); ++d) {
    check_index_range(indices[d], x.extents[static_cast<std::size_t>(index_.axes[d])], "gather");
  }
  PointViews views(index_, indices);
  const MutableView values = views.of_values(context.output(0));
  run_gather(views.of_array(x), views.indices(), values);
}

Variable gather(const Variable& x, std::span<const Variable> indices) {
  const std::vector<Variable> points = as_index_arrays(indices, "gather");
  if (points.size() > x.rank()) {
    throw ShapeError("[gather] number of index arrays: got " + std::to_string(points.size()) +
                     ", expected at most one per axis of " + x.type().str());
  }
  ArrayIndex index{last_axes(x.rank(), points.size()), x.rank() - points.size(),
                   are_constant(points)};
  return std::make_shared<Gather>(std::move(index))->make_node(with_data(x, points)).output(0);
}

Variable take(const Variable& x, const Variable& indices, std::optional<index_t> axis) {
  const Variable line = axis ? x : reshape(x, {kUnknown});
  const index_t k = normalize_axis(axis.value_or(0), line.rank(), "take");
  const std::vector<Variable> points = as_index_arrays({&indices, 1}, "take");
  ArrayIndex index{{k}, static_cast<std::size_t>(k), are_constant(points)};
  return std::make_shared<Gather>(std::move(index))->make_node(with_data(line, points)).output(0);
}

Variable row(const Variable& x, const Variable& position) {
  const ArrayIndex index{{0}, 0, false, true};
  return std::make_shared<Gather>(index)->make_node(with_data(x, {&position, 1})).output(0);
}

// -- scatter -----------------------------------------------------------------------------------

Apply ScatterAdd::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, std::max<std::size_t>(inputs.size(), 1), name());
  const auto indices = inputs.subspan(1);
  check_index_arrays(indices, constant_indices_, "scatter_add");
  const Device device = common_device(inputs, "scatter_add");
  const TensorType& y = inputs[0].type();
  if (indices.size() != sizes_.size() || indices[0].rank() > y.rank()) {
    throw ShapeError("[scatter_add] got " + y.str() + " and " + std::to_string(indices.size()) +
                     " index arrays of " + std::to_string(indices[0].rank()) +
                     " axes, expected one array per extent of " + to_string(sizes_) +
                     " and no more axes than the values have");
  }
  element_count(sizes_);
  for (std::size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].is_constant()) continue;
    check_index_range(indices[d].constant_value().view_of(), sizes_[d], "scatter_add");
  }
  return node(inputs, {{y.dtype, result_extents(shapes_of(inputs), inputs), device}});
}

Extents ScatterAdd::result_extents(std::span<const Extents> actual,
                                   std::span<const Variable> inputs) const {
  const Extents& y = actual[0];
  const Extents points = points_extents(actual.subspan(1), inputs.subspan(1), "scatter_add");
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

std::vector<Extents> ScatterAdd::infer_shapes(const Apply& apply, ExtentsSpan inputs) const {
  return {result_extents(inputs, apply.inputs())};
}

Linearity ScatterAdd::linear_in(const Apply& apply, int in) const {
  return linear_in_data(apply, in);
}

std::vector<Variable> ScatterAdd::pullback(const Apply& apply, CotangentSpan cotangents) const {
  std::vector<Variable> result(apply.input_count());
  result[0] = gather(cotangents[0], apply.inputs().subspan(1));
  return result;
}

void ScatterAdd::run(RunContext& context) const {
  const ConstView& y = context.input(0);
  const auto indices = context.inputs().subspan(1);
  for (std::size_t d = 0; !constant_indices_ && d < indices.size(); ++d) {
    check_index_range(indices[d], sizes_[d], "scatter_add");
  }
  const std::size_t rank = context.output(0).rank();
  const ArrayIndex index{last_axes(rank, sizes_.size()), rank - sizes_.size(), constant_indices_};
  PointViews views(index, indices);
  const ConstView values = views.of_values(y);
  run_scatter_add(values, views.indices(), context.output(0), ScatterStart::zero);
}

Variable scatter_add(const Variable& y, std::span<const Variable> indices, Extents sizes) {
  const std::vector<Variable> points = as_index_arrays(indices, "scatter_add");
  return std::make_shared<ScatterAdd>(std::move(sizes), are_constant(points))
      ->make_node(with_data(y, points))
      .output(0);
}

void register_ops_of_gather() {
  register_type<Gather>();
  register_type<ScatterAdd>();
}

}  // namespace palimpsest::ops
