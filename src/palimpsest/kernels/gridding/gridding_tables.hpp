// SPDX-License-Identifier: Apache-2.0
// Internal: parts shared by the gridding loops.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "palimpsest/kernels/gridding/gridding.hpp"

namespace palimpsest {

inline constexpr int kLargestFastWidth = 16;
inline constexpr int kMaxGriddingDegree = 24;
// Maximum number of coefficients per row that a loop reads.
inline constexpr int kInnerCoefficients = 32, kOuterCoefficients = 16;
// Elements of a row that a vector loop may touch beyond its first one.
inline constexpr index_t kFastReach = 16;

/// The kernel on every interval between neighbours of the grid, as polynomials in z = 2 t - 1,
/// where t in (0, 1) is the distance from the lower end of the kernel to the first element inside.
/// Column j of the coefficients gives the weight of element j. The inner axis has every column
/// twice, for real and imaginary parts; columns beyond the width are zero.
template <class R>
struct TapPolynomials {
  int degree = 0;
  alignas(64) R outer[2][kMaxGriddingDegree + 1][kOuterCoefficients] = {};
  alignas(64) R inner[kMaxGriddingDegree + 1][kInnerCoefficients] = {};
};

/// Piecewise table of I0(beta sqrt(s)) for s in [0, 1].
class RadialTable {
 public:
  RadialTable() = default;
  explicit RadialTable(double beta);
  double operator()(double s) const {
    const double x = s * pieces_;
    const int piece = std::min(std::max(static_cast<int>(x), 0), pieces_ - 1);
    const double z = 2 * (x - piece) - 1;
    const double* c = coefficients_.data() + piece * kTerms;
    double value = c[kTerms - 1];
    for (int q = kTerms - 2; q >= 0; --q) value = value * z + c[q];
    return value;
  }

 private:
  static constexpr int kTerms = 14;
  int pieces_ = 1;
  std::vector<double> coefficients_;
};

struct GriddingPlan::Impl {
  GriddingSpec spec;
  // Tile t of axis d holds the points whose first element lies in [begin(d, t), begin(d, t + 1)).
  // All elements of such a point end within the next tile, so two colours per axis suffice.
  std::array<index_t, 3> tiles{1, 1, 1}, cells{1, 1, 1}, cell_size{1, 1, 1};
  bool fast = false;
  TapPolynomials<float> f32;
  TapPolynomials<double> f64;
  std::array<RadialTable, 3> radial;  // of norm 2: the first only

  index_t begin(int d, index_t tile) const {
    const auto i = static_cast<std::size_t>(d);
    return (tile * spec.grid[i] + tiles[i] - 1) / tiles[i];
  }
  index_t cell_count() const { return cells[0] * cells[1] * cells[2]; }
  index_t tile_count() const { return tiles[0] * tiles[1] * tiles[2]; }

  /// The kernel at s = 1 - u^2, without the factor of the axis.
  double kernel(int d, double s) const {
    if (spec.kernel == GriddingKernel::kaiser_bessel) return radial[static_cast<std::size_t>(d)](s);
    return spline(std::sqrt(std::max(1 - s, 0.0)));
  }
  /// The kernel at u in [-1, 1]. More accurate for splines near u = 0, where 1 - u^2 loses digits.
  double kernel_at(int d, double u) const {
    return spec.kernel == GriddingKernel::kaiser_bessel ? kernel(d, 1 - u * u)
                                                        : spline(std::abs(u));
  }
  double spline(double u) const {
    if (spec.order == 0) return 1;
    if (spec.order == 1) return 1 - u;
    return u > 1.0 / 3 ? 1.125 * (1 - u) * (1 - u) : 0.75 * (1 - 3 * u * u);
  }
};

/// Converts numbers of points to offsets in elements.
struct PointOffsets {
  int rank = 0;
  std::array<index_t, kMaxRank> extents, steps;
  index_t operator()(index_t k) const {
    if (rank == 1) return k * steps[0];
    index_t sum = 0;
    for (int i = rank - 1; i >= 0; --i) {
      const auto axis = static_cast<std::size_t>(i);
      sum += k % extents[axis] * steps[axis];
      k /= extents[axis];
    }
    return sum;
  }
};

/// Some points of one tile, for one batch element.
struct PointRun {
  const GriddingPlan::Impl* plan = nullptr;
  const void *locs = nullptr, *order = nullptr;
  void *grid = nullptr, *values = nullptr;
  PointOffsets loc_offset, value_offset;
  index_t loc_step = 1;  // between the coordinates of a point
  bool wide_order = false;
  index_t order_step = 1, n_points = 0;
  std::array<index_t, 3> grid_step{};
  index_t first = 0, last = 0;  // range in the order of points

  index_t order_at(index_t i) const {
    return wide_order ? static_cast<const std::int64_t*>(order)[i * order_step]
                      : static_cast<const std::int32_t*>(order)[i * order_step];
  }
};

/// Loop over points in order. Entries of the order that are not valid points are skipped.
using PointLoop = void (*)(const PointRun& run);
/// Loop body for point k; all else is in `run`.
using PointStep = void (*)(const PointRun& run, index_t k);

struct PointLoops {
  PointLoop interpolate = nullptr, spread = nullptr;
};

/// Loops for any kernel.
PointLoops scalar_point_loops(DType dtype);
/// The same for a single point.
void interpolate_point(const PointRun& run, DType dtype, index_t k);
void spread_point(const PointRun& run, DType dtype, index_t k);
/// Vector loops with this whole width, for complex grids whose inner axis is dense; null where the
/// processor has no vectors.
PointLoops vector_point_loops(DType dtype, int ndim, int width);

/// Computes i modulo n for i of any magnitude; 0 if i is not finite.
inline index_t wrapped(double i, index_t n) {
  const double size = static_cast<double>(n);
  double m = i - size * std::floor(i / size);
  if (m >= size) m -= size;
  return m >= 0 && m < size ? static_cast<index_t>(m) : 0;
}

}  // namespace palimpsest
