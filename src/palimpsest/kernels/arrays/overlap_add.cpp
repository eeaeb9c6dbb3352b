// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cassert>
#include <complex>
#include <cstring>
#include <type_traits>

#include "palimpsest/base/cache_size.hpp"
#include "palimpsest/copy/stream_store.hpp"
#include "palimpsest/kernels/arrays/blocks.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"
#include "palimpsest/kernels/reduce/short_rows.hpp"

namespace palimpsest {
namespace {

// Three classes write the rows of blocks, `length` elements each. whole() adds all elements of a
// row to the array. start() adds the first `added` elements and stores the others. Both take
// `count` rows, `in` and `out` elements apart.

// Prefetch distance in bytes; blocks lie one after another. For longer rows the hardware prefetcher
// suffices.
constexpr index_t kAhead = 4096;
inline void ask_ahead(const void* row, index_t bytes) {
  if (bytes <= kCacheLine) __builtin_prefetch(static_cast<const char*>(row) + kAhead);
}

// Dense rows. Each number may be a compile-time constant.
template <class T, class Length, class Added>
class DenseRows {
 public:
  DenseRows(Length length, Added added) : length_(length), added_(added) {}

  void whole(const T* from, index_t in, T* to, index_t out, index_t count) const {
    for (index_t r = 0; r < count; ++r, from += in, to += out) {
      ask_ahead(from, length_ * index_t{sizeof(T)});
      add(from, to, length_);
    }
  }

  void start(const T* from, index_t in, T* to, index_t out, index_t count) const {
    const index_t added = added_, stored = length_ - added;
    for (index_t r = 0; r < count; ++r, from += in, to += out) {
      ask_ahead(from, length_ * index_t{sizeof(T)});
      add(from, to, added_);
      copy_row(reinterpret_cast<std::byte*>(to + added),
               reinterpret_cast<const std::byte*>(from + added), stored * index_t{sizeof(T)});
    }
  }

 private:
  // In explicit vectors: GCC does not vectorize the loop once it is unrolled.
  template <class Count>
  static void add(const T* source, T* target, Count count) {
    constexpr index_t kLanes = index_t{16 / sizeof(T)};
    const index_t n = count;
    index_t i = 0;
    for (; i + kLanes <= n; i += kLanes) add_vector<kLanes>(source + i, target + i);
    if (kLanes > 2 && i + 2 <= n) {
      add_vector<2>(source + i, target + i);
      i += 2;
    }
    for (; i < n; ++i) target[i] += source[i];
  }
  template <index_t kLanes>
  static void add_vector(const T* source, T* target) {
    using Vector [[gnu::vector_size(kLanes * sizeof(T))]] = T;
    Vector a, b;
    std::memcpy(&a, target, sizeof a);
    std::memcpy(&b, source, sizeof b);
    a += b;
    std::memcpy(target, &a, sizeof a);
  }

  [[no_unique_address]] Length length_;
  [[no_unique_address]] Added added_;
};

template <class T>
class StridedRows {
 public:
  StridedRows(index_t length, index_t added, index_t in_step, index_t out_step)
      : length_(length), added_(added), in_step_(in_step), out_step_(out_step) {}

  void whole(const T* from, index_t in, T* to, index_t out, index_t count) const {
    run(from, in, to, out, count, length_);
  }
  void start(const T* from, index_t in, T* to, index_t out, index_t count) const {
    run(from, in, to, out, count, added_);
  }

 private:
  void run(const T* from, index_t in, T* to, index_t out, index_t count, index_t added) const {
    for (index_t r = 0; r < count; ++r, from += in, to += out) {
      for (index_t p = 0; p < length_; ++p) {
        const T value = from[p * in_step_];
        T& place = to[p * out_step_];
        place = p < added ? place + value : value;
      }
    }
  }

  index_t length_, added_, in_step_, out_step_;
};

// Streams rows to which nothing is added, for neighbouring blocks that together fill cache lines.
constexpr index_t kWord = 8;
template <class T, class Words>
class StreamedRows {
 public:
  StreamedRows(Words words, index_t blocks, index_t block_step)
      : words_(words), blocks_(blocks), step_(block_step) {}

  void whole(const T*, index_t, T*, index_t, [[maybe_unused]] index_t count) const {
    assert(count == 0);
  }
  void start(const T* from, index_t in, T* to, index_t out, index_t count) const {
    for (index_t r = 0; r < count; ++r, from += in, to += out) {
      const index_t bytes = words_ * kWord;
      ask_ahead(from, bytes);
      auto* target = reinterpret_cast<std::byte*>(to);
      auto* source = reinterpret_cast<const std::byte*>(from);
      for (index_t b = 0; b < blocks_; ++b, target += bytes) {
        stream(target, source + b * step_ * index_t{sizeof(T)}, bytes);
      }
    }
  }

 private:
  [[no_unique_address]] Words words_;
  index_t blocks_, step_;
};

bool has_dense_rows(const ConstView& y, const MutableView& x) {
  return y.strides[y.rank() - 1] == 1 && x.strides[x.rank() - 1] == 1;
}

// Sums blocks in their order in memory, so they are read as one stream. This is also the order of
// the terms of each element. A task owns a slab of the array (some positions along the first axis
// of blocks) and reads the parts of blocks that lie in it. So no two tasks write one element, and
// the bits do not depend on the slabs. There are D axes of blocks and of elements within them.
//
// The first block that covers an element stores it, later ones add to it. Only elements between
// blocks are cleared. Along the last axis all blocks but the first are alike: the code for their
// rows is chosen once per line of blocks. Dense rows are treated as real numbers.
template <class T>
class OverlapAdd {
 public:
  OverlapAdd(const ConstView& y, std::span<const index_t> stride, const MutableView& x)
      : y_(y),
        x_(x),
        stride_(stride),
        D_(stride.size()),
        batch_(x.rank() - stride.size()),
        is_dense_(has_dense_rows(y, x)) {
    assert(std::is_floating_point_v<T> || !is_dense_);
    for (std::size_t d = D_; d-- > 0;) {
      has_gaps_[d] = (d + 1 < D_ && has_gaps_[d + 1]) || stride[d] > size(d) ||
                     end_of_blocks(d) < x.extents[batch_ + d];
    }
    streamed_blocks_ = blocks_to_stream();
  }

  void run() const {
    index_t batches = 1, across = 1;  // elements at one position along the first axis
    for (std::size_t k = 0; k < batch_; ++k) batches *= x_.extents[k];
    for (std::size_t k = batch_ + 1; k < x_.rank(); ++k) across *= x_.extents[k];
    const index_t n = x_.extents[batch_];
    if (batches == 0 || across == 0 || n == 0) return;
    const index_t height = std::max((kParallelGrain + across - 1) / across, kSlabBlocks * size(0));
    const index_t slabs = (n + height - 1) / height;
    parallel_ranges(batches * slabs, 1, [&](index_t first, index_t last) {
      for (index_t i = first; i < last; ++i) {
        const index_t begin = i % slabs * height;
        add_slab(i / slabs, {begin, std::min(n, begin + height)});
      }
      if (streamed_blocks_ > 0) finish_streams();
    });
  }

 private:
  // Minimum number of blocks of a slab: blocks at its ends are read in parts.
  static constexpr index_t kSlabBlocks = 4;

  struct Range {
    index_t begin, end;
  };
  // For a block: by axis, how many of its elements earlier blocks cover.
  using Covered = std::array<index_t, kMaxRank>;

  index_t size(std::size_t d) const { return y_.extents[batch_ + D_ + d]; }
  index_t end_of_blocks(std::size_t d) const {
    return (y_.extents[batch_ + d] - 1) * stride_[d] + size(d);
  }
  index_t covered(std::size_t d, index_t m) const {
    return m == 0 ? 0 : std::max<index_t>(0, size(d) - stride_[d]);
  }

  // The number of neighbouring blocks that fill cache lines if rows can be streamed; else 0.
  index_t blocks_to_stream() const {
    const index_t item{sizeof(T)};
    index_t bytes = item;
    for (const index_t n : x_.extents) bytes *= n;
    if (D_ < 2 || !is_dense_ || !on_line(x_.data) || bytes < line_streaming_bytes()) return 0;
    for (std::size_t d = 0; d < D_; ++d) {
      if (stride_[d] < size(d)) return 0;
    }
    for (std::size_t k = 0; k + 1 < x_.rank(); ++k) {
      if (x_.strides[k] * item % kCacheLine != 0) return 0;
    }
    if (size(D_ - 1) * item % kStreamUnit != 0) return 0;
    const index_t row = size(D_ - 1) * item, step = stride_[D_ - 1] * item;
    for (const index_t n : {1, 2, 4}) {
      if (n * row % kCacheLine == 0 && n * step % kCacheLine == 0 && (n == 1 || row == step))
        return n;
    }
    return 0;
  }

  void add_slab(index_t number, Range slab) const {
    const T* from = static_cast<const T*>(y_.data);
    T* to = static_cast<T*>(x_.data);
    for (std::size_t k = batch_; k-- > 0;) {
      const index_t position = number % x_.extents[k];
      number /= x_.extents[k];
      from += position * y_.strides[k];
      to += position * x_.strides[k];
    }
    if (has_gaps_[0]) clear_gaps(to, 0, slab);
    const index_t first = slab.begin < size(0) ? 0 : (slab.begin - size(0)) / stride_[0] + 1;
    for (index_t m = first; m < y_.extents[batch_] && m * stride_[0] < slab.end;) {
      const index_t start = m * stride_[0];
      const Range part{std::max(slab.begin, start) - start, std::min(slab.end - start, size(0))};
      const T* source = from + m * y_.strides[batch_];
      T* target = to + start * x_.strides[batch_];
      if (D_ == 1) {
        m += add_pieces(source, target, m, part, slab);
      } else {
        Covered covers{};
        covers[0] = covered(0, m++);
        add_blocks(source, target, 1, part, covers);
      }
    }
  }

  // Calls f(first, end) for each range of [of.begin, of.end) that no block covers along the axis.
  template <class F>
  void for_gaps(std::size_t d, Range of, F f) const {
    const index_t n = y_.extents[batch_ + d];
    const index_t first = stride_[d] > size(d) ? std::min(of.begin / stride_[d], n - 1) : n - 1;
    for (index_t m = first; m < n; ++m) {
      const index_t next = m + 1 < n ? (m + 1) * stride_[d] : of.end;
      const index_t a = std::max(of.begin, m * stride_[d] + size(d)), b = std::min(of.end, next);
      if (a < b) f(a, b);
      if (next >= of.end) return;
    }
  }

  void clear_gaps(T* to, std::size_t d, Range of) const {
    const index_t step = x_.strides[batch_ + d];
    for_gaps(d, of, [&](index_t a, index_t b) { clear(to + a * step, d, b - a); });
    if (d + 1 == D_ || !has_gaps_[d + 1]) return;
    for (index_t n = of.begin; n < of.end; ++n) {
      clear_gaps(to + n * step, d + 1, {0, x_.extents[batch_ + d + 1]});
    }
  }

  void clear(T* to, std::size_t d, index_t count) const {
    const index_t step = x_.strides[batch_ + d];
    if (d + 1 == D_ && step == 1) {
      std::memset(static_cast<void*>(to), 0, static_cast<std::size_t>(count) * sizeof(T));
      return;
    }
    for (index_t n = 0; n < count; ++n) {
      if (d + 1 == D_) {
        to[n * step] = T(0);
      } else {
        clear(to + n * step, d + 1, x_.extents[batch_ + d + 1]);
      }
    }
  }

  // Adds blocks of one axis, each a row: all blocks from the m-th on that lie in the slab, or the
  // part of the m-th in it. Returns their number.
  index_t add_pieces(const T* from, T* to, index_t m, Range part, Range slab) const {
    const index_t n = size(0), length = part.end - part.begin;
    const index_t added = std::clamp(covered(0, m), part.begin, part.end) - part.begin;
    const index_t in = y_.strides[batch_], out = stride_[0] * x_.strides[batch_];
    const bool is_alone = length < n || m == 0;
    const index_t end = std::min(y_.extents[batch_], (slab.end - n) / stride_[0] + 1);
    const index_t count = is_alone ? 1 : end - m;
    from += part.begin * y_.strides[batch_ + 1];
    to += part.begin * x_.strides[batch_];
    with_rows(length, added, [&](auto rows) { rows.start(from, in, to, out, count); });
    return count;
  }

  // Adds the blocks at one position along the axes before d; of each, its elements in `part` of the
  // first axis.
  void add_blocks(const T* from, T* to, std::size_t d, Range part, Covered& covers) const {
    const index_t in = y_.strides[batch_ + d], out = stride_[d] * x_.strides[batch_ + d];
    const index_t n = y_.extents[batch_ + d];
    if (d + 1 < D_) {
      for (index_t m = 0; m < n; ++m) {
        covers[d] = covered(d, m);
        add_blocks(from + m * in, to + m * out, d + 1, part, covers);
      }
    } else if (streamed_blocks_ > 0) {
      if constexpr (std::is_floating_point_v<T>) add_streams(from, in, to, out, part, covers);
    } else {
      add_line(from, in, to, out, 1, part, covers, 0);
      add_line(from + in, in, to + out, out, n - 1, part, covers, covered(d, 1));
    }
  }

  // Adds the blocks along the last axis, in groups that fill cache lines.
  void add_streams(const T* from, index_t in, T* to, index_t out, Range part,
                   const Covered& covers) const {
    const index_t n = y_.extents[batch_ + D_ - 1];
    const index_t together = streamed_blocks_, groups = n / together, rest = groups * together;
    with_length(size(D_ - 1) * index_t{sizeof(T)} / kWord, [&](auto words) {
      const StreamedRows<T, decltype(words)> rows(words, together, in);
      add_alike(from, in * together, to, out * together, groups, part, covers, rows);
    });
    add_line(from + rest * in, in, to + rest * out, out, n - rest, part, covers, 0);
  }

  // Adds `count` blocks along the last axis whose first `added` elements earlier blocks cover.
  void add_line(const T* from, index_t in, T* to, index_t out, index_t count, Range part,
                const Covered& covers, index_t added) const {
    if (count == 0) return;
    with_rows(size(D_ - 1), added,
              [&](const auto& rows) { add_alike(from, in, to, out, count, part, covers, rows); });
  }

  template <class Rows>
  void add_alike(const T* from, index_t in, T* to, index_t out, index_t count, Range part,
                 const Covered& covers, const Rows& rows) const {
    if (D_ > 2) {
      for (index_t m = 0; m < count; ++m) {
        add_block(from + m * in, to + m * out, 0, part, covers, true, rows);
      }
      return;
    }
    const Plane plane = plane_of(0, part, covers, true);
    for (index_t m = 0; m < count; ++m) add_plane(from + m * in, to + m * out, plane, rows);
  }

  // Adds elements `part` along axis d of a block. `is_first`: no earlier block covers them along
  // the axes before d.
  template <class Rows>
  void add_block(const T* from, T* to, std::size_t d, Range part, const Covered& covers,
                 bool is_first, const Rows& rows) const {
    if (d + 2 == D_) return add_plane(from, to, plane_of(d, part, covers, is_first), rows);
    const index_t in = y_.strides[batch_ + D_ + d], out = x_.strides[batch_ + d];
    for (index_t p = part.begin; p < part.end; ++p) {
      add_block(from + p * in, to + p * out, d + 1, {0, size(d + 1)}, covers,
                is_first && p >= covers[d], rows);
    }
  }

  // The rows of a block at one position along all axes but the last two: `whole` rows to be added,
  // then others.
  struct Plane {
    index_t begin, whole, others, in, out;
  };
  Plane plane_of(std::size_t d, Range part, const Covered& covers, bool is_first) const {
    const index_t later = is_first ? std::clamp(covers[d], part.begin, part.end) : part.end;
    return {part.begin, later - part.begin, part.end - later, y_.strides[batch_ + D_ + d],
            x_.strides[batch_ + d]};
  }
  template <class Rows>
  static void add_plane(const T* from, T* to, const Plane& p, const Rows& rows) {
    from += p.begin * p.in;
    to += p.begin * p.out;
    rows.whole(from, p.in, to, p.out, p.whole);
    rows.start(from + p.whole * p.in, p.in, to + p.whole * p.out, p.out, p.others);
  }

  // Calls f with the code for rows of this length, of which `added` elements are added.
  template <class F>
  void with_rows(index_t length, index_t added, F f) const {
    if (!is_dense_) {
      f(StridedRows<T>(length, added, y_.strides[y_.rank() - 1], x_.strides[x_.rank() - 1]));
      return;
    }
    if constexpr (std::is_floating_point_v<T>) with_dense_rows(length, added, f);
  }

  template <class F>
  void with_dense_rows(index_t length, index_t a, F f) const {
    with_length(length, [&](auto n) {
      if constexpr (!std::is_same_v<decltype(n), index_t>) {
        constexpr std::integral_constant<index_t, 0> kNone{};
        constexpr std::integral_constant<index_t, decltype(n)::value / 2> kHalf{};
        if (a == kNone)
          return f(DenseRows<T, decltype(n), std::remove_const_t<decltype(kNone)>>(n, kNone));
        if (a == kHalf)
          return f(DenseRows<T, decltype(n), std::remove_const_t<decltype(kHalf)>>(n, kHalf));
      }
      f(DenseRows<T, decltype(n), index_t>(n, a));
    });
  }

  const ConstView& y_;
  const MutableView& x_;
  std::span<const index_t> stride_;
  std::size_t D_, batch_;
  std::array<bool, kMaxRank> has_gaps_{};  // along this axis or a later one
  bool is_dense_;
  index_t streamed_blocks_ = 0;
};

// A view of complex numbers in dense rows as twice as many real ones.
template <class View>
class RealView {
 public:
  RealView(const View& view, DType real)
      : extents_(view.extents.begin(), view.extents.end()),
        strides_(view.strides.begin(), view.strides.end()) {
    for (index_t& step : strides_) step *= 2;
    strides_.back() = 1;
    extents_.back() *= 2;
    view_ = {view.data, real, extents_, strides_};
  }
  RealView(const RealView&) = delete;
  RealView& operator=(const RealView&) = delete;
  const View& view() const { return view_; }

 private:
  Extents extents_;
  Strides strides_;
  View view_;
};

}  // namespace

void run_blocks_to_array(const ConstView& y, std::span<const index_t> stride,
                         const MutableView& x) {
  assert(y.rank() == x.rank() + stride.size() && !stride.empty());
  if (is_complex(x.dtype) && has_dense_rows(y, x)) {
    const DType real = real_of(x.dtype);
    Extents real_stride(stride.begin(), stride.end());
    real_stride.back() *= 2;
    return run_blocks_to_array(RealView(y, real).view(), real_stride, RealView(x, real).view());
  }
  visit_inexact(x.dtype, "blocks_to_array",
                [&](auto tag) { OverlapAdd<typename decltype(tag)::type>(y, stride, x).run(); });
}

}  // namespace palimpsest
