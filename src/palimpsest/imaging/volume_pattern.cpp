// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/random.hpp"
#include "palimpsest/imaging/patterns.hpp"

namespace palimpsest {
namespace {

void check(const Extents& shape, const PatternOptions& options) {
  const bool is_good = shape.size() == 3 && shape[0] > 0 && shape[1] > 0 && shape[2] > 0;
  if (!is_good) {
    throw ValueError(
        fmt::format("[sampling pattern] the volume is empty: got {}, expected {{nz, "
                    "ny, nx}} of at least 1",
                    to_string(shape)));
  }
  if (options.kind != PatternKind::random && options.kind != PatternKind::full) {
    throw ValueError("[sampling pattern] of a volume is random or full. Try random");
  }
  if (!(options.acceleration >= 1) || !std::isfinite(options.acceleration) ||
      !(options.spread >= 0) || options.center < 0) {
    throw ValueError(fmt::format(
        "[sampling pattern] got acceleration {}, spread {} and centre {}, expected at least 1, 0 "
        "and 0",
        options.acceleration, options.spread, options.center));
  }
}

}  // namespace

Tensor volume_pattern(const Extents& shape, const PatternOptions& options) {
  check(shape, options);
  if (options.kind == PatternKind::full) return Tensor::full<bool>(shape, true);
  const index_t points = element_count(shape);
  Tensor mask = Tensor::full<bool>(shape, false);
  bool* taken = mask.mutable_data<bool>();
  // The smallest of random numbers that are exponential with a rate of the density: those points.
  std::vector<std::pair<double, index_t>> order;
  index_t in_center = 0;
  for (index_t p = 0; p < points; ++p) {
    index_t rest = p;
    double radius2 = 0;
    bool is_center = true;
    for (std::size_t axis = 3; axis-- > 0;) {
      const index_t n = shape[axis], j = rest % n - n / 2, c = std::min(options.center, n);
      rest /= n;
      const double u = 2 * static_cast<double>(j) / static_cast<double>(n);
      radius2 += u * u;
      is_center = is_center && j >= -(c / 2) && j < c - c / 2;
    }
    if (is_center) {
      taken[p] = true;
      ++in_center;
      continue;
    }
    if (options.ellipse && radius2 > 1) continue;
    const double spacing = 1 + options.spread * std::sqrt(radius2);
    const std::uint64_t bits = random_bits({options.seed, 3}, static_cast<std::uint64_t>(p)) >> 11;
    const double uniform = (static_cast<double>(bits) + 0.5) * 0x1p-53;
    order.emplace_back(-std::log(uniform) * spacing * spacing, p);
  }
  const auto wanted =
      static_cast<index_t>(std::llround(static_cast<double>(points) / options.acceleration));
  if (wanted < in_center) {
    throw ValueError(fmt::format(
        "[sampling pattern] the centre alone has {} samples, more than the {} of acceleration {}",
        in_center, wanted, options.acceleration));
  }
  const auto n = std::min<index_t>(wanted - in_center, std::ssize(order));
  std::nth_element(order.begin(), order.begin() + n, order.end());
  for (index_t i = 0; i < n; ++i) taken[order[static_cast<std::size_t>(i)].second] = true;
  return mask;
}

}  // namespace palimpsest
