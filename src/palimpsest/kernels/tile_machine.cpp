// SPDX-License-Identifier: Apache-2.0
// The machines of tile_code.hpp. This file is compiled once per instruction set; the best one is
// chosen when the program runs.
//
// The accumulator stays in registers while a block of kUnroll vectors goes through the code, so that
// a verb costs one load and one operation per vector, and the switch between verbs is paid once per
// block. Verbs are made ready for a tile first: addresses are looked up, and neighbours that are often
// seen together become one step. What is left at the end of a tile goes vector by vector.
//
// Complex numbers are held as one vector of real and one of imaginary parts. The two vectors of a
// block of pairs, low and high, become re = (low0 high0 low1 high1 ...) and im likewise: this order
// costs one exchange of neighbours and one blend each way, and no traffic between the halves of a
// vector. Real operands of complex code are brought into the same order.
#include <cstdint>
#include <cstring>

#include "palimpsest/kernels/elementwise.hpp"
#include "palimpsest/kernels/tile_code.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/tile_machine.cpp"
#if defined(PALIMPSEST_ONE_VECTOR_WIDTH)
#define PALIMPSEST_FURTHER_TARGETS HWY_AVX3
#else
#define PALIMPSEST_FURTHER_TARGETS 0
#endif
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_RVV | PALIMPSEST_FURTHER_TARGETS)
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// For every vector of a block.
#define PALIMPSEST_EACH(...)                                              \
  do {                                                                    \
    _Pragma("GCC unroll 16") for (int u = 0; u < U; ++u) { __VA_ARGS__; } \
  } while (false)

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using VecOf = hn::Vec<Tag<T>>;
template <class T>
constexpr index_t kLanes = static_cast<index_t>(hn::MaxLanes(Tag<T>{}));

// Vectors of a block of real numbers; half as many of complex ones.
#if HWY_TARGET == HWY_AVX3
constexpr int kUnroll = 16;
#else
constexpr int kUnroll = 8;
#endif

// Numbers [first, first + count) of type T at p; only where count is a whole number of vectors can
// more than `valid` be touched.
template <class T, bool kWhole>
HWY_INLINE VecOf<T> get(const T* p, [[maybe_unused]] index_t valid) {
  const Tag<T> d;
  if constexpr (!kWhole) {
    if (valid < kLanes<T>) {
      HWY_ALIGN T lanes[static_cast<std::size_t>(kLanes<T>)] = {};
      if (valid > 0) std::memcpy(lanes, p, static_cast<std::size_t>(valid) * sizeof(T));
      return hn::Load(d, lanes);
    }
  }
  return hn::LoadU(d, p);
}

template <class T, bool kWhole>
HWY_INLINE void put(VecOf<T> v, T* p, [[maybe_unused]] index_t valid) {
  const Tag<T> d;
  if constexpr (!kWhole) {
    if (valid < kLanes<T>) {
      HWY_ALIGN T lanes[static_cast<std::size_t>(kLanes<T>)];
      hn::Store(v, d, lanes);
      if (valid > 0) std::memcpy(p, lanes, static_cast<std::size_t>(valid) * sizeof(T));
      return;
    }
  }
  hn::StoreU(v, d, p);
}

template <class T>
HWY_INLINE bool is_aligned(const T* p) {
  return reinterpret_cast<std::uintptr_t>(p) % (static_cast<std::size_t>(kLanes<T>) * sizeof(T)) ==
         0;
}

// a < b or a is no number: a, else b.
template <class T>
HWY_INLINE VecOf<T> lesser(VecOf<T> a, VecOf<T> b) {
  return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b);
}
template <class T>
HWY_INLINE VecOf<T> greater(VecOf<T> a, VecOf<T> b) {
  return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
}

// Where an operand begins; `moves` is all ones, or 0 if one block serves for all.
struct Operand {
  std::uintptr_t address, moves;
  // What lies `bytes` behind the beginning. Opaque, or GCC keeps one register for each vector of a
  // block and has none left.
  HWY_INLINE std::uintptr_t behind(index_t bytes) const {
    std::uintptr_t there = address + (static_cast<std::uintptr_t>(bytes) & moves);
    __asm__("" : "+r"(there));
    return there;
  }
};

// A verb, or several, with everything looked up.
struct Step {
  int key;
  Operand x, y, z, w;
};
constexpr int kMostSteps = 4 * ElementwiseProgram::kMaxRegisters;

HWY_INLINE Operand operand(std::byte* const* addresses, std::int16_t r, bool still) {
  return {reinterpret_cast<std::uintptr_t>(addresses[r]),
          still ? std::uintptr_t{0} : ~std::uintptr_t{0}};
}

// An operand of real code: vector u of the block.
template <class T, int U>
struct RealRow {
  std::uintptr_t address;
  index_t valid;

  HWY_INLINE RealRow(const Operand& from, index_t first, index_t n)
      : address(from.behind(first * index_t{sizeof(T)})), valid(n) {}
  HWY_INLINE T* at(int u) const { return reinterpret_cast<T*>(address) + u * kLanes<T>; }
  HWY_INLINE VecOf<T> operator()(int u) const { return get<T, (U > 1)>(at(u), valid); }
  HWY_INLINE void set(int u, VecOf<T> v) const { put<T, (U > 1)>(v, at(u), valid); }
  HWY_INLINE void stream(int u, VecOf<T> v) const {
    if (U > 1 && is_aligned(at(u))) {
      hn::Stream(v, Tag<T>{}, at(u));
    } else {
      set(u, v);
    }
  }
};

// How a product and a third number become one: in the order of the verbs.
constexpr Verb kThen[] = {Verb::multiply_then_add, Verb::multiply_then_subtract,
                          Verb::multiply_then_subtract_from};
constexpr Verb kAfter[] = {Verb::add, Verb::subtract, Verb::subtract_from};

template <class T, int kOp>
HWY_INLINE VecOf<T> then(VecOf<T> product, VecOf<T> y) {
  if constexpr (kOp == 0) return hn::Add(product, y);
  if constexpr (kOp == 1) return hn::Sub(product, y);
  return hn::Sub(y, product);
}

constexpr int find(const Verb (&verbs)[3], Verb verb) {
  for (int i = 0; i < 3; ++i) {
    if (verbs[i] == verb) return i;
  }
  return -1;
}

// Keys of steps that are no verbs: x y then z, and twice in a row a x then y.
constexpr int kVerbs = 64;
constexpr int product_then(int op) { return kVerbs + op; }
constexpr int twice(int first, int second) { return kVerbs + 3 + 3 * first + second; }

// Is what `last` does followed by what `verb` does one step? Then makes it one.
HWY_INLINE bool unite(Step& last, const TileVerb& verb, const Operand& x, const Operand& y) {
  const int after = find(kAfter, verb.verb), next = find(kThen, verb.verb);
  if (last.key == static_cast<int>(Verb::product) && after >= 0) {
    last.key = product_then(after);
    last.z = x;
    return true;
  }
  if (next < 0 || last.key >= kVerbs) return false;
  const int first = find(kThen, static_cast<Verb>(last.key));
  if (first < 0) return false;
  last.key = twice(first, next);
  last.z = x;
  last.w = y;
  return true;
}

HWY_INLINE int make_ready_real(const TileVerb* code, int n_verbs, std::byte* const* addresses,
                               Step* steps) {
  int n = 0;
  for (int i = 0; i < n_verbs; ++i) {
    const TileVerb& verb = code[i];
    const Operand x = operand(addresses, verb.x, verb.still_x);
    const Operand y = operand(addresses, verb.y, verb.still_y);
    if (n > 0 && unite(steps[n - 1], verb, x, y)) continue;
    steps[n].key = static_cast<int>(verb.verb);
    steps[n].x = x;
    steps[n++].y = y;
  }
  return n;
}

#define PALIMPSEST_PRODUCT_THEN(op)                                 \
  case product_then(op): {                                          \
    const Row y(step->y, first, valid), z(step->z, first, valid);   \
    PALIMPSEST_EACH(a[u] = then<T, op>(hn::Mul(x(u), y(u)), z(u))); \
    break;                                                          \
  }
#define PALIMPSEST_TWICE(one, two)                                                          \
  case twice(one, two): {                                                                   \
    const Row y(step->y, first, valid), z(step->z, first, valid), w(step->w, first, valid); \
    PALIMPSEST_EACH(a[u] = then<T, one>(hn::Mul(a[u], x(u)), y(u));                         \
                    a[u] = then<T, two>(hn::Mul(a[u], z(u)), w(u)));                        \
    break;                                                                                  \
  }

template <class T, int U>
HWY_INLINE void real_block(const Step* step, const Step* end, index_t first, index_t valid,
                           VecOf<T> (&a)[U]) {
  using Row = RealRow<T, U>;
  const Tag<T> d;
  for (; step != end; ++step) {
    const Row x(step->x, first, valid);
    switch (step->key) {
      case static_cast<int>(Verb::load):
        PALIMPSEST_EACH(a[u] = x(u));
        break;
      case static_cast<int>(Verb::store):
        PALIMPSEST_EACH(x.set(u, a[u]));
        break;
      case static_cast<int>(Verb::stream):
        PALIMPSEST_EACH(x.stream(u, a[u]));
        break;
      case static_cast<int>(Verb::add):
        PALIMPSEST_EACH(a[u] = hn::Add(a[u], x(u)));
        break;
      case static_cast<int>(Verb::subtract):
        PALIMPSEST_EACH(a[u] = hn::Sub(a[u], x(u)));
        break;
      case static_cast<int>(Verb::subtract_from):
        PALIMPSEST_EACH(a[u] = hn::Sub(x(u), a[u]));
        break;
      case static_cast<int>(Verb::multiply):
        PALIMPSEST_EACH(a[u] = hn::Mul(a[u], x(u)));
        break;
      case static_cast<int>(Verb::multiply_add): {
        const Row y(step->y, first, valid);
        PALIMPSEST_EACH(a[u] = hn::Add(a[u], hn::Mul(x(u), y(u))));
        break;
      }
      case static_cast<int>(Verb::multiply_subtract): {
        const Row y(step->y, first, valid);
        PALIMPSEST_EACH(a[u] = hn::Sub(a[u], hn::Mul(x(u), y(u))));
        break;
      }
      case static_cast<int>(Verb::product): {
        const Row y(step->y, first, valid);
        PALIMPSEST_EACH(a[u] = hn::Mul(x(u), y(u)));
        break;
      }
      case static_cast<int>(Verb::multiply_then_add): {
        const Row y(step->y, first, valid);
        PALIMPSEST_EACH(a[u] = hn::Add(hn::Mul(a[u], x(u)), y(u)));
        break;
      }
      case static_cast<int>(Verb::multiply_then_subtract): {
        const Row y(step->y, first, valid);
        PALIMPSEST_EACH(a[u] = hn::Sub(hn::Mul(a[u], x(u)), y(u)));
        break;
      }
      case static_cast<int>(Verb::multiply_then_subtract_from): {
        const Row y(step->y, first, valid);
        PALIMPSEST_EACH(a[u] = hn::Sub(y(u), hn::Mul(a[u], x(u))));
        break;
      }
      case static_cast<int>(Verb::negate):
        PALIMPSEST_EACH(a[u] = hn::Neg(a[u]));
        break;
      case static_cast<int>(Verb::square):
        PALIMPSEST_EACH(a[u] = hn::Mul(a[u], a[u]));
        break;
      case static_cast<int>(Verb::divide):
        PALIMPSEST_EACH(a[u] = hn::Div(a[u], x(u)));
        break;
      case static_cast<int>(Verb::divide_into):
        PALIMPSEST_EACH(a[u] = hn::Div(x(u), a[u]));
        break;
      case static_cast<int>(Verb::reciprocal):
        PALIMPSEST_EACH(a[u] = hn::Div(hn::Set(d, T{1}), a[u]));
        break;
      case static_cast<int>(Verb::root):
        PALIMPSEST_EACH(a[u] = hn::Sqrt(a[u]));
        break;
      case static_cast<int>(Verb::absolute):
        PALIMPSEST_EACH(a[u] = hn::Abs(a[u]));
        break;
      case static_cast<int>(Verb::round):
        PALIMPSEST_EACH(a[u] = hn::Round(a[u]));
        break;
      case static_cast<int>(Verb::minimum):
        PALIMPSEST_EACH(a[u] = lesser<T>(a[u], x(u)));
        break;
      case static_cast<int>(Verb::minimum_after):
        PALIMPSEST_EACH(a[u] = lesser<T>(x(u), a[u]));
        break;
      case static_cast<int>(Verb::maximum):
        PALIMPSEST_EACH(a[u] = greater<T>(a[u], x(u)));
        break;
      case static_cast<int>(Verb::maximum_after):
        PALIMPSEST_EACH(a[u] = greater<T>(x(u), a[u]));
        break;
        PALIMPSEST_PRODUCT_THEN(0)
        PALIMPSEST_PRODUCT_THEN(1)
        PALIMPSEST_PRODUCT_THEN(2)
        PALIMPSEST_TWICE(0, 0)
        PALIMPSEST_TWICE(0, 1)
        PALIMPSEST_TWICE(0, 2)
        PALIMPSEST_TWICE(1, 0)
        PALIMPSEST_TWICE(1, 1)
        PALIMPSEST_TWICE(1, 2)
        PALIMPSEST_TWICE(2, 0)
        PALIMPSEST_TWICE(2, 1)
        PALIMPSEST_TWICE(2, 2)
      default:
        break;
    }
  }
}

#undef PALIMPSEST_PRODUCT_THEN
#undef PALIMPSEST_TWICE

template <class T>
struct Complex {
  VecOf<T> re, im;
};

// A vector in a register: GCC would read it again from memory for every operation that needs it.
template <class T>
HWY_INLINE VecOf<T> in_register(VecOf<T> v) {
#if HWY_ARCH_X86
  __asm__("" : "+v"(v.raw));
#endif
  return v;
}

// An operand of complex code: vectors u of the block. Numbers are counted in elements.
template <class T, int U>
struct ComplexRow {
  std::uintptr_t address;
  index_t valid;

  HWY_INLINE ComplexRow(const Operand& from, index_t first, index_t n)
      : address(from.behind(2 * first * index_t{sizeof(T)})), valid(n) {}
  HWY_INLINE T* at(int u) const { return reinterpret_cast<T*>(address) + 2 * u * kLanes<T>; }
  template <Form form>
  HWY_INLINE Complex<T> load(int u) const {
    const Tag<T> d;
    const T* p = at(u);
    if constexpr (form == Form::planar) {
      return {in_register<T>(hn::LoadU(d, p)), in_register<T>(hn::LoadU(d, p + kLanes<T>))};
    } else {
      const auto low = in_register<T>(get<T, (U > 1)>(p, 2 * valid));
      const auto high = in_register<T>(get<T, (U > 1)>(p + kLanes<T>, 2 * valid - kLanes<T>));
      return {hn::OddEven(hn::Reverse2(d, high), low), hn::OddEven(high, hn::Reverse2(d, low))};
    }
  }
  HWY_INLINE void store_planar(int u, Complex<T> a) const {
    const Tag<T> d;
    hn::StoreU(a.re, d, at(u));
    hn::StoreU(a.im, d, at(u) + kLanes<T>);
  }
  HWY_INLINE void store_pairs(int u, Complex<T> a) const {
    const Tag<T> d;
    put<T, (U > 1)>(hn::OddEven(hn::Reverse2(d, a.im), a.re), at(u), 2 * valid);
    put<T, (U > 1)>(hn::OddEven(a.im, hn::Reverse2(d, a.re)), at(u) + kLanes<T>,
                    2 * valid - kLanes<T>);
  }
  HWY_INLINE void stream(int u, Complex<T> a) const {
    const Tag<T> d;
    if (U > 1 && is_aligned(at(u))) {
      hn::Stream(hn::OddEven(hn::Reverse2(d, a.im), a.re), d, at(u));
      hn::Stream(hn::OddEven(a.im, hn::Reverse2(d, a.re)), d, at(u) + kLanes<T>);
    } else {
      store_pairs(u, a);
    }
  }
};

// Positions that real numbers take among the parts of complex ones, and where they come from.
template <class T>
struct Order {
  using Index = hwy::MakeSigned<T>;
  HWY_ALIGN Index to_parts[static_cast<std::size_t>(kLanes<T>)];
  HWY_ALIGN Index from_parts[static_cast<std::size_t>(kLanes<T>)];
  HWY_INLINE Order() {
    for (index_t k = 0; k < kLanes<T> / 2; ++k) {
      to_parts[2 * k] = static_cast<Index>(k);
      to_parts[2 * k + 1] = static_cast<Index>(kLanes<T> / 2 + k);
      from_parts[k] = static_cast<Index>(2 * k);
      from_parts[kLanes<T> / 2 + k] = static_cast<Index>(2 * k + 1);
    }
  }
};

template <class T>
HWY_INLINE VecOf<T> in_order(VecOf<T> v, const typename Order<T>::Index* order) {
  return hn::TableLookupLanes(v, hn::SetTableIndices(Tag<T>{}, order));
}

template <class T>
HWY_INLINE Complex<T> sum(Complex<T> a, Complex<T> b) {
  return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
}
template <class T>
HWY_INLINE Complex<T> difference(Complex<T> a, Complex<T> b) {
  return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
}
template <class T>
HWY_INLINE Complex<T> product(Complex<T> a, Complex<T> b) {
  return {hn::Sub(hn::Mul(a.re, b.re), hn::Mul(a.im, b.im)),
          hn::Add(hn::Mul(a.re, b.im), hn::Mul(a.im, b.re))};
}
// a conj(b): the same bits as the product with the conjugate, since signs commute with rounding.
template <class T>
HWY_INLINE Complex<T> conj_product(Complex<T> a, Complex<T> b) {
  return {hn::Add(hn::Mul(a.re, b.re), hn::Mul(a.im, b.im)),
          hn::Sub(hn::Mul(a.im, b.re), hn::Mul(a.re, b.im))};
}

constexpr int key(Verb verb, Form x, Form y = Form::pairs) {
  return static_cast<int>(verb) * 4 + static_cast<int>(x) * 2 + static_cast<int>(y);
}

// The two forms of x, the four of x and y.
#define PALIMPSEST_X(verb, ...)       \
  case key(verb, Form::pairs): {      \
    constexpr Form fx = Form::pairs;  \
    PALIMPSEST_EACH(__VA_ARGS__);     \
    break;                            \
  }                                   \
  case key(verb, Form::planar): {     \
    constexpr Form fx = Form::planar; \
    PALIMPSEST_EACH(__VA_ARGS__);     \
    break;                            \
  }
#define PALIMPSEST_XY(verb, form_x, form_y, ...) \
  case key(verb, form_x, form_y): {              \
    constexpr Form fx = form_x, fy = form_y;     \
    PALIMPSEST_EACH(__VA_ARGS__);                \
    break;                                       \
  }
#define PALIMPSEST_TWO_PRODUCTS(conj, first_product)                                            \
  case two_products(conj, false): {                                                             \
    const Row z(step->z, first, valid), w(step->w, first, valid);                               \
    PALIMPSEST_EACH(a[u] = sum<T>(first_product<T>(pairs(x, u), pairs(y, u)),                   \
                                  product<T>(pairs(z, u), pairs(w, u))));                       \
    break;                                                                                      \
  }                                                                                             \
  case two_products(conj, true): {                                                              \
    const Row w(step->w, first, valid);                                                         \
    const Complex<T> s = Row(step->z, first, valid).template load<Form::planar>(0);             \
    PALIMPSEST_EACH(                                                                            \
        a[u] = sum<T>(first_product<T>(pairs(x, u), pairs(y, u)), product<T>(s, pairs(w, u)))); \
    break;                                                                                      \
  }
#define PALIMPSEST_ALL_XY(verb, ...)                          \
  PALIMPSEST_XY(verb, Form::pairs, Form::pairs, __VA_ARGS__)  \
  PALIMPSEST_XY(verb, Form::pairs, Form::planar, __VA_ARGS__) \
  PALIMPSEST_XY(verb, Form::planar, Form::pairs, __VA_ARGS__) \
  PALIMPSEST_XY(verb, Form::planar, Form::planar, __VA_ARGS__)

// A product of two numbers in memory is one step.
HWY_INLINE bool unite_complex(Step& last, const TileVerb& verb, const Operand& x) {
  Form load = Form::pairs;
  if (last.key == key(Verb::load, Form::planar)) {
    load = Form::planar;
  } else if (last.key != key(Verb::load, Form::pairs)) {
    return false;
  }
  if (verb.verb == Verb::multiply || verb.verb == Verb::multiply_conj) {
    last.key =
        key(verb.verb == Verb::multiply ? Verb::product : Verb::product_conj, load, verb.form_x);
    last.y = x;
    return true;
  }
  if (verb.verb != Verb::conj_multiply) return false;
  last.key = key(Verb::product_conj, verb.form_x, load);
  last.y = last.x;
  last.x = x;
  return true;
}

// A product of two numbers in memory, and another one that is added to it, are one step; of the second
// the first factor may be one number for all elements.
constexpr int kComplexVerbs = 4 * kVerbs;
constexpr int two_products(bool conj, bool scaled) {
  return kComplexVerbs + 2 * static_cast<int>(conj) + static_cast<int>(scaled);
}

HWY_INLINE bool unite_products(Step& last, const TileVerb& verb, const Operand& x,
                               const Operand& y) {
  const bool conj = last.key == key(Verb::product_conj, Form::pairs);
  if (!conj && last.key != key(Verb::product, Form::pairs)) return false;
  if (verb.verb != Verb::multiply_add || verb.form_y != Form::pairs) return false;
  const bool scaled = verb.form_x == Form::planar && verb.still_x;
  if (!scaled && verb.form_x != Form::pairs) return false;
  last.key = two_products(conj, scaled);
  last.z = x;
  last.w = y;
  return true;
}

HWY_INLINE int make_ready_complex(const TileVerb* code, int n_verbs, std::byte* const* addresses,
                                  Step* steps) {
  int n = 0;
  for (int i = 0; i < n_verbs; ++i) {
    const TileVerb& verb = code[i];
    const Operand x = operand(addresses, verb.x, verb.still_x);
    const Operand y = operand(addresses, verb.y, verb.still_y);
    if (n > 0 && unite_complex(steps[n - 1], verb, x)) continue;
    if (n > 0 && unite_products(steps[n - 1], verb, x, y)) continue;
    steps[n].key = key(verb.verb, verb.form_x, verb.form_y);
    steps[n].x = x;
    steps[n++].y = y;
  }
  return n;
}

template <class T, int U>
HWY_INLINE void complex_block(const Step* step, const Step* end, index_t first, index_t valid,
                              const Order<T>& order, Complex<T> (&a)[U]) {
  using Row = ComplexRow<T, U>;
  const Tag<T> d;
  const auto pairs = [](const Row& row, int u) { return row.template load<Form::pairs>(u); };
  for (; step != end; ++step) {
    const ComplexRow<T, U> x(step->x, first, valid), y(step->y, first, valid);
    switch (step->key) {
      PALIMPSEST_X(Verb::load, a[u] = x.template load<fx>(u))
      PALIMPSEST_X(Verb::add, a[u] = sum<T>(a[u], x.template load<fx>(u)))
      PALIMPSEST_X(Verb::subtract, a[u] = difference<T>(a[u], x.template load<fx>(u)))
      PALIMPSEST_X(Verb::subtract_from, a[u] = difference<T>(x.template load<fx>(u), a[u]))
      PALIMPSEST_X(Verb::multiply, a[u] = product<T>(a[u], x.template load<fx>(u)))
      PALIMPSEST_X(Verb::multiply_conj, a[u] = conj_product<T>(a[u], x.template load<fx>(u)))
      PALIMPSEST_X(Verb::conj_multiply, a[u] = conj_product<T>(x.template load<fx>(u), a[u]))
      PALIMPSEST_ALL_XY(Verb::product,
                        a[u] = product<T>(x.template load<fx>(u), y.template load<fy>(u)))
      PALIMPSEST_ALL_XY(Verb::product_conj,
                        a[u] = conj_product<T>(x.template load<fx>(u), y.template load<fy>(u)))
      PALIMPSEST_ALL_XY(Verb::multiply_add, a[u] = sum<T>(a[u], product<T>(x.template load<fx>(u),
                                                                           y.template load<fy>(u))))
      PALIMPSEST_ALL_XY(
          Verb::multiply_subtract,
          a[u] = difference<T>(a[u], product<T>(x.template load<fx>(u), y.template load<fy>(u))))
      PALIMPSEST_ALL_XY(
          Verb::multiply_conj_add,
          a[u] = sum<T>(a[u], conj_product<T>(x.template load<fx>(u), y.template load<fy>(u))))
      PALIMPSEST_ALL_XY(Verb::multiply_conj_subtract,
                        a[u] = difference<T>(
                            a[u], conj_product<T>(x.template load<fx>(u), y.template load<fy>(u))))
      PALIMPSEST_TWO_PRODUCTS(false, product)
      PALIMPSEST_TWO_PRODUCTS(true, conj_product)
      case key(Verb::store, Form::pairs):
        PALIMPSEST_EACH(x.store_pairs(u, a[u]));
        break;
      case key(Verb::store, Form::planar):
        PALIMPSEST_EACH(x.store_planar(u, a[u]));
        break;
      case key(Verb::stream, Form::pairs):
        PALIMPSEST_EACH(x.stream(u, a[u]));
        break;
      case key(Verb::load_real, Form::pairs): {
        const RealRow<T, U> re(step->x, first, valid);
        PALIMPSEST_EACH(a[u] = (Complex<T>{in_order<T>(re(u), order.to_parts), hn::Zero(d)}));
        break;
      }
      case key(Verb::load_parts, Form::pairs): {
        const RealRow<T, U> re(step->x, first, valid);
        const RealRow<T, U> im(step->y, first, valid);
        PALIMPSEST_EACH(a[u] = (Complex<T>{in_order<T>(re(u), order.to_parts),
                                           in_order<T>(im(u), order.to_parts)}));
        break;
      }
      case key(Verb::store_real, Form::pairs): {
        const RealRow<T, U> re(step->x, first, valid);
        PALIMPSEST_EACH(re.set(u, in_order<T>(a[u].re, order.from_parts)));
        break;
      }
      case key(Verb::negate, Form::pairs):
        PALIMPSEST_EACH(a[u] = (Complex<T>{hn::Neg(a[u].re), hn::Neg(a[u].im)}));
        break;
      case key(Verb::square, Form::pairs):
        PALIMPSEST_EACH(a[u] = product<T>(a[u], a[u]));
        break;
      case key(Verb::conj, Form::pairs):
        PALIMPSEST_EACH(a[u].im = hn::Neg(a[u].im));
        break;
      case key(Verb::magnitude2, Form::pairs):
        PALIMPSEST_EACH(
            a[u] = (Complex<T>{hn::Add(hn::Mul(a[u].re, a[u].re), hn::Mul(a[u].im, a[u].im)),
                               hn::Zero(d)}));
        break;
      case key(Verb::imaginary, Form::pairs):
        PALIMPSEST_EACH(a[u] = (Complex<T>{a[u].im, hn::Zero(d)}));
        break;
      default:
        break;
    }
  }
}

#undef PALIMPSEST_X
#undef PALIMPSEST_XY
#undef PALIMPSEST_ALL_XY
#undef PALIMPSEST_TWO_PRODUCTS

template <class T>
void run_real(const TileVerb* code, int n_verbs, std::byte* const* addresses, index_t n) {
  constexpr index_t kBlock = kUnroll * kLanes<T>;
  static_assert(kBlock <= kTileBlock && kLanes<T> <= kTileLanes);
  Step steps[kMostSteps];
  const Step* const end = steps + make_ready_real(code, n_verbs, addresses, steps);
  const Tag<T> d;
  VecOf<T> a[kUnroll], one[1] = {hn::Zero(d)};
  _Pragma("GCC unroll 16") for (auto& v : a) v = hn::Zero(d);
  index_t i = 0;
  for (; i + kBlock <= n; i += kBlock) real_block<T, kUnroll>(steps, end, i, kBlock, a);
  for (; i < n; i += kLanes<T>) real_block<T, 1>(steps, end, i, n - i, one);
}

template <class T>
void run_complex(const TileVerb* code, int n_verbs, std::byte* const* addresses, index_t n) {
  constexpr index_t kBlock = kUnroll / 2 * kLanes<T>;
  const Order<T> order;
  Step steps[kMostSteps];
  const Step* const end = steps + make_ready_complex(code, n_verbs, addresses, steps);
  const Tag<T> d;
  Complex<T> a[kUnroll / 2], one[1] = {{hn::Zero(d), hn::Zero(d)}};
  _Pragma("GCC unroll 16") for (auto& v : a) v = {hn::Zero(d), hn::Zero(d)};
  index_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    complex_block<T, kUnroll / 2>(steps, end, i, kBlock, order, a);
  }
  for (; i < n; i += kLanes<T>) complex_block<T, 1>(steps, end, i, n - i, order, one);
}

void finish() { hwy::FlushStream(); }

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace

TileMachines machines() {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  return {};
#else
  return {run_real<float>, run_complex<float>, run_real<double>, run_complex<double>, finish};
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace palimpsest {

HWY_EXPORT(machines);

TileMachines tile_machines() { return HWY_DYNAMIC_DISPATCH(machines)(); }

}  // namespace palimpsest
#endif
