// SPDX-License-Identifier: Apache-2.0
// Arrays out of several, and several out of one.

#include "palimpsest/kernels/arrays/copy.hpp"
#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/shape/rearrange_op.hpp"

namespace palimpsest::ops {

namespace {

// True if both show the same elements.
bool is_the_same(const ConstView& a, const MutableView& b) {
  if (a.data != b.data) return false;
  for (std::size_t k = 0; k < a.rank(); ++k) {
    if (a.extents[k] > 1 && a.strides[k] != b.strides[k]) return false;
  }
  return true;
}

}  // namespace

// -- join --------------------------------------------------------------------------------------

Apply Join::make_node(std::span<const Variable> inputs) const {
  if (inputs.empty()) throw ValueError("[join] got no parts, expected at least one");
  expect_inputs(inputs, inputs.size(), name());
  TensorType type = inputs[0].type();
  type.device = common_device(inputs, "join");
  normalize_axis(static_cast<index_t>(axis_), type.rank(), "join");
  index_t total = type.shape[axis_];
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const TensorType& part = inputs[i].type();
    if (part.dtype != type.dtype) {
      throw DTypeError("[join] dtypes of parts: got " + std::string(name_of(type.dtype)) + " and " +
                       std::string(name_of(part.dtype)));
    }
    if (part.rank() != type.rank()) {
      throw ShapeError("[join] numbers of axes differ: got " + type.str() + " and " + part.str());
    }
    for (std::size_t k = 0; k < type.rank(); ++k) {
      if (k != axis_) type.shape[k] = agreed_extent(type.shape, part.shape, k, "join");
    }
    const index_t more = part.shape[axis_];
    total = total == kUnknown || more == kUnknown ? kUnknown : checked_add(total, more);
  }
  type.shape[axis_] = total;
  return node(inputs, {std::move(type)});
}

std::vector<Extents> Join::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  Extents result = inputs[0];
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    for (std::size_t k = 0; k < result.size(); ++k) {
      if (k != axis_) agreed_extent(inputs[0], inputs[i], k, "join");
    }
    result[axis_] = checked_add(result[axis_], inputs[i][axis_]);
  }
  return {std::move(result)};
}

// Slices where all extents are known.
std::vector<Variable> Join::pullback(const Apply& apply, CotangentSpan cotangents) const {
  std::vector<Variable> inputs(apply.inputs().begin(), apply.inputs().end());
  const bool known = std::all_of(inputs.begin(), inputs.end(), [&](const Variable& part) {
    return part.type().shape[axis_] != kUnknown;
  });
  if (known) {
    std::vector<index_t> sizes;
    for (const Variable& part : inputs) sizes.push_back(part.type().shape[axis_]);
    return split(cotangents[0], sizes, static_cast<index_t>(axis_));
  }
  std::vector<Variable> result;
  inputs.insert(inputs.begin(), cotangents[0]);
  for (std::size_t i = 0; i < apply.input_count(); ++i) {
    result.push_back(std::make_shared<PartOf>(axis_, i)->make_node(inputs).output(0));
  }
  return result;
}

void Join::run(RunContext& context) const {
  const MutableView& out = context.output(0);
  index_t start = 0;
  for (const ConstView& part : context.inputs()) {
    Extents extents;
    const index_t n = part.extents[axis_];
    const MutableView slice = narrowed(out, axis_, start, n, extents);
    start += n;
    // It may have been computed in its place.
    if (!is_the_same(part, slice)) run_copy(part, slice);
  }
}

Variable join(index_t axis, std::span<const Variable> parts) {
  if (parts.empty()) throw ValueError("[join] got no parts, expected at least one");
  axis = normalize_axis(axis, parts[0].rank(), "join");
  if (parts.size() == 1) return parts[0];
  DType dtype = parts[0].dtype();
  for (const Variable& part : parts) dtype = promote(dtype, part.dtype());
  std::vector<Variable> converted;
  for (const Variable& part : parts) converted.push_back(astype(part, dtype));
  return std::make_shared<Join>(static_cast<std::size_t>(axis))->make_node(converted).output(0);
}

Variable join(index_t axis, std::initializer_list<Variable> parts) {
  return join(axis, std::span<const Variable>(parts.begin(), parts.size()));
}

Variable stack(std::span<const Variable> parts, index_t axis) {
  if (parts.empty()) throw ValueError("[stack] got no parts, expected at least one");
  axis = normalize_axis(axis, parts[0].rank() + 1, "stack");
  std::vector<Variable> slabs;
  for (const Variable& part : parts) {
    if (part.rank() != parts[0].rank()) {
      throw ShapeError("[stack] numbers of axes differ: got " + parts[0].type().str() + " and " +
                       part.type().str());
    }
    slabs.push_back(expand_dims(part, {axis}));
  }
  return join(axis, slabs);
}
Variable stack(std::initializer_list<Variable> parts, index_t axis) {
  return stack(std::span<const Variable>(parts.begin(), parts.size()), axis);
}

// -- pieces ------------------------------------------------------------------------------------

Apply PartOf::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, std::max(inputs.size(), position_ + 2), name());
  const Apply whole = std::make_shared<Join>(axis_)->make_node(inputs.subspan(1));
  TensorType type = inputs[position_ + 1].type();
  for (std::size_t k = 0; k < type.rank(); ++k) {
    agreed_extent(inputs[0].type().shape, whole.output(0).type().shape, k, name());
  }
  type.dtype = inputs[0].dtype();
  return node(inputs, {std::move(type)});
}

std::vector<Extents> PartOf::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  return {inputs[position_ + 1]};
}

std::vector<Variable> PartOf::pullback(const Apply& apply, CotangentSpan cotangents) const {
  std::vector<Variable> result(apply.input_count()), parts;
  for (std::size_t i = 1; i < apply.input_count(); ++i) {
    parts.push_back(i == position_ + 1 ? cotangents[0]
                                       : astype(zeros_like(apply.input(i)), cotangents[0].dtype()));
  }
  result[0] = std::make_shared<Join>(axis_)->make_node(parts).output(0);
  return result;
}

void PartOf::run(RunContext& context) const {
  index_t start = 0;
  for (std::size_t i = 1; i <= position_; ++i) start += context.input(i).extents[axis_];
  Extents extents;
  const index_t n = context.input(position_ + 1).extents[axis_];
  run_copy(narrowed(context.input(0), axis_, start, n, extents), context.output(0));
}

std::vector<Variable> split(const Variable& x, const std::vector<index_t>& sizes, index_t axis) {
  axis = normalize_axis(axis, x.rank(), "split");
  index_t total = 0;
  for (index_t size : sizes) {
    if (size < 0) {
      throw ShapeError("[split] size: got " + std::to_string(size) + ", expected none negative");
    }
    total = checked_add(total, size);
  }
  const auto k = static_cast<std::size_t>(axis);
  Extents whole(x.rank(), kUnknown);
  if (x.type().shape[k] != kUnknown && x.type().shape[k] != total) {
    throw ShapeError("[split] axis " + std::to_string(axis) + ": got sizes of " +
                     std::to_string(total) + " in all, expected " +
                     std::to_string(x.type().shape[k]) + " for " + x.type().str());
  }
  whole[k] = total;
  const Variable checked = specify_shape(x, whole);
  std::vector<Variable> result;
  index_t start = 0;
  for (index_t size : sizes) {
    std::vector<Index> where(k, Index(all));
    where.emplace_back(slice(start, start + size));
    result.push_back(index(checked, std::move(where)));
    start += size;
  }
  return result;
}

std::vector<Variable> split(const Variable& x, index_t n_parts, index_t axis) {
  axis = normalize_axis(axis, x.rank(), "split");
  const index_t n = x.type().shape[static_cast<std::size_t>(axis)];
  if (n == kUnknown || n_parts < 1 || n % n_parts != 0) {
    throw ShapeError("[split] axis " + std::to_string(axis) + ": got " + x.type().str() +
                     ", expected an extent known to be a multiple of " + std::to_string(n_parts) +
                     ". Try specify_shape, or the sizes of the parts");
  }
  return split(x, std::vector<index_t>(static_cast<std::size_t>(n_parts), n / n_parts), axis);
}

// -- repetition --------------------------------------------------------------------------------

namespace {

// x with a new axis of `count` elements at `position`, merged with axis k of x, which is its
// neighbour.
Variable multiplied(const Variable& x, std::size_t k, std::size_t position, index_t count) {
  const Variable expanded = expand_dims(x, {static_cast<index_t>(position)});
  Extents wide(expanded.rank(), kUnknown);
  wide[position] = count;
  std::vector<Operand> merged;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    const Variable extent = shape(x, static_cast<index_t>(i));
    merged.emplace_back(i == k ? extent * count : extent);
  }
  return reshape(broadcast_to(expanded, wide), merged);
}

void check_count(index_t count, std::string_view who) {
  if (count < 0) {
    throw ValueError("[" + std::string(who) + "] count: got " + std::to_string(count) +
                     ", expected none negative");
  }
}

}  // namespace

Variable repeat(const Variable& x, index_t count, index_t axis) {
  axis = normalize_axis(axis, x.rank(), "repeat");
  check_count(count, "repeat");
  if (count == 1) return x;
  const auto k = static_cast<std::size_t>(axis);
  return multiplied(x, k, k + 1, count);
}

Variable tile(const Variable& x, const std::vector<index_t>& counts) {
  Variable result = with_rank(x, std::max(x.rank(), counts.size()));
  const std::size_t first = result.rank() - counts.size();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    check_count(counts[i], "tile");
    if (counts[i] == 1) continue;
    result = multiplied(result, first + i, first + i, counts[i]);
  }
  return result;
}

void register_ops_of_join() {
  register_type<Join>();
  register_type<PartOf>();
}

}  // namespace palimpsest::ops
