// SPDX-License-Identifier: Apache-2.0
// Cumulative sums and products. Lines that are neighbours in memory advance together, so each step
// along the axis is a pass over a dense row. Other lines are scanned a few at a time: an addition
// waits for the previous one of its line, not for those of other lines.
#include "palimpsest/kernels/reduce/scan.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <complex>

#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/kernels/arrays/strided_loop.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"
#include "palimpsest/kernels/reduce/reduce_leaves.hpp"

namespace palimpsest {
namespace {

constexpr index_t kWidth = 128;  // lines that advance together
constexpr std::size_t kItem = 16;
constexpr index_t kPiece = 256;     // elements of a line per piece
constexpr int kTogether = 4;        // lines
constexpr index_t kNeighbours = 8;  // fewer do not fill a row

// Continues the sums[k] over n dense elements of line k, in place; `first`: starts with the first
// of them.
using ScanPiece = void (*)(std::byte* const* lines, int n_lines, std::byte* sums, index_t n,
                           bool first);

template <class T>
T sum_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return a + b;
  }
}
template <class T>
T product_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else {
    return a * b;
  }
}
template <class T>
std::complex<T> product_of(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <class T, bool kProduct, int kLines>
void scan_together(std::byte* const* lines, T* sums, index_t n, bool first) {
  std::array<T*, kLines> line;
  std::array<T, kLines> sum;
  for (std::size_t k = 0; k < kLines; ++k) {
    line[k] = reinterpret_cast<T*>(lines[k]);
    sum[k] = first ? line[k][0] : sums[k];
  }
  for (index_t i = first ? 1 : 0; i < n; ++i) {
    for (std::size_t k = 0; k < kLines; ++k) {
      sum[k] = kProduct ? product_of(sum[k], line[k][i]) : sum_of(sum[k], line[k][i]);
      line[k][i] = sum[k];
    }
  }
  for (std::size_t k = 0; k < kLines; ++k) sums[k] = sum[k];
}
template <class T, bool kProduct>
void scan_piece(std::byte* const* lines, int n_lines, std::byte* sums, index_t n, bool first) {
  auto* const sum = reinterpret_cast<T*>(sums);
  if (n_lines == kTogether) return scan_together<T, kProduct, kTogether>(lines, sum, n, first);
  for (int k = 0; k < n_lines; ++k) scan_together<T, kProduct, 1>(lines + k, sum + k, n, first);
}

// Null where no loop exists, as for bools.
ScanPiece piece_scan(ReduceOp op, DType dtype) {
  return visit_dtype(dtype, [&](auto tag) -> ScanPiece {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) {
      return nullptr;
    } else {
      return op == ReduceOp::prod ? scan_piece<T, true> : scan_piece<T, false>;
    }
  });
}

struct Lines {
  StridedLoop<2> loop;  // all axes but the scanned one: x, out
  index_t extent = 0, x_step = 0, out_step = 0;
  CopyRow load = nullptr, store = nullptr;
  void (*combine)(const std::byte* x, std::byte* sums, index_t n) = nullptr;
  ScanPiece scan = nullptr;
  index_t item = 0;
};

// Scans lines [first, first + n) of one row of lines; their first elements are at x and out.
void advance(const Lines& lines, const std::byte* x, index_t x_step, std::byte* out,
             index_t out_step, index_t n) {
  alignas(64) std::byte sums[kWidth * kItem];
  alignas(64) std::byte next[kWidth * kItem];
  for (index_t i = 0; i < lines.extent; ++i) {
    lines.load(x + i * lines.x_step, x_step, i == 0 ? sums : next, lines.item, n);
    if (i > 0) lines.combine(next, sums, n);
    lines.store(sums, lines.item, out + i * lines.out_step, out_step, n);
  }
}

// Asks for the next piece of a dense line: its memory comes while additions wait for one another.
void ask_for(const std::byte* piece, index_t bytes) {
  for (index_t b = 0; b < bytes; b += 64) __builtin_prefetch(piece + b);
}

// Scans up to kTogether lines, at x[k] and out[k], piece by piece.
void scan_lines(const Lines& lines, const std::byte* const* x, std::byte* const* out, int n_lines) {
  alignas(64) std::byte pieces[kTogether][kPiece * kItem];
  alignas(64) std::byte sums[kTogether * kItem];
  std::array<std::byte*, kTogether> at;
  for (index_t i = 0; i < lines.extent; i += kPiece) {
    const index_t n = std::min(kPiece, lines.extent - i);
    for (int k = 0; k < n_lines; ++k) {
      const auto line = static_cast<std::size_t>(k);
      at[line] = pieces[k];
      lines.load(x[k] + i * lines.x_step, lines.x_step, at[line], lines.item, n);
      ask_for(x[k] + (i + kPiece) * lines.x_step, n * lines.item);
      ask_for(out[k] + (i + kPiece) * lines.out_step, n * lines.item);
    }
    lines.scan(at.data(), n_lines, sums, n, i == 0);
    for (int k = 0; k < n_lines; ++k) {
      lines.store(pieces[k], lines.item, out[k] + i * lines.out_step, lines.out_step, n);
    }
  }
}

// Scans all lines, one after another.
void scan_by_lines(const Lines& lines) {
  const StridedLoop<2>& loop = lines.loop;
  const index_t n = loop.count(), groups = (n + kTogether - 1) / kTogether;
  parallel_ranges(groups, kParallelGrain / (lines.extent * kTogether) + 1,
                  [&](index_t begin, index_t end) {
                    for (index_t group = begin; group < end; ++group) {
                      std::array<const std::byte*, kTogether> x;
                      std::array<std::byte*, kTogether> out;
                      const index_t first = group * kTogether;
                      const index_t count = std::min<index_t>(kTogether, n - first);
                      for (index_t k = 0; k < count; ++k) {
                        const auto line = static_cast<std::size_t>(k);
                        x[line] = loop.data[0] + loop.offset(0, 0, loop.rank, first + k);
                        out[line] = loop.data[1] + loop.offset(1, 0, loop.rank, first + k);
                      }
                      scan_lines(lines, x.data(), out.data(), static_cast<int>(count));
                    }
                  });
}

}  // namespace

void run_scan(ReduceOp op, const ConstView& x, std::size_t axis, const MutableView& out) {
  assert(op == ReduceOp::sum || op == ReduceOp::prod);
  assert(x.rank() == out.rank() && axis < x.rank());
  Lines lines;
  lines.extent = x.extents[axis];
  lines.item = static_cast<index_t>(item_size(out.dtype));
  lines.x_step = x.strides[axis] * static_cast<index_t>(item_size(x.dtype));
  lines.out_step = out.strides[axis] * lines.item;
  lines.load = copy_row_between(x.dtype, out.dtype);
  lines.store = copy_row_between(out.dtype, out.dtype);
  lines.combine = reduce_leaf(op, out.dtype).combine;
  Extents extents(x.extents);
  extents[axis] = 1;
  StridedLoop<2>& loop = lines.loop;
  loop.set_extents(extents);
  loop.add_operand(x.data, x.strides, item_size(x.dtype));
  loop.add_operand(out.data, out.strides, item_size(out.dtype));
  if (loop.count() == 0 || lines.extent == 0) return;
  loop.squeeze();
  loop.flip_to(1);
  loop.sort(0, loop.rank, [&](int i) { return loop.step(1, i); });
  const int kept = loop.merge(0, loop.rank);
  lines.scan = piece_scan(op, out.dtype);
  const bool is_dense =
      lines.x_step == static_cast<index_t>(item_size(x.dtype)) && lines.out_step == lines.item;
  if (lines.scan != nullptr && (is_dense || kept == 0 || loop.at(kept - 1).extent < kNeighbours)) {
    loop.rank = kept;
    scan_by_lines(lines);
    return;
  }
  const index_t row = kept == 0 ? 1 : loop.at(kept - 1).extent;
  const index_t x_step = kept == 0 ? 0 : loop.step(0, kept - 1);
  const index_t out_step = kept == 0 ? 0 : loop.step(1, kept - 1);
  const index_t tiles = (row + kWidth - 1) / kWidth;
  const index_t rows = loop.count() / row;
  const index_t work = lines.extent * std::min(row, kWidth);
  parallel_ranges(rows * tiles, kParallelGrain / work + 1, [&](index_t begin, index_t end) {
    for (index_t task = begin; task < end; ++task) {
      const index_t first = task % tiles * kWidth, outer = task / tiles;
      const int n_outer = std::max(kept - 1, 0);
      advance(lines, loop.data[0] + loop.offset(0, 0, n_outer, outer) + first * x_step, x_step,
              loop.data[1] + loop.offset(1, 0, n_outer, outer) + first * out_step, out_step,
              std::min(kWidth, row - first));
    }
  });
}

}  // namespace palimpsest
