// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/fft.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <numbers>
#include <string>
#include <thread>

#include "kernels/fft_reference.hpp"
#include "kernels/targets.hpp"
#include "palimpsest/kernels/fft/real_lines.hpp"

namespace palimpsest::testing {
namespace {

TEST(Fft, AnySizesAxesLayoutsAgreeWithTheDefinition) {
  Random random(71);
  for (int trial = 0; trial < 600; ++trial) {
    const DType dtype = trial % 2 == 0 ? DType::complex64 : DType::complex128;
    const Extents extents = random_extents(random, 4, trial % 5 == 0 ? 40 : 9, 1000);
    const Axes axes = random_axes(random, extents);
    Array x(dtype, extents, random_strides(random, extents, false), uniform(random, 0, 1));
    x.fill_normal(random);
    Array y(dtype, extents, random_strides(random, extents, false), uniform(random, 0, 1));
    FftSpec spec = spec_for(x, y, axes);
    spec.forward = trial % 3 != 0;
    spec.centered = trial % 4 < 2;
    spec.scale = trial % 5 == 0 ? 1 : 0.25;
    const auto expected = naive(spec, x);
    const auto before = elements(x);
    execute(fft_plan(spec), x.address(0), y.address(0));
    expect_close(y, expected, describe(spec));
    ASSERT_EQ(elements(x), before) << "the input was written: " << describe(spec);

    spec.out_strides = spec.in_strides;
    spec.in_place = true;
    execute(fft_plan(spec), x.address(0), x.address(0));
    expect_close(x, expected, describe(spec));
  }
}

// Lengths that are computed as convolutions, with large prime factors, and neighbouring ones.
TEST(Fft, LengthsWithLargePrimesAgreeWithTheDefinition) {
  Random random(81);
  for (const index_t n :
       {13,  17,  19,  26,  51,  53,  61,  62,  64,  67,  68,  69,  73,  78,  92,  97,  101,
        103, 109, 115, 116, 127, 182, 183, 190, 194, 208, 211, 218, 221, 230, 251, 262, 992}) {
    for (const DType dtype : {DType::complex64, DType::complex128}) {
      for (const bool is_dense : {true, false}) {
        const Extents extents = is_dense ? Extents{2, n}
                                         : Extents{n, n % 3 == 0   ? 3
                                                      : n % 2 == 0 ? 40
                                                                   : 37};
        Array x(dtype, extents), y(dtype, extents);
        x.fill_normal(random);
        FftSpec spec = spec_for(x, y, {is_dense ? 1 : 0});
        spec.centered = n % 3 == 0;
        for (const bool forward : {true, false}) {
          spec.forward = forward;
          const auto expected = naive(spec, x);
          execute(fft_plan(spec), x.address(0), y.address(0));
          expect_close(y, expected, describe(spec));
        }
      }
    }
  }
}

TEST(Fft, LongLengthsWithLargePrimesTransformSinglePoints) {
  for (const index_t n : {502, 1006, 2039, 2046, 2047, 2048, 2053, 3127}) {
    for (const DType dtype : {DType::complex64, DType::complex128}) {
      Array x(dtype, {n}), y(dtype, {n});
      const index_t first = 3, second = n - 2;
      for (index_t j = 0; j < n; ++j) x.set_value(j, j == first ? 1.0 : j == second ? 2.0 : 0.0);
      std::vector<Wide> expected;
      const auto turn = [&](index_t k, index_t j) {
        return std::polar(
            1.0, -2 * std::numbers::pi * static_cast<double>(k * j % n) / static_cast<double>(n));
      };
      for (index_t k = 0; k < n; ++k) expected.push_back(turn(k, first) + 2.0 * turn(k, second));
      const FftSpec spec = spec_for(x, y, {0});
      execute(fft_plan(spec), x.address(0), y.address(0));
      expect_close(y, expected, describe(spec));
    }
  }
}

// Lengths that are transformed as matrices, and neighbouring ones that are not: a length with large
// primes, and a centered line of odd length. Two points of each line are not 0.
TEST(Fft, LongLinesTransformSinglePoints) {
  struct Lines {
    index_t n;
    bool across;  // three lines side by side
    bool centered, forward;
    bool is_matrix = true;
  };
  for (const Lines& lines : {Lines{131072, false, false, true},
                             {131072, true, true, false},
                             {139968, true, false, true},
                             {143000, false, true, true},
                             {177147, true, true, true, false},
                             {131074, false, true, true, false}}) {
    const index_t n = lines.n;
    std::vector<Wide> roots;
    for (index_t k = 0; k < n; ++k) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
      roots.push_back(std::polar(1.0, lines.forward ? -angle : angle));
    }
    const auto root = [&](index_t k, index_t j) {
      const index_t c = lines.centered ? n / 2 : 0;
      return roots[static_cast<std::size_t>(((k - c) * (j - c) % n + n) % n)];
    };
    for (const DType dtype : {DType::complex64, DType::complex128}) {
      Array x(dtype, lines.across ? Extents{n, 3} : Extents{3, n}), y(dtype, x.extents());
      const index_t step = lines.across ? 3 : 1, line_step = lines.across ? 1 : n;
      std::vector<Wide> expected(static_cast<std::size_t>(x.count()));
      for (index_t i = 0; i < x.count(); ++i) x.set_value(i, 0.0);
      for (index_t line = 0; line < 3; ++line) {
        const index_t first = 3 + line, second = n - 2 - 100 * line;
        x.set_value(line * line_step + first * step, 1.0);
        x.set_value(line * line_step + second * step, 2.0);
        for (index_t k = 0; k < n; ++k) {
          expected[static_cast<std::size_t>(line * line_step + k * step)] =
              0.5 * (root(k, first) + 2.0 * root(k, second));
        }
      }
      FftSpec spec = spec_for(x, y, {lines.across ? 0 : 1});
      spec.centered = lines.centered;
      spec.forward = lines.forward;
      spec.scale = 0.5;
      expect_same_on_threads([&] {
        execute(fft_plan(spec), x.address(0), y.address(0));
        return elements(y);
      });
      expect_close(y, expected, describe(spec));
      spec.in_place = true;
      if (lines.is_matrix) {  // tables; a line of scratch, or two if lines are not dense
        const std::size_t line_bytes = static_cast<std::size_t>(n) * item_size(dtype);
        EXPECT_LE(fft_plan(spec).external_bytes(),
                  line_bytes * (lines.across ? 32 : 22) / 10 + 500000)
            << describe(spec);
      }
      execute(fft_plan(spec), x.address(0), x.address(0));
      EXPECT_EQ(elements(x), elements(y)) << describe(spec);
    }
  }
}

TEST(Fft, BackUndoesForth) {
  Random random(72);
  for (const bool centered : {false, true}) {
    for (const auto& [ny, nx] : {std::pair<index_t, index_t>{64, 48}, {45, 30}, {17, 128}}) {
      Array x(DType::complex64, {3, ny, nx}), y(DType::complex64, {3, ny, nx});
      x.fill_normal(random);
      FftSpec spec = spec_for(x, y, {1, 2});
      spec.centered = centered;
      spec.scale = 1 / std::sqrt(static_cast<double>(ny * nx));
      std::vector<Wide> expected;
      for (index_t i = 0; i < x.count(); ++i) expected.push_back(x.value(i));
      execute(fft_plan(spec), x.address(0), y.address(0));
      spec.forward = false;
      spec.in_place = true;
      execute(fft_plan(spec), y.address(0), y.address(0));
      expect_close(y, expected, describe(spec));
    }
  }
}

TEST(Fft, BigBatchesAreCutIntoTasks) {
  Random random(73);
  // Whole outer elements, blocks with a remainder, and two outer axes.
  for (const auto& [extents, axes] : {std::pair<Extents, Axes>{{5, 160, 128}, {1, 2}},
                                      {{3001, 16}, {1}},
                                      {{7, 3, 4099, 5}, {3}},
                                      {{3, 3, 130, 130}, {2, 3}},
                                      {{128, 128, 6}, {0, 1}}}) {
    for (const bool centered : {false, true}) {
      Array x(DType::complex64, extents), y(DType::complex64, extents);
      x.fill_normal(random);
      FftSpec spec = spec_for(x, y, axes);
      spec.centered = centered;
      // The same transform in double precision: the same code, but no slow naive sum.
      Array wide(DType::complex128, extents), reference(DType::complex128, extents);
      strided_copy(x.view(), wide.mutable_view());
      FftSpec wide_spec = spec;
      wide_spec.dtype = DType::complex128;
      wide_spec.axes = axes;
      execute(fft_plan(wide_spec), wide.address(0), reference.address(0));
      execute(fft_plan(spec), x.address(0), y.address(0));
      double error = 0;
      for (index_t i = 0; i < y.count(); ++i) {
        error = std::max(error, std::abs(y.value(i) - reference.value(i)));
      }
      EXPECT_LE(error, 1e-3) << describe(spec);
      // A few lines against the definition, by the inner product with a harmonic of a unit vector.
      expect_same_on_threads([&] {
        Array out(DType::complex64, extents);
        execute(fft_plan(spec), x.address(0), out.address(0));
        return elements(out);
      });
    }
  }
}

// Large volumes are transformed slice by slice first; compared with a transform axis by axis,
// without slices.
TEST(Fft, VolumesAreTransformedLikeTheirAxes) {
  Random random(75);
  struct Volume {
    Extents extents;
    Axes axes;
    bool reversed;  // the output has reversed axes
  };
  const std::vector<Volume> volumes{
      {{40, 48, 50}, {0, 1, 2}, false},    {{2, 40, 49, 45}, {3, 1, 2}, false},
      {{40, 3, 48, 17}, {0, 2, 3}, false}, {{9, 12, 40, 33}, {0, 1, 2, 3}, false},
      {{40, 48, 50}, {0, 1, 2}, true},     {{40, 33, 48, 2}, {0, 1, 2}, true}};
  for (const DType dtype : {DType::complex64, DType::complex128}) {
    for (const Volume& v : volumes) {
      Strides strides = contiguous_strides(v.extents);
      if (v.reversed) {
        index_t step = 1;
        for (std::size_t i = 0; i < strides.size(); step *= v.extents[i++]) strides[i] = step;
      }
      for (const bool centered : {false, true}) {
        Array x(dtype, v.extents), y(dtype, v.extents, strides), z(dtype, v.extents);
        x.fill_normal(random);
        FftSpec spec = spec_for(x, y, v.axes);
        spec.centered = centered;
        spec.scale = 0.01;
        strided_copy(x.view(), z.mutable_view());
        for (const index_t axis : v.axes) {
          FftSpec one = spec_for(z, z, {axis});
          one.centered = centered;
          one.in_place = true;
          one.scale = axis == v.axes[0] ? 0.01 : 1;
          execute(fft_plan(one), z.address(0), z.address(0));
        }
        std::vector<Wide> expected;
        for (index_t i = 0; i < z.count(); ++i) expected.push_back(z.value(i));
        const auto before = elements(x);
        execute(fft_plan(spec), x.address(0), y.address(0));
        expect_close(y, expected, describe(spec));
        ASSERT_EQ(elements(x), before) << describe(spec);
        spec.out_strides = spec.in_strides;
        spec.in_place = true;
        execute(fft_plan(spec), x.address(0), x.address(0));
        expect_close(x, expected, describe(spec));
      }
    }
  }
}

TEST(Fft, EveryTaskOfABatchIsTransformed) {
  // Each batch element is a unit impulse of different height: its transform is flat.
  for (const auto& [batch, n] : {std::pair<index_t, index_t>{3001, 16}, {70, 1024}, {4, 65536}}) {
    Array x(DType::complex64, {batch, n}), y(DType::complex64, {batch, n});
    for (index_t i = 0; i < x.count(); ++i) {
      x.set_value(i, i % n == 0 ? static_cast<double>(i / n + 1) : 0.0);
    }
    execute(fft_plan(spec_for(x, y, {1})), x.address(0), y.address(0));
    for (index_t i = 0; i < y.count(); ++i) ASSERT_EQ(y.value(i), static_cast<double>(i / n + 1));
  }
}

TEST(Fft, NoAxesIsAScaledCopy) {
  Random random(74);
  Array x(DType::complex128, {4, 5}, {1, 4}), y(DType::complex128, {4, 5});
  x.fill(random);
  for (const double scale : {1.0, 0.5}) {
    FftSpec spec = spec_for(x, y, {});
    spec.scale = scale;
    execute(fft_plan(spec), x.address(0), y.address(0));
    for (index_t i = 0; i < 20; ++i) EXPECT_EQ(y.value(i), scale * x.value(i));
  }
  FftSpec spec = spec_for(y, y, {});
  spec.in_place = true;
  spec.scale = 2;
  execute(fft_plan(spec), y.address(0), y.address(0));
  for (index_t i = 0; i < 20; ++i) EXPECT_EQ(y.value(i), x.value(i));
}

TEST(Fft, EmptyArraysAndSingleElements) {
  Array none(DType::complex64, {3, 0}), out(DType::complex64, {3, 0});
  execute(fft_plan(spec_for(none, out, {0, 1})), none.address(0), out.address(0));
  EXPECT_TRUE(out.gaps_are_intact());
  Array one(DType::complex64, {1, 1}), result(DType::complex64, {1, 1});
  one.set_value(0, {3, 4});
  FftSpec spec = spec_for(one, result, {0, 1});
  spec.centered = true;
  spec.scale = 2;
  execute(fft_plan(spec), one.address(0), result.address(0));
  EXPECT_EQ(result.value(0), Wide(6, 8));
}

TEST(Fft, ResultsDoNotDependOnAlignment) {
  Random random(75);
  for (const index_t n : {16, 30, 64, 100, 128, 210, 256, 243}) {
    Array x(DType::complex64, {6, n, n});
    x.fill_normal(random);
    std::vector<unsigned char> expected;
    for (const index_t shift : {0, 1, 2, 3}) {
      Array in(DType::complex64, x.extents(), x.strides(), shift);
      Array out(DType::complex64, x.extents(), x.strides(), shift);
      strided_copy(x.view(), in.mutable_view());
      FftSpec spec = spec_for(in, out, {1, 2});
      execute(fft_plan(spec), in.address(0), out.address(0));
      if (shift == 0) expected = elements(out);
      EXPECT_EQ(elements(out), expected) << n << " shift " << shift;
    }
  }
}

TEST(Fft, LinesDoNotDependOnTheirNeighbours) {
  Random random(79);
  for (const index_t n : {60, 182, 190, 218, 230}) {
    for (const DType dtype : {DType::complex64, DType::complex128}) {
      for (const index_t lines : {1, 2, 3, 7, 40, 45}) {
        Array x(dtype, {n, lines}), y(dtype, x.extents());
        x.fill_normal(random);
        execute(fft_plan(spec_for(x, y, {0})), x.address(0), y.address(0));
        for (index_t c = 0; c < lines; ++c) {
          Array one(dtype, {n}), result(dtype, {n});
          for (index_t j = 0; j < n; ++j) one.set_value(j, x.value(j * lines + c));
          execute(fft_plan(spec_for(one, result, {0})), one.address(0), result.address(0));
          for (index_t k = 0; k < n; ++k) ASSERT_EQ(result.value(k), y.value(k * lines + c)) << n;
        }
      }
    }
  }
}

TEST(Fft, EveryInstructionSetGivesTheBitsOfThePlainLoops) {
  Random random(80);
  for (const auto& [n, lines] : {std::pair<index_t, index_t>{64, 32},
                                 {70, 45},
                                 {33, 3},
                                 {218, 5},
                                 {218, 42},
                                 {97, 12},
                                 {230, 37},
                                 {174, 1},
                                 {211, 9},
                                 {300, 600},
                                 {131072, 1}}) {
    Array x(DType::complex64, {2, n, lines}), y(DType::complex64, x.extents());
    x.fill_normal(random);
    for (const bool centered : {false, true}) {  // signs for even n, complex phases for odd n
      FftSpec spec = spec_for(x, y, {1});
      spec.centered = centered;
      spec.scale = 0.5;
      const FftPlan plan = fft_plan(spec);
      const auto run_on = [&](std::int64_t target) {
        const TargetScope scope(target);
        execute(plan, x.address(0), y.address(0));
        return elements(y);
      };
      const auto expected = run_on(0);
      for (const std::int64_t target : vector_targets()) EXPECT_EQ(run_on(target), expected) << n;
    }
  }
}

TEST(Fft, PlansTouchNoUserData) {
  Random random(76);
  for (const bool in_place : {false, true}) {
    Array x(DType::complex64, {3, 24, 20}, {-480, 20, -1}, 1), y(DType::complex64, {3, 24, 20});
    x.fill_normal(random);
    FftSpec spec = spec_for(x, in_place ? x : y, {1, 2});
    spec.in_place = in_place;
    const auto expected = naive(spec, x);
    const auto before = elements(x);
    const FftPlan plan = fft_plan(spec);
    EXPECT_EQ(elements(x), before);
    Array& out = in_place ? x : y;
    execute(plan, x.address(0), out.address(0));
    expect_close(out, expected, describe(spec));
  }
}

// Any layouts, compared with the complex transform of the same numbers. Other lines have no
// influence, even if they hold NaN.
TEST(RealLines, AgreeWithComplexTransforms) {
  Random random(83);
  for (int trial = 0; trial < 200; ++trial) {
    const bool is_single = trial % 2 == 0;
    Extents extents = random_extents(random, 3, 9, 1000);
    if (extents.empty()) extents = {1};
    const auto axis =
        static_cast<std::size_t>(uniform(random, 0, static_cast<int>(extents.size()) - 1));
    extents[axis] = 2 * uniform(random, 1, trial % 5 == 0 ? 130 : 20);
    const index_t n = extents[axis];
    Extents half = extents;
    half[axis] = n / 2 + 1;
    const DType real = is_single ? DType::float32 : DType::float64;
    const DType complex = is_single ? DType::complex64 : DType::complex128;
    Array x(real, extents, random_strides(random, extents, false), uniform(random, 0, 1));
    Array y(complex, half, random_strides(random, half, false), uniform(random, 0, 1));
    Array z(complex, extents), back(real, extents);
    x.fill_normal(random);
    strided_copy(x.view(), z.mutable_view());
    FftSpec spec = spec_for(z, z, {static_cast<index_t>(axis)});
    spec.scale = 0.5;
    const std::vector<Wide> whole = naive(spec, z);
    real_to_half(x.view(), y.mutable_view(), axis, 0.5);
    double largest = 0, error = 0;
    index_t stride = 1;
    for (std::size_t i = axis + 1; i < extents.size(); ++i) stride *= extents[i];
    for (index_t i = 0; i < y.count(); ++i) {
      const index_t k = i / stride % half[axis], outer = i / stride / half[axis];
      const Wide expected = whole[static_cast<std::size_t>((outer * n + k) * stride + i % stride)];
      largest = std::max(largest, std::abs(expected));
      error = std::max(error, std::abs(y.value(i) - expected));
    }
    const double eps = is_single ? 6e-8 : 1.2e-16;
    EXPECT_LE(error, 10 * eps * (largest + 1)) << to_string(extents) << " axis " << axis;
    EXPECT_TRUE(y.gaps_are_intact());
    half_to_real(y.view(), back.mutable_view(), axis, 2.0 / static_cast<double>(n));
    for (index_t i = 0; i < x.count(); ++i) {
      EXPECT_NEAR(back.value(i).real(), x.value(i).real(), 50 * eps) << to_string(extents);
    }
  }
}

TEST(RealLines, BitsDependOnTheLineAlone) {
  Random random(84);
  for (const index_t n : {2, 14, 64, 130, 512, 8192}) {
    Array x(DType::float32, {40, n}), y(DType::complex64, {40, n / 2 + 1});
    x.fill_normal(random);
    const auto run_lines = [&] {
      real_to_half(x.view(), y.mutable_view(), 1, 0.5);
      Array back(DType::float32, {40, n});
      half_to_real(y.view(), back.mutable_view(), 1, 2);
      auto all = elements(y);
      const auto more = elements(back);
      all.insert(all.end(), more.begin(), more.end());
      return all;
    };
    expect_same_on_threads(run_lines);
    const auto run_on = [&](std::int64_t target) {
      const TargetScope scope(target);
      return run_lines();
    };
    const auto expected = run_on(0);
    for (const std::int64_t target : vector_targets()) EXPECT_EQ(run_on(target), expected) << n;
    const Wide last = y.value(y.count() - 1);
    for (index_t j = 0; j < n; ++j) x.set_value(j, std::nan(""));
    real_to_half(x.view(), y.mutable_view(), 1, 0.5);
    EXPECT_EQ(y.value(y.count() - 1), last);
    EXPECT_FALSE(std::isnan(y.value(n / 2 + 1).real()));
  }
}

TEST(FftPlan, IsCachedBySpecAndOutlivesTheCache) {
  clear_fft_cache();
  const Array x(DType::complex64, {8, 9});
  FftSpec spec = spec_for(x, x, {0, 1});
  const FftPlan plan = fft_plan(spec);
  EXPECT_EQ(&plan.impl(), &fft_plan(spec).impl());
  EXPECT_GT(plan.external_bytes(), 0U);  // tables
  spec.centered = true;
  const FftPlan other = fft_plan(spec);
  EXPECT_NE(&plan.impl(), &other.impl());
  EXPECT_GT(other.external_bytes(), plan.external_bytes());
  for (index_t n = 1; n < 100; ++n) {  // more than the cache keeps
    const Array small(DType::complex64, {n});
    fft_plan(spec_for(small, small, {0}));
  }
  EXPECT_NE(&plan.impl(), &fft_plan(plan.spec()).impl());
  clear_fft_cache();
  Array in(DType::complex64, {8, 9}), out(DType::complex64, {8, 9});
  Random random(77);
  in.fill_normal(random);
  execute(plan, in.address(0), out.address(0));
  expect_close(out, naive(plan.spec(), in), "after the cache was cleared");
}

TEST(FftPlan, PlansAndRunsFromSeveralThreads) {
  clear_fft_cache();
  Random random(78);
  Array x(DType::complex64, {5, 33, 32});
  x.fill_normal(random);
  std::vector<std::vector<unsigned char>> results(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int repeat = 0; repeat < 5; ++repeat) {
        Array y(DType::complex64, x.extents());
        FftSpec spec = spec_for(x, y, {1, 2});
        spec.centered = true;
        execute(fft_plan(spec), x.address(0), y.address(0));
        results[t] = elements(y);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

TEST(FftPlan, ImpossibleSpecsAreRefused) {
  const Array x(DType::float32, {4, 4});
  using ::testing::HasSubstr;
  const auto error_of = [](const FftSpec& spec) -> std::string {
    try {
      fft_plan(spec);
    } catch (const DTypeError& error) {
      return std::string("DTypeError ") + error.what();
    } catch (const ShapeError& error) {
      return std::string("ShapeError ") + error.what();
    }
    return "";
  };
  FftSpec spec = spec_for(x, x, {0});
  EXPECT_THAT(error_of(spec), HasSubstr("DTypeError [fft_plan] got float32"));
  spec.dtype = DType::complex64;
  spec.axes = {0, 0};
  EXPECT_THAT(error_of(spec), HasSubstr("ShapeError"));
  spec.axes = {2};
  EXPECT_THAT(error_of(spec), HasSubstr("ShapeError"));
  spec.axes = {0};
  spec.in_strides = {4};
  EXPECT_THAT(error_of(spec), HasSubstr("ranks differ"));
  spec.in_strides = {1, 4};
  spec.in_place = true;
  EXPECT_THAT(error_of(spec), HasSubstr("in place: got strides (1, 4) and (4, 1)"));
}

}  // namespace
}  // namespace palimpsest::testing
