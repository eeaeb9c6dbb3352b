// SPDX-License-Identifier: Apache-2.0
// Plain loops, compiled once per instruction set and vectorized by the compiler. The order of terms
// is fixed, so all instruction sets give the same bits.
#include "palimpsest/kernels/reduce/reduce_leaves.hpp"

#include <array>
#include <cassert>
#include <complex>

#include "palimpsest/copy/loop_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/reduce/reduce_leaves.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_LOOPS_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

// Integers add and multiply modulo 2^n in an unsigned type that is not promoted to int.
template <class T>
using Wide =
    std::conditional_t<std::is_integral_v<T>,
                       std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>, T>;

template <class T>
T plain_product(T a, T b) {
  return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b));
}
// In a function of its own: compilers contract two products, their difference and their sum into
// one instruction.
template <class T>
[[gnu::noinline]] T product_difference(T a, T b, T c, T d) {
  return a * b - c * d;
}
template <class T>
std::complex<T> plain_product(std::complex<T> a, std::complex<T> b) {
  return {product_difference(a.real(), b.real(), a.imag(), b.imag()),
          a.real() * b.imag() + a.imag() * b.real()};
}

struct Sum {
  template <class T>
  static T call(T a, T b) {
    return static_cast<T>(static_cast<Wide<T>>(a) + static_cast<Wide<T>>(b));
  }
};
struct Prod {
  template <class T>
  static T call(T a, T b) {
    return plain_product(a, b);
  }
};
struct Max {
  template <class T>
  static T call(T a, T b) {
    return a > b || a != a ? a : b;
  }
};
struct Min {
  template <class T>
  static T call(T a, T b) {
    return a < b || a != a ? a : b;
  }
};
// Bytes: any but 0 is true.
struct Any {
  static std::uint8_t call(std::uint8_t a, std::uint8_t b) { return (a | b) != 0; }
};
struct All {
  static std::uint8_t call(std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>((a != 0) & (b != 0));
  }
};

// The term of an element.
template <class T>
struct Element {
  using Load = T;
  using Sum = T;
  static constexpr int kOperands = 1;
  static T at(const std::byte* const* x, index_t i) { return reinterpret_cast<const T*>(x[0])[i]; }
};
struct Truth {
  using Load = std::uint8_t;
  using Sum = std::uint8_t;
  static constexpr int kOperands = 1;
  static std::uint8_t at(const std::byte* const* x, index_t i) { return x[0][i] != std::byte{0}; }
};

enum class Conj { none, first, both };

template <class T, Conj conj>
struct Product {
  using Load = T;
  using Sum = T;
  static constexpr int kOperands = 2;
  static T at(const std::byte* const* x, index_t i) {
    return of(reinterpret_cast<const T*>(x[0])[i], reinterpret_cast<const T*>(x[1])[i]);
  }

 private:
  template <class R>
  static R of(R a, R b) {
    return plain_product(a, b);
  }
  template <class R>
  static std::complex<R> of(std::complex<R> a, std::complex<R> b) {
    if constexpr (conj == Conj::first) {
      return {a.real() * b.real() + a.imag() * b.imag(), a.real() * b.imag() - a.imag() * b.real()};
    } else {
      const std::complex<R> p = plain_product(a, b);
      return conj == Conj::both ? std::conj(p) : p;
    }
  }
};

template <class T>
struct Norm2 {
  using Load = T;
  using Sum = T;
  static constexpr int kOperands = 1;
  static T at(const std::byte* const* x, index_t i) {
    const T value = reinterpret_cast<const T*>(x[0])[i];
    return plain_product(value, value);
  }
};
template <class T>
struct Norm2<std::complex<T>> {
  using Load = std::complex<T>;
  using Sum = T;
  static constexpr int kOperands = 1;
  static T at(const std::byte* const* x, index_t i) {
    const auto value = reinterpret_cast<const std::complex<T>*>(x[0])[i];
    return value.real() * value.real() + value.imag() * value.imag();
  }
};

// Independent accumulators fill the vector registers and shorten the chains of roundings.
template <class F, class Combine>
void horizontal(const std::byte* const* x, index_t n, std::byte* result) {
  using S = typename F::Sum;
  constexpr index_t kLanes = 16;
  S total;
  if (n < kLanes) {
    total = F::at(x, 0);
    for (index_t i = 1; i < n; ++i) total = Combine::call(total, F::at(x, i));
  } else {
    std::array<S, kLanes> lanes;
    for (index_t k = 0; k < kLanes; ++k) lanes[static_cast<std::size_t>(k)] = F::at(x, k);
    index_t i = kLanes;
    for (; i + kLanes <= n; i += kLanes) {
      for (index_t k = 0; k < kLanes; ++k) {
        S& lane = lanes[static_cast<std::size_t>(k)];
        lane = Combine::call(lane, F::at(x, i + k));
      }
    }
    for (index_t k = 0; i + k < n; ++k) {
      S& lane = lanes[static_cast<std::size_t>(k)];
      lane = Combine::call(lane, F::at(x, i + k));
    }
    for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
      for (std::size_t k = 0; k < half; ++k) lanes[k] = Combine::call(lanes[k], lanes[k + half]);
    }
    total = lanes[0];
  }
  *reinterpret_cast<S*>(result) = total;
}

// Adds kRows rows in order, in one pass over the accumulators.
template <int kRows, class F, class Combine>
void rows_at_once(const std::byte* const* x, std::byte* accumulators, index_t n, bool first) {
  using S = typename F::Sum;
  auto* sums = reinterpret_cast<S*>(accumulators);
  const auto rest = [&](S s, index_t i) {
    _Pragma("GCC unroll 8") for (int row = 1; row < kRows; ++row) {
      s = Combine::call(s, F::at(x + row * F::kOperands, i));
    }
    return s;
  };
  if (first) {
#pragma GCC ivdep
    for (index_t i = 0; i < n; ++i) sums[i] = rest(F::at(x, i), i);
  } else {
#pragma GCC ivdep
    for (index_t i = 0; i < n; ++i) sums[i] = rest(Combine::call(sums[i], F::at(x, i)), i);
  }
}

template <class F, class Combine>
void vertical(const std::byte* const* x, int rows, std::byte* accumulators, index_t n, Rows how) {
  bool first = how != Rows::onto;
  for (; rows >= kRowsAtOnce; rows -= kRowsAtOnce, x += kRowsAtOnce * F::kOperands, first = false) {
    rows_at_once<kRowsAtOnce, F, Combine>(x, accumulators, n, first);
  }
  for (; rows > 0; --rows, x += F::kOperands, first = false) {
    rows_at_once<1, F, Combine>(x, accumulators, n, first);
  }
}

template <class S, class Combine>
void combine(const std::byte* x, std::byte* accumulators, index_t n) {
  const auto* from = reinterpret_cast<const S*>(x);
  auto* sums = reinterpret_cast<S*>(accumulators);
#pragma GCC ivdep
  for (index_t i = 0; i < n; ++i) sums[i] = Combine::call(sums[i], from[i]);
}

template <class F, class Combine>
ReduceLeaf leaf_of(DType load, DType accumulate) {
  return {F::kOperands,
          load,
          accumulate,
          horizontal<F, Combine>,
          vertical<F, Combine>,
          nullptr,
          nullptr,
          combine<typename F::Sum, Combine>,
          nullptr};
}

template <class T>
ReduceLeaf number_leaf(ReduceOp op, DType dtype) {
  // Sums and products wrap, whatever the sign.
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    if (op == ReduceOp::sum) return leaf_of<Element<U>, Sum>(dtype, dtype);
    if (op == ReduceOp::prod) return leaf_of<Element<U>, Prod>(dtype, dtype);
  } else {
    if (op == ReduceOp::sum) return leaf_of<Element<T>, Sum>(dtype, dtype);
    if (op == ReduceOp::prod) return leaf_of<Element<T>, Prod>(dtype, dtype);
  }
  if constexpr (std::is_arithmetic_v<T>) {
    if (op == ReduceOp::max) return leaf_of<Element<T>, Max>(dtype, dtype);
    if (op == ReduceOp::min) return leaf_of<Element<T>, Min>(dtype, dtype);
  }
  assert(false && "no such reduction");
  return {};
}

template <class T>
ReduceLeaf complex_product_leaf(DType dtype, bool conj_a, bool conj_b) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  using C = std::complex<T>;
  if (conj_a && conj_b) return leaf_of<Product<C, Conj::both>, Sum>(dtype, dtype);
  assert(!conj_b && "exchange the operands");
  if (conj_a) return leaf_of<Product<C, Conj::first>, Sum>(dtype, dtype);
  return leaf_of<Product<C, Conj::none>, Sum>(dtype, dtype);
#else
  const ComplexProductLoops loops = complex_product_loops(dtype, conj_a, conj_b);
  ReduceLeaf leaf = leaf_of<Element<std::complex<T>>, Sum>(dtype, dtype);
  leaf.n_operands = 2;
  leaf.horizontal = loops.horizontal;
  leaf.vertical = loops.vertical;
  return leaf;
#endif
}

}  // namespace

ReduceLeaf reduce_leaf(ReduceOp op, DType dtype) {
  if (is_bool(dtype)) {
    const bool any = op == ReduceOp::sum || op == ReduceOp::max || op == ReduceOp::any;
    return any ? leaf_of<Truth, Any>(dtype, dtype) : leaf_of<Truth, All>(dtype, dtype);
  }
  return visit_dtype(dtype, [&](auto tag) -> ReduceLeaf {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) {
      return {};
    } else {
      return number_leaf<T>(op, dtype);
    }
  });
}

ReduceLeaf product_leaf(DType dtype, bool conj_a, bool conj_b) {
  switch (dtype) {
    case DType::float32:
      return leaf_of<Product<float, Conj::none>, Sum>(dtype, dtype);
    case DType::float64:
      return leaf_of<Product<double, Conj::none>, Sum>(dtype, dtype);
    case DType::complex64:
      return complex_product_leaf<float>(dtype, conj_a, conj_b);
    case DType::complex128:
      return complex_product_leaf<double>(dtype, conj_a, conj_b);
    default:
      assert(dtype == DType::int64);
      return leaf_of<Product<std::uint64_t, Conj::none>, Sum>(dtype, dtype);
  }
}

ReduceLeaf norm2_leaf(DType load) {
  switch (load) {
    case DType::float32:
      return leaf_of<Norm2<float>, Sum>(load, load);
    case DType::float64:
      return leaf_of<Norm2<double>, Sum>(load, load);
    case DType::complex64:
      return leaf_of<Norm2<std::complex<float>>, Sum>(load, DType::float32);
    case DType::complex128:
      return leaf_of<Norm2<std::complex<double>>, Sum>(load, DType::float64);
    default:
      assert(load == DType::int64);
      return leaf_of<Norm2<std::uint64_t>, Sum>(load, load);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace palimpsest {

HWY_EXPORT(reduce_leaf);
HWY_EXPORT(product_leaf);
HWY_EXPORT(norm2_leaf);

ReduceLeaf reduce_leaf(ReduceOp op, DType dtype) {
  ReduceLeaf leaf = HWY_DYNAMIC_DISPATCH(reduce_leaf)(op, dtype);
  if (op == ReduceOp::max || op == ReduceOp::min) {
    const ExtremumLoops loops = extremum_loops(dtype, op == ReduceOp::max);
    if (loops.horizontal != nullptr) leaf.horizontal = loops.horizontal;
    leaf.runs = loops.runs;
  }
  if (op != ReduceOp::sum) return leaf;
  leaf.runs = runs_of_sum(dtype);
  if (const RowsOfSum rows = rows_of_sum(dtype)) leaf.vertical = rows;
  return leaf;
}
ReduceLeaf product_leaf(DType dtype, bool conj_a, bool conj_b) {
  ReduceLeaf leaf = HWY_DYNAMIC_DISPATCH(product_leaf)(dtype, conj_a, conj_b);
  leaf.runs = runs_of_product(dtype, conj_a, conj_b);
  if (!(conj_a && conj_b)) {
    leaf.number_first = rows_of_product(dtype, conj_a, true);
    leaf.number_second = rows_of_product(dtype, conj_a, false);
  }
  return leaf;
}
ReduceLeaf norm2_leaf(DType load) {
  ReduceLeaf leaf = HWY_DYNAMIC_DISPATCH(norm2_leaf)(load);
  leaf.runs = runs_of_norm2(load);
  return leaf;
}

}  // namespace palimpsest
#endif
