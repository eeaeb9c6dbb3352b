// SPDX-License-Identifier: Apache-2.0
// Cumulative sums and products. Lines that are neighbours in memory advance together, so that every
// step along the axis is a pass over a dense row.
#include "palimpsest/kernels/reduce/scan.hpp"

#include <algorithm>
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

struct Lines {
  StridedLoop<2> loop;  // all axes but the scanned one: x, out
  index_t extent = 0, x_step = 0, out_step = 0;
  CopyRow load = nullptr, store = nullptr;
  void (*combine)(const std::byte* x, std::byte* sums, index_t n) = nullptr;
  index_t item = 0;
};

// Lines [first, first + n) of one row of lines, whose first elements are at x and out.
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
