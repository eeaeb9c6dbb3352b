// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "palimpsest/base/view.hpp"

namespace palimpsest {

enum class GriddingKernel : std::uint8_t { kaiser_bessel, spline };

/// Parameters of interpolation between a grid and points off the grid. Entries of axes beyond ndim
/// are ignored.
struct GriddingSpec {
  int ndim = 1;                          // 1, 2, 3
  std::array<index_t, 3> grid{1, 1, 1};  // extents, row-major
  std::array<double, 3> width{1, 1, 1};  // kernel widths in grid units, positive
  GriddingKernel kernel = GriddingKernel::kaiser_bessel;
  std::array<double, 3> beta{};  // of kaiser_bessel, 0 .. 700
  int order = 1;                 // of spline, 0 .. 2
  int norm = 1;                  // 1: product over the axes; 2: radial, with beta of axis 0
  bool circular = true;          // else elements outside the grid are zero
  std::array<double, 3> scale{1, 1, 1}, shift{};  // position on the grid = scale * loc + shift
  std::array<double, 3> factor{1, 1, 1};          // kernel factors, multiplied; one per axis, so
                                                  // that none leaves the range of float
  friend bool operator==(const GriddingSpec&, const GriddingSpec&) = default;
};

/// Tables for a spec: a cheap handle to shared, immutable data.
/// Threads  const, and everything that takes a plan, are safe from several threads
class GriddingPlan {
 public:
  struct Impl;
  /// Errors   ValueError naming `who`: "locs" (ndim), "width", "kernel" (beta, order), "norm"
  explicit GriddingPlan(const GriddingSpec& spec, std::string_view who = "gridding");

  const GriddingSpec& spec() const;
  /// The number of tiles of the grid; points are sorted by tile.
  index_t tile_count() const;
  /// The number of elements of the order of n points: where each tile begins, then the points.
  index_t order_size(index_t n_points) const { return tile_count() + 1 + n_points; }
  std::size_t sort_scratch_bytes() const;
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

/// The order in which points are visited: by tile, within a tile by neighbourhood, then by number.
///
/// Shapes   locs (k..., ndim); order (plan.order_size(number of points))
/// DTypes   locs float32 or float64; order int32 (fewer than 2^31 points) or int64
/// Errors   ValueError naming `who` when a location is not finite; nothing is written then
/// Cost     two passes over the locations; `scratch`: plan.sort_scratch_bytes(), 8-byte aligned
void sort_points(const GriddingPlan& plan, const ConstView& locs, const MutableView& order,
                 std::byte* scratch, std::string_view who);

/// y[b..., k...] = sum over g of K(g - position of k) x[b..., g...].
///
/// Math     over the elements with |g_d - k_d| <= width_d / 2, both ends included; with
///          u_d = (g_d - k_d) / (width_d / 2) the kernel is the product of K(u_d) (norm 1) or
///          K(|u|) (norm 2); kaiser_bessel: I0(beta sqrt(1 - u^2)), to the rounding of its largest
///          value; spline: 1; 1 - |u|; (9/8) (1 - |u|)^2 for |u| > 1/3, else (3/4) (1 - 3 u^2)
/// DTypes   x and y the same of float32, float64, complex64, complex128; locs its real type;
///          positions are computed in double precision
/// Aliases  disjoint
/// Cost     points x product of widths; kernels of one whole width 2 .. 16, norm 1, circular, are
///          vectorized (kaiser_bessel; splines of order 1 and an even width) on complex grids with
///          dense rows, and on real ones two batch elements at a time, as parts of complex ones in
///          `scratch` (gridding_scratch_bytes, 64-byte aligned; with less scratch, number by
///          number). The result depends on the data alone
/// Source   Barnett, Magland & af Klinteberg 2019, doi:10.1137/18M120885X
void run_interpolate(const GriddingPlan& plan, const ConstView& x, const ConstView& locs,
                     const ConstView& order, const MutableView& y,
                     std::span<std::byte> scratch = {});
/// Scratch bytes of either direction for data of this dtype on `n_points` points.
std::size_t gridding_scratch_bytes(const GriddingPlan& plan, DType dtype, index_t n_points);

/// The adjoint: x[b..., g...] = sum over the points of K(g - position of k) y[b..., k...].
///
/// Cost     as run_interpolate. Tiles of one colour touch disjoint elements and run in parallel,
///          one colour after the other: the order of terms of an element does not depend on threads
void run_spread(const GriddingPlan& plan, const ConstView& y, const ConstView& locs,
                const ConstView& order, const MutableView& x, std::span<std::byte> scratch = {});

}  // namespace palimpsest
