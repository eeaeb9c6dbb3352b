// SPDX-License-Identifier: Apache-2.0
// Internal: transforms of few numbers in vectors, real and imaginary parts apart. Each lane holds a
// transform of its own. Compiled once per instruction set.
#if defined(PALIMPSEST_SPLIT_RADICES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PALIMPSEST_SPLIT_RADICES_INL
#undef PALIMPSEST_SPLIT_RADICES_INL
#else
#define PALIMPSEST_SPLIT_RADICES_INL
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Complex numbers in the lanes of two vectors.
template <class V>
struct Split {
  V re, im;
};

template <class V>
HWY_INLINE Split<V> operator+(Split<V> a, Split<V> b) {
  return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
}
template <class V>
HWY_INLINE Split<V> operator-(Split<V> a, Split<V> b) {
  return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
}
template <class V>
HWY_INLINE Split<V> operator*(V real, Split<V> a) {
  return {hn::Mul(real, a.re), hn::Mul(real, a.im)};
}
// a + i b and a - i b.
template <class V>
HWY_INLINE Split<V> plus_i(Split<V> a, Split<V> b) {
  return {hn::Sub(a.re, b.im), hn::Add(a.im, b.re)};
}
template <class V>
HWY_INLINE Split<V> minus_i(Split<V> a, Split<V> b) {
  return {hn::Add(a.re, b.im), hn::Sub(a.im, b.re)};
}
template <class V>
HWY_INLINE Split<V> times(Split<V> a, V re, V im) {
  return {hn::Sub(hn::Mul(a.re, re), hn::Mul(a.im, im)),
          hn::Add(hn::Mul(a.re, im), hn::Mul(a.im, re))};
}

// Radix<R>::run replaces z[0] .. z[R - 1] by their transform, in order.
template <int R>
struct Radix;

template <>
struct Radix<2> {
  template <class D, class V>
  static HWY_INLINE void run(D, Split<V>* z) {
    const Split<V> sum = z[0] + z[1];
    z[1] = z[0] - z[1];
    z[0] = sum;
  }
};

template <class D, class V>
HWY_INLINE void three(D d, Split<V>& a, Split<V>& b, Split<V>& c) {
  using T = hn::TFromD<D>;
  const Split<V> sum = b + c;
  const Split<V> side =
      hn::Set(d, static_cast<T>(0.866025403784438646763723170752936183L)) * (b - c);
  const Split<V> middle = a - hn::Set(d, T{0.5}) * sum;
  a = a + sum;
  b = minus_i(middle, side);
  c = plus_i(middle, side);
}

template <>
struct Radix<3> {
  template <class D, class V>
  static HWY_INLINE void run(D d, Split<V>* z) {
    three(d, z[0], z[1], z[2]);
  }
};

template <class V>
HWY_INLINE void four(Split<V>& a, Split<V>& b, Split<V>& c, Split<V>& e) {
  const Split<V> even = a + c, odd = b + e, even_side = a - c, odd_side = b - e;
  a = even + odd;
  b = minus_i(even_side, odd_side);
  c = even - odd;
  e = plus_i(even_side, odd_side);
}

template <>
struct Radix<4> {
  template <class D, class V>
  static HWY_INLINE void run(D, Split<V>* z) {
    four(z[0], z[1], z[2], z[3]);
  }
};

template <>
struct Radix<5> {
  template <class D, class V>
  static HWY_INLINE void run(D d, Split<V>* z) {
    using T = hn::TFromD<D>;
    const V c1 = hn::Set(d, static_cast<T>(0.309016994374947424102293417182819059L));
    const V c2 = hn::Set(d, static_cast<T>(-0.809016994374947424102293417182819059L));
    const V s1 = hn::Set(d, static_cast<T>(0.951056516295153572116439333379382143L));
    const V s2 = hn::Set(d, static_cast<T>(0.587785252292473129168705954639072769L));
    const Split<V> a = z[1] + z[4], b = z[2] + z[3], e = z[1] - z[4], f = z[2] - z[3];
    const Split<V> m1 = z[0] + (c1 * a + c2 * b), m2 = z[0] + (c2 * a + c1 * b);
    const Split<V> n1 = s1 * e + s2 * f, n2 = s2 * e - s1 * f;
    z[0] = z[0] + (a + b);
    z[1] = minus_i(m1, n1);
    z[2] = minus_i(m2, n2);
    z[3] = plus_i(m2, n2);
    z[4] = plus_i(m1, n1);
  }
};

// 2 x 3 without factors between them (Good 1958, Thomas 1963).
template <>
struct Radix<6> {
  template <class D, class V>
  static HWY_INLINE void run(D d, Split<V>* z) {
    Split<V> a = z[0] + z[3], b = z[2] + z[5], c = z[4] + z[1];
    Split<V> e = z[0] - z[3], f = z[2] - z[5], g = z[4] - z[1];
    three(d, a, b, c);
    three(d, e, f, g);
    z[0] = a;
    z[1] = f;
    z[2] = c;
    z[3] = e;
    z[4] = b;
    z[5] = g;
  }
};

template <>
struct Radix<7> {
  template <class D, class V>
  static HWY_INLINE void run(D d, Split<V>* z) {
    using T = hn::TFromD<D>;
    const V c1 = hn::Set(d, static_cast<T>(0.623489801858733530525004884004239811L));
    const V c2 = hn::Set(d, static_cast<T>(-0.222520933956314404288902564496794760L));
    const V c3 = hn::Set(d, static_cast<T>(-0.900968867902419126236102319507445052L));
    const V s1 = hn::Set(d, static_cast<T>(0.781831482468029808708444526674057750L));
    const V s2 = hn::Set(d, static_cast<T>(0.974927912181823607018131682993931217L));
    const V s3 = hn::Set(d, static_cast<T>(0.433883739117558120475768332848358755L));
    const Split<V> a = z[1] + z[6], b = z[2] + z[5], c = z[3] + z[4];
    const Split<V> e = z[1] - z[6], f = z[2] - z[5], g = z[3] - z[4];
    const Split<V> m1 = z[0] + (c1 * a + c2 * b + c3 * c), n1 = s1 * e + s2 * f + s3 * g;
    const Split<V> m2 = z[0] + (c2 * a + c3 * b + c1 * c), n2 = s2 * e - s3 * f - s1 * g;
    const Split<V> m3 = z[0] + (c3 * a + c1 * b + c2 * c), n3 = s3 * e - s1 * f + s2 * g;
    z[0] = z[0] + (a + b + c);
    z[1] = minus_i(m1, n1);
    z[2] = minus_i(m2, n2);
    z[3] = minus_i(m3, n3);
    z[4] = plus_i(m3, n3);
    z[5] = plus_i(m2, n2);
    z[6] = plus_i(m1, n1);
  }
};

// z times exp(-2 pi i / 8), and times exp(-2 pi i 3 / 8).
template <class D, class V>
HWY_INLINE Split<V> times_eighth(D d, Split<V> z) {
  const V h = hn::Set(d, static_cast<hn::TFromD<D>>(0.707106781186547524400844362104849039L));
  return h * Split<V>{hn::Add(z.re, z.im), hn::Sub(z.im, z.re)};
}
template <class D, class V>
HWY_INLINE Split<V> times_three_eighths(D d, Split<V> z) {
  const V h = hn::Set(d, static_cast<hn::TFromD<D>>(0.707106781186547524400844362104849039L));
  return {hn::Mul(h, hn::Sub(z.im, z.re)),
          hn::Mul(hn::Set(d, static_cast<hn::TFromD<D>>(-0.707106781186547524400844362104849039L)),
                  hn::Add(z.re, z.im))};
}

template <int kAt, int R, class V, class Load>
HWY_INLINE void load_all(const Load& load, Split<V>* z) {
  if constexpr (kAt < R) {
    z[kAt] = load(kAt);
    load_all<kAt + 1, R>(load, z);
  }
}
template <int kAt, int R, class V, class Store>
HWY_INLINE void store_all(const Split<V>* z, const Store& store) {
  if constexpr (kAt < R) {
    store(kAt, z[kAt]);
    store_all<kAt + 1, R>(z, store);
  }
}

// Numbers between the halves of a transform. Where 16 registers are too few, they go through
// memory as a whole: GCC would move single ones there and back again and again.
template <class D, int kCount>
class Between {
  using V = hn::Vec<D>;

 public:
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4
  HWY_INLINE void put(int i, Split<V> z) {
    hn::Store(z.re, D(), numbers_ + 2 * i * kWidth);
    hn::Store(z.im, D(), numbers_ + (2 * i + 1) * kWidth);
  }
  HWY_INLINE void finish() { __asm__ volatile("" : : "r"(numbers_) : "memory"); }
  HWY_INLINE Split<V> get(int i) const {
    return {hn::Load(D(), numbers_ + 2 * i * kWidth),
            hn::Load(D(), numbers_ + (2 * i + 1) * kWidth)};
  }

 private:
  static constexpr int kWidth = hn::MaxLanes(D());
  HWY_ALIGN hn::TFromD<D> numbers_[2 * kCount * kWidth];
#else
  HWY_INLINE void put(int i, Split<V> z) { numbers_[i] = z; }
  HWY_INLINE void finish() {}
  HWY_INLINE Split<V> get(int i) const { return numbers_[i]; }

 private:
  Split<V> numbers_[kCount];
#endif
};

// 4 x 4: column j of the first half, with factors exp(-2 pi i j k / 16) for rows k.
template <int j, class D, class Load>
HWY_INLINE void run_column(D d, const Load& load, Between<D, 16>& between) {
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;
  const V c = hn::Set(d, static_cast<T>(0.923879532511286756128183189396788287L));
  const V s = hn::Set(d, static_cast<T>(0.382683432365089771728459984030398867L));
  const V minus_c = hn::Set(d, static_cast<T>(-0.923879532511286756128183189396788287L));
  const V minus_s = hn::Set(d, static_cast<T>(-0.382683432365089771728459984030398867L));
  Split<V> z[4] = {load(j), load(j + 4), load(j + 8), load(j + 12)};
  four(z[0], z[1], z[2], z[3]);
  if constexpr (j == 1) {
    z[1] = times(z[1], c, minus_s);
    z[2] = times_eighth(d, z[2]);
    z[3] = times(z[3], s, minus_c);
  } else if constexpr (j == 2) {
    z[1] = times_eighth(d, z[1]);
    z[2] = {z[2].im, hn::Neg(z[2].re)};
    z[3] = times_three_eighths(d, z[3]);
  } else if constexpr (j == 3) {
    z[1] = times(z[1], s, minus_c);
    z[2] = times_three_eighths(d, z[2]);
    z[3] = times(z[3], minus_c, s);
  }
  for (int k = 0; k < 4; ++k) between.put(4 * k + j, z[k]);
}
template <int k, class D, class Store>
HWY_INLINE void run_row(D, const Between<D, 16>& between, const Store& store) {
  Split<hn::Vec<D>> z[4] = {between.get(4 * k), between.get(4 * k + 1), between.get(4 * k + 2),
                            between.get(4 * k + 3)};
  four(z[0], z[1], z[2], z[3]);
  store(k, z[0]);
  store(k + 4, z[1]);
  store(k + 8, z[2]);
  store(k + 12, z[3]);
}

template <class D, class Load, class Store>
HWY_INLINE void run_eight(D d, const Load& load, const Store& store) {
  Between<D, 4> between;
  Split<hn::Vec<D>> z[4] = {load(0), load(2), load(4), load(6)};
  four(z[0], z[1], z[2], z[3]);
  for (int k = 0; k < 4; ++k) between.put(k, z[k]);
  between.finish();
  z[0] = load(1);
  z[1] = load(3);
  z[2] = load(5);
  z[3] = load(7);
  four(z[0], z[1], z[2], z[3]);
  store(0, between.get(0) + z[0]);
  store(4, between.get(0) - z[0]);
  z[1] = times_eighth(d, z[1]);
  store(1, between.get(1) + z[1]);
  store(5, between.get(1) - z[1]);
  store(2, minus_i(between.get(2), z[2]));
  store(6, plus_i(between.get(2), z[2]));
  z[3] = times_three_eighths(d, z[3]);
  store(3, between.get(3) + z[3]);
  store(7, between.get(3) - z[3]);
}

// Transforms load(0) .. load(R - 1); calls store(k, result k).
template <int R, class D, class Load, class Store>
HWY_INLINE void run_radix(D d, const Load& load, const Store& store) {
  if constexpr (R == 8) {
    run_eight(d, load, store);
  } else if constexpr (R == 16) {
    Between<D, 16> between;
    run_column<0>(d, load, between);
    run_column<1>(d, load, between);
    run_column<2>(d, load, between);
    run_column<3>(d, load, between);
    between.finish();
    run_row<0>(d, between, store);
    run_row<1>(d, between, store);
    run_row<2>(d, between, store);
    run_row<3>(d, between, store);
  } else {
    Split<hn::Vec<D>> z[R];
    load_all<0, R>(load, z);
    Radix<R>::run(d, z);
    store_all<0, R>(z, store);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#endif  // PALIMPSEST_SPLIT_RADICES_INL
