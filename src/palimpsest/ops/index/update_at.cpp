// SPDX-License-Identifier: Apache-2.0
// Writing to points that are named by index arrays.
#include <set>

#include "palimpsest/kernels/arrays/copy.hpp"
#include "palimpsest/kernels/arrays/index.hpp"
#include "palimpsest/ops/create/shared_memory.hpp"
#include "palimpsest/ops/index/gather_op.hpp"
#include "palimpsest/ops/index/index_op.hpp"
#include "palimpsest/ops/index/rows.hpp"
#include "palimpsest/ops/prelude.hpp"

namespace palimpsest::ops {
namespace {

// True if constant index arrays name a point twice. Unknown sizes count as big: -1 is another point
// than the last.
bool has_repeated_points(std::span<const Variable> indices, const Axes& axes, const Variable& x) {
  std::vector<std::vector<index_t>> columns;
  Extents extents;
  for (const Variable& v : indices) {
    extents = broadcast_extents(extents, v.type().shape, "index");
  }
  for (std::size_t d = 0; d < indices.size(); ++d) {
    const index_t n = x.type().shape[static_cast<std::size_t>(axes[d])];
    if (n == kUnknown) return true;
    columns.push_back(indices[d].constant_value().expand(extents).to_vector<index_t>());
    for (index_t& i : columns.back()) i += i < 0 ? n : 0;
  }
  std::set<std::vector<index_t>> seen;
  for (std::size_t p = 0; p < columns[0].size(); ++p) {
    std::vector<index_t> point;
    for (const auto& column : columns) point.push_back(column[p]);
    if (!seen.insert(std::move(point)).second) return true;
  }
  return false;
}

}  // namespace

std::string_view UpdateAt::title() const {
  if (kind_ == Kind::set) return in_place_ ? "AdvancedSetInPlace" : "AdvancedSet";
  return in_place_ ? "AdvancedIncInPlace" : "AdvancedInc";
}

Apply UpdateAt::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, std::max<std::size_t>(inputs.size(), 3), name());
  const TensorType& x = inputs[0].type();
  const auto indices = inputs.subspan(2);
  common_device(inputs, name());
  index_.check(inputs[0], indices, name());
  check_update(inputs, dtype_, index_.extents(x.shape, shapes_of(indices), indices, name()),
               in_place_, name());
  return node(inputs, {x});
}

void UpdateAt::adapt(const Apply* a) {
  buffered_ = a && shows_common_memory(a->input(0), a->input(1));
}

IndexPairs UpdateAt::tolerate_aliased(const Apply&) const {
  if (buffered_) return {{0, 1}};
  return {};
}

std::size_t UpdateAt::scratch_bytes(const Apply&, std::span<const Layout> inputs) const {
  return buffered_ ? static_cast<std::size_t>(byte_count(inputs[1].extents, dtype_)) : 0;
}

std::vector<Extents> UpdateAt::infer_shapes(const Apply& apply, ExtentsSpan inputs) const {
  const auto indices = apply.inputs().subspan(2);
  index_.check_constants(indices, inputs[0], name());
  const Extents points = index_.extents(inputs[0], inputs.subspan(2), indices, name());
  check_value(inputs[1], apply.input(1).type().shape, points, name());
  return {inputs[0]};
}

Linearity UpdateAt::linear_in(const Apply&, int in) const {
  return in < 2 && is_inexact(dtype_) ? Linearity::complex : Linearity::no;
}

// Numbers the points, sets these numbers, and sees which are still there.
Variable UpdateAt::winners(const Apply& apply) const {
  const Variable& x = apply.input(0);
  const auto indices = apply.inputs().subspan(2);
  if (indices[0].rank() == 0) return {};
  if (index_.constant && !has_repeated_points(indices, index_.axes, x)) return {};
  Variable points = indices[0];
  for (std::size_t d = 1; d < indices.size(); ++d) points = points + indices[d];
  std::vector<Operand> extents, sizes;
  for (std::size_t k = 0; k < points.rank(); ++k) {
    extents.emplace_back(shape(points, static_cast<index_t>(k)));
  }
  for (index_t axis : index_.axes) sizes.emplace_back(shape(x, axis));
  const Variable numbers = reshape(cumsum(ones_like(points)), extents);
  ArrayIndex all_axes{{}, 0, index_.constant};
  for (std::size_t d = 0; d < indices.size(); ++d) all_axes.axes.push_back(static_cast<index_t>(d));
  const Variable last =
      update_at(Kind::set, zeros(sizes, DType::int64), all_axes, indices, numbers);
  std::vector<Variable> inputs{last};
  inputs.insert(inputs.end(), indices.begin(), indices.end());
  const Variable kept = std::make_shared<Gather>(all_axes)->make_node(inputs).output(0);
  // Behind the points come the axes of x that are not indexed.
  const Variable result = eq(kept, numbers);
  Axes behind;
  for (std::size_t k = index_.position; k + index_.axes.size() < x.rank(); ++k) {
    behind.push_back(static_cast<index_t>(points.rank() + k - index_.position));
  }
  return expand_dims(result, behind);
}

std::vector<Variable> UpdateAt::pullback(const Apply& apply, CotangentSpan cotangents) const {
  const Variable& w = cotangents[0];
  const auto indices = apply.inputs().subspan(2);
  std::vector<Variable> inputs{w}, result(apply.input_count());
  if (!is_inexact(dtype_)) return result;
  inputs.insert(inputs.end(), indices.begin(), indices.end());
  Variable read = std::make_shared<Gather>(index_)->make_node(inputs).output(0);
  if (kind_ == Kind::set) {
    const Variable kept = winners(apply);
    if (kept.defined()) read = where(kept, read, 0);
    const Variable zero = constant(Tensor::zeros({}, w.dtype(), w.type().device));
    result[0] = update_at(Kind::set, w, index_, indices, zero);
  } else {
    result[0] = w;
  }
  result[1] = as_cotangent_of(apply.input(1), read);
  return result;
}

void UpdateAt::run(RunContext& context) const {
  const MutableView& out = context.output(0);
  const Positions positions(index_, context.inputs().subspan(2), out.extents);
  const auto indices = positions.views();
  for (std::size_t d = 0; can_fail() && d < indices.size(); ++d) {
    check_index_range(indices[d], out.extents[static_cast<std::size_t>(index_.axes[d])], title());
  }
  if (!in_place_) run_copy(context.input(0), out);
  // The value, stretched to the extents of the written elements.
  Extents extents;
  std::size_t n_kept = 0;
  ConstView value = context.input(1);
  const Strides dense = contiguous_strides(value.extents);
  if (buffered_) {
    const MutableView copy{context.scratch().data(), dtype_, value.extents, dense};
    run_copy(value, copy);
    value = copy;
  }
  const std::size_t n_points = indices[0].rank();
  const auto add_points = [&] {
    for (std::size_t k = 0; k < n_points; ++k) {
      index_t extent = 1;
      for (const ConstView& i : indices) extent = i.extents[k] == 1 ? extent : i.extents[k];
      extents.push_back(extent);
    }
  };
  for (std::size_t k = 0; k < out.rank(); ++k) {
    const bool indexed = std::find(index_.axes.begin(), index_.axes.end(),
                                   static_cast<index_t>(k)) != index_.axes.end();
    if (indexed) continue;
    if (n_kept++ == index_.position) add_points();
    extents.push_back(out.extents[k]);
  }
  if (n_kept == index_.position) add_points();
  Strides strides(extents.size());
  PointViews views(index_, indices);
  const ConstView values =
      views.of_values(stretched(value, extents, {strides.data(), strides.size()}));
  const MutableView target = views.of_array(out);
  if (kind_ == Kind::set) {
    run_scatter_set(values, views.indices(), target, ScatterStart::keep);
  } else {
    run_scatter_add(values, views.indices(), target, ScatterStart::keep);
  }
}

Variable update_at(UpdateAt::Kind kind, const Variable& x, ArrayIndex index,
                   std::span<const Variable> indices, const Variable& value) {
  const char* who = kind == UpdateAt::Kind::set ? "set" : "inc";
  const std::vector<Variable> points = as_index_arrays(indices, who);
  if (index.axes.size() > x.rank()) {
    throw ShapeError("[" + std::string(who) + "] number of axes: got " + x.type().str() +
                     ", expected at least " + std::to_string(index.axes.size()));
  }
  index.constant = !index.wraps && are_constant(points);
  const std::size_t rank = x.rank() - index.axes.size() + points[0].rank();
  if (value.rank() > rank) {
    throw ShapeError("[" + std::string(who) + "] number of axes of the value: got " +
                     value.type().str() + ", expected at most " + std::to_string(rank));
  }
  std::vector<Variable> inputs{x, with_rank(astype(value, x.dtype()), rank)};
  inputs.insert(inputs.end(), points.begin(), points.end());
  return std::make_shared<UpdateAt>(kind, std::move(index), x.dtype())->make_node(inputs).output(0);
}

Variable set_row(const Variable& x, const Variable& position, const Variable& value) {
  return update_at(UpdateAt::Kind::set, x, {{0}, 0, false, true}, {&position, 1}, value);
}

void register_ops_of_update_at() { register_type<UpdateAt>(); }

}  // namespace palimpsest::ops
