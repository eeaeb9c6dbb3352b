// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/shape/shape_ops.hpp"

#include <numeric>

#include "palimpsest/kernels/arrays/copy.hpp"
#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/shape/shape_op.hpp"

namespace palimpsest::ops {
namespace {

void check_rank_of(std::size_t rank, std::string_view who) {
  if (rank > kMaxRank) {
    throw ShapeError("[" + std::string(who) + "] number of axes: got " + std::to_string(rank) +
                     ", expected at most " + std::to_string(kMaxRank));
  }
}

void check_target(std::span<const index_t> shape, std::string_view who) {
  check_rank_of(shape.size(), who);
  for (index_t extent : shape) {
    if (extent < kUnknown) {
      throw ShapeError("[" + std::string(who) + "] got " + to_string(shape) +
                       ", expected no extent below -1");
    }
  }
}

Axes axes_up_to(std::size_t rank) {
  Axes result(rank);
  std::iota(result.begin(), result.end(), index_t{0});
  return result;
}

Variable apply_to(const Variable& x, const OpPtr& op) { return op->make_node({&x, 1}).output(0); }

}  // namespace

// -- transpose ---------------------------------------------------------------------------------

Extents Transpose::result_extents(std::span<const index_t> in) const {
  if (in.size() != order_.size()) {
    throw ShapeError("[transpose] number of axes: got " + to_string(order_) + " for an array of " +
                     std::to_string(in.size()) + " axes");
  }
  Extents result;
  for (index_t axis : order_) result.push_back(in[static_cast<std::size_t>(axis)]);
  return result;
}

std::optional<Layout> Transpose::layout_of(const Layout& in) const {
  Strides strides;
  for (index_t axis : order_) strides.push_back(in.strides[static_cast<std::size_t>(axis)]);
  return with(in, result_extents(in.extents), std::move(strides));
}

Region Transpose::region_of(std::span<const index_t> in) const {
  std::vector<Region::Range> axes(in.size());
  for (std::size_t k = 0; k < order_.size(); ++k) {
    axes[static_cast<std::size_t>(order_[k])].child_axis = static_cast<int>(k);
  }
  return Region::box(std::move(axes), static_cast<int>(in.size()));
}

std::vector<Variable> Transpose::pullback(const Apply&, CotangentSpan cotangents) const {
  Axes inverse(order_.size());
  for (std::size_t k = 0; k < order_.size(); ++k) {
    inverse[static_cast<std::size_t>(order_[k])] = static_cast<index_t>(k);
  }
  return {transpose(cotangents[0], inverse)};
}

Variable transpose(const Variable& x) {
  Axes order = axes_up_to(x.rank());
  std::reverse(order.begin(), order.end());
  return transpose(x, std::move(order));
}

Variable transpose(const Variable& x, Axes order) {
  for (index_t& axis : order) axis = normalize_axis(axis, x.rank(), "transpose");
  normalize_axes(order, x.rank(), "transpose");
  if (order == axes_up_to(x.rank())) return x;
  return apply_to(x, std::make_shared<Transpose>(std::move(order)));
}

Variable swapaxes(const Variable& x, index_t a, index_t b) {
  Axes order = axes_up_to(x.rank());
  std::swap(order[static_cast<std::size_t>(normalize_axis(a, x.rank(), "swapaxes"))],
            order[static_cast<std::size_t>(normalize_axis(b, x.rank(), "swapaxes"))]);
  return transpose(x, std::move(order));
}

Variable moveaxis(const Variable& x, index_t from, index_t to) {
  const auto source = normalize_axis(from, x.rank(), "moveaxis");
  const auto target = normalize_axis(to, x.rank(), "moveaxis");
  std::vector<index_t> order;
  for (index_t axis : axes_up_to(x.rank())) {
    if (axis != source) order.push_back(axis);
  }
  order.insert(order.begin() + target, source);
  return transpose(x, Axes(order));
}

Variable dimshuffle(const Variable& x, const std::vector<std::optional<index_t>>& pattern) {
  Axes order, added, dropped;
  for (std::size_t k = 0; k < pattern.size(); ++k) {
    if (pattern[k]) {
      order.push_back(normalize_axis(*pattern[k], x.rank(), "dimshuffle"));
    } else {
      added.push_back(static_cast<index_t>(k));
    }
  }
  normalize_axes(order, x.rank(), "dimshuffle");
  for (std::size_t k = 0; k < x.rank(); ++k) {
    if (!contains(order, k)) {
      if (x.type().shape[k] != 1) {
        throw ShapeError("[dimshuffle] axis " + std::to_string(k) + " is dropped: got " +
                         x.type().str() + ", expected an extent known to be 1");
      }
      dropped.push_back(static_cast<index_t>(k));
    }
  }
  // Positions among the axes that are left.
  for (index_t& axis : order) {
    index_t gone = 0;
    for (index_t d : dropped) gone += d < axis ? 1 : 0;
    axis -= gone;
  }
  return expand_dims(transpose(squeeze(x, dropped), order), added);
}

// -- expand_dims, squeeze ----------------------------------------------------------------------

Extents ExpandDims::result_extents(std::span<const index_t> in) const {
  Extents result;
  for (std::size_t k = 0, from = 0; k < in.size() + axes_.size(); ++k) {
    result.push_back(contains(axes_, k) ? 1 : in[from++]);
  }
  return result;
}

std::optional<Layout> ExpandDims::layout_of(const Layout& in) const {
  Strides strides;
  for (std::size_t k = 0, from = 0; k < in.extents.size() + axes_.size(); ++k) {
    strides.push_back(contains(axes_, k) ? 1 : in.strides[from++]);
  }
  return with(in, result_extents(in.extents), std::move(strides));
}

std::vector<Variable> ExpandDims::pullback(const Apply&, CotangentSpan cotangents) const {
  return {squeeze(cotangents[0], axes_)};
}

Variable expand_dims(const Variable& x, Axes axes) {
  if (axes.empty()) return x;
  check_rank_of(x.rank() + axes.size(), "expand_dims");
  axes = normalize_axes(axes, x.rank() + axes.size(), "expand_dims");
  return apply_to(x, std::make_shared<ExpandDims>(std::move(axes)));
}

Extents Squeeze::result_extents(std::span<const index_t> in) const {
  Extents result;
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (!contains(axes_, k)) {
      result.push_back(in[k]);
    } else if (in[k] != 1 && in[k] != kUnknown) {
      throw ShapeError("[squeeze] axis " + std::to_string(k) + ": got extent " +
                       std::to_string(in[k]) + " in " + to_string(in) + ", expected 1");
    }
  }
  return result;
}

std::optional<Layout> Squeeze::layout_of(const Layout& in) const {
  Strides strides;
  for (std::size_t k = 0; k < in.extents.size(); ++k) {
    if (!contains(axes_, k)) strides.push_back(in.strides[k]);
  }
  return with(in, result_extents(in.extents), std::move(strides));
}

std::vector<Variable> Squeeze::pullback(const Apply&, CotangentSpan cotangents) const {
  return {expand_dims(cotangents[0], axes_)};
}

Variable squeeze(const Variable& x) {
  Axes axes;
  for (std::size_t k = 0; k < x.rank(); ++k) {
    if (x.type().shape[k] == 1) axes.push_back(static_cast<index_t>(k));
  }
  return squeeze(x, axes);
}

Variable squeeze(const Variable& x, Axes axes) {
  if (axes.empty()) return x;
  axes = normalize_axes(axes, x.rank(), "squeeze");
  return apply_to(x, std::make_shared<Squeeze>(std::move(axes)));
}

// -- broadcasting ------------------------------------------------------------------------------

Extents BroadcastTo::result_extents(std::span<const index_t> in) const {
  if (in.size() > shape_.size()) {
    throw ShapeError("[broadcast_to] number of axes: got " + to_string(in) + ", expected at most " +
                     std::to_string(shape_.size()) + " for " + to_string(shape_));
  }
  Extents result = shape_;
  const std::size_t n_new = shape_.size() - in.size();
  for (std::size_t k = 0; k < shape_.size(); ++k) {
    const index_t from = k < n_new ? 1 : in[k - n_new];
    if (shape_[k] == kUnknown) result[k] = from;
    if (from != 1 && from != kUnknown && from != result[k]) {
      throw ShapeError("[broadcast_to] axis " + std::to_string(k) + ": got " + to_string(in) +
                       ", expected 1 or the extent in " + to_string(shape_));
    }
  }
  return result;
}

std::vector<Extents> BroadcastTo::infer_shapes(const Apply& apply, ExtentsSpan inputs) const {
  Extents result = result_extents(inputs[0]);
  const Extents& declared = apply.input(0).type().shape;
  const std::size_t n_new = result.size() - declared.size();
  for (std::size_t k = 0; k < declared.size(); ++k) {
    if (inputs[0][k] == 1 && declared[k] != 1 && result[k + n_new] != 1) {
      throw ShapeError("[broadcast_to] axis " + std::to_string(k) + ": got " +
                       to_string(inputs[0]) + " for " + to_string(shape_) +
                       ", but only an axis known to be 1 when the graph is built broadcasts. " +
                       std::string(kBroadcastAdvice));
    }
  }
  return {std::move(result)};
}

std::optional<Layout> BroadcastTo::layout_of(const Layout& in) const {
  Extents extents = result_extents(in.extents);
  const std::size_t n_new = extents.size() - in.extents.size();
  Strides strides(n_new, 0);
  for (std::size_t k = 0; k < in.extents.size(); ++k) {
    strides.push_back(in.extents[k] == 1 && extents[k + n_new] != 1 ? 0 : in.strides[k]);
  }
  return with(in, std::move(extents), std::move(strides));
}

std::vector<Variable> BroadcastTo::pullback(const Apply& apply, CotangentSpan cotangents) const {
  return {unbroadcast_to(apply.input(0), cotangents[0])};
}

Variable broadcast_to(const Variable& x, Extents shape) {
  check_target(shape, "broadcast_to");
  const std::size_t n_new = shape.size() - std::min(shape.size(), x.rank());
  for (std::size_t k = 0; k < n_new; ++k) {
    if (shape[k] == kUnknown) shape[k] = 1;
  }
  if (BroadcastTo(shape).result_extents(x.type().shape) == x.type().shape) return x;
  return apply_to(x, std::make_shared<BroadcastTo>(std::move(shape)));
}

Apply BroadcastLike::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 2, name());
  const TensorType &w = inputs[0].type(), &x = inputs[1].type();
  const Device device = common_device(inputs, name());
  if (w.rank() != x.rank()) {
    throw ShapeError("[BroadcastLike] numbers of axes differ: got " + w.str() + " and " + x.str());
  }
  Extents shape = x.shape;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    if (w.shape[k] != 1) shape[k] = agreed_extent(w.shape, x.shape, k, name());
  }
  return node(inputs, {{w.dtype, std::move(shape), device}});
}

AliasMap BroadcastLike::view_map(const Apply& apply) const {
  if (is_known(apply.input(1).type().shape)) return {{0, {0}}};
  return {};
}

std::optional<Layout> BroadcastLike::view_layout(const Apply& apply, int, const Layout& in) const {
  return BroadcastTo(apply.input(1).type().shape).layout_of(in);
}

std::vector<Extents> BroadcastLike::infer_shapes(const Apply& apply, ExtentsSpan inputs) const {
  const Extents& declared = apply.input(0).type().shape;
  for (std::size_t k = 0; k < declared.size(); ++k) {
    if (declared[k] != 1) agreed_extent(inputs[0], inputs[1], k, name());
  }
  return {inputs[1]};
}

std::vector<Variable> BroadcastLike::pullback(const Apply& apply, CotangentSpan cotangents) const {
  return {as_cotangent_of(apply.input(0), cotangents[0]), {}};
}

void BroadcastLike::run(RunContext& context) const {
  const MutableView& out = context.output(0);
  SmallVector<index_t, 8> strides(out.rank());
  run_copy(stretched(context.input(0), out.extents, {strides.data(), strides.size()}), out);
}

Variable broadcast_like(const Variable& w, const Variable& x) {
  if (is_known(x.type().shape)) return broadcast_to(w, x.type().shape);
  const Variable inputs[] = {w, x};
  return std::make_shared<BroadcastLike>()->make_node(inputs).output(0);
}

// -- specify_shape, flip -----------------------------------------------------------------------

Extents SpecifyShape::result_extents(std::span<const index_t> in) const {
  if (in.size() != shape_.size()) {
    throw ShapeError("[specify_shape] numbers of axes differ: got " + to_string(in) +
                     ", expected " + to_string(shape_));
  }
  Extents result(in);
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (in[k] == kUnknown) result[k] = shape_[k];
    if (result[k] == shape_[k] || shape_[k] == kUnknown) continue;
    throw ShapeError("[specify_shape] axis " + std::to_string(k) + ": extents differ: got " +
                     extents_text(in) + ", expected " + extents_text(shape_));
  }
  return result;
}

std::vector<Variable> SpecifyShape::pullback(const Apply&, CotangentSpan cotangents) const {
  return {cotangents[0]};
}

Variable specify_shape(const Variable& x, Extents shape) {
  check_target(shape, "specify_shape");
  if (SpecifyShape(shape).result_extents(x.type().shape) == x.type().shape) return x;
  return apply_to(x, std::make_shared<SpecifyShape>(std::move(shape)));
}

std::optional<Layout> Flip::layout_of(const Layout& in) const {
  Layout result = in;
  const auto size = static_cast<index_t>(item_size(in.dtype));
  const bool is_empty = element_count(in.extents) == 0;
  for (index_t axis : axes_) {
    const auto k = static_cast<std::size_t>(axis);
    if (!is_empty) result.byte_offset += (in.extents[k] - 1) * in.strides[k] * size;
    result.strides[k] = -in.strides[k];
  }
  return result;
}

std::vector<Variable> Flip::pullback(const Apply&, CotangentSpan cotangents) const {
  return {flip(cotangents[0], axes_)};
}

Variable flip(const Variable& x, Axes axes) {
  if (axes.empty()) return x;
  axes = normalize_axes(axes, x.rank(), "flip");
  return apply_to(x, std::make_shared<Flip>(std::move(axes)));
}

void register_ops_of_shape_ops() {
  register_type<BroadcastLike>();
  register_type<BroadcastTo>();
  register_type<ExpandDims>();
  register_type<Flip>();
  register_type<SpecifyShape>();
  register_type<Squeeze>();
  register_type<Transpose>();
}

}  // namespace palimpsest::ops
