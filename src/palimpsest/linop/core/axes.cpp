// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/core/axes.hpp"

#include "palimpsest/named/sizes.hpp"

namespace palimpsest {

std::optional<std::size_t> find_axis(const Dims& dims, const ND& d, std::span<const index_t> axes) {
  if (d.is_ellipsis() || !dims.contains(d)) return std::nullopt;
  const index_t rank = static_cast<index_t>(dims.size());
  const index_t axis = axis_of(dims, d);
  const auto same = [&](index_t a, index_t b) {
    if ((a < 0) == (b < 0) || dims.has_ellipsis()) return a == b;
    return (a < 0 ? a + rank : a) == (b < 0 ? b + rank : b);
  };
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (same(axis, axes[i])) return i;
  }
  return std::nullopt;
}

Axes last_axes(std::size_t n) {
  Axes result;
  for (std::size_t i = 0; i < n; ++i) {
    result.push_back(static_cast<index_t>(i) - static_cast<index_t>(n));
  }
  return result;
}

Axes from_front(std::span<const index_t> axes, std::size_t rank) {
  Axes result;
  const auto n = static_cast<index_t>(rank);
  for (const index_t axis : axes) {
    result.push_back(axis < 0 ? axis + n : axis);
    if (result.back() >= 0 && result.back() < n) continue;
    throw ShapeError("[axes] axis " + std::to_string(axis) + " is out of range: got " +
                     std::to_string(rank) + " axes");
  }
  return result;
}

Dims default_names(std::size_t n, bool kspace) {
  if (n == 0) return {};
  if (n <= 3) return spatial_dims(static_cast<int>(n), kspace);
  return numbered(kspace ? "K" : "N", static_cast<int>(n));
}

Dims fresh_names(const Dims& dims, const Dims& avoid) {
  std::vector<NamedDimension> taken(avoid.begin(), avoid.end());
  taken.insert(taken.end(), dims.begin(), dims.end());
  Dims result;
  for (const ND& d : dims) {
    result.push_back(d.is_wildcard() ? d : (d + 1).fresh(taken));
    taken.push_back(result.back());
  }
  return result;
}

}  // namespace palimpsest
