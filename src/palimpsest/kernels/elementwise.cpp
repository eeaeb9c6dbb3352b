// SPDX-License-Identifier: Apache-2.0
// Runs a program tile by tile.
//
// 1. A tile is `rows` x `cols` elements of the two innermost axes of a loop whose axes are ordered
//    by the strides of the first output and merged where all views walk evenly.
// 2. A register lives in a slot of scratch of one tile, unless it is an input or output whose
//    elements are dense in the tile and of the register's dtype: then it is used where it lies.
// 3. In a tile every input is read before anything is written to memory: outputs that are computed
//    before the last instruction that reads an input go through a slot and are stored at the end.
//    So an output may be the memory of an input.
#include "palimpsest/kernels/elementwise.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "palimpsest/base/strided_copy.hpp"
#include "palimpsest/kernels/parallel.hpp"
#include "palimpsest/kernels/scalar_kernels.hpp"
#include "palimpsest/kernels/strided_loop.hpp"

namespace palimpsest {
namespace {

constexpr int kMaxViews = ElementwiseProgram::kMaxInputs + ElementwiseProgram::kMaxOutputs;
constexpr int kMaxRegisters = ElementwiseProgram::kMaxRegisters;
constexpr index_t kScratchBytes = 65536;
constexpr index_t kLongTile = 1024;
constexpr index_t kSquareTile = 32;
constexpr index_t kCacheLine = 64;

// Where the elements of a register are while a tile is computed.
enum class Place : std::uint8_t { slot, memory };

struct Grid {
  index_t rows = 1, cols = 1;              // of a full tile
  index_t row_extent = 1, col_extent = 1;  // of the axes
  index_t row_tiles = 1, col_tiles = 1, tiles = 1;
  int outer_rank = 0;  // axes in front of the two that are tiled
};

struct Run {
  const ElementwiseProgram& program;
  StridedLoop<kMaxViews> loop;  // outputs first, then inputs
  int n_outputs = 0, n_inputs = 0;
  Grid grid;
  index_t slot_bytes = 0;
  std::array<std::int16_t, kMaxRegisters> slot;    // -1: none
  std::array<Place, kMaxRegisters> place;          // of inputs and of results that are outputs
  std::array<std::int16_t, kMaxRegisters> view;    // loop operand of what lies in memory
  std::array<bool, kMaxViews> still;               // an input of one element for all
  std::array<CopyRow, kMaxViews> copy;             // loads an input, stores an output
  std::array<ScalarKernel, kMaxRegisters> kernel;  // by instruction; null: a cast
  std::array<CopyRow, kMaxRegisters> convert;

  explicit Run(const ElementwiseProgram& p) : program(p) {}
};

std::size_t at(int i) { return static_cast<std::size_t>(i); }

index_t item_of(const Run& run, int r) {
  return static_cast<index_t>(item_size(run.program.dtype_of_register(r)));
}

// Moves the axis that some input walks densely, while it jumps along the innermost one, next to
// the innermost. Says whether there is one.
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

void make_grid(Run& run, index_t longest) {
  auto& loop = run.loop;
  Grid& grid = run.grid;
  if (loop.rank == 0) {
    loop.rank = 1;
    loop.at(0).extent = 1;
    loop.at(0).steps.fill(0);
  }
  const bool square = loop.rank > 1 && arrange_square_tiles(run);
  grid.outer_rank = std::max(loop.rank - 2, 0);
  grid.col_extent = loop.at(loop.rank - 1).extent;
  if (loop.rank > 1) grid.row_extent = loop.at(loop.rank - 2).extent;
  if (square) {
    grid.cols = std::min({kSquareTile, longest, grid.col_extent});
    grid.rows = std::min({kSquareTile, longest / grid.cols, grid.row_extent});
  } else {
    grid.cols = std::min(longest, grid.col_extent);
    grid.rows = std::clamp<index_t>(longest / grid.cols, 1, grid.row_extent);
    if (grid.cols < grid.col_extent) grid.rows = 1;
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

// Number of the last instruction that reads an input, -1 if none does.
int last_read_of_inputs(const ElementwiseProgram& program) {
  std::array<bool, kMaxRegisters> is_input{};
  for (const int r : program.inputs()) is_input[at(r)] = true;
  const auto steps = program.instructions();
  for (int i = static_cast<int>(steps.size()) - 1; i >= 0; --i) {
    for (const std::int16_t s : steps[at(i)].sources) {
      if (s >= 0 && is_input[at(s)]) return i;
    }
  }
  return -1;
}

// Decides which registers are used where they lie, point 2 and 3 above.
void place_registers(Run& run, std::span<const ConstView> inputs,
                     std::span<const MutableView> outputs) {
  const ElementwiseProgram& program = run.program;
  run.place.fill(Place::slot);
  run.view.fill(-1);
  for (int i = 0; i < run.n_inputs; ++i) {
    const int r = program.inputs()[at(i)], operand = run.n_outputs + i;
    run.view[at(r)] = static_cast<std::int16_t>(operand);
    run.still[at(operand)] = true;
    for (int axis = 0; axis < run.loop.rank; ++axis) {
      if (run.loop.step(operand, axis) != 0) run.still[at(operand)] = false;
    }
    const DType dtype = program.dtype_of_register(r);
    run.copy[at(operand)] = copy_row_between(inputs[at(i)].dtype, dtype);
    if (inputs[at(i)].dtype == dtype && !run.still[at(operand)] &&
        is_dense(run, operand, item_of(run, r))) {
      run.place[at(r)] = Place::memory;
    }
  }
  for (int k = 0; k < run.n_outputs; ++k) {
    const int r = program.outputs()[at(k)];
    run.copy[at(k)] = copy_row_between(program.dtype_of_register(r), outputs[at(k)].dtype);
    // An input that is handed on is read before another output may overwrite it.
    if (run.view[at(r)] >= run.n_outputs) run.place[at(r)] = Place::slot;
  }
  const int last_read = last_read_of_inputs(program);
  const auto steps = program.instructions();
  for (int i = std::max(last_read, 0); i < static_cast<int>(steps.size()); ++i) {
    const int r = steps[at(i)].destination;
    for (int k = 0; k < run.n_outputs; ++k) {
      if (program.outputs()[at(k)] != r || run.view[at(r)] >= 0) continue;
      if (outputs[at(k)].dtype == program.dtype_of_register(r) &&
          is_dense(run, k, item_of(run, r))) {
        run.place[at(r)] = Place::memory;
        run.view[at(r)] = static_cast<std::int16_t>(k);
      }
    }
  }
}

// Gives each register in a slot the lowest one that is free while it lives; returns their number.
// `everywhere`: as if nothing lay in memory, to bound the number before tiles are known.
int assign_slots(Run& run, bool everywhere) {
  const ElementwiseProgram& program = run.program;
  const auto steps = program.instructions();
  const int forever = static_cast<int>(steps.size());
  std::array<int, kMaxRegisters> last_use;
  last_use.fill(-1);
  for (int i = 0; i < forever; ++i) {
    for (const std::int16_t s : steps[at(i)].sources) {
      if (s >= 0) last_use[at(s)] = i;
    }
  }
  for (const int r : program.outputs()) last_use[at(r)] = forever;
  int n_slots = 0;
  std::array<int, kMaxRegisters> free_after;  // by slot: the instruction that uses it last
  const auto take = [&](int r, int now) {
    run.slot[at(r)] = -1;
    if (!everywhere && run.place[at(r)] == Place::memory) return;
    int s = 0;
    while (s < n_slots && free_after[at(s)] >= now) ++s;
    n_slots = std::max(n_slots, s + 1);
    free_after[at(s)] = std::max(last_use[at(r)], now);
    run.slot[at(r)] = static_cast<std::int16_t>(s);
  };
  for (int i = 0; i < run.n_inputs; ++i) {
    const int r = program.inputs()[at(i)];
    // What is loaded once for all tiles keeps its slot.
    if (everywhere || run.still[at(run.n_outputs + i)]) last_use[at(r)] = forever;
    take(r, 0);
  }
  for (int i = 0; i < forever; ++i) take(steps[at(i)].destination, i);
  return n_slots;
}

void find_kernels(Run& run) {
  const auto steps = run.program.instructions();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto& step = steps[i];
    const auto source = at(step.sources[step.op == ScalarOp::where ? 1 : 0]);
    const DType working = run.program.dtype_of_register(static_cast<int>(source));
    run.kernel[i] = nullptr;
    if (step.op == ScalarOp::identity) {
      run.convert[i] = copy_row_between(working, step.dtype);
    } else {
      run.kernel[i] = scalar_kernel(step.op, working);
    }
  }
}

// A tile at work: its size and where each operand's part of it begins.
struct Tile {
  index_t rows, cols;
  std::array<std::byte*, kMaxViews> data;
  index_t count() const { return rows * cols; }
};

void locate(const Run& run, index_t number, Tile& tile) {
  const Grid& grid = run.grid;
  const auto& loop = run.loop;
  const index_t col = number % grid.col_tiles * grid.cols;
  number /= grid.col_tiles;
  const index_t row = number % grid.row_tiles * grid.rows;
  number /= grid.row_tiles;
  tile.cols = std::min(grid.cols, grid.col_extent - col);
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
}

void load(const Run& run, const Tile& tile, int operand, std::byte* slot, index_t item) {
  const auto& loop = run.loop;
  const index_t row_step = loop.rank > 1 ? loop.step(operand, loop.rank - 2) : 0;
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

void run_instructions(const Run& run, const std::array<std::byte*, kMaxRegisters>& registers,
                      index_t n) {
  const auto steps = run.program.instructions();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto& step = steps[i];
    std::byte* out = registers[at(step.destination)];
    if (run.kernel[i] == nullptr) {
      const int source = step.sources[0];
      run.convert[i](registers[at(source)], item_of(run, source), out,
                     item_of(run, step.destination), n);
      continue;
    }
    std::array<const std::byte*, kMaxArity> sources{};
    for (std::size_t s = 0; s < sources.size(); ++s) {
      if (step.sources[s] >= 0) sources[s] = registers[at(step.sources[s])];
    }
    run.kernel[i](sources.data(), out, n);
  }
}

void run_tiles(const Run& run, index_t begin, index_t end) {
  alignas(kCacheLine) std::array<std::byte, kScratchBytes> scratch;
  std::array<std::byte*, kMaxRegisters> registers;
  const ElementwiseProgram& program = run.program;
  for (int r = 0; r < program.n_registers(); ++r) {
    registers[at(r)] =
        run.slot[at(r)] < 0 ? nullptr : scratch.data() + run.slot[at(r)] * run.slot_bytes;
  }
  Tile tile;
  for (int i = 0; i < run.n_inputs; ++i) {
    const int r = program.inputs()[at(i)], operand = run.n_outputs + i;
    if (!run.still[at(operand)]) continue;
    run.copy[at(operand)](run.loop.data[at(operand)], 0, registers[at(r)], item_of(run, r),
                          run.grid.rows * run.grid.cols);
  }
  for (index_t number = begin; number < end; ++number) {
    locate(run, number, tile);
    for (int r = 0; r < program.n_registers(); ++r) {
      if (run.place[at(r)] == Place::memory) registers[at(r)] = tile.data[at(run.view[at(r)])];
    }
    for (int i = 0; i < run.n_inputs; ++i) {
      const int r = program.inputs()[at(i)], operand = run.n_outputs + i;
      if (run.still[at(operand)] || run.place[at(r)] == Place::memory) continue;
      load(run, tile, operand, registers[at(r)], item_of(run, r));
    }
    run_instructions(run, registers, tile.count());
    for (int k = 0; k < run.n_outputs; ++k) {
      const int r = program.outputs()[at(k)];
      if (registers[at(r)] != tile.data[at(k)]) {
        store(run, tile, k, registers[at(r)], item_of(run, r));
      }
    }
  }
}

}  // namespace

void run_elementwise(const ElementwiseProgram& program, std::span<const ConstView> inputs,
                     std::span<const MutableView> outputs) {
  assert(inputs.size() == program.inputs().size() && outputs.size() == program.outputs().size());
  if (outputs.empty()) return;
  Run run(program);
  run.n_inputs = static_cast<int>(inputs.size());
  run.n_outputs = static_cast<int>(outputs.size());
  auto& loop = run.loop;
  loop.set_extents(outputs[0].extents);
  for (const MutableView& v : outputs) {
    assert(std::equal(v.extents.begin(), v.extents.end(), outputs[0].extents.begin()));
    loop.add_operand(v.data, v.strides, item_size(v.dtype));
  }
  for (const ConstView& v : inputs) {
    assert(v.rank() == outputs[0].rank());
    loop.add_operand(v.data, v.strides, item_size(v.dtype));
  }
  if (loop.count() == 0) return;
  loop.squeeze();
  loop.flip_to(0);
  loop.sort(0, loop.rank, [&](int axis) { return loop.step(0, axis); });
  loop.merge(0, loop.rank);

  index_t largest = 1;
  for (int r = 0; r < program.n_registers(); ++r) largest = std::max(largest, item_of(run, r));
  const index_t slots = std::max(assign_slots(run, true), 1);
  const index_t longest = std::min(kLongTile, kScratchBytes / (slots * largest) / 16 * 16);
  make_grid(run, longest);
  place_registers(run, inputs, outputs);
  assign_slots(run, false);
  run.slot_bytes = longest * largest;
  find_kernels(run);
  parallel_ranges(run.grid.tiles, kParallelGrain / (run.grid.rows * run.grid.cols) + 1,
                  [&](index_t begin, index_t end) { run_tiles(run, begin, end); });
}

}  // namespace palimpsest
