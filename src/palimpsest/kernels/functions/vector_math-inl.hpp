// SPDX-License-Identifier: Apache-2.0
// Internal: exponential and logarithmic functions of vectors. Included once per instruction set.
//
// 1. Only sums, products, quotients, roots, comparisons, bit operations, tables and fused products
//    (`fused`) are used, each rounded once: all instruction sets give the same bits. A lane's
//    result depends on that lane alone. Branches only skip work that would change no lane.
// 2. A function is written once for three formats: Double; Single, computed in single precision;
//    Widened, single precision computed in double. Results of Widened are correctly rounded but for
//    one in a thousand.
// 3. Polynomials are minimax fits (Remez). The largest relative error of the function stands beside
//    each.
#if defined(PALIMPSEST_VECTOR_MATH_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef PALIMPSEST_VECTOR_MATH_INL_HPP
#undef PALIMPSEST_VECTOR_MATH_INL_HPP
#else
#define PALIMPSEST_VECTOR_MATH_INL_HPP
#endif

#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class V>
using NumberOf = hn::TFromD<hn::DFromV<V>>;
template <class V>
using BitsOf = hn::Vec<hn::RebindToUnsigned<hn::DFromV<V>>>;

// Layout of a number: bits of the fraction; bias of the exponent; the rounder 1.5 2^fraction:
// adding it rounds to an integer.
template <class T>
struct Layout;
template <>
struct Layout<double> {
  using Bits = std::uint64_t;
  static constexpr int kFraction = 52, kBias = 1023;
  static constexpr double kRounder = 6755399441055744.0;
  // Bits of sqrt(1/2), the lowest mantissa that the logarithm keeps unscaled.
  static constexpr Bits kRootHalf = 0x3fe6a09e667f3bcd;
};
template <>
struct Layout<float> {
  using Bits = std::uint32_t;
  static constexpr int kFraction = 23, kBias = 127;
  static constexpr float kRounder = 12582912.0F;
  static constexpr Bits kRootHalf = 0x3f3504f3;
};

struct InDouble {
  using T = double;
  // ln 2 in two parts. Products of the first part with 11 bits are exact.
  static constexpr T kLn2 = 0.69314718055920821, kLn2Low = 7.3710025651677989e-13;
  static constexpr T kExpLow = -746, kExpHigh = 712;
};
struct Double : InDouble {
  // exp(r) = 1 + r + r^2 p(r): 2^-57.9
  static constexpr T kExp[] = {0.50000000000000111,    0.16666666666666413,
                               0.041666666666530155,   0.0083333333334944699,
                               0.0013888888943630361,  0.00019841269506555356,
                               2.4801493098733352e-05, 2.7557586396741581e-06,
                               2.7630248422432849e-07, 2.5000053878886233e-08};
  // 2 artanh(s) = 2 s + s z p(z), z = s^2: 2^-58.5
  static constexpr T kLog[] = {0.6666666666666734,  0.39999999999413965, 0.2857142874256316,
                               0.22222198553650335, 0.18183565414682856, 0.1531402092623847,
                               0.14796263108064794};
  // sinh(x) = x + x z p(z): 2^-63.2
  static constexpr T kSinh[] = {0.16666666666666669,    0.0083333333333331389,
                                0.00019841269841437676, 2.7557319155337921e-06,
                                2.5052123398425761e-08, 1.6057240349040648e-10,
                                7.7593120225675641e-13};
  // erf(x) = x + x p(z) for x < kErfBend; 1 - exp(-x - x p(x)) up to kErfMost; 1 beyond: 2^-56.0,
  // 2^-56.6
  static constexpr T kErfBend = 1, kErfMost = 6;
  static constexpr T kErfNear[] = {
      0.12837916709551256,     -0.37612638903183343,    0.11283791670936949,
      -0.026866170641958551,   0.0052239775967264359,   -0.0008548325484219458,
      0.00012055280459397965,  -1.4924464559292236e-05, 1.6444131228719866e-06,
      -1.6183783934029733e-07, 1.3615485814526523e-08,  -7.6048371083375652e-10};
  static constexpr T kErfFar[] = {
      0.12837911084904666,     0.63662025275945877,     0.10277082675114793,
      -0.01912496385450474,    -0.00021203785586446794, 0.0016926097530118799,
      -0.00057466046863955376, -9.7356520151501695e-07, 9.548586260930015e-05,
      -5.6038242311435031e-05, 2.0351263453407851e-05,  -5.3852076806208815e-06,
      1.0781150160057945e-06,  -1.6301971758772661e-07, 1.812979038704121e-08,
      -1.4022838220169934e-09, 6.74361077159901e-11,    -1.5184340183860069e-12};
};
struct Widened : InDouble {
  // 2^-34.2
  static constexpr T kExp[] = {0.5000000067596595,    0.16666665863999802,
                               0.04166629506053187,   0.0083334979463780719,
                               0.0013944656404427354, 0.00019789960726517944};
  // log(1 + f) = f + f^2 p(f), without a quotient: 2^-38.4
  static constexpr T kBentLog[] = {
      -0.49999999993770483,  0.33333333425209927,  -0.25000002005893324,  0.19999987383495266,
      -0.16666490531085776,  0.14286208907176728,  -0.125066100330612,    0.11105779821157905,
      -0.098805886361068976, 0.090300191349909548, -0.093176115259831313, 0.091744090275391557,
      -0.048410186702114312};
};
struct Single {
  using T = float;
  static constexpr T kLn2 = 0.693145752F, kLn2Low = 1.42860682e-06F;
  static constexpr T kExpLow = -105, kExpHigh = 90;
  // 2^-28.3
  static constexpr T kExp[] = {0.49999994F, 0.166665211F, 0.041668389F, 0.00836871658F,
                               0.00138146395F};
  // To base e, 2 and 10: 2^-27.5, 2^-27.7, 2^-27.7
  static constexpr T kBentLog[] = {-0.499999881F, 0.333333254F,  -0.250015825F,
                                   0.200019747F,  -0.166090816F, 0.14181824F,
                                   -0.132429883F, 0.129044384F,  -0.0762178376F};
  static constexpr T kBentLog2[] = {-0.721347332F, 0.480898201F,  -0.36069867F,
                                    0.288571417F,  -0.239567354F, 0.204486579F,
                                    -0.191390827F, 0.187088192F,  -0.110255897F};
  static constexpr T kBentLog10[] = {-0.217147186F,  0.144764781F,   -0.108580895F,
                                     0.086868681F,   -0.0721228942F, 0.0615594797F,
                                     -0.0575642996F, 0.056279812F,   -0.033271268F};
  // 2^-31.6
  static constexpr T kSinh[] = {0.166666672F, 0.00833331048F, 0.000198428956F, 2.78221319e-06F};
  // 2^-26.1, 2^-28.3
  static constexpr T kErfBend = 0.9F, kErfMost = 4;
  static constexpr T kErfNear[] = {0.128379151F,  -0.376125038F,  0.112819217F,
                                   -0.026770493F, 0.00499895914F, -0.000602079963F};
  static constexpr T kErfFar[] = {0.128519952F,   0.635699391F,   0.105286792F,
                                  -0.0229059681F, 0.00321994815F, -0.000214590706F};
};

template <class V>
HWY_INLINE V of(NumberOf<V> value) {
  return hn::Set(hn::DFromV<V>(), value);
}
template <class V>
HWY_INLINE BitsOf<V> bits(V v) {
  return hn::BitCast(hn::RebindToUnsigned<hn::DFromV<V>>(), v);
}
template <class V>
HWY_INLINE V from_bits(BitsOf<V> v) {
  return hn::BitCast(hn::DFromV<V>(), v);
}
template <class V>
HWY_INLINE BitsOf<V> bits_of(typename Layout<NumberOf<V>>::Bits value) {
  return hn::Set(hn::RebindToUnsigned<hn::DFromV<V>>(), value);
}
template <class V>
HWY_INLINE V infinity() {
  return of<V>(std::numeric_limits<NumberOf<V>>::infinity());
}
template <class V>
HWY_INLINE V not_a_number() {
  return of<V>(std::numeric_limits<NumberOf<V>>::quiet_NaN());
}
template <class V>
HWY_INLINE V rounder() {
  return of<V>(Layout<NumberOf<V>>::kRounder);
}
// Rounds to an integer; |v| is below a quarter of the rounder.
template <class V>
HWY_INLINE V rounded(V v) {
  return hn::Sub(hn::Add(v, rounder<V>()), rounder<V>());
}

// Computes a b + c, rounded once. On processors without such an instruction (x86 before 2013) calls
// the C library lane by lane: slower, with the same bits.
template <class V>
HWY_INLINE V fused(V a, V b, V c) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a, b, c);
#else
  const hn::DFromV<V> d;
  using T = NumberOf<V>;
  HWY_ALIGN T x[HWY_MAX_BYTES / sizeof(T)], y[HWY_MAX_BYTES / sizeof(T)],
      z[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(a, d, x);
  hn::Store(b, d, y);
  hn::Store(c, d, z);
  for (std::size_t k = 0; k < hn::Lanes(d); ++k) z[k] = std::fma(x[k], y[k], z[k]);
  return hn::Load(d, z);
#endif
}
// Computes a b - c, rounded once.
template <class V>
HWY_INLINE V fused_minus(V a, V b, V c) {
#if HWY_NATIVE_FMA
  return hn::MulSub(a, b, c);
#else
  return fused(a, b, hn::Neg(c));
#endif
}
// Computes c - a b, rounded once.
template <class V>
HWY_INLINE V fused_less(V a, V b, V c) {
#if HWY_NATIVE_FMA
  return hn::NegMulAdd(a, b, c);
#else
  return fused(hn::Neg(a), b, c);
#endif
}
// Computes -(a b + c), rounded once.
template <class V>
HWY_INLINE V fused_negated(V a, V b, V c) {
#if HWY_NATIVE_FMA
  return hn::NegMulSub(a, b, c);
#else
  return hn::Neg(fused(a, b, c));
#endif
}

// c[kFirst] + c[kFirst + kStep] x + ...
template <std::size_t kFirst, std::size_t kStep, class V, class T, std::size_t kN>
HWY_INLINE V polynomial_from(V x, const T (&c)[kN]) {
  if constexpr (kFirst + kStep >= kN) {
    return of<V>(c[kFirst]);
  } else {
    return fused(polynomial_from<kFirst + kStep, kStep>(x, c), x, of<V>(c[kFirst]));
  }
}
// Computes c[0] + c[1] x + ... The first coefficient, whose rounding counts most, is added last. In
// long polynomials the others form two polynomials in x^2, which processors compute in parallel.
template <class V, class T, std::size_t kN>
HWY_INLINE V polynomial(V x, const T (&c)[kN]) {
  if constexpr (kN < 10) {
    return polynomial_from<0, 1>(x, c);
  } else {
    const V square = hn::Mul(x, x);
    const V rest = fused(polynomial_from<2, 2>(square, c), x, polynomial_from<1, 2>(square, c));
    return fused(rest, x, of<V>(c[0]));
  }
}

// A table of 16 numbers, and the bits in which each of the last 8 differs from its partner in the
// first 8.
struct Table {
  float values[16];
  std::uint32_t differences[8];
};
constexpr Table table_of(const float (&values)[16]) {
  Table table{};
  for (int k = 0; k < 16; ++k) table.values[k] = values[k];
  for (int k = 0; k < 8; ++k) {
    table.differences[k] =
        std::bit_cast<std::uint32_t>(values[k]) ^ std::bit_cast<std::uint32_t>(values[k + 8]);
  }
  return table;
}
// Looks up table[index % 16].
template <class V>
HWY_INLINE V looked_up(const Table& table, BitsOf<V> index) {
#if HWY_TARGET == HWY_AVX3
  return V{_mm512_permutexvar_ps(index.raw, _mm512_loadu_ps(table.values))};
#elif HWY_TARGET == HWY_AVX2
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(table.differences));
  const __m256i in_second = _mm256_srai_epi32(_mm256_slli_epi32(index.raw, 28), 31);
  const __m256i differs = _mm256_and_si256(_mm256_permutevar8x32_epi32(bits, index.raw), in_second);
  const __m256 first = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table.values), index.raw);
  return V{_mm256_xor_ps(first, _mm256_castsi256_ps(differs))};
#else
  const hn::DFromV<V> d;
  HWY_ALIGN std::uint32_t places[HWY_MAX_BYTES / sizeof(float)];
  HWY_ALIGN float values[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(index, hn::RebindToUnsigned<hn::DFromV<V>>(), places);
  for (std::size_t k = 0; k < hn::Lanes(d); ++k) values[k] = table.values[places[k] % 16];
  return hn::Load(d, values);
#endif
}

template <class V>
HWY_INLINE V looked_up(const double (&table)[16], BitsOf<V> index) {
#if HWY_TARGET == HWY_AVX3
  return V{_mm512_permutex2var_pd(_mm512_loadu_pd(table), index.raw, _mm512_loadu_pd(table + 8))};
#elif HWY_TARGET == HWY_AVX2
  // Avoids gathers: microcode mitigations make them many times slower.
  alignas(32) std::uint64_t k[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(k), index.raw);
  return V{_mm256_set_pd(table[k[3] % 16], table[k[2] % 16], table[k[1] % 16], table[k[0] % 16])};
#else
  const hn::DFromV<V> d;
  HWY_ALIGN std::uint64_t places[HWY_MAX_BYTES / sizeof(double)];
  HWY_ALIGN double values[HWY_MAX_BYTES / sizeof(double)];
  hn::Store(index, hn::RebindToUnsigned<hn::DFromV<V>>(), places);
  for (std::size_t k = 0; k < hn::Lanes(d); ++k) values[k] = table[places[k] % 16];
  return hn::Load(d, values);
#endif
}

// A number as an unevaluated sum of two.
template <class V>
struct Pair {
  V high, low;
};
// Computes a + b exactly; needs |a| >= |b| or a = 0.
template <class V>
HWY_INLINE Pair<V> fast_sum(V a, V b) {
  const V sum = hn::Add(a, b);
  return {sum, hn::Sub(b, hn::Sub(sum, a))};
}
// Computes a + b exactly.
template <class V>
HWY_INLINE Pair<V> exact_sum(V a, V b) {
  const V sum = hn::Add(a, b), part = hn::Sub(sum, a);
  return {sum, hn::Add(hn::Sub(a, hn::Sub(sum, part)), hn::Sub(b, part))};
}
// Computes a b exactly.
template <class V>
HWY_INLINE Pair<V> exact_product(V a, V b) {
  const V product = hn::Mul(a, b);
  return {product, fused_minus(a, b, product)};
}
// Computes 2^(n + kMore) for an integer n; `counted` is n plus the rounder.
template <int kMore, class V>
HWY_INLINE V power_of_counted(V counted) {
  using L = Layout<NumberOf<V>>;
  const auto biased = hn::Add(bits(counted), bits_of<V>(L::kBias + kMore));
  return from_bits<V>(hn::ShiftLeft<L::kFraction>(biased));
}
// Computes 2^n for an integer n in the range of exponents.
template <class V>
HWY_INLINE V power_of_two(V n) {
  return power_of_counted<0>(hn::Add(n, rounder<V>()));
}
// Computes v 2^n, rounded once if v is near 1; `counted` is n plus the rounder.
template <class V>
HWY_INLINE V scaled(V v, V n, [[maybe_unused]] V counted) {
#if HWY_TARGET == HWY_AVX3
  // An instruction instead of seven: exp() takes a quarter of the time.
  if constexpr (sizeof(NumberOf<V>) == 8)
    return V{_mm512_scalef_pd(v.raw, n.raw)};
  else
    return V{_mm512_scalef_ps(v.raw, n.raw)};
#else
  const hn::DFromV<V> d;
  const V most = of<V>(static_cast<NumberOf<V>>(Layout<NumberOf<V>>::kBias - 2));
  if (HWY_LIKELY(hn::AllTrue(d, hn::Le(hn::Abs(n), most))))
    return hn::Mul(v, power_of_counted<0>(counted));
  const V half = rounded(hn::Mul(n, of<V>(NumberOf<V>{0.5})));
  return hn::Mul(hn::Mul(v, power_of_two(half)), power_of_two(hn::Sub(n, half)));
#endif
}
template <class V>
HWY_INLINE V scaled(V v, V n) {
  return scaled(v, n, hn::Add(n, rounder<V>()));
}
// Like scaled(), for 0 < v < sqrt(2). A product that would underflow is not computed: processors
// take 25 times as long for subnormal numbers.
template <class V>
HWY_INLINE V scaled_or_zero(V v, V n, [[maybe_unused]] V counted) {
  using L = Layout<NumberOf<V>>;
  const V least = of<V>(static_cast<NumberOf<V>>(-L::kBias - L::kFraction));
#if HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(NumberOf<V>) == 8) {
    const __mmask8 stays = _mm512_cmp_pd_mask(n.raw, least.raw, _CMP_NLT_UQ);
    return V{_mm512_maskz_scalef_pd(stays, v.raw, n.raw)};
  } else {
    const __mmask16 stays = _mm512_cmp_ps_mask(n.raw, least.raw, _CMP_NLT_UQ);
    return V{_mm512_maskz_scalef_ps(stays, v.raw, n.raw)};
  }
#else
  const hn::DFromV<V> d;
  const V most = of<V>(static_cast<NumberOf<V>>(L::kBias - 2));
  if (HWY_LIKELY(hn::AllTrue(d, hn::Le(hn::Abs(n), most)))) {
    return hn::Mul(v, power_of_counted<0>(counted));
  }
  return scaled(hn::IfThenZeroElse(hn::Lt(n, least), v), n, counted);
#endif
}

// Power of 2 that brings the square of the larger number into range, and its exponent.
template <class V>
struct Scale {
  V factor, exponent;
};
template <class V, class T = NumberOf<V>>
HWY_INLINE Scale<V> scale_for(V largest) {
  constexpr bool kIsDouble = sizeof(T) == 8;
  constexpr T kHuge = kIsDouble ? T(0x1p400) : T(0x1p50), kExponent = kIsDouble ? 600 : 100;
  const auto is_huge = hn::Gt(largest, of<V>(kHuge)), is_tiny = hn::Lt(largest, of<V>(1 / kHuge));
  const V up = of<V>(kExponent), down = of<V>(-kExponent), zero = of<V>(0);
  const V e = hn::IfThenElse(is_huge, down, hn::IfThenElse(is_tiny, up, zero));
  return {power_of_two(e), e};
}

template <class V>
HWY_INLINE V root_of_squares(V a, V b) {
  return hn::Sqrt(hn::Add(hn::Mul(a, a), hn::Mul(b, b)));
}
template <class F, class V>
HWY_INLINE V hypot_of(V a, V b) {
  using T = NumberOf<V>;
  constexpr T kMost = sizeof(T) == 8 ? T(0x1p400) : T(0x1p50);
  const V size = root_of_squares(a, b);
  const auto safe = hn::And(hn::Gt(size, of<V>(1 / kMost)), hn::Lt(size, of<V>(kMost)));
  if (HWY_LIKELY(hn::AllTrue(hn::DFromV<V>(), safe))) return size;
  a = hn::Abs(a);
  b = hn::Abs(b);
  const Scale<V> scale = scale_for(hn::Max(a, b));
  const V scaled_size = root_of_squares(hn::Mul(a, scale.factor), hn::Mul(b, scale.factor));
  const V result = hn::Mul(scaled_size, power_of_two(hn::Neg(scale.exponent)));
  // Infinite even if the other number is NaN.
  const auto infinite = hn::Or(hn::Eq(a, infinity<V>()), hn::Eq(b, infinity<V>()));
  return hn::IfThenElse(infinite, infinity<V>(), hn::IfThenElse(safe, size, result));
}

// Clamps x to [low, high]; keeps NaN.
template <class V>
HWY_INLINE V at_most(V x, NumberOf<V> high) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Min(of<V>(high), x);  // the second operand if either is NaN
#else
  return hn::IfThenElse(hn::Gt(x, of<V>(high)), of<V>(high), x);
#endif
}
template <class V>
HWY_INLINE V at_least(V x, NumberOf<V> low) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Max(of<V>(low), x);
#else
  return hn::IfThenElse(hn::Lt(x, of<V>(low)), of<V>(low), x);
#endif
}
template <class V>
HWY_INLINE V within(V x, NumberOf<V> low, NumberOf<V> high) {
  return at_least(at_most(x, high), low);
}

// A reduced argument: x = n ln 2 + r, |r| <= ln(2) / 2. `high` is r before the lower part of n ln 2
// is subtracted; `counted` is n plus the rounder.
template <class V>
struct Halvings {
  V counted, n, high, r;
};
template <class F, class V>
HWY_INLINE Halvings<V> halvings(V x) {
  const V per_halving = of<V>(static_cast<NumberOf<V>>(1.4426950408889634));
  const V counted = fused(x, per_halving, rounder<V>()), n = hn::Sub(counted, rounder<V>());
  const V high = fused_less(n, of<V>(F::kLn2), x);  // exact
  return {counted, n, high, fused_less(n, of<V>(F::kLn2Low), high)};
}

// Computes exp(r + low) - 1.
template <class F, class V>
HWY_INLINE V expm1_of_rest(V r, V low) {
  return hn::Add(r, fused(hn::Mul(r, r), polynomial(r, F::kExp), low));
}
template <class F, class V>
HWY_INLINE V expm1_of_rest(V r) {
  return fused(hn::Mul(r, r), polynomial(r, F::kExp), r);
}
// Computes exp(r); the result lies in [sqrt(1/2), sqrt(2)].
template <class F, class V>
HWY_INLINE V exp_of_rest(V r) {
  return hn::Add(of<V>(1), expm1_of_rest<F>(r));
}
// Clamps x to a range whose ends give exp(x) infinite or 0. For AVX-512 the lower end is open: its
// scaled_or_zero() detects 0 itself.
template <class F, class V>
HWY_INLINE V bounded_exponent(V x) {
#if HWY_TARGET == HWY_AVX3
  return at_most(x, F::kExpHigh);
#else
  return within(x, F::kExpLow, F::kExpHigh);
#endif
}
template <class F, class V>
HWY_INLINE V exp_of(V x) {
  const Halvings<V> h = halvings<F>(bounded_exponent<F>(x));
  return scaled_or_zero(exp_of_rest<F>(h.r), h.n, h.counted);
}
// Computes exp(x) / 2 for x >= 0.
template <class F, class V>
HWY_INLINE V half_exp(V x) {
  const Halvings<V> h = halvings<F>(at_most(x, F::kExpHigh));
  const V half = of<V>(NumberOf<V>{0.5});
  return scaled(fused(expm1_of_rest<F>(h.r), half, half), h.n, h.counted);
}

// Computes (e^x - 1) / 2 = 2^(n-1) p + (2^(n-1) - 1/2), where p = exp(r) - 1 and n - 1 is in the
// range of exponents.
template <class F, class V>
HWY_INLINE V half_expm1(V x) {
  const Halvings<V> h = halvings<F>(x);
  const V lost = fused_less(h.n, of<V>(F::kLn2Low), hn::Sub(h.high, h.r));
  const V p = expm1_of_rest<F>(h.r, lost), power = power_of_counted<-1>(h.counted);
  return fused(power, p, hn::Sub(power, of<V>(NumberOf<V>{0.5})));
}
template <class F, class V>
HWY_INLINE V expm1_of(V x) {
  using T = NumberOf<V>;
  const V half = half_expm1<F>(within(x, T{-60}, sizeof(T) == 8 ? T{710} : T{89}));
  // e^x - 1 = x for tiny x; the sums would lose the sign of 0.
  const auto tiny = hn::Lt(hn::Abs(x), of<V>(std::numeric_limits<T>::epsilon() / 4));
  return hn::IfThenElse(tiny, x, hn::Add(half, half));
}

template <class F, class V>
HWY_INLINE V sigmoid_of(V x) {
  const V e = exp_of<F>(hn::Neg(hn::Abs(x)));
  const V over = hn::IfThenElse(hn::Lt(x, of<V>(0)), e, of<V>(1));
  return hn::Div(over, hn::Add(of<V>(1), e));
}

// Table of tanh by intervals: one below 1/16, then intervals of half a power of 2 up to 12. Each
// has a number c whose tanh(c) is a float to 2^-30, that float, and p in tanh(c + t) = tanh(c) + t
// p(t). Errors 2^-24.5 from 4 to 6, 2^-26.8 elsewhere. The index consists of the last 3 bits of the
// exponent and the first of the fraction.
constexpr Table kTanhTable[8] = {
    table_of({2.49971724F, 3.50058651F, 4.99977016F, 6.99856949F, 8.6028614F, 12, 0, 0.109366901F,
              0.156211436F, 0.218745515F, 0.312523425F, 0.437508523F, 0.625106633F, 0.875141978F,
              1.24971187F, 1.74976504F}),
    table_of({0.986606777F, 0.998180032F, 0.999909163F, 0.999998331F, 0.99999994F, 1, 0,
              0.108932927F, 0.154953092F, 0.215322062F, 0.302731007F, 0.411577135F, 0.554673553F,
              0.703977227F, 0.848202825F, 0.941348791F}),
    table_of({0.0266071614F, 0.00363669195F, 0.000181920506F, 3.33676098e-06F, 1.34443042e-07F, 0,
              1, 0.988133609F, 0.975989521F, 0.953636408F, 0.908353925F, 0.830604255F, 0.692337275F,
              0.504416049F, 0.280551851F, 0.113862403F}),
    table_of({-0.0262505095F, -0.00363005302F, -0.00018184197F, -3.33193839e-06F, -5.20403376e-07F,
              0, -9.41994927e-09F, -0.107640401F, -0.151232719F, -0.20533897F, -0.274986953F,
              -0.341857731F, -0.384021133F, -0.355097443F, -0.237964988F, -0.107184224F}),
    table_of({0.0170267466F, 0.00240896083F, 0.000118953409F, 2.19643994e-06F, 9.51641113e-08F, 0,
              -0.333331913F, -0.317520112F, -0.301819563F, -0.273658186F, -0.219524845F,
              -0.136160791F, -0.017782649F, 0.0818441361F, 0.108340494F, 0.0629502311F}),
    table_of({-0.00805583131F, -0.00119590119F, -5.9591639e-05F, -1.10721066e-06F, 2.78707535e-06F,
              0, -6.99480515e-05F, 0.0720179155F, 0.0976722017F, 0.127410069F, 0.158168301F,
              0.170006543F, 0.137857869F, 0.0607576258F, -0.0125572784F, -0.0235287435F}),
    table_of({0.00288802688F, 0.000489700586F, 2.84402831e-05F, 5.14550663e-07F, -4.67844696e-09F,
              0, 0.134839147F, -0.312945992F, 0.0447217599F, 0.0795408189F, 0.0428880192F,
              -0.00735110743F, -0.0541450642F, -0.0587683246F, -0.0197154786F, 0.00348077808F}),
    table_of({-0.000696299539F, -0.000157677408F, -9.3797089e-06F, -1.66484625e-07F,
              -5.22255732e-06F, 0, -0.0147444643F, -4.71023941F, -0.439188063F, -0.0939403549F,
              -0.0813381895F, -0.0640125647F, -0.0235978533F, 0.0127722267F, 0.0151023911F,
              0.0021003813F})};
template <class V>
HWY_INLINE V single_tanh(V size) {
  size = at_most(size, 9.2F);  // the result is 1 from here on
  const BitsOf<V> interval = hn::ShiftRight<22>(bits(hn::Max(size, of<V>(0.0625F))));
  const V t = hn::Sub(size, looked_up<V>(kTanhTable[0], interval));
  V p = looked_up<V>(kTanhTable[7], interval);
  for (int k = 6; k > 0; --k) p = fused(p, t, looked_up<V>(kTanhTable[k], interval));
  return p;
}
template <class F, class V>
HWY_INLINE V tanh_of(V x) {
  if constexpr (std::is_same_v<F, Single>) {
    return hn::CopySign(single_tanh(hn::Abs(x)), x);
  } else {
    const V size = at_most(hn::Abs(x), NumberOf<V>{22});  // the result is 1 beyond
    const V half = half_expm1<F>(hn::Add(size, size));
    return hn::CopySign(hn::Div(half, hn::Add(half, of<V>(1))), x);
  }
}

template <class F, class V>
HWY_INLINE V cosh_of(V x) {
  const V half = half_exp<F>(hn::Abs(x));
  return hn::Add(half, hn::Div(of<V>(NumberOf<V>{0.25}), half));
}
template <class F, class V>
HWY_INLINE V sinh_of(V x) {
  const V size = hn::Abs(x), z = hn::Mul(x, x);
  const V small = fused(hn::Mul(x, z), polynomial(z, F::kSinh), x);
  const V half = half_exp<F>(size);
  const V large = hn::Sub(half, hn::Div(of<V>(NumberOf<V>{0.25}), half));
  return hn::IfThenElse(hn::Lt(size, of<V>(1)), small, hn::CopySign(large, x));
}

// Computes e^-x for 1 < x < 40.
template <class F, class V>
HWY_INLINE V exp_of_negative(V x) {
  using T = NumberOf<V>;
  const V counted = fused(x, of<V>(static_cast<T>(-1.4426950408889634)), rounder<V>());
  const V n = hn::Sub(counted, rounder<V>());
  V r = fused_negated(n, of<V>(static_cast<T>(0.69314718055994531)), x);
  // Single precision needs one part of ln 2 only.
  if constexpr (sizeof(T) == 8) r = fused_less(n, of<V>(2.3190468138462996e-17), r);
  return scaled(exp_of_rest<F>(r), n, counted);
}
template <class F, class V>
HWY_INLINE V erf_of(V x) {
  const V size = at_most(hn::Abs(x), F::kErfMost);
  const V near = fused(size, polynomial(hn::Mul(size, size), F::kErfNear), size);
  const V power = fused(size, polynomial(size, F::kErfFar), size);
  const V far = hn::Sub(of<V>(1), exp_of_negative<F>(power));
  return hn::CopySign(hn::IfThenElse(hn::Lt(size, of<V>(F::kErfBend)), near, far), x);
}

// Exponent and mantissa of a positive finite x: x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2).
template <class V>
struct Mantissa {
  V k, f;
};
#if HWY_TARGET == HWY_AVX3
// Specialization for double with half as many instructions.
HWY_INLINE Mantissa<hn::Vec<hn::ScalableTag<double>>> mantissa(hn::Vec<hn::ScalableTag<double>> x) {
  const __m512d one = _mm512_set1_pd(1), half = _mm512_set1_pd(0.5);
  const __m512d m = _mm512_getmant_pd(x.raw, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
  const __m512d k = _mm512_getexp_pd(x.raw);
  const __mmask8 high = _mm512_cmp_pd_mask(m, _mm512_set1_pd(1.4142135623730951), _CMP_GE_OQ);
  return {{_mm512_mask_add_pd(k, high, k, one)},
          {_mm512_sub_pd(_mm512_mask_mul_pd(m, high, m, half), one)}};
}
HWY_INLINE Mantissa<hn::Vec<hn::ScalableTag<float>>> mantissa(hn::Vec<hn::ScalableTag<float>> x) {
  const __m512 one = _mm512_set1_ps(1), half = _mm512_set1_ps(0.5F);
  const __m512 m = _mm512_getmant_ps(x.raw, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
  const __m512 k = _mm512_getexp_ps(x.raw);
  const __mmask16 high = _mm512_cmp_ps_mask(m, _mm512_set1_ps(1.41421354F), _CMP_GE_OQ);
  return {{_mm512_mask_add_ps(k, high, k, one)},
          {_mm512_sub_ps(_mm512_mask_mul_ps(m, high, m, half), one)}};
}
template <class V>
HWY_INLINE Mantissa<V> normal_mantissa(V x) {
  return mantissa(x);
}
#else
// Splits normal numbers.
template <class V>
HWY_INLINE Mantissa<V> normal_mantissa(V x) {
  using T = NumberOf<V>;
  using L = Layout<T>;
  const typename L::Bits one = static_cast<typename L::Bits>(L::kBias) << L::kFraction;
  const auto raised_bits = hn::Add(bits(x), bits_of<V>(one - L::kRootHalf));
  const auto exponent = hn::ShiftRight<L::kFraction>(raised_bits);
  const auto fraction = hn::And(raised_bits, bits_of<V>((typename L::Bits{1} << L::kFraction) - 1));
  const V m = from_bits<V>(hn::Add(fraction, bits_of<V>(L::kRootHalf)));
  const T integer = static_cast<T>(std::uint64_t{1} << L::kFraction);
  const V counted = from_bits<V>(
      hn::Or(exponent,
             bits_of<V>(static_cast<typename L::Bits>(L::kBias + L::kFraction) << L::kFraction)));
  const V k = hn::Sub(counted, of<V>(integer + static_cast<T>(L::kBias)));
  return {k, hn::Sub(m, of<V>(1))};
}
// Splits any positive number; scales subnormal ones up first.
template <class V>
HWY_INLINE Mantissa<V> mantissa(V x) {
  using T = NumberOf<V>;
  constexpr int kUp = Layout<T>::kFraction + 2;
  const auto is_small = hn::Lt(x, of<V>(std::numeric_limits<T>::min()));
  const T raised = static_cast<T>(std::uint64_t{1} << kUp);
  Mantissa<V> m = normal_mantissa(hn::IfThenElse(is_small, hn::Mul(x, of<V>(raised)), x));
  m.k = hn::IfThenElse(is_small, hn::Sub(m.k, of<V>(T{kUp})), m.k);
  return m;
}
#endif

// Computes log(1 + f) - f as s (h + z p(z)) - h with h = f^2 / 2, s = f / (2 + f), z = s^2.
template <class F, class V>
HWY_INLINE V bent_log(V f) {
  const V square = hn::Mul(f, f);
  if constexpr (!std::is_same_v<F, Double>) {
    return hn::Mul(square, polynomial(f, F::kBentLog));
  } else {
    const V half = hn::Mul(square, of<V>(NumberOf<V>{0.5}));
    const V s = hn::Div(f, hn::Add(f, of<V>(2))), z = hn::Mul(s, s);
    return fused_minus(s, fused(z, polynomial(z, F::kLog), half), half);
  }
}
// Computes k ln 2 + log(1 + f).
template <class F, class V>
HWY_INLINE V log_of_mantissa(Mantissa<V> m) {
  const V low = fused(m.k, of<V>(F::kLn2Low), bent_log<F>(m.f));
  return fused(m.k, of<V>(F::kLn2), hn::Add(m.f, low));
}

template <class V>
HWY_INLINE hn::Mask<hn::DFromV<V>> is_positive_and_finite(V x) {
  return hn::And(hn::Gt(x, of<V>(0)), hn::Lt(x, infinity<V>()));
}
template <class V>
HWY_INLINE bool are_positive_and_finite(V x) {
#if HWY_TARGET == HWY_AVX3
  constexpr int kOthers = 0xdf;  // all classes but subnormal numbers
  if constexpr (sizeof(NumberOf<V>) == 8)
    return _mm512_fpclass_pd_mask(x.raw, kOthers) == 0;
  else
    return _mm512_fpclass_ps_mask(x.raw, kOthers) == 0;
#else
  return hn::AllTrue(hn::DFromV<V>(), is_positive_and_finite(x));
#endif
}
// The logarithm of a number that is not positive or not finite.
template <class V>
HWY_INLINE V with_limits_of_log(V x, V result) {
  if (HWY_LIKELY(are_positive_and_finite(x))) return result;
  const V none = hn::IfThenElse(hn::Eq(x, of<V>(0)), hn::Neg(infinity<V>()), not_a_number<V>());
  const V other = hn::IfThenElse(hn::Eq(x, infinity<V>()), x, none);
  return hn::IfThenElse(is_positive_and_finite(x), result, other);
}
template <class F, class V>
HWY_INLINE V log_of(V x) {
  return with_limits_of_log(x, log_of_mantissa<F>(mantissa(x)));
}

// Computes log(u + lost) + extra ln 2. `lost` is the rounding error of the normal number u; it is
// added to the mantissa.
template <class F, class V>
HWY_INLINE V log_of_sum(V u, V lost, V extra) {
  Mantissa<V> m = normal_mantissa(u);
  // At the largest exponents `lost` is 0.
#if HWY_TARGET == HWY_AVX3
  m.f = hn::Add(m.f, scaled(lost, hn::Neg(m.k)));  // the product is exact
#else
  using T = NumberOf<V>;
  const V power = power_of_two(hn::Neg(hn::Min(m.k, of<V>(T{Layout<T>::kBias - 3}))));
  m.f = fused(lost, power, m.f);
#endif
  m.k = hn::Add(m.k, extra);
  return with_limits_of_log(u, log_of_mantissa<F>(m));
}
template <class F, class V>
HWY_INLINE V log1p_of(V x, V extra) {
  const V one = of<V>(1), u = hn::Add(x, one);
  const V lost = hn::Sub(hn::Min(x, one), hn::Sub(u, hn::Max(x, one)));
  return hn::CopySign(log_of_sum<F>(u, lost, extra), x);  // also of -0
}
template <class F, class V>
HWY_INLINE V log1p_of(V x) {
  return log1p_of<F>(x, of<V>(0));
}

// Beyond this 1 + x^2 is x^2.
template <class V>
HWY_INLINE V huge() {
  return of<V>(static_cast<NumberOf<V>>(std::uint64_t{1} << 55));
}
template <class F, class V>
HWY_INLINE V arcsinh_of(V x) {
  const V size = hn::Abs(x), one = of<V>(1);
  const auto is_huge = hn::Gt(size, huge<V>());
  const V t = hn::IfThenElse(is_huge, one, size), square = hn::Mul(t, t);
  const V sum = hn::Add(t, hn::Div(square, hn::Add(one, hn::Sqrt(hn::Add(one, square)))));
  const V extra = hn::IfThenElseZero(is_huge, one);
  return hn::CopySign(log1p_of<F>(hn::IfThenElse(is_huge, size, sum), extra), x);
}
template <class F, class V>
HWY_INLINE V arccosh_of(V x) {
  const V one = of<V>(1);
  const auto is_huge = hn::Gt(x, huge<V>());
  const V t = hn::Sub(hn::IfThenElse(is_huge, one, x), one);
  const V sum = hn::Add(t, hn::Sqrt(hn::Add(hn::Add(t, t), hn::Mul(t, t))));
  const V extra = hn::IfThenElseZero(is_huge, one);
  const V result = log1p_of<F>(hn::IfThenElse(is_huge, x, sum), extra);
  return hn::IfThenElse(hn::Lt(x, one), not_a_number<V>(), result);
}
template <class F, class V>
HWY_INLINE V arctanh_of(V x) {
  const V size = hn::Abs(x), one = of<V>(1);
  const V ratio = hn::Div(hn::Add(size, size), hn::Sub(one, size));
  const V half = hn::Mul(log1p_of<F>(ratio), of<V>(NumberOf<V>{0.5}));
  // arctanh(x) = x for tiny x; halving a subnormal number could lose a digit.
  const auto tiny = hn::Lt(size, of<V>(std::numeric_limits<NumberOf<V>>::epsilon() / 4));
  return hn::IfThenElse(hn::Gt(size, one), not_a_number<V>(),
                        hn::CopySign(hn::IfThenElse(tiny, size, half), x));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#endif  // PALIMPSEST_VECTOR_MATH_INL_HPP
