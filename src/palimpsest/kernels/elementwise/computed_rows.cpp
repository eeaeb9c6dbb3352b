// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/elementwise/computed_rows.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "palimpsest/base/cache_size.hpp"

namespace palimpsest {
namespace {

constexpr index_t kCachedBytes = 16384;  // half of a first level cache
constexpr index_t kLongestBlock = 2048;
// Minimum row length for blocks that end with their rows: an input with one element per row is then
// not copied along the row.
constexpr index_t kLongRow = 256;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

ComputedRows::ComputedRows(const ElementwiseProgram& program, std::span<const ConstView> inputs)
    : program_(program), plan_(program) {
  filter_of_.fill(-1);
  prepare(inputs, {}, true, 0);
}

ComputedRows::ComputedRows(const ElementwiseProgram& program, std::span<const ConstView> inputs,
                           std::span<const MutableView> stored, std::uint32_t read_late,
                           std::span<const FilteredInput> filtered)
    : program_(program), plan_(program), n_stored_(static_cast<int>(stored.size())) {
  assert(program.n_registers() <= kMostStoring && filtered.size() <= kMostFiltered);
  filter_of_.fill(-1);
  for (std::size_t k = 0; k < filtered.size(); ++k) {
    const FilteredInput& f = filtered[k];
    filter_of_[at(f.input)] = static_cast<int>(k);
    filters_[k].emplace(f.stencil, f.is_adjoint, inputs[at(f.input)]);
  }
  prepare(inputs, stored, false, read_late);
  // Sums are fastest over long runs. Their operands are read from the next cache level.
  index_t bytes = plan_.slots() * item_ + 1;
  for (const int r : program.inputs()) bytes += item_of(r);
  block_ = std::clamp(kScratchBytes / bytes, kRun, kLongestBlock) / kRun * kRun;
  place_in_scratch();
}

bool ComputedRows::is_read_late(int r, std::uint32_t read_late) const {
  const auto outputs = program_.outputs();
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const bool is_stored = k < at(n_stored_);
    if (outputs[k] == r && (is_stored || (read_late >> k & 1) != 0)) return true;
  }
  return false;
}

void ComputedRows::prepare(std::span<const ConstView> inputs, std::span<const MutableView> stored,
                           bool reads, std::uint32_t read_late) {
  assert(!inputs.empty() && inputs.size() == program_.inputs().size());
  loop_.set_extents(inputs[0].extents);
  Strides dense(inputs[0].rank());
  index_t elements = 1;
  for (std::size_t k = dense.size(); k-- > 0; elements *= inputs[0].extents[k]) dense[k] = elements;
  loop_.add_operand(nullptr, dense, 1);
  for (const ConstView& v : inputs) loop_.add_operand(v.data, v.strides, item_size(v.dtype));
  for (const MutableView& v : stored) loop_.add_operand(v.data, v.strides, item_size(v.dtype));
  loop_.squeeze();
  loop_.merge(0, loop_.rank);

  plan_.begin_placing();
  // Bytes: of the largest register element; of copies and of arrays, per element.
  index_t item = 1, copied = 0, moved = 0;
  for (int r = 0; r < program_.n_registers(); ++r) item = std::max(item, item_of(r));
  for (int i = 0; i < program_.n_inputs(); ++i) {
    const int r = program_.inputs()[at(i)];
    const DType dtype = inputs[at(i)].dtype;
    copy_[at(i)] = copy_row_between(dtype, program_.dtype_of_register(r));
    const auto outputs = program_.outputs();
    const bool is_output = std::find(outputs.begin(), outputs.end(), r) != outputs.end();
    // Is the input read after arrays were stored, possibly over it?
    const bool is_overwritten =
        std::any_of(stored.begin(), stored.end(),
                    [&](const MutableView& v) { return v.data == inputs[at(i)].data; });
    is_as_computed_[at(i)] =
        dtype == program_.dtype_of_register(r) && !(is_overwritten && is_read_late(r, read_late));
    still_[at(i)] = loop_.rank > 0 && !is_output && filter_of_[at(i)] < 0;
    for (int axis = 0; axis < loop_.rank; ++axis) {
      if (loop_.step(i + 1, axis) != 0) still_[at(i)] = false;
    }
    row_still_[at(i)] = reads && !still_[at(i)] && !is_output && loop_.rank > 0 &&
                        loop_.step(i + 1, loop_.rank - 1) == 0 &&
                        loop_.at(loop_.rank - 1).extent >= kLongRow;
    has_row_still_ |= row_still_[at(i)];
    const bool is_still = still_[at(i)] || row_still_[at(i)];
    if (!is_still) copied += item_of(r);
    if (!is_still) moved += item_of(r);
    plan_.place_input(i, !is_still, is_still);
  }
  for (int k = 0; k < n_stored_; ++k) {
    const DType made = program_.dtype_of_register(program_.outputs()[at(k)]);
    moved += static_cast<index_t>(item_size(made));
    store_[at(k)] = copy_row_between(made, stored[at(k)].dtype);
    // Results whose elements lie densely are computed in place.
    const int operand = 1 + program_.n_inputs() + k;
    const bool is_dense =
        loop_.rank == 0 ||
        (loop_.rank == 1 && loop_.step(operand, 0) == item_of(program_.outputs()[at(k)]));
    int last_read = 0;  // the last instruction that reads an overwritten input
    for (int i = 0; i < program_.n_inputs(); ++i) {
      if (inputs[at(i)].data == stored[at(k)].data) {
        last_read = std::max(last_read, plan_.last_read(i));
      }
    }
    plan_.place_output(k, is_dense && made == stored[at(k)].dtype, false, last_read);
  }
  if (reads) plan_.place_output(0, true, false, 0);
  plan_.finish(elements * moved > core_cache_bytes() ? AskFor::everything : AskFor::nothing);
  item_ = item;
  const index_t bytes = plan_.slots() * item + copied + 1;  // scratch bytes per element
  const index_t cached = std::clamp(kCachedBytes / bytes, kTileBlock, kLongestBlock);
  block_ = std::min(cached, kScratchBytes / bytes) / kTileLanes * kTileLanes;
  place_in_scratch();
}

void ComputedRows::place_in_scratch() {
  slot_bytes_ = block_ * item_;
  index_t begin = plan_.slots() * slot_bytes_;
  for (int i = 0; i < program_.n_inputs(); ++i) {
    copies_[at(i)] = begin;
    if (!still_[at(i)] && !row_still_[at(i)]) {
      begin += block_ * item_of(program_.inputs()[at(i)]);
    }
  }
  assert(begin <= kScratchBytes);
}

// Finds the position of an element and the axis along which the next ones follow.
ComputedRows::Piece ComputedRows::piece_at(index_t element, index_t step, index_t n) const {
  Piece piece{.offset = {}, .along = loop_.rank - 1, .jump = 1, .length = n};
  index_t position = 0;
  for (int axis = loop_.rank - 1; axis >= 0; --axis) {
    const index_t here = element % loop_.at(axis).extent;
    element /= loop_.at(axis).extent;
    for (int k = 1; k < loop_.n_operands; ++k) piece.offset[at(k)] += here * loop_.step(k, axis);
    if (loop_.step(0, axis) > step) continue;
    piece.along = axis;
    position = here;
  }
  if (piece.along < 0) return piece;
  piece.jump = step / loop_.step(0, piece.along);
  const index_t left = loop_.at(piece.along).extent - position;
  if (piece.jump != 0) piece.length = std::min(n, (left + piece.jump - 1) / piece.jump);
  return piece;
}

ComputedRows::Reader::Reader(const ComputedRows& rows) : rows_(rows) {
  const ElementwiseProgram& program = rows.program_;
  for (int r = 0; r < program.n_registers(); ++r) {
    const int slot = rows.plan_.slot_of(r), constant = rows.plan_.constant_of(r);
    registers_[at(r)] = slot < 0 ? nullptr : scratch_.data() + slot * rows.slot_bytes_;
    if (constant >= 0) {
      registers_[at(r)] = constants_.data() + constant * TilePlan::kConstantBytes;
    }
  }
  for (int i = 0; i < program.n_inputs(); ++i) {
    if (!rows.still_[at(i)]) continue;
    rows.plan_.spread(program.inputs()[at(i)], rows.loop_.data[at(i + 1)], rows.copy_[at(i)],
                      registers_, rows.block_);
  }
}

// Points the registers of the inputs to n dense elements: in their array, or in a copy.
void ComputedRows::Reader::bring_inputs(index_t first, index_t step, index_t n) {
  const auto& loop = rows_.loop_;
  const ElementwiseProgram& program = rows_.program_;
  for (int i = 0; i < program.n_inputs(); ++i) {
    if (rows_.filter_of_[at(i)] < 0) continue;
    std::byte* const made = scratch_.data() + rows_.copies_[at(i)];
    rows_.filters_[at(rows_.filter_of_[at(i)])]->read(first, n, made);
    registers_[at(program.inputs()[at(i)])] = made;
  }
  for (index_t done = 0; done < n;) {
    const Piece piece = rows_.piece_at(first + done * step, step, n - done);
    for (int i = 0; i < program.n_inputs(); ++i) {
      if (rows_.still_[at(i)] || rows_.filter_of_[at(i)] >= 0) continue;
      const int r = program.inputs()[at(i)];
      const index_t item = rows_.item_of(r);
      std::byte* from = loop.data[at(i + 1)] + piece.offset[at(i + 1)];
      if (rows_.row_still_[at(i)]) {
        if (std::exchange(row_element_[at(i)], from) == from) continue;
        rows_.plan_.spread(r, from, rows_.copy_[at(i)], registers_, rows_.block_);
        continue;
      }
      const index_t stride = piece.along < 0 ? 0 : piece.jump * loop.step(i + 1, piece.along);
      const bool is_dense = rows_.is_as_computed_[at(i)] && (stride == item || n == 1);
      if (is_dense && piece.length == n) {
        registers_[at(r)] = from;
        continue;
      }
      std::byte* const copy = scratch_.data() + rows_.copies_[at(i)];
      rows_.copy_[at(i)](from, stride, copy + done * item, item, piece.length);
      registers_[at(r)] = copy;
    }
    done += piece.length;
  }
}

void ComputedRows::Reader::read(index_t first, index_t step, index_t n, std::byte* to) {
  const int result = rows_.program_.outputs()[0];
  const index_t item = rows_.item_of(result);
  for (index_t done = 0, count = 0; done < n; done += count) {
    count = std::min(rows_.block_, n - done);
    if (rows_.has_row_still_) {
      const Piece piece = rows_.piece_at(first + done * step, step, count);
      count = piece.along == rows_.loop_.rank - 1 ? piece.length : 1;
    }
    std::byte* const out = to + done * item;
    if (rows_.plan_.output_of(result) >= 0) registers_[at(result)] = out;
    bring_inputs(first + done * step, step, count);
    rows_.plan_.run(registers_, count);
    if (registers_[at(result)] != out) {
      std::memcpy(out, registers_[at(result)], static_cast<std::size_t>(count * item));
    }
  }
}

void ComputedRows::Reader::compute(index_t first, index_t n) {
  const auto& loop = rows_.loop_;
  const int begin = 1 + rows_.program_.n_inputs();
  bool is_all_in_place = true;
  for (int k = 0; k < rows_.n_stored_; ++k) {
    const int r = rows_.program_.outputs()[at(k)];
    if (rows_.plan_.output_of(r) != k) {
      is_all_in_place = false;
      continue;
    }
    registers_[at(r)] = loop.data[at(begin + k)] + first * rows_.item_of(r);
  }
  rows_.plan_.run(registers_, n);
  for (index_t done = 0; !is_all_in_place && done < n;) {
    const Piece piece = rows_.piece_at(first + done, 1, n - done);
    for (int k = 0; k < rows_.n_stored_; ++k) {
      const int r = rows_.program_.outputs()[at(k)], operand = begin + k;
      if (rows_.plan_.output_of(r) == k) continue;
      const index_t item = rows_.item_of(r);
      const index_t stride = piece.along < 0 ? item : piece.jump * loop.step(operand, piece.along);
      rows_.store_[at(k)](registers_[at(r)] + done * item, item,
                          loop.data[at(operand)] + piece.offset[at(operand)], stride, piece.length);
    }
    done += piece.length;
  }
}

const std::byte* ComputedRows::Reader::output(int k) const {
  return registers_[at(rows_.program_.outputs()[at(k)])];
}

}  // namespace palimpsest
