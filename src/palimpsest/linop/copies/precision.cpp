// SPDX-License-Identifier: Apache-2.0
// Copies of an operator in another precision: TreeMap decides about operators, Conversion about
// storages.
#include <algorithm>

#include "palimpsest/linop/copies/tree_map.hpp"
#include "palimpsest/tensor/layout.hpp"
#include "palimpsest/tensor/tensor_map.hpp"

namespace palimpsest {
namespace {

index_t bytes_of_item(DType dtype) { return static_cast<index_t>(item_size(dtype)); }

}  // namespace

void Conversion::note(const Tensor& t, DType dtype) {
  const DType kind = is_inexact(dtype) ? real_of(dtype) : dtype;
  const auto [at, is_new] = kinds_.try_emplace(t.storage().id(), kind);
  if (is_new || at->second == kind || (!is_inexact(at->second) && !is_inexact(kind))) return;
  throw DTypeError(who_ + "a storage is reinterpreted: it is read as " +
                   std::string(name_of(at->second)) + " and as " + std::string(name_of(kind)));
}

void Conversion::add(MemoryMap& map, const Tensor& t) {
  palimpsest::add(map, t);
  tensors_.push_back(t);
}

void Conversion::convert(const MemoryMap& map) {
  struct Hull {
    Tensor any;
    std::int64_t lo = INT64_MAX, hi = 0;
  };
  std::map<std::uint64_t, Hull> hulls;
  for (const Tensor& t : tensors_) {
    const Tensor there = palimpsest::map(map, t);
    const Extent extent = memory_extent(byte_layout(there));
    Hull& hull = hulls[there.storage().id()];
    hull.any = there;
    if (extent.lo == extent.hi) continue;
    hull.lo = std::min(hull.lo, extent.lo);
    hull.hi = std::max(hull.hi, extent.hi);
  }
  for (auto& [id, hull] : hulls) {
    const DType old = real_of(hull.any.dtype());
    if (hull.hi == 0) hull.lo = 0;
    hull.lo -= hull.lo % (2 * bytes_of_item(old));
    const Tensor reals(hull.any.storage(), old, {(hull.hi - hull.lo) / bytes_of_item(old)}, {1},
                       hull.lo / bytes_of_item(old));
    storages_.emplace(id, Converted{reals.to(real_).contiguous(), hull.lo});
  }
}

Tensor Conversion::mapped(const MemoryMap& map, const Tensor& t) const {
  const Tensor there = palimpsest::map(map, t);
  const Converted& to = storages_.at(there.storage().id());
  const DType dtype = converted(t.dtype());
  const index_t before = there.numel() == 0 ? 0 : there.offset() - to.lo / bytes_of_item(t.dtype());
  const index_t start = to.reals.offset() * bytes_of_item(real_) / bytes_of_item(dtype);
  return Tensor(to.reals.storage(), dtype, there.shape(), there.strides(), start + before);
}

NamedLinop NamedLinop::to(DType dtype) const {
  data();
  if (!is_inexact(dtype)) {
    throw DTypeError(who(*this) + "to: got " + std::string(name_of(dtype)) +
                     ", expected a floating or complex dtype");
  }
  Conversion conversion(dtype, who(*this) + "to: ");
  TreeMap tree({.conversion = &conversion});
  MemoryMap memory;
  tree.collect(*this);
  {
    const HeldContainers held(tree.containers(), "to");
    tree.read(memory);
    memory.lazy_copy();
  }
  conversion.convert(memory);
  return tree.mapped(memory, *this);
}

}  // namespace palimpsest
