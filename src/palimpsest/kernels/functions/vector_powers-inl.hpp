// SPDX-License-Identifier: Apache-2.0
// Internal: logarithms as sums of two numbers; powers and logarithms to bases 2 and 10 on top of
// them. Included once per instruction set.
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

// log(2) and log(e) to base 2 or 10. Products of the first part of log(2) with exponents are exact.
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
// Computes k log(2) + log(1 + f).
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

// The power for special cases: the base is not positive or not finite, or the exponent is 0 or
// infinite. `result` is the power of |x|.
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

// Table of 16 intervals of z from 0.699 to 1.398. Each has a number c with 4 or 5 fraction digits
// such that c z - 1 is exact and below 1/22, and log2(1 / c) = log + log_low, where sums of `log`
// and exponents are exact. In the interval around 1, c is 1. log2(1 + r) = r (kE + r (kSecond + r
// (kThird + r p(r)))), 2^r = 1 + r (kLn2 + r q(r)).
template <class F>
struct Powers2;
template <>
struct Powers2<Single> {
  static constexpr std::uint32_t kLeast = 0x3f330000, kExponent = 0xff800000;
  static constexpr Table kInverse =
      table_of({1.375F, 1.3125F, 1.3125F, 1.25F, 1.1875F, 1.125F, 1.125F, 1.0625F, 1.0625F, 1,
                0.9375F, 0.90625F, 0.84375F, 0.8125F, 0.78125F, 0.71875F});
  static constexpr Table kLog =
      table_of({-0.45942688F, -0.392318726F, -0.392318726F, -0.321929932F, -0.247924805F,
                -0.169921875F, -0.169921875F, -0.0874633789F, -0.0874633789F, 0, 0.0931091309F,
                0.14201355F, 0.245117188F, 0.299560547F, 0.356140137F, 0.47644043F});
  static constexpr Table kLogLow = table_of(
      {-4.73875434e-06F, 1.30280716e-06F, 1.30280716e-06F, 1.83675331e-06F, -2.70875603e-06F,
       -3.12644238e-06F, -3.12644238e-06F, 5.37655922e-07F, 5.37655922e-07F, 0, 2.73532095e-07F,
       5.45506782e-06F, -4.68966346e-06F, -2.65016098e-07F, 3.67350663e-06F, -2.38574444e-06F});
  static constexpr Pair<float> kE{1.44269502F, 1.92596303e-08F}, kSecond{-0.721347511F, 0};
  // 2^-33.3, 2^-28.3
  static constexpr float kThird = 0.480898142F;
  static constexpr float kRest[] = {-0.360685587F, 0.289034426F, -0.23735705F};
  static constexpr float kLn2 = 0.693147182F;
  static constexpr float kExp2[] = {0.240226477F, 0.0555035993F, 0.00961850584F, 0.00133908121F,
                                    0.000153264962F};
  static constexpr float kMost = 125;  // powers of 2 up to here and their inverses are normal
};
template <>
struct Powers2<Double> {
  static constexpr std::uint64_t kLeast = 0x3fe6600000000000, kExponent = 0xfff0000000000000;
  static constexpr double kInverse[16] = {1.375,   1.3125, 1.3125,  1.25,   1.1875, 1.125,
                                          1.125,   1.0625, 1.0625,  1,      0.9375, 0.90625,
                                          0.84375, 0.8125, 0.78125, 0.71875};
  static constexpr double kLog[16] = {-0.45943161863738169,  -0.39231742277866033,
                                      -0.39231742277866033,  -0.32192809488742569,
                                      -0.24792751344352837,  -0.16992500144237965,
                                      -0.16992500144237965,  -0.087462841250271595,
                                      -0.087462841250271595, 0,
                                      0.093109404391498174,  0.14201900487250896,
                                      0.24511249783654421,   0.29956028185893047,
                                      0.356143810225376,     0.47643804394306244};
  static constexpr double kLogLow[16] = {8.4432841558581754e-14,  -9.9959254865286992e-14,
                                         -9.9959254865286992e-14, 6.3338595256861598e-14,
                                         -5.7124840835318464e-14, 6.7289964272407267e-14,
                                         6.7289964272407267e-14,  -6.7813636550208424e-14,
                                         -6.7813636550208424e-14, 0,
                                         -1.6703260328550802e-14, -8.1078934667261742e-14,
                                         -1.275189131300513e-14,  -2.2626511356032611e-14,
                                         -1.0069648492950886e-13, -7.5311505792476435e-14};
  static constexpr Pair<double> kE{1.4426950408889634, 2.0355273740931033e-17};
  static constexpr Pair<double> kSecond{-0.72134752044448169, -1.0177636870465517e-17};
  // 2^-69.1, 2^-58.0
  static constexpr double kThird = 0.48089834696298783;
  static constexpr double kRest[] = {
      -0.36067376022223974, 0.28853900817742512,  -0.2404491734869528,
      0.20609929252907977,  -0.18033687146605717, 0.16029833432064272,
      -0.14427485273959037, 0.13173140998348676,  -0.11926623528338198};
  static constexpr double kLn2 = 0.69314718055994529;
  static constexpr double kExp2[] = {0.24022650695910133,    0.055504108664820119,
                                     0.0096181291075938397,  0.0013333558146764409,
                                     0.00015403530457496774, 1.5252733504658602e-05,
                                     1.3215435076750265e-06, 1.0178194070090217e-07,
                                     7.0738206955489512e-09, 4.4357017453201559e-10};
  static constexpr double kMost = 1020;
};

// Computes log2(x) of a positive normal number with an error of 2^-33 or 2^-64: x = 2^k z, log2(z)
// = log2(c z) + log2(1 / c).
template <class F, class V>
HWY_INLINE Pair<V> log2_pair(V x) {
  using Of = Powers2<F>;
  constexpr int kFraction = Layout<NumberOf<V>>::kFraction;
  const hn::RebindToSigned<hn::DFromV<V>> di;
  const BitsOf<V> raised = hn::Sub(bits(x), bits_of<V>(Of::kLeast));
  const BitsOf<V> index = hn::ShiftRight<kFraction - 4>(raised);
  const V k = hn::ConvertTo(hn::DFromV<V>(), hn::ShiftRight<kFraction>(hn::BitCast(di, raised)));
  const V z = from_bits<V>(hn::Sub(bits(x), hn::And(raised, bits_of<V>(Of::kExponent))));
  const V r = fused_minus(z, looked_up<V>(Of::kInverse, index), of<V>(1));
  const V p = fused(r, polynomial(r, Of::kRest), of<V>(Of::kThird)),
          second = fused(r, p, of<V>(Of::kSecond.high));
  V second_low = fused(r, p, hn::Sub(of<V>(Of::kSecond.high), second));
  if constexpr (sizeof(NumberOf<V>) == 8) {
    second_low = hn::Add(second_low, of<V>(Of::kSecond.low));
  }
  const V first = fused(r, second, of<V>(Of::kE.high));
  const V first_low = hn::Add(fused(r, second, hn::Sub(of<V>(Of::kE.high), first)),
                              fused(r, second_low, of<V>(Of::kE.low)));
  const V part = hn::Mul(r, first), part_low = fused(r, first_low, fused_minus(r, first, part));
  // k is 0 or the larger term.
  const Pair<V> sum = fast_sum(hn::Add(k, looked_up<V>(Of::kLog, index)), part);
  const V low = hn::Add(part_low, looked_up<V>(Of::kLogLow, index));
  return {sum.high, hn::Add(sum.low, low)};
}

// Computes 2^(power + low) for a finite power.
template <class F, bool kMayVanish, class V>
HWY_INLINE V exp2_of_pair(V power, V low) {
  using Of = Powers2<F>;
  const V counted = hn::Add(power, rounder<V>()), n = hn::Sub(counted, rounder<V>());
  const V r = hn::Add(hn::Sub(power, n), low);
  const V slope = fused(r, polynomial(r, Of::kExp2), of<V>(Of::kLn2));
  const V rest = fused(r, slope, of<V>(1));
  return kMayVanish ? scaled_or_zero(rest, n, counted) : scaled(rest, n, counted);
}
template <class V>
HWY_INLINE Pair<V> times(V y, Pair<V> log) {
  const V power = hn::Mul(y, log.high);
  return {power, fused(y, log.low, fused_minus(y, log.high, power))};
}
// Computes powers of any numbers; those of float32 in double precision.
template <class V>
HWY_NOINLINE V pow_of_any(V x, V y) requires(sizeof(NumberOf<V>) == 8) {
  const V size = hn::Abs(x), up = of<V>(54), zero = of<V>(0);
  const auto is_small = hn::Lt(size, of<V>(std::numeric_limits<double>::min()));
  const Pair<V> raised =
      log2_pair<Double>(hn::IfThenElse(is_small, hn::Mul(size, of<V>(0x1p54)), size));
  Pair<V> log = exact_sum(raised.high, hn::IfThenElse(is_small, hn::Neg(up), zero));
  log.low = hn::Add(log.low, raised.low);
  const Pair<V> power = times(y, log);
  const auto in_range = hn::Lt(hn::Abs(power.high), of<V>(1100));
  const V result = exp2_of_pair<Double, true>(within(power.high, -1100, 1100),
                                              hn::IfThenElseZero(in_range, power.low));
  return with_limits_of_power(x, y, result);
}
template <class V>
HWY_NOINLINE V pow_of_any(V x, V y) requires(sizeof(NumberOf<V>) == 4) {
  const hn::DFromV<V> d;
  constexpr std::size_t kMost = HWY_MAX_BYTES / sizeof(float);
  HWY_ALIGN float base[kMost], exponent[kMost];
  hn::Store(x, d, base);
  hn::Store(y, d, exponent);
  for (std::size_t k = 0; k < hn::Lanes(d); k += hn::Lanes(TagFor<Widened>())) {
    const auto power = pow_of_any(load<Widened>(base + k), load<Widened>(exponent + k));
    store<Widened>(power, base + k);
  }
  return hn::Load(d, base);
}
// Computes x^y = 2^(y log2(x)) with the product as a pair.
template <class F, class V>
HWY_INLINE V pow_of(V x, V y) {
  const Pair<V> power = times(y, log2_pair<F>(x));
  const auto has_log =
      hn::And(hn::Ge(x, of<V>(std::numeric_limits<NumberOf<V>>::min())), hn::Lt(x, infinity<V>()));
  const auto plain = hn::And(has_log, hn::Le(hn::Abs(power.high), of<V>(Powers2<F>::kMost)));
  const V result = exp2_of_pair<F, false>(hn::IfThenElseZero(plain, power.high), power.low);
  if (HWY_LIKELY(hn::AllTrue(hn::DFromV<V>(), plain))) return result;
  return hn::IfThenElse(plain, result, pow_of_any(x, y));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#endif  // PALIMPSEST_VECTOR_POWERS_INL_HPP
