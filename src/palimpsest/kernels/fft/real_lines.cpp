// SPDX-License-Identifier: Apache-2.0
// With h = n/2, z[j] = x[2j] + i x[2j+1] and Z its transform, the even and the odd elements of x
// have the spectra E[k] = (Z[k] + Z*[h-k]) / 2 and O[k] = (Z[k] - Z*[h-k]) / 2i, and y[k] = E[k] +
// e(-k/n) O[k]. Elements k and h - k are computed together from the same sums.
//
// The loops are compiled once per instruction set.
#include "palimpsest/kernels/fft/real_lines.hpp"

#include "palimpsest/copy/loop_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/fft/real_lines.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_LOOPS_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// An element, or a vector of them.
template <class V>
struct Number {
  V re, im;
};

template <class D>
HWY_INLINE Number<hn::Vec<D>> load(D d, const hn::TFromD<D>* z) {
  Number<hn::Vec<D>> r;
  hn::LoadInterleaved2(d, z, r.re, r.im);
  return r;
}
template <class D>
HWY_INLINE void store(D d, Number<hn::Vec<D>> v, hn::TFromD<D>* z) {
  hn::StoreInterleaved2(v.re, v.im, d, z);
}
// Reversed order of elements.
template <class D>
HWY_INLINE Number<hn::Vec<D>> turned(D d, Number<hn::Vec<D>> v) {
  return {hn::Reverse(d, v.re), hn::Reverse(d, v.im)};
}

// Computes to[k] and to[h-k] from from[k] and from[h-k] by f(a, b, w) -> pair, for k = 1 .. h/2; w
// is row k of a table. Arrays hold pairs of numbers.
template <class T, class F>
void join(index_t h, const T* from, const T* w_re, const T* w_im, T* to, const F& f) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<index_t>(hn::Lanes(d));
  index_t k = 1;
  for (; 2 * (k + lanes) <= h; k += lanes) {
    const index_t back = h - k - lanes + 1;
    const auto both = f(load(d, from + 2 * k), turned(d, load(d, from + 2 * back)),
                        hn::LoadU(d, w_re + k), hn::LoadU(d, w_im + k), d);
    store(d, both.first, to + 2 * k);
    store(d, turned(d, both.second), to + 2 * back);
  }
  const hn::CappedTag<T, 1> one;
  for (; 2 * k <= h; ++k) {
    const auto get = [&](index_t i) HWY_ATTR {
      return Number<hn::Vec<decltype(one)>>{hn::Set(one, from[2 * i]),
                                            hn::Set(one, from[2 * i + 1])};
    };
    const auto put = [&](Number<hn::Vec<decltype(one)>> v, index_t i) HWY_ATTR {
      to[2 * i] = hn::GetLane(v.re);
      to[2 * i + 1] = hn::GetLane(v.im);
    };
    const auto both = f(get(k), get(h - k), hn::Set(one, w_re[k]), hn::Set(one, w_im[k]), one);
    put(both.second, h - k);
    put(both.first, k);
  }
}

// A pair of numbers: the return type of lambdas for any vector type.
template <class V>
struct Both {
  Number<V> first, second;
};

// Computes y[0 .. h] from Z; w is e(-k/n).
template <class T>
void to_spectrum(index_t h, const T* z, const T* w_re, const T* w_im, T scale, T* y) {
  y[0] = (z[0] + z[1]) * scale;
  y[2 * h] = (z[0] - z[1]) * scale;
  y[1] = y[2 * h + 1] = T{0};
  join(h, z, w_re, w_im, y, [scale](auto a, auto b, auto re, auto im, auto d) HWY_ATTR {
    const auto half = hn::Set(d, scale / 2);
    const auto e_re = hn::Mul(hn::Add(a.re, b.re), half), e_im = hn::Mul(hn::Sub(a.im, b.im), half);
    const auto d_re = hn::Mul(hn::Sub(a.re, b.re), half), d_im = hn::Mul(hn::Add(a.im, b.im), half);
    // -i w D
    const auto o_re = hn::Add(hn::Mul(re, d_im), hn::Mul(im, d_re));
    const auto o_im = hn::Sub(hn::Mul(im, d_im), hn::Mul(re, d_re));
    using V = hn::Vec<decltype(d)>;
    return Both<V>{{hn::Add(e_re, o_re), hn::Add(e_im, o_im)},
                   {hn::Sub(e_re, o_re), hn::Sub(o_im, e_im)}};
  });
}

// Computes Z[0 .. h) from y; w is e(k/n).
template <class T>
void from_spectrum(index_t h, const T* y, const T* w_re, const T* w_im, T scale, T* z) {
  z[0] = (y[0] + y[2 * h]) * scale;
  z[1] = (y[0] - y[2 * h]) * scale;
  join(h, y, w_re, w_im, z, [scale](auto a, auto b, auto re, auto im, auto d) HWY_ATTR {
    const auto s = hn::Set(d, scale);
    const auto e_re = hn::Mul(hn::Add(a.re, b.re), s), e_im = hn::Mul(hn::Sub(a.im, b.im), s);
    const auto d_re = hn::Mul(hn::Sub(a.re, b.re), s), d_im = hn::Mul(hn::Add(a.im, b.im), s);
    // i w D
    const auto o_re = hn::Neg(hn::Add(hn::Mul(re, d_im), hn::Mul(im, d_re)));
    const auto o_im = hn::Sub(hn::Mul(re, d_re), hn::Mul(im, d_im));
    using V = hn::Vec<decltype(d)>;
    return Both<V>{{hn::Add(e_re, o_re), hn::Add(e_im, o_im)},
                   {hn::Sub(e_re, o_re), hn::Sub(o_im, e_im)}};
  });
}

}  // namespace

SpectrumLoops<float> single_loops() { return {to_spectrum<float>, from_spectrum<float>}; }
SpectrumLoops<double> double_loops() { return {to_spectrum<double>, from_spectrum<double>}; }

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/base/shape.hpp"
#include "palimpsest/base/thread_scratch.hpp"
#include "palimpsest/kernels/fft/line_transform.hpp"
#include "palimpsest/kernels/fft/wide.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {

HWY_EXPORT(single_loops);
HWY_EXPORT(double_loops);

namespace {

// Number of lines transformed together.
constexpr index_t kTogether = 16;
constexpr index_t kScratchBytes = 393216;

template <class T>
SpectrumLoops<T> spectrum_loops() {
  if constexpr (sizeof(T) == sizeof(float)) {
    return HWY_DYNAMIC_DISPATCH(single_loops)();
  } else {
    return HWY_DYNAMIC_DISPATCH(double_loops)();
  }
}

struct RealMemory {
  alignas(64) std::array<std::byte, kScratchBytes> bytes;
};

struct OtherAxis {
  index_t extent, real, half;  // strides in elements of each side
};
index_t reach(const OtherAxis& axis) { return std::abs(axis.real) + std::abs(axis.half); }

// e(-+ k/n) for k = 0 .. n/4.
template <class T>
struct Roots {
  std::vector<T> re, im;
};

// Made once per process for each length and direction.
template <class T>
const Roots<T>& roots_of(index_t n, bool forward) {
  struct Made {
    Mutex mutex;
    std::map<std::pair<index_t, bool>, Roots<T>> roots;  // guarded by mutex
  };
  Made& made = immortal([] { return Made(); });
  const std::lock_guard lock(made.mutex);
  Roots<T>& roots = made.roots[{n, forward}];
  for (index_t k = static_cast<index_t>(roots.re.size()); k <= n / 4; ++k) {
    const auto w = root_of_unity(k, n, forward);
    roots.re.push_back(static_cast<T>(w.re));
    roots.im.push_back(static_cast<T>(w.im));
  }
  return roots;
}

// All lines along one axis, in one of the two directions.
template <class T>
class RealLines {
 public:
  using Complex = std::complex<T>;

  RealLines(const MutableView& real, const MutableView& half, std::size_t axis, double scale,
            bool to_half)
      : real_(static_cast<T*>(real.data)),
        half_(static_cast<Complex*>(half.data)),
        n_(real.extents[axis]),
        h_(n_ / 2),
        real_step_(real.strides[axis]),
        half_step_(half.strides[axis]),
        scale_(static_cast<T>(scale)),
        to_half_(to_half),
        row_((h_ + 1 + 7) / 8 * 8),
        roots_(roots_of<T>(n_, to_half)),
        transform_(LineTransform<T>::find_or_make(h_)) {
    for (std::size_t i = 0; i < real.rank(); ++i) {
      if (i != axis && real.extents[i] != 1) {
        others_.push_back({real.extents[i], real.strides[i], half.strides[i]});
      }
    }
    // std::stable_sort would allocate.
    for (std::size_t i = 1; i < others_.size(); ++i) {
      for (std::size_t k = i; k > 0 && reach(others_[k - 1]) < reach(others_[k]); --k) {
        std::swap(others_[k - 1], others_[k]);
      }
    }
    join_axes();
    const auto inner = static_cast<index_t>(transform_->scratch_bytes(LineLayout::dense, 1));
    const index_t room = (kScratchBytes - inner) / static_cast<index_t>(sizeof(Complex));
    together_ = std::clamp<index_t>(room / (3 * row_), 1, kTogether);
    for (const OtherAxis& axis : others_) n_outer_ *= axis.extent;
  }

  void run() const {
    const index_t batches = (inner_.extent + together_ - 1) / together_;
    const index_t tasks = n_outer_ * batches;
    parallel_ranges(tasks, kParallelGrain / (together_ * n_) + 1, [&](index_t begin, index_t end) {
      const Scratched<RealMemory> memory;
      for (index_t task = begin; task < end; ++task) {
        const index_t first = task % batches * together_;
        run_lines(task / batches, first, std::min(together_, inner_.extent - first),
                  reinterpret_cast<Complex*>(memory->bytes.data()));
      }
    });
  }

 private:
  // The last axis, and all that have even steps with it.
  void join_axes() {
    if (others_.empty()) return;
    inner_ = others_.back();
    others_.pop_back();
    while (!others_.empty() && others_.back().real == inner_.real * inner_.extent &&
           others_.back().half == inner_.half * inner_.extent) {
      inner_.extent *= others_.back().extent;
      others_.pop_back();
    }
  }

  // Lines in progress. On a side where they do not fit they lie in scratch, row_ numbers apart.
  struct Batch {
    T* real;
    Complex* half;
    index_t real_line, half_line;  // between lines
    index_t count;
  };

  bool real_fits() const { return real_step_ == 1 && inner_.real % 2 == 0; }
  bool half_fits() const { return half_step_ == 1; }

  void run_lines(index_t outer, index_t first, index_t count, Complex* scratch) const {
    Batch array{real_ + first * inner_.real, half_ + first * inner_.half, inner_.real, inner_.half,
                count};
    for (std::size_t i = others_.size(); i-- > 0;) {
      const index_t position = outer % others_[i].extent;
      outer /= others_[i].extent;
      array.real += position * others_[i].real;
      array.half += position * others_[i].half;
    }
    Complex* const z = scratch;
    scratch += together_ * row_;
    Batch dense = array;
    if (!real_fits()) {
      dense.real = numbers(scratch);
      dense.real_line = 2 * row_;
    }
    scratch += together_ * row_;
    if (!half_fits()) {
      dense.half = scratch;
      dense.half_line = row_;
    }
    scratch += together_ * row_;
    auto* const inner = reinterpret_cast<std::byte*>(scratch);
    to_half_ ? to_halves(array, dense, z, inner) : to_reals(array, dense, z, inner);
  }

  // Calls f(element in the array, element in scratch) for all real elements, or for those of half
  // spectra.
  template <class F>
  void for_real(const Batch& array, const Batch& dense, const F& f) const {
    for (index_t j = 0; j < n_; ++j) {
      for (index_t c = 0; c < array.count; ++c) {
        f(array.real[c * array.real_line + j * real_step_], dense.real[c * dense.real_line + j]);
      }
    }
  }
  template <class F>
  void for_half(const Batch& array, const Batch& dense, const F& f) const {
    for (index_t k = 0; k <= h_; ++k) {
      for (index_t c = 0; c < array.count; ++c) {
        f(array.half[c * array.half_line + k * half_step_], dense.half[c * dense.half_line + k]);
      }
    }
  }

  void to_halves(const Batch& array, const Batch& dense, Complex* z, std::byte* inner) const {
    if (!real_fits()) for_real(array, dense, [](const T& x, T& copy) { copy = x; });
    auto* const x = reinterpret_cast<const Complex*>(dense.real);
    transform_->execute(
        {x, z, dense.real_line / 2, 1, row_, 1, dense.count, h_, h_, /*forward=*/true}, inner);
    for (index_t c = 0; c < dense.count; ++c) {
      spectrum_loops<T>().apart(h_, numbers(z + c * row_), roots_.re.data(), roots_.im.data(),
                                scale_, numbers(dense.half + c * dense.half_line));
    }
    if (!half_fits()) for_half(array, dense, [](Complex& y, const Complex& copy) { y = copy; });
  }

  void to_reals(const Batch& array, const Batch& dense, Complex* z, std::byte* inner) const {
    if (!half_fits()) for_half(array, dense, [](const Complex& y, Complex& copy) { copy = y; });
    for (index_t c = 0; c < dense.count; ++c) {
      spectrum_loops<T>().together(h_, numbers(dense.half + c * dense.half_line), roots_.re.data(),
                                   roots_.im.data(), scale_, numbers(z + c * row_));
    }
    auto* const x = reinterpret_cast<Complex*>(dense.real);
    transform_->execute(
        {z, x, row_, 1, dense.real_line / 2, 1, dense.count, h_, h_, /*forward=*/false}, inner);
    if (!real_fits()) for_real(array, dense, [](T& x_j, const T& copy) { x_j = copy; });
  }

  static T* numbers(Complex* z) { return reinterpret_cast<T*>(z); }

  T* real_;
  Complex* half_;
  index_t n_, h_, real_step_, half_step_;
  T scale_;
  bool to_half_;
  index_t row_;  // elements between lines in scratch
  index_t together_ = 1, n_outer_ = 1;
  SmallVector<OtherAxis, kMaxRank> others_;  // outermost first
  OtherAxis inner_{1, 0, 0};                 // along which lines are transformed together
  const Roots<T>& roots_;
  std::shared_ptr<const LineTransform<T>> transform_;
};

MutableView writable(const ConstView& v) {
  return {const_cast<void*>(v.data), v.dtype, v.extents, v.strides};
}

void run(const MutableView& real, const MutableView& half, std::size_t axis, double scale,
         bool to_half) {
  assert(is_real_line(real.extents[axis]));
  if (real.dtype == DType::float32) {
    RealLines<float>(real, half, axis, scale, to_half).run();
  } else {
    RealLines<double>(real, half, axis, scale, to_half).run();
  }
}

}  // namespace

void real_to_half(const ConstView& x, const MutableView& y, std::size_t axis, double scale) {
  run(writable(x), y, axis, scale, true);
}

void half_to_real(const ConstView& y, const MutableView& x, std::size_t axis, double scale) {
  run(x, writable(y), axis, scale, false);
}

}  // namespace palimpsest
#endif
