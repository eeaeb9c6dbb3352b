// SPDX-License-Identifier: Apache-2.0
// Values of every op on complex numbers, against the definition.
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numbers>

#include "kernels/scalar_runner.hpp"
#include "kernels/targets.hpp"

namespace palimpsest::testing {
namespace {

using Wide = std::complex<long double>;
using Definition = std::function<Wide(Wide, Wide, Wide)>;

const std::map<ScalarOp, Definition>& definitions() {
  using C = Wide;
  static const std::map<ScalarOp, Definition> table{
      {ScalarOp::add, [](C a, C b, C) { return a + b; }},
      {ScalarOp::sub, [](C a, C b, C) { return a - b; }},
      {ScalarOp::mul, [](C a, C b, C) { return a * b; }},
      {ScalarOp::div, [](C a, C b, C) { return a / b; }},
      {ScalarOp::fma, [](C a, C b, C c) { return a * b + c; }},
      {ScalarOp::neg, [](C a, C, C) { return -a; }},
      {ScalarOp::abs, [](C a, C, C) { return C(std::abs(a)); }},
      {ScalarOp::abs2, [](C a, C, C) { return C(std::norm(a)); }},
      {ScalarOp::sign, [](C a, C, C) { return a == C(0) ? C(0) : a / std::abs(a); }},
      {ScalarOp::reciprocal, [](C a, C, C) { return C(1) / a; }},
      {ScalarOp::square, [](C a, C, C) { return a * a; }},
      {ScalarOp::sqrt, [](C a, C, C) { return std::sqrt(a); }},
      {ScalarOp::pow, [](C a, C b, C) { return std::pow(a, b); }},
      {ScalarOp::round,
       [](C a, C, C) { return C(std::nearbyint(a.real()), std::nearbyint(a.imag())); }},
      {ScalarOp::eq, [](C a, C b, C) { return C(a == b); }},
      {ScalarOp::ne, [](C a, C b, C) { return C(a != b); }},
      {ScalarOp::isnan, [](C, C, C) { return C(0); }},
      {ScalarOp::isinf, [](C, C, C) { return C(0); }},
      {ScalarOp::isfinite, [](C, C, C) { return C(1); }},
      {ScalarOp::logical_and, [](C a, C b, C) { return C(a != C(0) && b != C(0)); }},
      {ScalarOp::logical_or, [](C a, C b, C) { return C(a != C(0) || b != C(0)); }},
      {ScalarOp::logical_xor, [](C a, C b, C) { return C((a != C(0)) != (b != C(0))); }},
      {ScalarOp::logical_not, [](C a, C, C) { return C(a == C(0)); }},
      {ScalarOp::exp, [](C a, C, C) { return std::exp(a); }},
      {ScalarOp::expm1, [](C a, C, C) { return std::exp(a) - C(1); }},
      {ScalarOp::log, [](C a, C, C) { return std::log(a); }},
      {ScalarOp::log1p, [](C a, C, C) { return std::log(C(1) + a); }},
      {ScalarOp::log2, [](C a, C, C) { return std::log(a) / std::numbers::ln2_v<long double>; }},
      {ScalarOp::log10, [](C a, C, C) { return std::log10(a); }},
      {ScalarOp::sin, [](C a, C, C) { return std::sin(a); }},
      {ScalarOp::cos, [](C a, C, C) { return std::cos(a); }},
      {ScalarOp::tan, [](C a, C, C) { return std::tan(a); }},
      {ScalarOp::arcsin, [](C a, C, C) { return std::asin(a); }},
      {ScalarOp::arccos, [](C a, C, C) { return std::acos(a); }},
      {ScalarOp::arctan, [](C a, C, C) { return std::atan(a); }},
      {ScalarOp::sinh, [](C a, C, C) { return std::sinh(a); }},
      {ScalarOp::cosh, [](C a, C, C) { return std::cosh(a); }},
      {ScalarOp::tanh, [](C a, C, C) { return std::tanh(a); }},
      {ScalarOp::sinc,
       [](C a, C, C) {
         const C x = std::numbers::pi_v<long double> * a;
         return x == C(0) ? C(1) : std::sin(x) / x;
       }},
      {ScalarOp::sigmoid, [](C a, C, C) { return C(1) / (C(1) + std::exp(-a)); }},
      {ScalarOp::conj, [](C a, C, C) { return std::conj(a); }},
      {ScalarOp::angle, [](C a, C, C) { return C(std::arg(a)); }},
      {ScalarOp::real, [](C a, C, C) { return C(a.real()); }},
      {ScalarOp::imag, [](C a, C, C) { return C(a.imag()); }},
      {ScalarOp::where, [](C a, C b, C c) { return a != C(0) ? b : c; }},
      {ScalarOp::identity, [](C a, C, C) { return a; }},
  };
  return table;
}

template <class T>
class ComplexValues : public ::testing::Test {};
using RealTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(ComplexValues, RealTypes);

template <class T>
std::vector<std::complex<T>> operands(Random& random, bool with_zeros) {
  std::vector<std::complex<T>> values;
  std::uniform_real_distribution<T> draw(-2, 2);
  for (int i = 0; i < 1200; ++i) {
    if (with_zeros && i % 7 == 0) {
      values.emplace_back(T{0}, T{0});
    } else {
      values.emplace_back(draw(random), draw(random));
    }
  }
  return values;
}

template <class R, class C>
std::vector<Wide> widened(ScalarOp op, const std::vector<std::vector<C>>& x) {
  std::vector<Wide> values;
  for (const auto value : apply<R, C>(op, x)) values.emplace_back(value);
  return values;
}

TYPED_TEST(ComplexValues, AgreeWithTheDefinitionToAFewRoundings) {
  using T = TypeParam;
  using C = std::complex<T>;
  Random random(3);
  for (const auto& [op, definition] : definitions()) {
    const bool zeros = op == ScalarOp::sign || op == ScalarOp::where || op == ScalarOp::sinc ||
                       op == ScalarOp::logical_and || op == ScalarOp::eq;
    std::vector<std::vector<C>> x;
    for (int k = 0; k < arity(op); ++k) x.push_back(operands<T>(random, zeros));
    const std::array dtypes{dtype_of<C>, dtype_of<C>, dtype_of<C>};
    const DType dtype = result_dtype(op, std::span(dtypes).first(x.size()));
    const std::vector<Wide> results = is_bool(dtype)      ? widened<bool, C>(op, x)
                                      : is_complex(dtype) ? widened<C, C>(op, x)
                                                          : widened<T, C>(op, x);
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Wide a(x[0][i]), b(x.size() > 1 ? Wide(x[1][i]) : Wide()),
          c(x.size() > 2 ? Wide(x[2][i]) : Wide());
      const Wide expected = definition(a, b, c);
      // Cancellation in sums and logarithms near 0 gives absolute errors; powers multiply the error
      // of the exponent.
      const long double bound =
          30 * std::numeric_limits<T>::epsilon() * std::max<long double>(std::abs(expected), 1);
      EXPECT_LE(std::abs(results[i] - expected), bound) << name_of(op) << " " << a << " " << b;
    }
  }
}

TYPED_TEST(ComplexValues, SmallArgumentsKeepTheirDigits) {
  using T = TypeParam;
  using C = std::complex<T>;
  const C x(T{1e-6}, T{-2e-6});
  const T eps = std::numeric_limits<T>::epsilon();
  const C log = apply<C, C>(ScalarOp::log1p, {{x}})[0];
  const C exp = apply<C, C>(ScalarOp::expm1, {{x}})[0];
  const Wide w(x);
  const Wide log_series = w - w * w / 2.0L + w * w * w / 3.0L;
  const Wide exp_series = w + w * w / 2.0L + w * w * w / 6.0L;
  EXPECT_LE(std::abs(Wide(log) - log_series), 4 * eps * std::abs(w));
  EXPECT_LE(std::abs(Wide(exp) - exp_series), 4 * eps * std::abs(w));
}

TYPED_TEST(ComplexValues, SpecialValues) {
  using T = TypeParam;
  using C = std::complex<T>;
  const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  EXPECT_EQ((apply<bool, C>(ScalarOp::isnan, {{C(nan, 0), C(0, nan), C(1, inf)}})),
            (std::vector<bool>{true, true, false}));
  EXPECT_EQ((apply<bool, C>(ScalarOp::isinf, {{C(nan, 0), C(0, -inf), C(1, 1)}})),
            (std::vector<bool>{false, true, false}));
  EXPECT_EQ((apply<bool, C>(ScalarOp::isfinite, {{C(nan, 0), C(0, -inf), C(1, 1)}})),
            (std::vector<bool>{false, false, true}));
  EXPECT_EQ((apply<C, C>(ScalarOp::pow, {{C(0), C(0), C(1, 1)}, {C(0), C(2), C(2)}})),
            (std::vector<C>{C(1), C(0), C(0, 2)}));
  // |b|^2 of this divisor overflows in single precision.
  const T big = std::numeric_limits<float>::max() / 4;
  const C quotient = apply<C, C>(ScalarOp::div, {{C(big, big)}, {C(big, 0)}})[0];
  EXPECT_EQ(quotient, C(1, 1));
}

// Products on the way to a quotient overflow or vanish, the quotient does not.
TEST(ComplexQuotients, AreRightForNumbersOfEveryMagnitude) {
  using C = std::complex<double>;
  Random random(7);
  std::uniform_real_distribution<double> mantissas(-2, 2);
  std::uniform_int_distribution<int> exponents(-1070, 1022);
  std::vector<C> a, b;
  const auto draw = [&] {
    const int exponent = exponents(random);
    return C(std::ldexp(mantissas(random), exponent), std::ldexp(mantissas(random), exponent));
  };
  for (int i = 0; i < 20000; ++i) {
    a.push_back(i % 3 == 0 ? C(1) : draw());
    b.push_back(i % 5 == 0 ? C(draw().real(), 0) : draw());
  }
  for (const std::int64_t target : vector_targets()) {
    const TargetScope scope(target);
    const auto quotients = apply<C, C>(ScalarOp::div, {a, b});
    const auto reciprocals = apply<C, C>(ScalarOp::reciprocal, {b});
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto expect = [&](C got, C above) {
        const Wide exact = Wide(above) / Wide(b[i]);
        const long double size = std::abs(exact);
        if (size > std::numeric_limits<double>::max() / 2 || size < 1e-290L) return;
        ASSERT_LE(std::abs(Wide(got) - exact), 4 * std::numeric_limits<double>::epsilon() * size)
            << hwy::TargetName(target) << " " << above << " / " << b[i] << " = " << got;
      };
      expect(quotients[i], a[i]);
      expect(reciprocals[i], C(1));
    }
  }
}

TYPED_TEST(ComplexValues, QuotientsOfZerosAndInfinities) {
  using T = TypeParam;
  using C = std::complex<T>;
  const T inf = std::numeric_limits<T>::infinity(), least = std::numeric_limits<T>::denorm_min();
  const std::vector<C> a{C(1), C(0), C(0, 1)}, b{C(inf, 0), C(least, 0), C(0, -inf)};
  EXPECT_EQ((apply<C, C>(ScalarOp::div, {a, b})), (std::vector<C>{C(0), C(0), C(0)}));
  EXPECT_TRUE(std::isnan(apply<C, C>(ScalarOp::div, {{C(1)}, {C(0)}})[0].real()));
}

TYPED_TEST(ComplexValues, MakeComplexTakesTheParts) {
  using T = TypeParam;
  using C = std::complex<T>;
  EXPECT_EQ((apply<C, T>(ScalarOp::make_complex, {{1, 2}, {3, 4}})),
            (std::vector<C>{C(1, 3), C(2, 4)}));
}

}  // namespace
}  // namespace palimpsest::testing
