// SPDX-License-Identifier: Apache-2.0
// Positions of extrema, cumulative sums and products, and extrema whose bits depend on the order.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/arrays.hpp"
#include "kernels/targets.hpp"
#include "palimpsest/kernels/arrays/strided_loop.hpp"
#include "palimpsest/kernels/reduce/arg_reduce.hpp"
#include "palimpsest/kernels/reduce/reduce.hpp"
#include "palimpsest/kernels/reduce/scan.hpp"

namespace palimpsest::testing {
namespace {

template <class T>
index_t naive_position(const std::vector<T>& x, bool is_max) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < x.size(); ++i) {
    if (x[best] != x[best]) break;
    if (x[i] != x[i] || (is_max ? x[i] > x[best] : x[i] < x[best])) best = i;
  }
  return static_cast<index_t>(best);
}

template <class T>
index_t position(const std::vector<T>& x, index_t step, ReduceOp op) {
  const auto n = static_cast<index_t>(x.size());
  Array array(dtype_of<T>, {n}, {step}), out(DType::int64, {});
  for (index_t i = 0; i < n; ++i) array.set<T>(i, x[static_cast<std::size_t>(i)]);
  run_arg_reduce(op, array.view(), std::array{index_t{0}}, out.mutable_view());
  return out.get<index_t>(0);
}

template <class T>
class ArgReduce : public ::testing::Test {};
using Numbers = ::testing::Types<float, double, std::int8_t, std::uint8_t, std::int32_t,
                                 std::uint64_t, std::int64_t>;
TYPED_TEST_SUITE(ArgReduce, Numbers);

TYPED_TEST(ArgReduce, FindsTheFirstOfEqualsInLinesOfAnyLength) {
  using T = TypeParam;
  Random random(31);
  for (const index_t n : {1, 2, 17, 255, 256, 257, 600, 5000, 100000}) {
    for (const index_t range : {3, 100, 1000000}) {
      std::vector<T> x;
      for (index_t i = 0; i < n; ++i) x.push_back(static_cast<T>(uniform(random, 0, range)));
      for (const ReduceOp op : {ReduceOp::max, ReduceOp::min}) {
        const index_t expected = naive_position(x, op == ReduceOp::max);
        for (const index_t step : {1, -1, 3}) {
          EXPECT_EQ(position(x, step, op), expected) << n << " " << range << " " << step;
        }
      }
    }
  }
}

TEST(ArgReduceOfFloats, TheFirstNanWinsAndZerosOfBothSignsAreEqual) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const index_t n : {300, 70000}) {
    for (const index_t at : {0, 1, 255, 256, 299}) {
      std::vector<float> x(static_cast<std::size_t>(n), 1.0F);
      x[static_cast<std::size_t>(at)] = nan;
      x[static_cast<std::size_t>(n - 1)] = nan;
      EXPECT_EQ(position(x, 1, ReduceOp::max), at);
      EXPECT_EQ(position(x, 1, ReduceOp::min), at);
    }
    std::vector<float> zeros(static_cast<std::size_t>(n), -0.0F);
    zeros[290] = 0.0F;
    EXPECT_EQ(position(zeros, 1, ReduceOp::max), 0);
    EXPECT_EQ(position(zeros, 1, ReduceOp::min), 0);
  }
}

TEST(ArgReduceOfFloats, RowsAndThreadsGiveTheSamePositions) {
  Random random(32);
  for (const Extents& extents : {Extents{1, 400000}, Extents{300, 1024}, Extents{1024, 300}}) {
    Array x(DType::float32, extents);
    x.fill_normal(random);
    for (const index_t axis : {0, 1}) {
      expect_same_on_threads([&] {
        Array out(DType::int64, {extents[static_cast<std::size_t>(1 - axis)]});
        run_arg_reduce(ReduceOp::max, x.view(), std::array{axis}, out.mutable_view());
        return elements(out);
      });
    }
  }
}

// Zeros of both signs and NaN with different bits: the winner among equals is part of the result.
TEST(Extrema, HaveTheBitsOfThePlainLoopsOnEveryInstructionSet) {
  Random random(33);
  for (const index_t n : {100, 256, 512, 4096, 5000, 70000}) {
    for (const int kind : {0, 1}) {
      Array x(DType::float32, {n});
      for (index_t i = 0; i < n; ++i) {
        const bool odd = uniform(random, 0, 1) == 1;
        const bool is_nan = kind == 1 && uniform(random, 0, n / 3) == 0;
        const float nan = std::numeric_limits<float>::quiet_NaN();
        x.set<float>(i, is_nan ? (odd ? nan : -nan) : (odd ? 0.0F : -0.0F));
      }
      for (const ReduceOp op : {ReduceOp::max, ReduceOp::min}) {
        const auto result = [&](std::int64_t target) {
          const TargetScope scope(target);
          Array out(DType::float32, {});
          run_reduce(op, x.view(), std::array{index_t{0}}, out.mutable_view());
          return elements(out);
        };
        const auto expected = result(0);
        for (const std::int64_t target : vector_targets()) {
          EXPECT_EQ(result(target), expected) << n << " " << hwy::TargetName(target);
        }
      }
    }
  }
}

template <class T>
class Scan : public ::testing::Test {};
using Summed = ::testing::Types<float, double, std::int64_t, std::uint64_t, std::complex<float>,
                                std::complex<double>>;
TYPED_TEST_SUITE(Scan, Summed);

// Additions in sequence, in every layout: bit for bit.
TYPED_TEST(Scan, IsOneStepAfterTheOther) {
  using T = TypeParam;
  Random random(34);
  for (const Extents& extents : {Extents{1}, Extents{1000}, Extents{3, 700}, Extents{700, 3},
                                 Extents{9, 300}, Extents{300, 9}, Extents{5, 257, 4}}) {
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod}) {
        Array x = random_array(random, dtype_of<T>, extents, true);
        Array out(dtype_of<T>, extents, random_strides(random, extents, false));
        run_scan(op, x.view(), axis, out.mutable_view());
        index_t inner = 1;
        for (std::size_t k = axis + 1; k < extents.size(); ++k) inner *= extents[k];
        for (index_t i = 0; i < x.count(); ++i) {
          const bool is_first = i / inner % extents[axis] == 0;
          T expected = x.get<T>(i);
          if (!is_first) {
            const T before = out.get<T>(i - inner), now = expected;
            if constexpr (std::is_integral_v<T>) {
              const auto a = static_cast<std::uint64_t>(before),
                         b = static_cast<std::uint64_t>(now);
              expected = static_cast<T>(op == ReduceOp::sum ? a + b : a * b);
            } else if constexpr (std::is_floating_point_v<T>) {
              expected = op == ReduceOp::sum ? before + now : before * now;
            } else {
              expected = op == ReduceOp::sum
                             ? before + now
                             : T(before.real() * now.real() - before.imag() * now.imag(),
                                 before.real() * now.imag() + before.imag() * now.real());
            }
          }
          const T got = out.get<T>(i);
          if (got != got && expected != expected) continue;
          ASSERT_EQ(got, expected) << to_string(extents) << " " << axis << " " << i;
        }
        EXPECT_TRUE(out.gaps_are_intact());
      }
    }
  }
}

TEST(ScanOfLines, ConvertsWorksInPlaceAndOnThreads) {
  Array small(DType::int8, {600}), wide(DType::int64, {600});
  for (index_t i = 0; i < 600; ++i) small.set<std::int8_t>(i, 100);
  run_scan(ReduceOp::sum, small.view(), 0, wide.mutable_view());
  EXPECT_EQ(wide.get<std::int64_t>(599), 60000);
  Random random(35);
  Array x(DType::float32, {40, 3000}), out(DType::float32, {40, 3000});
  x.fill_normal(random);
  run_scan(ReduceOp::sum, x.view(), 1, out.mutable_view());
  expect_same_on_threads([&] {
    Array same(x);
    run_scan(ReduceOp::sum, same.view(), 1, same.mutable_view());
    EXPECT_EQ(elements(same), elements(out));
    return elements(same);
  });
}

}  // namespace
}  // namespace palimpsest::testing
