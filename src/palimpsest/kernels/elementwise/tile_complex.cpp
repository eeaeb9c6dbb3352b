// SPDX-License-Identifier: Apache-2.0
// The machines of tile_code.hpp for complex numbers. This file is compiled once per instruction
// set; the best one is chosen when the program runs.
//
// Registers hold interleaved real and imaginary parts, as memory does: loads, stores and sums cost
// nothing extra. A product a x is a * (re, re) + swap(a) * (-im, im), where x = re + i im and swap
// exchanges the parts of a. A conjugate changes the sign of im. The two factors of a constant x are
// made once.
#include <cmath>
#include <limits>

#include "palimpsest/copy/loop_targets.hpp"
#include "palimpsest/kernels/elementwise/scalar_kernels.hpp"
#include "palimpsest/kernels/elementwise/tile_code.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/elementwise/tile_complex.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_TILES_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "palimpsest/kernels/elementwise/tile_steps-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

template <class V>
using TagOf = hn::DFromV<V>;
template <class V>
using NumberOf = hn::TFromD<hn::DFromV<V>>;

// Sign masks for the real or the imaginary parts.
template <class T>
struct Signs {
  HWY_ALIGN T real[static_cast<std::size_t>(kLanes<T>)];
  HWY_ALIGN T imaginary[static_cast<std::size_t>(kLanes<T>)];
  constexpr Signs() {
    for (index_t k = 0; k < kLanes<T>; ++k) {
      real[k] = k % 2 == 0 ? T{-0.0} : T{0};
      imaginary[k] = k % 2 == 0 ? T{0} : T{-0.0};
    }
  }
};
template <class T>
constexpr Signs<T> kSigns;

template <class V>
HWY_INLINE V real_signs() {
  return hn::Load(TagOf<V>(), kSigns<NumberOf<V>>.real);
}
template <class V>
HWY_INLINE V imaginary_signs() {
  return hn::Load(TagOf<V>(), kSigns<NumberOf<V>>.imaginary);
}
template <class V>
HWY_INLINE V exchanged(V a) {
  return hn::Reverse2(TagOf<V>(), a);
}
template <class V>
HWY_INLINE V only_real(V a) {
  return hn::OddEven(hn::Zero(TagOf<V>()), a);
}

// A factor prepared for products. Rounding is that of the formula by parts: a difference is a sum
// with the opposite sign, and a change of sign commutes with rounding.
template <class V>
struct Factor {
  V re, im;
};
template <bool kConj, class V>
HWY_INLINE Factor<V> factor(V x) {
  const V signs = kConj ? imaginary_signs<V>() : real_signs<V>();
  return {hn::DupEven(x), hn::Xor(hn::DupOdd(x), signs)};
}
template <class V>
HWY_INLINE V times(V a, Factor<V> x) {
  return hn::Add(hn::Mul(a, x.re), hn::Mul(exchanged(a), x.im));
}
template <bool kConj, class V>
HWY_INLINE V times(V a, V x) {
  return times(a, factor<kConj>(x));
}

PALIMPSEST_TILE_OP(Square, times<false>(a, a), V a);
PALIMPSEST_TILE_OP(Conj, hn::Xor(a, imaginary_signs<V>()), V a);
PALIMPSEST_TILE_OP(Imaginary, only_real(exchanged(a)), V a);

// Computes a x or a conj(x).
template <bool kConj>
struct Multiply {
  template <class V>
  static HWY_INLINE V of(V a, V x) {
    return times<kConj>(a, in_turn(x));
  }
};
// Computes conj(a) x.
struct ConjMultiply {
  template <class V>
  static HWY_INLINE V of(V a, V x) {
    return times<true>(x, a);
  }
};
template <bool kConj>
struct Product {
  template <class V>
  static HWY_INLINE V of(V, V x, V y) {
    return times<kConj>(in_turn(x), in_turn(y));
  }
};
template <bool kConj>
struct MultiplyAdd {
  template <class V>
  static HWY_INLINE V of(V a, V x, V y) {
    return hn::Add(a, times<kConj>(in_turn(x), in_turn(y)));
  }
};
template <bool kConj>
struct MultiplySubtract {
  template <class V>
  static HWY_INLINE V of(V a, V x, V y) {
    return hn::Sub(a, times<kConj>(in_turn(x), in_turn(y)));
  }
};

// Quotients and magnitudes of single precision are computed in double, where |x|^2 neither
// overflows nor underflows.
template <class V>
using DoublesOf = hn::Vec<hn::Repartition<double, TagOf<V>>>;
template <class V>
struct Halves {
  DoublesOf<V> low, high;
};
template <class V>
HWY_INLINE Halves<V> widened(V v) {
  const hn::Repartition<double, TagOf<V>> d;
  const hn::Half<TagOf<V>> half;
  return {hn::PromoteTo(d, hn::LowerHalf(half, v)), hn::PromoteTo(d, hn::UpperHalf(half, v))};
}
template <class V>
HWY_INLINE V narrowed(Halves<V> v) {
  const TagOf<V> d;
  const hn::Half<TagOf<V>> half;
  return hn::Combine(d, hn::DemoteTo(half, v.high), hn::DemoteTo(half, v.low));
}
template <class V>
constexpr bool kIsDouble = sizeof(NumberOf<V>) == sizeof(double);

// Computes |a|^2, in both places of a pair.
template <class V>
HWY_INLINE V both_norm2(V a) {
  const V squares = hn::Mul(a, a);
  return hn::Add(squares, exchanged(squares));
}
// Computes the quotients again where the plain formula loses something.
template <class V>
HWY_NOINLINE V repaired_quotients(V a, V b) {
  const TagOf<V> d;
  HWY_ALIGN double above[static_cast<std::size_t>(kLanes<double>)];
  HWY_ALIGN double below[static_cast<std::size_t>(kLanes<double>)];
  hn::Store(a, d, above);
  hn::Store(b, d, below);
  for (index_t k = 0; k < kLanes<double>; k += 2) {
    const auto q = safe_quotient({above[k], above[k + 1]}, {below[k], below[k + 1]});
    above[k] = q.real();
    above[k + 1] = q.imag();
  }
  return hn::Load(d, above);
}
template <class V>
HWY_INLINE V quotient(V a, V b) {
  if constexpr (kIsDouble<V>) {
    const TagOf<V> d;
    const V product = times<true>(a, b), norm2 = both_norm2(b);
    const V parts = hn::Abs(product), size = hn::Add(parts, exchanged(parts));
    const auto least = hn::Set(d, kLeastSafeNorm2);
    const auto in_range =
        hn::And(hn::And(hn::Ge(norm2, least), hn::Le(norm2, hn::Set(d, kMostSafeNorm2))),
                hn::Le(size, hn::Set(d, std::numeric_limits<double>::max())));
    const auto safe = hn::And(in_range, hn::Or(hn::Ge(size, least), hn::Eq(a, hn::Zero(d))));
    if (HWY_UNLIKELY(!hn::AllTrue(d, safe))) return repaired_quotients(a, b);
    return hn::Div(product, norm2);
  } else {
    const Halves<V> over = widened(a), under = widened(b);
    return narrowed<V>({quotient(over.low, under.low), quotient(over.high, under.high)});
  }
}

// Replaces numbers of `square` (|a|^2 in both places) that are out of range by the magnitude.
template <class V>
HWY_NOINLINE void repair_magnitudes(V a, V square, V& magnitude) {
  const TagOf<V> d;
  HWY_ALIGN double parts[static_cast<std::size_t>(kLanes<double>)];
  HWY_ALIGN double squares[static_cast<std::size_t>(kLanes<double>)];
  HWY_ALIGN double magnitudes[static_cast<std::size_t>(kLanes<double>)];
  hn::Store(a, d, parts);
  hn::Store(square, d, squares);
  hn::Store(magnitude, d, magnitudes);
  for (index_t k = 0; k < kLanes<double>; k += 2) {
    if (is_safe_norm2(squares[k])) continue;
    magnitudes[k] = magnitudes[k + 1] = far_magnitude(parts[k], parts[k + 1]);
  }
  magnitude = hn::Load(d, magnitudes);
}
// Computes |a|, in both places of a pair.
template <class V>
HWY_INLINE V both_magnitude(V a) {
  if constexpr (kIsDouble<V>) {
    const TagOf<V> d;
    const V square = both_norm2(a);
    V magnitude = hn::Sqrt(square);
    const auto safe = hn::And(hn::Ge(square, hn::Set(d, kLeastSafeNorm2)),
                              hn::Le(square, hn::Set(d, kMostSafeNorm2)));
    if (HWY_UNLIKELY(!hn::AllTrue(d, safe))) repair_magnitudes(a, square, magnitude);
    return magnitude;
  } else {
    // A square root for both halves.
    const Halves<V> parts = widened(a);
    const auto roots = hn::Sqrt(hn::OddEven(both_norm2(parts.high), both_norm2(parts.low)));
    return narrowed<V>({hn::DupEven(roots), hn::DupOdd(roots)});
  }
}

struct Divide {
  template <class V>
  static HWY_INLINE V of(V a, V x) {
    return quotient(a, in_turn(x));
  }
};
struct DivideInto {
  template <class V>
  static HWY_INLINE V of(V a, V x) {
    return quotient(in_turn(x), a);
  }
};
struct Reciprocal {
  template <class V>
  static HWY_INLINE V of(V a) {
    return quotient(only_real(hn::Set(TagOf<V>(), NumberOf<V>{1})), a);
  }
};
// |a|^2
struct Magnitude2 {
  template <class V>
  static HWY_INLINE V of(V a) {
    return only_real(both_norm2(a));
  }
};
// Of an infinite a the direction that angle() gives.
struct Sign {
  template <class V>
  static HWY_INLINE V of(V a) {
    const TagOf<V> d;
    const V zero = hn::Zero(d), size = both_magnitude(a);
    const V found = hn::IfThenElse(hn::Eq(size, zero), zero, hn::Div(a, size));
    const auto is_large = hn::IsInf(size);
    if (hn::AllFalse(d, is_large)) return found;
    const V one = hn::Set(d, NumberOf<V>{1});
    const V end = hn::IfThenElse(hn::IsInf(a), hn::CopySign(one, a), hn::Mul(a, zero));
    const V smaller = hn::Mul(a, hn::Set(d, NumberOf<V>{0.25}));
    const V towards = hn::IfThenElse(hn::IsInf(both_magnitude(smaller)), end, smaller);
    return hn::IfThenElse(is_large, hn::Div(towards, both_magnitude(towards)), found);
  }
};

// Product a x, where x is the same for all elements.
template <bool kConj>
struct Scale {
  template <bool kStores, class T, int U>
  static HWY_INLINE void run(const Step<T>& step, Spot spot, VecOf<T> (&a)[U]) {
    const auto x = factor<kConj>(Row<T, U>(step, 0, spot)(0));
    const Result<kStores, T, U> result(step, spot);
    PALIMPSEST_EACH(a[u] = result(u, times(a[u], x)));
  }
};
// a + x y or a - x y, where x is the same for all elements.
template <bool kSubtracts>
struct AddScaled {
  template <bool kStores, class T, int U>
  static HWY_INLINE void run(const Step<T>& step, Spot spot, VecOf<T> (&a)[U]) {
    const auto x = factor<false>(Row<T, U>(step, 0, spot)(0));
    const Row<T, U> y(step, 1, spot);
    const Result<kStores, T, U> result(step, spot);
    PALIMPSEST_EACH(const auto scaled = times(in_turn(y(u)), x);
                    a[u] = result(u, kSubtracts ? hn::Sub(a[u], scaled) : hn::Add(a[u], scaled)));
  }
};

// A real operand: the elements for vector u of the block, in the lower half of a vector.
template <class T, int U>
struct RealRow {
  std::uintptr_t address;
  index_t valid;

  HWY_INLINE RealRow(const Step<T>& step, int operand, Spot spot)
      : address(step.operands[operand] + spot.first / 2), valid(spot.valid / 2) {}
  HWY_INLINE T* at(int u) const { return reinterpret_cast<T*>(address) + u * (kLanes<T> / 2); }
  HWY_INLINE bool is_whole() const { return U > 1 || valid == kLanes<T> / 2; }
  HWY_INLINE VecOf<T> operator()(int u) const {
    const Tag<T> d;
    const hn::Half<Tag<T>> half;
    if (is_whole()) return hn::ZeroExtendVector(d, hn::LoadU(half, at(u)));
    return get<T, 1>(at(u), valid);
  }
  HWY_INLINE void set(int u, VecOf<T> v) const {
    const hn::Half<Tag<T>> half;
    if (is_whole()) {
      hn::StoreU(hn::LowerHalf(half, v), half, at(u));
    } else {
      put<T, 1>(v, at(u), valid);
    }
  }
};

// Lane indices: which real number each part of a complex one takes, and back.
template <class T>
struct Order {
  using Index = hwy::MakeSigned<T>;
  HWY_ALIGN Index twice[static_cast<std::size_t>(kLanes<T>)];   // 0 0 1 1 2 2 ..
  HWY_ALIGN Index halves[static_cast<std::size_t>(kLanes<T>)];  // 0 2 4 .. 1 3 5 ..
  HWY_INLINE Order() {
    for (index_t k = 0; k < kLanes<T>; ++k) twice[k] = static_cast<Index>(k / 2);
    for (index_t k = 0; k < kLanes<T> / 2; ++k) {
      halves[k] = static_cast<Index>(2 * k);
      halves[kLanes<T> / 2 + k] = static_cast<Index>(2 * k + 1);
    }
  }
};
template <class T>
HWY_INLINE VecOf<T> in_order(VecOf<T> v, const typename Order<T>::Index* order) {
  return hn::TableLookupLanes(v, hn::SetTableIndices(Tag<T>{}, order));
}

struct LoadReal {
  template <bool, class T, int U>
  static HWY_INLINE void run(const Step<T>& step, Spot spot, VecOf<T> (&a)[U]) {
    const Order<T> order;
    const RealRow<T, U> x(step, 0, spot);
    PALIMPSEST_EACH(a[u] = in_turn(a[u]);
                    a[u] = in_turn(only_real(in_order<T>(x(u), order.twice))));
  }
};
struct LoadParts {
  template <bool, class T, int U>
  static HWY_INLINE void run(const Step<T>& step, Spot spot, VecOf<T> (&a)[U]) {
    const Order<T> order;
    const RealRow<T, U> x(step, 0, spot), y(step, 1, spot);
    PALIMPSEST_EACH(a[u] = in_turn(a[u]);
                    a[u] = in_turn(hn::OddEven(in_order<T>(y(u), order.twice),
                                               in_order<T>(x(u), order.twice))));
  }
};
struct StoreReal {
  template <bool, class T, int U>
  static HWY_INLINE void run(const Step<T>& step, Spot spot, VecOf<T> (&a)[U]) {
    const Order<T> order;
    const RealRow<T, U> x(step, 0, spot);
    PALIMPSEST_EACH(x.set(u, in_order<T>(a[u], order.halves)));
  }
};

// Lane masks for selection: both parts of a number get the same mask.
template <class T>
struct Conditions {
  Order<T> order;
  HWY_INLINE Conditions() {}
  HWY_INLINE VecOf<T> operator()(const std::uint8_t* from, index_t valid) const {
    const hn::Half<Tag<T>> half;
    return in_order<T>(hn::ZeroExtendVector(Tag<T>(), widened_bytes(half, from, valid)),
                       order.twice);
  }
};

// Keys of steps: verbs; products whose first operand is the same for all elements; choices by one
// bool for all; steps with real operands.
enum Key : int {
  kScale = kVerbs,
  kScaleConj,
  kAddScaled,
  kSubtractScaled,
  kChooseStill,
  kChooseFromStill,
  kLoadReal,
  kLoadParts,
  kStoreReal,
  kKeys,
};
constexpr int kFirstOfReals = kLoadReal;

int key(const TileVerb& verb) {
  switch (verb.verb) {
    case Verb::multiply:
      return verb.still_x ? int{kScale} : static_cast<int>(Verb::multiply);
    case Verb::multiply_conj:
      return verb.still_x ? int{kScaleConj} : static_cast<int>(Verb::multiply_conj);
    case Verb::multiply_add:
      return verb.still_x ? int{kAddScaled} : static_cast<int>(Verb::multiply_add);
    case Verb::multiply_subtract:
      return verb.still_x ? int{kSubtractScaled} : static_cast<int>(Verb::multiply_subtract);
    case Verb::choose:
      return verb.still_y ? int{kChooseStill} : static_cast<int>(Verb::choose);
    case Verb::choose_from:
      return verb.still_y ? int{kChooseFromStill} : static_cast<int>(Verb::choose_from);
    case Verb::load_real:
      return kLoadReal;
    case Verb::load_parts:
      return kLoadParts;
    case Verb::store_real:
      return kStoreReal;
    default:
      return static_cast<int>(verb.verb);
  }
}

template <class T>
constexpr std::array<Handler<T>, kKeys> make_handlers() {
  std::array<Handler<T>, kKeys> table{};
  const auto set = [&](Verb verb, Handler<T> h) { table[static_cast<std::size_t>(verb)] = h; };
  set_shared_handlers<T>(set);
  set(Verb::multiply, each<T, Multiply<false>>());
  set(Verb::multiply_conj, each<T, Multiply<true>>());
  set(Verb::conj_multiply, each<T, ConjMultiply>());
  set(Verb::product, each<T, Product<false>>());
  set(Verb::product_conj, each<T, Product<true>>());
  set(Verb::multiply_add, each<T, MultiplyAdd<false>>());
  set(Verb::multiply_conj_add, each<T, MultiplyAdd<true>>());
  set(Verb::multiply_subtract, each<T, MultiplySubtract<false>>());
  set(Verb::multiply_conj_subtract, each<T, MultiplySubtract<true>>());
  set(Verb::square, each<T, Square>());
  set(Verb::conj, each<T, Conj>());
  set(Verb::divide, each<T, Divide>());
  set(Verb::divide_into, each<T, DivideInto>());
  set(Verb::reciprocal, each<T, Reciprocal>());
  set(Verb::sign, each<T, Sign>());
  set(Verb::magnitude2, each<T, Magnitude2>());
  set(Verb::imaginary, each<T, Imaginary>());
  set(Verb::choose, storing_handler<T, Choose<false, Conditions, 2>>());
  set(Verb::choose_from, storing_handler<T, Choose<true, Conditions, 2>>());
  table[kChooseStill] = storing_handler<T, ChooseStill<false>>();
  table[kChooseFromStill] = storing_handler<T, ChooseStill<true>>();
  table[kScale] = storing_handler<T, Scale<false>>();
  table[kScaleConj] = storing_handler<T, Scale<true>>();
  table[kAddScaled] = storing_handler<T, AddScaled<false>>();
  table[kSubtractScaled] = storing_handler<T, AddScaled<true>>();
  table[kLoadReal] = handler<T, LoadReal>();
  table[kLoadParts] = handler<T, LoadParts>();
  table[kStoreReal] = handler<T, StoreReal>();
  return table;
}

template <class T>
void run(const TileVerb* code, int n_verbs, std::byte* const* addresses, index_t n) {
  static constexpr std::array<Handler<T>, kKeys> kHandlers = make_handlers<T>();
  Steps<T> steps(kHandlers.data());
  for (const TileVerb* verb = code; verb != code + n_verbs; ++verb) {
    if (verb->verb == Verb::store && steps.store_at_once(addresses[verb->x])) continue;
    steps.add(key(*verb));
    steps.set(0, addresses[verb->x], verb->still_x);
    steps.set(1, addresses[verb->y], verb->still_y && !is_choice(*verb));
  }
  steps.run(2 * n, kFirstOfReals);
}

#endif  // HWY_TARGET

}  // namespace

ComplexTileMachines complex_machines() {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  return {};
#else
  return {run<float>, run<double>};
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace palimpsest {

HWY_EXPORT(complex_machines);

ComplexTileMachines complex_tile_machines() { return HWY_DYNAMIC_DISPATCH(complex_machines)(); }

}  // namespace palimpsest
#endif
