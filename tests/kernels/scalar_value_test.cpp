// SPDX-License-Identifier: Apache-2.0
// Values of every op on bools, integers and real numbers, against the definition.
#include <cmath>
#include <compare>
#include <functional>
#include <limits>
#include <map>
#include <numbers>
#include <utility>

#include "kernels/scalar_runner.hpp"

namespace palimpsest::testing {
namespace {

using Real = long double;

// Definitions of ops in higher precision than any kernel; operands are converted as by the op.
const std::map<ScalarOp, std::function<Real(Real, Real, Real)>>& real_definitions() {
  using R = Real;
  static const std::map<ScalarOp, std::function<R(R, R, R)>> table{
      {ScalarOp::add, [](R a, R b, R) { return a + b; }},
      {ScalarOp::sub, [](R a, R b, R) { return a - b; }},
      {ScalarOp::mul, [](R a, R b, R) { return a * b; }},
      {ScalarOp::div, [](R a, R b, R) { return a / b; }},
      {ScalarOp::fma, [](R a, R b, R c) { return a * b + c; }},
      {ScalarOp::neg, [](R a, R, R) { return -a; }},
      {ScalarOp::abs, [](R a, R, R) { return std::abs(a); }},
      {ScalarOp::sign, [](R a, R, R) { return a > 0   ? R{1}
                                              : a < 0 ? R{-1}
                                                      : R{0}; }},
      {ScalarOp::reciprocal, [](R a, R, R) { return 1 / a; }},
      {ScalarOp::square, [](R a, R, R) { return a * a; }},
      {ScalarOp::abs2, [](R a, R, R) { return a * a; }},
      {ScalarOp::sqrt, [](R a, R, R) { return std::sqrt(a); }},
      {ScalarOp::pow, [](R a, R b, R) { return std::pow(a, b); }},
      {ScalarOp::minimum, [](R a, R b, R) { return std::min(a, b); }},
      {ScalarOp::maximum, [](R a, R b, R) { return std::max(a, b); }},
      {ScalarOp::floor_div, [](R a, R b, R) { return std::floor(a / b); }},
      {ScalarOp::mod, [](R a, R b, R) { return a - std::floor(a / b) * b; }},
      {ScalarOp::round, [](R a, R, R) { return std::nearbyint(a); }},
      {ScalarOp::eq, [](R a, R b, R) { return static_cast<R>(a == b); }},
      {ScalarOp::ne, [](R a, R b, R) { return static_cast<R>(a != b); }},
      {ScalarOp::lt, [](R a, R b, R) { return static_cast<R>(a < b); }},
      {ScalarOp::le, [](R a, R b, R) { return static_cast<R>(a <= b); }},
      {ScalarOp::gt, [](R a, R b, R) { return static_cast<R>(a > b); }},
      {ScalarOp::ge, [](R a, R b, R) { return static_cast<R>(a >= b); }},
      {ScalarOp::isnan, [](R a, R, R) { return static_cast<R>(std::isnan(a)); }},
      {ScalarOp::isinf, [](R a, R, R) { return static_cast<R>(std::isinf(a)); }},
      {ScalarOp::isfinite, [](R a, R, R) { return static_cast<R>(std::isfinite(a)); }},
      {ScalarOp::logical_and, [](R a, R b, R) { return static_cast<R>(a != 0 && b != 0); }},
      {ScalarOp::logical_or, [](R a, R b, R) { return static_cast<R>(a != 0 || b != 0); }},
      {ScalarOp::logical_xor, [](R a, R b, R) { return static_cast<R>((a != 0) != (b != 0)); }},
      {ScalarOp::logical_not, [](R a, R, R) { return static_cast<R>(a == 0); }},
      {ScalarOp::exp, [](R a, R, R) { return std::exp(a); }},
      {ScalarOp::expm1, [](R a, R, R) { return std::expm1(a); }},
      {ScalarOp::log, [](R a, R, R) { return std::log(a); }},
      {ScalarOp::log1p, [](R a, R, R) { return std::log1p(a); }},
      {ScalarOp::log2, [](R a, R, R) { return std::log2(a); }},
      {ScalarOp::log10, [](R a, R, R) { return std::log10(a); }},
      {ScalarOp::sin, [](R a, R, R) { return std::sin(a); }},
      {ScalarOp::cos, [](R a, R, R) { return std::cos(a); }},
      {ScalarOp::tan, [](R a, R, R) { return std::tan(a); }},
      {ScalarOp::arcsin, [](R a, R, R) { return std::asin(a); }},
      {ScalarOp::arccos, [](R a, R, R) { return std::acos(a); }},
      {ScalarOp::arctan, [](R a, R, R) { return std::atan(a); }},
      {ScalarOp::sinh, [](R a, R, R) { return std::sinh(a); }},
      {ScalarOp::cosh, [](R a, R, R) { return std::cosh(a); }},
      {ScalarOp::tanh, [](R a, R, R) { return std::tanh(a); }},
      {ScalarOp::arctan2, [](R a, R b, R) { return std::atan2(a, b); }},
      {ScalarOp::hypot, [](R a, R b, R) { return std::hypot(a, b); }},
      {ScalarOp::sinc,
       [](R a, R, R) {
         const R x = std::numbers::pi_v<R> * a;
         return x == 0 ? R{1} : std::sin(x) / x;
       }},
      {ScalarOp::erf, [](R a, R, R) { return std::erf(a); }},
      {ScalarOp::sigmoid, [](R a, R, R) { return 1 / (1 + std::exp(-a)); }},
      {ScalarOp::conj, [](R a, R, R) { return a; }},
      {ScalarOp::angle, [](R a, R, R) { return a < 0 ? std::numbers::pi_v<R> : R{0}; }},
      {ScalarOp::real, [](R a, R, R) { return a; }},
      {ScalarOp::imag, [](R, R, R) { return R{0}; }},
      {ScalarOp::where, [](R a, R b, R c) { return a != 0 ? b : c; }},
      {ScalarOp::identity, [](R a, R, R) { return a; }},
  };
  return table;
}

// Ops whose domain is [0, inf), (-1, inf) or [-1, 1].
bool takes_positive(ScalarOp op) {
  return op == ScalarOp::sqrt || op == ScalarOp::log || op == ScalarOp::log2 ||
         op == ScalarOp::log10 || op == ScalarOp::pow || op == ScalarOp::log1p;
}
bool takes_unit_interval(ScalarOp op) { return op == ScalarOp::arcsin || op == ScalarOp::arccos; }

template <class T>
class RealValues : public ::testing::Test {};
using RealTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(RealValues, RealTypes);

template <class T>
std::vector<T> operands_for(ScalarOp op, Random& random) {
  std::vector<T> values;
  for (int i = 0; i < 1500; ++i) {
    if (takes_unit_interval(op)) {
      values.push_back(std::uniform_real_distribution<T>(-1, 1)(random));
    } else if (takes_positive(op)) {
      values.push_back(std::uniform_real_distribution<T>(T{0.01}, 4)(random));
    } else if (i % 3 == 0) {
      values.push_back(static_cast<T>(uniform(random, -3, 3)));
    } else {
      values.push_back(std::uniform_real_distribution<T>(-4, 4)(random));
    }
  }
  return values;
}

TYPED_TEST(RealValues, AgreeWithTheDefinitionToAFewRoundings) {
  using T = TypeParam;
  Random random(1);
  for (const auto& [op, definition] : real_definitions()) {
    std::vector<std::vector<T>> operands;
    for (int k = 0; k < arity(op); ++k) operands.push_back(operands_for<T>(op, random));
    const bool division = op == ScalarOp::floor_div || op == ScalarOp::mod;
    if (op == ScalarOp::div || division) {
      for (T& value : operands[1]) value = value == 0 ? T{0.5} : value;
    }
    if (division) {  // multiples of 1/4: quotients and remainders are exact
      for (auto& operand : operands) {
        for (T& value : operand) value = std::nearbyint(value * 4) / 4;
      }
      for (T& value : operands[1]) value = value == 0 ? T{0.25} : value;
    }
    if (op == ScalarOp::reciprocal) {
      for (T& value : operands[0]) value = value == 0 ? T{2} : value;
    }
    std::vector<Real> results;
    if (const DType dtypes[] = {dtype_of<T>, dtype_of<T>, dtype_of<T>};
        is_bool(result_dtype(op, std::span(dtypes).first(operands.size())))) {
      for (const bool value : apply<bool, T>(op, operands)) results.push_back(value);
    } else {
      for (const T value : apply<T, T>(op, operands)) results.push_back(value);
    }
    const Real eps = std::numeric_limits<T>::epsilon();
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Real a = operands[0][i], b = operands.size() > 1 ? operands[1][i] : T{};
      const Real c = operands.size() > 2 ? operands[2][i] : T{};
      const Real expected = definition(a, b, c);
      // Sums may cancel; sin(pi a) inherits the rounding of pi a.
      const Real scale = op == ScalarOp::fma || op == ScalarOp::add || op == ScalarOp::sub ||
                                 op == ScalarOp::sinc || op == ScalarOp::tan
                             ? std::max<Real>(20, std::abs(expected))
                             : std::abs(expected);
      EXPECT_LE(std::abs(results[i] - expected),
                (op == ScalarOp::tan ? 4 + expected * expected : 4) * eps * scale)
          << name_of(op) << "(" << a << ", " << b << ", " << c << ")";
    }
  }
}

TYPED_TEST(RealValues, SpecialValues) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  using V = std::vector<std::vector<T>>;
  for (const ScalarOp op : {ScalarOp::minimum, ScalarOp::maximum}) {
    for (const T r : apply<T, T>(op, V{{nan, 1, nan}, {1, nan, nan}})) EXPECT_TRUE(std::isnan(r));
  }
  EXPECT_EQ((apply<bool, T>(ScalarOp::isnan, V{{nan, inf, 1}})),
            (std::vector<bool>{true, false, false}));
  EXPECT_EQ((apply<bool, T>(ScalarOp::isinf, V{{nan, -inf, 1}})),
            (std::vector<bool>{false, true, false}));
  EXPECT_EQ((apply<bool, T>(ScalarOp::isfinite, V{{nan, -inf, 1}})),
            (std::vector<bool>{false, false, true}));
  EXPECT_EQ((apply<bool, T>(ScalarOp::eq, V{{nan, inf}, {nan, inf}})),
            (std::vector<bool>{false, true}));
  EXPECT_EQ((apply<bool, T>(ScalarOp::logical_not, V{{nan, 0, -T{0}}})),
            (std::vector<bool>{false, true, true}));
  EXPECT_EQ((apply<T, T>(ScalarOp::round, V{{T{0.5}, T{1.5}, T{-2.5}}})),
            (std::vector<T>{0, 2, -2}));
  EXPECT_EQ((apply<T, T>(ScalarOp::sigmoid, V{{-1000, 0, 1000}})), (std::vector<T>{0, T{0.5}, 1}));
  EXPECT_TRUE(std::isnan(apply<T, T>(ScalarOp::sign, V{{nan}})[0]));
  EXPECT_EQ((apply<T, T>(ScalarOp::floor_div, V{{1, -1}, {0, 0}})), (std::vector<T>{inf, -inf}));
  EXPECT_TRUE(std::isnan(apply<T, T>(ScalarOp::mod, V{{1}, {0}})[0]));
  EXPECT_FLOAT_EQ((apply<T, T>(ScalarOp::angle, V{{-2}})[0]), std::numbers::pi_v<T>);
}

template <class T>
class IntegerValues : public ::testing::Test {};
using IntegerTypes = ::testing::Types<std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                                      std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(IntegerValues, IntegerTypes);

template <class T>
std::vector<T> edge_cases(Random& random) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values{0,
                        1,
                        2,
                        3,
                        static_cast<T>(-1),
                        Limits::min(),
                        Limits::max(),
                        static_cast<T>(Limits::max() - 1)};
  while (values.size() < 40) values.push_back(static_cast<T>(random()));
  while (values.size() < 60) values.push_back(static_cast<T>(uniform(random, 0, 9)));
  return values;
}

__extension__ using W = __int128;

// Definitions on sufficiently wide integers; the result wraps to T.
template <class T>
std::map<ScalarOp, std::function<W(W, W)>> integer_definitions() {
  const auto quotient = [](W a, W b) {
    if (b == 0) return W{0};
    return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
  };
  return {
      {ScalarOp::add, [](W a, W b) { return a + b; }},
      {ScalarOp::sub, [](W a, W b) { return a - b; }},
      {ScalarOp::neg, [](W a, W) { return -a; }},
      {ScalarOp::abs, [](W a, W) { return a < 0 ? -a : a; }},
      {ScalarOp::sign, [](W a, W) { return W{a > 0} - W{a < 0}; }},
      {ScalarOp::minimum, [](W a, W b) { return a < b ? a : b; }},
      {ScalarOp::maximum, [](W a, W b) { return a > b ? a : b; }},
      {ScalarOp::floor_div, quotient},
      {ScalarOp::mod, [quotient](W a, W b) { return b == 0 ? W{0} : a - quotient(a, b) * b; }},
      {ScalarOp::bitwise_and, [](W a, W b) { return a & b; }},
      {ScalarOp::bitwise_or, [](W a, W b) { return a | b; }},
      {ScalarOp::bitwise_xor, [](W a, W b) { return a ^ b; }},
      {ScalarOp::bitwise_not, [](W a, W) { return ~a; }},
      {ScalarOp::round, [](W a, W) { return a; }},
      {ScalarOp::conj, [](W a, W) { return a; }},
      {ScalarOp::real, [](W a, W) { return a; }},
      {ScalarOp::imag, [](W, W) { return W{0}; }},
      {ScalarOp::identity, [](W a, W) { return a; }},
  };
}

TYPED_TEST(IntegerValues, AreExactAndWrap) {
  using T = TypeParam;
  Random random(2);
  const std::vector<T> left = edge_cases<T>(random), right = edge_cases<T>(random);
  std::vector<T> a, b;  // all pairs
  for (const T x : left) {
    for (const T y : right) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  for (const auto& [op, definition] : integer_definitions<T>()) {
    const auto operands =
        arity(op) == 1 ? std::vector<std::vector<T>>{a} : std::vector<std::vector<T>>{a, b};
    const auto results = apply<T, T>(op, operands);
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(results[i], static_cast<T>(definition(W{a[i]}, W{b[i]})))
          << name_of(op) << "(" << +a[i] << ", " << +b[i] << ")";
    }
  }
  const auto products = apply<T, T>(ScalarOp::mul, {a, b});
  const auto fmas = apply<T, T>(ScalarOp::fma, {a, b, a});
  const auto squares = apply<T, T>(ScalarOp::square, {a});
  const auto less = apply<bool, T>(ScalarOp::lt, {a, b});
  const auto equal = apply<bool, T>(ScalarOp::eq, {a, b});
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<std::uint64_t>(a[i]), y = static_cast<std::uint64_t>(b[i]);
    ASSERT_EQ(products[i], static_cast<T>(x * y));
    ASSERT_EQ(fmas[i], static_cast<T>(x * y + x));
    ASSERT_EQ(squares[i], static_cast<T>(x * x));
    ASSERT_EQ(less[i], a[i] < b[i]);
    ASSERT_EQ(equal[i], a[i] == b[i]);
  }
}

TYPED_TEST(IntegerValues, PowersWrapAndNegativeOnesAreCutTowardsZero) {
  using T = TypeParam;
  std::vector<T> a, b, expected;
  for (int base = std::is_signed_v<T> ? -3 : 0; base <= 12; ++base) {
    for (int exponent = std::is_signed_v<T> ? -3 : 0; exponent <= 20; ++exponent) {
      a.push_back(static_cast<T>(base));
      b.push_back(static_cast<T>(exponent));
      std::uint64_t power = 1;
      for (int i = 0; i < exponent; ++i) power *= static_cast<std::uint64_t>(base);
      if (exponent < 0) {
        const int sign = base == -1 && exponent % 2 != 0 ? -1 : 1;
        power = base == 1 || base == -1 ? static_cast<std::uint64_t>(sign) : 0;
      }
      expected.push_back(static_cast<T>(power));
    }
  }
  EXPECT_EQ((apply<T, T>(ScalarOp::pow, {a, b})), expected);
}

TYPED_TEST(IntegerValues, DivisionIsThatOfDoubles) {
  using T = TypeParam;
  const std::vector<T> a{7, 9}, b{2, 4};
  EXPECT_EQ((apply<double, T>(ScalarOp::div, {a, b})), (std::vector<double>{3.5, 2.25}));
}

// Neither float64 nor an integer type holds all numbers of both.
TEST(IntegerValues, OfBothKindsAreComparedExactly) {
  Random random(4);
  const auto a = edge_cases<std::int64_t>(random);
  const auto b = edge_cases<std::uint64_t>(random);
  std::vector<std::int64_t> of_a;
  std::vector<std::uint64_t> of_b;
  for (const auto x : a) {
    for (const auto y : b) {
      for (const std::uint64_t near : {y, static_cast<std::uint64_t>(x)}) {
        of_a.push_back(x);
        of_b.push_back(near);
      }
    }
  }
  const auto n = static_cast<index_t>(of_a.size());
  Array x(DType::int64, {n}), y(DType::uint64, {n}), out(DType::bool_, {n});
  for (index_t i = 0; i < n; ++i) {
    x.set<std::int64_t>(i, of_a[static_cast<std::size_t>(i)]);
    y.set<std::uint64_t>(i, of_b[static_cast<std::size_t>(i)]);
  }
  const auto compare = [&](ScalarOp op, auto&& expected) {
    for (const bool is_turned : {false, true}) {
      const Array &left = is_turned ? y : x, &right = is_turned ? x : y;
      const std::array dtypes{left.dtype(), right.dtype()};
      run_elementwise(ElementwiseProgram(op, dtypes), std::array{left.view(), right.view()},
                      std::array{out.mutable_view()});
      for (index_t i = 0; i < n; ++i) {
        const auto p = of_a[static_cast<std::size_t>(i)];
        const auto q = of_b[static_cast<std::size_t>(i)];
        const std::strong_ordering order = std::cmp_less(p, q)    ? std::strong_ordering::less
                                           : std::cmp_equal(p, q) ? std::strong_ordering::equal
                                                                  : std::strong_ordering::greater;
        ASSERT_EQ(out.get<bool>(i), expected(is_turned ? 0 <=> order : order))
            << name_of(op) << " " << p << " " << q << " " << is_turned;
      }
    }
  };
  compare(ScalarOp::eq, [](auto order) { return order == 0; });
  compare(ScalarOp::ne, [](auto order) { return order != 0; });
  compare(ScalarOp::lt, [](auto order) { return order < 0; });
  compare(ScalarOp::le, [](auto order) { return order <= 0; });
  compare(ScalarOp::gt, [](auto order) { return order > 0; });
  compare(ScalarOp::ge, [](auto order) { return order >= 0; });
}

TEST(BoolValues, AnyByteButZeroIsTrue) {
  using Bytes = std::vector<unsigned char>;
  const auto run = [](ScalarOp op, const Bytes& a, const Bytes& b) {
    Array x(DType::bool_, {static_cast<index_t>(a.size())}), y(x), out(x);
    std::memcpy(x.address(0), a.data(), a.size());
    std::memcpy(y.address(0), b.data(), b.size());
    const std::array views{x.view(), y.view()};
    const std::array dtypes{DType::bool_, DType::bool_};
    const auto n = static_cast<std::size_t>(arity(op));
    run_elementwise(ElementwiseProgram(op, std::span(dtypes).first(n)), std::span(views).first(n),
                    std::array{out.mutable_view()});
    return elements(out);
  };
  const Bytes a{0, 1, 7, 0, 7}, b{0, 1, 2, 3, 0};
  EXPECT_EQ(run(ScalarOp::add, a, b), (Bytes{0, 1, 1, 1, 1}));
  EXPECT_EQ(run(ScalarOp::mul, a, b), (Bytes{0, 1, 1, 0, 0}));
  EXPECT_EQ(run(ScalarOp::minimum, a, b), (Bytes{0, 1, 1, 0, 0}));
  EXPECT_EQ(run(ScalarOp::maximum, a, b), (Bytes{0, 1, 1, 1, 1}));
  EXPECT_EQ(run(ScalarOp::eq, a, b), (Bytes{1, 1, 1, 0, 0}));
  EXPECT_EQ(run(ScalarOp::lt, a, b), (Bytes{0, 0, 0, 1, 0}));
  EXPECT_EQ(run(ScalarOp::ge, a, b), (Bytes{1, 1, 1, 0, 1}));
  EXPECT_EQ(run(ScalarOp::logical_xor, a, b), (Bytes{0, 0, 0, 1, 1}));
  EXPECT_EQ(run(ScalarOp::bitwise_and, a, b), (Bytes{0, 1, 1, 0, 0}));
  EXPECT_EQ(run(ScalarOp::bitwise_not, a, b), (Bytes{1, 0, 0, 1, 0}));
  EXPECT_EQ(run(ScalarOp::logical_not, a, b), (Bytes{1, 0, 0, 1, 0}));
  EXPECT_EQ(run(ScalarOp::isfinite, a, b), (Bytes{1, 1, 1, 1, 1}));
  EXPECT_EQ(run(ScalarOp::abs, a, b), (Bytes{0, 1, 1, 0, 1}));
}

}  // namespace
}  // namespace palimpsest::testing
