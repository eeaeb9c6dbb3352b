// SPDX-License-Identifier: Apache-2.0
// Internal: logarithms as sums of two numbers, and what needs them: powers, logarithms to other
// bases. Included once per instruction set.
#if defined(PALIMPSEST_VECTOR_POWERS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef PALIMPSEST_VECTOR_POWERS_INL_HPP
#undef PALIMPSEST_VECTOR_POWERS_INL_HPP
#else
#define PALIMPSEST_VECTOR_POWERS_INL_HPP
#endif

#include "palimpsest/kernels/functions/vector_loops-inl.hpp"

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
HWY_INLINE V wide_pow(V x, V y) {
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
  const Halvings<V> h = halvings<F>(bounded_exponent<F>(power.high));
  const V part = hn::Sub(hn::Mul(h.n, of<V>(F::kLn2Low)), power.low), r = hn::Sub(h.high, part);
  const V lost = hn::Sub(hn::Sub(h.high, r), part);
  const V result = scaled_or_zero(hn::Add(of<V>(1), expm1_of_rest<F>(r, lost)), h.n, h.counted);
  const auto common = hn::And(hn::And(hn::Gt(x, of<V>(0)), hn::Lt(x, infinity<V>())),
                              hn::And(hn::Ne(y, of<V>(0)), hn::Lt(hn::Abs(y), infinity<V>())));
  if (HWY_LIKELY(hn::AllTrue(d, common))) return result;
  return hn::IfThenElse(common, result, with_limits_of_power(x, y, result));
}

// Of 16 intervals of numbers from 0.699 to 1.398: a number c with 4 or 5 digits behind the point so
// that c z - 1 is exact and less than 1/22, and log2(1 / c), of which the first part has 16 digits.
// Around 1 it is 1.
constexpr std::uint32_t kLeastOfIntervals = 0x3f330000;
constexpr Table kInverse =
    table_of({1.375F, 1.3125F, 1.3125F, 1.25F, 1.1875F, 1.125F, 1.125F, 1.0625F, 1.0625F, 1,
              0.9375F, 0.90625F, 0.84375F, 0.8125F, 0.78125F, 0.71875F});
constexpr Table kLogOfInverse =
    table_of({-0.45942688F, -0.392318726F, -0.392318726F, -0.321929932F, -0.247924805F,
              -0.169921875F, -0.169921875F, -0.0874633789F, -0.0874633789F, 0, 0.0931091309F,
              0.14201355F, 0.245117188F, 0.299560547F, 0.356140137F, 0.47644043F});
constexpr Table kLogOfInverseLow = table_of(
    {-4.73875434e-06F, 1.30280716e-06F, 1.30280716e-06F, 1.83675331e-06F, -2.70875603e-06F,
     -3.12644238e-06F, -3.12644238e-06F, 5.37655922e-07F, 5.37655922e-07F, 0, 2.73532095e-07F,
     5.45506782e-06F, -4.68966346e-06F, -2.65016098e-07F, 3.67350663e-06F, -2.38574444e-06F});

// log2(x) of a positive number with a leading bit, to 2^-33: x = 2^k z, log2(z) = log2(c z) +
// log2(1 / c), log2(1 + r) = r (log2(e) + r (a + r p(r))) with p to 2^-33.3.
template <class V>
HWY_INLINE Pair<V> single_log2(V x) {
  constexpr float kE = 1.44269502F, kELow = 1.92596303e-08F, kSecond = -0.721347511F;
  constexpr float kRest[] = {0.480898142F, -0.360685587F, 0.289034426F, -0.23735705F};
  const hn::RebindToSigned<hn::DFromV<V>> di;
  const BitsOf<V> raised = hn::Sub(bits(x), bits_of<V>(kLeastOfIntervals));
  const BitsOf<V> index = hn::ShiftRight<19>(raised);
  const V k = hn::ConvertTo(hn::DFromV<V>(), hn::ShiftRight<23>(hn::BitCast(di, raised)));
  const V z = from_bits<V>(hn::Sub(bits(x), hn::And(raised, bits_of<V>(0xff800000))));
  const V r = fused_minus(z, looked_up<V>(kInverse, index), of<V>(1));
  const V p = polynomial(r, kRest), second = fused(r, p, of<V>(kSecond));
  const V second_low = fused(r, p, hn::Sub(of<V>(kSecond), second));
  const V first = fused(r, second, of<V>(kE));
  const V first_low =
      hn::Add(fused(r, second, hn::Sub(of<V>(kE), first)), fused(r, second_low, of<V>(kELow)));
  const V part = hn::Mul(r, first), part_low = fused(r, first_low, fused_minus(r, first, part));
  // The first part of the sum is 0 or the larger one.
  const Pair<V> sum = fast_sum(hn::Add(k, looked_up<V>(kLogOfInverse, index)), part);
  const V low = hn::Add(part_low, looked_up<V>(kLogOfInverseLow, index));
  return {sum.high, hn::Add(sum.low, low)};
}

// Powers of float32 by way of float64.
template <class V>
HWY_NOINLINE V pow_by_doubles(V x, V y) {
  const hn::DFromV<V> d;
  constexpr std::size_t kMost = HWY_MAX_BYTES / sizeof(float);
  HWY_ALIGN float base[kMost], exponent[kMost];
  hn::Store(x, d, base);
  hn::Store(y, d, exponent);
  for (std::size_t k = 0; k < hn::Lanes(d); k += hn::Lanes(TagFor<Widened>())) {
    store<Widened>(wide_pow<Widened>(load<Widened>(base + k), load<Widened>(exponent + k)),
                   base + k);
  }
  return hn::Load(d, base);
}
// 2^(y log2(x)) of plain numbers; 2^r = 1 + r p(r): 2^-28.3.
template <class V>
HWY_INLINE V single_pow(V x, V y) {
  constexpr float kExp2[] = {0.693147182F,   0.240226477F,   0.0555035993F,
                             0.00961850584F, 0.00133908121F, 0.000153264962F};
  const Pair<V> log = single_log2(x);
  const V power = hn::Mul(y, log.high), low = fused(y, log.low, fused_minus(y, log.high, power));
  const auto has_log =
      hn::And(hn::Ge(x, of<V>(std::numeric_limits<float>::min())), hn::Lt(x, infinity<V>()));
  const auto plain = hn::And(has_log, hn::Le(hn::Abs(power), of<V>(125)));
  const V counted = hn::Add(power, rounder<V>());
  const V n = hn::IfThenElseZero(plain, hn::Sub(counted, rounder<V>()));
  const V r = hn::Add(hn::Sub(power, n), low);
  const V result = scaled(fused(r, polynomial(r, kExp2), of<V>(1)), n, counted);
  if (HWY_LIKELY(hn::AllTrue(hn::DFromV<V>(), plain))) return result;
  return hn::IfThenElse(plain, result, pow_by_doubles(x, y));
}
template <class F, class V>
HWY_INLINE V pow_of(V x, V y) {
  if constexpr (std::is_same_v<F, Single>) {
    return single_pow(x, y);
  } else {
    return wide_pow<F>(x, y);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#endif  // PALIMPSEST_VECTOR_POWERS_INL_HPP
