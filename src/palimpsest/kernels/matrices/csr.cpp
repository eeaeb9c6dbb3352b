// SPDX-License-Identifier: Apache-2.0
// Indices are checked during the loop: one that is out of range is replaced by 0 and reported at
// the end.
#include "palimpsest/kernels/matrices/csr.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <complex>
#include <string>
#include <type_traits>

#include "palimpsest/base/error.hpp"
#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/kernels/arrays/strided_loop.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {
namespace {

template <class T>
inline constexpr bool is_complex_type = false;
template <class R>
inline constexpr bool is_complex_type<std::complex<R>> = true;

// The plain formulas: operators of std::complex would repair infinities.
template <class R>
R times(R a, R b) {
  return a * b;
}
template <class R>
std::complex<R> times(R a, std::complex<R> b) {
  return {a * b.real(), a * b.imag()};
}
template <class R>
std::complex<R> times(std::complex<R> a, std::complex<R> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
template <class V>
V conjugate(V v) {
  if constexpr (is_complex_type<V>) return {v.real(), -v.imag()};
  return v;
}

// A sparse matrix for the loops. V: dtype of the values, T: of the vectors, I: of the columns.
template <class V, class T, class I>
struct Rows {
  const V* values;
  const I* column;
  const index_t* start;
  index_t value_step, column_step, start_step;
  index_t n_values, n_rows, n_columns;
  static constexpr index_t kAhead = 512;  // elements that are asked for before they are read

  Rows(const SparseRows& m, index_t columns)
      : values(static_cast<const V*>(m.values.data)),
        column(static_cast<const I*>(m.column.data)),
        start(static_cast<const index_t*>(m.start.data)),
        value_step(m.values.strides[0]),
        column_step(m.column.strides[0]),
        start_step(m.start.strides[0]),
        n_values(m.values.extents[0]),
        n_rows(m.start.extents[0] - 1),
        n_columns(columns) {}

  // The range of the values of row r; false if it exceeds the values.
  bool range(index_t r, index_t& first, index_t& last) const {
    first = start[r * start_step];
    last = start[(r + 1) * start_step];
    if (first >= 0 && first <= last && last <= n_values) return true;
    first = last = 0;
    return false;
  }
  index_t column_at(index_t k, bool& is_right) const {
    const index_t c{column[k * column_step]};
    const bool fits = static_cast<std::uint64_t>(c) < static_cast<std::uint64_t>(n_columns);
    is_right &= fits;
    return fits ? c : 0;
  }
  V value_at(index_t k) const { return values[k * value_step]; }

  // Even and odd terms have separate sums, so an addition does not wait for the previous one.
  bool multiply(const T* x, index_t x_step, T* y, index_t y_step, index_t begin,
                index_t end) const {
    if (value_step != 1 || column_step != 1 || x_step != 1) {
      return multiply_rows(x, x_step, y, y_step, begin, end);
    }
    // Constants in place of strides save a fifth of the time.
    Rows dense = *this;
    dense.value_step = dense.column_step = 1;
    return dense.multiply_rows(x, 1, y, y_step, begin, end);
  }
  // Inlined twice.
  [[gnu::always_inline]] bool multiply_rows(const T* x, index_t x_step, T* y, index_t y_step,
                                            index_t begin, index_t end) const {
    bool is_right = true;
    for (index_t r = begin; r < end; ++r) {
      index_t k, last;
      is_right &= range(r, k, last);
      __builtin_prefetch(values + (k + kAhead) * value_step);
      __builtin_prefetch(column + (k + kAhead) * column_step);
      T even{}, odd{};
      for (; k + 1 < last; k += 2) {
        even += times(value_at(k), x[column_at(k, is_right) * x_step]);
        odd += times(value_at(k + 1), x[column_at(k + 1, is_right) * x_step]);
      }
      if (k < last) even += times(value_at(k), x[column_at(k, is_right) * x_step]);
      y[r * y_step] = even + odd;
    }
    return is_right;
  }
  bool multiply_adjoint(const T* y, index_t y_step, T* x, index_t x_step) const {
    bool is_right = true;
    for (index_t r = 0; r < n_rows; ++r) {
      index_t k, last;
      is_right &= range(r, k, last);
      const T factor = y[r * y_step];
      for (; k < last; ++k) {
        x[column_at(k, is_right) * x_step] += times(conjugate(value_at(k)), factor);
      }
    }
    return is_right;
  }
};

// The loop over batch elements of both vectors.
StridedLoop<2> batch_of(const ConstView& from, const MutableView& to) {
  StridedLoop<2> batch;
  batch.set_extents(from.extents.first(from.rank() - 1));
  batch.add_operand(from.data, from.strides.first(from.rank() - 1), item_size(from.dtype));
  batch.add_operand(to.data, to.strides.first(to.rank() - 1), item_size(to.dtype));
  return batch;
}

[[noreturn]] void refuse(const SparseRows& m, index_t columns, std::string_view who) {
  const std::string prefix = "[" + std::string(who) + "] ";
  const auto* const start = static_cast<const index_t*>(m.start.data);
  for (index_t k = 0; k < m.column.extents[0]; ++k) {
    const index_t i = k * m.column.strides[0];
    const index_t c = m.column.dtype == DType::int32
                          ? index_t{static_cast<const std::int32_t*>(m.column.data)[i]}
                          : static_cast<const index_t*>(m.column.data)[i];
    if (c >= 0 && c < columns) continue;
    throw ValueError(prefix + "column: index out of range: got " + std::to_string(c) +
                     " at element " + std::to_string(k) + ", expected 0.." +
                     std::to_string(columns - 1));
  }
  throw ValueError(prefix + "row_start: got " + std::to_string(start[0]) +
                   " and further numbers, expected ascending numbers from 0 to " +
                   std::to_string(m.values.extents[0]));
}

template <class V, class T, class I>
void multiply(const SparseRows& matrix, const ConstView& x, const MutableView& y,
              std::string_view who) {
  const index_t columns = x.extents.back(), x_step = x.strides.back(), y_step = y.strides.back();
  const Rows<V, T, I> rows(matrix, columns);
  const StridedLoop<2> batch = batch_of(x, y);
  if (columns == 0 && rows.n_values > 0) refuse(matrix, columns, who);
  const index_t n = batch.count(), work = rows.n_values / std::max<index_t>(rows.n_rows, 1) + 1;
  std::atomic<bool> is_right{true};
  parallel_ranges(n * rows.n_rows, kParallelGrain / work + 1, [&](index_t begin, index_t end) {
    while (begin < end) {
      const index_t b = begin / rows.n_rows, first = begin % rows.n_rows;
      const index_t last = std::min(rows.n_rows, first + end - begin);
      const auto* const from =
          reinterpret_cast<const T*>(batch.data[0] + batch.offset(0, 0, batch.rank, b));
      auto* const to = reinterpret_cast<T*>(batch.data[1] + batch.offset(1, 0, batch.rank, b));
      if (!rows.multiply(from, x_step, to, y_step, first, last)) is_right = false;
      begin += last - first;
    }
  });
  if (!is_right) refuse(matrix, columns, who);
}

template <class V, class T, class I>
void multiply_adjoint(const SparseRows& matrix, const ConstView& y, const MutableView& x,
                      std::string_view who) {
  const index_t columns = x.extents.back(), x_step = x.strides.back(), y_step = y.strides.back();
  const Rows<V, T, I> rows(matrix, columns);
  const StridedLoop<2> batch = batch_of(y, x);
  const T zero{};
  strided_fill(&zero, x);
  if (columns == 0 && rows.n_values > 0) refuse(matrix, columns, who);
  std::atomic<bool> is_right{true};
  parallel_ranges(
      batch.count(), kParallelGrain / (rows.n_values + 1) + 1, [&](index_t begin, index_t end) {
        for (index_t b = begin; b < end; ++b) {
          const auto* const from =
              reinterpret_cast<const T*>(batch.data[0] + batch.offset(0, 0, batch.rank, b));
          auto* const to = reinterpret_cast<T*>(batch.data[1] + batch.offset(1, 0, batch.rank, b));
          if (!rows.multiply_adjoint(from, y_step, to, x_step)) is_right = false;
        }
      });
  if (!is_right) refuse(matrix, columns, who);
}

// Calls f with the types of values, vectors and columns.
template <class F>
void with_types(DType values, DType vectors, DType columns, F&& f) {
  const auto both = [&](auto v, auto t) {
    return columns == DType::int32 ? f(v, t, TypeTag<std::int32_t>{}) : f(v, t, TypeTag<index_t>{});
  };
  const auto real = [&]<class R>(TypeTag<R>) {
    if (!is_complex(vectors)) return both(TypeTag<R>{}, TypeTag<R>{});
    if (!is_complex(values)) return both(TypeTag<R>{}, TypeTag<std::complex<R>>{});
    return both(TypeTag<std::complex<R>>{}, TypeTag<std::complex<R>>{});
  };
  assert(real_of(values) == real_of(vectors) && (is_complex(vectors) || !is_complex(values)));
  real_of(vectors) == DType::float32 ? real(TypeTag<float>{}) : real(TypeTag<double>{});
}

}  // namespace

void run_sparse_product(const SparseRows& matrix, const ConstView& x, const MutableView& y,
                        std::string_view who) {
  with_types(matrix.values.dtype, x.dtype, matrix.column.dtype, [&](auto v, auto t, auto i) {
    multiply<typename decltype(v)::type, typename decltype(t)::type, typename decltype(i)::type>(
        matrix, x, y, who);
  });
}

void run_sparse_adjoint(const SparseRows& matrix, const ConstView& y, const MutableView& x,
                        std::string_view who) {
  with_types(matrix.values.dtype, y.dtype, matrix.column.dtype, [&](auto v, auto t, auto i) {
    multiply_adjoint<typename decltype(v)::type, typename decltype(t)::type,
                     typename decltype(i)::type>(matrix, y, x, who);
  });
}

}  // namespace palimpsest
