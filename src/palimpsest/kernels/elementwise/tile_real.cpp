// SPDX-License-Identifier: Apache-2.0
// The machines of tile_code.hpp for real numbers. This file is compiled once per instruction set;
// the best one is chosen when the program runs.
#include <algorithm>
#include <cstring>

#include "palimpsest/copy/loop_targets.hpp"
#include "palimpsest/kernels/elementwise/tile_code.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/elementwise/tile_real.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_TILES_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "palimpsest/kernels/elementwise/tile_steps-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

PALIMPSEST_TILE_OP(Multiply, hn::Mul(a, x), V a, V x);
PALIMPSEST_TILE_OP(MultiplyAdd, hn::Add(a, hn::Mul(x, y)), V a, V x, V y);
PALIMPSEST_TILE_OP(MultiplySubtract, hn::Sub(a, hn::Mul(x, y)), V a, V x, V y);
PALIMPSEST_TILE_OP(Product, hn::Mul(x, y), V, V x, V y);
PALIMPSEST_TILE_OP(Square, hn::Mul(a, a), V a);
PALIMPSEST_TILE_OP(Divide, hn::Div(a, x), V a, V x);
PALIMPSEST_TILE_OP(DivideInto, hn::Div(x, a), V a, V x);
PALIMPSEST_TILE_OP(Absolute, hn::Abs(a), V a);
PALIMPSEST_TILE_OP(Round, hn::Round(a), V a);

PALIMPSEST_TILE_OP(Root, hn::Sqrt(a), V a);
#if HWY_TARGET == HWY_AVX3
// Roots of a block, the same bits as those of the processor's instruction. For float64 that
// instruction takes as long as 48 others. So most vectors of a block get their roots by Newton's
// method, while the processor computes the other roots.
struct Roots {
  // Numbers from here up to infinity have normal residuals.
  template <class T>
  static constexpr T kLeast = sizeof(T) == 8 ? T(0x1p-900) : T(0x1p-90F);
  template <class V>
  static HWY_INLINE bool by_products(const V (&a)[kBlock]) {
    using T = hn::TFromD<hn::DFromV<V>>;
    const hn::DFromV<V> d;
    const hn::RebindToUnsigned<hn::DFromV<V>> bits;
    const auto least = hn::BitCast(bits, hn::Set(d, kLeast<T>));
    const auto span = hn::Sub(hn::BitCast(bits, hn::Inf(d)), least);
    auto most = hn::Sub(hn::BitCast(bits, a[0]), least);
    for (int u = 1; u < kBlock; ++u) most = hn::Max(most, hn::Sub(hn::BitCast(bits, a[u]), least));
    return hn::AllTrue(bits, hn::Lt(most, span));
  }

  // Approximates 1 / sqrt(x) to 2^-14.
  static HWY_INLINE VecOf<double> guess(VecOf<double> x) {
    return VecOf<double>{_mm512_rsqrt14_pd(x.raw)};
  }
  static HWY_INLINE VecOf<float> guess(VecOf<float> x) {
    return VecOf<float>{_mm512_rsqrt14_ps(x.raw)};
  }
  // g, a Newton step from root (1 - kBelow), is the rounded root or its predecessor: the step ends
  // below the root, by more than the rounding errors of its parts. It is the predecessor if x > g
  // g', where g' is the next number after g: no x lies between g g' and the square of the middle,
  // which is larger by a quarter of a unit of g^2.
  template <class V>
  static HWY_INLINE V by_products(V x) {
    using T = hn::TFromD<hn::DFromV<V>>;
    constexpr bool kIsDouble = sizeof(T) == 8;
    constexpr T kBelow = kIsDouble ? T(0x1p-38) : T(0x1p-20F);
    const hn::DFromV<V> d;
    const hn::RebindToUnsigned<hn::DFromV<V>> bits;
    const V half = hn::Set(d, T{0.5}), y = guess(x), s = hn::Mul(x, y), h = hn::Mul(y, half);
    V rest;
    if constexpr (kIsDouble) {
      rest = hn::NegMulAdd(s, h, half);
      rest =
          hn::MulAdd(rest, hn::MulAdd(rest, hn::Set(d, 1.5), hn::Set(d, 1.0)), hn::Set(d, -kBelow));
    } else {
      rest = hn::NegMulAdd(s, h, hn::Set(d, T{0.5} - kBelow));
    }
    const V root = hn::MulAdd(s, rest, s), factor = hn::MulAdd(h, rest, h);
    const V g = hn::MulAdd(hn::NegMulAdd(root, root, x), factor, root);
    const V next = hn::BitCast(d, hn::Add(hn::BitCast(bits, g), hn::Set(bits, 1)));
    return hn::IfThenElse(hn::Gt(hn::NegMulAdd(g, next, x), hn::Zero(d)), next, g);
  }

  template <bool kStores, class T, int U>
  static HWY_INLINE void run(const Step<T>& step, Spot spot, VecOf<T> (&a)[U]) {
    const Result<kStores, T, U> result(step, spot);
    if constexpr (U == kBlock) {
      if (HWY_LIKELY(by_products(a))) {
        constexpr int kEvery = 3;
        PALIMPSEST_EACH(a[u] = result(u, u % kEvery == 0 ? hn::Sqrt(a[u]) : by_products(a[u])));
        return;
      }
    }
    PALIMPSEST_EACH(a[u] = result(u, hn::Sqrt(a[u])));
  }
};
#endif

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
// Quotients of a block by one number, the same bits as those of the processor's instruction, which
// takes as long as 10 others: with the reciprocal y, rounded to nearest, q = a y is two units off
// at most; q + y (a - q x) is one of the two numbers next to the quotient, and a second step rounds
// it correctly (Markstein 1990, doi:10.1147/rd.341.0111). Numbers for which a remainder might
// underflow, or a quotient overflow, are divided.
struct DivideByOne {
  template <class T>
  static constexpr T kLeast = sizeof(T) == 8 ? T(0x1p-400) : T(0x1p-40F);
  template <class T>
  static constexpr T kMost = sizeof(T) == 8 ? T(0x1p400) : T(0x1p40F);

  // The distance of the bits of |v| from those of the least number; larger for NaN and infinity.
  template <class V>
  static HWY_INLINE auto above_least(V v) {
    const hn::DFromV<V> d;
    const hn::RebindToUnsigned<hn::DFromV<V>> bits;
    const auto least = hn::BitCast(bits, hn::Set(d, kLeast<hn::TFromD<hn::DFromV<V>>>));
    return hn::Sub(hn::BitCast(bits, hn::Abs(v)), least);
  }
  template <class V>
  static HWY_INLINE bool by_products(const V (&a)[kBlock], V x) {
    const hn::DFromV<V> d;
    const hn::RebindToUnsigned<hn::DFromV<V>> bits;
    auto most = above_least(x);
    for (int u = 0; u < kBlock; ++u) most = hn::Max(most, above_least(a[u]));
    const auto span = above_least(hn::Set(d, kMost<hn::TFromD<hn::DFromV<V>>>));
    return hn::AllTrue(bits, hn::Lt(most, span));
  }
  template <class V>
  static HWY_INLINE V quotient(V a, V x, V y) {
    V q = hn::Mul(a, y);
    q = hn::MulAdd(hn::NegMulAdd(q, x, a), y, q);
    return hn::MulAdd(hn::NegMulAdd(q, x, a), y, q);
  }

  template <bool kStores, class T, int U>
  static HWY_INLINE void run(const Step<T>& step, Spot spot, VecOf<T> (&a)[U]) {
    const Result<kStores, T, U> result(step, spot);
    const Row<T, U> x(step, 0, spot);
    if constexpr (U == kBlock) {
      const auto divisor = x(0);
      if (HWY_LIKELY(by_products(a, divisor))) {
        const auto y = hn::Div(hn::Set(Tag<T>(), T{1}), divisor);
        PALIMPSEST_EACH(a[u] = result(u, quotient(a[u], divisor, y)));
        return;
      }
    }
    PALIMPSEST_EACH(a[u] = result(u, hn::Div(a[u], x(u))));
  }
};
#else
using DivideByOne = Each<Divide>;
#endif

struct Reciprocal {
  template <class V>
  static HWY_INLINE V of(V a) {
    const hn::DFromV<V> d;
    return hn::Div(hn::Set(d, hn::TFromD<hn::DFromV<V>>{1}), a);
  }
};

// Keeps NaN.
struct Sign {
  template <class V>
  static HWY_INLINE V of(V a) {
    using T = hn::TFromD<hn::DFromV<V>>;
    const hn::DFromV<V> d;
    const V zero = hn::Zero(d);
    const V sign = hn::IfThenElse(hn::Gt(a, zero), hn::Set(d, T{1}),
                                  hn::IfThenElse(hn::Lt(a, zero), hn::Set(d, T{-1}), zero));
    return hn::IfThenElse(hn::IsNaN(a), a, sign);
  }
};

// Computes: a if a < b or a is NaN, else b.
template <class V>
HWY_INLINE V lesser(V a, V b) {
  return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b);
}
template <class V>
HWY_INLINE V greater(V a, V b) {
  return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
}
template <bool kAccumulatorFirst>
struct Minimum {
  template <class V>
  static HWY_INLINE V of(V a, V x) {
    return kAccumulatorFirst ? lesser(a, x) : lesser(x, a);
  }
};
template <bool kAccumulatorFirst>
struct Maximum {
  template <class V>
  static HWY_INLINE V of(V a, V x) {
    return kAccumulatorFirst ? greater(a, x) : greater(x, a);
  }
};

PALIMPSEST_TILE_OP(Less, hn::VecFromMask(hn::DFromV<V>(), hn::Lt(a, x)), V a, V x);
PALIMPSEST_TILE_OP(LessEqual, hn::VecFromMask(hn::DFromV<V>(), hn::Le(a, x)), V a, V x);
PALIMPSEST_TILE_OP(Equal, hn::VecFromMask(hn::DFromV<V>(), hn::Eq(a, x)), V a, V x);
PALIMPSEST_TILE_OP(Select, hn::IfThenElse(hn::MaskFromVec(a), x, y), V a, V x, V y);

// Lane masks for selection.
template <class T>
struct Conditions {
  HWY_INLINE VecOf<T> operator()(const std::uint8_t* from, index_t valid) const {
    return widened_bytes(Tag<T>(), from, valid);
  }
};

// Combinations of a product and a third number, in the order of these verbs.
constexpr Verb kThen[] = {Verb::multiply_then_add, Verb::multiply_then_subtract,
                          Verb::multiply_then_subtract_from};
constexpr Verb kAfter[] = {Verb::add, Verb::subtract, Verb::subtract_from};

template <int kOp, class V>
HWY_INLINE V then(V product, V y) {
  if constexpr (kOp == 0) return hn::Add(product, y);
  if constexpr (kOp == 1) return hn::Sub(product, y);
  return hn::Sub(y, product);
}
template <int kOp>
struct MultiplyThen {
  template <class V>
  static HWY_INLINE V of(V a, V x, V y) {
    return then<kOp>(hn::Mul(a, x), y);
  }
};
template <int kOp>
struct ProductThen {
  template <class V>
  static HWY_INLINE V of(V, V x, V y, V z) {
    return then<kOp>(hn::Mul(x, y), z);
  }
};
// Computes (a x then y) z then w, where x may equal z or w; it is then read once.
enum class Shared { none, factor, term };
template <int kFirst, int kSecond, Shared kShared>
struct Twice {
  template <class V>
  static HWY_INLINE V of(V a, V x, V y, V z, V w) requires(kShared == Shared::none) {
    return then<kSecond>(hn::Mul(then<kFirst>(hn::Mul(a, x), y), z), w);
  }
  template <class V>
  static HWY_INLINE V of(V a, V x, V y, V other) requires(kShared != Shared::none) {
    x = in_turn(x);
    const V once = then<kFirst>(hn::Mul(a, x), y);
    if constexpr (kShared == Shared::factor) return then<kSecond>(hn::Mul(once, x), other);
    return then<kSecond>(hn::Mul(once, other), x);
  }
};

// Keys of steps that are not verbs.
constexpr int product_then(int op) { return kVerbs + op; }
constexpr int twice(int first, int second, Shared shared) {
  return kVerbs + 3 + 9 * static_cast<int>(shared) + 3 * first + second;
}
constexpr int kChooseStill = kVerbs + 3 + 27, kChooseFromStill = kChooseStill + 1;
constexpr int kDivideByOne = kChooseStill + 2;
constexpr int kKeys = kChooseStill + 3;

int key(const TileVerb& verb) {
  if (verb.verb == Verb::divide && verb.still_x) return kDivideByOne;
  if (verb.verb == Verb::choose && verb.still_y) return kChooseStill;
  if (verb.verb == Verb::choose_from && verb.still_y) return kChooseFromStill;
  return static_cast<int>(verb.verb);
}

template <class T, int kFirst, int kSecond, class Table>
constexpr void add_twice(Table& table) {
  const auto set = [&](Shared shared, Handler<T> h) {
    table[static_cast<std::size_t>(twice(kFirst, kSecond, shared))] = h;
  };
  set(Shared::none, each<T, Twice<kFirst, kSecond, Shared::none>>());
  set(Shared::factor, each<T, Twice<kFirst, kSecond, Shared::factor>>());
  set(Shared::term, each<T, Twice<kFirst, kSecond, Shared::term>>());
}

template <class T>
constexpr std::array<Handler<T>, kKeys> make_handlers() {
  std::array<Handler<T>, kKeys> table{};
  const auto set = [&](Verb verb, Handler<T> h) { table[static_cast<std::size_t>(verb)] = h; };
  set_shared_handlers<T>(set);
  set(Verb::multiply, each<T, Multiply>());
  set(Verb::multiply_add, each<T, MultiplyAdd>());
  set(Verb::multiply_subtract, each<T, MultiplySubtract>());
  set(Verb::product, each<T, Product>());
  set(Verb::square, each<T, Square>());
  set(Verb::divide, each<T, Divide>());
  set(Verb::divide_into, each<T, DivideInto>());
  set(Verb::reciprocal, each<T, Reciprocal>());
  set(Verb::sign, each<T, Sign>());
#if HWY_TARGET == HWY_AVX3
  set(Verb::root, storing_handler<T, Roots>());
#else
  set(Verb::root, each<T, Root>());
#endif
  set(Verb::absolute, each<T, Absolute>());
  set(Verb::round, each<T, Round>());
  set(Verb::less, each<T, Less>());
  set(Verb::less_equal, each<T, LessEqual>());
  set(Verb::equal, each<T, Equal>());
  set(Verb::select, each<T, Select>());
  set(Verb::minimum, each<T, Minimum<true>>());
  set(Verb::minimum_after, each<T, Minimum<false>>());
  set(Verb::maximum, each<T, Maximum<true>>());
  set(Verb::maximum_after, each<T, Maximum<false>>());
  set(Verb::multiply_then_add, each<T, MultiplyThen<0>>());
  set(Verb::multiply_then_subtract, each<T, MultiplyThen<1>>());
  set(Verb::multiply_then_subtract_from, each<T, MultiplyThen<2>>());
  set(Verb::choose, storing_handler<T, Choose<false, Conditions, 1>>());
  set(Verb::choose_from, storing_handler<T, Choose<true, Conditions, 1>>());
  table[kChooseStill] = storing_handler<T, ChooseStill<false>>();
  table[kChooseFromStill] = storing_handler<T, ChooseStill<true>>();
  table[kDivideByOne] = storing_handler<T, DivideByOne>();
  table[product_then(0)] = each<T, ProductThen<0>>();
  table[product_then(1)] = each<T, ProductThen<1>>();
  table[product_then(2)] = each<T, ProductThen<2>>();
  add_twice<T, 0, 0>(table);
  add_twice<T, 0, 1>(table);
  add_twice<T, 0, 2>(table);
  add_twice<T, 1, 0>(table);
  add_twice<T, 1, 1>(table);
  add_twice<T, 1, 2>(table);
  add_twice<T, 2, 0>(table);
  add_twice<T, 2, 1>(table);
  add_twice<T, 2, 2>(table);
  return table;
}

constexpr int find(const Verb (&verbs)[3], int key) {
  for (int i = 0; i < 3; ++i) {
    if (static_cast<int>(verbs[i]) == key) return i;
  }
  return -1;
}

// Merges the last step and the verb into one step if there is such a step; returns whether.
template <class T>
HWY_INLINE bool unite(Steps<T>& steps, const TileVerb& verb, std::byte* const* addresses) {
  const int last = steps.last_key(), key = static_cast<int>(verb.verb);
  if (last == static_cast<int>(Verb::product)) {
    const int after = find(kAfter, key);
    if (after < 0) return false;
    steps.set_last_key(product_then(after));
    steps.set(2, addresses[verb.x], verb.still_x);
    return true;
  }
  const int first = find(kThen, last), second = find(kThen, key);
  if (first < 0 || second < 0) return false;
  steps.set(2, addresses[verb.x], verb.still_x);
  steps.set(3, addresses[verb.y], verb.still_y);
  Shared shared = Shared::none;
  if (steps.is_same(0, 2)) {
    shared = Shared::factor;
    steps.set(2, addresses[verb.y], verb.still_y);
  } else if (steps.is_same(0, 3)) {
    shared = Shared::term;
  }
  steps.set_last_key(twice(first, second, shared));
  return true;
}

template <class T>
void run(const TileVerb* code, int n_verbs, std::byte* const* addresses, index_t n) {
  static_assert(kBlock * kLanes<T> <= kTileBlock && kLanes<T> <= kTileLanes);
  static constexpr std::array<Handler<T>, kKeys> kHandlers = make_handlers<T>();
  Steps<T> steps(kHandlers.data());
  for (const TileVerb* verb = code; verb != code + n_verbs; ++verb) {
    if (verb->verb == Verb::store && steps.store_at_once(addresses[verb->x])) continue;
    if (unite(steps, *verb, addresses)) continue;
    steps.add(key(*verb));
    steps.set(0, addresses[verb->x], verb->still_x);
    steps.set(1, addresses[verb->y], verb->still_y && !is_choice(*verb));
  }
  steps.run(n, kKeys);
}

void finish() { hwy::FlushStream(); }

void fill(const std::byte* element, std::size_t item, std::byte* to, index_t n) {
  constexpr std::size_t kPattern = 16;
  HWY_ALIGN std::uint8_t pattern[kPattern];
  for (std::size_t i = 0; i < kPattern; i += item) std::memcpy(pattern + i, element, item);
  const Tag<std::uint8_t> d;
  const auto v = hn::LoadDup128(d, pattern);
  auto* at = reinterpret_cast<std::uint8_t*>(to);
  auto left = static_cast<std::size_t>(n) * item;
  for (; left >= hn::Lanes(d); left -= hn::Lanes(d), at += hn::Lanes(d)) hn::StoreU(v, d, at);
  for (; left > 0; left -= std::min(left, kPattern), at += kPattern) {
    std::memcpy(at, pattern, std::min(left, kPattern));
  }
}

#endif  // HWY_TARGET

}  // namespace

RealTileMachines real_machines() {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  return {};
#else
  return {run<float>, run<double>, fill, kBlock * kLanes<float> * index_t{sizeof(float)}, finish};
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace palimpsest {

HWY_EXPORT(real_machines);

RealTileMachines real_tile_machines() { return HWY_DYNAMIC_DISPATCH(real_machines)(); }

}  // namespace palimpsest
#endif
