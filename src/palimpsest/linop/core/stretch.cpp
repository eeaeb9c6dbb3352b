// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/core/stretch.hpp"

#include "palimpsest/linop/core/axes.hpp"
#include "palimpsest/named/sizes.hpp"
#include "palimpsest/ops/reduce/reduce.hpp"
#include "palimpsest/ops/shape/shape_ops.hpp"

namespace palimpsest {

Variable summed(const Variable& x, const Axes& axes) { return ops::sum(x, {.axes = axes}); }

Variable repeated(const Variable& x, const Axes& axes, const Extents& counts) {
  const std::size_t rank = x.rank() + axes.size();
  const Axes positions = from_front(axes, rank);
  Extents extents(rank, kUnknown);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    extents[static_cast<std::size_t>(positions[i])] = counts[i];
  }
  return ops::broadcast_to(ops::expand_dims(x, positions), extents);
}

Axes extra_axes(const Dims& longer, const Dims& shorter) {
  Axes axes;
  Dims rest;
  for (const ND& d : longer) {
    if (shorter.contains(d)) {
      rest.push_back(d);
    } else {
      axes.push_back(axis_of(longer, d));
    }
  }
  return rest == shorter ? axes : Axes();
}

}  // namespace palimpsest
