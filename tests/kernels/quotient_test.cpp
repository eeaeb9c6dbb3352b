// SPDX-License-Identifier: Apache-2.0
// Quotients by one number for all elements equal those of the processor, bit for bit.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "kernels/targets.hpp"
#include "palimpsest/kernels/elementwise/elementwise.hpp"

namespace palimpsest::testing {
namespace {

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
template <class T>
constexpr DType kDType = sizeof(T) == 4 ? DType::float32 : DType::float64;
__extension__ using Wide = unsigned __int128;

template <class T>
std::vector<T> quotients(const std::vector<T>& a, const T& b) {
  ElementwiseProgram program;
  const int x = program.input(kDType<T>), y = program.input(kDType<T>);
  program.output(program.apply(ScalarOp::div, {x, y}));
  const index_t extent = static_cast<index_t>(a.size()), dense = 1, still = 0;
  std::vector<T> out(a.size());
  run_elementwise(program,
                  std::array{ConstView{a.data(), kDType<T>, {&extent, 1}, {&dense, 1}},
                             ConstView{&b, kDType<T>, {&extent, 1}, {&still, 1}}},
                  std::array{MutableView{out.data(), kDType<T>, {&extent, 1}, {&dense, 1}}});
  return out;
}

template <class T>
void expect_divided(const std::vector<T>& a, T b) {
  for (const std::int64_t target : vector_targets()) {
    const TargetScope scope(target);
    const std::vector<T> q = quotients(a, b);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const T expected = a[i] / b;
      ASSERT_EQ(std::isnan(q[i]), std::isnan(expected)) << a[i] << " / " << b;
      if (std::isnan(expected)) continue;
      ASSERT_EQ(std::bit_cast<Bits<T>>(q[i]), std::bit_cast<Bits<T>>(expected))
          << hwy::TargetName(target) << " " << a[i] << " / " << b;
    }
  }
}

// Dividends for which the quotient by the odd integer b is next to the middle of two numbers:
// a 2^k = m b + c, where m has one bit more than a number, and c is small.
template <class T>
std::vector<T> next_to_middles(std::uint64_t b) {
  constexpr int k = std::numeric_limits<T>::digits + 1;
  constexpr std::uint64_t mask = (std::uint64_t{1} << k) - 1;
  std::uint64_t inverse = b;  // modulo 2^k, by Newton's method from three right bits
  for (int i = 0; i < 6; ++i) inverse *= 2 - b * inverse;
  std::vector<T> found;
  for (std::uint64_t c = 1; c < 64; c += 2) {
    for (const std::uint64_t signed_c : {c, std::uint64_t{0} - c}) {
      const std::uint64_t m = (0 - signed_c) * inverse & mask;
      if (m >> (k - 1) == 0) continue;
      const Wide product = static_cast<Wide>(m) * b;
      const Wide sum = signed_c == c ? product + c : product - c;
      EXPECT_EQ(static_cast<std::uint64_t>(sum) & mask, 0U);
      found.push_back(static_cast<T>(static_cast<std::uint64_t>(sum >> k)));
    }
  }
  return found;
}

template <class T>
void expect_rounded_next_to_middles() {
  std::mt19937_64 draw(3);
  constexpr int digits = std::numeric_limits<T>::digits;
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t b = (std::uint64_t{1} << (digits - 1) | draw() >> (65 - digits)) | 1;
    std::vector<T> a;
    while (a.size() < 300) {
      for (const T hard : next_to_middles<T>(b)) {
        a.push_back(hard);
        a.push_back(-hard);
      }
    }
    const T scale = std::ldexp(T{1}, -digits);
    for (T& x : a) x *= scale;
    expect_divided(a, static_cast<T>(b) * scale);
  }
}
TEST(Quotients, NextToTheMiddleOfTwoNumbersAreRounded) {
  expect_rounded_next_to_middles<float>();
  expect_rounded_next_to_middles<double>();
}

template <class T>
void expect_any_numbers() {
  std::mt19937_64 draw(5);
  using Limits = std::numeric_limits<T>;
  std::uniform_real_distribution<T> mantissas(-2, 2);
  for (int round = 0; round < 400; ++round) {
    const int reach = round % 4 == 0 ? Limits::max_exponent : Limits::max_exponent / 4;
    std::uniform_int_distribution<int> exponents(-reach, reach - 2);
    std::vector<T> a(300);
    for (T& x : a) x = std::ldexp(mantissas(draw), exponents(draw));
    expect_divided(a, std::ldexp(mantissas(draw), exponents(draw)));
  }
}
TEST(Quotients, OfNumbersOfEveryMagnitudeAreThoseOfTheProcessor) {
  expect_any_numbers<float>();
  expect_any_numbers<double>();
}

template <class T>
void expect_specials() {
  using Limits = std::numeric_limits<T>;
  const T specials[] = {T{0},          -T{0},          Limits::min(),      Limits::denorm_min(),
                        Limits::max(), -Limits::max(), Limits::infinity(), Limits::quiet_NaN()};
  for (const T special : specials) {
    std::vector<T> a(150, T{3});
    expect_divided(a, special);
    for (const std::size_t place : {0, 17, 63, 127, 128, 149}) {
      a.assign(150, T{1.75});
      a[place] = special;
      expect_divided(a, T{0.7});
    }
  }
}
TEST(Quotients, OfAndBySpecialValuesAreThoseOfTheProcessor) {
  expect_specials<float>();
  expect_specials<double>();
}

}  // namespace
}  // namespace palimpsest::testing
