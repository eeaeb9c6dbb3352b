// SPDX-License-Identifier: Apache-2.0
// Lines along the axis are processed in bundles of neighbours along the last other axis, so the
// inner loop runs over memory in order. If the axis itself has the smallest stride, a bundle is one
// line, and the inner loop runs along it. A bundle belongs to one thread.
#include "palimpsest/kernels/arrays/stencil.hpp"

#include <algorithm>
#include <cassert>
#include <complex>
#include <cstdlib>

#include "palimpsest/kernels/arrays/real_of.hpp"
#include "palimpsest/kernels/arrays/stencil_line.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {
namespace {

constexpr index_t kBundle = 512;  // lines

template <class T>
class Filter {
 public:
  using Real = typename RealOf<T>::type;

  // `wide` has step times the elements of `narrow` along the axis.
  Filter(const Stencil& stencil, const ConstView& narrow, const ConstView& wide, index_t start)
      : stencil_(stencil),
        narrow_(narrow),
        wide_(wide),
        line_(stencil, narrow.extents[stencil.axis], wide.extents[stencil.axis], start),
        bundle_axis_(narrow.rank()) {
    for (std::size_t k = 0; k < narrow.rank(); ++k) {
      if (k != stencil.axis) bundle_axis_ = k;
    }
    const auto stride = [&](std::size_t k) { return std::abs(narrow.strides[k]); };
    if (bundle_axis_ < narrow.rank() && stride(stencil.axis) <= stride(bundle_axis_)) {
      bundle_axis_ = narrow.rank();
    }
    has_bundles_ = bundle_axis_ < narrow.rank();
  }

  template <class Body>
  void for_bundles(Body&& body) const {
    const index_t lines = has_bundles_ ? narrow_.extents[bundle_axis_] : 1;
    const index_t pieces = (lines + kBundle - 1) / kBundle;
    index_t outer = pieces;
    for (std::size_t k = 0; k < narrow_.rank(); ++k) {
      if (k != stencil_.axis && k != bundle_axis_) outer *= narrow_.extents[k];
    }
    const index_t work = std::min(lines, kBundle) * wide_.extents[stencil_.axis];
    const index_t grain = std::max<index_t>(1, kParallelGrain / std::max<index_t>(work, 1));
    parallel_ranges(outer, grain, [&](index_t begin, index_t end) {
      for (index_t i = begin; i < end; ++i) {
        index_t rest = i;
        const index_t piece = rest % pieces;
        rest /= pieces;
        index_t narrow = 0, wide = 0;
        for (std::size_t k = narrow_.rank(); k-- > 0;) {
          if (k == stencil_.axis || k == bundle_axis_) continue;
          const index_t position = rest % narrow_.extents[k];
          rest /= narrow_.extents[k];
          narrow += position * narrow_.strides[k];
          wide += position * wide_.strides[k];
        }
        const index_t first = piece * kBundle;
        if (has_bundles_) {
          narrow += first * narrow_.strides[bundle_axis_];
          wide += first * wide_.strides[bundle_axis_];
        }
        body(narrow, wide, std::min(kBundle, lines - first));
      }
    });
  }

  void forward(const T* x, T* y) const {
    const index_t in = wide_.strides[stencil_.axis], out = narrow_.strides[stencil_.axis];
    const index_t count = narrow_.extents[stencil_.axis];
    for_bundles([&](index_t narrow, index_t wide, index_t lines) {
      for (index_t i = 0; i < count; ++i) clear(y + narrow + i * out, narrow_, lines);
      const auto one = [&](index_t i) {
        line_.for_taps(i, [&](std::size_t m, index_t j) {
          add(tap(m), x + wide + j * in, bundle_step(wide_), y + narrow + i * out,
              bundle_step(narrow_), lines);
        });
      };
      const index_t begin = has_bundles_ ? count : line_.inner_begin();
      const index_t end = has_bundles_ ? count : line_.inner_end();
      for (index_t i = 0; i < begin; ++i) one(i);
      for (std::size_t m = 0; m < stencil_.taps.size() && begin < end; ++m) {
        const index_t j = stencil_.step * begin + line_.offset() + static_cast<index_t>(m);
        add(tap(m), x + wide + j * in, stencil_.step * in, y + narrow + begin * out, out,
            end - begin);
      }
      for (index_t i = end; i < count; ++i) one(i);
    });
  }

  void adjoint(const T* y, T* x) const {
    const index_t out = wide_.strides[stencil_.axis], in = narrow_.strides[stencil_.axis];
    const index_t count = narrow_.extents[stencil_.axis];
    for_bundles([&](index_t narrow, index_t wide, index_t lines) {
      for (index_t j = 0; j < wide_.extents[stencil_.axis]; ++j) {
        clear(x + wide + j * out, wide_, lines);
      }
      const auto one = [&](index_t i) {
        line_.for_taps(i, [&](std::size_t m, index_t j) {
          add(tap(m), y + narrow + i * in, bundle_step(narrow_), x + wide + j * out,
              bundle_step(wide_), lines);
        });
      };
      const index_t begin = has_bundles_ ? count : line_.inner_begin();
      const index_t end = has_bundles_ ? count : line_.inner_end();
      for (index_t i = 0; i < begin; ++i) one(i);
      for (std::size_t m = 0; m < stencil_.taps.size() && begin < end; ++m) {
        const index_t j = stencil_.step * begin + line_.offset() + static_cast<index_t>(m);
        add(tap(m), y + narrow + begin * in, in, x + wide + j * out, stencil_.step * out,
            end - begin);
      }
      for (index_t i = end; i < count; ++i) one(i);
    });
  }

 private:
  Real tap(std::size_t m) const { return static_cast<Real>(stencil_.taps[m]); }

  index_t bundle_step(const ConstView& v) const {
    return has_bundles_ ? v.strides[bundle_axis_] : 0;
  }

  void clear(T* out, const ConstView& v, index_t lines) const {
    const index_t step = bundle_step(v);
    for (index_t l = 0; l < lines; ++l) out[l * step] = T(0);
  }

  static void add(Real tap, const T* in, index_t in_step, T* out, index_t out_step, index_t n) {
    if (in_step == 1 && out_step == 1) {
      for (index_t l = 0; l < n; ++l) out[l] += tap * in[l];
    } else {
      for (index_t l = 0; l < n; ++l) out[l * out_step] += tap * in[l * in_step];
    }
  }

  const Stencil& stencil_;
  ConstView narrow_, wide_;
  StencilLine line_;
  std::size_t bundle_axis_;
  bool has_bundles_ = false;
};

}  // namespace

void run_stencil(const Stencil& stencil, const ConstView& x, const MutableView& y, index_t start) {
  assert(x.extents[stencil.axis] == stencil.step * y.extents[stencil.axis]);
  visit_inexact(x.dtype, "stencil", [&](auto tag) {
    using T = typename decltype(tag)::type;
    Filter<T>(stencil, y, x, start).forward(static_cast<const T*>(x.data), static_cast<T*>(y.data));
  });
}

void run_stencil_adjoint(const Stencil& stencil, const ConstView& y, const MutableView& x,
                         index_t start) {
  assert(x.extents[stencil.axis] == stencil.step * y.extents[stencil.axis]);
  visit_inexact(x.dtype, "stencil", [&](auto tag) {
    using T = typename decltype(tag)::type;
    Filter<T>(stencil, y, x, start).adjoint(static_cast<const T*>(y.data), static_cast<T*>(x.data));
  });
}

}  // namespace palimpsest
