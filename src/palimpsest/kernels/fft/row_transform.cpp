// SPDX-License-Identifier: Apache-2.0
// The sums are compiled once per instruction set, SSE4 included: without vectors chirps would be
// faster.
#include "palimpsest/kernels/fft/row_transform.hpp"

#include <algorithm>

#include "palimpsest/copy/loop_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/fft/row_transform.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_TILES_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The rows of a group. Functions work on kWide vectors side by side, from number `at` on.
template <class T>
struct Group {
  const RowStep<T>& step;
  const RowArrays<T>& arrays;
  const int *from, *to;
  T *first, *sums, *differences;  // scratch: row 0, and sums and differences of pairs
  index_t width;                  // numbers in a row of scratch

  index_t half() const { return step.length / 2; }
  const T* in(index_t j) const { return arrays.x + from[j] * arrays.x_step; }
  T* out(index_t k) const { return arrays.y + to[k] * arrays.y_step; }
};

// A group of two rows: their sum and difference.
template <class D, class T>
HWY_INLINE void add_two(D d, const Group<T>& g, index_t begin, index_t end) {
  const T *const x0 = g.in(0), *const x1 = g.in(1);
  T *const y0 = g.out(0), *const y1 = g.out(1);
  for (index_t at = begin; at < end; at += static_cast<index_t>(hn::Lanes(d))) {
    const auto a = hn::LoadU(d, x0 + at), b = hn::LoadU(d, x1 + at);
    hn::StoreU(hn::Add(a, b), d, y0 + at);
    hn::StoreU(hn::Sub(a, b), d, y1 + at);
  }
}

// Computes sums and differences of pairs, from number `place` of scratch on, and result 0.
template <class D, class T>
HWY_INLINE void add_pairs(D d, const Group<T>& g, index_t at, index_t place) {
  const index_t q = g.step.length;
  const auto x = hn::LoadU(d, g.in(0) + at);
  hn::StoreU(x, d, g.first + place);
  auto total = x;
  for (index_t j = 1; j <= g.half(); ++j) {
    const auto a = hn::LoadU(d, g.in(j) + at);
    const auto b = 2 * j == q ? hn::Zero(d) : hn::LoadU(d, g.in(q - j) + at);
    const auto sum = hn::Add(a, b);
    total = hn::Add(total, sum);
    hn::StoreU(sum, d, g.sums + (j - 1) * g.width + place);
    hn::StoreU(2 * j == q ? b : hn::Sub(a, b), d, g.differences + (j - 1) * g.width + place);
  }
  hn::StoreU(total, d, g.out(0) + at);
}

// v[k] += sum over j < n of factors[k, j] x_j.
template <int kOutputs, int kWide, class D, class T, class V>
HWY_INLINE void add_products(D d, const T* x, index_t width, const T* factors, index_t n,
                             V (&v)[kOutputs][kWide]) {
  const auto lanes = static_cast<index_t>(hn::Lanes(d));
  for (index_t j = 0; j < n; ++j, ++factors) {
    V row[kWide];
    for (int i = 0; i < kWide; ++i) row[i] = hn::LoadU(d, x + j * width + i * lanes);
    for (int k = 0; k < kOutputs; ++k) {
      const V factor = hn::Set(d, factors[k * n]);
      for (int i = 0; i < kWide; ++i) v[k][i] = hn::Add(v[k][i], hn::Mul(factor, row[i]));
    }
  }
}

// Results k and length - k from their common part and i times the other, of which `one` is the
// place of the former.
template <int kWide, class D, class T, class V>
HWY_INLINE void put_pair(D d, const V (&even)[kWide], const V (&odd)[kWide], T* one, T* other) {
  if constexpr (hn::MaxLanes(D()) == 1) {  // of real and imaginary part, side by side
    static_assert(kWide == 2);
    hn::StoreU(hn::Add(even[0], odd[1]), d, one);
    hn::StoreU(hn::Sub(even[1], odd[0]), d, one + 1);
    hn::StoreU(hn::Sub(even[0], odd[1]), d, other);
    hn::StoreU(hn::Add(even[1], odd[0]), d, other + 1);
  } else {
    const auto lanes = static_cast<index_t>(hn::Lanes(d));
    for (int i = 0; i < kWide; ++i) {
      const V turned = hn::Reverse2(d, odd[i]);
      const V more = hn::Add(even[i], turned), less = hn::Sub(even[i], turned);
      hn::StoreU(hn::OddEven(less, more), d, one + i * lanes);
      hn::StoreU(hn::OddEven(more, less), d, other + i * lanes);
    }
  }
}

// Computes results k .. k + kOutputs - 1 and their counterparts, length - k.
template <int kOutputs, int kWide, class D, class T>
HWY_INLINE void add_outputs(D d, const Group<T>& g, index_t k, index_t at) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<index_t>(hn::Lanes(d));
  const index_t factors = (k - 1) * g.half();
  V v[kOutputs][kWide];
  for (int i = 0; i < kWide; ++i) {
    const V x = hn::LoadU(d, g.first + at + i * lanes);
    for (int j = 0; j < kOutputs; ++j) v[j][i] = x;
  }
  add_products<kOutputs, kWide>(d, g.sums + at, g.width, g.step.cosines.data() + factors, g.half(),
                                v);
  for (int j = 0; j < kOutputs; ++j) {
    for (int i = 0; i < kWide; ++i) hn::StoreU(v[j][i], d, g.out(k + j) + at + i * lanes);
  }
  for (int j = 0; j < kOutputs; ++j) {
    for (int i = 0; i < kWide; ++i) v[j][i] = hn::Zero(d);
  }
  add_products<kOutputs, kWide>(d, g.differences + at, g.width, g.step.sines.data() + factors,
                                g.half(), v);
  for (int j = 0; j < kOutputs; ++j) {
    T* const one = g.out(k + j) + at;
    V even[kWide];
    for (int i = 0; i < kWide; ++i) even[i] = hn::LoadU(d, one + i * lanes);
    put_pair<kWide>(d, even, v[j], one, g.out(g.step.length - k - j) + at);
  }
}

// Computes results 1 .. half and their counterparts, kOutputs at a time; the last ones may be
// computed twice.
template <int kOutputs, int kWide, class D, class T>
void add_all_outputs(D d, const Group<T>& g, index_t begin, index_t end) {
  const auto wide = kWide * static_cast<index_t>(hn::Lanes(d));
  for (index_t k = 1; k <= g.half(); k += kOutputs) {
    const index_t first = std::min(k, g.half() + 1 - kOutputs);
    for (index_t at = begin; at < end; at += wide) add_outputs<kOutputs, kWide>(d, g, first, at);
  }
}

// Calls f<kOutputs>() for computing n results some at a time: up to six, whose sums fill 12 of 16
// registers if kWide is 2; as evenly as possible.
template <class F>
void with_outputs(index_t n, F&& f) {
  const index_t parts = (n + 5) / 6;
  switch ((n + parts - 1) / parts) {
    case 1:
      return f.template operator()<1>();
    case 2:
      return f.template operator()<2>();
    case 3:
      return f.template operator()<3>();
    case 4:
      return f.template operator()<4>();
    case 5:
      return f.template operator()<5>();
    default:
      return f.template operator()<6>();
  }
}

// Numbers [begin, end) of the rows: a multiple of kWide vectors.
template <int kWide, class D, class T>
void transform(D d, const Group<T>& g, index_t begin, index_t end) {
  if (g.step.length == 2) return add_two(d, g, begin, end);
  const auto lanes = static_cast<index_t>(hn::Lanes(d));
  for (index_t at = begin; at < end; at += lanes) add_pairs(d, g, at, at);
  if (g.half() == 0) return;
  with_outputs(g.half(),
               [&]<int kOutputs>() { add_all_outputs<kOutputs, kWide>(d, g, begin, end); });
}

// -- with PrimeProducts, for kWide vectors side by side; rows of scratch are as wide --------------

template <int kWide, class D>
struct Block {
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;
  static constexpr D d{};
  static index_t lanes() { return static_cast<index_t>(hn::Lanes(d)); }
  static index_t width() { return kWide * lanes(); }

  // f(row a, row b, row c) for vectors of those of a fold, which f changes.
  template <class F>
  static void fold(const typename PrimeProducts<T>::Fold& of, T* rows, F&& f) {
    const index_t apart = of.count * width();
    T* row = rows + of.at * width();
    for (T* const end = row + apart; row < end; row += lanes()) {
      V a = hn::LoadU(d, row), b = hn::LoadU(d, row + apart);
      V c = of.parts == 3 ? hn::LoadU(d, row + 2 * apart) : hn::Zero(d);
      f(a, b, c);
      hn::StoreU(a, d, row);
      hn::StoreU(b, d, row + apart);
      if (of.parts == 3) hn::StoreU(c, d, row + 2 * apart);
    }
  }

  static V plus(bool is_positive, V a, V b) { return is_positive ? hn::Add(a, b) : hn::Sub(a, b); }

  static void fold_before(const typename PrimeProducts<T>::Fold& of, T* rows) {
    const bool is_positive = of.is_positive;
    if (of.parts == 2) return halve(of, rows);
    fold(of, rows, [&](V& a, V& b, V& c) {
      const V all = hn::Add(plus(is_positive, a, b), c);
      a = hn::Sub(a, c);
      b = plus(!is_positive, b, c);
      c = all;
    });
  }
  static void fold_after(const typename PrimeProducts<T>::Fold& of, T* rows) {
    const bool is_positive = of.is_positive;
    if (of.parts == 2) return halve(of, rows);
    fold(of, rows, [&](V& a, V& b, V& c) {
      const V rest = plus(!is_positive, hn::Sub(c, a), b);
      a = hn::Add(a, c);
      b = plus(is_positive, b, c);
      c = rest;
    });
  }
  static void halve(const typename PrimeProducts<T>::Fold& of, T* rows) {
    fold(of, rows, [](V& a, V& b, V&) {
      const V sum = hn::Add(a, b);
      b = hn::Sub(a, b);
      a = sum;
    });
  }

  static void multiply(const typename PrimeProducts<T>::Product& of, const T* first, const T* from,
                       T* to) {
    const index_t n = of.n;
    with_outputs(n, [&]<int kOutputs>() {
      for (index_t begin = 0; begin < n; begin += kOutputs) {
        const index_t k = std::min(begin, n - kOutputs);
        V v[kOutputs][kWide];
        for (int i = 0; i < kWide; ++i) {
          const V x = of.adds_first ? hn::LoadU(d, first + i * lanes()) : hn::Zero(d);
          for (int j = 0; j < kOutputs; ++j) v[j][i] = x;
        }
        add_products<kOutputs, kWide>(d, from + of.at * width(), width(), of.factors.data() + k * n,
                                      n, v);
        for (int j = 0; j < kOutputs; ++j) {
          T* const row = to + (of.at + k + j) * width();
          for (int i = 0; i < kWide; ++i) hn::StoreU(v[j][i], d, row + i * lanes());
        }
      }
    });
  }

  static void transform(const Group<T>& g, T* scratch, index_t at) {
    const PrimeProducts<T>& products = *g.step.products;
    const index_t half = g.half();
    T *const first = scratch, *const from = scratch + width(),
             *const to = from + 2 * half * width();
    const Group<T> here{g.step, g.arrays, g.from, g.to, first, from, from + half * width(),
                        width()};
    for (int i = 0; i < kWide; ++i) add_pairs(d, here, at + i * lanes(), i * lanes());
    for (const auto& of : products.before) fold_before(of, from);
    for (const auto& of : products.products) multiply(of, first, from, to);
    for (const auto& of : products.after) fold_after(of, to);
    for (index_t k = 0; k < half; ++k) {
      V even[kWide], odd[kWide];
      for (int i = 0; i < kWide; ++i) {
        even[i] = hn::LoadU(d, to + k * width() + i * lanes());
        odd[i] = hn::LoadU(d, to + (half + k) * width() + i * lanes());
      }
      put_pair<kWide>(d, even, odd, g.out(k + 1) + at, g.out(g.step.length - k - 1) + at);
    }
  }
};

template <class T>
void run_step(const RowStep<T>& step, const RowArrays<T>& arrays, T* scratch, index_t width) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 16 / sizeof(T)> narrow;
  constexpr int kWide = 2;
  const auto wide = kWide * static_cast<index_t>(hn::Lanes(d));
  const index_t most = width / wide * wide, half = step.length / 2;
  const auto groups = static_cast<index_t>(step.from.size()) / step.length;
  for (index_t i = 0; i < groups; ++i) {
    const Group<T> group{step,
                         arrays,
                         step.from.data() + i * step.length,
                         step.to.data() + i * step.length,
                         scratch,
                         scratch + width,
                         scratch + (1 + half) * width,
                         width};
    if (step.products) {
      using Wide = Block<kWide, decltype(d)>;
      using Narrow = Block<hn::MaxLanes(d) == 1 ? kWide : 1, decltype(narrow)>;
      for (index_t at = 0; at < most; at += wide) Wide::transform(group, scratch, at);
      for (index_t at = most; at < width; at += Narrow::width()) {
        Narrow::transform(group, scratch, at);
      }
      continue;
    }
    transform<kWide>(d, group, 0, most);
    if constexpr (hn::MaxLanes(d) > 1) transform<1>(narrow, group, most, width);
  }
}

}  // namespace

void single_step(const RowStep<float>& step, const RowArrays<float>& arrays, float* scratch,
                 index_t width) {
  run_step(step, arrays, scratch, width);
}
void double_step(const RowStep<double>& step, const RowArrays<double>& arrays, double* scratch,
                 index_t width) {
  run_step(step, arrays, scratch, width);
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/kernels/fft/chirp_line.hpp"
#include "palimpsest/kernels/fft/line_twiddles.hpp"

namespace palimpsest {

HWY_EXPORT(single_step);
HWY_EXPORT(double_step);

namespace {

void run(const RowStep<float>& step, const RowArrays<float>& arrays, float* scratch,
         index_t width) {
  HWY_DYNAMIC_DISPATCH(single_step)(step, arrays, scratch, width);
}
void run(const RowStep<double>& step, const RowArrays<double>& arrays, double* scratch,
         index_t width) {
  HWY_DYNAMIC_DISPATCH(double_step)(step, arrays, scratch, width);
}

// FFTW has code for factors up to 11, for 13 in the innermost place alone, and for lines of up to
// 16. With more terms lines side by side cost as much as chirps. Single lines, which fill a vector
// by a quarter, cost two to four times as much as chirps.
constexpr index_t kLeastPrime = 13, kShortest = 17, kMostTerms = 112;

// n = p q without a common factor, p + q the least; p a multiple of the largest prime factor.
std::optional<std::pair<index_t, index_t>> factors_of(index_t n) {
  if (n < kShortest || n > kMostTerms * kMostTerms / 4) return std::nullopt;
  const index_t largest = largest_prime_factor(n);
  std::optional<std::pair<index_t, index_t>> best;
  for (index_t p = largest; p <= n && largest >= kLeastPrime; p += largest) {
    const index_t q = n / p;
    if (n % p != 0 || std::gcd(p, q) != 1 || p + q > kMostTerms) continue;
    if (!best || p + q < best->first + best->second) best = {p, q};
  }
  return best;
}

template <class T>
RowStep<T> step_of(index_t length) {
  RowStep<T> step;
  step.length = length;
  if (PrimeProducts<T>::is_better(length)) {
    step.products.emplace(length);
    return step;
  }
  for (index_t k = 1; k <= length / 2; ++k) {
    for (index_t j = 1; j <= length / 2; ++j) {
      const std::complex<double> root = root_of_unity(j * k % length, length, false);
      step.cosines.push_back(static_cast<T>(root.real()));
      step.sines.push_back(static_cast<T>(root.imag()));
    }
  }
  return step;
}

// The order in which a step takes the elements of a group.
template <class T>
std::vector<index_t> order_of(const RowStep<T>& step) {
  std::vector<index_t> order(static_cast<std::size_t>(step.length));
  std::iota(order.begin(), order.end(), index_t{0});
  for (std::size_t j = 1; step.products && j <= step.products->pairs.size(); ++j) {
    order[j] = step.products->pairs[j - 1];
    order[order.size() - j] = step.length - order[j];
  }
  return order;
}

}  // namespace

template <class T>
bool RowTransform<T>::is_better(index_t n) {
  return factors_of(n).has_value();
}

// Element j = (q j1 + p j2) mod n of x and k of y, k = k1 mod p and k = k2 mod q: exp(-2 pi i j k /
// n) is exp(-2 pi i j1 k1 / p) exp(-2 pi i j2 k2 / q). Results of the first step are numbered as
// those of y.
template <class T>
RowTransform<T>::RowTransform(index_t n, bool forward) : n_(n) {
  const auto [p, q] = *factors_of(n);
  const auto row_of = [&](index_t k1, index_t k2) {
    index_t k = k1;
    while (k % q != k2) k += p;
    return static_cast<int>(forward ? k : (n - k) % n);
  };
  RowStep<T> first = step_of<T>(p), second = step_of<T>(q);
  const std::vector<index_t> order = order_of(first), second_order = order_of(second);
  for (index_t j2 = 0; j2 < q; ++j2) {
    for (const index_t j1 : order) {
      first.from.push_back(static_cast<int>((q * j1 + p * j2) % n));
      first.to.push_back(row_of(j1, j2));
    }
  }
  for (index_t k1 = 0; k1 < p; ++k1) {
    for (const index_t k2 : second_order) second.from.push_back(row_of(k1, k2));
  }
  second.to = second.from;
  scratch_rows_ = std::max(first.scratch_rows(), second.scratch_rows());
  steps_.push_back(std::move(first));
  if (q > 1) steps_.push_back(std::move(second));
}

template <class T>
std::shared_ptr<const RowTransform<T>> RowTransform<T>::find_or_make(index_t n, bool forward) {
  struct Made {
    Mutex mutex;
    std::map<std::pair<index_t, bool>, std::shared_ptr<const RowTransform>> all;
  };
  Made& made = immortal([] { return Made(); });
  const std::lock_guard lock(made.mutex);
  auto& transform = made.all[{n, forward}];
  if (!transform) transform = std::make_shared<RowTransform>(n, forward);
  return transform;
}

template <class T>
void RowTransform<T>::execute(Rows x, Rows y, std::complex<T>* rows, index_t lines) const {
  Rows from = x;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Rows to = i + 1 == steps_.size() ? y : Rows{rows, lines};
    run(steps_[i],
        {reinterpret_cast<const T*>(from.first), 2 * from.step, reinterpret_cast<T*>(to.first),
         2 * to.step},
        reinterpret_cast<T*>(rows + n_ * lines), 2 * lines);
    from = to;
  }
}

template class RowTransform<float>;
template class RowTransform<double>;

}  // namespace palimpsest
#endif
