// SPDX-License-Identifier: Apache-2.0
// Transposes squares of 4 x 4 complex numbers in registers, so that four elements are read and
// written at a time. Compiled once per instruction set.
#include "palimpsest/kernels/fft/panel_exchange.hpp"

#include <algorithm>
#include <cstdlib>

#include "palimpsest/copy/loop_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/fft/panel_exchange.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_LOOPS_FOR
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

#if HWY_MAX_BYTES >= 32

namespace hn = hwy::HWY_NAMESPACE;

using Number = std::complex<float>;
using Floats = hn::FixedTag<float, 8>;
using Pairs = hn::FixedTag<double, 4>;  // a complex number as one lane
using Row = hn::Vec<Floats>;

constexpr index_t kSide = 4, kLine = 64, kPage = 4096;
constexpr index_t kAhead = 16;  // prefetch distance in rows

HWY_INLINE Row load(const Number* p) {
  return hn::LoadU(Floats(), reinterpret_cast<const float*>(p));
}
HWY_INLINE void store(Row v, Number* p) { hn::StoreU(v, Floats(), reinterpret_cast<float*>(p)); }

// Transposes the square.
HWY_INLINE void exchange(Row (&r)[kSide]) {
  const Pairs d;
  const Floats f;
  const auto a = hn::BitCast(d, r[0]), b = hn::BitCast(d, r[1]), c = hn::BitCast(d, r[2]),
             e = hn::BitCast(d, r[3]);
  const auto ab = hn::InterleaveLower(d, a, b), ab_up = hn::InterleaveUpper(d, a, b);
  const auto ce = hn::InterleaveLower(d, c, e), ce_up = hn::InterleaveUpper(d, c, e);
  r[0] = hn::BitCast(f, hn::ConcatLowerLower(d, ce, ab));
  r[1] = hn::BitCast(f, hn::ConcatLowerLower(d, ce_up, ab_up));
  r[2] = hn::BitCast(f, hn::ConcatUpperUpper(d, ce, ab));
  r[3] = hn::BitCast(f, hn::ConcatUpperUpper(d, ce_up, ab_up));
}

// Factors of the elements of a row; all have the same index j in their lines.
struct None {
  explicit None(const PanelExchange&) {}
  HWY_INLINE Row operator()(Row v, index_t) const { return v; }
  HWY_INLINE Number operator()(Number v, index_t) const { return v; }
};
struct Real {
  explicit Real(const PanelExchange& p) : factors(p.real) {}
  HWY_INLINE Row operator()(Row v, index_t j) const {
    return hn::Mul(v, hn::Set(Floats(), factors[j]));
  }
  HWY_INLINE Number operator()(Number v, index_t j) const {
    return {v.real() * factors[j], v.imag() * factors[j]};
  }
  const float* factors;
};
struct Complex {
  explicit Complex(const PanelExchange& p) : factors(p.complex) {}
  HWY_INLINE Row operator()(Row v, index_t j) const {
    const Floats d;
    const Row by_re = hn::Mul(v, hn::Set(d, factors[j].real()));
    const Row by_im = hn::Mul(hn::Reverse2(d, v), hn::Set(d, factors[j].imag()));
    return hn::OddEven(hn::Add(by_re, by_im), hn::Sub(by_re, by_im));
  }
  HWY_INLINE Number operator()(Number v, index_t j) const {
    const Number f = factors[j];
    return {v.real() * f.real() - v.imag() * f.imag(), v.real() * f.imag() + v.imag() * f.real()};
  }
  const Number* factors;
};

// Prefetches into the second level of cache: rows a power of two apart would evict each other from
// the first.
HWY_INLINE void ask_for(const Number* row, index_t lines) {
  for (index_t b = 0; b < lines; b += kLine / index_t{sizeof(Number)}) {
    __builtin_prefetch(row + b, 0, 2);
  }
}

// Calls square(j, c) for squares that cover n elements of all lines, and element(j, c) where a
// square does not fit; ask(j) is called some rows before row j. The last squares may overlap
// earlier ones: the elements that are moved twice keep their values.
template <class Square, class Element, class Ask>
HWY_INLINE void cover(const PanelExchange& p, const Square& square, const Element& element,
                      const Ask& ask) {
  if (p.n < kSide || p.lines < kSide) {
    for (index_t j = 0; j < p.n; ++j) {
      for (index_t c = 0; c < p.lines; ++c) element(j, c);
    }
    return;
  }
  for (index_t j = 0; j < p.n; j += kSide) {
    const index_t end = std::min(j + kAhead + kSide, p.n);
    for (index_t k = j + kAhead; k < end; ++k) ask(k);
    const index_t row = std::min(j, p.n - kSide);
    index_t c = 0;
    for (; c + kSide <= p.lines; c += kSide) square(row, c);
    if (c < p.lines) square(row, p.lines - kSide);
  }
}

bool is_far(index_t step) { return std::abs(step) * index_t{sizeof(Number)} >= kPage / 2; }

template <class Factors>
void gather(const PanelExchange& p) {
  const Factors times(p);
  const bool far = is_far(p.from_step);
  cover(
      p,
      [&](index_t j, index_t c) {
        Row r[kSide];
        for (index_t k = 0; k < kSide; ++k) {
          r[k] = times(load(p.from + (j + k) * p.from_step + c), j + k);
        }
        exchange(r);
        for (index_t k = 0; k < kSide; ++k) store(r[k], p.to + (c + k) * p.to_step + j);
      },
      [&](index_t j, index_t c) {
        p.to[c * p.to_step + j] = times(p.from[j * p.from_step + c], j);
      },
      [&](index_t j) {
        if (far) ask_for(p.from + j * p.from_step, p.lines);
      });
}

template <class Factors>
void scatter(const PanelExchange& p) {
  const Factors times(p);
  const bool far = is_far(p.to_step);
  cover(
      p,
      [&](index_t j, index_t c) {
        Row r[kSide];
        for (index_t k = 0; k < kSide; ++k) r[k] = load(p.from + (c + k) * p.from_step + j);
        exchange(r);
        for (index_t k = 0; k < kSide; ++k) {
          store(times(r[k], j + k), p.to + (j + k) * p.to_step + c);
        }
      },
      [&](index_t j, index_t c) {
        p.to[j * p.to_step + c] = times(p.from[c * p.from_step + j], j);
      },
      [&](index_t j) {
        if (far) ask_for(p.to + j * p.to_step, p.lines);
      });
}

void gather_any(const PanelExchange& p) {
  if (p.real != nullptr) {
    gather<Real>(p);
  } else if (p.complex != nullptr) {
    gather<Complex>(p);
  } else {
    gather<None>(p);
  }
}

void scatter_any(const PanelExchange& p) {
  if (p.real != nullptr) {
    scatter<Real>(p);
  } else if (p.complex != nullptr) {
    scatter<Complex>(p);
  } else {
    scatter<None>(p);
  }
}

#endif  // HWY_MAX_BYTES >= 32

}  // namespace

PanelExchanges exchanges() {
#if HWY_MAX_BYTES < 32  // a row of four numbers has 32 bytes
  return {};
#else
  return {gather_any, scatter_any};
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace palimpsest {

HWY_EXPORT(exchanges);

PanelExchanges panel_exchanges() { return HWY_DYNAMIC_DISPATCH(exchanges)(); }

}  // namespace palimpsest
#endif
