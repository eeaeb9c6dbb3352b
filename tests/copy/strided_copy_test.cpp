// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/copy/strided_copy.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace palimpsest {
namespace {

// A value converted by a copy of rank 0.
template <class To, class From>
To converted(From value) {
  To result{};
  strided_copy({&value, dtype_of<From>, {}, {}}, {&result, dtype_of<To>, {}, {}});
  return result;
}

index_t offset_of(index_t i, const Extents& extents, const Strides& strides) {
  index_t offset = 0;
  for (std::size_t axis = extents.size(); axis-- > 0;) {
    offset += i % extents[axis] * strides[axis];
    i /= extents[axis];
  }
  return offset;
}

// Copies between two layouts and compares element by element; all other bytes must stay unchanged.
template <class From, class To>
void check_layouts(const Extents& extents, const Strides& from, const Strides& to) {
  const ReachedRange reads = reached_range(extents, from), writes = reached_range(extents, to);
  std::vector<From> x(static_cast<std::size_t>(reads.high - reads.low));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<From>(i + 1);
  std::vector<To> out(static_cast<std::size_t>(writes.high - writes.low)), expected = out;
  const From* first = x.data() - reads.low;
  strided_copy({first, dtype_of<From>, extents, from},
               {out.data() - writes.low, dtype_of<To>, extents, to});
  for (index_t i = 0; i < element_count(extents); ++i) {
    expected[static_cast<std::size_t>(offset_of(i, extents, to) - writes.low)] =
        static_cast<To>(first[offset_of(i, extents, from)]);
  }
  EXPECT_EQ(out, expected) << to_string(extents) << to_string(from) << to_string(to);
}

TEST(StridedCopy, FollowsBothLayouts) {
  const std::vector<std::pair<Extents, std::vector<Strides>>> layouts = {
      {{3, 4}, {{4, 1}, {1, 3}, {-4, -1}, {8, 2}, {1, -3}}},
      {{2, 3, 4}, {{12, 4, 1}, {1, 2, 6}, {4, 8, 1}, {-12, 4, -1}, {3, 1, 6}}},
      {{1, 5, 1}, {{5, 1, 1}, {99, 2, 7}, {0, -1, 0}}},
      {{40, 70}, {{70, 1}, {1, 40}, {1, -40}}},
      {{3, 33, 65}, {{2145, 65, 1}, {1, 195, 3}, {33, 1, 99}}}};
  for (const auto& [extents, all] : layouts) {
    for (const Strides& from : all) {
      for (const Strides& to : all) {
        check_layouts<std::int8_t, std::int8_t>(extents, from, to);
        check_layouts<double, double>(extents, from, to);
        check_layouts<float, std::int32_t>(extents, from, to);
        check_layouts<std::int16_t, double>(extents, from, to);
      }
    }
  }
}

TEST(StridedCopy, ReadsBroadcastElementsRepeatedly) {
  check_layouts<float, float>({3, 4}, {0, 1}, {4, 1});
  check_layouts<float, float>({3, 4}, {1, 0}, {1, 3});
  check_layouts<float, double>({3, 4}, {0, 0}, {4, 1});
}

TEST(StridedCopy, OfNoElementsTouchesNothing) {
  const Extents extents{3, 0};
  const Strides strides{0, 1};
  strided_copy({nullptr, DType::float32, extents, strides},
               {nullptr, DType::float64, extents, strides});
}

TEST(StridedCopy, OntoItselfChangesNothing) {
  std::vector<float> x{1, 2, 3};
  const Extents extents{3};
  const Strides strides{1};
  const MutableView view{x.data(), DType::float32, extents, strides};
  strided_copy(view, view);
  EXPECT_EQ(x, (std::vector<float>{1, 2, 3}));
}

TEST(StridedCopy, WrapsWhatIsOutOfRange) {
  EXPECT_EQ(converted<std::uint8_t>(300), 44);
  EXPECT_EQ(converted<std::uint8_t>(-1.0), 255);
  EXPECT_EQ(converted<std::int8_t>(200.9), -56);
  EXPECT_EQ(converted<std::uint64_t>(-1.0F), ~std::uint64_t{0});
  EXPECT_EQ(converted<std::int64_t>(18446744073709551616.0), 0);
  EXPECT_EQ(converted<std::uint64_t>(9223372036854775808.0), std::uint64_t{1} << 63);
  EXPECT_EQ(converted<std::int32_t>(std::numeric_limits<double>::quiet_NaN()), 0);
  EXPECT_EQ(converted<std::int32_t>(std::numeric_limits<float>::infinity()), 0);
  EXPECT_EQ(converted<std::int32_t>(-3.9), -3);
  EXPECT_TRUE(std::isinf(converted<float>(1e300)));
}

// Rows are converted in pieces; some pieces hold values that do not fit.
template <class From, class To>
void expect_rows_as_single_numbers() {
  const std::vector<double> values{0,        -0.5,   3.9,  -3.9,  127.5,  -129,    300,
                                   65536.25, 2e9,    -2e9, 2.2e9, 4.3e9,  -9.3e18, 1e19,
                                   1e30,     -1e300, 1,    2,     1e-310, -1e-310, 2147483648.0};
  for (const std::size_t n : {1U, 63U, 64U, 65U, 200U}) {
    for (const std::size_t strange : {0U, 1U, 70U}) {
      std::vector<From> x(n, From{-7.75});
      for (std::size_t i = strange; i < n; i += 1 + strange) {
        x[i] = static_cast<From>(values[i % values.size()]);
      }
      if (n > 66) x[66] = std::numeric_limits<From>::quiet_NaN();
      std::vector<To> y(n);
      const Extents extents{static_cast<index_t>(n)};
      const Strides dense{1};
      strided_copy({x.data(), dtype_of<From>, extents, dense},
                   {y.data(), dtype_of<To>, extents, dense});
      for (std::size_t i = 0; i < n; ++i) {
        To alone{};
        strided_copy({&x[i], dtype_of<From>, {}, {}}, {&alone, dtype_of<To>, {}, {}});
        // Values that fit the middle type are plain casts.
        if (std::abs(x[i]) < From{100}) {
          EXPECT_EQ(y[i], static_cast<To>(static_cast<int>(x[i])));
        }
        if (!(std::abs(x[i]) < From{9e18})) continue;
        const auto whole = static_cast<std::uint64_t>(static_cast<std::int64_t>(x[i]));
        EXPECT_EQ(y[i], static_cast<To>(whole)) << x[i];
        EXPECT_EQ(y[i], alone) << x[i];
      }
    }
  }
}
TEST(StridedCopy, ConvertsRowsToIntegersAsSingleNumbers) {
  expect_rows_as_single_numbers<float, std::int32_t>();
  expect_rows_as_single_numbers<float, std::uint8_t>();
  expect_rows_as_single_numbers<float, std::int64_t>();
  expect_rows_as_single_numbers<double, std::int16_t>();
  expect_rows_as_single_numbers<double, std::uint32_t>();
  expect_rows_as_single_numbers<double, std::uint64_t>();
}

TEST(StridedCopy, ConvertsComplexAndBool) {
  using C64 = std::complex<float>;
  using C128 = std::complex<double>;
  EXPECT_EQ(converted<float>(C128(2, 3)), 2.0F);
  EXPECT_EQ(converted<std::int16_t>(C64(-7.5, 3)), -7);
  EXPECT_EQ(converted<C64>(C128(2, -3)), C64(2, -3));
  EXPECT_EQ(converted<C128>(std::int8_t{-4}), C128(-4, 0));
  EXPECT_TRUE(converted<bool>(C64(0, 1)));
  EXPECT_TRUE(converted<bool>(0.25));
  EXPECT_TRUE(converted<bool>(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(converted<bool>(-0.0));
  EXPECT_EQ(converted<std::int32_t>(true), 1);
}

// Rows of all lengths: vectors and what is left over.
template <class T>
void check_rows_of_truth() {
  using Number = std::complex<T>;
  constexpr T kNaN = std::numeric_limits<T>::quiet_NaN(),
              kTiny = std::numeric_limits<T>::denorm_min();
  const std::vector<Number> values{{0, 0},     {1, 0},      {0, 1},    {-T{0}, T{0}}, {0, -T{0}},
                                   {kTiny, 0}, {0, -kTiny}, {kNaN, 0}, {0, kNaN},     {2, -3}};
  for (index_t n = 0; n <= 70; ++n) {
    std::vector<Number> x;
    for (index_t i = 0; i < n; ++i) x.push_back(values[static_cast<std::size_t>(i * 7 % 10)]);
    std::vector<unsigned char> y(static_cast<std::size_t>(n) + 1, 7);
    const index_t step = 1;
    strided_copy({x.data(), dtype_of<Number>, {&n, 1}, {&step, 1}},
                 {y.data(), DType::bool_, {&n, 1}, {&step, 1}});
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(y[i], x[i] == Number{} ? 0 : 1) << i << " of " << n << ": " << x[i];
    }
    EXPECT_EQ(y.back(), 7);
  }
}

TEST(StridedCopy, AComplexNumberIsTrueUnlessBothPartsAreZero) {
  check_rows_of_truth<float>();
  check_rows_of_truth<double>();
}

TEST(StridedCopy, TakesAnyByteButZeroAsTrue) {
  const unsigned char two = 2;
  std::int32_t result = -1;
  strided_copy({&two, DType::bool_, {}, {}}, {&result, DType::int32, {}, {}});
  EXPECT_EQ(result, 1);
}

TEST(StridedCopy, KeepsTheBitsOfOneDType) {
  const std::uint64_t signalling = 0x7ff0000000000001;
  double x, y = 0;
  std::memcpy(&x, &signalling, sizeof x);
  strided_copy({&x, DType::float64, {}, {}}, {&y, DType::float64, {}, {}});
  EXPECT_EQ(std::memcmp(&x, &y, sizeof x), 0);
}

TEST(StridedFill, WritesTheValueThroughTheView) {
  std::vector<std::complex<float>> values(12);
  const std::complex<float> value(1, 2);
  const Extents extents{2, 3};
  const Strides strides{6, 2};
  strided_fill(&value, {values.data(), DType::complex64, extents, strides});
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], i % 2 == 0 ? value : std::complex<float>()) << i;
  }
}

TEST(StridedFill, MayTakeTheValueFromWhatItFills) {
  std::vector<std::int32_t> values{1, 2, 3, 4};
  const Extents extents{4};
  const Strides strides{1};
  strided_fill(&values[2], {values.data(), DType::int32, extents, strides});
  EXPECT_EQ(values, (std::vector<std::int32_t>(4, 3)));
}

TEST(CopyRowBetween, ConvertsOneRow) {
  const std::int16_t x[] = {1, 2, 3, 4};
  double y[2] = {};
  const auto in = reinterpret_cast<const std::byte*>(x);
  copy_row_between(DType::int16, DType::float64)(in, 4, reinterpret_cast<std::byte*>(y), 8, 2);
  EXPECT_EQ(y[0], 1.0);
  EXPECT_EQ(y[1], 3.0);
}

}  // namespace
}  // namespace palimpsest
