// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/phase_pass.hpp"

#include <algorithm>
#include <cstdlib>

#include "palimpsest/kernels/parallel.hpp"

namespace palimpsest {
namespace {

template <class T>
std::complex<T> times(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
template <class T>
std::complex<T> times(std::complex<T> a, T b) {
  return {a.real() * b, a.imag() * b};
}
template <class T>
T times(T a, T b) {
  return a * b;
}

// y[i] = x[i] * factor * table[i], the factor first; F is T or complex<T>. x may be y.
template <class T, class F>
void run_row(const std::complex<T>* x, index_t in_stride, std::complex<T>* y, index_t out_stride,
             index_t n, F factor, const F* table) {
  if (in_stride == 1 && out_stride == 1) {
    if (table == nullptr) {
#pragma GCC ivdep
      for (index_t i = 0; i < n; ++i) y[i] = times(x[i], factor);
    } else {
#pragma GCC ivdep
      for (index_t i = 0; i < n; ++i) y[i] = times(x[i], times(factor, table[i]));
    }
    return;
  }
  for (index_t i = 0; i < n; ++i) {
    const F phase = table == nullptr ? factor : times(factor, table[i]);
    y[i * out_stride] = times(x[i * in_stride], phase);
  }
}

template <class T>
void table_of(const typename PhasePass<T>::Axis& axis, const T*& table) {
  table = axis.signs.empty() ? nullptr : axis.signs.data();
}
template <class T>
void table_of(const typename PhasePass<T>::Axis& axis, const std::complex<T>*& table) {
  table = axis.phases.empty() ? nullptr : axis.phases.data();
}

// Rows [begin, end) along the last axis.
template <class T, class F>
void run_rows(const PhasePass<T>& pass, F constant, const std::complex<T>* x, std::complex<T>* y,
              index_t begin, index_t end) {
  const auto& inner = pass.axes.back();
  const F* inner_table = nullptr;
  table_of<T>(inner, inner_table);
  for (index_t row = begin; row < end; ++row) {
    F factor = constant;
    index_t rest = row, in = 0, out = 0;
    for (std::size_t i = pass.axes.size() - 1; i-- > 0;) {
      const auto& axis = pass.axes[i];
      const index_t position = rest % axis.extent;
      rest /= axis.extent;
      in += position * axis.in_stride;
      out += position * axis.out_stride;
      const F* table = nullptr;
      table_of<T>(axis, table);
      if (table != nullptr) factor = times(factor, table[position]);
    }
    run_row(x + in, inner.in_stride, y + out, inner.out_stride, inner.extent, factor, inner_table);
  }
}

}  // namespace

template <class T>
bool PhasePass<T>::is_identity() const {
  return constant == std::complex<T>(1) && std::all_of(axes.begin(), axes.end(), [](const Axis& a) {
           return a.signs.empty() && a.phases.empty();
         });
}

template <class T>
std::size_t PhasePass<T>::table_bytes() const {
  std::size_t bytes = 0;
  for (const Axis& axis : axes) {
    bytes += axis.signs.size() * sizeof(T) + axis.phases.size() * sizeof(std::complex<T>);
  }
  return bytes;
}

template <class T>
void PhasePass<T>::prepare() {
  std::erase_if(axes,
                [](const Axis& a) { return a.extent == 1 && a.signs.empty() && a.phases.empty(); });
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) {
    return std::abs(a.out_stride) > std::abs(b.out_stride);
  });
  for (std::size_t i = 1; i < axes.size();) {
    Axis& outer = axes[i - 1];
    const Axis& inner = axes[i];
    const bool plain =
        outer.signs.empty() && outer.phases.empty() && inner.signs.empty() && inner.phases.empty();
    if (plain && outer.in_stride == inner.in_stride * inner.extent &&
        outer.out_stride == inner.out_stride * inner.extent) {
      outer = {outer.extent * inner.extent, inner.in_stride, inner.out_stride};
      axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  if (axes.empty()) axes.emplace_back();
}

template <class T>
void PhasePass<T>::run(const std::complex<T>* x, std::complex<T>* y) const {
  index_t rows = 1;
  for (std::size_t i = 0; i + 1 < axes.size(); ++i) rows *= axes[i].extent;
  if (rows == 0 || axes.back().extent == 0) return;
  parallel_ranges(rows, kParallelGrain / axes.back().extent + 1, [&](index_t begin, index_t end) {
    if (is_real) {
      run_rows<T, T>(*this, constant.real(), x, y, begin, end);
    } else {
      run_rows<T, std::complex<T>>(*this, constant, x, y, begin, end);
    }
  });
}

template struct PhasePass<float>;
template struct PhasePass<double>;

}  // namespace palimpsest
