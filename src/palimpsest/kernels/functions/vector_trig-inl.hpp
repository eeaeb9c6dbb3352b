// SPDX-License-Identifier: Apache-2.0
// Internal: trigonometric functions of vectors and their inverses. Included once per instruction
// set. The rules of vector_math-inl.hpp hold.
#if defined(PALIMPSEST_VECTOR_TRIG_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef PALIMPSEST_VECTOR_TRIG_INL_HPP
#undef PALIMPSEST_VECTOR_TRIG_INL_HPP
#else
#define PALIMPSEST_VECTOR_TRIG_INL_HPP
#endif

#include "palimpsest/kernels/functions/large_angle.hpp"
#include "palimpsest/kernels/functions/vector_math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

// Coefficients, with z = r^2: sin(r) = r + r z p(z), cos(r) = 1 - z/2 + z^2 p(z) for |r| <= pi/4;
// tan(r) = r + r z p(z) for |r| <= pi/4; arcsin(s) = s + s z p(z) for |s| <= 1/2.
template <class F>
struct Trig;
template <>
struct Trig<Double> {
  // 2^-58.0, 2^-64.2, 2^-59.8
  static constexpr double kSin[] = {-0.16666666666666632,    0.0083333333333224357,
                                    -0.00019841269829823241, 2.7557313696573923e-06,
                                    -2.5050758751780796e-08, 1.5896828163371551e-10};
  static constexpr double kCos[] = {0.041666666666666602,   -0.0013888888888874136,
                                    2.4801587289488957e-05, -2.7557314354263153e-07,
                                    2.0875723534010143e-09, -1.1359661296288786e-11};
  // sin(r) = r + r z kThird + r z^2 p(z) for |r| <= pi/2: 2^-61.5
  static constexpr double kThird = -0.16666666666666666;
  static constexpr double kWideSin[] = {0.0083333333333332066,  -0.00019841269841212479,
                                        2.7557319211569529e-06, -2.5052106904425202e-08,
                                        1.6058941001759736e-10, -7.6430193239249949e-13,
                                        2.7214185287433314e-15};
  // 2^-59.5
  static constexpr double kTan[] = {
      0.33333333333333376,    0.13333333333326083,     0.053968253972534158,
      0.021869488408881047,   0.0088632377731077648,   0.0035921024020473071,
      0.0014560349259185716,  0.00058891694253365842,  0.00024356590878765695,
      8.4031115664284041e-05, 6.6360401228253985e-05,  -2.453682267940888e-05,
      4.7710160626512066e-05, -2.3808720629405192e-05, 9.6937186962361368e-06};
  static constexpr double kArcsin[] = {
      0.16666666666666763,  0.074999999999700931,  0.04464285717528977,  0.030381942675136959,
      0.022372215909211728, 0.017351595450520622,  0.013981019035750207, 0.011397289576331399,
      0.010789337810814474, 0.0036721307209865825, 0.021790762326896883, -0.021116862092511023,
      0.032702240547225501};
};
template <>
struct Trig<Widened> {
  // 2^-37.6, 2^-33.3
  static constexpr double kSin[] = {-0.16666666641631647, 0.0083333293851907807,
                                    -0.00019839334431060999, 2.7183068017105652e-06};
  static constexpr double kCos[] = {0.041666646874325503, -0.0013887367700346901,
                                    2.4438456084338979e-05};
};
template <>
struct Trig<Single> {
  // |r| <= pi/4 + 0.008: 2^-27.8, 2^-32.7
  static constexpr float kSin[] = {-0.166666538F, 0.00833210628F, -0.000195078843F};
  static constexpr float kCos[] = {0.0416666456F, -0.00138872978F, 2.44300827e-05F};
  // tan(r) = r + r z p(z): 2^-29.3
  static constexpr float kTan[] = {0.333333522F,  0.133325696F,     0.0540712252F, 0.0212211125F,
                                   0.0109998006F, -0.000124490442F, 0.004484504F};
  // 2^-27.6
  static constexpr float kArcsin[] = {0.166667521F, 0.0749531016F, 0.0454691052F, 0.0241846107F,
                                      0.0421592332F};
  // arctan(t) = t + t z p(z) for |t| <= 1: 2^-28.2
  static constexpr float kArctan[] = {-0.333332986F,  0.199985296F,   -0.142640159F,
                                      0.109509304F,   -0.0839994848F, 0.0579072125F,
                                      -0.0311424118F, 0.0109053664F,  -0.00179397711F};
};

constexpr double kHalfPi = 1.5707963267948966, kHalfPiLow = 6.123233995736766e-17;

// A reduced angle: x = n pi/2 + r + low, |r| <= pi/4. The last bits of `turns` are those of n.
template <class V>
struct Angle {
  V r, low;
  BitsOf<V> turns;
};

// Converts to half turns with |r| <= pi/2: x = (n - odd / 2) pi + r + low.
HWY_INLINE LargeAngle in_half_turns(LargeAngle quarters, unsigned odd) {
  LargeAngle halves = quarters;
  if (((quarters.turns ^ odd) & 1) != 0) {
    const double sign = quarters.r > 0 ? 1 : -1, part = sign * kHalfPi;
    halves.r = quarters.r - part;
    halves.low = (quarters.r - (halves.r + part)) + (quarters.low - sign * kHalfPiLow);
    halves.turns += quarters.r > 0 ? 1 : 3;
  }
  halves.turns = (halves.turns + odd) / 2;
  return halves;
}

// Unit in which the reduction of large angles counts turns.
enum class Turns { quarters, halves, halves_less_a_quarter };

// Reduces the lanes beyond `limit` exactly; the others are undefined.
template <Turns kTurns, class V>
HWY_NOINLINE void reduce_large_lanes(V x, double limit, Angle<V>& angle) {
  const hn::DFromV<V> d;
  const hn::RebindToUnsigned<hn::DFromV<V>> di;
  constexpr std::size_t kMost = HWY_MAX_BYTES / sizeof(double);
  HWY_ALIGN double numbers[kMost], r[kMost] = {}, low[kMost] = {};
  HWY_ALIGN std::uint64_t turns[kMost] = {};
  hn::Store(x, d, numbers);
  for (std::size_t k = 0; k < hn::Lanes(d); ++k) {
    if (numbers[k] <= limit && numbers[k] >= -limit) continue;
    LargeAngle exact = reduce_large_angle(numbers[k]);
    if constexpr (kTurns != Turns::quarters) {
      exact = in_half_turns(exact, kTurns == Turns::halves ? 0 : 1);
    }
    r[k] = exact.r;
    low[k] = exact.low;
    turns[k] = exact.turns;
  }
  angle = {hn::Load(d, r), hn::Load(d, low), hn::Load(di, turns)};
}

// Computes x - n kQuarters pi/2 as r + low. The first part of pi/2 has 31 bits and n at most 20, so
// their products are exact.
template <int kQuarters, bool kMayBeLarger, class V>
HWY_INLINE Pair<V> remainder_of(V x, V n) {
  constexpr double kFirst = kQuarters * 1.5707963267341256;
  constexpr double kSecond = kQuarters * 6.077100506506192e-11;
  constexpr double kThird = kQuarters * 3.5215598651832e-27;
  const V high = fused_less(n, of<V>(kFirst), x), middle = hn::Mul(n, of<V>(kSecond));
  const V r = hn::Sub(high, middle);
  // Exact even if the product is larger: `high` has no digits below those of the product.
  const V lost = hn::Sub(hn::Sub(high, r), middle);
  V low = hn::Add(lost, fused_less(n, of<V>(kSecond), middle));
  // The difference is inexact where half a turn is subtracted from a small number.
  if constexpr (kMayBeLarger) low = hn::Add(low, hn::Sub(x, fused(n, of<V>(kFirst), high)));
  return {r, fused_less(n, of<V>(kThird), low)};
}
// Selects the first where lanes are `near`, else the second.
template <class V>
HWY_INLINE Angle<V> chosen_angle(hn::Mask<hn::DFromV<V>> near, Angle<V> yes, Angle<V> no) {
  return {hn::IfThenElse(near, yes.r, no.r), hn::IfThenElse(near, yes.low, no.low),
          bits(hn::IfThenElse(near, from_bits<V>(yes.turns), from_bits<V>(no.turns)))};
}
template <Turns kTurns, class V>
HWY_INLINE Angle<V> with_lanes_beyond(double limit, V x, Angle<V> angle) {
  const auto near = hn::Le(hn::Abs(x), of<V>(limit));
  if (HWY_LIKELY(hn::AllTrue(hn::DFromV<V>(), near))) return angle;
  Angle<V> exact;
  reduce_large_lanes<kTurns>(x, limit, exact);
  return chosen_angle(near, angle, exact);
}
constexpr double kMostForProducts = 1.6e6;

template <class F, class V>
HWY_INLINE Angle<V> reduce_double_angle(V x) {
  const V counted = fused(x, of<V>(0.63661977236758138), rounder<V>());
  const V n = hn::Sub(counted, rounder<V>());
  if constexpr (std::is_same_v<F, Widened>) {
    // The first part of pi/2 has 26 bits, n at most 27.
    const V high = fused_less(n, of<V>(1.5707963109016418), x);
    const V r = fused_less(n, of<V>(1.5893254773528196e-08), high);
    return with_lanes_beyond<Turns::quarters>(1e8, x, Angle<V>{r, of<V>(0), bits(counted)});
  } else {
    const Pair<V> rest = remainder_of<1, false>(x, n);
    const Angle<V> angle{rest.high, rest.low, bits(counted)};
    return with_lanes_beyond<Turns::quarters>(kMostForProducts, x, angle);
  }
}
// Reduces x to x = n pi + r + low or x = (n - 1/2) pi + r + low, |r| <= pi/2. sin(x) or cos(x) is
// then sin(r + low) with the sign of n.
template <Turns kTurns, class V>
HWY_INLINE Angle<V> reduce_to_half_turns(V x) {
  constexpr bool kIsSine = kTurns == Turns::halves;
  const V per_half = of<V>(0.31830988618379067), half = of<V>(0.5);
  const V counted =
      kIsSine ? fused(x, per_half, rounder<V>()) : hn::Add(fused(x, per_half, half), rounder<V>());
  V n = hn::Sub(counted, rounder<V>());
  if constexpr (!kIsSine) n = hn::Sub(n, half);
  const Pair<V> rest = remainder_of<2, !kIsSine>(x, n);
  const Angle<V> angle{rest.high, rest.low, bits(counted)};
  return with_lanes_beyond<kTurns>(kMostForProducts, x, angle);
}

// The same for float32, computed in double precision.
template <class V>
HWY_NOINLINE void reduce_large_singles(V x, Angle<V>& angle) {
  const hn::DFromV<V> d;
  const hn::ScalableTag<double> wide;
  const hn::Rebind<float, decltype(wide)> half;
  using Wide = hn::Vec<decltype(wide)>;
  constexpr std::size_t kMost = HWY_MAX_BYTES / sizeof(float);
  HWY_ALIGN float numbers[kMost], r[kMost], low[kMost], quarters[kMost];
  hn::Store(x, d, numbers);
  for (std::size_t k = 0; k < hn::Lanes(d); k += hn::Lanes(wide)) {
    const Angle<Wide> part =
        reduce_double_angle<Widened>(hn::PromoteTo(wide, hn::Load(half, numbers + k)));
    const auto rest = hn::DemoteTo(half, part.r);
    hn::Store(rest, half, r + k);
    hn::Store(hn::DemoteTo(half, hn::Sub(part.r, hn::PromoteTo(wide, rest))), half, low + k);
    const auto last_bits = hn::And(part.turns, bits_of<Wide>(3));
    const Wide counted = from_bits<Wide>(hn::Or(last_bits, bits(rounder<Wide>())));
    hn::Store(hn::DemoteTo(half, hn::Sub(counted, rounder<Wide>())), half, quarters + k);
  }
  const BitsOf<V> turns = bits(hn::Add(hn::Load(d, quarters), rounder<V>()));
  angle = {hn::Load(d, r), hn::Load(d, low), turns};
}
// n times the first part of pi/2, minus x, is exact for every integer n that a float holds.
template <class V>
HWY_INLINE Angle<V> reduce_single_angle(V x) {
  const V counted = fused(x, of<V>(0.636619747F), rounder<V>());
  const V n = hn::Sub(counted, rounder<V>());
  const V high = fused_less(n, of<V>(1.57079625F), x);
  const V middle = of<V>(7.54978942e-08F);
  const V r = fused_less(n, of<V>(5.39030286e-15F), fused_less(n, middle, high));
  // The difference is exact unless r is small.
  const V low = hn::IfThenElseZero(hn::Gt(hn::Mul(r, r), of<V>(0x1p-20F)),
                                   fused_less(n, middle, hn::Sub(high, r)));
  const Angle<V> angle{r, low, bits(counted)};
  const auto near = hn::Le(hn::Abs(x), of<V>(4000.0F));
  if (HWY_LIKELY(hn::AllTrue(hn::DFromV<V>(), near))) return angle;
  Angle<V> exact;
  reduce_large_singles(x, exact);
  return chosen_angle(near, angle, exact);
}

template <class F, class V>
HWY_INLINE Angle<V> reduce_angle(V x) {
  if constexpr (std::is_same_v<F, Single>) {
    return reduce_single_angle(x);
  } else {
    return reduce_double_angle<F>(x);
  }
}

template <class N>
struct SineCosine {
  N sine, cosine;
};
// The sine and cosine of r + low as pairs; the first number is the leading term.
template <class V>
HWY_INLINE SineCosine<Pair<V>> sine_cosine_pairs(const Angle<V>& a) {
  using Of = Trig<Double>;
  const V z = hn::Mul(a.r, a.r), half = hn::Mul(z, of<V>(0.5)), one = of<V>(1);
  const V w = hn::Sub(one, half);
  const V bent = hn::Mul(hn::Mul(a.r, z), polynomial(z, Of::kSin));
  const V tail = hn::Mul(hn::Mul(z, z), polynomial(z, Of::kCos));
  const V rest = hn::Sub(hn::Sub(one, w), half);
  return {{a.r, fused(a.low, w, bent)}, {w, hn::Add(rest, fused_less(a.r, a.low, tail))}};
}

// Selects one where the number of quarter turns is odd, the other where it is even.
template <class V>
HWY_INLINE V if_odd(BitsOf<V> turns, V odd, V even) {
  const auto is_odd = hn::TestBit(turns, bits_of<V>(1));
  return hn::IfThenElse(hn::RebindMask(hn::DFromV<V>(), is_odd), odd, even);
}
// Negates v after two or three quarter turns.
template <class V>
HWY_INLINE V turned(BitsOf<V> turns, V v) {
  constexpr int kSign = 8 * sizeof(NumberOf<V>) - 1;
  const V sign = from_bits<V>(hn::ShiftLeft<kSign>(hn::ShiftRight<1>(turns)));
  return hn::Xor(v, sign);
}
template <class V>
HWY_INLINE BitsOf<V> after_a_quarter(BitsOf<V> turns) {
  return hn::Add(turns, bits_of<V>(1));
}

template <class V>
HWY_INLINE V sum_of(Pair<V> v) {
  return hn::Add(v.high, v.low);
}
// Computes the sine and cosine of r + low.
template <class F, class V>
HWY_INLINE SineCosine<V> sine_cosine(const Angle<V>& a) {
  if constexpr (std::is_same_v<F, Double>) {
    const SineCosine<Pair<V>> both = sine_cosine_pairs(a);
    return {sum_of(both.sine), sum_of(both.cosine)};
  } else {
    using T = NumberOf<V>;
    const V z = hn::Mul(a.r, a.r), w = fused_less(z, of<V>(T{0.5}), of<V>(1));
    const V tail = hn::Mul(hn::Mul(z, z), polynomial(z, Trig<F>::kCos));
    return {hn::Add(a.r, fused(hn::Mul(a.r, z), polynomial(z, Trig<F>::kSin), a.low)),
            hn::Add(w, fused_less(a.r, a.low, tail))};
  }
}
// Computes the sine of r + low, |r| <= pi/2, with the sign of n. Rounding errors of the first two
// terms are kept: near pi/2 the second term is 2/3 of the sine.
template <class V>
HWY_INLINE V sine_of_half_turns(const Angle<V>& a) {
  using Of = Trig<Double>;
  const Pair<V> square = exact_product(a.r, a.r), cube = exact_product(a.r, square.high);
  const V z = square.high, third = of<V>(Of::kThird);
  const V slope = fused_less(z, of<V>(0.40528473456935109), of<V>(1));  // cos(r) to 0.06
  const V high = fused(cube.high, third, a.r), cube_low = fused(a.r, square.low, cube.low);
  const V lost = fused(cube.high, third, hn::Sub(a.r, high));
  const V low = fused(a.low, slope, fused(cube_low, third, lost));
  const V tail = fused(hn::Mul(cube.high, z), polynomial(z, Of::kWideSin), low);
  const V sign = from_bits<V>(hn::ShiftLeft<63>(a.turns));
  // The sums turn -0 into 0.
  return hn::CopySign(hn::Add(high, tail), hn::Xor(a.r, sign));
}
template <class F, class V>
HWY_INLINE V sin_of(V x) {
  if constexpr (std::is_same_v<F, Double>) {
    return sine_of_half_turns(reduce_to_half_turns<Turns::halves>(x));
  } else {
    const Angle<V> a = reduce_angle<F>(x);
    const SineCosine<V> both = sine_cosine<F>(a);
    const V result = turned<V>(a.turns, if_odd(a.turns, both.cosine, both.sine));
    // The sums above turn -0 into 0.
    return hn::IfThenElse(hn::Eq(x, of<V>(0)), x, result);
  }
}
template <class F, class V>
HWY_INLINE V cos_of(V x) {
  if constexpr (std::is_same_v<F, Double>) {
    return sine_of_half_turns(reduce_to_half_turns<Turns::halves_less_a_quarter>(x));
  } else {
    const Angle<V> a = reduce_angle<F>(x);
    const SineCosine<V> both = sine_cosine<F>(a);
    return turned<V>(after_a_quarter<V>(a.turns), if_odd(a.turns, both.sine, both.cosine));
  }
}
// Computes the tangent of r + low, or its negative inverse after an odd number of quarter turns.
template <class F, class V>
HWY_INLINE V tan_of(V x) {
  const Angle<V> a = reduce_angle<F>(x);
  const V z = hn::Mul(a.r, a.r), one = of<V>(1);
  V low;
  if constexpr (std::is_same_v<F, Single>) {
    low = fused(a.low, z, a.low);
  } else {
    low = hn::Mul(a.low, fused(z, of<V>(1.5), one));
  }
  const V bent = fused(hn::Mul(a.r, z), polynomial(z, Trig<F>::kTan), low);
  const Pair<V> tangent = fast_sum(a.r, bent);
  const V inverse = hn::Div(of<V>(-1), tangent.high);
  V off;
  if constexpr (std::is_same_v<F, Single>) {
    off = hn::Mul(inverse, tangent.low);
  } else {
    off = fused(inverse, tangent.low, fused(inverse, tangent.high, one));
  }
  // The sum turns -0 into 0.
  return if_odd(a.turns, fused(inverse, off, inverse), hn::CopySign(tangent.high, a.r));
}

// Tables of 16 intervals of a / b from 0 to infinity, two per power of 2: the tangent c of an angle
// within each, and that angle. |t| < 1/10 for t = (a - c b) / (b + c a), the tangent of the
// difference.
constexpr double kTangents[16] = {0,
                                  0.10412196069955826,
                                  0.15610118210315704,
                                  0.2079872339963913,
                                  0.31139150261878967,
                                  0.41421356797218323,
                                  0.6180340051651001,
                                  0.81980389356613159,
                                  1.2198039293289185,
                                  1.6180340051651001,
                                  2.4142136573791504,
                                  3.2113914489746094,
                                  4.8079872131347656,
                                  6.4061012268066406,
                                  9.6041221618652344,
                                  21.380105972290039};
constexpr double kAngles[16] = {0,
                                0.10374811416993525,
                                0.15485146739161762,
                                0.20506366375222879,
                                0.30187467329686685,
                                0.39269908647784485,
                                0.55357437077519922,
                                0.68670037799882611,
                                0.88409595401820862,
                                1.0172219724349025,
                                1.1780972590094867,
                                1.268921655994163,
                                1.3657326553771418,
                                1.4159448554681673,
                                1.4670482157451434,
                                1.5240579366208138};
constexpr double kAnglesLow[16] = {0,
                                   -4.2349407866551263e-18,
                                   5.5555943055180453e-18,
                                   7.8720428201506298e-18,
                                   2.1657818504705423e-17,
                                   -5.2459587981108441e-18,
                                   4.8856126334641036e-17,
                                   -3.2853291447712664e-17,
                                   5.1156647126826183e-17,
                                   -5.3808345899154915e-17,
                                   -2.1970808762910644e-17,
                                   9.5912130326207001e-17,
                                   5.1506103296432346e-17,
                                   1.0437913460498871e-16,
                                   -7.4908038602083331e-17,
                                   1.0968182980146928e-16};
// Computes arctan(a / b) as an unevaluated sum; a, b >= 0, 22 a and 22 b finite.
template <class V>
HWY_INLINE Pair<V> angle_of_ratio(V a, V b) {
  // arctan(t) = t + t z p(z) for |t| <= 1/10: 2^-63.5
  constexpr double kArctan[] = {-0.33333333333333287, 0.19999999999906945,   -0.14285714223802778,
                                0.11111092217061672,  -0.090879946790035276, 0.074706809133939414};
  const hn::RebindToSigned<hn::DFromV<V>> di;
  // The difference of the bits gives the interval; an error of an eighth of its width is harmless.
  const auto steps = hn::Sub(hn::BitCast(di, a), hn::BitCast(di, b));
  constexpr std::int64_t kStep = std::int64_t{1} << 51;
  const auto inside = hn::Min(hn::Max(steps, hn::Set(di, -8 * kStep)), hn::Set(di, 7 * kStep));
  const auto place = hn::ShiftRight<51>(hn::Add(inside, hn::Set(di, 8 * kStep)));
  const BitsOf<V> index = hn::BitCast(hn::RebindToUnsigned<hn::DFromV<V>>(), place);
  const V c = looked_up<V>(kTangents, index), middle = looked_up<V>(kAngles, index);
  const V t = hn::Div(fused_less(c, b, a), fused(c, a, b)), z = hn::Mul(t, t);
  const Pair<V> sum = fast_sum(middle, t);  // the middle is 0 or larger
  const V low = fused(hn::Mul(t, z), polynomial(z, kArctan), looked_up<V>(kAnglesLow, index));
  return {sum.high, hn::Add(sum.low, low)};
}

// The angle from 0 to pi whose tangent has the absolute value t <= 1, or 1 / t if `steep`, and
// whose cosine has the sign of x: pi k/2 + t or pi k/2 - t.
template <class V>
HWY_INLINE V single_angle(V t, hn::Mask<hn::DFromV<V>> is_steep, V x) {
  constexpr float kLow = -4.37113883e-08F;
  const V zero = of<V>(0), half = of<V>(1.57079637F), half_low = of<V>(kLow);
  const V sign = hn::Xor(x, hn::IfThenElseZero(is_steep, of<V>(-0.0F)));
  const auto is_left = hn::Lt(hn::CopySign(half, x), zero);  // also of -0
  const V middle = hn::IfThenElseZero(is_left, hn::Add(half, half));
  const V middle_low = hn::IfThenElseZero(is_left, hn::Add(half_low, half_low));
  const V signed_t = hn::CopySign(t, sign), z = hn::Mul(t, t);
  const V low = fused(hn::Mul(signed_t, z), polynomial(z, Trig<Single>::kArctan),
                      hn::IfThenElse(is_steep, half_low, middle_low));
  return hn::Add(hn::IfThenElse(is_steep, half, middle), hn::Add(signed_t, low));
}

template <class F, class V>
HWY_INLINE V arctan_of(V x) {
  const V size = hn::Abs(x), one = of<V>(1);
  if constexpr (std::is_same_v<F, Single>) {
    const auto is_steep = hn::Gt(size, one);
    const V over = hn::IfThenElse(is_steep, one, size), under = hn::IfThenElse(is_steep, size, one);
    return hn::CopySign(single_angle(hn::Div(over, under), is_steep, one), x);
  } else {
    return hn::CopySign(sum_of(angle_of_ratio(at_most(size, 0x1p60), one)), x);
  }
}
// Computes the angle of the point (x, y).
template <class V>
HWY_INLINE V single_arctan2(V y, V x) {
  const hn::DFromV<V> d;
  const V a = hn::Abs(y), b = hn::Abs(x), zero = of<V>(0), one = of<V>(1);
  const auto is_steep = hn::Gt(a, b);
  V less = hn::IfThenElse(is_steep, b, a), more = hn::IfThenElse(is_steep, a, b);
  const auto common = hn::And(hn::Gt(more, zero), hn::Lt(more, infinity<V>()));
  if (HWY_UNLIKELY(!hn::AllTrue(d, common))) {
    // Two infinities give the angle of (1, 1), two zeros that of (1, 0).
    const auto infinite = hn::And(hn::Eq(less, infinity<V>()), hn::Eq(more, less));
    less = hn::IfThenElse(infinite, one, less);
    more = hn::IfThenElse(hn::Or(infinite, hn::Eq(more, zero)), one, more);
  }
  return hn::CopySign(single_angle(hn::Div(less, more), is_steep, x), y);
}
// The angle of the point (+-b, a): b takes the sign of x, the angle that of y.
template <class V>
HWY_INLINE V angle_in_half_plane(V a, V b, V y, V x) {
  const Pair<V> angle = angle_of_ratio(a, b);
  // pi - angle on the left, also for -0.
  const auto is_left = hn::Lt(hn::CopySign(of<V>(1), x), of<V>(0));
  const V sign = hn::And(x, of<V>(-0.0)), pi = hn::IfThenElseZero(is_left, of<V>(2 * kHalfPi));
  const Pair<V> sum = fast_sum(pi, hn::Xor(angle.high, sign));
  const V low =
      hn::Add(hn::Xor(angle.low, sign), hn::IfThenElseZero(is_left, of<V>(2 * kHalfPiLow)));
  return hn::CopySign(hn::Add(sum.high, hn::Add(sum.low, low)), y);
}
template <class V>
HWY_NOINLINE V arctan2_of_any(V y, V x) {
  const V one = of<V>(1);
  V a = hn::Abs(y), b = hn::Abs(x), more = hn::Max(a, b);
  // Scales the numbers: an infinity becomes 1 and a finite number beside it 0; 0 / 0 becomes 0 / 1.
  const auto infinite = hn::Eq(more, infinity<V>());
  a = hn::IfThenElse(infinite, hn::IfThenElseZero(hn::Eq(a, infinity<V>()), one), a);
  b = hn::IfThenElse(infinite, hn::IfThenElseZero(hn::Eq(b, infinity<V>()), one), b);
  b = hn::IfThenElse(hn::Eq(more, of<V>(0)), one, b);
  // Keeps the digits of the ratio where both are huge or tiny.
  more = hn::Max(a, b);
  const V scale =
      hn::IfThenElse(hn::Gt(more, of<V>(0x1p1000)), of<V>(0x1p-100),
                     hn::IfThenElse(hn::Lt(more, of<V>(0x1p-800)), of<V>(0x1p200), one));
  a = hn::Mul(a, scale);
  b = hn::Mul(b, scale);
  const V result = angle_in_half_plane(a, b, y, x);
  return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::IsNaN(y)), not_a_number<V>(), result);
}
template <class V>
HWY_INLINE V double_arctan2(V y, V x) {
  const V a = hn::Abs(y), b = hn::Abs(x), most = of<V>(0x1p1000);
  const V result = angle_in_half_plane(a, b, y, x);
  const auto finite = hn::And(hn::Le(a, most), hn::Le(b, most));
  const auto plain = hn::And(finite, hn::Ge(hn::Max(a, b), of<V>(0x1p-800)));
  if (HWY_LIKELY(hn::AllTrue(hn::DFromV<V>(), plain))) return result;
  return hn::IfThenElse(plain, result, arctan2_of_any(y, x));
}

template <class F, class V>
HWY_INLINE V arctan2_of(V y, V x) {
  if constexpr (std::is_same_v<F, Single>) {
    return single_arctan2(y, x);
  } else {
    return double_arctan2(y, x);
  }
}

// pi / 2 as a pair.
template <class V>
HWY_INLINE Pair<V> half_pi() {
  if constexpr (sizeof(NumberOf<V>) == 8) {
    return {of<V>(kHalfPi), of<V>(kHalfPiLow)};
  } else {
    return {of<V>(1.57079637F), of<V>(-4.37113883e-08F)};
  }
}
// Computes a - b - low; needs a.high >= |b|.
template <class V>
HWY_INLINE V difference(Pair<V> a, V b, V low) {
  const V high = hn::Sub(a.high, b), lost = hn::Sub(hn::Sub(a.high, high), b);
  return hn::Add(high, hn::Sub(hn::Add(lost, a.low), low));
}

// Parts of an arcsine: arcsin(s) = s + bent + lost with s = sqrt((1 - |x|) / 2) where |x| > 1/2,
// else |x|.
template <class V>
struct Arc {
  V s, bent, lost;
  hn::Mask<hn::DFromV<V>> is_far;
};
template <class F, class V>
HWY_INLINE Arc<V> arc_of(V size) {
  using T = NumberOf<V>;
  const V half = of<V>(T{0.5});
  Arc<V> arc;
  arc.is_far = hn::Gt(size, half);
  const V z =
      hn::IfThenElse(arc.is_far, hn::Mul(hn::Sub(of<V>(1), size), half), hn::Mul(size, size));
  arc.s = hn::IfThenElse(arc.is_far, hn::Sqrt(z), size);
  arc.bent = hn::Mul(hn::Mul(arc.s, z), polynomial(z, Trig<F>::kArcsin));
  arc.lost = of<V>(0);
  if constexpr (std::is_same_v<F, Double>) {
    const Pair<V> square = exact_product(arc.s, arc.s);
    const V missing = hn::Sub(hn::Sub(z, square.high), square.low);
    const auto has_root = hn::And(arc.is_far, hn::Gt(z, of<V>(0)));
    arc.lost = hn::IfThenElseZero(has_root, hn::Div(missing, hn::Add(arc.s, arc.s)));
  }
  return arc;
}
template <class F, class V>
HWY_INLINE V arcsin_of(V x) {
  const Arc<V> arc = arc_of<F>(hn::Abs(x));
  const V near = hn::Add(arc.s, arc.bent), bent = hn::Add(arc.bent, arc.lost);
  const V far = difference(half_pi<V>(), hn::Add(arc.s, arc.s), hn::Add(bent, bent));
  return hn::CopySign(hn::IfThenElse(arc.is_far, far, near), x);
}
template <class F, class V>
HWY_INLINE V arccos_of(V x) {
  const Arc<V> arc = arc_of<F>(hn::Abs(x));
  const V bent = hn::Add(arc.bent, arc.lost);
  const Pair<V> half = half_pi<V>(), pi{hn::Add(half.high, half.high), hn::Add(half.low, half.low)};
  // pi/2 - arcsin(x)
  const V near = difference(half, hn::CopySign(arc.s, x), hn::CopySign(arc.bent, x));
  // 2 arcsin(s), or pi - 2 arcsin(s)
  const V twice = hn::Add(arc.s, arc.s), twice_bent = hn::Add(bent, bent);
  const V far = hn::IfThenElse(hn::Lt(x, of<V>(0)), difference(pi, twice, twice_bent),
                               hn::Add(twice, twice_bent));
  return hn::IfThenElse(arc.is_far, far, near);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#endif  // PALIMPSEST_VECTOR_TRIG_INL_HPP
