// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/tensor/tensor_map.hpp"

#include "palimpsest/tensor/layout.hpp"

namespace palimpsest {
void add(MemoryMap& map, const Tensor& t) { map.add(t.storage(), byte_layout(t)); }

Tensor map(const MemoryMap& map, const Tensor& t) {
  const ByteLayout old = byte_layout(t);
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
