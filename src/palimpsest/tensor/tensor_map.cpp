// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/tensor/tensor_map.hpp"

namespace palimpsest {
namespace {

ByteLayout layout_of(const Tensor& t) {
  const std::size_t item = item_size(t.dtype());
  const auto step = static_cast<index_t>(item);
  ByteLayout layout{t.offset() * step, t.shape(), t.strides(), static_cast<int>(item)};
  // Strides along axes without neighbours mean nothing and need not fit in bytes.
  const bool is_empty = t.numel() == 0;
  for (std::size_t axis = 0; axis < t.rank(); ++axis) {
    const bool has_neighbours = !is_empty && layout.shape[axis] > 1;
    layout.strides[axis] = has_neighbours ? checked_multiply(layout.strides[axis], step) : 0;
  }
  return layout;
}

}  // namespace

void add(MemoryMap& map, const Tensor& t) { map.add(t.storage(), layout_of(t)); }

Tensor map(const MemoryMap& map, const Tensor& t) {
  const ByteLayout old = layout_of(t);
  auto [storage, layout] = map.map(t.storage(), old);
  const auto item = static_cast<index_t>(item_size(t.dtype()));
  Strides strides = t.strides();
  for (std::size_t axis = 0; axis < t.rank(); ++axis) {
    if (layout.strides[axis] != old.strides[axis]) strides[axis] = layout.strides[axis] / item;
  }
  return Tensor(std::move(storage), t.dtype(), t.shape(), std::move(strides), layout.offset / item);
}

bool same_storage(const Tensor& a, const Tensor& b) { return shares_storage(a, b); }

}  // namespace palimpsest
