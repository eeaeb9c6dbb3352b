// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/matrices/singular_vectors.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "palimpsest/kernels/matrices/lapack.hpp"

namespace palimpsest {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class T>
constexpr bool kIsReal = std::is_floating_point_v<T>;
template <class T>
using Wide = std::conditional_t<kIsReal<T>, double, std::complex<double>>;

// Scratch: one dense matrix and its factors in double precision.
template <class W>
struct Work {
  // With `at` null only the size is computed.
  Work(index_t rows, index_t columns, std::byte* at) {
    const index_t k = std::min(rows, columns);
    const auto take = [&](std::size_t size) {
      std::byte* const here = at ? at + bytes : nullptr;
      bytes += (size + 63) / 64 * 64;
      return here;
    };
    const auto array = [&](index_t n) {
      return reinterpret_cast<W*>(take(static_cast<std::size_t>(n) * sizeof(W)));
    };
    a = array(rows * columns);
    u = array(rows * k);
    vh = array(k * columns);
    s = reinterpret_cast<double*>(take(static_cast<std::size_t>(k) * sizeof(double)));
    const std::size_t length = singular_values_work<W>(rows, columns);
    lapack = {take(length), length};
  }

  W *a, *u, *vh;
  double* s;
  std::span<std::byte> lapack;
  std::size_t bytes = 0;
};

// The offset of matrix `number`, counted along the leading axes.
index_t offset_of(const ConstView& v, index_t number, std::size_t n_leading) {
  index_t offset = 0;
  for (std::size_t axis = n_leading; axis-- > 0;) {
    offset += number % v.extents[axis] * v.strides[axis];
    number /= v.extents[axis];
  }
  return offset;
}

template <class W>
bool is_finite(const W* values, index_t n) {
  return std::all_of(values, values + n, [](const W& v) {
    return std::isfinite(std::real(v)) && std::isfinite(std::imag(v));
  });
}

template <class T>
void decompose(const ConstView& a, const MutableView& out, std::span<std::byte> scratch) {
  using W = Wide<T>;
  const std::size_t leading = a.rank() - 2;
  const index_t rows = a.extents[leading], columns = a.extents[leading + 1];
  const index_t k = std::min(rows, columns);
  index_t count = 1;
  for (std::size_t axis = 0; axis < leading; ++axis) count *= a.extents[axis];
  if (k == 0) return;
  const Work<W> w(rows, columns, scratch.data());
  const index_t in_row = a.strides[leading], in_column = a.strides[leading + 1];
  const index_t out_row = out.strides[leading], step = out.strides[leading + 1];
  for (index_t number = 0; number < count; ++number) {
    const T* const from = static_cast<const T*>(a.data) + offset_of(a, number, leading);
    for (index_t i = 0; i < rows; ++i) {
      for (index_t j = 0; j < columns; ++j) {
        w.a[i * columns + j] = W(from[i * in_row + j * in_column]);
      }
    }
    const bool is_sound = is_finite(w.a, rows * columns);
    if (is_sound) singular_values(rows, columns, w.a, w.u, w.s, w.vh, w.lapack);
    const auto narrow = [&](const W& v) { return static_cast<T>(is_sound ? v : W(kNaN)); };
    for (index_t i = 0; i < k; ++i) {
      T* to = static_cast<T*>(out.data) + offset_of(out, number, leading) + i * out_row;
      for (index_t j = 0; j < rows; ++j, to += step) *to = narrow(w.u[j * k + i]);
      *to = narrow(W(w.s[i]));
      to += step;
      for (index_t j = 0; j < columns; ++j, to += step) *to = narrow(w.vh[i * columns + j]);
    }
  }
}

}  // namespace

std::size_t singular_vectors_scratch(DType dtype, index_t rows, index_t columns) {
  return is_complex(dtype) ? Work<std::complex<double>>(rows, columns, nullptr).bytes
                           : Work<double>(rows, columns, nullptr).bytes;
}

void singular_vectors(const ConstView& a, const MutableView& out, std::span<std::byte> scratch) {
  visit_inexact(a.dtype, "singular_vectors",
                [&](auto tag) { decompose<typename decltype(tag)::type>(a, out, scratch); });
}

}  // namespace palimpsest
