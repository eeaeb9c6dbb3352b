// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/patterns.hpp"

#include "palimpsest/base/random.hpp"
#include "palimpsest/imaging/prelude.hpp"

namespace palimpsest {
namespace {

constexpr int kBisections = 14;

struct SampleGrid {
  index_t ny = 0, nx = 0, center_y = 0, center_x = 0;
  double spread = 1;
  bool is_ellipse = false;

  index_t points() const { return ny * nx; }
  bool in_center(index_t y, index_t x) const {
    const index_t dy = y - (ny / 2 - center_y / 2), dx = x - (nx / 2 - center_x / 2);
    return dy >= 0 && dy < center_y && dx >= 0 && dx < center_x;
  }
  double radius(index_t y, index_t x) const {
    const double v = 2 * static_cast<double>(y - ny / 2) / static_cast<double>(ny);
    const double u = 2 * static_cast<double>(x - nx / 2) / static_cast<double>(nx);
    return std::sqrt(u * u + v * v);
  }
  bool may_have(index_t y, index_t x) const { return !is_ellipse || radius(y, x) <= 1; }
  /// Wanted distance to neighbours, up to a factor.
  double spacing(index_t y, index_t x) const { return 1 + spread * radius(y, x); }
};

using Mask = std::vector<char>;

Mask center_mask(const SampleGrid& grid) {
  Mask mask(static_cast<std::size_t>(grid.points()), 0);
  for (index_t y = 0; y < grid.ny; ++y) {
    for (index_t x = 0; x < grid.nx; ++x) {
      mask[static_cast<std::size_t>(y * grid.nx + x)] = grid.in_center(y, x);
    }
  }
  return mask;
}

// The points outside the centre, shuffled.
std::vector<index_t> random_order(const SampleGrid& grid, std::uint64_t seed) {
  std::vector<index_t> order;
  for (index_t y = 0; y < grid.ny; ++y) {
    for (index_t x = 0; x < grid.nx; ++x) {
      if (!grid.in_center(y, x) && grid.may_have(y, x)) order.push_back(y * grid.nx + x);
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
  Darts(const SampleGrid& grid, std::uint64_t seed)
      : grid_(grid), order_(random_order(grid, seed)) {
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

  SampleGrid grid_;
  std::vector<index_t> order_;
  std::vector<double> spacings_;
  Mask blocked_;
};

// The densest throw with at most `wanted` samples, then filled up at ever smaller distances.
Mask poisson(const SampleGrid& grid, std::uint64_t seed, index_t wanted) {
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
Mask random(const SampleGrid& grid, std::uint64_t seed, index_t wanted) {
  Mask mask = center_mask(grid);
  std::vector<std::pair<double, index_t>> arrival;
  for (index_t p = 0; p < grid.points(); ++p) {
    if (mask[static_cast<std::size_t>(p)] || !grid.may_have(p / grid.nx, p % grid.nx)) continue;
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
Mask uniform(const SampleGrid& grid, double acceleration) {
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
      if ((x + shift * y) % n == 0 && grid.may_have(y, x))
        mask[static_cast<std::size_t>(y * grid.nx + x)] = 1;
    }
  }
  return mask;
}

index_t wanted_samples(const SampleGrid& grid, double acceleration) {
  if (!(acceleration >= 1)) {
    throw ValueError(fmt::format(
        "[sampling pattern] acceleration: got {}, expected a number of at least 1", acceleration));
  }
  const index_t wanted = std::llround(static_cast<double>(grid.points()) / acceleration);
  const index_t center = grid.center_y * grid.center_x;
  index_t possible = 0;
  for (index_t p = 0; p < grid.points(); ++p) {
    const index_t y = p / grid.nx, x = p % grid.nx;
    possible += grid.in_center(y, x) || grid.may_have(y, x) ? 1 : 0;
  }
  if (wanted > possible) {
    throw ValueError(fmt::format(
        "[sampling pattern] acceleration {} wants {} samples, but the ellipse has {} points. Try a "
        "higher acceleration",
        acceleration, wanted, possible));
  }
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
  if (!(options.spread >= 0) || !std::isfinite(options.spread)) {
    throw ValueError(fmt::format(
        "[sampling pattern] spread: got {}, expected a number of at least 0", options.spread));
  }
  const SampleGrid grid{ny,
                        nx,
                        std::min(options.center, ny),
                        std::min(options.center, nx),
                        options.spread,
                        options.ellipse};
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
      for (index_t p = 0; p < grid.points(); ++p) {
        mask.push_back(grid.may_have(p / nx, p % nx) ? 1 : 0);
      }
      break;
  }
  Tensor result = Tensor::empty({ny, nx}, DType::bool_);
  std::transform(mask.begin(), mask.end(), result.mutable_data<bool>(),
                 [](char taken) { return taken != 0; });
  return result;
}

Tensor caipi_pattern(index_t ny, index_t nz, index_t dy, index_t dz, index_t shift,
                     index_t center) {
  if (std::min({ny, nz, dy, dz}) < 1 || shift < 0 || center < 0) {
    throw ValueError(
        fmt::format("[caipi_pattern] got {} x {} points, steps {} and {}, shift {}, centre {}, "
                    "expected positive "
                    "sizes and steps, shift and centre of at least 0",
                    ny, nz, dy, dz, shift, center));
  }
  const SampleGrid grid{ny, nz, std::min(center, ny), std::min(center, nz)};
  Tensor result = Tensor::empty({ny, nz}, DType::bool_);
  auto* out = result.mutable_data<bool>();
  for (index_t y = 0; y < ny; ++y) {
    for (index_t z = 0; z < nz; ++z) {
      const index_t row = y - ny / 2, along = z - nz / 2;
      const bool is_row = row % dy == 0;
      *out++ = grid.in_center(y, z) || (is_row && (along - row / dy * shift) % dz == 0);
    }
  }
  return result;
}

Tensor partial_pattern(const Extents& shape, double fraction, index_t axis) {
  if (!(fraction > 0.5 && fraction <= 1)) {
    throw ValueError(
        fmt::format("[partial_pattern] fraction: got {}, expected a number in (0.5, 1]", fraction));
  }
  if (axis < 0 || axis >= std::ssize(shape)) {
    throw ShapeError(
        fmt::format("[partial_pattern] axis: got {} of the shape {}", axis, to_string(shape)));
  }
  Tensor result = Tensor::zeros(shape, DType::bool_);
  const auto n = static_cast<double>(shape[static_cast<std::size_t>(axis)]);
  result.narrow(axis, 0, std::llround(fraction * n)).fill<bool>(true);
  return result;
}

Tensor line_patterns(index_t n, const LineOptions& o) {
  if (n < 1 || o.lines < 1 || o.lines > n || o.frames < 1 || o.center < 0) {
    throw ValueError(
        fmt::format("[line_patterns] got {} of {} lines, {} frames and a centre of {}, expected 1 "
                    "to {} lines and "
                    "at least one frame",
                    o.lines, n, o.frames, o.center, n));
  }
  Tensor result = Tensor::zeros({o.frames, n}, DType::bool_);
  auto* out = result.mutable_data<bool>();
  const double step = static_cast<double>(n) / static_cast<double>(o.lines);
  const index_t center = std::min(o.center, n);
  for (index_t t = 0; t < o.frames; ++t) {
    const double part =
        o.golden ? static_cast<double>(t) * (std::numbers::phi - 1) : static_cast<double>(t) / step;
    const double offset = (part - std::floor(part)) * step + static_cast<double>(n / 2);
    for (index_t k = 0; k < o.lines; ++k) {
      // Less than half a line is added against rounding just below a whole number.
      const double at = offset + static_cast<double>(k) * step + 1e-9;
      out[t * n + static_cast<index_t>(at) % n] = true;
    }
    for (index_t k = 0; k < center; ++k) out[t * n + n / 2 - center / 2 + k] = true;
  }
  return result;
}

Tensor interleaved(const Tensor& pattern, index_t frames, index_t center) {
  if (pattern.rank() != 2 || frames < 1 || center < 0) {
    throw ShapeError(
        fmt::format("[interleaved] got a pattern {} and {} frames, expected (ny, nx) and "
                    "at least one",
                    to_string(pattern.shape()), frames));
  }
  const Tensor dense = pattern.contiguous();
  const bool* taken = dense.data<bool>();
  const index_t ny = dense.shape(0), nx = dense.shape(1);
  const SampleGrid grid{ny, nx, std::min(center, ny), std::min(center, nx)};
  Tensor result = Tensor::zeros({frames, ny, nx}, DType::bool_);
  auto* out = result.mutable_data<bool>();
  index_t next = 0;
  for (index_t p = 0; p < grid.points(); ++p) {
    if (!taken[p]) continue;
    if (grid.in_center(p / nx, p % nx)) {
      for (index_t t = 0; t < frames; ++t) out[t * grid.points() + p] = true;
    } else {
      out[next++ % frames * grid.points() + p] = true;
    }
  }
  return result;
}

index_t count_samples(const Tensor& mask) {
  const Tensor dense = mask.contiguous();
  const bool* values = dense.data<bool>();
  return std::count(values, values + dense.numel(), true);
}

// -- volumes -----------------------------------------------------------------------------------
namespace {

void check_volume(const Extents& shape, const PatternOptions& options) {
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
  check_volume(shape, options);
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
