// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/blocks.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <type_traits>

#include "palimpsest/base/strided_copy.hpp"
#include "palimpsest/kernels/parallel.hpp"

namespace palimpsest {
namespace {

// Rows within blocks are short, often a cache line or less: for common lengths the loop is called with
// a constant, which makes straight code of a row.
template <class Loop>
void by_length(index_t n, Loop loop) {
  switch (n) {
    case 2:
      return loop(std::integral_constant<index_t, 2>());
    case 4:
      return loop(std::integral_constant<index_t, 4>());
    case 6:
      return loop(std::integral_constant<index_t, 6>());
    case 8:
      return loop(std::integral_constant<index_t, 8>());
    case 12:
      return loop(std::integral_constant<index_t, 12>());
    case 16:
      return loop(std::integral_constant<index_t, 16>());
    case 32:
      return loop(std::integral_constant<index_t, 32>());
    default:
      return loop(n);
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
    if (row_bytes_ % 8 != 0) return copy_blocks(from, to, row_bytes_);
    by_length(row_bytes_ / 8, [&](auto words) {
      if constexpr (std::is_same_v<decltype(words), index_t>) {
        copy_blocks(from, to, row_bytes_);
      } else {
        copy_blocks(from, to, std::integral_constant<index_t, 8 * decltype(words)::value>());
      }
    });
  }

  // The blocks of a line; the length of their rows may be a constant.
  template <class Bytes>
  void copy_blocks(const std::byte* from, std::byte* to, Bytes bytes) const {
    const std::size_t last = batch_ + D_ - 1;
    const index_t in = stride_[D_ - 1] * item_, out = y_.strides[last] * item_;
    for (index_t m = 0; m < y_.extents[last]; ++m, from += in, to += out) {
      if (D_ == 1) {
        std::memcpy(to, from, static_cast<std::size_t>(index_t{bytes}));
      } else {
        copy_block(from, to, 0, bytes);
      }
    }
  }

  template <class Bytes>
  void copy_block(const std::byte* from, std::byte* to, std::size_t d, Bytes bytes) const {
    const index_t in = x_.strides[batch_ + d] * item_, out = y_.strides[batch_ + D_ + d] * item_;
    const index_t n = y_.extents[batch_ + D_ + d];
    if (d + 2 < D_) {
      for (index_t p = 0; p < n; ++p) copy_block(from + p * in, to + p * out, d + 1, bytes);
      return;
    }
    for (index_t p = 0; p < n; ++p) {
      std::memcpy(to + p * out, from + p * in, static_cast<std::size_t>(index_t{bytes}));
    }
  }

  const ConstView& x_;
  const MutableView& y_;
  std::span<const index_t> stride_;
  std::size_t D_, batch_;
  index_t item_ = 0, row_bytes_ = 0;
};

// Rows of dense numbers; what run() is called with may be constants.
template <class Real>
struct Rows {
  const Real* from;
  Real* to;
  index_t in, out, count;

  template <class Added, class Stored>
  void run(Added added, Stored stored) const {
    const Real* source = from;
    Real* target = to;
    for (index_t r = 0; r < count; ++r, source += in, target += out) {
      add(source, target, added);
      const index_t a = added, b = stored;
      std::memcpy(target + a, source + a, static_cast<std::size_t>(b) * sizeof(Real));
    }
  }

 private:
  // In vectors, which GCC does not find in a loop that it has unrolled.
  template <class Count>
  static void add(const Real* source, Real* target, Count count) {
    using Vector [[gnu::vector_size(16)]] = Real;
    constexpr index_t kLanes = index_t{16 / sizeof(Real)};
    const index_t n = count;
    index_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      Vector a, b;
      std::memcpy(&a, target + i, sizeof a);
      std::memcpy(&b, source + i, sizeof b);
      a += b;
      std::memcpy(target + i, &a, sizeof a);
    }
    for (; i < n; ++i) target[i] += source[i];
  }
};

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};

// Sums blocks up in the order in which they lie in memory, so that they are read in one stream; each
// element is a sum in that order. A task owns a slab of the array, some positions along the first axis
// of blocks, and reads of each block what falls into it: no two tasks write one element, and where
// slabs end changes no bit. D axes of blocks and of elements within them.
//
// The first block that has an element is the one before which none has it along any axis: it stores
// what later ones add to. Only where there are elements between blocks is the array cleared.
template <class T>
class OverlapAdd {
 public:
  OverlapAdd(const ConstView& y, std::span<const index_t> stride, const MutableView& x)
      : y_(y), x_(x), stride_(stride), D_(stride.size()), batch_(x.rank() - stride.size()) {
    for (std::size_t d = 0; d < D_; ++d) {
      const index_t end = (y.extents[batch_ + d] - 1) * stride[d] + size(d);
      has_gaps_ = has_gaps_ || stride[d] > size(d) || end < x.extents[batch_ + d];
    }
  }

  void run() const {
    index_t batches = 1, across = 1;  // of elements at one position along the first axis
    for (std::size_t k = 0; k < batch_; ++k) batches *= x_.extents[k];
    for (std::size_t k = batch_ + 1; k < x_.rank(); ++k) across *= x_.extents[k];
    const index_t n = x_.extents[batch_];
    if (batches == 0 || across == 0 || n == 0) return;
    const index_t height = std::max((kParallelGrain + across - 1) / across, kSlabBlocks * size(0));
    const index_t slabs = (n + height - 1) / height;
    parallel_ranges(batches * slabs, 1, [&](index_t first, index_t last) {
      for (index_t i = first; i < last; ++i) {
        const index_t begin = i % slabs * height;
        add_slab(i / slabs, begin, std::min(n, begin + height));
      }
    });
  }

 private:
  // A slab holds so many blocks at least: at its ends blocks are read in parts.
  static constexpr index_t kSlabBlocks = 4;

  // Of the block at hand: how many of its elements along each axis an earlier block has too.
  using Covered = std::array<index_t, kMaxRank>;

  index_t size(std::size_t d) const { return y_.extents[batch_ + D_ + d]; }
  index_t covered(std::size_t d, index_t m) const {
    return m == 0 ? 0 : std::max<index_t>(0, size(d) - stride_[d]);
  }

  void add_slab(index_t number, index_t begin, index_t end) const {
    const T* from = static_cast<const T*>(y_.data);
    T* to = static_cast<T*>(x_.data);
    for (std::size_t k = batch_; k-- > 0;) {
      const index_t position = number % x_.extents[k];
      number /= x_.extents[k];
      from += position * y_.strides[k];
      to += position * x_.strides[k];
    }
    if (has_gaps_) clear(to, 0, begin, end);
    Covered covers{};
    const index_t first = begin < size(0) ? 0 : (begin - size(0)) / stride_[0] + 1;
    for (index_t m = first; m < y_.extents[batch_] && m * stride_[0] < end; ++m) {
      const index_t start = m * stride_[0];
      covers[0] = covered(0, m);
      add_blocks(from + m * y_.strides[batch_], to + start * x_.strides[batch_], 1,
                 std::max(begin, start) - start, std::min(end - start, size(0)), covers);
    }
  }

  void clear(T* to, std::size_t d, index_t begin, index_t end) const {
    const index_t step = x_.strides[batch_ + d];
    for (index_t n = begin; n < end; ++n) {
      if (d + 1 < D_) {
        clear(to + n * step, d + 1, 0, x_.extents[batch_ + d + 1]);
      } else {
        to[n * step] = T(0);
      }
    }
  }

  // The blocks at one position along the first axis, of each its elements begin .. end - 1 along it.
  void add_blocks(const T* from, T* to, std::size_t d, index_t begin, index_t end,
                  Covered& covers) const {
    if (d < D_ - 1) {
      for (index_t m = 0; m < y_.extents[batch_ + d]; ++m) {
        covers[d] = covered(d, m);
        add_blocks(from + m * y_.strides[batch_ + d], to + m * stride_[d] * x_.strides[batch_ + d],
                   d + 1, begin, end, covers);
      }
      return;
    }
    const bool is_dense = y_.strides[y_.rank() - 1] == 1 && x_.strides[x_.rank() - 1] == 1;
    if (!is_dense) return add_line(from, to, d, begin, end, covers, NotDense());
    by_length(size(D_ - 1) * kParts,
              [&](auto length) { add_line(from, to, d, begin, end, covers, length); });
  }

  // The blocks along the last axis, of one axis also those at one position. Rows of `length` real
  // numbers, which may be a constant.
  template <class Length>
  void add_line(const T* from, T* to, std::size_t d, index_t begin, index_t end, Covered& covers,
                Length length) const {
    if (d == D_) return add_block(from, to, 0, begin, end, covers, true, length);
    const index_t in = y_.strides[batch_ + d], out = stride_[d] * x_.strides[batch_ + d];
    const index_t n = y_.extents[batch_ + d];
    for (index_t m = 0; m < n; ++m) {
      covers[d] = covered(d, m);
      add_block(from + m * in, to + m * out, 0, begin, end, covers, true, length);
    }
  }

  // Elements begin .. end - 1 along axis d of a block; `is_first` says so of the axes before.
  template <class Length>
  void add_block(const T* from, T* to, std::size_t d, index_t begin, index_t end,
                 const Covered& covers, bool is_first, Length length) const {
    const index_t in = y_.strides[batch_ + D_ + d], out = x_.strides[batch_ + d];
    const index_t later = is_first ? std::clamp(covers[d], begin, end) : end;
    if (d + 1 == D_) {
      const index_t n = later - begin;
      return run_rows(from + begin * in, 0, to + begin * out, 0, 1, n, end - later, length);
    }
    if (d + 2 == D_) {
      const index_t n = size(d + 1), both = std::min(covers[d + 1], n), rows = later - begin;
      run_rows(from + begin * in, in, to + begin * out, out, rows, n, 0, length);
      return run_rows(from + later * in, in, to + later * out, out, end - later, both, n - both,
                      length);
    }
    for (index_t p = begin; p < end; ++p) {
      add_block(from + p * in, to + p * out, d + 1, 0, size(d + 1), covers, p >= later, length);
    }
  }

  // Of each row along the last axis adds `added` elements to what is there and stores `stored`.
  template <class Length>
  void run_rows(const T* from, index_t in, T* to, index_t out, index_t rows, index_t added,
                index_t stored, [[maybe_unused]] Length length) const {
    if constexpr (std::is_same_v<Length, NotDense>) {
      const index_t in_step = y_.strides[y_.rank() - 1], out_step = x_.strides[x_.rank() - 1];
      for (index_t r = 0; r < rows; ++r) {
        for (index_t p = 0; p < added + stored; ++p) {
          const T value = from[r * in + p * in_step];
          T& place = to[r * out + p * out_step];
          place = p < added ? place + value : value;
        }
      }
    } else {
      // An array of complex numbers is one of real numbers.
      const Rows<Real> all{reinterpret_cast<const Real*>(from), reinterpret_cast<Real*>(to),
                           in * kParts, out * kParts, rows};
      const index_t a = added * kParts, b = stored * kParts;
      if constexpr (!std::is_same_v<Length, index_t>) {
        constexpr std::integral_constant<index_t, Length::value / 2> kHalf{};
        if (a == length && b == 0) return all.run(length, kNone);
        if (a == 0 && b == length) return all.run(kNone, length);
        if (a == kHalf && b == kHalf) return all.run(kHalf, kHalf);
      }
      all.run(a, b);
    }
  }

  struct NotDense {};
  using Real = typename RealOf<T>::type;
  static constexpr index_t kParts = index_t{sizeof(T) / sizeof(Real)};
  static constexpr std::integral_constant<index_t, 0> kNone{};

  const ConstView& y_;
  const MutableView& x_;
  std::span<const index_t> stride_;
  std::size_t D_, batch_;
  bool has_gaps_ = false;
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
