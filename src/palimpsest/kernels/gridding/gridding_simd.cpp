// SPDX-License-Identifier: Apache-2.0
// Loops over points with kernels of a whole width that is known at compile time, for complex grids.
// This file is compiled once per instruction set; the best one is chosen when the program runs.
//
// A row of the grid is read and written in whole vectors of interleaved real and imaginary parts.
// Lanes beyond the width hold neighbours of the row: these never enter a result, and are written
// back unchanged. Rows at or across the end of the grid are processed in two pieces, number by
// number. Two kinds of points go to the scalar loop, one by one: those that lie exactly between
// elements, where both ends of the kernel count, and those whose position is not finite.
#include <algorithm>

#include "palimpsest/copy/loop_targets.hpp"
#include "palimpsest/kernels/gridding/gridding_tables.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/gridding/gridding_simd.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_LOOPS_FOR
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR

namespace hn = hwy::HWY_NAMESPACE;

constexpr index_t kAhead = 8;  // prefetch distance in points

// The sums of the even lanes and of the odd lanes.
template <class D, class R = hn::TFromD<D>>
HWY_INLINE std::complex<R> sum_pairs(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D{}) > 2) {
    const hn::Half<D> half;
    return sum_pairs(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    HWY_ALIGN R lanes[hn::MaxLanes(D{})];
    hn::Store(v, d, lanes);
    return {lanes[0], lanes[1]};
  }
}

// A point whose rows of `width` elements cross the end of the grid, or end too close to it for
// whole vectors.
template <class R>
struct EdgePoint {
  R* grid;
  int ndim, width;
  index_t start, size;  // along a row
  const R* inner;       // weights along a row, each twice; padded to whole vectors
  const R* outer[2];    // weights along the other axes, and the offsets of their elements
  const index_t* offset[2];
};

// Calls f(numbers of the grid, weights along the row, count, weight of the row) for both pieces of
// all rows.
template <class R, class F>
HWY_INLINE void for_pieces(const EdgePoint<R>& p, const F& f) {
  const index_t first = std::min<index_t>(p.width, p.size - p.start);
  const int planes = p.ndim > 2 ? p.width : 1, rows = p.ndim > 1 ? p.width : 1;
  for (int a = 0; a < planes; ++a) {
    const index_t plane = p.ndim > 2 ? p.offset[0][a] : 0;
    const R plane_weight = p.ndim > 2 ? p.outer[0][a] : R{1};
    const int axis = p.ndim > 2 ? 1 : 0;
    for (int b = 0; b < rows; ++b) {
      R* const row = p.grid + 2 * (plane + (p.ndim > 1 ? p.offset[axis][b] : 0));
      const R weight = p.ndim > 1 ? plane_weight * p.outer[axis][b] : plane_weight;
      f(row + 2 * p.start, p.inner, 2 * first, weight);
      f(row, p.inner + 2 * first, 2 * (p.width - first), weight);
    }
  }
}

template <class R>
HWY_NOINLINE std::complex<R> interpolate_across(const EdgePoint<R>& p) {
  const hn::ScalableTag<R> d;
  const auto lanes = static_cast<index_t>(hn::Lanes(d));
  auto total = hn::Zero(d);
  for_pieces(p, [&](const R* from, const R* inner, index_t count, R weight) HWY_ATTR {
    for (index_t i = 0; i < count; i += lanes) {
      const auto mask = hn::FirstN(d, static_cast<std::size_t>(std::min(lanes, count - i)));
      const auto weights = hn::Mul(hn::LoadU(d, inner + i), hn::Set(d, weight));
      total = hn::MulAdd(hn::MaskedLoad(mask, d, from + i), weights, total);
    }
  });
  return sum_pairs(d, total);
}

template <class R>
HWY_NOINLINE void spread_across(const EdgePoint<R>& p, std::complex<R> value) {
  const hn::ScalableTag<R> d;
  const auto lanes = static_cast<index_t>(hn::Lanes(d));
  const auto both = hn::OddEven(hn::Set(d, value.imag()), hn::Set(d, value.real()));
  for_pieces(p, [&](R* to, const R* inner, index_t count, R weight) HWY_ATTR {
    const auto weighted = hn::Mul(both, hn::Set(d, weight));
    for (index_t i = 0; i < count; i += lanes) {
      const auto mask = hn::FirstN(d, static_cast<std::size_t>(std::min(lanes, count - i)));
      const auto old = hn::MaskedLoad(mask, d, to + i);
      hn::BlendedStore(hn::MulAdd(hn::LoadU(d, inner + i), weighted, old), mask, d, to + i);
    }
  });
}

template <class R, int D, int W>
class FastPoint {
 public:
  using Tag = hn::ScalableTag<R>;
  using Vec = hn::Vec<Tag>;
  static constexpr int N = static_cast<int>(hn::MaxLanes(Tag{}));
  static constexpr int V = (2 * W + N - 1) / N;      // vectors per row
  static constexpr int kRest = 2 * W - (V - 1) * N;  // lanes of the last vector
  static constexpr int kOuter = (W + N - 1) / N;     // vectors of outer weights
  static constexpr DType kDType = dtype_of<std::complex<R>>;

  HWY_INLINE explicit FastPoint(const PointRun& run) : run_(run), plan_(*run.plan) {
    for (int d = 0; d < D; ++d) {
      size_[d] = plan_.spec.grid[static_cast<std::size_t>(d)];
      step_[d] = run.grid_step[static_cast<std::size_t>(d)];
    }
  }

  // Computes the position and the weights of a point; false: the scalar loop must handle it.
  HWY_INLINE bool place(index_t k) {
    const R* loc = static_cast<const R*>(run_.locs) + run_.loc_offset(k);
    double z[D];
    for (int d = 0; d < D; ++d) {
      const auto i = static_cast<std::size_t>(d);
      const double lower =
          loc[d * run_.loc_step] * plan_.spec.scale[i] + plan_.spec.shift[i] - W * 0.5;
      const double first = std::ceil(lower);
      const double t = first - lower;
      if (!(t > 0 && t < 1)) return false;
      start_[d] = wrapped(first, size_[d]);
      z[d] = 2 * t - 1;
    }
    is_at_edge_ = start_[D - 1] + V * N / 2 > size_[D - 1];
    if (is_at_edge_ && size_[D - 1] < W) return false;
    inner_weights(static_cast<R>(z[D - 1]));
    for (int d = 0; d + 1 < D; ++d) {
      outer_weights(d, static_cast<R>(z[d]));
      offsets(d);
    }
    return true;
  }

  HWY_INLINE std::complex<R> interpolate() const {
    if (HWY_UNLIKELY(is_at_edge_)) return interpolate_across(edge());
    const Tag d;
    Vec sum[V];
    for (int v = 0; v < V; ++v) sum[v] = hn::Zero(d);
    if constexpr (D == 1) {
      add_row(row(0), hn::Set(d, R{1}), sum);
    } else if constexpr (D == 2) {
      add_plane(0, 0, sum);
    } else {
      for (int a = 0; a < W; ++a) {
        Vec plane[V];
        for (int v = 0; v < V; ++v) plane[v] = hn::Zero(d);
        add_plane(1, offset_[0][a], plane);
        const Vec weight = hn::Set(d, outer_[0][a]);
        for (int v = 0; v < V; ++v) sum[v] = hn::MulAdd(plane[v], weight, sum[v]);
      }
    }
    Vec total = hn::Zero(d);
    for (int v = 0; v < V; ++v) total = hn::MulAdd(within_width(v, sum[v]), inner_[v], total);
    return sum_pairs(d, total);
  }

  HWY_INLINE void spread(std::complex<R> value) const {
    if (HWY_UNLIKELY(is_at_edge_)) return spread_across(edge(), value);
    const Tag d;
    const Vec both = hn::OddEven(hn::Set(d, value.imag()), hn::Set(d, value.real()));
    Vec weighted[V];
    for (int v = 0; v < V; ++v) weighted[v] = within_width(v, hn::Mul(both, inner_[v]));
    if constexpr (D == 1) {
      spread_row(row(0), hn::Set(d, R{1}), weighted);
    } else if constexpr (D == 2) {
      spread_plane(0, 0, weighted);
    } else {
      for (int a = 0; a < W; ++a) {
        const Vec weight = hn::Set(d, outer_[0][a]);
        Vec plane[V];
        for (int v = 0; v < V; ++v) plane[v] = hn::Mul(weighted[v], weight);
        spread_plane(1, offset_[0][a], plane);
      }
    }
  }

 private:
  const TapPolynomials<R>& polynomials() const {
    if constexpr (sizeof(R) == sizeof(float)) {
      return plan_.f32;
    } else {
      return plan_.f64;
    }
  }

  HWY_NOINLINE EdgePoint<R> edge() const {
    const Tag d;
    for (int v = 0; v < V; ++v) hn::Store(inner_[v], d, edge_inner_ + v * N);
    return {static_cast<R*>(run_.grid),
            D,
            W,
            start_[D - 1],
            size_[D - 1],
            edge_inner_,
            {outer_[0], outer_[1]},
            {offset_[0], offset_[1]}};
  }

  HWY_INLINE void inner_weights(R z) {
    const Tag d;
    const TapPolynomials<R>& p = polynomials();
    const Vec zz = hn::Set(d, z);
    for (int v = 0; v < V; ++v) inner_[v] = hn::Load(d, p.inner[p.degree] + v * N);
    for (int q = p.degree - 1; q >= 0; --q) {
      for (int v = 0; v < V; ++v) {
        inner_[v] = hn::MulAdd(inner_[v], zz, hn::Load(d, p.inner[q] + v * N));
      }
    }
  }

  HWY_INLINE void outer_weights(int axis, R z) {
    const Tag d;
    const TapPolynomials<R>& p = polynomials();
    const Vec zz = hn::Set(d, z);
    Vec w[kOuter];
    for (int v = 0; v < kOuter; ++v) w[v] = hn::Load(d, p.outer[axis][p.degree] + v * N);
    for (int q = p.degree - 1; q >= 0; --q) {
      for (int v = 0; v < kOuter; ++v) {
        w[v] = hn::MulAdd(w[v], zz, hn::Load(d, p.outer[axis][q] + v * N));
      }
    }
    for (int v = 0; v < kOuter; ++v) hn::Store(w[v], d, outer_[axis] + v * N);
  }

  HWY_INLINE void offsets(int axis) {
    const index_t n = size_[axis], step = step_[axis];
    index_t i = start_[axis];
    if (i + W <= n) {
      for (int j = 0; j < W; ++j) offset_[axis][j] = (i + j) * step;
      return;
    }
    for (int j = 0; j < W; ++j) {
      offset_[axis][j] = i * step;
      if (++i == n) i = 0;
    }
  }

  HWY_INLINE Vec within_width(int v, Vec values) const {
    if (kRest == N || v + 1 < V) return values;
    return hn::IfThenElseZero(hn::FirstN(Tag{}, kRest), values);
  }

  HWY_INLINE R* row(index_t offset) const {
    return static_cast<R*>(run_.grid) + 2 * (offset + start_[D - 1]);
  }

  HWY_INLINE void add_row(const R* from, Vec weight, Vec* sum) const {
    const Tag d;
    for (int v = 0; v < V; ++v) sum[v] = hn::MulAdd(hn::LoadU(d, from + v * N), weight, sum[v]);
  }
  HWY_INLINE void add_plane(int axis, index_t offset, Vec* sum) const {
    for (int b = 0; b < W; ++b) {
      add_row(row(offset + offset_[axis][b]), hn::Set(Tag{}, outer_[axis][b]), sum);
    }
  }

  HWY_INLINE void spread_row(R* to, Vec weight, const Vec* values) const {
    const Tag d;
    for (int v = 0; v < V; ++v) {
      hn::StoreU(hn::MulAdd(values[v], weight, hn::LoadU(d, to + v * N)), d, to + v * N);
    }
  }
  HWY_INLINE void spread_plane(int axis, index_t offset, const Vec* values) const {
    for (int b = 0; b < W; ++b) {
      spread_row(row(offset + offset_[axis][b]), hn::Set(Tag{}, outer_[axis][b]), values);
    }
  }

  const PointRun& run_;
  const GriddingPlan::Impl& plan_;
  index_t size_[D], step_[D], start_[D];
  Vec inner_[V];
  HWY_ALIGN R outer_[2][kOuterCoefficients];
  index_t offset_[2][W];
  bool is_at_edge_ = false;
  HWY_ALIGN mutable R edge_inner_[2 * V * N] = {};
};

template <class R>
HWY_INLINE void ask_for(const PointRun& run, index_t i) {
  if (i + kAhead >= run.last) return;
  const index_t k = run.order_at(i + kAhead);
  if (k < 0 || k >= run.n_points) return;
  hwy::Prefetch(static_cast<const R*>(run.locs) + run.loc_offset(k));
  hwy::Prefetch(static_cast<const std::complex<R>*>(run.values) + run.value_offset(k));
}

template <class R, int D, int W>
void interpolate(const PointRun& run) {
  FastPoint<R, D, W> point(run);
  auto* values = static_cast<std::complex<R>*>(run.values);
  for (index_t i = run.first; i < run.last; ++i) {
    ask_for<R>(run, i);
    const index_t k = run.order_at(i);
    if (k < 0 || k >= run.n_points) continue;
    if (point.place(k)) {
      values[run.value_offset(k)] = point.interpolate();
    } else {
      interpolate_point(run, point.kDType, k);
    }
  }
}

template <class R, int D, int W>
void spread(const PointRun& run) {
  FastPoint<R, D, W> point(run);
  const auto* values = static_cast<const std::complex<R>*>(run.values);
  for (index_t i = run.first; i < run.last; ++i) {
    ask_for<R>(run, i);
    const index_t k = run.order_at(i);
    if (k < 0 || k >= run.n_points) continue;
    if (point.place(k)) {
      point.spread(values[run.value_offset(k)]);
    } else {
      spread_point(run, point.kDType, k);
    }
  }
}

template <class R, int D, int W>
PointLoops loops_of_width(int width) {
  if (W == width) return {interpolate<R, D, W>, spread<R, D, W>};
  if constexpr (W < kLargestFastWidth) {
    return loops_of_width<R, D, W + 1>(width);
  } else {
    return {};
  }
}

template <class R>
PointLoops loops_of(int ndim, int width) {
  if (ndim == 1) return loops_of_width<R, 1, 2>(width);
  return ndim == 2 ? loops_of_width<R, 2, 2>(width) : loops_of_width<R, 3, 2>(width);
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace

PointLoops loops_for([[maybe_unused]] bool single, [[maybe_unused]] int ndim,
                     [[maybe_unused]] int width) {
#if HWY_TARGET == HWY_SCALAR
  return {};
#else
  return single ? loops_of<float>(ndim, width) : loops_of<double>(ndim, width);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace palimpsest {

HWY_EXPORT(loops_for);

PointLoops vector_point_loops(DType dtype, int ndim, int width) {
  return HWY_DYNAMIC_DISPATCH(loops_for)(dtype == DType::complex64, ndim, width);
}

}  // namespace palimpsest
#endif
