// SPDX-License-Identifier: Apache-2.0
// Reduces one or two strided operands, or a computed one, over some of their axes.
//
// 1. Axes are split into kept and reduced ones, and each group is ordered by strides and merged.
// 2. Vertical form: a row of up to kWidth outputs along the innermost kept axis is accumulated over
//    the reduced positions. Horizontal form: one output at a time, its elements taken in runs along
//    the innermost reduced axis.
// 3. Runs and groups of rows (leaves) are summed plainly; their sums are paired as a binary counter
//    carries, so the error grows with the logarithm of the count.
// 4. Few outputs of many elements: the reduced positions are cut into chunks whose results are
//    combined pairwise. Cuts depend on the shape alone, so threads cannot change the result.
// 5. A computed operand has the addresses that a dense array would have; its elements are computed
//    when a row or a run of them is read.
#include "palimpsest/kernels/reduce/reduce_driver.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <functional>
#include <type_traits>
#include <utility>

#include "palimpsest/base/cache_size.hpp"
#include "palimpsest/base/thread_scratch.hpp"
#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/kernels/arrays/strided_loop.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"
#include "palimpsest/kernels/reduce/cascade.hpp"

namespace palimpsest {
namespace {

constexpr index_t kWidth = 256;
constexpr index_t kRowBytes = 16384;      // accumulators of a row, if operands are not copied
constexpr index_t kComputedBytes = 8192;  // a computed row
constexpr int kComputedRuns = 4;          // runs computed at once
constexpr index_t kItem = 16;             // bytes of the largest element
constexpr index_t kCascadeBytes = (kCascadeLevels + 1) * kWidth * kItem;
constexpr index_t kMaxPartials = 4096;
constexpr index_t kCacheLine = 64;

constexpr std::size_t at(index_t i) { return static_cast<std::size_t>(i); }

struct Reduction {
  const ReduceLeaf& leaf;
  const ComputedRows* computed = nullptr;  // operand 1, if computed
  StridedLoop<3> loop;                     // operand 0 is out
  int n_kept = 0;                          // kept axes come before the reduced ones
  bool vertical = false;
  bool converts = false;  // the computed dtype is not that which leaves load
  std::array<CopyRow, 3> load;
  std::array<bool, 3> dense;            // operand needs no copy
  bool all_dense = false;               // no operand needs one
  bool one_leaf = false;                // each output is one call of a leaf
  bool is_far = false;                  // operands are in memory and exceed the caches
  ReduceLeaf::Vertical rows = nullptr;  // leaf.vertical, or its variant for numbers
  CopyRow store = nullptr;
  index_t load_item = 0, item = 0;
  index_t width = 1, row_tiles = 1, tiles = 1;  // in outputs
  index_t outputs = 1, terms = 1, chunk = 1, chunks = 1;

  int inner() const { return vertical ? n_kept - 1 : loop.rank - 1; }
  index_t row_extent() const { return vertical ? loop.at(n_kept - 1).extent : 1; }
};

// A position within the reduced axes [first, last) and the operands' addresses there.
class Walker {
 public:
  Walker(const Reduction& r, int last, std::array<std::byte*, 3> data, index_t flat)
      : r_(r), first_(r.n_kept), last_(last), data_(data) {
    for (int i = last_ - 1; i >= first_; --i) {
      position_[at(i)] = flat % r.loop.at(i).extent;
      flat /= r.loop.at(i).extent;
      move(i, position_[at(i)]);
    }
  }
  const std::byte* address(int operand) const { return data_[at(operand)]; }
  void advance() {
    for (int i = last_ - 1; i >= first_; --i) {
      move(i, 1);
      if (++position_[at(i)] < r_.loop.at(i).extent) return;
      move(i, -position_[at(i)]);
      position_[at(i)] = 0;
    }
  }

 private:
  void move(int axis, index_t by) {
    for (int k = 1; k < r_.loop.n_operands; ++k) data_[at(k)] += by * r_.loop.step(k, axis);
  }

  const Reduction& r_;
  int first_, last_;
  std::array<std::byte*, 3> data_;
  std::array<index_t, kMaxRank> position_;
};

// Makes n elements along the innermost axis dense.
class Loader {
 public:
  explicit Loader(const Reduction& r) : r_(r) {}
  /// Returns the dense operands of a row or run.
  const std::byte* const* load(const std::byte* const* x, index_t n) {
    for (int k = 1; k < r_.loop.n_operands; ++k) {
      if (r_.dense[at(k)]) {
        operands_[at(k - 1)] = x[k - 1];
        continue;
      }
      std::byte* to = memory_.data() + (k - 1) * kLeafElements * kItem;
      r_.load[at(k)](x[k - 1], r_.loop.step(k, r_.inner()), to, r_.load_item, n);
      operands_[at(k - 1)] = to;
    }
    return operands_.data();
  }
  /// Rows per load.
  static constexpr int kRows = 1;
  const std::byte* const* load_rows(const std::byte* const* x, int /*rows*/, index_t n) {
    return load(x, n);
  }

 private:
  const Reduction& r_;
  std::array<const std::byte*, 2> operands_{};
  alignas(kCacheLine) std::array<std::byte, 2 * kLeafElements * kItem> memory_;
};

// Computes the elements; addresses count elements of an array that is not stored.
class ComputedLoader {
 public:
  explicit ComputedLoader(const Reduction& r) : r_(r), reader_(*r.computed) {}
  const std::byte* const* load(const std::byte* const* x, index_t n) {
    operands_[0] = compute(x[0], n, rows_.data());
    return operands_.data();
  }
  static constexpr int kRows = kRowsAtOnce;
  const std::byte* const* load_rows(const std::byte* const* x, int rows, index_t n) {
    for (int row = 0; row < rows; ++row) {
      operands_[at(row)] = compute(x[row], n, rows_.data() + row * kComputedBytes);
    }
    return operands_.data();
  }

 private:
  const std::byte* compute(const std::byte* from, index_t n, std::byte* to) {
    const auto item = static_cast<index_t>(item_size(r_.computed->dtype()));
    const index_t first = (from - r_.loop.data[1]) / item;
    const index_t step = r_.loop.step(1, r_.inner()) / item;
    reader_.read(first, step, n, r_.converts ? other_.data() : to);
    if (r_.converts) r_.load[1](other_.data(), item, to, r_.load_item, n);
    return to;
  }

  const Reduction& r_;
  ComputedRows::Reader reader_;
  std::array<const std::byte*, kRowsAtOnce> operands_{};
  alignas(kCacheLine) std::array<std::byte, kRowsAtOnce * kComputedBytes> rows_;
  alignas(kCacheLine)
      std::array<std::byte, kComputedRuns * kLeafElements * kItem> other_;  // before conversion
};

static_assert(kWidth <= kLeafElements && kComputedBytes <= kComputedRuns * kLeafElements * kItem &&
                  kComputedRuns * kLeafElements * kItem <= kRowsAtOnce * kComputedBytes,
              "loaders hold a row and what is taken up at once");

void put(const Reduction& r, const std::byte* row, std::byte* out, index_t step, index_t n) {
  if (row != out) r.store(row, r.item, out, step, n);
}

// The operands of the next rows, at most kLeafRows, one row after the other.
class RowList {
 public:
  RowList(const Reduction& r, Walker& walker, index_t rows)
      : n_operands_(r.leaf.n_operands), size_(static_cast<int>(rows)) {
    for (auto* to = data_.data(); rows > 0; --rows, walker.advance()) {
      for (int k = 1; k <= n_operands_; ++k) *to++ = walker.address(k);
    }
  }
  int size() const { return size_; }
  const std::byte* const* at(int row) const { return data_.data() + row * n_operands_; }

 private:
  int n_operands_, size_;
  std::array<const std::byte*, 2 * kLeafRows> data_;
};

// Accumulates up to kLeafRows rows of n elements.
template <class Loader>
void reduce_leaf(const Reduction& r, Loader& loader, const RowList& x, index_t n, std::byte* sums) {
  const int most = r.all_dense ? kRowsAtOnce : Loader::kRows;
  for (int row = 0; row < x.size(); row += most) {
    const int rows = std::min(most, x.size() - row);
    r.rows(r.all_dense ? x.at(row) : loader.load_rows(x.at(row), rows, n), rows, sums, n,
           row == 0 ? Rows::first : Rows::onto);
  }
}

// Reduces terms [begin, end) for n outputs side by side; results are `step` bytes apart at `out`.
template <class Loader>
void reduce_rows(const Reduction& r, std::array<std::byte*, 3> data, index_t n, index_t begin,
                 index_t end, std::byte* out, index_t step) {
  const Scratched<Loader> loader(r);
  Walker walker(r, r.loop.rank, data, begin);
  if (end - begin <= kLeafRows && (step == r.item || n == 1)) {
    const RowList x(r, walker, end - begin);
    if (r.all_dense) {
      r.rows(x.at(0), x.size(), out, n, r.is_far ? Rows::streamed : Rows::first);
    } else {
      reduce_leaf(r, *loader, x, n, out);
    }
    return;
  }
  const Scratched<Cascade<kCascadeBytes>> cascade(r.leaf.combine, r.item, n);
  for (index_t t = begin; t < end; t += kLeafRows) {
    const RowList x(r, walker, std::min<index_t>(kLeafRows, end - t));
    reduce_leaf(r, *loader, x, n, cascade->next());
    cascade->push();
  }
  put(r, cascade->total(), out, step, n);
}

// Is each output a single call of a leaf? Then no cascade is needed.
bool is_one_leaf(const Reduction& r) {
  const index_t length = r.loop.at(r.loop.rank - 1).extent;
  if (r.computed != nullptr || !r.all_dense || r.terms != length || length == 0) return false;
  if (length <= kLeafElements) return true;
  const auto count = static_cast<std::uint64_t>(length / kLeafElements);
  return r.leaf.runs != nullptr && length % kLeafElements == 0 &&
         length / kLeafElements <= kMostRuns && std::has_single_bit(count);
}
void reduce_leaf_of_one(const Reduction& r, const std::array<std::byte*, 3>& data, std::byte* out) {
  std::array<const std::byte*, 2> from{};
  for (int k = 1; k < r.loop.n_operands; ++k) from[at(k - 1)] = data[at(k)];
  if (r.terms <= kLeafElements) {
    r.leaf.horizontal(from.data(), r.terms, out);
  } else {
    r.leaf.runs(from.data(), static_cast<int>(r.terms / kLeafElements), out, r.is_far);
  }
}

// Reduces terms [begin, end) for one output.
template <class Loader>
void reduce_runs(const Reduction& r, std::array<std::byte*, 3> data, index_t begin, index_t end,
                 std::byte* out) {
  const Scratched<Cascade<kCascadeBytes>> cascade(r.leaf.combine, r.item, 1);
  const Scratched<Loader> loader(r);
  const int inner = r.loop.rank - 1;
  const index_t length = r.loop.at(inner).extent;
  Walker walker(r, inner, data, begin == 0 ? 0 : begin / length);
  index_t position = begin == 0 ? 0 : begin % length;
  const bool is_computed = r.computed != nullptr;
  const bool far = r.is_far;
  const bool in_runs = r.leaf.runs != nullptr && (is_computed || r.all_dense);
  for (index_t t = begin; t < end;) {
    index_t n = std::min(length - position, end - t);
    std::array<const std::byte*, 2> from{};
    for (int k = 1; k < r.loop.n_operands; ++k) {
      from[at(k - 1)] = walker.address(k) + position * r.loop.step(k, inner);
    }
    int at_once = in_runs ? (is_computed ? kComputedRuns : kMostRuns) : 1;
    while (at_once > 1 && (n < at_once * kLeafElements || !cascade->takes(at_once))) at_once /= 2;
    if (at_once > 1) {
      n = at_once * kLeafElements;
      r.leaf.runs(is_computed ? loader->load(from.data(), n) : from.data(), at_once,
                  cascade->next(), far);
      cascade->push(at(std::countr_zero(static_cast<unsigned>(at_once))));
    } else {
      n = std::min(n, kLeafElements);
      r.leaf.horizontal(loader->load(from.data(), n), n, cascade->next());
      cascade->push();
    }
    t += n;
    position += n;
    if (position == length) {
      position = 0;
      walker.advance();
    }
  }
  put(r, cascade->total(), out, r.item, 1);
}

// A tile of outputs.
struct Tile {
  index_t first, n;  // numbers of outputs, in the order of the kept axes
  std::array<std::byte*, 3> data;
};

Tile tile_of(const Reduction& r, index_t number) {
  const bool is_row = r.row_tiles == 1;
  const index_t column = is_row ? 0 : number % r.row_tiles * r.width;
  const index_t row = is_row ? number : number / r.row_tiles;
  Tile tile{row * r.row_extent() + column, std::min(r.width, r.row_extent() - column), {}};
  for (int k = 0; k < r.loop.n_operands; ++k) {
    index_t offset = r.loop.offset(k, 0, r.vertical ? r.n_kept - 1 : r.n_kept, row);
    if (r.vertical) offset += column * r.loop.step(k, r.n_kept - 1);
    tile.data[at(k)] = r.loop.data[at(k)] + offset;
  }
  return tile;
}

template <class Loader>
void reduce_tile_with(const Reduction& r, const Tile& tile, index_t begin, index_t end,
                      std::byte* out, index_t step) {
  if (r.vertical) {
    reduce_rows<Loader>(r, tile.data, tile.n, begin, end, out, step);
  } else if (r.one_leaf && end - begin == r.terms) {
    reduce_leaf_of_one(r, tile.data, out);
  } else {
    reduce_runs<Loader>(r, tile.data, begin, end, out);
  }
}

void reduce_tile(const Reduction& r, const Tile& tile, index_t begin, index_t end, std::byte* out,
                 index_t step) {
  if (r.computed != nullptr) {
    reduce_tile_with<ComputedLoader>(r, tile, begin, end, out, step);
  } else {
    reduce_tile_with<Loader>(r, tile, begin, end, out, step);
  }
}

index_t out_step(const Reduction& r) { return r.vertical ? r.loop.step(0, r.n_kept - 1) : r.item; }

void run_chunks(const Reduction& r) {
  struct Partials {
    alignas(kCacheLine) std::array<std::byte, kMaxPartials * kItem> bytes;
  };
  const Scratched<Partials> memory;
  std::byte* const partials = memory->bytes.data();
  const index_t row_bytes = r.outputs * r.item;
  parallel_ranges(r.tiles * r.chunks, 1, [&](index_t begin, index_t end) {
    for (index_t task = begin; task < end; ++task) {
      const Tile tile = tile_of(r, task % r.tiles);
      const index_t first = task / r.tiles * r.chunk;
      std::byte* out = partials + task / r.tiles * row_bytes + tile.first * r.item;
      reduce_tile(r, tile, first, std::min(first + r.chunk, r.terms), out, r.item);
    }
  });
  for (index_t width = 1; width < r.chunks; width *= 2) {
    for (index_t c = 0; c + width < r.chunks; c += 2 * width) {
      r.leaf.combine(partials + (c + width) * row_bytes, partials + c * row_bytes, r.outputs);
    }
  }
  for (index_t number = 0; number < r.tiles; ++number) {
    const Tile tile = tile_of(r, number);
    r.store(partials + tile.first * r.item, r.item, tile.data[0], out_step(r), tile.n);
  }
}

// Memory traffic of a step along the axis.
index_t cost(const Reduction& r, int axis) {
  index_t bytes = 0;
  for (int k = 1; k < r.loop.n_operands; ++k) {
    bytes += std::min(std::abs(r.loop.step(k, axis)), kCacheLine);
  }
  return bytes;
}

void order_axes(Reduction& r) {
  auto& loop = r.loop;
  loop.squeeze();
  loop.flip_to(1);
  loop.sort(0, loop.rank, [&](int i) { return loop.step(0, i) != 0 ? 1 : 0; });
  while (r.n_kept < loop.rank && loop.step(0, r.n_kept) != 0) ++r.n_kept;
  const auto distance = [&](int i) {
    index_t sum = std::abs(loop.step(0, i));
    for (int k = 1; k < loop.n_operands; ++k) sum += std::abs(loop.step(k, i));
    return sum;
  };
  loop.sort(0, r.n_kept, distance);
  loop.sort(r.n_kept, loop.rank, distance);
  r.n_kept = loop.merge(0, r.n_kept);
  loop.merge(r.n_kept, loop.rank);
}

// Selects the leaf for rows times numbers, such as products with a matrix on the left: no copies
// are needed.
void take_numbers(Reduction& r) {
  for (const int k : {1, 2}) {
    const ReduceLeaf::Vertical rows = k == 1 ? r.leaf.number_first : r.leaf.number_second;
    const bool is_number = r.loop.step(k, r.inner()) == 0 &&
                           r.load[at(k)] == copy_row_between(r.leaf.load, r.leaf.load);
    if (rows == nullptr || !is_number || !r.dense[at(3 - k)]) continue;
    r.rows = rows;
    r.all_dense = true;
    return;
  }
}

void choose_form(Reduction& r) {
  const auto& loop = r.loop;
  for (int i = 0; i < r.n_kept; ++i) r.outputs *= loop.at(i).extent;
  for (int i = r.n_kept; i < loop.rank; ++i) r.terms *= loop.at(i).extent;
  if (r.n_kept == 0) {
    r.vertical = false;
  } else if (r.n_kept == loop.rank) {
    r.vertical = true;
  } else {
    const int kept = r.n_kept - 1, reduced = loop.rank - 1;
    const index_t side = loop.at(kept).extent, length = loop.at(reduced).extent;
    r.vertical =
        !(cost(r, reduced) < cost(r, kept) && length >= 32) && !(side < 8 && length > side);
  }
  for (int k = 1; k < loop.n_operands; ++k) {
    const bool same =
        r.computed == nullptr && r.load[at(k)] == copy_row_between(r.leaf.load, r.leaf.load);
    r.dense[at(k)] = same && loop.step(k, r.inner()) == r.load_item;
  }
  r.all_dense =
      std::all_of(r.dense.begin() + 1, r.dense.begin() + loop.n_operands, std::identity());
  r.rows = r.leaf.vertical;
  if (r.vertical && loop.n_operands == 3) take_numbers(r);
  r.one_leaf = !r.vertical && is_one_leaf(r);
  r.is_far = r.computed == nullptr && r.outputs * r.terms * r.load_item >= streaming_bytes();
  if (r.vertical) r.width = std::min(kWidth, r.row_extent());
  r.row_tiles = (r.row_extent() + r.width - 1) / r.width;
  r.tiles = r.outputs / r.row_extent() * r.row_tiles;
}

// Widens rows whose operands are not copied, or are computed: each visit of a page then reads more.
// An output does not depend on its neighbours.
void widen_rows(Reduction& r) {
  if (!r.vertical || r.row_extent() <= kWidth) return;
  const bool is_computed = r.computed != nullptr;
  if (!is_computed && !r.all_dense) return;
  const index_t made = is_computed ? static_cast<index_t>(item_size(r.computed->dtype())) : 0;
  const index_t most =
      is_computed ? kComputedBytes / std::max({made, r.load_item, r.item}) : kRowBytes / r.item;
  index_t levels = 2;
  while ((kLeafRows << levels) < r.chunk) ++levels;
  const index_t rows = r.outputs / r.row_extent();
  const index_t parts = pool_threads();
  const index_t fair = (r.row_extent() * rows * r.chunks + parts - 1) / parts;
  const bool in_leaves = r.terms <= kLeafRows && !is_computed && out_step(r) == r.item;
  const index_t fits =
      in_leaves ? r.row_extent() : std::min(most, kCascadeBytes / ((levels + 2) * r.item));
  const index_t longest = std::min({fits, r.row_extent(), fair});
  if (longest <= r.width) return;
  r.width = longest / 16 * 16;
  r.row_tiles = (r.row_extent() + r.width - 1) / r.width;
  r.tiles = rows * r.row_tiles;
}

void choose_chunks(Reduction& r) {
  r.chunk = r.terms;
  if (r.tiles < 16 && r.outputs <= kMaxPartials / 2) {
    r.chunk = chunk_of_terms(r.terms, r.outputs);
  }
  r.chunks = (r.terms + r.chunk - 1) / r.chunk;
}

Reduction reduction_of(const ReduceLeaf& leaf, const MutableView& out) {
  assert(out.dtype == leaf.accumulate);
  Reduction r{.leaf = leaf, .loop = {}, .load = {}, .dense = {}};
  r.load_item = static_cast<index_t>(item_size(leaf.load));
  r.item = static_cast<index_t>(item_size(leaf.accumulate));
  r.store = copy_row_between(leaf.accumulate, leaf.accumulate);
  r.loop.set_extents(out.extents);
  r.loop.add_operand(out.data, out.strides, item_size(out.dtype));
  return r;
}

void arrange(Reduction& r) {
  order_axes(r);
  if (r.loop.rank == 0) {  // one element: a row of one output
    r.loop.rank = r.n_kept = 1;
    r.loop.at(0).extent = 1;
    r.loop.at(0).steps.fill(0);
  }
  choose_form(r);
  choose_chunks(r);
}

void add_operands(Reduction& r, std::span<const ConstView> operands) {
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const ConstView& x = operands[k];
    assert(x.extents.size() == static_cast<std::size_t>(r.loop.rank));
    r.loop.add_operand(x.data, x.strides, item_size(x.dtype));
    r.load[k + 1] = copy_row_between(x.dtype, r.leaf.load);
  }
}

void run(Reduction& r) {
  arrange(r);
  widen_rows(r);
  if (r.chunks > 1) {
    run_chunks(r);
    return;
  }
  parallel_ranges(r.tiles, kParallelGrain / (r.terms * r.width) + 1,
                  [&](index_t begin, index_t end) {
                    for (index_t number = begin; number < end; ++number) {
                      const Tile tile = tile_of(r, number);
                      reduce_tile(r, tile, 0, r.terms, tile.data[0], out_step(r));
                    }
                  });
}

}  // namespace

index_t chunk_of_terms(index_t terms, index_t outputs) {
  const index_t wanted =
      std::min({kMaxChunks, kMaxPartials / outputs, terms * outputs / kParallelGrain, terms});
  return wanted > 1 ? (terms + wanted - 1) / wanted : terms;
}

void run_reduction(const ReduceLeaf& leaf, std::span<const ConstView> operands,
                   const MutableView& out) {
  assert(static_cast<int>(operands.size()) == leaf.n_operands);
  Reduction r = reduction_of(leaf, out);
  add_operands(r, operands);
  run(r);
}

ReductionOrder reduction_order(const ReduceLeaf& leaf, std::span<const ConstView> operands,
                               const MutableView& out) {
  Reduction r = reduction_of(leaf, out);
  add_operands(r, operands);
  const std::array<std::byte*, 3> before = r.loop.data;
  arrange(r);
  ReductionOrder order;
  order.vertical = r.vertical;
  order.outputs = r.outputs;
  order.terms = r.terms;
  order.chunk = r.chunk;
  order.chunks = r.chunks;
  for (int k = 0; k < r.loop.n_operands; ++k) {
    order.offsets[at(k)] = r.loop.data[at(k)] - before[at(k)];
  }
  for (int i = 0; i < r.loop.rank; ++i) {
    ReductionOrder::Axis axis{r.loop.at(i).extent, {}};
    for (int k = 0; k < r.loop.n_operands; ++k) axis.steps[at(k)] = r.loop.step(k, i);
    (i < r.n_kept ? order.kept : order.reduced).push_back(axis);
  }
  return order;
}

void run_reduction(const ReduceLeaf& leaf, const ComputedRows& rows, const MutableView& out) {
  assert(leaf.n_operands == 1);
  Reduction r = reduction_of(leaf, out);
  r.computed = &rows;
  r.converts = rows.dtype() != leaf.load;
  r.load[1] = copy_row_between(rows.dtype(), leaf.load);
  Strides strides(out.rank());
  index_t elements = 1;
  for (std::size_t k = strides.size(); k-- > 0; elements *= out.extents[k]) strides[k] = elements;
  // A base address that is not dereferenced: differences from it give positions.
  auto* const nowhere = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40);
  r.loop.add_operand(nowhere, strides, item_size(rows.dtype()));
  run(r);
}

}  // namespace palimpsest
