// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/tile_placement.hpp"

#include <algorithm>

#include "palimpsest/tensor/tensor_map.hpp"

namespace palimpsest {

const TilePlacement::Moved* TilePlacement::find(const Parameter& p) const {
  const auto found = std::find_if(moved_.begin(), moved_.end(),
                                  [&](const Moved& moved) { return moved.from.is(p); });
  return found == moved_.end() ? nullptr : &*found;
}

void TilePlacement::add(const NamedLinop& tile) {
  for (const auto& [name, p] : tile.params()) {
    if (!p.present() || p.type().device == device_ || find(p)) continue;
    p.refresh();
    moved_.push_back({p, p.borrowed(), {}});
    palimpsest::add(map_, moved_.back().value);
  }
  for (const NamedLinop& child : tile.linops()) add(child);
}

void TilePlacement::copy() {
  map_.to(device_);
  for (Moved& moved : moved_) {
    moved.to = Parameter::borrow(palimpsest::map(map_, moved.value));
    moved.value = Tensor();
  }
}

NamedLinop TilePlacement::placed(const NamedLinop& tile) const {
  LinopData data = copy_data(tile);
  bool changed = false;
  for (auto& [name, p] : data.params) {
    const Moved* moved = p.present() ? find(p) : nullptr;
    if (!moved) continue;
    p = moved->to;
    changed = true;
  }
  for (NamedLinop& child : data.children) {
    const NamedLinop there = placed(child);
    changed = changed || !there.is(child);
    child = there;
  }
  if (!changed) return tile;
  // What follows from parameters is made anew there.
  return data.children.empty() && data.type->derive ? from_arguments(std::move(data))
                                                    : from_data(std::move(data));
}

}  // namespace palimpsest
