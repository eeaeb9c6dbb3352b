// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/reduce/arg_reduce.hpp"

#include <algorithm>
#include <cassert>
#include <complex>

#include "palimpsest/kernels/arrays/strided_loop.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {
namespace {

// The best element so far and where it is; `position` counts rows of the scan.
template <class T, bool kMax>
bool is_better(T candidate, T best) {
  if (best != best) return false;
  return candidate != candidate || (kMax ? candidate > best : candidate < best);
}

// Scans n elements `step` bytes apart, the first of which is number `number`.
using RowScan = void (*)(const std::byte* from, index_t step, index_t n, index_t number,
                         std::byte* best, index_t& position);

template <class T, bool kMax>
void scan_row(const std::byte* from, index_t step, index_t n, index_t number, std::byte* best,
              index_t& position) {
  T found = *reinterpret_cast<const T*>(number == 0 ? from : best);
  for (index_t i = 0; i < n; ++i) {
    const T element = *reinterpret_cast<const T*>(from + i * step);
    if (!is_better<T, kMax>(element, found)) continue;
    found = element;
    position = number + i;
  }
  *reinterpret_cast<T*>(best) = found;
}

RowScan row_scan(ReduceOp op, DType dtype) {
  const bool is_max = op == ReduceOp::max;
  return visit_dtype(dtype, [&](auto tag) -> RowScan {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_arithmetic_v<T>) {
      assert(false && "complex numbers have no order");
      return nullptr;
    } else {
      // A bool is a byte; 0 and 1 are in order.
      using Element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
      return is_max ? scan_row<Element, true> : scan_row<Element, false>;
    }
  });
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
  const RowScan scan = row_scan(op, x.dtype);
  parallel_ranges(kept.count(), kParallelGrain / std::max<index_t>(terms, 1) + 1,
                  [&](index_t begin, index_t end) {
                    for (index_t i = begin; i < end; ++i) {
                      const std::byte* from = kept.data[0] + kept.offset(0, 0, kept.rank, i);
                      alignas(16) std::byte best[16];
                      index_t position = 0;
                      for (index_t t = 0; t < terms; t += length) {
                        scan(from + reduced.offset(0, 0, std::max(inner, 0), t / length), step,
                             length, t, best, position);
                      }
                      *reinterpret_cast<index_t*>(kept.data[1] + kept.offset(1, 0, kept.rank, i)) =
                          position;
                    }
                  });
}

}  // namespace palimpsest
