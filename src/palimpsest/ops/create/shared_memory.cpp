// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/create/shared_memory.hpp"

#include <algorithm>
#include <vector>

#include "palimpsest/graph/op.hpp"

namespace palimpsest::ops {
namespace {

constexpr std::size_t kMostPlaces = 64;

// The region of another variable that a variable shows.
struct SharedPlace {
  Variable of;
  Region region;
};

std::vector<SharedPlace> places_of(const Variable& v, const Region& part) {
  std::vector<SharedPlace> places{{v, part}};
  for (std::size_t k = 0; k < places.size(); ++k) {
    const SharedPlace here = places[k];
    const Apply owner = here.of.owner();
    if (!owner.defined()) continue;
    for (const AliasMap& map : {owner.op().view_map(owner), owner.op().destroy_map(owner)}) {
      const auto it = map.find(here.of.index());
      if (it == map.end()) continue;
      for (int i : it->second) {
        if (places.size() >= kMostPlaces) return places;
        const Variable& parent = owner.input(static_cast<std::size_t>(i));
        const Region shown = owner.op().view_region(owner, here.of.index(), i);
        places.push_back({parent, here.region.within(shown, parent.type())});
      }
    }
  }
  return places;
}

}  // namespace

bool shows_common_memory(const Variable& a, const Variable& b, const Region& part) {
  const std::vector<SharedPlace> of_a = places_of(a, part), of_b = places_of(b, Region::whole());
  return std::any_of(of_a.begin(), of_a.end(), [&](const SharedPlace& x) {
    return std::any_of(of_b.begin(), of_b.end(), [&](const SharedPlace& y) {
      return x.of == y.of && x.region.meets(y.region, x.of.type());
    });
  });
}

}  // namespace palimpsest::ops
