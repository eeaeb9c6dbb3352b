// SPDX-License-Identifier: Apache-2.0
// Transcendental functions: errors compared with long double over all magnitudes, special values of
// the C library, and the same bits on every instruction set and at every position.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "kernels/scalar_runner.hpp"
#include "kernels/targets.hpp"

namespace palimpsest::testing {
namespace {

using Real = long double;
enum class Domain { all, positive, unit, above_minus_1, above_1, plane, powers };

struct Function {
  ScalarOp op;
  Real bound32, bound64;  // largest errors in units of the last place
  Domain domain;
  std::function<Real(Real, Real)> exact;
  std::function<double(double, double)> library;
};

#define PALIMPSEST_FUNCTION(op, name, bound32, bound64, domain)           \
  {                                                                       \
    ScalarOp::op, bound32, bound64, Domain::domain,                       \
        [](Real a, [[maybe_unused]] Real b) { return std::name(a); },     \
        [](double a, [[maybe_unused]] double b) { return std::name(a); }, \
  }
#define PALIMPSEST_FUNCTION_OF_TWO(op, name, bound32, bound64, domain) \
  {                                                                    \
    ScalarOp::op, bound32, bound64, Domain::domain,                    \
        [](Real a, Real b) { return std::name(a, b); },                \
        [](double a, double b) { return std::name(a, b); },            \
  }
const std::vector<Function>& functions() {
  static const std::vector<Function> all{
      PALIMPSEST_FUNCTION(exp, exp, 1.1L, 1.1L, all),
      PALIMPSEST_FUNCTION(expm1, expm1, 1.6L, 1.5L, all),
      PALIMPSEST_FUNCTION(tanh, tanh, 1.3L, 2.5L, all),
      PALIMPSEST_FUNCTION(sinh, sinh, 1.7L, 1.7L, all),
      PALIMPSEST_FUNCTION(cosh, cosh, 1.5L, 1.7L, all),
      PALIMPSEST_FUNCTION(erf, erf, 1.1L, 1.1L, all),
      PALIMPSEST_FUNCTION(log, log, 0.9L, 0.9L, positive),
      PALIMPSEST_FUNCTION(log1p, log1p, 1.5L, 1.4L, above_minus_1),
      PALIMPSEST_FUNCTION(log2, log2, 1.1L, 1.1L, positive),
      PALIMPSEST_FUNCTION(log10, log10, 1.1L, 1.0L, positive),
      PALIMPSEST_FUNCTION(arcsinh, asinh, 0.51L, 1.8L, all),
      PALIMPSEST_FUNCTION(arccosh, acosh, 0.51L, 2.4L, above_1),
      PALIMPSEST_FUNCTION(arctanh, atanh, 0.51L, 1.8L, unit),
      PALIMPSEST_FUNCTION(sin, sin, 1.4L, 1.0L, all),
      PALIMPSEST_FUNCTION(cos, cos, 1.5L, 1.0L, all),
      PALIMPSEST_FUNCTION(tan, tan, 2.4L, 1.1L, all),
      PALIMPSEST_FUNCTION(arcsin, asin, 1.2L, 0.8L, unit),
      PALIMPSEST_FUNCTION(arccos, acos, 1.2L, 0.8L, unit),
      PALIMPSEST_FUNCTION(arctan, atan, 1.2L, 0.8L, all),
      PALIMPSEST_FUNCTION_OF_TWO(arctan2, atan2, 1.6L, 1.5L, plane),
      PALIMPSEST_FUNCTION_OF_TWO(hypot, hypot, 1.3L, 1.3L, plane),
      PALIMPSEST_FUNCTION_OF_TWO(pow, pow, 1.1L, 1.1L, powers),
      {ScalarOp::sigmoid, 2.5L, 2.5L, Domain::all,
       [](Real a, Real) { return 1 / (1 + std::exp(-a)); },
       [](double a, double) { return a < -745 ? 0 : 1 / (1 + std::exp(-a)); }},
  };
  return all;
}
#undef PALIMPSEST_FUNCTION
#undef PALIMPSEST_FUNCTION_OF_TWO

double magnitude(Random& random, double low, double high) {
  return std::exp2(std::uniform_real_distribution<double>(low, high)(random));
}
double between(Random& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

// Numbers of every magnitude of T, a third of them in the range where the function is not nearly
// linear or constant.
template <class T>
T draw(Domain domain, Random& random) {
  using Limits = std::numeric_limits<T>;
  const double least = Limits::min_exponent - Limits::digits, most = Limits::max_exponent;
  const index_t kind = uniform(random, 0, 5);
  const double sign = uniform(random, 0, 1) == 0 ? -1 : 1;
  const double small = magnitude(random, least, -1), any = magnitude(random, least, most);
  switch (domain) {
    case Domain::positive:
      return static_cast<T>(kind < 2 ? between(random, 0.5, 2) : any);
    case Domain::unit:
      return static_cast<T>(sign * (kind < 2    ? between(random, 0, 1)
                                    : kind == 2 ? 1 - magnitude(random, -52, -1)
                                                : small));
    case Domain::above_minus_1:
      return static_cast<T>(kind < 2 ? between(random, -1, 3) : kind < 4 ? sign * small : any);
    case Domain::above_1:
      return static_cast<T>(kind < 2   ? between(random, 1, 4)
                            : kind < 4 ? 1 + magnitude(random, -52, 0)
                                       : magnitude(random, 0, most));
    default:
      return static_cast<T>(kind < 2   ? between(random, -10, 10)
                            : kind < 4 ? between(random, -800, 800)
                                       : sign * any);
  }
}

template <class T>
std::vector<std::vector<T>> operands(const Function& f, int n, Random& random) {
  std::vector<std::vector<T>> x(static_cast<std::size_t>(arity(f.op)));
  for (int i = 0; i < n; ++i) {
    if (f.domain == Domain::powers) {
      const T base = draw<T>(Domain::positive, random);
      // Results of every magnitude, and powers of integers.
      const double range =
          std::numeric_limits<T>::max_exponent / (std::abs(std::log2(base)) + 1e-3);
      const bool plain = i % 4 == 0;
      x[0].push_back(i % 8 == 0 ? -base : base);
      x[1].push_back(static_cast<T>(plain ? std::nearbyint(between(random, -9, 9))
                                          : between(random, -1.1, 1.1) * range));
      continue;
    }
    x[0].push_back(draw<T>(f.domain, random));
    if (x.size() == 1) continue;
    x[1].push_back(i % 2 == 0 ? draw<T>(f.domain, random)
                              : static_cast<T>(x[0].back() * magnitude(random, -30, 30)));
  }
  return x;
}

template <class T>
Real error_in_ulp(T got, Real exact) {
  const Real huge = std::numeric_limits<T>::max();
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) == std::isnan(got) ? 0 : 1e30L;
  if (std::isinf(got))
    return std::abs(exact) > huge * (1 - 2e-16L) && (got > 0) == (exact > 0) ? 0 : 1e30L;
  if (std::abs(exact) > huge * 1.0000001L) return 1e30L;
  int exponent;
  std::frexp(exact, &exponent);
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
  const Real unit = std::ldexp(Real{1}, exponent - std::numeric_limits<T>::digits);
  return std::abs(static_cast<Real>(got) - exact) / unit;
}

template <class T>
class VectorFunctions : public ::testing::Test {};
using RealTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(VectorFunctions, RealTypes);

TYPED_TEST(VectorFunctions, ErrorsStayWithinTheirBounds) {
  using T = TypeParam;
  Random random(11);
  for (const Function& f : functions()) {
    const auto x = operands<T>(f, 30000, random);
    const auto results = apply<T, T>(f.op, x);
    Real worst = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Real error = error_in_ulp<T>(results[i], f.exact(x[0][i], x.size() > 1 ? x[1][i] : 0));
      if (error > worst) at = i;
      worst = std::max(worst, error);
    }
    const Real bound = sizeof(T) == 4 ? f.bound32 : f.bound64;
    EXPECT_LE(worst, bound) << name_of(f.op) << "(" << x[0][at] << ", "
                            << (x.size() > 1 ? x[1][at] : 0) << ") = " << results[at];
  }
}

template <class T>
std::vector<T> special_values() {
  using Limits = std::numeric_limits<T>;
  return {T{0},
          -T{0},
          T{1},
          T{-1},
          T{2},
          T{-2},
          T{3},
          T{-3},
          T{0.5},
          T{-0.5},
          T{10},
          T{1000},
          Limits::max(),
          -Limits::max(),
          Limits::min(),
          Limits::denorm_min(),
          -Limits::denorm_min(),
          Limits::infinity(),
          -Limits::infinity(),
          Limits::quiet_NaN()};
}

TYPED_TEST(VectorFunctions, SpecialValuesAreThoseOfTheLibrary) {
  using T = TypeParam;
  const std::vector<T> values = special_values<T>();
  for (const Function& f : functions()) {
    std::vector<std::vector<T>> x(static_cast<std::size_t>(arity(f.op)));
    for (const T a : values) {
      for (const T b : values) {
        x[0].push_back(a);
        if (x.size() > 1) x[1].push_back(b);
      }
    }
    const auto results = apply<T, T>(f.op, x);
    for (std::size_t i = 0; i < results.size(); ++i) {
      const T second = x.size() > 1 ? x[1][i] : T{0};
      const T expected = static_cast<T>(f.library(x[0][i], second));
      const auto what = ::testing::Message() << name_of(f.op) << "(" << x[0][i] << ", " << second
                                             << ") = " << results[i] << ", not " << expected;
      ASSERT_EQ(std::isnan(results[i]), std::isnan(expected)) << what;
      if (std::isnan(expected)) continue;
      ASSERT_EQ(std::isinf(results[i]), std::isinf(expected)) << what;
      ASSERT_EQ(results[i] == 0, expected == 0) << what;
      ASSERT_EQ(std::signbit(results[i]), std::signbit(expected)) << what;
    }
  }
}

TYPED_TEST(VectorFunctions, ExactResultsAreExact) {
  using T = TypeParam;
  using V = std::vector<std::vector<T>>;
  using Limits = std::numeric_limits<T>;
  std::vector<T> powers_of_2, powers_of_10, twos, tens;
  for (int k = Limits::min_exponent - Limits::digits; k < Limits::max_exponent; ++k) {
    powers_of_2.push_back(std::ldexp(T{1}, k));
    twos.push_back(static_cast<T>(k));
  }
  for (int k = 0; k <= (sizeof(T) == 4 ? 10 : 22); ++k) {
    powers_of_10.push_back(static_cast<T>(std::pow(10.0L, k)));
    tens.push_back(static_cast<T>(k));
  }
  EXPECT_EQ((apply<T, T>(ScalarOp::log2, V{powers_of_2})), twos);
  EXPECT_EQ((apply<T, T>(ScalarOp::log10, V{powers_of_10})), tens);
  EXPECT_EQ((apply<T, T>(ScalarOp::pow, V{{3, 2, -2, 9, 5}, {4, -2, 3, T{0.5}, 0}})),
            (std::vector<T>{81, T{0.25}, -8, 3, 1}));
  EXPECT_EQ((apply<T, T>(ScalarOp::exp, V{{0}})), (std::vector<T>{1}));
  EXPECT_EQ((apply<T, T>(ScalarOp::cos, V{{0}})), (std::vector<T>{1}));
}

// Large angles, and numbers near multiples of pi/2.
TEST(VectorFunctions, LargeAnglesKeepTheirDigits) {
  const std::vector<double> x{1e22,
                              -1e22,
                              1.6e6,
                              1600000.5,
                              2e6,
                              6381956970095103.0 * 0x1p797,
                              1.5707963267948966,
                              3.141592653589793,
                              1e300,
                              -0x1p1023,
                              355};
  const auto sines = apply<double, double>(ScalarOp::sin, {x});
  // sinl of this C library reduces with as many digits.
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_LE(error_in_ulp(sines[i], std::sin(static_cast<Real>(x[i]))), 0.9L) << x[i];
  }
  EXPECT_NEAR(sines[0], -0.8522008497671888, 1e-15);
}

// Near multiples of pi/2, where remainders of float32 lose most digits, on both sides of the angle
// from which the reduction is in float64.
TEST(VectorFunctions, SinglesNextToQuarterTurnsKeepTheirDigits) {
  std::vector<float> x;
  for (int n = 1; n < 6000; ++n) {
    const auto quarters = static_cast<float>(n * 1.5707963267948966);
    for (const float y :
         {std::nextafterf(quarters, 0), quarters, std::nextafterf(quarters, 1e9F)}) {
      x.push_back(n % 2 == 0 ? y : -y);
    }
  }
  x.insert(x.end(), {3886.15F, -3529.58F, 16367173 * 0x1p72F});
  const auto sines = apply<float, float>(ScalarOp::sin, {x});
  const auto cosines = apply<float, float>(ScalarOp::cos, {x});
  const auto tangents = apply<float, float>(ScalarOp::tan, {x});
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_LE(error_in_ulp(sines[i], std::sin(static_cast<Real>(x[i]))), 1.4L) << x[i];
    ASSERT_LE(error_in_ulp(cosines[i], std::cos(static_cast<Real>(x[i]))), 1.5L) << x[i];
    ASSERT_LE(error_in_ulp(tangents[i], std::tan(static_cast<Real>(x[i]))), 2.4L) << x[i];
  }
}

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
template <class T>
Bits<T> bits_or_nan(T x) {
  return std::isnan(x) ? ~Bits<T>{0} : std::bit_cast<Bits<T>>(x);
}

TYPED_TEST(VectorFunctions, BitsAreTheSameOnEveryInstructionSet) {
  using T = TypeParam;
  Random random(12);
  for (const Function& f : functions()) {
    auto x = operands<T>(f, 4001, random);
    for (const T value : special_values<T>()) {
      for (auto& operand : x) operand.push_back(value);
    }
    std::vector<T> expected;
    {
      const TargetScope none(0);
      expected = apply<T, T>(f.op, x);
    }
    for (const std::int64_t target : vector_targets()) {
      const TargetScope scope(target);
      const auto results = apply<T, T>(f.op, x);
      for (std::size_t i = 0; i < results.size(); ++i) {
        ASSERT_EQ(bits_or_nan(results[i]), bits_or_nan(expected[i]))
            << hwy::TargetName(target) << " " << name_of(f.op) << "(" << x[0][i] << ")";
      }
    }
  }
}

TYPED_TEST(VectorFunctions, ResultsDoNotDependOnNeighboursOrPlaces) {
  using T = TypeParam;
  Random random(13);
  for (const Function& f : functions()) {
    auto x = operands<T>(f, 35, random);
    x[0][7] = std::numeric_limits<T>::infinity();
    x[0][20] = T{1e30F};
    const auto all = apply<T, T>(f.op, x);
    for (std::size_t n = 1; n < 35; ++n) {
      std::vector<std::vector<T>> some;
      for (const auto& operand : x) {
        some.emplace_back(operand.end() - static_cast<std::ptrdiff_t>(n), operand.end());
      }
      const auto results = apply<T, T>(f.op, some);
      for (std::size_t i = 0; i < n; ++i) {
        ASSERT_EQ(bits_or_nan(results[i]), bits_or_nan(all[35 - n + i])) << name_of(f.op);
      }
    }
  }
}

TYPED_TEST(VectorFunctions, WorkInPlaceAndOnStridedArrays) {
  using T = TypeParam;
  constexpr index_t kRows = 5, kCols = 23;
  Array x(dtype_of<T>, {kRows, kCols});
  Random random(14);
  for (index_t i = 0; i < kRows * kCols; ++i) x.set<T>(i, static_cast<T>(between(random, -3, 3)));
  const std::array dtypes{dtype_of<T>};
  for (const ScalarOp op : {ScalarOp::exp, ScalarOp::sin, ScalarOp::tanh}) {
    const ElementwiseProgram program(op, dtypes);
    // turned is stored by columns.
    Array out(dtype_of<T>, {kRows, kCols}), turned(dtype_of<T>, {kRows, kCols}, {1, kRows}),
        same(x);
    run_elementwise(program, std::array{x.view()}, std::array{out.mutable_view()});
    run_elementwise(program, std::array{x.view()}, std::array{turned.mutable_view()});
    run_elementwise(program, std::array{same.view()}, std::array{same.mutable_view()});
    for (index_t i = 0; i < kRows * kCols; ++i) {
      EXPECT_EQ(out.get<T>(i), same.get<T>(i));
      EXPECT_EQ(out.get<T>(i), turned.get<T>(i));
    }
  }
}

template <class T>
std::vector<std::complex<T>> complex_operands(int n, Random& random) {
  std::vector<std::complex<T>> x;
  const double most = std::numeric_limits<T>::max_exponent - 2;
  for (int i = 0; i < n; ++i) {
    const auto part = [&] {
      const double size = i % 3 == 0 ? magnitude(random, -most, most) : between(random, 0, 4);
      return static_cast<T>(uniform(random, 0, 1) == 0 ? -size : size);
    };
    if (i % 3 == 1) {  // next to the unit circle, where logarithms cancel
      const double angle = between(random, -4, 4), size = 1 + magnitude(random, -50, -2);
      x.emplace_back(static_cast<T>(size * std::cos(angle)),
                     static_cast<T>(size * std::sin(angle)));
    } else {
      const T re = part(), im = part();
      x.emplace_back(re, im);
    }
  }
  return x;
}

TYPED_TEST(VectorFunctions, OfComplexNumbersKeepTheDigitsOfBothParts) {
  using T = TypeParam;
  using C = std::complex<T>;
  using Wide = std::complex<Real>;
  Random random(15);
  const std::vector<C> x = complex_operands<T>(20000, random);
  const auto logs = apply<C, C>(ScalarOp::log, {x}), roots = apply<C, C>(ScalarOp::sqrt, {x});
  const auto exponentials = apply<C, C>(ScalarOp::exp, {x});
  const auto angles = apply<T, C>(ScalarOp::angle, {x}), sizes = apply<T, C>(ScalarOp::abs, {x});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Wide z(x[i]), log = std::log(z), root = std::sqrt(z), exponential = std::exp(z);
    ASSERT_LE(error_in_ulp(logs[i].real(), log.real()), 2) << z;
    ASSERT_LE(error_in_ulp(logs[i].imag(), log.imag()), 2) << z;
    ASSERT_LE(error_in_ulp(angles[i], log.imag()), 1.6L) << z;
    ASSERT_LE(error_in_ulp(sizes[i], std::hypot(z.real(), z.imag())), 1.3L) << z;
    ASSERT_LE(error_in_ulp(roots[i].real(), root.real()), 4) << z;
    ASSERT_LE(error_in_ulp(roots[i].imag(), root.imag()), 4) << z;
    ASSERT_LE(error_in_ulp(exponentials[i].real(), exponential.real()), 4) << z;
    ASSERT_LE(error_in_ulp(exponentials[i].imag(), exponential.imag()), 4) << z;
  }
}

template <class C>
using OfComplex = C (*)(const C&);
template <class T>
void expect_same_part(T got, T expected, const ::testing::Message& what) {
  ASSERT_EQ(std::isnan(got), std::isnan(expected)) << what;
  if (std::isnan(expected)) return;
  ASSERT_EQ(std::isinf(got), std::isinf(expected)) << what;
  ASSERT_EQ(got == 0, expected == 0) << what;
  // The sign of an infinite exponential's vanishing part is not specified.
  ASSERT_EQ(std::signbit(got), std::signbit(expected)) << what;
}

TYPED_TEST(VectorFunctions, OfComplexSpecialValuesAreThoseOfTheLibrary) {
  using T = TypeParam;
  using C = std::complex<T>;
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  std::vector<C> x;
  for (const T re : {T{0}, -T{0}, T{1}, T{-1}, T{2.5}, inf, -inf, nan}) {
    for (const T im : {T{0}, -T{0}, T{1}, T{-1}, T{2.5}, inf, -inf, nan}) x.emplace_back(re, im);
  }
  const std::pair<ScalarOp, OfComplex<C>> all[] = {
      {ScalarOp::exp, std::exp<T>}, {ScalarOp::log, std::log<T>}, {ScalarOp::sqrt, std::sqrt<T>}};
  for (const auto& [op, library] : all) {
    const auto results = apply<C, C>(op, {x});
    for (std::size_t i = 0; i < x.size(); ++i) {
      const C expected = library(x[i]);
      const auto what = ::testing::Message()
                        << name_of(op) << x[i] << " = " << results[i] << ", not " << expected;
      expect_same_part(results[i].real(), expected.real(), what);
      expect_same_part(results[i].imag(), expected.imag(), what);
    }
  }
  const auto sizes = apply<T, C>(ScalarOp::abs, {x}), angles = apply<T, C>(ScalarOp::angle, {x});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto what = ::testing::Message() << x[i];
    expect_same_part(sizes[i], std::abs(x[i]), what);
    expect_same_part(angles[i], std::arg(x[i]), what);
  }
}

template <class T, class R, class C>
void expect_same_bits_everywhere(ScalarOp op, const std::vector<C>& x) {
  const auto parts = [&] {
    const auto results = apply<R, C>(op, {x});
    std::vector<Bits<T>> bits;
    for (const R r : results) {
      bits.push_back(bits_or_nan(std::real(r)));
      bits.push_back(bits_or_nan(std::imag(r)));
    }
    return bits;
  };
  std::vector<Bits<T>> expected;
  {
    const TargetScope none(0);
    expected = parts();
  }
  for (const std::int64_t target : vector_targets()) {
    const TargetScope scope(target);
    const auto got = parts();
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i], expected[i]) << hwy::TargetName(target) << " " << name_of(op) << x[i / 2];
    }
  }
}

TYPED_TEST(VectorFunctions, OfComplexNumbersHaveTheSameBitsOnEveryInstructionSet) {
  using T = TypeParam;
  using C = std::complex<T>;
  Random random(16);
  std::vector<C> x = complex_operands<T>(2003, random);
  for (const T a : special_values<T>()) {
    for (const T b : special_values<T>()) x.emplace_back(a, b);
  }
  for (const ScalarOp op : {ScalarOp::exp, ScalarOp::log, ScalarOp::sqrt}) {
    expect_same_bits_everywhere<T, C>(op, x);
  }
  for (const ScalarOp op : {ScalarOp::abs, ScalarOp::angle}) {
    expect_same_bits_everywhere<T, T>(op, x);
  }
}

}  // namespace
}  // namespace palimpsest::testing
