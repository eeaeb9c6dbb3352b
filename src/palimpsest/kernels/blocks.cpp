// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/blocks.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "palimpsest/base/strided_copy.hpp"
#include "palimpsest/kernels/parallel.hpp"

namespace palimpsest {
namespace {

// Rows within blocks are short, often a cache line or less: those of common lengths are copied and
// added by straight code. What is called has the constant that it is called with.
template <class Straight, class Loop>
void by_length(index_t n, Straight straight, Loop loop) {
  switch (n) {
    case 4:
      return straight(std::integral_constant<index_t, 4>());
    case 8:
      return straight(std::integral_constant<index_t, 8>());
    case 12:
      return straight(std::integral_constant<index_t, 12>());
    case 16:
      return straight(std::integral_constant<index_t, 16>());
    case 32:
      return straight(std::integral_constant<index_t, 32>());
    default:
      return loop();
  }
}

// Copies blocks whose rows are dense on both sides, in the order in which the results lie.
class BlockCopy {
 public:
  BlockCopy(const ConstView& x, std::span<const index_t> stride, const MutableView& y)
      : x_(x), y_(y), stride_(stride), D_(stride.size()), batch_(x.rank() - stride.size()) {
    item_ = static_cast<index_t>(item_size(x.dtype));
    row_bytes_ = y.extents[y.rank() - 1] * item_;
  }

  static bool applies(const ConstView& x, const MutableView& y) {
    return x.strides[x.rank() - 1] == 1 && y.strides[y.rank() - 1] == 1;
  }

  void run() const {
    index_t lines = 1, length = 1;  // of blocks along the last axis; of elements in each
    const std::size_t last = batch_ + D_ - 1;
    for (std::size_t k = 0; k < last; ++k) lines *= y_.extents[k];
    for (std::size_t k = last; k < y_.rank(); ++k) length *= y_.extents[k];
    if (lines == 0 || length == 0) return;
    parallel_ranges(lines, std::max<index_t>(1, kParallelGrain / length),
                    [&](index_t first, index_t end) {
                      for (index_t line = first; line < end; ++line) copy_line(line);
                    });
  }

 private:
  void copy_line(index_t number) const {
    const auto* from = static_cast<const std::byte*>(x_.data);
    auto* to = static_cast<std::byte*>(y_.data);
    const std::size_t last = batch_ + D_ - 1;
    for (std::size_t k = last; k-- > 0;) {
      const index_t position = number % y_.extents[k];
      number /= y_.extents[k];
      to += position * y_.strides[k] * item_;
      from += position * x_.strides[k] * item_ * (k < batch_ ? 1 : stride_[k - batch_]);
    }
    for (index_t m = 0; m < y_.extents[last]; ++m) {
      copy_block(from + m * stride_[D_ - 1] * item_, to + m * y_.strides[last] * item_, 0);
    }
  }

  void copy_block(const std::byte* from, std::byte* to, std::size_t d) const {
    const index_t in = x_.strides[batch_ + d] * item_, out = y_.strides[batch_ + D_ + d] * item_;
    const index_t n = y_.extents[batch_ + D_ + d];
    if (d + 1 == D_) return copy_rows(from, in, to, out, 1);
    if (d + 2 == D_) return copy_rows(from, in, to, out, n);
    for (index_t p = 0; p < n; ++p) copy_block(from + p * in, to + p * out, d + 1);
  }

  void copy_rows(const std::byte* from, index_t in, std::byte* to, index_t out, index_t n) const {
    const auto bytes = static_cast<std::size_t>(row_bytes_);
    by_length(
        row_bytes_ % 8 == 0 ? row_bytes_ / 8 : 0,
        [=](auto words) {
          for (index_t p = 0; p < n; ++p) std::memcpy(to + p * out, from + p * in, 8 * words());
        },
        [=] {
          for (index_t p = 0; p < n; ++p) std::memcpy(to + p * out, from + p * in, bytes);
        });
  }

  const ConstView& x_;
  const MutableView& y_;
  std::span<const index_t> stride_;
  std::size_t D_, batch_;
  index_t item_ = 0, row_bytes_ = 0;
};

template <class Real>
void add_run(const Real* __restrict from, Real* __restrict to, index_t n) {
  for (index_t i = 0; i < n; ++i) to[i] += from[i];
}

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};

// Sums blocks up, one line of the array at a time. D axes of blocks and of elements within them.
template <class T>
class OverlapAdd {
 public:
  OverlapAdd(const ConstView& y, std::span<const index_t> stride, const MutableView& x)
      : y_(y), x_(x), stride_(stride), D_(stride.size()), batch_(x.rank() - stride.size()) {}

  void run() const {
    index_t lines = 1;
    for (std::size_t k = 0; k + 1 < x_.rank(); ++k) lines *= x_.extents[k];
    const index_t grain = std::max<index_t>(1, kParallelGrain / std::max<index_t>(length(), 1));
    parallel_ranges(lines, grain, [&](index_t first, index_t last) {
      for (index_t line = first; line < last; ++line) add_line(line);
    });
  }

 private:
  index_t length() const { return x_.extents[x_.rank() - 1]; }

  void add_line(index_t number) const {
    Extents position(x_.rank() - 1, 0);
    const T* from = static_cast<const T*>(y_.data);
    T* to = static_cast<T*>(x_.data);
    for (std::size_t k = x_.rank() - 1; k-- > 0;) {
      position[k] = number % x_.extents[k];
      number /= x_.extents[k];
      to += position[k] * x_.strides[k];
      if (k < batch_) from += position[k] * y_.strides[k];
    }
    const index_t step = x_.strides[x_.rank() - 1];
    for (index_t n = 0; n < length(); ++n) to[n * step] = T(0);
    add_blocks(from, to, position, 0);
  }

  // All blocks that meet the line, axis by axis.
  void add_blocks(const T* from, T* to, const Extents& position, std::size_t d) const {
    const std::size_t m_axis = batch_ + d, p_axis = m_axis + D_;
    const index_t count = y_.extents[m_axis], size = y_.extents[p_axis];
    if (d + 1 == D_) {
      for (index_t m = 0; m < count; ++m) {
        add_row(from + m * y_.strides[m_axis], to + m * stride_[d] * x_.strides[x_.rank() - 1],
                size);
      }
      return;
    }
    const index_t n = position[m_axis];
    const index_t first = n < size ? 0 : (n - size) / stride_[d] + 1;
    const index_t last = std::min(count - 1, n / stride_[d]);
    for (index_t m = first; m <= last; ++m) {
      add_blocks(from + m * y_.strides[m_axis] + (n - m * stride_[d]) * y_.strides[p_axis], to,
                 position, d + 1);
    }
  }

  void add_row(const T* from, T* to, index_t size) const {
    const index_t in = y_.strides[y_.rank() - 1], out = x_.strides[x_.rank() - 1];
    if (in != 1 || out != 1) {
      for (index_t p = 0; p < size; ++p) to[p * out] += from[p * in];
      return;
    }
    // An array of complex numbers is one of real numbers.
    using Real = typename RealOf<T>::type;
    const auto* a = reinterpret_cast<const Real*>(from);
    auto* sum = reinterpret_cast<Real*>(to);
    const index_t n = size * index_t{sizeof(T) / sizeof(Real)};
    by_length(
        n, [=](auto count) { add_run(a, sum, count()); }, [=] { add_run(a, sum, n); });
  }

  const ConstView& y_;
  const MutableView& x_;
  std::span<const index_t> stride_;
  std::size_t D_, batch_;
};

}  // namespace

void run_array_to_blocks(const ConstView& x, std::span<const index_t> stride,
                         const MutableView& y) {
  const std::size_t n = stride.size(), batch = x.rank() - n;
  assert(y.rank() == x.rank() + n);
  if (BlockCopy::applies(x, y)) return BlockCopy(x, stride, y).run();
  Strides strides(y.rank(), 0);
  for (std::size_t k = 0; k < x.rank(); ++k) {
    strides[k] = k < batch ? x.strides[k] : x.strides[k] * stride[k - batch];
    if (k >= batch) strides[k + n] = x.strides[k];
  }
  strided_copy({x.data, x.dtype, y.extents, strides}, y);
}

void run_blocks_to_array(const ConstView& y, std::span<const index_t> stride,
                         const MutableView& x) {
  assert(y.rank() == x.rank() + stride.size() && !stride.empty());
  visit_inexact(x.dtype, "blocks_to_array",
                [&](auto tag) { OverlapAdd<typename decltype(tag)::type>(y, stride, x).run(); });
}

}  // namespace palimpsest
