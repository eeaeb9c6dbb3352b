// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/reduce/arg_reduce.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <complex>

#include "palimpsest/kernels/arrays/strided_loop.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"
#include "palimpsest/kernels/reduce/reduce_leaves.hpp"

namespace palimpsest {
namespace {

template <class T, bool kMax>
bool is_better(T candidate, T best) {
  if (best != best) return false;
  return candidate != candidate || (kMax ? candidate > best : candidate < best);
}

constexpr index_t kAskedBytes = 2048;

// The best element so far; `position` is its row-major number.
struct Best {
  alignas(16) std::byte value[16];
  index_t position = 0;
  bool is_empty = true;
};

struct Leaf {
  ReduceLeaf extremum;
  decltype(ExtremumLoops::find) find = nullptr;
};

// Scans n elements, `step` bytes apart; the first has the position `number`.
using RowScan = void (*)(const Leaf& leaf, const std::byte* from, index_t step, index_t n,
                         index_t number, Best& best);

template <class T, bool kMax>
void scan_elements(const std::byte* from, index_t step, index_t n, index_t number, Best& best) {
  T found = *reinterpret_cast<const T*>(best.is_empty ? from : best.value);
  if (best.is_empty) best.position = number;
  best.is_empty = false;
  for (index_t i = 0; i < n; ++i) {
    const T element = *reinterpret_cast<const T*>(from + i * step);
    if (!is_better<T, kMax>(element, found)) continue;
    found = element;
    best.position = number + i;
  }
  *reinterpret_cast<T*>(best.value) = found;
}

// The extremum of a dense block: up to kLeafElements elements, or a power of two of whole leaves.
template <class T>
T extremum_of(const Leaf& leaf, const std::byte* block, index_t count) {
  T extremum;
  auto* const result = reinterpret_cast<std::byte*>(&extremum);
  if (count > kLeafElements) {
    leaf.extremum.runs(&block, static_cast<int>(count / kLeafElements), result, false);
  } else {
    leaf.extremum.horizontal(&block, count, result);
  }
  return extremum;
}

// Vectors find the extrema of blocks of dense elements. Only the leaf with the best element is then
// scanned element by element.
template <class T, bool kMax>
void scan_row(const Leaf& leaf, const std::byte* from, index_t step, index_t n, index_t number,
              Best& best) {
  constexpr index_t kItem{sizeof(T)};
  if (step != kItem) return scan_elements<T, kMax>(from, step, n, number, best);
  const index_t most = leaf.extremum.runs != nullptr ? 4 * kLeafElements : kLeafElements;
  T& value = *reinterpret_cast<T*>(best.value);
  index_t block = 0, length = 0;  // block with the best element; length 0: it precedes this row
  for (index_t i = 0, count = 0; i < n; i += count) {
    count = n - i >= most ? most : std::min(n - i, kLeafElements);
    const T extremum = extremum_of<T>(leaf, from + i * kItem, count);
    if (!best.is_empty && !is_better<T, kMax>(extremum, value)) continue;
    value = extremum;
    best.is_empty = false;
    block = i;
    length = count;
  }
  if (length == 0) return;
  // The next row of a dense array comes while the position is searched.
  for (index_t b = 0; b < kAskedBytes; b += 64) __builtin_prefetch(from + n * kItem + b);
  // NaN counts as the best: then either the value is NaN, or no element is.
  const auto is_it = [found = value](T x) { return x == found || x != x; };
  for (; length > kLeafElements; block += kLeafElements, length -= kLeafElements) {
    if (is_it(extremum_of<T>(leaf, from + block * kItem, kLeafElements))) break;
  }
  index_t k = 0;
  if (leaf.find != nullptr) {
    k = leaf.find(from + block * kItem, length, best.value);
  } else {
    const auto* const elements = reinterpret_cast<const T*>(from) + block;
    while (!is_it(elements[k])) ++k;
  }
  best.position = number + block + k;
}

// Merges a later result into `best`.
using Take = void (*)(Best& best, const Best& later);
template <class T, bool kMax>
void take(Best& best, const Best& later) {
  const T& value = *reinterpret_cast<const T*>(later.value);
  if (is_better<T, kMax>(value, *reinterpret_cast<const T*>(best.value))) best = later;
}

struct Scan {
  RowScan row;
  Take take;
  Leaf leaf;
};
Scan make_scan(ReduceOp op, DType dtype) {
  const bool is_max = op == ReduceOp::max;
  // Bytes 0 and 1 have the order of bools.
  const DType ordered = is_bool(dtype) ? DType::uint8 : dtype;
  return visit_dtype(ordered, [&](auto tag) -> Scan {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_arithmetic_v<T> || std::is_same_v<T, bool>) {
      assert(false && "complex numbers have no order");
      return {};
    } else {
      return {is_max ? scan_row<T, true> : scan_row<T, false>,
              is_max ? take<T, true> : take<T, false>,
              {reduce_leaf(op, ordered), extremum_loops(ordered, is_max).find}};
    }
  });
}

// The best of a single dense line, searched in pieces on several threads.
index_t position_in_line(const Scan& scan, const std::byte* from, index_t step, index_t n) {
  constexpr index_t kMostPieces = 64;
  std::array<Best, kMostPieces> found;
  const index_t pieces = std::clamp<index_t>(n / kParallelGrain, 1, kMostPieces);
  const index_t length = (n + pieces - 1) / pieces;
  parallel_ranges(pieces, 1, [&](index_t begin, index_t end) {
    for (index_t k = begin; k < end; ++k) {
      const index_t first = k * length, count = std::min(length, n - first);
      if (count <= 0) continue;
      scan.row(scan.leaf, from + first * step, step, count, first,
               found[static_cast<std::size_t>(k)]);
    }
  });
  for (std::size_t k = 1; k < found.size() && !found[k].is_empty; ++k)
    scan.take(found[0], found[k]);
  return found[0].position;
}

}  // namespace

void run_arg_reduce(ReduceOp op, const ConstView& x, std::span<const index_t> axes,
                    const MutableView& out) {
  assert(op == ReduceOp::max || op == ReduceOp::min);
  assert(out.dtype == DType::int64 && x.rank() == out.rank() + axes.size());
  StridedLoop<2> kept;     // x, out
  StridedLoop<1> reduced;  // x
  Extents kept_extents, reduced_extents;
  Strides kept_strides, reduced_strides;
  for (std::size_t k = 0; k < x.rank(); ++k) {
    const bool is_reduced = std::binary_search(axes.begin(), axes.end(), static_cast<index_t>(k));
    (is_reduced ? reduced_extents : kept_extents).push_back(x.extents[k]);
    (is_reduced ? reduced_strides : kept_strides).push_back(x.strides[k]);
  }
  kept.set_extents(kept_extents);
  kept.add_operand(x.data, kept_strides, item_size(x.dtype));
  kept.add_operand(out.data, out.strides, sizeof(index_t));
  reduced.set_extents(reduced_extents);
  reduced.add_operand(nullptr, reduced_strides, item_size(x.dtype));
  // Positions count row-major, so axes may be merged but not sorted.
  reduced.squeeze();
  reduced.merge(0, reduced.rank);
  const int inner = reduced.rank - 1;
  const index_t length = inner < 0 ? 1 : reduced.at(inner).extent;
  const index_t step = inner < 0 ? 0 : reduced.step(0, inner);
  const index_t terms = reduced.count();
  const Scan scan = make_scan(op, x.dtype);
  if (kept.count() == 1 && reduced.rank == 1) {
    *reinterpret_cast<index_t*>(kept.data[1]) = position_in_line(scan, kept.data[0], step, length);
    return;
  }
  parallel_ranges(kept.count(), kParallelGrain / std::max<index_t>(terms, 1) + 1,
                  [&](index_t begin, index_t end) {
                    for (index_t i = begin; i < end; ++i) {
                      const std::byte* from = kept.data[0] + kept.offset(0, 0, kept.rank, i);
                      Best best;
                      for (index_t t = 0; t < terms; t += length) {
                        scan.row(scan.leaf,
                                 from + reduced.offset(0, 0, std::max(inner, 0), t / length), step,
                                 length, t, best);
                      }
                      *reinterpret_cast<index_t*>(kept.data[1] + kept.offset(1, 0, kept.rank, i)) =
                          best.position;
                    }
                  });
}

}  // namespace palimpsest
