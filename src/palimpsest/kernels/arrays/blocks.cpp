// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/arrays/blocks.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <type_traits>

#include "palimpsest/base/cache_size.hpp"
#include "palimpsest/copy/stream_store.hpp"
#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"
#include "palimpsest/kernels/reduce/short_rows.hpp"

namespace palimpsest {
namespace {

// Copies blocks with dense rows on both sides, in order of the result in memory.
class BlockCopy {
 public:
  BlockCopy(const ConstView& x, std::span<const index_t> stride, const MutableView& y)
      : x_(x), y_(y), stride_(stride), D_(stride.size()), batch_(x.rank() - stride.size()) {
    item_ = static_cast<index_t>(item_size(x.dtype));
    row_bytes_ = y.extents[y.rank() - 1] * item_;
    is_streamed_ = row_bytes_ % kStreamUnit == 0 && fills_lines(y);
  }

  static bool applies(const ConstView& x, const MutableView& y) {
    return x.strides[x.rank() - 1] == 1 && y.strides[y.rank() - 1] == 1;
  }

  void run() const {
    index_t lines = 1, length = 1;  // blocks along the last axis; elements of a row
    const std::size_t last = batch_ + D_ - 1;
    for (std::size_t k = 0; k < last; ++k) lines *= y_.extents[k];
    for (std::size_t k = last; k < y_.rank(); ++k) length *= y_.extents[k];
    if (lines == 0 || length == 0) return;
    parallel_ranges(lines, std::max<index_t>(1, kParallelGrain / length),
                    [&](index_t first, index_t end) {
                      for (index_t line = first; line < end; ++line) copy_line_at(line);
                      if (is_streamed_) finish_streams();
                    });
  }

 private:
  // True if the result is one dense run of memory that is too large for the caches of a core.
  bool fills_lines(const MutableView& y) const {
    index_t bytes = item_;
    for (const index_t n : y.extents) bytes *= n;
    return std::ranges::equal(y.strides, contiguous_strides(y.extents)) && on_line(y.data) &&
           bytes >= line_streaming_bytes();
  }

  void copy_line_at(index_t number) const {
    const auto* from = static_cast<const std::byte*>(x_.data);
    auto* to = static_cast<std::byte*>(y_.data);
    const std::size_t last = batch_ + D_ - 1;
    for (std::size_t k = last; k-- > 0;) {
      const index_t position = number % y_.extents[k];
      number /= y_.extents[k];
      to += position * y_.strides[k] * item_;
      from += position * x_.strides[k] * item_ * (k < batch_ ? 1 : stride_[k - batch_]);
    }
    constexpr index_t kWord = 4;
    if (row_bytes_ % kWord != 0) return copy_line(from, to, row_bytes_);
    with_length(row_bytes_ / kWord, [&](auto words) {
      if constexpr (std::is_same_v<decltype(words), index_t>) {
        copy_line(from, to, row_bytes_);
      } else {
        copy_line(from, to, std::integral_constant<index_t, kWord* decltype(words)::value>());
      }
    });
  }

  // The blocks of a line; the length of their rows may be a constant.
  template <class Bytes>
  void copy_line(const std::byte* from, std::byte* to, Bytes bytes) const {
    if (is_streamed_) {
      copy_blocks(from, to, [=](auto* row, auto* source) { stream(row, source, bytes); });
    } else {
      copy_blocks(from, to, [=](auto* row, auto* source) { copy_row(row, source, bytes); });
    }
  }

  template <class Copy>
  void copy_blocks(const std::byte* from, std::byte* to, Copy copy) const {
    const std::size_t last = batch_ + D_ - 1;
    const index_t in = stride_[D_ - 1] * item_, out = y_.strides[last] * item_;
    const index_t n = y_.extents[last];
    if (D_ == 1) return copy_rows(from, in, to, out, n, copy);
    for (index_t m = 0; m < n; ++m) copy_block(from + m * in, to + m * out, 0, copy);
  }

  template <class Copy>
  void copy_block(const std::byte* from, std::byte* to, std::size_t d, Copy& copy) const {
    const index_t in = x_.strides[batch_ + d] * item_, out = y_.strides[batch_ + D_ + d] * item_;
    const index_t n = y_.extents[batch_ + D_ + d];
    if (d + 2 == D_) return copy_rows(from, in, to, out, n, copy);
    for (index_t p = 0; p < n; ++p) copy_block(from + p * in, to + p * out, d + 1, copy);
  }

  template <class Copy>
  static void copy_rows(const std::byte* from, index_t in, std::byte* to, index_t out,
                        index_t count, Copy& copy) {
    for (index_t r = 0; r < count; ++r) copy(to + r * out, from + r * in);
  }

  const ConstView& x_;
  const MutableView& y_;
  std::span<const index_t> stride_;
  std::size_t D_, batch_;
  index_t item_ = 0, row_bytes_ = 0;
  bool is_streamed_ = false;
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

}  // namespace palimpsest
