// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/core/total.hpp"

#include <algorithm>
#include <cstddef>

namespace palimpsest {
namespace {

// The part of A that knows how vectors on that side are spread; null where they are whole.
// Children stand in the order in which they are applied.
const NamedLinop* spreading(const NamedLinop& A, VectorSide side) {
  if (A.type().parts) return &A;
  const auto& children = A.linops();
  const auto found_in = [&](auto first, auto last) -> const NamedLinop* {
    for (; first != last; ++first) {
      if (const NamedLinop* const found = spreading(*first, side)) return found;
    }
    return nullptr;
  };
  return side == VectorSide::input ? found_in(children.begin(), children.end())
                                   : found_in(children.rbegin(), children.rend());
}

}  // namespace

Variable total(const NamedLinop& A, VectorSide side, const Variable& number) {
  const NamedLinop* const part = spreading(A, side);
  return part ? part->type().parts->total(*part, side, number) : number;
}

bool is_in_parts(const NamedLinop& A) { return spreading(A, VectorSide::input) != nullptr; }

bool on_any_process(const NamedLinop& A, bool here) {
  const NamedLinop* const part = spreading(A, VectorSide::input);
  return part ? part->type().parts->on_any(*part, here) : here;
}

namespace {

// Numbers of a part are drawn by their positions in the whole, row by row.
void draw_rows(RandomKey key, const Extents& whole, const Extents& start, Tensor& part) {
  const std::size_t rank = whole.size();
  const MutableView view = part.mutable_view();
  const index_t n = view.extents.back(), rows = part.numel() / std::max<index_t>(n, 1);
  const Extents extents{n};
  const Strides strides{1};
  Extents at = start;
  for (index_t row = 0; row < rows; ++row) {
    index_t first = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) first = first * whole[axis] + at[axis];
    auto* const to =
        static_cast<std::byte*>(view.data) + row * n * static_cast<index_t>(item_size(view.dtype));
    random_normal(key, MutableView{to, view.dtype, extents, strides},
                  static_cast<std::uint64_t>(first));
    for (std::size_t axis = rank - 1; axis-- > 0;) {
      if (++at[axis] < start[axis] + view.extents[axis]) break;
      at[axis] = start[axis];
    }
  }
}

}  // namespace

// Entries of the attribute: axis, extent of the whole, axis of the team, number of the part, number
// of parts, first index.
Tensor random_part(const NamedLinop& A, VectorSide side, const TensorType& type, RandomKey key) {
  const NamedLinop* const spread = spreading(A, side);
  const bool is_input = spread && (side == VectorSide::input) != spread->is_flipped();
  Attribute::List cuts;
  if (spread) cuts = spread->attr(is_input ? "input" : "output").as_list();
  if (cuts.empty()) return Tensor::random_normal(type.shape, type.dtype, key, type.device);
  Extents whole = type.shape, start(type.shape.size(), 0);
  const Dims& dims = side == VectorSide::input ? spread->ishape() : spread->oshape();
  bool is_known = dims.size() == type.shape.size() && !dims.has_ellipsis();
  index_t number = 0;
  for (const Attribute& cut : cuts) {
    const Attribute::List& e = cut.as_list();
    number = number * e[4].as_integer() + e[3].as_integer();
    const auto axis = static_cast<std::size_t>(e[0].as_integer());
    const index_t extent = e[1].as_integer(), first = e[5].as_integer();
    is_known = is_known && axis < whole.size() && first + type.shape[axis] <= extent;
    if (!is_known) continue;
    whole[axis] = extent;
    start[axis] = first;
  }
  if (!is_known) {
    const RandomKey own{key.seed, key.stream + (static_cast<std::uint64_t>(number) << 32)};
    return Tensor::random_normal(type.shape, type.dtype, own, type.device);
  }
  Tensor part = Tensor::empty(type.shape, type.dtype, type.device);
  draw_rows(key, whole, start, part);
  return part;
}

Dims cut_dims(const NamedLinop& A, VectorSide side) {
  const NamedLinop* const part = spreading(A, side);
  return part ? part->type().parts->cut_dims(*part, side) : Dims();
}

}  // namespace palimpsest
