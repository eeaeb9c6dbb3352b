// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/blocks.hpp"

#include <algorithm>
#include <cassert>

#include "palimpsest/base/strided_copy.hpp"
#include "palimpsest/kernels/parallel.hpp"

namespace palimpsest {
namespace {

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
    if (in == 1 && out == 1) {
      for (index_t p = 0; p < size; ++p) to[p] += from[p];
    } else {
      for (index_t p = 0; p < size; ++p) to[p * out] += from[p * in];
    }
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
