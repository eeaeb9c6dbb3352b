// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/arrays/copy.hpp"

#include <algorithm>
#include <cstdlib>

#include "palimpsest/base/cache_size.hpp"
#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/copy/transpose.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {
namespace {

// Cuts along a long axis are multiples of kCut, the elements of a transposition tile and the bytes
// of a cache line.
constexpr index_t kCut = 64, kPiecesOfAxis = 8;
// Minimum number of bytes for a second thread.
constexpr index_t kBytesOfPiece = index_t{1} << 18;
constexpr index_t kPiecesOfThread = 4;

// The axis with the largest strides whose pieces share no cache line, on either side: the axis is
// long, or its elements are far apart. In a transposition, the axis along which the rows of the
// source lie: each row is read in one run.
std::size_t axis_to_cut(const ConstView& x, const MutableView& out) {
  const auto reach = [&](std::size_t i) {
    const auto is_apart = [&](index_t stride, DType dtype) {
      return stride == 0 || std::abs(stride) * static_cast<index_t>(item_size(dtype)) >= kCut;
    };
    const bool is_long = out.extents[i] >= kPiecesOfAxis * kCut;
    const bool good =
        out.extents[i] > 1 &&
        (is_long || (is_apart(x.strides[i], x.dtype) && is_apart(out.strides[i], out.dtype)));
    return good ? 2 * std::abs(x.strides[i]) + std::abs(out.strides[i]) : index_t{0};
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < out.rank(); ++i) {
    if (reach(i) > reach(best)) best = i;
  }
  return best;
}

}  // namespace

void run_copy(const ConstView& x, const MutableView& out) {
  index_t bytes = static_cast<index_t>(item_size(out.dtype));
  for (const index_t n : out.extents) bytes *= n;
  if (bytes < 2 * kBytesOfPiece || out.rank() == 0 || x.data == out.data) {
    strided_copy(x, out);
    return;
  }
  const std::size_t axis = axis_to_cut(x, out);
  const index_t n = out.extents[axis];
  const index_t cut = n >= kPiecesOfAxis * kCut ? kCut : 1;
  const index_t pieces = (n + cut - 1) / cut;
  // Each cut of a transposition splits cache lines of the result, so there are only a few pieces
  // per thread.
  const index_t grain = std::max(kBytesOfPiece / std::max<index_t>(bytes / pieces, 1),
                                 pieces / (kPiecesOfThread * pool_threads()));
  parallel_ranges(pieces, grain, [&](index_t begin, index_t end) {
    const index_t first = begin * cut, last = std::min(end * cut, n);
    Extents extents(out.extents);
    extents[axis] = last - first;
    const auto start = [&](index_t stride, DType dtype) {
      return first * stride * static_cast<index_t>(item_size(dtype));
    };
    const ConstView from{static_cast<const std::byte*>(x.data) + start(x.strides[axis], x.dtype),
                         x.dtype, extents, x.strides};
    const MutableView to{static_cast<std::byte*>(out.data) + start(out.strides[axis], out.dtype),
                         out.dtype, extents, out.strides};
    strided_copy_piece(from, to, bytes);
  });
}

}  // namespace palimpsest
