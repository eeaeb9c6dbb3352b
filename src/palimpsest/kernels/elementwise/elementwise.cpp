// SPDX-License-Identifier: Apache-2.0
// Runs a program tile by tile.
//
// 1. A tile is `rows` x `cols` elements of the two innermost axes of a loop whose axes are ordered
//    by the strides of the first output and merged where all views have even steps.
// 2. A register lives in a slot of scratch of one tile, unless it is an input or output whose
//    elements are dense in the tile and of the register's dtype: then no copy is made.
//    tile_plan.hpp describes the steps in a tile.
// 3. An output much larger than the last cache is written past the caches: it would be evicted
//    before it is read, and ordinary stores would first read its lines.
#include "palimpsest/kernels/elementwise/elementwise.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "palimpsest/base/cache_size.hpp"
#include "palimpsest/base/thread_scratch.hpp"
#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/copy/transpose.hpp"
#include "palimpsest/kernels/arrays/strided_loop.hpp"
#include "palimpsest/kernels/elementwise/tile_plan.hpp"
#include "palimpsest/kernels/pool/call_cache.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {
namespace {

constexpr int kMaxViews = ElementwiseProgram::kMaxInputs + ElementwiseProgram::kMaxOutputs;
constexpr int kMaxRegisters = ElementwiseProgram::kMaxRegisters;
constexpr index_t kScratchBytes = 65536;
constexpr index_t kFirstCacheBytes = 32768, kCachedBytes = kFirstCacheBytes / 2;
constexpr index_t kLongTile = 1024;
constexpr index_t kLongestTile = 16384, kTilesAtLeast = 16;
constexpr index_t kSquareTile = 64;
// Minimum row length for tiles of one row: below it, the calls cost too much.
constexpr index_t kLongRow = 1024;
constexpr index_t kCacheLine = 64;

struct Grid {
  index_t rows = 1, cols = 1;              // of a full tile
  index_t row_extent = 1, col_extent = 1;  // of the axes
  index_t row_tiles = 1, col_tiles = 1, tiles = 1;
  int outer_rank = 0;  // axes in front of the two that are tiled
  bool is_square = false;
};

// The parts of a run that do not depend on addresses.
struct Run {
  StridedLoop<kMaxViews> loop;  // outputs first, then inputs
  int n_outputs = 0, n_inputs = 0;
  Grid grid;
  index_t slot_bytes = 0;  // 0: no slots
  TilePlan plan;
  std::array<bool, kMaxViews> still;       // an input with one element for a whole tile
  std::array<bool, kMaxViews> still_ever;  // an input with one element for all tiles
  std::array<bool, kMaxViews> transposed;  // an input with dense columns in a tile
  std::array<CopyRow, kMaxViews> copy;     // loads an input or stores an output
  std::array<index_t, kMaxViews> begin;    // bytes from the first element of each view

  Run(const ElementwiseProgram& p, std::span<const ConstView> inputs,
      std::span<const MutableView> outputs);
};

std::size_t at(int i) { return static_cast<std::size_t>(i); }

index_t item_of(const Run& run, int r) {
  return static_cast<index_t>(item_size(run.plan.program().dtype_of_register(r)));
}

// Moves an axis next to the innermost if some input is dense along it and strided along the
// innermost. Returns whether there is one.
bool arrange_square_tiles(Run& run) {
  auto& loop = run.loop;
  const int inner = loop.rank - 1;
  for (int k = run.n_outputs; k < loop.n_operands; ++k) {
    if (std::abs(loop.step(k, inner)) < kCacheLine) continue;
    int best = inner;
    for (int i = 0; i < inner; ++i) {
      const index_t step = std::abs(loop.step(k, i));
      if (step != 0 && step < std::abs(loop.step(k, best)) && loop.at(i).extent > 1) best = i;
    }
    if (best == inner || std::abs(loop.step(k, best)) >= kCacheLine) continue;
    std::rotate(loop.axes.begin() + best, loop.axes.begin() + best + 1, loop.axes.begin() + inner);
    return true;
  }
  return false;
}

// Is an input constant over rows, or within a row? In tiles of one row the former is read without a
// copy, and the latter fills one block.
bool has_rows_alike(const Run& run) {
  const auto& loop = run.loop;
  for (int k = run.n_outputs; k < loop.n_operands; ++k) {
    const bool moves_in_row = loop.step(k, loop.rank - 1) != 0;
    if (moves_in_row != (loop.step(k, loop.rank - 2) != 0)) return true;
  }
  return false;
}

void make_grid(Run& run, index_t longest) {
  auto& loop = run.loop;
  Grid& grid = run.grid;
  if (loop.rank == 0) {
    loop.rank = 1;
    loop.at(0).extent = 1;
    std::fill_n(loop.at(0).steps.begin(), loop.n_operands, 0);
  }
  grid.is_square = loop.rank > 1 && arrange_square_tiles(run);
  grid.outer_rank = std::max(loop.rank - 2, 0);
  grid.col_extent = loop.at(loop.rank - 1).extent;
  if (loop.rank > 1) grid.row_extent = loop.at(loop.rank - 2).extent;
  if (grid.is_square) {
    grid.cols = std::min({kSquareTile, longest, grid.col_extent});
    grid.rows = std::min({kSquareTile, longest / grid.cols, grid.row_extent});
  } else {
    grid.cols = std::min(longest, grid.col_extent);
    grid.rows = std::clamp<index_t>(longest / grid.cols, 1, grid.row_extent);
    if (grid.cols < grid.col_extent) grid.rows = 1;
    if (grid.rows > 1 && grid.cols >= kLongRow && has_rows_alike(run)) grid.rows = 1;
  }
  grid.row_tiles = (grid.row_extent + grid.rows - 1) / grid.rows;
  grid.col_tiles = (grid.col_extent + grid.cols - 1) / grid.cols;
  grid.tiles = grid.row_tiles * grid.col_tiles;
  for (int i = 0; i < grid.outer_rank; ++i) grid.tiles *= loop.at(i).extent;
}

// Are the elements of an operand dense in every tile?
bool is_dense(const Run& run, int operand, index_t item) {
  const auto& loop = run.loop;
  const Grid& grid = run.grid;
  if (grid.cols > 1 && loop.step(operand, loop.rank - 1) != item) return false;
  if (grid.rows == 1) return true;
  return grid.cols == grid.col_extent && loop.step(operand, loop.rank - 2) == grid.cols * item;
}

// The inputs in the memory of an output, one bit each. If there are any, its lines are already in
// cache.
std::uint64_t inputs_at(const MutableView& output, std::span<const ConstView> inputs) {
  std::uint64_t there = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].data == output.data) there |= std::uint64_t{1} << i;
  }
  return there;
}

// Decides which registers are read or written in the caller's arrays.
void place_registers(Run& run, std::span<const ConstView> inputs,
                     std::span<const MutableView> outputs) {
  const ElementwiseProgram& program = run.plan.program();
  for (int i = 0; i < run.n_inputs; ++i) {
    const int r = program.inputs()[at(i)], operand = run.n_outputs + i;
    // A constant input gains nothing if there is only one element.
    run.still_ever[at(operand)] = run.loop.count() > 1;
    for (int axis = 0; axis < run.loop.rank; ++axis) {
      if (run.loop.step(operand, axis) != 0) run.still_ever[at(operand)] = false;
    }
    const bool still_in_row = run.grid.rows == 1 && run.grid.cols >= kLongRow &&
                              run.loop.step(operand, run.loop.rank - 1) == 0;
    run.still[at(operand)] = run.still_ever[at(operand)] || still_in_row;
    const DType dtype = program.dtype_of_register(r);
    run.copy[at(operand)] = copy_row_between(inputs[at(i)].dtype, dtype);
    const index_t item = item_of(run, r);
    const bool is_plain = inputs[at(i)].dtype == dtype;
    run.transposed[at(operand)] = is_plain && item >= 4 && run.grid.rows > 1 &&
                                  run.loop.step(operand, run.loop.rank - 2) == item &&
                                  run.loop.step(operand, run.loop.rank - 1) > item;
    const bool dense = is_plain && is_dense(run, operand, item);
    run.plan.place_input(i, dense, run.still[at(operand)]);
  }
  for (int k = 0; k < run.n_outputs; ++k) {
    const int r = program.outputs()[at(k)];
    run.copy[at(k)] = copy_row_between(program.dtype_of_register(r), outputs[at(k)].dtype);
    const index_t item = item_of(run, r);
    const bool dense =
        outputs[at(k)].dtype == program.dtype_of_register(r) && is_dense(run, k, item);
    const std::uint64_t there = inputs_at(outputs[at(k)], inputs);
    int last_read = 0;
    for (int i = 0; i < run.n_inputs; ++i) {
      if ((there >> i & 1) != 0) last_read = std::max(last_read, run.plan.last_read(i));
    }
    const bool streamed = run.loop.count() * item >= streaming_bytes() && there == 0;
    run.plan.place_output(k, dense, streamed, last_read);
  }
}

// Decides by the bytes of all arrays.
AskFor asked_memory(const Run& run) {
  const auto& loop = run.loop;
  const auto& program = run.plan.program();
  index_t bytes = 0;
  for (int k = 0; k < loop.n_operands; ++k) {
    const bool is_output = k < run.n_outputs;
    const int r = is_output ? program.outputs()[at(k)] : program.inputs()[at(k - run.n_outputs)];
    index_t elements = 1;
    for (int axis = 0; axis < loop.rank; ++axis) {
      if (loop.step(k, axis) != 0) elements *= loop.at(axis).extent;
    }
    bytes += elements * item_of(run, r);
  }
  if (bytes > core_cache_bytes()) return AskFor::everything;
  return bytes > kFirstCacheBytes ? AskFor::results : AskFor::nothing;
}

// Chooses tiles whose slots fit the first level cache; longer tiles where there are no slots. The
// number of slots depends on which operands are dense in a tile.
void choose_tiles(Run& run, std::span<const ConstView> inputs,
                  std::span<const MutableView> outputs) {
  const ElementwiseProgram& program = run.plan.program();
  index_t largest = 1;
  for (int r = 0; r < program.n_registers(); ++r) largest = std::max(largest, item_of(run, r));
  const auto make = [&](index_t longest) {
    make_grid(run, longest);
    run.plan.begin_placing();
    place_registers(run, inputs, outputs);
    run.slot_bytes = longest * largest;
    return run.plan.slots() * run.slot_bytes;
  };
  // A tile for work that one thread does alone.
  const index_t count = run.loop.count();
  const index_t fair = count <= kParallelGrain ? count : std::max(kLongTile, count / kTilesAtLeast);
  index_t longest = (std::min(kLongestTile, fair) + kTileBlock - 1) / kTileBlock * kTileBlock;
  index_t bytes = make(longest);
  const index_t cached = run.grid.is_square ? kScratchBytes : kCachedBytes;
  if (bytes > cached) {
    const index_t item = bytes / longest;  // all slots together
    longest = std::max(cached / item, std::min(kLongTile, kScratchBytes / item)) / kTileLanes *
              kTileLanes;
    bytes = make(longest);
  }
  if (bytes > kScratchBytes) {
    const index_t slots = std::max(run.plan.most_slots(), 1);
    make(std::min(kLongTile, kScratchBytes / (slots * largest)) / kTileLanes * kTileLanes);
  }
  run.plan.finish(asked_memory(run));
  if (run.plan.slots() == 0) run.slot_bytes = 0;
}

// A tile in progress: its size and the offset of each operand.
struct Tile {
  index_t rows, cols;
  index_t cols_after;  // in the row of the tile
  std::array<std::byte*, kMaxViews> data;
  index_t count() const { return rows * cols; }
};

// Finds tile `number`. Without slots it is extended by the tiles that follow in its row, up to tile
// `end`. Returns the number of the next tile.
index_t locate(const Run& run, index_t number, index_t end, Tile& tile) {
  const Grid& grid = run.grid;
  const auto& loop = run.loop;
  const index_t first = number % grid.col_tiles, col = first * grid.cols;
  const index_t joined = run.slot_bytes > 0 ? 1 : std::min(end - number, grid.col_tiles - first);
  const index_t next = number + joined;
  number /= grid.col_tiles;
  const index_t row = number % grid.row_tiles * grid.rows;
  number /= grid.row_tiles;
  tile.cols = std::min(joined * grid.cols, grid.col_extent - col);
  tile.cols_after = grid.col_extent - col - tile.cols;
  tile.rows = std::min(grid.rows, grid.row_extent - row);
  std::array<index_t, kMaxRank> position;
  for (int i = grid.outer_rank - 1; i >= 0; --i) {
    position[at(i)] = number % loop.at(i).extent;
    number /= loop.at(i).extent;
  }
  for (int k = 0; k < loop.n_operands; ++k) {
    index_t offset = col * loop.step(k, loop.rank - 1);
    if (loop.rank > 1) offset += row * loop.step(k, loop.rank - 2);
    for (int i = 0; i < grid.outer_rank; ++i) offset += position[at(i)] * loop.step(k, i);
    tile.data[at(k)] = loop.data[at(k)] + offset;
  }
  return next;
}

// Prefetches the next tile of an input with dense columns: hardware prefetchers do not detect
// columns that lie far apart.
void ask_for_next(const Run& run, const Tile& tile, int operand, index_t item) {
  const index_t step = run.loop.step(operand, run.loop.rank - 1);
  const std::byte* column = tile.data[at(operand)] + tile.cols * step;
  for (index_t c = 0; c < std::min(tile.cols, tile.cols_after); ++c, column += step) {
    for (index_t b = 0; b < tile.rows * item; b += kCacheLine) __builtin_prefetch(column + b, 0, 2);
  }
}

void load(const Run& run, const Tile& tile, int operand, std::byte* slot, index_t item) {
  const auto& loop = run.loop;
  const index_t row_step = loop.rank > 1 ? loop.step(operand, loop.rank - 2) : 0;
  if (run.transposed[at(operand)]) {
    ask_for_next(run, tile, operand, item);
    const Transposition t{tile.data[at(operand)], slot,      loop.step(operand, loop.rank - 1),
                          tile.cols * item,       tile.cols, tile.rows};
    item == 4 ? transpose<4>(t) : item == 8 ? transpose<8>(t) : transpose<16>(t);
    return;
  }
  for (index_t i = 0; i < tile.rows; ++i) {
    run.copy[at(operand)](tile.data[at(operand)] + i * row_step, loop.step(operand, loop.rank - 1),
                          slot + i * tile.cols * item, item, tile.cols);
  }
}

void store(const Run& run, const Tile& tile, int operand, const std::byte* from, index_t item) {
  const auto& loop = run.loop;
  const index_t row_step = loop.rank > 1 ? loop.step(operand, loop.rank - 2) : 0;
  for (index_t i = 0; i < tile.rows; ++i) {
    run.copy[at(operand)](from + i * tile.cols * item, item, tile.data[at(operand)] + i * row_step,
                          loop.step(operand, loop.rank - 1), tile.cols);
  }
}

struct TileMemory {
  alignas(kCacheLine) std::array<std::byte, kScratchBytes> scratch;
  alignas(kCacheLine)
      std::array<std::byte, TilePlan::kMaxConstants * TilePlan::kConstantBytes> constants;
};

void run_tiles(const Run& run, index_t begin, index_t end) {
  const Scratched<TileMemory> memory;
  std::array<std::byte*, kMaxRegisters> registers;
  const ElementwiseProgram& program = run.plan.program();
  for (int r = 0; r < program.n_registers(); ++r) {
    const int slot = run.plan.slot_of(r), constant = run.plan.constant_of(r);
    registers[at(r)] = slot < 0 ? nullptr : memory->scratch.data() + slot * run.slot_bytes;
    if (constant >= 0)
      registers[at(r)] = memory->constants.data() + constant * TilePlan::kConstantBytes;
  }
  Tile tile;
  for (int i = 0; i < run.n_inputs; ++i) {
    const int operand = run.n_outputs + i;
    if (!run.still_ever[at(operand)]) continue;
    run.plan.spread(program.inputs()[at(i)], run.loop.data[at(operand)], run.copy[at(operand)],
                    registers, run.grid.rows * run.grid.cols);
  }
  for (index_t number = begin; number < end;) {
    number = locate(run, number, end, tile);
    for (const int r : program.outputs()) {
      const int output = run.plan.output_of(r);
      if (output >= 0) registers[at(r)] = tile.data[at(output)];
    }
    for (int i = 0; i < run.n_inputs; ++i) {
      const int r = program.inputs()[at(i)], operand = run.n_outputs + i;
      if (run.plan.place_of(r) == RegisterPlace::memory) {
        registers[at(r)] = tile.data[at(operand)];
      } else if (!run.still[at(operand)]) {
        load(run, tile, operand, registers[at(r)], item_of(run, r));
      } else if (!run.still_ever[at(operand)]) {
        run.plan.spread(r, tile.data[at(operand)], run.copy[at(operand)], registers, tile.count());
      }
    }
    run.plan.run(registers, tile.count());
    for (int k = 0; k < run.n_outputs; ++k) {
      const int r = program.outputs()[at(k)];
      if (registers[at(r)] != tile.data[at(k)]) {
        store(run, tile, k, registers[at(r)], item_of(run, r));
      }
    }
  }
  if (run.plan.streams()) run.plan.machines().finish_streams();
}

Run::Run(const ElementwiseProgram& p, std::span<const ConstView> inputs,
         std::span<const MutableView> outputs)
    : n_outputs(static_cast<int>(outputs.size())),
      n_inputs(static_cast<int>(inputs.size())),
      plan(p) {
  loop.set_extents(outputs[0].extents);
  for (const MutableView& v : outputs) {
    assert(std::equal(v.extents.begin(), v.extents.end(), outputs[0].extents.begin()));
    loop.add_operand(v.data, v.strides, item_size(v.dtype));
  }
  for (const ConstView& v : inputs) {
    assert(v.rank() == outputs[0].rank());
    loop.add_operand(v.data, v.strides, item_size(v.dtype));
  }
  const auto views = loop.data;
  loop.squeeze();
  loop.flip_to(0);
  loop.sort(0, loop.rank, [&](int axis) { return loop.step(0, axis); });
  loop.merge(0, loop.rank);
  for (int k = 0; k < loop.n_operands; ++k) begin[at(k)] = loop.data[at(k)] - views[at(k)];
  choose_tiles(*this, inputs, outputs);
}

void go(const Run& run) {
  parallel_ranges(run.grid.tiles, kParallelGrain / (run.grid.rows * run.grid.cols) + 1,
                  [&](index_t begin, index_t end) { run_tiles(run, begin, end); });
}

// Fills a key with everything that a Run depends on; false if it does not fit.
bool fill(CallKey& key, const ElementwiseProgram& program, std::span<const ConstView> inputs,
          std::span<const MutableView> outputs) {
  const std::size_t rank = outputs[0].rank();
  const std::size_t words =
      5 + rank + (inputs.size() + outputs.size()) * (1 + rank) + outputs.size();
  if (words > CallKey::kMaxWords) return false;
  key.add(program.version());
  key.add(reinterpret_cast<std::uintptr_t>(real_tile_machines().real32));
  key.add(static_cast<std::uint64_t>(streaming_bytes()));
  key.add(static_cast<std::uint64_t>(core_cache_bytes()));
  key.add(inputs.size());
  for (const MutableView& v : outputs) key.add(inputs_at(v, inputs));
  for (const index_t extent : outputs[0].extents) key.add(static_cast<std::uint64_t>(extent));
  const auto add = [&](const auto& view) {
    key.add(static_cast<std::uint64_t>(view.dtype));
    for (const index_t stride : view.strides) key.add(static_cast<std::uint64_t>(stride));
  };
  for (const MutableView& v : outputs) add(v);
  for (const ConstView& v : inputs) add(v);
  return true;
}

// Executes a prepared Run on other arrays of the same kind.
void run_again(Run& run, const ElementwiseProgram& program, std::span<const ConstView> inputs,
               std::span<const MutableView> outputs) {
  run.plan.follow(program);
  int k = 0;
  for (const MutableView& v : outputs) {
    run.loop.data[at(k)] = static_cast<std::byte*>(v.data) + run.begin[at(k)];
    ++k;
  }
  for (const ConstView& v : inputs) {
    run.loop.data[at(k)] = static_cast<std::byte*>(const_cast<void*>(v.data)) + run.begin[at(k)];
    ++k;
  }
  go(run);
}

}  // namespace

void run_elementwise(const ElementwiseProgram& program, std::span<const ConstView> inputs,
                     std::span<const MutableView> outputs) {
  assert(inputs.size() == program.inputs().size() && outputs.size() == program.outputs().size());
  if (outputs.empty()) return;
  for (const index_t extent : outputs[0].extents) {
    if (extent == 0) return;
  }
  static constinit CallCache<Run> prepared;
  CallKey key;
  if (fill(key, program, inputs, outputs)) {
    if (const auto lease = prepared.find(key)) {
      if (!lease.value()) lease.value().emplace(program, inputs, outputs);
      run_again(*lease.value(), program, inputs, outputs);
      return;
    }
  }
  go(Run(program, inputs, outputs));
}

}  // namespace palimpsest
