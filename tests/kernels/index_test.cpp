// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/arrays/index.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <complex>
#include <string>
#include <vector>

#include "kernels/arrays.hpp"

namespace palimpsest::testing {
namespace {

// A random problem: x (batch..., sizes...) indexed by D arrays of the extents `positions`.
struct Problem {
  Extents batch, sizes, positions;
  std::vector<Array> indices;

  Extents whole() const { return joined(sizes); }
  Extents picked() const { return joined(positions); }
  Extents joined(const Extents& tail) const {
    Extents extents = batch;
    for (const index_t n : tail) extents.push_back(n);
    return extents;
  }
  std::vector<ConstView> views() const {
    std::vector<ConstView> views;
    for (const Array& i : indices) views.push_back(i.view());
    return views;
  }
  // The row-major number in `sizes` of the element that position k selects.
  index_t target(index_t k) const {
    index_t n = 0;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      const auto i = indices[d].get<std::int64_t>(k);
      n = n * sizes[d] + (i < 0 ? i + sizes[d] : i);
    }
    return n;
  }
};

Problem random_problem(Random& random) {
  Problem p;
  p.batch = random_extents(random, 2, 20, 40);
  p.sizes = random_extents(random, 3, 9, 200);
  if (p.sizes.empty()) p.sizes.push_back(5);
  p.positions = random_extents(random, 3, 700, 1500);
  for (const index_t size : p.sizes) {
    p.indices.emplace_back(DType::int64, p.positions, random_strides(random, p.positions, true));
    for (index_t k = 0; k < p.indices.back().count(); ++k) {
      p.indices.back().set<std::int64_t>(k, uniform(random, -size, size - 1));
    }
  }
  return p;
}

TEST(Gather, PicksElementsForEveryBatchElement) {
  Random random(51);
  for (int trial = 0; trial < 300; ++trial) {
    const Problem p = random_problem(random);
    const Array x = random_array(random, random_dtype(random), p.whole(), true);
    Array y(x.dtype(), p.picked(), random_strides(random, p.picked(), false));
    run_gather(x.view(), p.views(), y.mutable_view());
    const index_t n = element_count(p.positions), size = element_count(p.sizes);
    for (index_t i = 0; i < y.count(); ++i) {
      ASSERT_EQ(y.value(i), x.value(i / n * size + p.target(i % n)));
    }
    ASSERT_TRUE(y.gaps_are_intact());
  }
}

TEST(Scatter, AddsEveryOccurrenceOrKeepsTheLast) {
  Random random(52);
  for (int trial = 0; trial < 300; ++trial) {
    const Problem p = random_problem(random);
    const Array x = random_array(random, random_dtype(random), p.picked(), true);
    const auto start = trial % 2 == 0 ? ScatterStart::zero : ScatterStart::keep;
    for (const bool add : {true, false}) {
      Array y = random_array(random, x.dtype(), p.whole(), false);
      std::vector<Array> elements_of_y;
      Array expected(x.dtype(), p.whole());
      for (index_t i = 0; i < y.count(); ++i) {
        expected.set_value(i, start == ScatterStart::zero ? 0.0 : y.value(i));
      }
      const index_t n = element_count(p.positions), size = element_count(p.sizes);
      for (index_t i = 0; i < x.count(); ++i) {
        const index_t target = i / n * size + p.target(i % n);
        expected.set_value(target, x.value(i) + (add ? expected.value(target) : 0.0));
      }
      (add ? run_scatter_add : run_scatter_set)(x.view(), p.views(), y.mutable_view(), start);
      ASSERT_EQ(elements(y), elements(expected)) << name_of(x.dtype()) << add;
      ASSERT_TRUE(start == ScatterStart::keep || y.count() > 0);
    }
  }
}

// Batch elements side by side, like the columns of a matrix whose rows are selected.
TEST(Index, RowsAreThoseOfTheirElements) {
  Random random(54);
  for (const auto& [row, n, size] : {std::array<index_t, 3>{1, 40, 9},
                                     {2, 700, 30},
                                     {17, 600, 50},
                                     {5000, 40, 7},
                                     {9000, 3, 2}}) {
    Array index(DType::int64, {n});
    for (index_t k = 0; k < n; ++k) index.set<std::int64_t>(k, uniform(random, -size, size - 1));
    const auto target = [&](index_t k) {
      const auto i = index.get<std::int64_t>(k);
      return i < 0 ? i + size : i;
    };
    for (const DType dtype : {DType::bool_, DType::int16, DType::float32, DType::complex128}) {
      Array x(dtype, {row, size}, {1, row + 3}), picked(dtype, {row, n}, {1, row});
      for (index_t i = 0; i < row * size; ++i) x.set_value(i, static_cast<double>(i % 2));
      run_gather(x.view(), std::array{index.view()}, picked.mutable_view());
      for (index_t i = 0; i < row * n; ++i) {
        ASSERT_EQ(picked.value(i), x.value(i / n * size + target(i % n))) << row << ", " << i;
      }
      ASSERT_TRUE(picked.gaps_are_intact());
      for (const bool add : {true, false}) {
        Array y(dtype, {row, size}, {1, row + 3});
        std::vector<std::complex<double>> expected(static_cast<std::size_t>(row * size));
        for (index_t i = 0; i < row * n; ++i) {
          auto& e = expected[static_cast<std::size_t>(i / n * size + target(i % n))];
          e = picked.value(i) + (add ? e : 0.0);
        }
        (add ? run_scatter_add : run_scatter_set)(picked.view(), std::array{index.view()},
                                                  y.mutable_view(), ScatterStart::zero);
        for (index_t i = 0; i < row * size; ++i) {
          const auto e = expected[static_cast<std::size_t>(i)];
          ASSERT_EQ(y.value(i), dtype == DType::bool_ ? std::min(e.real(), 1.0) : e)
              << row << ", " << i;
        }
        ASSERT_TRUE(y.gaps_are_intact());
      }
    }
  }
}

TEST(Gather, OfNothing) {
  const Array x(DType::float32, {4, 5}), index(DType::int64, {0});
  Array y(DType::float32, {4, 0});
  run_gather(x.view(), std::array{index.view()}, y.mutable_view());
  EXPECT_TRUE(y.gaps_are_intact());
  const Array values(DType::float32, {4, 0});
  Array out(DType::float32, {4, 5});
  run_scatter_add(values.view(), std::array{index.view()}, out.mutable_view(), ScatterStart::zero);
  for (index_t i = 0; i < 20; ++i) EXPECT_EQ(out.value(i), 0.0);
}

TEST(Scatter, ResultsDoNotDependOnThreads) {
  Random random(53);
  Array index(DType::int64, {200000}), x(DType::complex64, {6, 200000});
  for (index_t k = 0; k < 200000; ++k) index.set<std::int64_t>(k, uniform(random, 0, 999));
  x.fill_normal(random);
  expect_same_on_threads([&] {
    Array y(DType::complex64, {6, 1000});
    run_scatter_add(x.view(), std::array{index.view()}, y.mutable_view(), ScatterStart::zero);
    return elements(y);
  });
  Array big(DType::complex64, {6, 1000});
  big.fill_normal(random);
  expect_same_on_threads([&] {
    Array y(DType::complex64, {6, 200000});
    run_gather(big.view(), std::array{index.view()}, y.mutable_view());
    return elements(y);
  });
}

TEST(IndexRange, AcceptsWhatNumPyDoesAndNamesTheFirstOffender) {
  Random random(54);
  Array index(DType::int64, {4, 6}, {1, -5}, 0);
  for (index_t k = 0; k < 24; ++k) index.set<std::int64_t>(k, uniform(random, -10, 9));
  EXPECT_NO_THROW(check_index_range(index.view(), 10, "take"));
  EXPECT_NO_THROW(check_index_range(Array(DType::int64, {0}).view(), 0, "take"));
  for (const std::int64_t wrong : {10, -11}) {
    index.set<std::int64_t>(17, wrong);
    try {
      check_index_range(index.view(), 10, "take");
      FAIL();
    } catch (const ValueError& error) {
      EXPECT_THAT(error.what(),
                  ::testing::HasSubstr("[take] index out of range: got " + std::to_string(wrong) +
                                       ", expected one in the range [-10, 10)"));
    }
  }
}

}  // namespace
}  // namespace palimpsest::testing
