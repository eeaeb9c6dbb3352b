// SPDX-License-Identifier: Apache-2.0
// Gridding: sorts points, cuts the grid into tiles and colours, and runs the loops over points on
// threads.
#include "palimpsest/kernels/gridding/gridding.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <numeric>
#include <string>

#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/kernels/arrays/copy.hpp"
#include "palimpsest/kernels/arrays/strided_loop.hpp"
#include "palimpsest/kernels/gridding/gridding_tables.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {
namespace {

using Impl = GriddingPlan::Impl;

std::size_t at(index_t i) { return static_cast<std::size_t>(i); }

// The offsets of points. Axes are merged where one stride covers several.
PointOffsets point_offsets(std::span<const index_t> extents, std::span<const index_t> strides) {
  StridedLoop<1> loop;
  loop.set_extents(extents);
  loop.add_operand(nullptr, strides, 1);
  loop.squeeze();
  loop.merge(0, loop.rank);
  PointOffsets result;
  result.rank = std::max(loop.rank, 1);
  result.extents[0] = 1;
  result.steps[0] = 0;
  for (int i = 0; i < loop.rank; ++i) {
    result.extents[at(i)] = loop.at(i).extent;
    result.steps[at(i)] = loop.step(0, i);
  }
  return result;
}

void set_points(PointRun& run, const ConstView& locs, const ConstView& order) {
  const std::size_t rank = locs.rank() - 1;
  run.locs = locs.data;
  run.loc_offset = point_offsets(locs.extents.first(rank), locs.strides.first(rank));
  run.loc_step = locs.strides[rank];
  run.n_points = element_count(locs.extents.first(rank));
  run.order = order.data;
  run.order_step = order.strides[0];
  run.wide_order = order.dtype == DType::int64;
}

// The place of a point: its tile, and its cell in the tile.
template <class R>
class Sorter {
 public:
  Sorter(const Impl& plan, const PointRun& points) : plan_(plan), points_(points) {}

  bool is_finite(index_t k) const {
    for (int d = 0; d < plan_.spec.ndim; ++d) {
      if (!std::isfinite(coordinate(k, d))) return false;
    }
    return true;
  }
  double coordinate(index_t k, int d) const {
    return static_cast<const R*>(points_.locs)[points_.loc_offset(k) + d * points_.loc_step];
  }
  // tile * cell_count + cell
  index_t bin(index_t k) const {
    index_t tile = 0, cell = 0;
    for (int d = 0; d < plan_.spec.ndim; ++d) {
      const auto i = static_cast<std::size_t>(d);
      const double lower =
          coordinate(k, d) * plan_.spec.scale[i] + plan_.spec.shift[i] - plan_.spec.width[i] * 0.5;
      const index_t n = plan_.spec.grid[i];
      const double first = std::ceil(lower);
      const index_t start =
          plan_.spec.circular
              ? wrapped(first, n)
              : static_cast<index_t>(std::clamp(first, 0.0, static_cast<double>(n - 1)));
      const index_t t = start * plan_.tiles[i] / n;
      tile = tile * plan_.tiles[i] + t;
      cell = cell * plan_.cells[i] + (start - plan_.begin(d, t)) / plan_.cell_size[i];
    }
    return tile * plan_.cell_count() + cell;
  }

 private:
  const Impl& plan_;
  const PointRun& points_;
};

template <class R, class Index>
void sort_typed(const Impl& plan, const PointRun& points, Index* order, index_t step,
                index_t* counts, std::string_view who) {
  const Sorter<R> sorter(plan, points);
  for (index_t k = 0; k < points.n_points; ++k) {
    if (sorter.is_finite(k)) continue;
    throw ValueError("[" + std::string(who) + "] locs: point " + std::to_string(k) +
                     " is not finite: expected finite numbers");
  }
  const index_t bins = plan.tile_count() * plan.cell_count();
  std::fill_n(counts, bins + 1, 0);
  for (index_t k = 0; k < points.n_points; ++k) ++counts[sorter.bin(k) + 1];
  std::partial_sum(counts, counts + bins + 1, counts);
  const index_t n_tiles = plan.tile_count();
  for (index_t t = 0; t <= n_tiles; ++t) {
    order[t * step] = static_cast<Index>(counts[t * plan.cell_count()]);
  }
  for (index_t k = 0; k < points.n_points; ++k) {
    const index_t place = counts[sorter.bin(k)]++;
    order[(n_tiles + 1 + place) * step] = static_cast<Index>(k);
  }
}

// A task of run_interpolate or run_spread: the points of one tile for one batch element.
class Driver {
 public:
  Driver(const Impl& plan, const ConstView& grid, const ConstView& values, const ConstView& locs,
         const ConstView& order)
      : plan_(plan) {
    const auto ndim = static_cast<std::size_t>(plan.spec.ndim);
    const std::size_t n_batch_axes = grid.rank() - ndim;
    const std::size_t item = item_size(grid.dtype);
    run_.plan = &plan;
    set_points(run_, locs, order);
    run_.value_offset =
        point_offsets(values.extents.subspan(n_batch_axes), values.strides.subspan(n_batch_axes));
    for (std::size_t d = 0; d < ndim; ++d) run_.grid_step[d] = grid.strides[n_batch_axes + d];
    batch_.set_extents(grid.extents.first(n_batch_axes));
    batch_.add_operand(grid.data, grid.strides.first(n_batch_axes), item);
    batch_.add_operand(values.data, values.strides.first(n_batch_axes), item);
    n_batch_ = batch_.count();
    if (plan.fast && is_complex(grid.dtype) && grid.strides[grid.rank() - 1] == 1) {
      loops_ = vector_point_loops(grid.dtype, plan.spec.ndim, static_cast<int>(plan.spec.width[0]));
    }
    if (!loops_.interpolate) loops_ = scalar_point_loops(grid.dtype);
  }

  bool is_empty() const { return n_batch_ == 0 || run_.n_points == 0; }

  void interpolate() const {
    const index_t n = plan_.tile_count();
    parallel_ranges(n_batch_ * n, grain(n_batch_ * n), [&](index_t begin, index_t end) {
      for (index_t i = begin; i < end; ++i) run_tile(loops_.interpolate, i / n, i % n);
    });
  }

  void spread() const {
    std::array<index_t, 3> colours;
    for (std::size_t d = 0; d < 3; ++d) colours[d] = plan_.tiles[d] > 1 ? 2 : 1;
    for (index_t c = 0; c < colours[0] * colours[1] * colours[2]; ++c) {
      const std::array<index_t, 3> start{c / (colours[1] * colours[2]), c / colours[2] % colours[1],
                                         c % colours[2]};
      std::array<index_t, 3> n;
      for (std::size_t d = 0; d < 3; ++d) n[d] = plan_.tiles[d] / colours[d];
      const index_t count = n[0] * n[1] * n[2];
      parallel_ranges(n_batch_ * count, grain(n_batch_ * count), [&](index_t begin, index_t end) {
        for (index_t i = begin; i < end; ++i) {
          const index_t t = i % count;
          const std::array<index_t, 3> number{t / (n[1] * n[2]), t / n[2] % n[1], t % n[2]};
          index_t tile = 0;
          for (std::size_t d = 0; d < 3; ++d) {
            tile = tile * plan_.tiles[d] + number[d] * colours[d] + start[d];
          }
          run_tile(loops_.spread, i / count, tile);
        }
      });
    }
  }

 private:
  void run_tile(PointLoop loop, index_t batch, index_t tile) const {
    PointRun run = run_;
    // Keeps accesses within the arrays even if the order is of other locations.
    const index_t n_tiles = plan_.tile_count();
    run.first = n_tiles + 1 + std::clamp<index_t>(run.order_at(tile), 0, run.n_points);
    run.last = n_tiles + 1 + std::clamp<index_t>(run.order_at(tile + 1), 0, run.n_points);
    if (run.first >= run.last) return;
    run.grid = batch_.data[0] + batch_.offset(0, 0, batch_.rank, batch);
    run.values = batch_.data[1] + batch_.offset(1, 0, batch_.rank, batch);
    loop(run);
  }

  // The number of tasks below which the work is too small for a second thread.
  index_t grain(index_t tasks) const {
    double work = static_cast<double>(run_.n_points) * static_cast<double>(n_batch_);
    for (int d = 0; d < plan_.spec.ndim; ++d) work *= plan_.spec.width[at(d)];
    return work < static_cast<double>(kParallelGrain) ? tasks : 1;
  }

  const Impl& plan_;
  PointRun run_;
  StridedLoop<2> batch_;
  index_t n_batch_ = 1;
  PointLoops loops_;
};

void fill_zero(const MutableView& x) {
  const std::array<std::byte, 16> zero{};
  if (!is_contiguous(x.extents, x.strides)) {
    strided_fill(zero.data(), x);
    return;
  }
  parallel_ranges(byte_count(x.extents, x.dtype), index_t{1} << 18,
                  [&](index_t begin, index_t end) {
                    std::memset(static_cast<std::byte*>(x.data) + begin, 0, at(end - begin));
                  });
}

// Real data: two batch elements at a time form the real and the imaginary part of complex data.
// Weights are real, so the parts do not mix.
class PairedParts {
 public:
  PairedParts(const GriddingPlan& plan, const ConstView& grid, const ConstView& values,
              std::byte* scratch)
      : plan_(plan),
        real_(grid.dtype),
        n_batch_axes_(grid.rank() - static_cast<std::size_t>(plan.spec().ndim)),
        grid_(side(grid, scratch)),
        values_(side(values, scratch + byte_count(grid_.extents, complex_of(real_)))) {
    batch_.set_extents(grid.extents.first(n_batch_axes_));
    batch_.add_operand(grid.data, grid.strides.first(n_batch_axes_), item_size(real_));
    batch_.add_operand(values.data, values.strides.first(n_batch_axes_), item_size(real_));
  }

  void run(const ConstView& locs, const ConstView& order, bool spreads) const {
    const Side &from = spreads ? values_ : grid_, &to = spreads ? grid_ : values_;
    const int source = spreads ? 1 : 0;
    const index_t n = batch_.count();
    for (index_t b = 0; b < n; b += 2) {
      for (index_t part = 0; part < 2; ++part) {
        if (b + part < n) {
          run_copy(mine(from, source, b + part), parts(from, part));
        } else {
          const double zero = 0;
          strided_fill(&zero, parts(from, part));
        }
      }
      fill_zero(to.complex());
      const Driver driver(plan_.impl(), grid_.complex(), values_.complex(), locs, order);
      if (!driver.is_empty()) spreads ? driver.spread() : driver.interpolate();
      for (index_t part = 0; part < 2 && b + part < n; ++part) {
        run_copy(parts(to, part), mine(to, 1 - source, b + part));
      }
    }
  }

 private:
  struct Side {
    Extents extents;
    Strides own, dense,
        twice;  // strides: of the caller's array; of the complex data; of its parts
    std::byte* scratch;
    DType dtype;
    MutableView complex() const { return {scratch, dtype, extents, dense}; }
  };
  Side side(const ConstView& x, std::byte* scratch) const {
    Side s{Extents(x.extents.subspan(n_batch_axes_)),
           Strides(x.strides.subspan(n_batch_axes_)),
           {},
           {},
           scratch,
           complex_of(real_)};
    s.dense = contiguous_strides(s.extents);
    for (const index_t stride : s.dense) s.twice.push_back(2 * stride);
    return s;
  }
  MutableView parts(const Side& s, index_t part) const {
    return {s.scratch + part * static_cast<index_t>(item_size(real_)), real_, s.extents, s.twice};
  }
  MutableView mine(const Side& s, int operand, index_t b) const {
    return {batch_.data[at(operand)] + batch_.offset(operand, 0, batch_.rank, b), real_, s.extents,
            s.own};
  }

  const GriddingPlan& plan_;
  DType real_;
  std::size_t n_batch_axes_;
  Side grid_, values_;
  StridedLoop<2> batch_;
};

bool goes_in_pairs(const GriddingPlan& plan, DType dtype, index_t n_points,
                   std::span<std::byte> scratch) {
  const std::size_t bytes = gridding_scratch_bytes(plan, dtype, n_points);
  return bytes > 0 && scratch.size() >= bytes;
}

}  // namespace

std::size_t gridding_scratch_bytes(const GriddingPlan& plan, DType dtype, index_t n_points) {
  const GriddingSpec& spec = plan.spec();
  if (is_complex(dtype) || !plan.impl().fast) return 0;
  const auto loops =
      vector_point_loops(complex_of(dtype), spec.ndim, static_cast<int>(spec.width[0]));
  if (loops.interpolate == nullptr) return 0;
  index_t elements = 1;
  for (int d = 0; d < spec.ndim; ++d) elements *= spec.grid[at(d)];
  return at(elements + n_points) * item_size(complex_of(dtype));
}

void sort_points(const GriddingPlan& plan, const ConstView& locs, const MutableView& order,
                 std::byte* scratch, std::string_view who) {
  PointRun points;
  set_points(points, locs, order);
  auto* counts = reinterpret_cast<index_t*>(scratch);
  const auto sort = [&](auto real, auto index) {
    using R = typename decltype(real)::type;
    using I = typename decltype(index)::type;
    sort_typed<R, I>(plan.impl(), points, static_cast<I*>(order.data), order.strides[0], counts,
                     who);
  };
  const auto sort_real = [&](auto real) {
    order.dtype == DType::int64 ? sort(real, TypeTag<std::int64_t>{})
                                : sort(real, TypeTag<std::int32_t>{});
  };
  locs.dtype == DType::float64 ? sort_real(TypeTag<double>{}) : sort_real(TypeTag<float>{});
}

void run_interpolate(const GriddingPlan& plan, const ConstView& x, const ConstView& locs,
                     const ConstView& order, const MutableView& y, std::span<std::byte> scratch) {
  assert(x.dtype == y.dtype && locs.dtype == real_of(x.dtype));
  if (goes_in_pairs(plan, x.dtype, element_count(locs.extents.first(locs.rank() - 1)), scratch)) {
    PairedParts(plan, x, y, scratch.data()).run(locs, order, false);
    return;
  }
  const Driver driver(plan.impl(), x, y, locs, order);
  if (!driver.is_empty()) driver.interpolate();
}

void run_spread(const GriddingPlan& plan, const ConstView& y, const ConstView& locs,
                const ConstView& order, const MutableView& x, std::span<std::byte> scratch) {
  assert(x.dtype == y.dtype && locs.dtype == real_of(x.dtype));
  if (goes_in_pairs(plan, x.dtype, element_count(locs.extents.first(locs.rank() - 1)), scratch)) {
    PairedParts(plan, x, y, scratch.data()).run(locs, order, true);
    return;
  }
  fill_zero(x);
  const Driver driver(plan.impl(), x, y, locs, order);
  if (!driver.is_empty()) driver.spread();
}

}  // namespace palimpsest
