// SPDX-License-Identifier: Apache-2.0
// Internal: loops over arrays with functions of vectors. Included once per instruction set.
#if defined(PALIMPSEST_VECTOR_LOOPS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef PALIMPSEST_VECTOR_LOOPS_INL_HPP
#undef PALIMPSEST_VECTOR_LOOPS_INL_HPP
#else
#define PALIMPSEST_VECTOR_LOOPS_INL_HPP
#endif

#include <algorithm>

#include "palimpsest/base/dtype.hpp"
#include "palimpsest/kernels/elementwise/scalar_kernels.hpp"
#include "palimpsest/kernels/elementwise/tile_code.hpp"
#include "palimpsest/kernels/functions/vector_math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

// Loads and stores numbers of a format as arrays hold them.
template <class F>
using Stored = std::conditional_t<std::is_same_v<F, Double>, double, float>;
template <class F>
using TagFor = hn::ScalableTag<typename F::T>;

template <class F>
HWY_INLINE hn::Vec<TagFor<F>> load(const Stored<F>* p) {
  const TagFor<F> d;
  if constexpr (std::is_same_v<F, Widened>) {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, TagFor<F>>(), p));
  } else {
    return hn::LoadU(d, p);
  }
}
template <class F>
HWY_INLINE void store(hn::Vec<TagFor<F>> v, Stored<F>* p) {
  const TagFor<F> d;
  if constexpr (std::is_same_v<F, Widened>) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
    // DemoteTo of these targets turns finite numbers into infinities.
    HWY_ALIGN double lanes[HWY_MAX_BYTES / sizeof(double)];
    hn::Store(v, d, lanes);
    for (std::size_t k = 0; k < hn::Lanes(d); ++k) p[k] = static_cast<float>(lanes[k]);
#else
    const hn::Rebind<float, TagFor<F>> half;
    hn::StoreU(hn::DemoteTo(half, v), half, p);
#endif
  } else {
    hn::StoreU(v, d, p);
  }
}

// Ask for the memory that comes some vectors later; kAskAhead says why.
HWY_INLINE void ask_to_read(const void* p) {
  __builtin_prefetch(static_cast<const std::byte*>(p) + kAskAhead);
}
HWY_INLINE void ask_to_write(void* p) {
  __builtin_prefetch(static_cast<std::byte*>(p) + kAskAhead, 1);
}

// Loop of a function of one or two numbers. Op has static V call<Format>(V) or (V, V).
template <class F, class Op>
void function_loop(const std::byte* const* sources, std::byte* out, index_t n) {
  using T = Stored<F>;
  constexpr bool kBinary = requires(hn::Vec<TagFor<F>> v) { Op::template call<F>(v, v); };
  const auto* a = reinterpret_cast<const T*>(sources[0]);
  const auto* b = reinterpret_cast<const T*>(kBinary ? sources[1] : sources[0]);
  auto* r = reinterpret_cast<T*>(out);
  const auto apply = [](const T* x, [[maybe_unused]] const T* y, T* result) HWY_ATTR {
    if constexpr (kBinary) {
      store<F>(Op::template call<F>(load<F>(x), load<F>(y)), result);
    } else {
      store<F>(Op::template call<F>(load<F>(x)), result);
    }
  };
  const auto lanes = static_cast<index_t>(hn::Lanes(TagFor<F>()));
  index_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    ask_to_read(a + i);
    if constexpr (kBinary) ask_to_read(b + i);
    ask_to_write(r + i);
    apply(a + i, b + i, r + i);
  }
  if (i == n) return;
  // Fills the last vector with a value for which no lane takes a slow path.
  T x[HWY_MAX_BYTES / sizeof(T)], y[HWY_MAX_BYTES / sizeof(T)];
  std::fill_n(x, lanes, T{0.5});
  std::fill_n(y, lanes, T{0.5});
  std::copy_n(a + i, n - i, x);
  std::copy_n(b + i, n - i, y);
  apply(x, y, x);
  std::copy_n(x, n - i, r + i);
}

// Returns the loop over float32, in the format `Singles`, or over float64; null for other dtypes.
template <class Singles, class Op>
ScalarKernel kernel_for(DType working) {
  if (working == DType::float32) return function_loop<Singles, Op>;
  if (working == DType::float64) return function_loop<Double, Op>;
  return nullptr;
}
#define PALIMPSEST_KERNEL(op, Singles, Op) \
  case ScalarOp::op:                       \
    return kernel_for<Singles, Op>(working)

#define PALIMPSEST_VECTOR_FUNCTION(Name, function) \
  struct Name {                                    \
    template <class F, class V>                    \
    static HWY_INLINE V call(V x) {                \
      return function<F>(x);                       \
    }                                              \
  }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#endif  // PALIMPSEST_VECTOR_LOOPS_INL_HPP
