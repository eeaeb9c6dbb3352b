// SPDX-License-Identifier: Apache-2.0
// Compiled for the processor of this machine.
#include "hand_loops.hpp"

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

namespace palimpsest::bench {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr std::size_t kN = hn::MaxLanes(D());

// The number of elements before the first whole vector at p.
template <class T>
std::size_t head(const T* p, std::size_t n) {
  std::size_t i = 0;
  while (i < n && reinterpret_cast<std::uintptr_t>(p + i) % (kN * sizeof(float)) != 0) ++i;
  return i;
}

struct Pair {
  V re, im;
};
Pair load(const c64* x) {
  const D d;
  const auto* p = reinterpret_cast<const float*>(x);
  const V low = hn::LoadU(d, p), high = hn::LoadU(d, p + kN);
  return {hn::OddEven(hn::Reverse2(d, high), low), hn::OddEven(high, hn::Reverse2(d, low))};
}
template <bool streamed>
void store(Pair a, c64* z) {
  const D d;
  auto* p = reinterpret_cast<float*>(z);
  const V low = hn::OddEven(hn::Reverse2(d, a.im), a.re);
  const V high = hn::OddEven(a.im, hn::Reverse2(d, a.re));
  if constexpr (streamed) {
    hn::Stream(low, d, p);
    hn::Stream(high, d, p + kN);
  } else {
    hn::StoreU(low, d, p);
    hn::StoreU(high, d, p + kN);
  }
}

template <bool streamed>
void put(V v, float* z) {
  if constexpr (streamed) {
    hn::Stream(v, D(), z);
  } else {
    hn::StoreU(v, D(), z);
  }
}

template <bool streamed, class F>
void loop(const F& f, float* z, std::size_t n) {
  std::size_t i = head(z, n);
  f.ends(0, i);
  for (; i + kN <= n; i += kN) put<streamed>(f(i), z + i);
  f.ends(i, n);
  if (streamed) hwy::FlushStream();
}

struct ProductSum {
  const float *a, *b, *c;
  float* z;
  V operator()(std::size_t i) const {
    const D d;
    return hn::Add(hn::Mul(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), hn::LoadU(d, c + i));
  }
  void ends(std::size_t i, std::size_t n) const {
    for (; i < n; ++i) z[i] = a[i] * b[i] + c[i];
  }
};

struct Chain {
  const float *a, *b, *c, *d;
  float* z;
  V operator()(std::size_t i) const {
    const D t;
    const V x = hn::LoadU(t, a + i), y = hn::LoadU(t, b + i), u = hn::LoadU(t, c + i),
            v = hn::LoadU(t, d + i);
    V r = hn::Add(hn::Mul(x, y), u);
    r = hn::Sub(hn::Mul(r, v), x);
    r = hn::Add(hn::Mul(r, y), v);
    r = hn::Sub(hn::Mul(r, u), y);
    return hn::Add(hn::Mul(r, x), u);
  }
  void ends(std::size_t i, std::size_t n) const {
    for (; i < n; ++i) {
      z[i] = ((((a[i] * b[i] + c[i]) * d[i] - a[i]) * b[i] + d[i]) * c[i] - b[i]) * a[i] + c[i];
    }
  }
};

template <bool streamed>
void conj_loop(const c64* a, const c64* b, c64 s, const c64* c, c64* z, std::size_t n) {
  const D d;
  const V sr = hn::Set(d, s.real()), si = hn::Set(d, s.imag());
  const auto one = [&](std::size_t i) {
    const c64 p(a[i].real() * b[i].real() + a[i].imag() * b[i].imag(),
                a[i].imag() * b[i].real() - a[i].real() * b[i].imag());
    z[i] = p + c64(s.real() * c[i].real() - s.imag() * c[i].imag(),
                   s.real() * c[i].imag() + s.imag() * c[i].real());
  };
  std::size_t i = 0;
  for (const std::size_t end = streamed ? head(z, n) : 0; i < end; ++i) one(i);
  for (; i + kN <= n; i += kN) {
    const Pair x = load(a + i), y = load(b + i), w = load(c + i);
    const V re = hn::Add(hn::Mul(x.re, y.re), hn::Mul(x.im, y.im));
    const V im = hn::Sub(hn::Mul(x.im, y.re), hn::Mul(x.re, y.im));
    store<streamed>({hn::Add(re, hn::Sub(hn::Mul(sr, w.re), hn::Mul(si, w.im))),
                     hn::Add(im, hn::Add(hn::Mul(sr, w.im), hn::Mul(si, w.re)))},
                    z + i);
  }
  for (; i < n; ++i) one(i);
  if (streamed) hwy::FlushStream();
}

}  // namespace

float read_all(const float* a, std::size_t n) {
  const D d;
  V sums[8];
  for (V& s : sums) s = hn::Zero(d);
  std::size_t i = 0;
  for (; i + 8 * kN <= n; i += 8 * kN) {
    for (std::size_t k = 0; k < 8; ++k) {
      sums[k] = hn::Add(sums[k], hn::LoadU(d, a + i + k * kN));
    }
  }
  V total = hn::Zero(d);
  for (const V s : sums) total = hn::Add(total, s);
  float rest = hn::GetLane(hn::SumOfLanes(d, total));
  for (; i < n; ++i) rest += a[i];
  return rest;
}

float read_rows(const float* a, std::size_t rows, std::size_t columns) {
  constexpr std::size_t kRows = 8, kLine = 16, kAhead = 256;
  const D d;
  V sums[kRows];
  for (V& s : sums) s = hn::Zero(d);
  for (std::size_t r = 0; r + kRows <= rows; r += kRows) {
    for (std::size_t j = 0; j + kLine <= columns; j += kLine) {
      for (std::size_t k = 0; k < kRows; ++k) {
        const float* x = a + (r + k) * columns + j;
        __builtin_prefetch(x + kAhead, 0, 2);
        for (std::size_t i = 0; i < kLine; i += kN) sums[k] = hn::Add(sums[k], hn::LoadU(d, x + i));
      }
    }
  }
  V total = hn::Zero(d);
  for (const V s : sums) total = hn::Add(total, s);
  return hn::GetLane(hn::SumOfLanes(d, total));
}

void copy_columns(const float* a, float* z, std::size_t rows, std::size_t columns) {
  constexpr std::size_t kLine = 16;
  for (std::size_t j = 0; j + kLine <= columns; j += kLine) {
    for (std::size_t i = 0; i < rows; ++i) {
      std::memcpy(z + i * columns + j, a + i * columns + j, kLine * sizeof(float));
    }
  }
}

void copy_all(const float* a, float* z, std::size_t n) { std::memcpy(z, a, n * sizeof(float)); }

void copy_streamed(const float* a, float* z, std::size_t n) {
  const D d;
  std::size_t i = head(z, n);
  std::memcpy(z, a, i * sizeof(float));
  for (; i + 4 * kN <= n; i += 4 * kN) {
    for (std::size_t k = 0; k < 4; ++k) {
      hn::Stream(hn::LoadU(d, a + i + k * kN), d, z + i + k * kN);
    }
  }
  std::memcpy(z + i, a + i, (n - i) * sizeof(float));
  hwy::FlushStream();
}

void triad(const float* a, const float* b, float* z, std::size_t n) {
  const D d;
  const V s = hn::Set(d, 3);
  std::size_t i = 0;
  for (; i + kN <= n; i += kN) {
    hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::Mul(s, hn::LoadU(d, b + i))), d, z + i);
  }
  for (; i < n; ++i) z[i] = a[i] + 3 * b[i];
}

void product_sum(const float* a, const float* b, const float* c, float* z, std::size_t n,
                 bool streamed) {
  const ProductSum f{a, b, c, z};
  streamed ? loop<true>(f, z, n) : loop<false>(f, z, n);
}

void conj_product_sum(const c64* a, const c64* b, c64 s, const c64* c, c64* z, std::size_t n,
                      bool streamed) {
  streamed ? conj_loop<true>(a, b, s, c, z, n) : conj_loop<false>(a, b, s, c, z, n);
}

void chain(const float* a, const float* b, const float* c, const float* d, float* z, std::size_t n,
           bool streamed) {
  const Chain f{a, b, c, d, z};
  streamed ? loop<true>(f, z, n) : loop<false>(f, z, n);
}

}  // namespace palimpsest::bench
