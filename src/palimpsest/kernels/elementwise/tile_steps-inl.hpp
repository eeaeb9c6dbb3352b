// SPDX-License-Identifier: Apache-2.0
// Internal: how the machines of tile_code.hpp execute their code. Included once per instruction
// set.
//
// The accumulator is kBlock vectors that stay in registers: each step is a function that takes them
// as arguments and ends with a tail call of the next step. So a step costs the loads of its
// operands, its arithmetic and one jump for the whole block. Without optimization the calls nest
// instead, and return after each block.
//
// Before a tile the verbs are prepared: addresses are looked up, and frequent pairs of neighbours
// become one step. The rest at the end of a tile is computed vector by vector.
#if defined(PALIMPSEST_TILE_STEPS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef PALIMPSEST_TILE_STEPS_INL_HPP
#undef PALIMPSEST_TILE_STEPS_INL_HPP
#else
#define PALIMPSEST_TILE_STEPS_INL_HPP
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "palimpsest/kernels/elementwise/elementwise.hpp"
#include "palimpsest/kernels/elementwise/tile_code.hpp"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using VecOf = hn::Vec<Tag<T>>;
template <class T>
constexpr index_t kLanes = static_cast<index_t>(hn::MaxLanes(Tag<T>{}));

constexpr int kBlock = 8;  // vectors
// Keys from here on are not verbs.
constexpr int kVerbs = 64;
static_assert(static_cast<int>(Verb::imaginary) < kVerbs);

// Repeats a statement for every vector of a block.
#define PALIMPSEST_EACH(...)                                             \
  do {                                                                   \
    _Pragma("GCC unroll 8") for (int u = 0; u < U; ++u) { __VA_ARGS__; } \
  } while (false)

// Forces the compiler to compute a vector here: GCC would interleave the vectors of a block until
// registers run out, or load an operand again for every operation.
template <class V>
HWY_INLINE V in_turn(V v) {
#if HWY_ARCH_X86
  __asm__ volatile("" : "+v"(v.raw));
#endif
  return v;
}

// An undefined accumulator for the first step of a block, which does not read it.
template <class T>
HWY_INLINE VecOf<T> anything() {
#if HWY_ARCH_X86
  VecOf<T> v;
  __asm__ volatile("" : "=v"(v.raw));
  return v;
#else
  return hn::Zero(Tag<T>());
#endif
}

// Masked access to the first numbers of a vector; no other memory is touched.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
template <class T>
HWY_INLINE VecOf<T> get_some(const T* p, index_t valid) {
  const Tag<T> d;
  return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(valid)), d, p);
}
template <class T>
HWY_INLINE void put_some(VecOf<T> v, T* p, index_t valid) {
  const Tag<T> d;
  hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(valid)), d, p);
}
#else
template <class T>
HWY_NOINLINE VecOf<T> get_some(const T* p, index_t valid) {
  HWY_ALIGN T lanes[static_cast<std::size_t>(kLanes<T>)] = {};
  std::memcpy(lanes, p, static_cast<std::size_t>(valid) * sizeof(T));
  return hn::Load(Tag<T>(), lanes);
}
template <class T>
HWY_NOINLINE void put_some(VecOf<T> v, T* p, index_t valid) {
  HWY_ALIGN T lanes[static_cast<std::size_t>(kLanes<T>)];
  hn::Store(v, Tag<T>(), lanes);
  std::memcpy(p, lanes, static_cast<std::size_t>(valid) * sizeof(T));
}
#endif

// Loads numbers at p; only `valid` of them for a vector of the rest.
template <class T, int U>
HWY_INLINE VecOf<T> get(const T* p, [[maybe_unused]] index_t valid) {
  if constexpr (U == 1) {
    if (HWY_UNLIKELY(valid < kLanes<T>)) return get_some<T>(p, valid);
  }
  return hn::LoadU(Tag<T>(), p);
}

template <class T, int U>
HWY_INLINE void put(VecOf<T> v, T* p, [[maybe_unused]] index_t valid) {
  if constexpr (U == 1) {
    if (HWY_UNLIKELY(valid < kLanes<T>)) return put_some<T>(v, p, valid);
  }
  hn::StoreU(v, Tag<T>(), p);
}

// The position of a block: byte offset from the beginning of an operand, and the number of valid
// lanes if it is a single vector of the rest.
struct Spot {
  std::uintptr_t first;
  index_t valid;
};

// A verb or several, with addresses looked up.
template <class T>
struct Step {
  using V = VecOf<T>;
  void (*block)(const Step*, std::uintptr_t first, V, V, V, V, V, V, V, V);
  void (*single)(const Step*, std::uintptr_t first, index_t valid, V);
  std::uintptr_t operands[5];  // x, y, z and w, and the destination if the step stores
};
constexpr int kResult = 4;

// Loads an operand: vector u of the block.
template <class T, int U>
struct Row {
  std::uintptr_t address;
  index_t valid;

  HWY_INLINE Row(const Step<T>& step, int operand, Spot spot)
      : address(step.operands[operand] + spot.first), valid(spot.valid) {}
  HWY_INLINE T* at(int u) const { return reinterpret_cast<T*>(address) + u * kLanes<T>; }
  HWY_INLINE VecOf<T> operator()(int u) const { return get<T, U>(at(u), valid); }
  HWY_INLINE void set(int u, VecOf<T> v) const { put<T, U>(v, at(u), valid); }
};

// Handles a new vector of the accumulator: kStores writes it at once, while the next ones are
// computed.
template <bool kStores, class T, int U>
struct Result {
  Row<T, U> row;
  HWY_INLINE Result(const Step<T>& step, Spot spot) : row(step, kResult, spot) {}
  HWY_INLINE VecOf<T> operator()(int u, VecOf<T> v) const {
    v = in_turn(v);
    if constexpr (kStores) row.set(u, v);
    return v;
  }
};

// A step that computes each vector of the accumulator from itself and up to four operands.
template <class Op>
struct Each {
  template <bool kStores, class T, int U>
  static HWY_INLINE void run(const Step<T>& step, Spot spot, VecOf<T> (&a)[U]) {
    using V = VecOf<T>;
    const Row<T, U> x(step, 0, spot), y(step, 1, spot), z(step, 2, spot), w(step, 3, spot);
    const Result<kStores, T, U> result(step, spot);
    if constexpr (requires(V v) { Op::of(v); }) {
      PALIMPSEST_EACH(a[u] = result(u, Op::of(in_turn(a[u]))));
    } else if constexpr (requires(V v) { Op::of(v, v); }) {
      PALIMPSEST_EACH(a[u] = result(u, Op::of(in_turn(a[u]), x(u))));
    } else if constexpr (requires(V v) { Op::of(v, v, v); }) {
      PALIMPSEST_EACH(a[u] = result(u, Op::of(in_turn(a[u]), x(u), y(u))));
    } else if constexpr (requires(V v) { Op::of(v, v, v, v); }) {
      PALIMPSEST_EACH(a[u] = result(u, Op::of(in_turn(a[u]), x(u), y(u), z(u))));
    } else {
      PALIMPSEST_EACH(a[u] = result(u, Op::of(in_turn(a[u]), x(u), y(u), z(u), w(u))));
    }
  }
};

// The formulas of steps: a is the accumulator.
#define PALIMPSEST_TILE_OP(name, formula, ...) \
  struct name {                                \
    template <class V>                         \
    static HWY_INLINE V of(__VA_ARGS__) {      \
      return formula;                          \
    }                                          \
  }
PALIMPSEST_TILE_OP(Load, x, V, V x);
PALIMPSEST_TILE_OP(Sum, hn::Add(a, x), V a, V x);
PALIMPSEST_TILE_OP(Difference, hn::Sub(a, x), V a, V x);
PALIMPSEST_TILE_OP(DifferenceFrom, hn::Sub(x, a), V a, V x);
PALIMPSEST_TILE_OP(Negate, hn::Neg(a), V a);

struct Store {
  template <bool, class T, int U>
  static HWY_INLINE void run(const Step<T>& step, Spot spot, VecOf<T> (&a)[U]) {
    const Row<T, U> x(step, 0, spot);
    PALIMPSEST_EACH(x.set(u, a[u]));
  }
};

template <bool kWrites>
struct Ask {
  template <bool, class T, int U>
  static HWY_INLINE void run(const Step<T>& step, Spot spot, VecOf<T> (&)[U]) {
    if constexpr (U > 1) {
      const Row<T, U> x(step, 0, spot);
      PALIMPSEST_EACH(__builtin_prefetch(x.at(u) + kAskAhead / index_t{sizeof(T)}, kWrites));
    }
  }
};

struct Stream {
  template <bool, class T, int U>
  static HWY_INLINE void run(const Step<T>& step, Spot spot, VecOf<T> (&a)[U]) {
    const Row<T, U> x(step, 0, spot);
    if (U == 1 || x.address % (static_cast<std::size_t>(kLanes<T>) * sizeof(T)) != 0) {
      PALIMPSEST_EACH(x.set(u, a[u]));
    } else {
      PALIMPSEST_EACH(hn::Stream(a[u], Tag<T>{}, x.at(u)));
    }
  }
};

// Selection by a bool that is the same for all elements. The other array is not read.
template <bool kFrom>
struct ChooseStill {
  template <bool kStores, class T, int U>
  static HWY_INLINE void run(const Step<T>& step, Spot spot, VecOf<T> (&a)[U]) {
    const bool holds = *reinterpret_cast<const std::uint8_t*>(step.operands[1]) != 0;
    const Row<T, U> x(step, 0, spot);
    const Result<kStores, T, U> result(step, spot);
    if (holds == kFrom) {
      PALIMPSEST_EACH(a[u] = result(u, x(u)));
    } else {
      PALIMPSEST_EACH(a[u] = result(u, a[u]));
    }
  }
};

// The mask of lanes whose byte is not 0.
template <class D>
HWY_INLINE hn::Vec<D> widened_bytes(D d, const std::uint8_t* from, index_t valid) {
  const hn::Rebind<std::uint8_t, D> bytes;
  const hn::Rebind<std::uint32_t, D> words;
  HWY_ALIGN std::uint8_t some[32] = {};
  if (HWY_UNLIKELY(valid < static_cast<index_t>(hn::MaxLanes(d)))) {
    std::memcpy(some, from, static_cast<std::size_t>(valid));
    from = some;
  }
  const auto wide = hn::PromoteTo(words, hn::LoadU(bytes, from));
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return hn::BitCast(d, wide);
  } else {
    return hn::BitCast(d, hn::PromoteTo(hn::Rebind<std::uint64_t, D>(), wide));
  }
}
template <class V>
HWY_INLINE hn::Mask<hn::DFromV<V>> is_set(V v) {
  const hn::DFromV<V> d;
  const hn::RebindToUnsigned<hn::DFromV<V>> bits;
  return hn::RebindMask(d, hn::Ne(hn::BitCast(bits, v), hn::Zero(bits)));
}
// Selection by one bool per element; Lanes<T>()(from, valid) gives the mask of a vector.
template <bool kFrom, template <class> class Lanes, int kParts>
struct Choose {
  template <bool kStores, class T, int U>
  static HWY_INLINE void run(const Step<T>& step, Spot spot, VecOf<T> (&a)[U]) {
    const auto* const from =
        reinterpret_cast<const std::uint8_t*>(step.operands[1]) + spot.first / (kParts * sizeof(T));
    const Row<T, U> x(step, 0, spot);
    const Result<kStores, T, U> result(step, spot);
    const Lanes<T> lanes;
    PALIMPSEST_EACH(
        const auto mask = is_set(lanes(from + u * (kLanes<T> / kParts), spot.valid / kParts));
        const auto other = x(u); a[u] = result(u, kFrom ? hn::IfThenElse(mask, other, a[u])
                                                        : hn::IfThenElse(mask, a[u], other)));
  }
};

// The functions of a step.
template <class T, class Action, bool kStores>
void block_step(const Step<T>* step, std::uintptr_t first, VecOf<T> v0, VecOf<T> v1, VecOf<T> v2,
                VecOf<T> v3, VecOf<T> v4, VecOf<T> v5, VecOf<T> v6, VecOf<T> v7) {
  VecOf<T> a[kBlock] = {v0, v1, v2, v3, v4, v5, v6, v7};
  Action::template run<kStores, T, kBlock>(*step, {first, kLanes<T>}, a);
  return step[1].block(step + 1, first, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
}
template <class T, class Action, bool kStores>
void single_step(const Step<T>* step, std::uintptr_t first, index_t valid, VecOf<T> v) {
  VecOf<T> a[1] = {v};
  Action::template run<kStores, T, 1>(*step, {first, valid}, a);
  return step[1].single(step + 1, first, valid, a[0]);
}
template <class T>
void end_of_block(const Step<T>*, std::uintptr_t, VecOf<T>, VecOf<T>, VecOf<T>, VecOf<T>, VecOf<T>,
                  VecOf<T>, VecOf<T>, VecOf<T>) {}
template <class T>
void end_of_single(const Step<T>*, std::uintptr_t, index_t, VecOf<T>) {}

// Clears the upper halves of vector registers: compilers do not see that a block uses them, and
// later SSE code would be slow.
HWY_INLINE void leave_registers() {
#if HWY_ARCH_X86 && (HWY_TARGET <= HWY_AVX2)
  _mm256_zeroupper();
#endif
}

template <class T>
struct Functions {
  decltype(Step<T>::block) block = nullptr;
  decltype(Step<T>::single) single = nullptr;
};
// Functions that run a step: alone, and joined with the following store if possible.
template <class T>
struct Handler {
  Functions<T> alone, storing;
};
template <class T, class Action, bool kStores>
constexpr Functions<T> functions() {
  return {block_step<T, Action, kStores>, single_step<T, Action, kStores>};
}
template <class T, class Action>
constexpr Handler<T> handler() {
  return {functions<T, Action, false>(), {}};
}
template <class T, class Action>
constexpr Handler<T> storing_handler() {
  return {functions<T, Action, false>(), functions<T, Action, true>()};
}
template <class T, class Op>
constexpr Handler<T> each() {
  return storing_handler<T, Each<Op>>();
}

// The parts that all machines share.
template <class T, class Set>
constexpr void set_shared_handlers(const Set& set) {
  set(Verb::load, each<T, Load>());
  set(Verb::store, handler<T, Store>());
  set(Verb::stream, handler<T, Stream>());
  set(Verb::ask_to_read, handler<T, Ask<false>>());
  set(Verb::ask_to_write, handler<T, Ask<true>>());
  set(Verb::add, each<T, Sum>());
  set(Verb::subtract, each<T, Difference>());
  set(Verb::subtract_from, each<T, DifferenceFrom>());
  set(Verb::negate, each<T, Negate>());
}

// The steps of a tile: built, then run.
template <class T>
class Steps {
 public:
  explicit Steps(const Handler<T>* handlers) : handlers_(handlers) {}
  // Key of the last step if other verbs may join it, else -1.
  int last_key() const { return n_ == 0 || stores_[n_ - 1] ? -1 : keys_[n_ - 1]; }
  void set_last_key(int key) { keys_[n_ - 1] = static_cast<std::int16_t>(key); }
  HWY_INLINE void add(int key) {
    stills_[n_] = 0;
    stores_[n_] = false;
    keys_[n_++] = static_cast<std::int16_t>(key);
  }
  // Makes the last step store its result, if it can.
  HWY_INLINE bool store_at_once(const std::byte* address) {
    if (n_ == 0 || stores_[n_ - 1]) return false;
    if (handlers_[keys_[n_ - 1]].storing.block == nullptr) return false;
    stores_[n_ - 1] = true;
    set(kResult, address, false);
    return true;
  }
  // Sets operand k of the last step; `still`: one block serves all blocks.
  HWY_INLINE void set(int k, const std::byte* address, bool still) {
    steps_[n_ - 1].operands[k] = reinterpret_cast<std::uintptr_t>(address);
    stills_[n_ - 1] = static_cast<std::uint8_t>((stills_[n_ - 1] & ~(1 << k)) | (int{still} << k));
  }
  // Are operands k and l of the last step the same?
  HWY_INLINE bool is_same(int k, int l) const {
    return steps_[n_ - 1].operands[k] == steps_[n_ - 1].operands[l];
  }

  // Runs for n numbers per operand. Operands of steps from key `first_half` on have n / 2.
  HWY_INLINE void run(index_t n, int first_half) {
    int n_still = 0;
    for (int i = 0; i < n_; ++i) {
      const Handler<T>& handler = handlers_[keys_[i]];
      steps_[i].block = stores_[i] ? handler.storing.block : handler.alone.block;
      steps_[i].single = stores_[i] ? handler.storing.single : handler.alone.single;
      for (int k = 0; stills_[i] >> k != 0; ++k) {
        if ((stills_[i] >> k & 1) == 0) continue;
        const int half = keys_[i] >= first_half ? kHalf : 0;
        still_[n_still++] = static_cast<std::uint16_t>((kOperands * i + k) | half);
      }
    }
    steps_[n_].block = end_of_block<T>;
    steps_[n_].single = end_of_single<T>;
    std::uintptr_t first = 0;
    index_t i = 0;
    for (; i + kBlock * kLanes<T> <= n; i += kBlock * kLanes<T>) {
      steps_[0].block(steps_, first, anything<T>(), anything<T>(), anything<T>(), anything<T>(),
                      anything<T>(), anything<T>(), anything<T>(), anything<T>());
      first += advance(kBlock, n_still);
    }
    for (; i < n; i += kLanes<T>) {
      steps_[0].single(steps_, first, n - i < kLanes<T> ? n - i : kLanes<T>, anything<T>());
      first += advance(1, n_still);
    }
    leave_registers();
  }

 private:
  static constexpr int kMost = 5 * ElementwiseProgram::kMaxRegisters;
  static constexpr int kOperands = 4, kHalf = 0x8000;  // maximum of still operands

  // Advances by `vectors`. Still operands are moved back by as much, so their addresses stay.
  HWY_INLINE std::uintptr_t advance(int vectors, int n_still) {
    const auto bytes = static_cast<std::uintptr_t>(vectors * kLanes<T> * index_t{sizeof(T)});
    for (int i = 0; i < n_still; ++i) {
      const bool half = (still_[i] & kHalf) != 0;
      const int which = still_[i] & (kHalf - 1);
      steps_[which / kOperands].operands[which % kOperands] -= half ? bytes / 2 : bytes;
    }
    return bytes;
  }

  const Handler<T>* handlers_;
  int n_ = 0;
  Step<T> steps_[kMost + 1];
  std::int16_t keys_[kMost];
  std::uint8_t stills_[kMost];  // one bit per operand
  bool stores_[kMost];
  std::uint16_t still_[kOperands * kMost];  // still operands; kHalf: of half steps
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET

#endif  // PALIMPSEST_TILE_STEPS_INL_HPP
