// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/patterns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/random.hpp"

namespace palimpsest {
namespace {

// The wanted distance between neighbours, in units that bisection finds, is 1 at the centre and
// 1 + kSpread at the end of an axis.
constexpr double kSpread = 1;
constexpr int kBisections = 14;

struct Grid {
  index_t ny = 0, nx = 0, center_y = 0, center_x = 0;

  index_t points() const { return ny * nx; }
  bool in_center(index_t y, index_t x) const {
    const index_t dy = y - (ny / 2 - center_y / 2), dx = x - (nx / 2 - center_x / 2);
    return dy >= 0 && dy < center_y && dx >= 0 && dx < center_x;
  }
  /// Wanted distance to neighbours, up to a factor.
  double spacing(index_t y, index_t x) const {
    const double v = 2 * static_cast<double>(y - ny / 2) / static_cast<double>(ny);
    const double u = 2 * static_cast<double>(x - nx / 2) / static_cast<double>(nx);
    return 1 + kSpread * std::sqrt(u * u + v * v);
  }
};

using Mask = std::vector<char>;

Mask center_mask(const Grid& grid) {
  Mask mask(static_cast<std::size_t>(grid.points()), 0);
  for (index_t y = 0; y < grid.ny; ++y) {
    for (index_t x = 0; x < grid.nx; ++x) {
      mask[static_cast<std::size_t>(y * grid.nx + x)] = grid.in_center(y, x);
    }
  }
  return mask;
}

// The points outside the centre, shuffled.
std::vector<index_t> random_order(const Grid& grid, std::uint64_t seed) {
  std::vector<index_t> order;
  for (index_t y = 0; y < grid.ny; ++y) {
    for (index_t x = 0; x < grid.nx; ++x) {
      if (!grid.in_center(y, x)) order.push_back(y * grid.nx + x);
    }
  }
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random_bits({seed, 1}, i) % i]);
  }
  return order;
}

// Darts thrown in a given order: a point is taken if no taken one blocks it.
class Darts {
 public:
  Darts(const Grid& grid, std::uint64_t seed) : grid_(grid), order_(random_order(grid, seed)) {
    for (index_t y = 0; y < grid.ny; ++y) {
      for (index_t x = 0; x < grid.nx; ++x) spacings_.push_back(grid.spacing(y, x));
    }
  }

  /// Adds points at distances of at least `unit` spacings to the mask, up to `wanted` samples in
  /// all.
  index_t add(double unit, index_t wanted, Mask& mask) {
    blocked_.assign(mask.size(), 0);
    index_t count = 0;
    for (index_t p = 0; p < grid_.points(); ++p) {
      if (!mask[static_cast<std::size_t>(p)]) continue;
      ++count;
      if (!grid_.in_center(p / grid_.nx, p % grid_.nx)) block_around(p, unit);
    }
    for (std::size_t i = 0; i < order_.size() && count < wanted; ++i) {
      const auto p = static_cast<std::size_t>(order_[i]);
      if (mask[p] || blocked_[p]) continue;
      mask[p] = 1;
      ++count;
      block_around(order_[i], unit);
    }
    return count;
  }

 private:
  // Two points are too near when their distance is below the smaller of their spacings.
  void block_around(index_t p, double unit) {
    const double own = unit * spacings_[static_cast<std::size_t>(p)];
    const auto reach = static_cast<index_t>(std::ceil(own));
    const index_t y0 = p / grid_.nx, x0 = p % grid_.nx;
    for (index_t y = std::max<index_t>(0, y0 - reach); y <= std::min(grid_.ny - 1, y0 + reach);
         ++y) {
      for (index_t x = std::max<index_t>(0, x0 - reach); x <= std::min(grid_.nx - 1, x0 + reach);
           ++x) {
        const auto q = static_cast<std::size_t>(y * grid_.nx + x);
        const double least = std::min(own, unit * spacings_[q]);
        const auto distance2 = static_cast<double>((y - y0) * (y - y0) + (x - x0) * (x - x0));
        if (distance2 < least * least) blocked_[q] = 1;
      }
    }
  }

  Grid grid_;
  std::vector<index_t> order_;
  std::vector<double> spacings_;
  Mask blocked_;
};

// The densest throw with at most `wanted` samples, then filled up at ever smaller distances.
Mask poisson(const Grid& grid, std::uint64_t seed, index_t wanted) {
  const Mask start = center_mask(grid);
  Darts darts(grid, seed);
  Mask best = start;
  double low = 0,
         high = std::sqrt(static_cast<double>(grid.points()) / static_cast<double>(wanted));
  for (int i = 0; i < kBisections; ++i) {
    const double unit = (low + high) / 2;
    Mask mask = start;
    if (darts.add(unit, grid.points(), mask) > wanted) {
      low = unit;
    } else {
      high = unit;
      best = std::move(mask);
    }
  }
  for (double unit = high; darts.add(unit, wanted, best) < wanted;) {
    unit = unit > 1e-3 ? 0.9 * unit : 0;
  }
  return best;
}

// Samples drawn without replacement with weights 1 / spacing^2: those with the smallest
// exponentially distributed arrival times.
Mask random(const Grid& grid, std::uint64_t seed, index_t wanted) {
  Mask mask = center_mask(grid);
  std::vector<std::pair<double, index_t>> arrival;
  for (index_t p = 0; p < grid.points(); ++p) {
    if (mask[static_cast<std::size_t>(p)]) continue;
    const std::uint64_t bits = random_bits({seed, 2}, static_cast<std::uint64_t>(p)) >> 11;
    const double uniform = (static_cast<double>(bits) + 0.5) * 0x1p-53;
    const double spacing = grid.spacing(p / grid.nx, p % grid.nx);
    arrival.emplace_back(-std::log(uniform) * spacing * spacing, p);
  }
  const index_t more = wanted - grid.center_y * grid.center_x;
  std::nth_element(arrival.begin(), arrival.begin() + more, arrival.end());
  for (index_t i = 0; i < more; ++i) {
    mask[static_cast<std::size_t>(arrival[static_cast<std::size_t>(i)].second)] = 1;
  }
  return mask;
}

// Every n-th point of a row, moved from row to row by the shift that keeps neighbours farthest.
Mask uniform(const Grid& grid, double acceleration) {
  const auto n = static_cast<index_t>(std::llround(acceleration));
  if (static_cast<double>(n) != acceleration) {
    throw ValueError(fmt::format(
        "[uniform pattern] a lattice needs an integer: got acceleration {}, expected for instance "
        "{}. Try poisson",
        acceleration, n));
  }
  index_t shift = 0, best = 0;
  for (index_t s = 0; s < n; ++s) {
    index_t nearest = n * n;
    for (index_t dy = 1; dy < n; ++dy) {
      const index_t dx = std::min((s * dy) % n, n - (s * dy) % n);
      nearest = std::min(nearest, dy * dy + dx * dx);
    }
    if (nearest > best) {
      best = nearest;
      shift = s;
    }
  }
  Mask mask = center_mask(grid);
  for (index_t y = 0; y < grid.ny; ++y) {
    for (index_t x = 0; x < grid.nx; ++x) {
      if ((x + shift * y) % n == 0) mask[static_cast<std::size_t>(y * grid.nx + x)] = 1;
    }
  }
  return mask;
}

index_t wanted_samples(const Grid& grid, double acceleration) {
  if (!(acceleration >= 1)) {
    throw ValueError(fmt::format(
        "[sampling pattern] acceleration: got {}, expected a number of at least 1", acceleration));
  }
  const index_t wanted = std::llround(static_cast<double>(grid.points()) / acceleration);
  const index_t center = grid.center_y * grid.center_x;
  if (wanted < center) {
    throw ValueError(
        fmt::format("[sampling pattern] acceleration {} leaves {} samples of {} x {}, but the "
                    "fully sampled centre alone has "
                    "{}. Try a lower acceleration or a smaller centre",
                    acceleration, wanted, grid.ny, grid.nx, center));
  }
  return wanted;
}

}  // namespace

PatternKind parse_pattern(std::string_view name) {
  if (name == "poisson") return PatternKind::poisson;
  if (name == "random") return PatternKind::random;
  if (name == "uniform") return PatternKind::uniform;
  if (name == "full") return PatternKind::full;
  throw ValueError(fmt::format(
      "[sampling pattern] no such pattern: got '{}', expected poisson, random, uniform or full",
      name));
}

Tensor sampling_pattern(index_t ny, index_t nx, const PatternOptions& options) {
  if (ny < 1 || nx < 1 || options.center < 0) {
    throw ValueError(
        fmt::format("[sampling pattern] got {} x {} with a centre of {}, expected "
                    "positive sizes",
                    ny, nx, options.center));
  }
  const Grid grid{ny, nx, std::min(options.center, ny), std::min(options.center, nx)};
  Mask mask;
  switch (options.kind) {
    case PatternKind::poisson:
      mask = poisson(grid, options.seed, wanted_samples(grid, options.acceleration));
      break;
    case PatternKind::random:
      mask = random(grid, options.seed, wanted_samples(grid, options.acceleration));
      break;
    case PatternKind::uniform:
      mask = uniform(grid, options.acceleration);
      break;
    case PatternKind::full:
      mask.assign(static_cast<std::size_t>(grid.points()), 1);
      break;
  }
  Tensor result = Tensor::empty({ny, nx}, DType::bool_);
  std::transform(mask.begin(), mask.end(), result.mutable_data<bool>(),
                 [](char taken) { return taken != 0; });
  return result;
}

index_t count_samples(const Tensor& mask) {
  const Tensor dense = mask.contiguous();
  const bool* values = dense.data<bool>();
  return std::count(values, values + dense.numel(), true);
}

}  // namespace palimpsest
