// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/elementwise/computed_rows.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace palimpsest {
namespace {

constexpr index_t kCachedBytes = 16384;  // half a first level cache
constexpr index_t kLongestBlock = 1024;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

ComputedRows::ComputedRows(const ElementwiseProgram& program, std::span<const ConstView> inputs)
    : program_(program), plan_(program) {
  assert(!inputs.empty() && inputs.size() == program.inputs().size());
  loop_.set_extents(inputs[0].extents);
  Strides dense(inputs[0].rank());
  index_t elements = 1;
  for (std::size_t k = dense.size(); k-- > 0; elements *= inputs[0].extents[k]) dense[k] = elements;
  loop_.add_operand(nullptr, dense, 1);
  for (const ConstView& v : inputs) loop_.add_operand(v.data, v.strides, item_size(v.dtype));
  loop_.squeeze();
  loop_.merge(0, loop_.rank);

  plan_.begin_placing();
  index_t item = 1, copied = 0;  // bytes of an element of the largest register, of all copies
  for (int r = 0; r < program.n_registers(); ++r) item = std::max(item, item_of(r));
  for (int i = 0; i < program.n_inputs(); ++i) {
    const int r = program.inputs()[at(i)];
    const DType dtype = inputs[at(i)].dtype;
    copy_[at(i)] = copy_row_between(dtype, program.dtype_of_register(r));
    is_as_computed_[at(i)] = dtype == program.dtype_of_register(r);
    still_[at(i)] = loop_.rank > 0;
    for (int axis = 0; axis < loop_.rank; ++axis) {
      if (loop_.step(i + 1, axis) != 0) still_[at(i)] = false;
    }
    if (!still_[at(i)]) copied += item_of(r);
    plan_.place_input(i, !still_[at(i)], still_[at(i)]);
  }
  plan_.place_output(0, true, false);
  plan_.finish();
  const index_t bytes = plan_.slots() * item + copied + 1;  // of scratch for an element
  const index_t cached = std::clamp(kCachedBytes / bytes, kTileBlock, kLongestBlock);
  block_ = std::min(cached, kScratchBytes / bytes) / kTileLanes * kTileLanes;
  slot_bytes_ = block_ * item;
  index_t begin = plan_.slots() * slot_bytes_;
  for (int i = 0; i < program.n_inputs(); ++i) {
    copies_[at(i)] = begin;
    if (!still_[at(i)]) begin += block_ * item_of(program.inputs()[at(i)]);
  }
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

// Points the registers of the inputs to n elements that are dense: where they lie, or a copy.
void ComputedRows::Reader::bring_inputs(index_t first, index_t step, index_t n) {
  const auto& loop = rows_.loop_;
  const ElementwiseProgram& program = rows_.program_;
  for (index_t done = 0; done < n;) {
    // The position of the element, and the axis along which the next ones follow.
    std::array<index_t, kMaxInputs + 1> offset{};
    index_t rest = first + done * step, position = 0;
    int along = loop.rank - 1;
    for (int axis = loop.rank - 1; axis >= 0; --axis) {
      const index_t here = rest % loop.at(axis).extent;
      rest /= loop.at(axis).extent;
      for (int k = 1; k < loop.n_operands; ++k) offset[at(k)] += here * loop.step(k, axis);
      if (loop.step(0, axis) > step) continue;
      along = axis;
      position = here;
    }
    const index_t jump = along < 0 ? 1 : step / loop.step(0, along);
    const index_t left = along < 0 ? n : loop.at(along).extent - position;
    const index_t length = jump == 0 ? n : std::min(n - done, (left + jump - 1) / jump);
    for (int i = 0; i < program.n_inputs(); ++i) {
      if (rows_.still_[at(i)]) continue;
      const int r = program.inputs()[at(i)];
      const index_t item = rows_.item_of(r);
      std::byte* from = loop.data[at(i + 1)] + offset[at(i + 1)];
      const index_t stride = along < 0 ? 0 : jump * loop.step(i + 1, along);
      const bool is_dense = rows_.is_as_computed_[at(i)] && (stride == item || n == 1);
      if (is_dense && length == n) {
        registers_[at(r)] = from;
        continue;
      }
      std::byte* const copy = scratch_.data() + rows_.copies_[at(i)];
      rows_.copy_[at(i)](from, stride, copy + done * item, item, length);
      registers_[at(r)] = copy;
    }
    done += length;
  }
}

void ComputedRows::Reader::read(index_t first, index_t step, index_t n, std::byte* to) {
  const int result = rows_.program_.outputs()[0];
  const index_t item = rows_.item_of(result);
  for (index_t done = 0; done < n; done += rows_.block_) {
    const index_t count = std::min(rows_.block_, n - done);
    std::byte* const out = to + done * item;
    if (rows_.plan_.output_of(result) >= 0) registers_[at(result)] = out;
    bring_inputs(first + done * step, step, count);
    rows_.plan_.run(registers_, count);
    if (registers_[at(result)] != out) {
      std::memcpy(out, registers_[at(result)], static_cast<std::size_t>(count * item));
    }
  }
}

}  // namespace palimpsest
