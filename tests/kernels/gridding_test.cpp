// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/gridding/gridding.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>

#include "kernels/arrays.hpp"

namespace palimpsest::testing {
namespace {

using Complex = std::complex<double>;

std::size_t at(index_t i) { return static_cast<std::size_t>(i); }

double bessel(double x) {
  double term = 1, sum = 1;
  for (int k = 1; term > 1e-18 * sum; ++k) sum += term *= x * x / (4.0 * k * k);
  return sum;
}

// The kernel by its definition, at |u| <= 1.
double kernel(const GriddingSpec& spec, std::size_t d, double u) {
  u = std::abs(u);
  if (spec.kernel == GriddingKernel::kaiser_bessel) {
    return bessel(spec.beta[d] * std::sqrt(std::max(0.0, 1 - u * u)));
  }
  if (spec.order == 0) return 1;
  if (spec.order == 1) return 1 - u;
  return u > 1.0 / 3 ? 9.0 / 8 * (1 - u) * (1 - u) : 3.0 / 4 * (1 - 3 * u * u);
}

double largest_weight(const GriddingSpec& spec) {
  double product = spec.norm == 1 ? 1 : kernel(spec, 0, 0);
  for (std::size_t d = 0; d < at(spec.ndim); ++d) {
    product *= std::abs(spec.factor[d]) * (spec.norm == 1 ? kernel(spec, d, 0) : 1);
  }
  return product;
}

// Visits (row-major number on the grid, weight) for all elements that a point reaches.
void visit(const GriddingSpec& spec, const std::array<double, 3>& position,
           const std::function<void(index_t, double)>& f) {
  std::array<index_t, 3> low{}, high{};
  for (std::size_t d = 0; d < at(spec.ndim); ++d) {
    low[d] = static_cast<index_t>(std::ceil(position[d] - spec.width[d] / 2));
    high[d] = static_cast<index_t>(std::floor(position[d] + spec.width[d] / 2));
  }
  std::array<index_t, 3> g{};
  const std::function<void(std::size_t, index_t, double, double)> recurse = [&](std::size_t d,
                                                                                index_t number,
                                                                                double weight,
                                                                                double radius2) {
    if (d == at(spec.ndim)) {
      if (spec.norm == 2 && radius2 > 1 + 1e-15) return;  // the rounding of radius2
      f(number, weight * (spec.norm == 2 ? kernel(spec, 0, std::sqrt(std::min(radius2, 1.0))) : 1));
      return;
    }
    for (g[d] = low[d]; g[d] <= high[d]; ++g[d]) {
      const index_t n = spec.grid[d];
      if (!spec.circular && (g[d] < 0 || g[d] >= n)) continue;
      const double u = (static_cast<double>(g[d]) - position[d]) / (spec.width[d] / 2);
      recurse(d + 1, number * n + (g[d] % n + n) % n,
              weight * spec.factor[d] * (spec.norm == 1 ? kernel(spec, d, u) : 1), radius2 + u * u);
    }
  };
  recurse(0, 0, 1, 0);
}

// A grid, points and their order, batch elements in front.
struct Problem {
  Problem(Random& random, const GriddingSpec& s, DType type, Extents batch_extents,
          Extents point_extents, DType index = DType::int32)
      : spec(s),
        plan(s),
        dtype(type),
        batch(std::move(batch_extents)),
        points(std::move(point_extents)),
        locs(real_of(type), joined(points, {s.ndim}),
             random_strides(random, joined(points, {s.ndim}), false)),
        order(index, {plan.order_size(element_count(points))}) {}

  static Extents joined(const Extents& a, const Extents& b) {
    Extents result = a;
    for (const index_t n : b) result.push_back(n);
    return result;
  }
  Extents grid_extents() const {
    return joined(batch, Extents(spec.grid.begin(), spec.grid.begin() + spec.ndim));
  }
  Extents value_extents() const { return joined(batch, points); }
  index_t n_points() const { return element_count(points); }
  index_t n_grid() const { return spec.grid[0] * spec.grid[1] * spec.grid[2]; }

  void sort() {
    std::vector<index_t> scratch(plan.sort_scratch_bytes() / sizeof(index_t));
    sort_points(plan, locs.view(), order.mutable_view(),
                reinterpret_cast<std::byte*>(scratch.data()), "interpolate");
  }
  std::array<double, 3> position(index_t k) const {
    std::array<double, 3> result{};
    for (index_t d = 0; d < spec.ndim; ++d) {
      const double loc = locs.value(k * spec.ndim + d).real();
      result[at(d)] = loc * spec.scale[at(d)] + spec.shift[at(d)];
    }
    return result;
  }
  std::vector<Complex> interpolated(const Array& x) const {
    std::vector<Complex> y(at(element_count(value_extents())));
    for (index_t i = 0; i < static_cast<index_t>(y.size()); ++i) {
      const index_t b = i / n_points();
      visit(spec, position(i % n_points()),
            [&](index_t g, double weight) { y[at(i)] += weight * x.value(b * n_grid() + g); });
    }
    return y;
  }
  std::vector<Complex> spread(const Array& y) const {
    std::vector<Complex> x(at(element_count(grid_extents())));
    for (index_t i = 0; i < y.count(); ++i) {
      const index_t b = i / n_points();
      visit(spec, position(i % n_points()),
            [&](index_t g, double weight) { x[at(b * n_grid() + g)] += weight * y.value(i); });
    }
    return x;
  }

  GriddingSpec spec;
  GriddingPlan plan;
  DType dtype;
  Extents batch, points;
  Array locs, order;
};

void expect_near(const Array& got, const std::vector<Complex>& expected, double scale,
                 const std::string& what) {
  const double rounding = real_of(got.dtype()) == DType::float32 ? 1.2e-7 : 2.3e-16;
  double largest = 0, norm = 0;
  for (index_t i = 0; i < got.count(); ++i) {
    largest = std::max(largest, std::abs(got.value(i) - expected[at(i)]));
    norm = std::max(norm, std::abs(expected[at(i)]));
  }
  EXPECT_LE(largest, 60 * rounding * (scale + norm)) << what;
}

std::string described(const GriddingSpec& s, DType dtype) {
  std::string text = std::to_string(s.ndim) + "-D " + std::string(name_of(dtype));
  for (std::size_t d = 0; d < at(s.ndim); ++d) {
    text += " [" + std::to_string(s.grid[d]) + " w " + std::to_string(s.width[d]) + " beta " +
            std::to_string(s.beta[d]) + "]";
  }
  return text + " norm " + std::to_string(s.norm) + (s.circular ? " circular" : " zero") +
         (s.kernel == GriddingKernel::spline ? " spline " + std::to_string(s.order) : "");
}

// Both directions, compared with the definition.
void expect_right(Random& random, const GriddingSpec& spec, DType dtype, const Extents& batch,
                  const Extents& points, bool on_grid, bool strided) {
  Problem p(random, spec, dtype, batch, points);
  std::uniform_real_distribution<double> off_grid(-30, 60);
  for (index_t i = 0; i < p.locs.count(); ++i) {
    p.locs.set_value(
        i, on_grid ? static_cast<double>(uniform(random, -40, 80)) / 2 : off_grid(random));
  }
  p.sort();
  const auto strides = [&](const Extents& extents) {
    return strided ? random_strides(random, extents, false) : contiguous_strides(extents);
  };
  Array x(dtype, p.grid_extents(), strides(p.grid_extents())),
      y(dtype, p.value_extents(), strides(p.value_extents()));
  x.fill_normal(random);
  y.fill_normal(random);
  Array got_y(dtype, p.value_extents(), strides(p.value_extents())),
      got_x(dtype, p.grid_extents(), strides(p.grid_extents()));
  run_interpolate(p.plan, x.view(), p.locs.view(), p.order.view(), got_y.mutable_view());
  run_spread(p.plan, y.view(), p.locs.view(), p.order.view(), got_x.mutable_view());
  const std::string what = described(spec, dtype);
  const double weight = largest_weight(spec);
  expect_near(got_y, p.interpolated(x), weight, what + " interpolate");
  expect_near(got_x, p.spread(y), weight, what + " spread");
  EXPECT_TRUE(got_y.gaps_are_intact() && got_x.gaps_are_intact()) << what;
  // With scratch, real data take another path if there is one.
  const std::size_t bytes = gridding_scratch_bytes(p.plan, dtype, p.n_points());
  if (bytes == 0) return;
  Array room(DType::complex128, {static_cast<index_t>(bytes / 16 + 1)});
  const std::span scratch(static_cast<std::byte*>(room.address(0)), bytes);
  run_interpolate(p.plan, x.view(), p.locs.view(), p.order.view(), got_y.mutable_view(), scratch);
  run_spread(p.plan, y.view(), p.locs.view(), p.order.view(), got_x.mutable_view(), scratch);
  expect_near(got_y, p.interpolated(x), weight, what + " interpolate in pairs");
  expect_near(got_x, p.spread(y), weight, what + " spread in pairs");
  EXPECT_TRUE(got_y.gaps_are_intact() && got_x.gaps_are_intact()) << what;
}

constexpr DType kTypes[] = {DType::float32, DType::float64, DType::complex64, DType::complex128};

TEST(Gridding, EveryWholeWidthEqualsTheDefinition) {
  Random random(81);
  for (int ndim = 1; ndim <= 3; ++ndim) {
    for (int width = 2; width <= 16; ++width) {
      for (const DType dtype : {DType::complex64, DType::complex128}) {
        GriddingSpec spec;
        spec.ndim = ndim;
        for (std::size_t d = 0; d < at(ndim); ++d) {
          spec.grid[d] = uniform(random, ndim == 3 ? 9 : 5, ndim == 3 ? 40 : 90);
          spec.width[d] = width;
          spec.beta[d] = 2.3 * width + 0.1 * static_cast<double>(d);
          spec.scale[d] = d == 1 ? -0.75 : 1.25;
          spec.shift[d] = 10.125;
          spec.factor[d] = 0.75 / bessel(spec.beta[d]);
        }
        const Extents points{ndim == 3 && width > 8 ? 25 : 60};
        expect_right(random, spec, dtype, {}, points, width % 5 == 0, false);
      }
    }
  }
}

TEST(Gridding, RealDataAndLinearSplinesEqualTheDefinition) {
  Random random(80);
  for (const int ndim : {1, 2, 3}) {
    for (const int width : {2, 3, 4, 6}) {
      for (const DType dtype : kTypes) {
        GriddingSpec spec;
        spec.ndim = ndim;
        spec.kernel = width % 2 == 0 ? GriddingKernel::spline : GriddingKernel::kaiser_bessel;
        for (std::size_t d = 0; d < at(ndim); ++d) {
          spec.grid[d] = uniform(random, 7, ndim == 3 ? 30 : 90);
          spec.width[d] = width;
          spec.beta[d] = 2.3 * width;
          spec.factor[d] = spec.kernel == GriddingKernel::spline ? 1 : 1 / bessel(spec.beta[d]);
        }
        for (const Extents& batch : {Extents{}, Extents{3}, Extents{2, 2}}) {
          for (const bool strided : {false, true}) {
            expect_right(random, spec, dtype, batch, {5, 8}, width == 4, strided);
          }
        }
      }
    }
  }
}

TEST(Gridding, AnyKernelWidthAndLayoutEqualTheDefinition) {
  Random random(82);
  for (int trial = 0; trial < 240; ++trial) {
    GriddingSpec spec;
    spec.ndim = static_cast<int>(uniform(random, 1, 3));
    spec.norm = static_cast<int>(uniform(random, 1, 2));
    spec.circular = uniform(random, 0, 2) > 0;
    spec.kernel =
        uniform(random, 0, 2) > 0 ? GriddingKernel::kaiser_bessel : GriddingKernel::spline;
    spec.order = static_cast<int>(uniform(random, 0, 2));
    const bool same = uniform(random, 0, 1) == 0;
    for (std::size_t d = 0; d < at(spec.ndim); ++d) {
      spec.grid[d] = uniform(random, 1, spec.ndim == 3 ? 12 : 40);
      spec.width[d] =
          d > 0 && same ? spec.width[0] : 0.25 * static_cast<double>(uniform(random, 1, 26));
      spec.beta[d] = d > 0 && spec.norm == 2 ? spec.beta[0]
                                             : 0.5 * static_cast<double>(uniform(random, 0, 20));
    }
    expect_right(random, spec, kTypes[trial % 4], random_extents(random, 2, 3),
                 random_extents(random, 2, 7), uniform(random, 0, 1) == 0, trial % 3 > 0);
  }
}

TEST(Gridding, KernelsWiderThanTheGridWrapAsOftenAsNeeded) {
  Random random(83);
  for (const double width : {6.0, 33.0, 70.5}) {
    GriddingSpec spec;
    spec.ndim = 2;
    spec.grid = {3, 2, 1};
    spec.width = {width, 4.0, 1};
    spec.beta = {3, 3, 0};
    expect_right(random, spec, DType::complex128, {2}, {20}, false, false);
    expect_right(random, spec, DType::float64, {}, {20}, true, false);
  }
}

TEST(Gridding, OfNothing) {
  Random random(84);
  GriddingSpec spec;
  spec.grid[0] = 8;
  spec.width[0] = 4;
  expect_right(random, spec, DType::complex64, {2}, {0}, false, false);
  expect_right(random, spec, DType::complex64, {0}, {5}, false, false);
}

TEST(GriddingOrder, IsAPermutationSortedByTilesAndStable) {
  Random random(85);
  GriddingSpec spec;
  spec.ndim = 3;
  spec.grid = {70, 40, 130};
  spec.width = {6, 6, 6};
  for (const DType index : {DType::int32, DType::int64}) {
    Problem p(random, spec, DType::complex64, {}, {5000}, index);
    EXPECT_EQ(p.plan.tile_count(), 4 * 2 * 4);
    for (index_t i = 0; i < p.locs.count(); ++i) {
      p.locs.set_value(i, static_cast<double>(uniform(random, -1000, 1000)) / 8);
    }
    p.sort();
    const index_t n_tiles = p.plan.tile_count();
    std::set<index_t> seen;
    EXPECT_EQ(p.order.value(0).real(), 0);
    EXPECT_EQ(p.order.value(n_tiles).real(), 5000);
    for (index_t t = 0; t < n_tiles; ++t) {
      EXPECT_LE(p.order.value(t).real(), p.order.value(t + 1).real());
    }
    for (index_t i = 0; i < 5000; ++i) {
      seen.insert(static_cast<index_t>(p.order.value(n_tiles + 1 + i).real()));
    }
    EXPECT_EQ(seen.size(), 5000U);
    EXPECT_EQ(*seen.rbegin(), 4999);
    // Equal points keep their order.
    for (index_t i = 0; i < p.locs.count(); ++i) p.locs.set_value(i, 3.5);
    p.sort();
    for (index_t i = 0; i < 5000; ++i) {
      ASSERT_EQ(p.order.value(n_tiles + 1 + i).real(), static_cast<double>(i));
    }
  }
}

TEST(GriddingOrder, AnOrderOfOtherLocationsStaysWithinTheArrays) {
  Random random(86);
  GriddingSpec spec;
  spec.ndim = 2;
  spec.grid = {80, 150, 1};
  spec.width = {4, 4, 1};
  spec.beta = {5, 5, 0};
  Problem p(random, spec, DType::complex64, {}, {50});
  for (index_t i = 0; i < p.locs.count(); ++i) p.locs.set_value(i, 1e30);
  for (index_t i = 0; i < p.order.count(); ++i) {
    p.order.set<std::int32_t>(i, static_cast<std::int32_t>(uniform(random, -200, 200)));
  }
  const Array values(DType::complex64, {50});
  Array y(DType::complex64, {50}), x(DType::complex64, {80, 150});
  run_spread(p.plan, values.view(), p.locs.view(), p.order.view(), x.mutable_view());
  run_interpolate(p.plan, x.view(), p.locs.view(), p.order.view(), y.mutable_view());
  EXPECT_TRUE(y.gaps_are_intact() && x.gaps_are_intact());
}

TEST(Gridding, ResultsDoNotDependOnThreads) {
  Random random(87);
  for (const bool circular : {true, false}) {
    for (const int ndim : {1, 2, 3}) {
      GriddingSpec spec;
      spec.ndim = ndim;
      spec.circular = circular;
      spec.grid = ndim == 1   ? std::array<index_t, 3>{9000, 1, 1}
                  : ndim == 2 ? std::array<index_t, 3>{150, 290, 1}
                              : std::array<index_t, 3>{40, 50, 70};
      spec.width = {5, 5, 5};
      spec.beta = {10, 10, 10};
      Problem p(random, spec, DType::complex64, {2}, {20000});
      std::uniform_real_distribution<double> place(-10, 300);
      for (index_t i = 0; i < p.locs.count(); ++i) p.locs.set_value(i, place(random));
      p.sort();
      Array y(DType::complex64, {2, 20000}), x(DType::complex64, p.grid_extents());
      y.fill_normal(random);
      expect_same_on_threads([&] {
        run_spread(p.plan, y.view(), p.locs.view(), p.order.view(), x.mutable_view());
        return elements(x);
      });
      expect_same_on_threads([&] {
        Array z(DType::complex64, {2, 20000});
        run_interpolate(p.plan, x.view(), p.locs.view(), p.order.view(), z.mutable_view());
        return elements(z);
      });
    }
  }
}

TEST(Gridding, RealDataInPairsDoNotDependOnThreadsNorOnEachOther) {
  Random random(89);
  GriddingSpec spec;
  spec.ndim = 2;
  spec.grid = {150, 290, 1};
  spec.width = {4, 4, 1};
  spec.beta = {8, 8, 0};
  Problem p(random, spec, DType::float32, {3}, {9000});
  std::uniform_real_distribution<double> place(-10, 300);
  for (index_t i = 0; i < p.locs.count(); ++i) p.locs.set_value(i, place(random));
  p.sort();
  const std::size_t bytes = gridding_scratch_bytes(p.plan, DType::float32, p.n_points());
  Array room(DType::complex128, {static_cast<index_t>(bytes / 16 + 1)});
  const std::span scratch(static_cast<std::byte*>(room.address(0)), bytes);
  Array x(DType::float32, p.grid_extents());
  x.fill_normal(random);
  expect_same_on_threads([&] {
    Array y(DType::float32, {3, 9000}), back(DType::float32, p.grid_extents());
    run_interpolate(p.plan, x.view(), p.locs.view(), p.order.view(), y.mutable_view(), scratch);
    run_spread(p.plan, y.view(), p.locs.view(), p.order.view(), back.mutable_view(), scratch);
    std::vector<unsigned char> both = elements(y);
    for (const unsigned char b : elements(back)) both.push_back(b);
    return both;
  });
  // The other batch element of a pair has no influence.
  const auto of_second = [&](double first) {
    for (index_t i = 0; i < p.n_grid(); ++i) x.set_value(i, first);
    Array y(DType::float32, {3, 9000});
    run_interpolate(p.plan, x.view(), p.locs.view(), p.order.view(), y.mutable_view(), scratch);
    const auto all = elements(y);
    return std::vector<unsigned char>(all.begin() + 9000 * 4, all.end());
  };
  EXPECT_EQ(of_second(1), of_second(std::numeric_limits<double>::infinity()));
}

// In the middle of a row, near its end, and across the end.
TEST(Gridding, WhatLiesBesideARowNeverEntersAResult) {
  GriddingSpec spec;
  spec.grid[0] = 64;
  spec.width[0] = 3;
  spec.beta[0] = 5;
  Random random(88);
  Problem p(random, spec, DType::complex64, {}, {1});
  const double inf = std::numeric_limits<double>::infinity();
  for (const index_t middle : {20, 57, 61, 62, 63, 64, 65}) {
    p.locs.set_value(0, static_cast<double>(middle) + 0.25);
    p.sort();
    const auto is_in_row = [&](index_t i) { return (i - (middle - 1) + 64) % 64 <= 2; };
    Array x(DType::complex64, {64});
    for (index_t i = 0; i < 64; ++i) x.set_value(i, is_in_row(i) ? 1.0 : inf);
    Array y(DType::complex64, {1});
    run_interpolate(p.plan, x.view(), p.locs.view(), p.order.view(), y.mutable_view());
    EXPECT_TRUE(std::isfinite(y.value(0).real())) << middle;
    y.set_value(0, inf);
    run_spread(p.plan, y.view(), p.locs.view(), p.order.view(), x.mutable_view());
    for (index_t i = 0; i < 64; ++i) EXPECT_EQ(x.value(i) == 0.0, !is_in_row(i)) << middle;
  }
}

void expect_refused(GriddingSpec spec, const std::string& text) {
  try {
    const GriddingPlan plan(spec, "Interpolate");
    FAIL() << text;
  } catch (const ValueError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("[Interpolate] " + text));
  }
}

TEST(Gridding, PlansOfOneSpecShareTheirTables) {
  GriddingSpec spec;
  spec.ndim = 2;
  spec.grid = {30, 20, 1};
  spec.width = {4, 4, 1};
  spec.beta = {8, 8, 0};
  const GriddingPlan plan(spec);
  for (index_t n = 1; n < 16; ++n) {
    GriddingSpec other = spec;
    other.grid[0] += n;
    EXPECT_NE(&GriddingPlan(other).impl(), &plan.impl());
    EXPECT_EQ(GriddingPlan(other).spec(), other);
    EXPECT_EQ(&GriddingPlan(spec).impl(), &plan.impl());
  }
}

TEST(Gridding, RefusesWhatMakesNoSense) {
  const GriddingSpec good;
  GriddingSpec spec = good;
  spec.ndim = 4;
  expect_refused(spec, "locs: got points of 4 coordinates");
  spec = good;
  spec.width[0] = 0;
  expect_refused(spec, "width: got 0, expected");
  spec.width[0] = std::nan("");
  expect_refused(spec, "width");
  spec = good;
  spec.norm = 3;
  expect_refused(spec, "norm: got 3");
  spec = good;
  spec.beta[0] = -1;
  expect_refused(spec, "kernel: got beta -1");
  spec = good;
  spec.ndim = 2;
  spec.norm = 2;
  spec.beta = {1, 2, 0};
  expect_refused(spec, "kernel: got several betas");
  spec = good;
  spec.kernel = GriddingKernel::spline;
  spec.order = 3;
  expect_refused(spec, "kernel: got a spline of order 3");
  spec = good;
  spec.grid[0] = 0;
  expect_refused(spec, "grid_size: got 0");
}

TEST(GriddingOrder, LocationsMustBeFinite) {
  Random random(89);
  Problem p(random, GriddingSpec{.grid = {9, 1, 1}}, DType::float64, {}, {3});
  for (const double wrong : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    for (index_t i = 0; i < 3; ++i) p.locs.set_value(i, i == 1 ? wrong : 1.0);
    try {
      p.sort();
      FAIL();
    } catch (const ValueError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("[interpolate] locs: point 1 is not finite"));
    }
  }
}

}  // namespace
}  // namespace palimpsest::testing
