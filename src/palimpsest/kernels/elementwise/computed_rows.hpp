// SPDX-License-Identifier: Apache-2.0
// Internal: the elements of an array that a program makes of others, computed when they are read.
#pragma once

#include <array>
#include <span>

#include "palimpsest/kernels/arrays/strided_loop.hpp"
#include "palimpsest/kernels/elementwise/tile_plan.hpp"

namespace palimpsest {

/// The first output of a program, for inputs of the same extents, as if it lay dense in row-major
/// order. Holds no memory of its own.
class ComputedRows {
 public:
  class Reader;

  ComputedRows(const ElementwiseProgram& program, std::span<const ConstView> inputs);
  DType dtype() const { return program_.dtype_of_register(program_.outputs()[0]); }

 private:
  static constexpr int kMaxInputs = ElementwiseProgram::kMaxInputs;
  static constexpr index_t kScratchBytes = 65536;

  index_t item_of(int r) const {
    return static_cast<index_t>(item_size(program_.dtype_of_register(r)));
  }

  const ElementwiseProgram& program_;
  StridedLoop<kMaxInputs + 1> loop_;  // operand 0 counts elements; then the inputs
  TilePlan plan_;
  std::array<CopyRow, kMaxInputs> copy_;
  std::array<bool, kMaxInputs> still_;           // one element for all
  std::array<bool, kMaxInputs> is_as_computed_;  // has the dtype of its register
  std::array<index_t, kMaxInputs> copies_;       // where copies of an input go in scratch
  index_t slots_ = 0, slot_bytes_ = 0;           // where slots begin in scratch
  index_t block_ = 1;                            // elements computed at once
};

/// One thread's reader. About 80 KiB.
class ComputedRows::Reader {
 public:
  explicit Reader(const ComputedRows& rows);
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  /// Writes elements first, first + step, ... of all in row-major order, n of them, densely.
  void read(index_t first, index_t step, index_t n, std::byte* to);

 private:
  void bring_inputs(index_t first, index_t step, index_t n);

  const ComputedRows& rows_;
  std::array<std::byte*, TilePlan::kMaxRegisters> registers_;
  alignas(64) std::array<std::byte, kScratchBytes> scratch_;
  alignas(64) std::array<std::byte, TilePlan::kMaxConstants * TilePlan::kConstantBytes> constants_;
};

}  // namespace palimpsest
