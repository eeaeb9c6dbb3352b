// SPDX-License-Identifier: Apache-2.0
// Internal: logarithms as sums of two numbers, and what needs them: powers, logarithms to other
// bases. Included once per instruction set.
#if defined(PALIMPSEST_VECTOR_POWERS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef PALIMPSEST_VECTOR_POWERS_INL_HPP
#undef PALIMPSEST_VECTOR_POWERS_INL_HPP
#else
#define PALIMPSEST_VECTOR_POWERS_INL_HPP
#endif

#include "palimpsest/kernels/functions/vector_math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

// log(1 + f) to 2^-65: 2 artanh(s) = 2 s + s z (2/3 + z p(z)), where p is a fit to 2^-65.3.
template <class V>
HWY_INLINE Pair<V> log_pair(V f) {
  constexpr double kTail[] = {0.40000000000002256, 0.28571428570099816, 0.22222222519929161,
                              0.18181784362811335, 0.15386757673808713, 0.13256807008615359,
                              0.13196449623871112};
  const V two = of<V>(2);
  const Pair<V> g = fast_sum(two, f);  // 2 + f
  const V s = hn::Div(f, g.high);
  const Pair<V> back = exact_product(s, g.high);
  const V rest = fused_less(s, g.low, hn::Sub(hn::Sub(f, back.high), back.low));
  const Pair<V> quotient{s, hn::Div(rest, g.high)};
  const Pair<V> z = product(quotient, quotient);
  Pair<V> series = fast_sum(of<V>(0.6666666666666666), hn::Mul(z.high, polynomial(z.high, kTail)));
  series.low = hn::Add(series.low, of<V>(3.700743415417188e-17));
  const Pair<V> curved = product(product(quotient, z), series);
  const Pair<V> sum = fast_sum(hn::Add(s, s), curved.high);
  const V low = hn::Add(hn::Add(quotient.low, quotient.low), hn::Add(curved.low, sum.low));
  return fast_sum(sum.high, low);
}
// log(x) in the format's accuracy; a pair without a lower part where double is more than enough.
template <class F, class V>
HWY_INLINE Pair<V> exact_log(V x) {
  if constexpr (std::is_same_v<F, Widened>) {
    return {log_of_mantissa<F>(normal_mantissa(x)), of<V>(0)};
  } else {
    // ln 2, of which products of the first part with 11 bits are exact.
    const Mantissa<V> m = mantissa(x);
    const Pair<V> part = log_pair(m.f);
    const Pair<V> sum = exact_sum(hn::Mul(m.k, of<V>(F::kLn2)), part.high);
    const V low = fused(m.k, of<V>(F::kLn2Low), part.low);
    return fast_sum(sum.high, hn::Add(sum.low, low));
  }
}

// log(2) and log(e) to another base; products of the first part of log(2) with exponents are exact.
template <class F, bool kIsTen>
struct Base;
template <>
struct Base<Single, false> {
  static constexpr Pair<float> kTwo{1, 0}, kE{1.44269502F, 1.92596303e-08F};
  static constexpr const auto& kBent = Single::kBentLog2;
};
template <>
struct Base<Single, true> {
  static constexpr Pair<float> kTwo{0.301025391F, 4.60503907e-06F};
  static constexpr Pair<float> kE{0.434294492F, -1.010305e-08F};
  static constexpr const auto& kBent = Single::kBentLog10;
};
template <>
struct Base<Double, false> {
  static constexpr Pair<double> kTwo{1, 0}, kE{1.4426950408889634, 2.0355273740931033e-17};
};
template <>
struct Base<Double, true> {
  static constexpr Pair<double> kTwo{0.30102999554947019, 1.1451100898021838e-10};
  static constexpr Pair<double> kE{0.4342944819032518, 1.098319650216765e-17};
};
// k log(2) + log(1 + f)
template <class F, bool kIsTen, class V>
HWY_INLINE V log_to_base(V x) {
  using B = Base<F, kIsTen>;
  const Mantissa<V> m = mantissa(x);
  V low = hn::Mul(m.f, of<V>(B::kE.low));
  if constexpr (kIsTen) low = fused(m.k, of<V>(B::kTwo.low), low);
  if constexpr (std::is_same_v<F, Single>) {
    low = fused(hn::Mul(m.f, m.f), polynomial(m.f, B::kBent), low);
  } else {
    low = fused(bent_log<F>(m.f), of<V>(B::kE.high), low);
  }
  const V part = fused(m.f, of<V>(B::kE.high), low);
  return with_limits_of_log(x, kIsTen ? fused(m.k, of<V>(B::kTwo.high), part) : hn::Add(m.k, part));
}
template <class F, class V>
HWY_INLINE V log2_of(V x) {
  return log_to_base<F, false>(x);
}
template <class F, class V>
HWY_INLINE V log10_of(V x) {
  return log_to_base<F, true>(x);
}

// The power where the base is no positive finite number, or the exponent 0 or infinite; `result` is
// that of |x|.
template <class V>
HWY_NOINLINE V with_limits_of_power(V x, V y, V result) {
  const V zero = of<V>(0), one = of<V>(1), size = hn::Abs(x);
  const V half = hn::Mul(y, of<V>(0.5));
  const auto is_integer = hn::Eq(hn::Trunc(y), y);  // infinity is one, too
  const auto is_odd = hn::And(is_integer, hn::Ne(hn::Trunc(half), half));
  const auto falls = hn::Lt(y, zero);
  const V of_zero = hn::IfThenElse(falls, infinity<V>(), zero);
  const V of_infinity = hn::IfThenElse(falls, zero, infinity<V>());
  result = hn::IfThenElse(hn::Eq(x, zero), of_zero, result);
  result = hn::IfThenElse(hn::Eq(size, infinity<V>()), of_infinity, result);
  const auto is_negative = hn::Lt(hn::CopySign(one, x), zero);
  result = hn::IfThenElse(hn::And(is_negative, is_odd), hn::Neg(result), result);
  const auto has_none =
      hn::And(hn::And(hn::Lt(x, zero), hn::Lt(size, infinity<V>())), hn::Not(is_integer));
  result = hn::IfThenElse(has_none, not_a_number<V>(), result);
  const auto no_number = hn::Or(hn::IsNaN(x), hn::IsNaN(y));
  result = hn::IfThenElse(no_number, not_a_number<V>(), result);
  const auto same = hn::And(hn::Eq(size, one), hn::Eq(hn::Abs(y), infinity<V>()));
  const auto is_one = hn::Or(hn::Or(hn::Eq(y, zero), hn::Eq(x, one)), same);
  return hn::IfThenElse(is_one, one, result);
}

// x^y = exp(y log|x|) with the product as a pair.
template <class F, class V>
HWY_INLINE V pow_of(V x, V y) {
  const hn::DFromV<V> d;
  const V size = hn::Abs(x);
  const Pair<V> log = exact_log<F>(size);
  Pair<V> power{hn::Mul(y, log.high), of<V>(0)};
  if constexpr (!std::is_same_v<F, Widened>) {
    power = exact_product(y, log.high);
    power.low = fused(y, log.low, power.low);
    const auto in_range = hn::Lt(hn::Abs(power.high), of<V>(800));
    power.low = hn::IfThenElseZero(in_range, power.low);
  }
  const Halvings<V> h = halvings<F>(within(power.high, F::kExpLow, F::kExpHigh));
  const V part = hn::Sub(hn::Mul(h.n, of<V>(F::kLn2Low)), power.low), r = hn::Sub(h.high, part);
  const V lost = hn::Sub(hn::Sub(h.high, r), part);
  const V result = scaled(hn::Add(of<V>(1), expm1_of_rest<F>(r, lost)), h.n);
  const auto common = hn::And(hn::And(hn::Gt(x, of<V>(0)), hn::Lt(x, infinity<V>())),
                              hn::And(hn::Ne(y, of<V>(0)), hn::Lt(hn::Abs(y), infinity<V>())));
  if (HWY_LIKELY(hn::AllTrue(d, common))) return result;
  return hn::IfThenElse(common, result, with_limits_of_power(x, y, result));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#endif  // PALIMPSEST_VECTOR_POWERS_INL_HPP
