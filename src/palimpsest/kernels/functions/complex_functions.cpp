// SPDX-License-Identifier: Apache-2.0
// Functions of vectors of complex numbers. This file is compiled once per instruction set; the best
// one is chosen when the program runs.
#include <complex>

#include "palimpsest/copy/loop_targets.hpp"
#include "palimpsest/kernels/functions/vector_functions.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/functions/complex_functions.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_LOOPS_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "palimpsest/kernels/functions/vector_loops-inl.hpp"
#include "palimpsest/kernels/functions/vector_trig-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

// Real and imaginary parts.
template <class V>
struct Parts {
  V re, im;
};
template <class V>
using MaskOf = hn::Mask<hn::DFromV<V>>;

template <class F>
HWY_INLINE Parts<hn::Vec<TagFor<F>>> load_parts(const Stored<F>* p) {
  const hn::Rebind<Stored<F>, TagFor<F>> stored;
  hn::Vec<decltype(stored)> re, im;
  hn::LoadInterleaved2(stored, p, re, im);
  if constexpr (std::is_same_v<F, Widened>) {
    const TagFor<F> d;
    return {hn::PromoteTo(d, re), hn::PromoteTo(d, im)};
  } else {
    return {re, im};
  }
}
template <class F>
HWY_INLINE void store_parts(Parts<hn::Vec<TagFor<F>>> v, Stored<F>* p) {
  const hn::Rebind<Stored<F>, TagFor<F>> stored;
  HWY_ALIGN Stored<F> re[HWY_MAX_BYTES / sizeof(double)], im[HWY_MAX_BYTES / sizeof(double)];
  if constexpr (std::is_same_v<F, Widened>) {
    store<F>(v.re, re);
    store<F>(v.im, im);
    hn::StoreInterleaved2(hn::Load(stored, re), hn::Load(stored, im), stored, p);
  } else {
    hn::StoreInterleaved2(v.re, v.im, stored, p);
  }
}

template <class V>
HWY_INLINE MaskOf<V> is_finite(V v) {
  return hn::Lt(hn::Abs(v), infinity<V>());
}
// Replaces lanes that are not `common` (infinities, zeros, NaN) by the results of the C library.
// `function` takes and returns a std::complex<double>.
template <class V, class Function>
HWY_NOINLINE Parts<V> with_limits(Parts<V> x, Parts<V> result, MaskOf<V> common,
                                  Function function) {
  const hn::DFromV<V> d;
  constexpr std::size_t kMost = HWY_MAX_BYTES / sizeof(double);
  HWY_ALIGN double re[kMost], im[kMost], to_re[kMost], to_im[kMost], is_common[kMost];
  hn::Store(x.re, d, re);
  hn::Store(x.im, d, im);
  hn::Store(result.re, d, to_re);
  hn::Store(result.im, d, to_im);
  hn::Store(hn::IfThenElseZero(common, of<V>(1)), d, is_common);
  for (std::size_t k = 0; k < hn::Lanes(d); ++k) {
    if (is_common[k] != 0) continue;
    const std::complex<double> limit = function(std::complex<double>(re[k], im[k]));
    to_re[k] = limit.real();
    to_im[k] = limit.imag();
  }
  return {hn::Load(d, to_re), hn::Load(d, to_im)};
}

// Computes v 2^n, where n may be twice the largest exponent.
template <class V>
HWY_INLINE V scaled_twice(V v, V n) {
  const V half = rounded(hn::Mul(n, of<V>(0.5)));
  return scaled(scaled(v, half), hn::Sub(n, half));
}

struct ComplexExp {
  template <class F, class V>
  static HWY_INLINE Parts<V> call(Parts<V> x) {
    // Beyond these bounds the product with any nonzero sine is infinite or 0.
    const Halvings<V> h = halvings<F>(within(x.re, -1500.0, 1500.0));
    const Angle<V> a = reduce_angle<F>(x.im);
    const SineCosine<V> both = sine_cosine<F>(a);
    const V size = exp_of_rest<F>(h.r);
    const V re = turned<V>(after_a_quarter<V>(a.turns), if_odd(a.turns, both.sine, both.cosine));
    const V im = turned<V>(a.turns, if_odd(a.turns, both.cosine, both.sine));
    // 0 keeps its sign.
    const V turned_im =
        hn::IfThenElse(hn::Eq(x.im, of<V>(0)), x.im, scaled_twice(hn::Mul(size, im), h.n));
    const Parts<V> result{scaled_twice(hn::Mul(size, re), h.n), turned_im};
    const auto common = hn::And(is_finite(x.im), is_finite(x.re));
    if (HWY_LIKELY(hn::AllTrue(hn::DFromV<V>(), common))) return result;
    return with_limits(x, result, common, [](std::complex<double> z) { return std::exp(z); });
  }
};

struct ComplexLog {
  template <class F, class V>
  static HWY_INLINE Parts<V> call(Parts<V> x) {
    const V zero = of<V>(0);
    Pair<V> square;
    V extra = zero;
    if constexpr (std::is_same_v<F, Widened>) {
      square =
          exact_sum(hn::Mul(x.re, x.re), hn::Mul(x.im, x.im));  // products of 24 bits are exact
    } else {
      const Scale<V> scale = scale_for(hn::Max(hn::Abs(x.re), hn::Abs(x.im)));
      const V re = hn::Mul(x.re, scale.factor), im = hn::Mul(x.im, scale.factor);
      const Pair<V> first = exact_product(re, re), second = exact_product(im, im);
      square = exact_sum(first.high, second.high);
      square.low = hn::Add(square.low, hn::Add(first.low, second.low));
      extra = hn::Mul(scale.exponent, of<V>(-2));
    }
    const V log = log_of_sum<F>(square.high, square.low, extra);
    const Parts<V> result{hn::Mul(log, of<V>(0.5)), arctan2_of<F>(x.im, x.re)};
    const auto common = hn::And(is_finite(x.re), is_finite(x.im));
    if (HWY_LIKELY(hn::AllTrue(hn::DFromV<V>(), common))) return result;
    return with_limits(x, result, common, [](std::complex<double> z) { return std::log(z); });
  }
};

// The larger part of the root is w = sqrt((|re| + |z|) / 2), the other im / (2 w).
struct ComplexSqrt {
  template <class F, class V>
  static HWY_INLINE Parts<V> call(Parts<V> x) {
    const V half = of<V>(0.5), zero = of<V>(0);
    V re = hn::Abs(x.re), im = x.im,
      back = of<V>(1);  // re, im: scaled; back: undoes the scaling
    if constexpr (!std::is_same_v<F, Widened>) {
      const Scale<V> scale = scale_for(hn::Max(re, hn::Abs(im)));
      re = hn::Mul(re, scale.factor);
      im = hn::Mul(im, scale.factor);
      back = power_of_two(hn::Mul(scale.exponent, of<V>(-0.5)));
    }
    const V size = hn::Sqrt(hn::Add(hn::Mul(re, re), hn::Mul(im, im)));
    const V w = hn::Sqrt(hn::Mul(hn::Add(re, size), half));
    // Takes the imaginary part unscaled: scaling down could lose digits.
    const V larger = hn::Mul(w, back), other = hn::Div(x.im, hn::Add(larger, larger));
    const auto is_left = hn::Lt(x.re, zero);
    const Parts<V> result{hn::IfThenElse(is_left, hn::Abs(other), larger),
                          hn::IfThenElse(is_left, hn::CopySign(larger, x.im), other)};
    const auto is_zero = hn::And(hn::Eq(x.re, zero), hn::Eq(x.im, zero));
    const auto common = hn::AndNot(is_zero, hn::And(is_finite(x.re), is_finite(x.im)));
    if (HWY_LIKELY(hn::AllTrue(hn::DFromV<V>(), common))) return result;
    return with_limits(x, result, common, [](std::complex<double> z) { return std::sqrt(z); });
  }
};

struct ComplexAbs {
  template <class F, class V>
  static HWY_INLINE V call(Parts<V> x) {
    return hypot_of<F>(x.re, x.im);
  }
};

struct ComplexAngle {
  template <class F, class V>
  static HWY_INLINE V call(Parts<V> x) {
    return arctan2_of<F>(x.im, x.re);
  }
};

template <class F, class Op>
void complex_loop(const std::byte* const* sources, std::byte* out, index_t n) {
  using T = Stored<F>;
  using V = hn::Vec<TagFor<F>>;
  constexpr bool kToReal = requires(Parts<V> v, V r) { r = Op::template call<F>(v); };
  constexpr index_t kStep = kToReal ? 1 : 2;
  const auto* x = reinterpret_cast<const T*>(sources[0]);
  auto* r = reinterpret_cast<T*>(out);
  const auto apply = [](const T* from, T* to) HWY_ATTR {
    if constexpr (kToReal) {
      store<F>(Op::template call<F>(load_parts<F>(from)), to);
    } else {
      store_parts<F>(Op::template call<F>(load_parts<F>(from)), to);
    }
  };
  const auto lanes = static_cast<index_t>(hn::Lanes(TagFor<F>()));
  index_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    ask_to_read(x + 2 * i);
    ask_to_write(r + kStep * i);
    apply(x + 2 * i, r + kStep * i);
  }
  if (i == n) return;
  T last[2 * HWY_MAX_BYTES / sizeof(T)];
  std::fill_n(last, 2 * lanes, T{0.5});
  std::copy_n(x + 2 * i, 2 * (n - i), last);
  apply(last, last);
  std::copy_n(last, kStep * (n - i), r + kStep * i);
}

template <class F>
ScalarKernel with_complex_result(ScalarOp op) {
  switch (op) {
    case ScalarOp::exp:
      return complex_loop<F, ComplexExp>;
    case ScalarOp::log:
      return complex_loop<F, ComplexLog>;
    case ScalarOp::sqrt:
      return complex_loop<F, ComplexSqrt>;
    default:
      return nullptr;
  }
}
template <class F>
ScalarKernel with_real_result(ScalarOp op) {
  switch (op) {
    case ScalarOp::abs:
      return complex_loop<F, ComplexAbs>;
    case ScalarOp::angle:
      return complex_loop<F, ComplexAngle>;
    default:
      return nullptr;
  }
}

}  // namespace

ScalarKernel complex_functions(ScalarOp op, DType working) {
  if (working == DType::complex64) {
    const ScalarKernel kernel = with_real_result<Single>(op);
    return kernel != nullptr ? kernel : with_complex_result<Widened>(op);
  }
  if (working == DType::complex128) {
    const ScalarKernel kernel = with_real_result<Double>(op);
    return kernel != nullptr ? kernel : with_complex_result<Double>(op);
  }
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace palimpsest {

HWY_EXPORT(complex_functions);

ScalarKernel complex_vector_kernel(ScalarOp op, DType working) {
  return HWY_DYNAMIC_DISPATCH(complex_functions)(op, working);
}

}  // namespace palimpsest
#endif
