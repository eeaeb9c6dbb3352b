// SPDX-License-Identifier: Apache-2.0
// Gathers and scatters. Offsets of a tile of indices are computed once and used for a group of
// batch elements. Batch elements that are dense on both sides form a row, which is copied as a
// whole: 50,000 rows of 16 floats took 4.4 times as long element by element.
#include "palimpsest/kernels/arrays/index.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <complex>
#include <cstring>
#include <string>

#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/kernels/arrays/strided_loop.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {
namespace {

constexpr index_t kTile = 512;
constexpr int kMaxOperands = static_cast<int>(kMaxRank) + 1;
constexpr index_t kBatchGroup = 16;
constexpr index_t kRowPiece = 4096;       // elements of a row in one task
constexpr index_t kTaskElements = 65536;  // elements in one task, for rows
constexpr std::size_t kRowsAhead = 8;     // prefetch distance in rows

std::size_t at(index_t i) { return static_cast<std::size_t>(i); }

// The dense side (values, one per index) and the indexed side of a gather or scatter, over batch
// axes and over positions of the indices.
struct Access {
  StridedLoop<2> batch;                 // dense, indexed
  StridedLoop<kMaxOperands> positions;  // dense, then one operand per index view
  int n_indices = 0;
  std::array<index_t, kMaxRank> sizes, steps;  // per indexed axis; steps in bytes
  index_t n_batch = 1, n_positions = 1;
  index_t row = 1;  // elements in a row; then n_batch counts rows
  std::byte *dense = nullptr, *indexed = nullptr;
  std::size_t item = 1;  // bytes
};

void take_rows(Access& access) {
  const auto item = static_cast<index_t>(access.item);
  auto& batch = access.batch;
  access.n_batch = batch.count();
  batch.squeeze();
  batch.merge(0, batch.rank);
  const int inner = batch.rank - 1;
  if (inner < 0 || batch.step(0, inner) != item || batch.step(1, inner) != item) return;
  access.row = batch.at(inner).extent;
  if (access.row == 0) return;
  access.n_batch /= access.row;
  batch.rank = inner;
}

Access make_access(const ConstView& dense, const ConstView& indexed,
                   std::span<const ConstView> indices) {
  assert(!indices.empty() && indexed.rank() >= indices.size() && dense.dtype == indexed.dtype);
  const std::size_t n_batch_axes = indexed.rank() - indices.size();
  const std::size_t item = item_size(dense.dtype);
  Access access;
  access.n_indices = static_cast<int>(indices.size());
  access.item = item;
  access.dense = static_cast<std::byte*>(const_cast<void*>(dense.data));
  access.indexed = static_cast<std::byte*>(const_cast<void*>(indexed.data));
  access.batch.set_extents(dense.extents.first(n_batch_axes));
  access.batch.add_operand(nullptr, dense.strides.first(n_batch_axes), item);
  access.batch.add_operand(nullptr, indexed.strides.first(n_batch_axes), item);
  take_rows(access);
  access.positions.set_extents(dense.extents.subspan(n_batch_axes));
  access.positions.add_operand(nullptr, dense.strides.subspan(n_batch_axes), item);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    assert(indices[i].dtype == DType::int64);
    assert(std::equal(indices[i].extents.begin(), indices[i].extents.end(),
                      dense.extents.begin() + static_cast<std::ptrdiff_t>(n_batch_axes)));
    access.positions.add_operand(indices[i].data, indices[i].strides, sizeof(index_t));
    access.sizes[i] = indexed.extents[n_batch_axes + i];
    access.steps[i] = indexed.strides[n_batch_axes + i] * static_cast<index_t>(item);
  }
  access.n_positions = access.positions.count();
  // Axes are merged but not reordered: scatters visit the positions in row-major order.
  access.positions.squeeze();
  access.positions.merge(0, access.positions.rank);
  return access;
}

// Byte offsets of up to kTile positions, on both sides.
struct Offsets {
  index_t n = 0;
  std::array<index_t, kTile> dense, indexed;
};

void locate(const Access& access, index_t first, index_t last, Offsets& offsets) {
  const auto& loop = access.positions;
  const int inner = loop.rank - 1;
  const index_t length = inner < 0 ? 1 : loop.at(inner).extent;
  offsets.n = last - first;
  for (index_t t = first; t < last;) {
    const index_t start = t % length, n = std::min(length - start, last - t);
    index_t* to = offsets.indexed.data() + (t - first);
    const index_t outer = loop.offset(0, 0, std::max(inner, 0), t / length);
    const index_t dense_step = inner < 0 ? 0 : loop.step(0, inner);
    for (index_t i = 0; i < n; ++i) {
      offsets.dense[at(t - first + i)] = outer + (start + i) * dense_step;
    }
    std::fill_n(to, n, 0);
    for (int k = 0; k < access.n_indices; ++k) {
      const index_t step = inner < 0 ? 0 : loop.step(k + 1, inner);
      const std::byte* from = loop.data[at(k + 1)] +
                              loop.offset(k + 1, 0, std::max(inner, 0), t / length) + start * step;
      const index_t size = access.sizes[at(k)], scale = access.steps[at(k)];
      for (index_t i = 0; i < n; ++i) {
        const index_t index = *reinterpret_cast<const index_t*>(from + i * step);
        to[i] += (index < 0 ? index + size : index) * scale;
      }
    }
    t += n;
  }
}

// An operation on the elements of a tile, or on rows of n elements, for one batch element.
using TileLoop = void (*)(std::byte* dense, std::byte* indexed, const Offsets& o, index_t n);

template <class T>
T& element(std::byte* base, index_t offset) {
  return *reinterpret_cast<T*>(base + offset);
}

// A call of memcpy takes longer than to copy a short row.
void copy_row(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kUnit = 16, kShort = 256;
  if (bytes % kUnit != 0 || bytes > kShort) {
    std::memcpy(to, from, bytes);
    return;
  }
  for (std::size_t b = 0; b < bytes; b += kUnit) std::memcpy(to + b, from + b, kUnit);
}

template <class T>
void gather_tile(std::byte* dense, std::byte* indexed, const Offsets& o, index_t n) {
  for (std::size_t i = 0; i < at(o.n); ++i) {
    if (n == 1) {
      element<T>(dense, o.dense[i]) = element<T>(indexed, o.indexed[i]);
    } else {
      const std::size_t next = std::min(i + kRowsAhead, at(o.n) - 1);
      __builtin_prefetch(indexed + o.indexed[next]);
      copy_row(dense + o.dense[i], indexed + o.indexed[i], at(n) * sizeof(T));
    }
  }
}
template <class T>
void set_tile(std::byte* dense, std::byte* indexed, const Offsets& o, index_t n) {
  for (std::size_t i = 0; i < at(o.n); ++i) {
    if (n == 1) {
      element<T>(indexed, o.indexed[i]) = element<T>(dense, o.dense[i]);
    } else {
      copy_row(indexed + o.indexed[i], dense + o.dense[i], at(n) * sizeof(T));
    }
  }
}
template <class T>
void add_tile(std::byte* dense, std::byte* indexed, const Offsets& o, index_t n) {
  for (std::size_t i = 0; i < at(o.n); ++i) {
    T* const sums = &element<T>(indexed, o.indexed[i]);
    const T* const values = &element<T>(dense, o.dense[i]);
    for (index_t k = 0; k < n; ++k) {
      if constexpr (std::is_integral_v<T>) {
        sums[k] = static_cast<T>(static_cast<std::uint64_t>(sums[k]) +
                                 static_cast<std::uint64_t>(values[k]));
      } else {
        sums[k] += values[k];
      }
    }
  }
}
// The sum of bools is `or`; any byte but 0 is true.
void or_tile(std::byte* dense, std::byte* indexed, const Offsets& o, index_t n) {
  for (std::size_t i = 0; i < at(o.n); ++i) {
    for (index_t k = 0; k < n; ++k) {
      std::byte& sum = indexed[o.indexed[i] + k];
      sum = std::byte{(sum | dense[o.dense[i] + k]) != std::byte{0}};
    }
  }
}

// Moves depend only on the element size.
#define PALIMPSEST_BY_SIZE(function, size)   \
  switch (size) {                            \
    case 1:                                  \
      return function<std::uint8_t>;         \
    case 2:                                  \
      return function<std::uint16_t>;        \
    case 4:                                  \
      return function<std::uint32_t>;        \
    case 8:                                  \
      return function<std::uint64_t>;        \
    default:                                 \
      return function<std::complex<double>>; \
  }
TileLoop gather_loop(DType dtype){PALIMPSEST_BY_SIZE(gather_tile, item_size(dtype))} TileLoop
    set_loop(DType dtype){PALIMPSEST_BY_SIZE(set_tile, item_size(dtype))}
#undef PALIMPSEST_BY_SIZE

TileLoop add_loop(DType dtype) {
  return visit_dtype(dtype, [](auto tag) -> TileLoop {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) {
      return or_tile;
    } else {
      return add_tile<T>;
    }
  });
}

struct Range {
  index_t begin, end;
};

// Processes positions of batch elements in order; for rows, the given columns.
void run_block(const Access& access, TileLoop loop, Range batch, Range positions, Range columns) {
  const auto item = static_cast<index_t>(access.item);
  Offsets offsets;
  for (index_t t = positions.begin; t < positions.end; t += kTile) {
    locate(access, t, std::min(t + kTile, positions.end), offsets);
    for (index_t b = batch.begin; b < batch.end; ++b) {
      loop(access.dense + access.batch.offset(0, 0, access.batch.rank, b) + columns.begin * item,
           access.indexed + access.batch.offset(1, 0, access.batch.rank, b) + columns.begin * item,
           offsets, columns.end - columns.begin);
    }
  }
}

// Processes all positions of batch elements [begin, end); elements of rows are counted one by one.
void run_elements(const Access& access, TileLoop loop, index_t begin, index_t end) {
  const Range all{0, access.n_positions};
  if (access.row == 1) return run_block(access, loop, {begin, end}, all, {0, 1});
  while (begin < end) {
    const index_t b = begin / access.row, first = begin % access.row;
    const index_t last = std::min(access.row, first + end - begin);
    run_block(access, loop, {b, b + 1}, all, {first, last});
    begin += last - first;
  }
}

void run_scatter(const ConstView& x, std::span<const ConstView> indices, const MutableView& y,
                 ScatterStart start, TileLoop loop) {
  if (start == ScatterStart::zero) {
    const std::array<std::byte, 16> zero{};
    strided_fill(zero.data(), y);
  }
  const Access access = make_access(x, y, indices);
  if (access.n_batch == 0 || access.n_positions == 0) return;
  // Several positions may write one element, several batch elements never do.
  parallel_ranges(access.n_batch * access.row, kParallelGrain / access.n_positions + 1,
                  [&](index_t begin, index_t end) { run_elements(access, loop, begin, end); });
}

[[noreturn]] void refuse(std::string_view who, index_t index, index_t size) {
  throw ValueError("[" + std::string(who) + "] index out of range: got " + std::to_string(index) +
                   ", expected one in the range [-" + std::to_string(size) + ", " +
                   std::to_string(size) + ")");
}

}  // namespace

void check_index_range(const ConstView& indices, index_t size, std::string_view who) {
  assert(indices.dtype == DType::int64 && indices.rank() <= kMaxRank);
  StridedLoop<1> loop;
  loop.set_extents(indices.extents);
  loop.add_operand(indices.data, indices.strides, sizeof(index_t));
  loop.squeeze();
  loop.merge(0, loop.rank);
  const index_t n = loop.count(), inner = loop.rank == 0 ? 1 : loop.at(loop.rank - 1).extent;
  const index_t step = loop.rank == 0 ? 0 : loop.step(0, loop.rank - 1);
  for (index_t row = 0; row * inner < n; ++row) {
    const std::byte* from = loop.data[0] + loop.offset(0, 0, std::max(loop.rank - 1, 0), row);
    for (index_t i = 0; i < inner; ++i) {
      const index_t index = *reinterpret_cast<const index_t*>(from + i * step);
      if (index < -size || index >= size) refuse(who, index, size);
    }
  }
}

void run_gather(const ConstView& x, std::span<const ConstView> indices, const MutableView& y) {
  const Access access = make_access(y, x, indices);
  if (access.n_batch == 0 || access.n_positions == 0) return;
  const TileLoop loop = gather_loop(x.dtype);
  const auto parts = [](index_t n, index_t each) { return (n + each - 1) / each; };
  const index_t columns = std::min(access.row, kRowPiece);
  const index_t group = access.row == 1 ? kBatchGroup : 1;
  const index_t tile = std::clamp<index_t>(kTaskElements / columns, 1, kTile);
  const index_t groups = parts(access.n_batch, group), pieces = parts(access.row, columns);
  const index_t tiles = parts(access.n_positions, tile);
  parallel_ranges(groups * pieces * tiles, kParallelGrain / (tile * group * columns) + 1,
                  [&](index_t begin, index_t end) {
                    for (index_t task = begin; task < end; ++task) {
                      const index_t b = task / tiles / pieces * group, t = task % tiles * tile;
                      const index_t c = task / tiles % pieces * columns;
                      run_block(access, loop, {b, std::min(b + group, access.n_batch)},
                                {t, std::min(t + tile, access.n_positions)},
                                {c, std::min(c + columns, access.row)});
                    }
                  });
}

void run_scatter_add(const ConstView& x, std::span<const ConstView> indices, const MutableView& y,
                     ScatterStart start) {
  run_scatter(x, indices, y, start, add_loop(x.dtype));
}

void run_scatter_set(const ConstView& x, std::span<const ConstView> indices, const MutableView& y,
                     ScatterStart start) {
  run_scatter(x, indices, y, start, set_loop(x.dtype));
}

}  // namespace palimpsest
