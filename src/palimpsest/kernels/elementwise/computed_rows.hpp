// SPDX-License-Identifier: Apache-2.0
// Internal: elements that a program computes when they are read.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "palimpsest/kernels/arrays/filtered_rows.hpp"
#include "palimpsest/kernels/arrays/strided_loop.hpp"
#include "palimpsest/kernels/elementwise/tile_plan.hpp"

namespace palimpsest {

/// The outputs of a program as virtual arrays: dense, row-major, computed when read. Either the
/// first output only, for inputs of equal extents; or all outputs, the first of which are stored.
/// Owns no memory.
class ComputedRows {
 public:
  class Reader;
  /// block() is a multiple of kRun if outputs are stored.
  static constexpr index_t kRun = 256;
  /// Maximum number of registers of a program whose outputs are stored.
  static constexpr int kMostStoring = 40;
  static constexpr std::size_t kMostFiltered = 4;

  ComputedRows(const ElementwiseProgram& program, std::span<const ConstView> inputs);
  /// `stored` receives the first outputs; its arrays have the inputs' extents, and each may be one
  /// of the inputs. Bit k of `read_late`: output k is read after compute(); otherwise, if it is an
  /// input, before. `filtered`: up to kMostFiltered inputs; none of them is stored to.
  ComputedRows(const ElementwiseProgram& program, std::span<const ConstView> inputs,
               std::span<const MutableView> stored, std::uint32_t read_late,
               std::span<const FilteredInput> filtered);
  DType dtype() const { return program_.dtype_of_register(program_.outputs()[0]); }
  /// Number of elements computed at once.
  index_t block() const { return block_; }

 private:
  static constexpr int kMaxInputs = ElementwiseProgram::kMaxInputs;
  static constexpr int kMaxOperands = 1 + kMaxInputs + ElementwiseProgram::kMaxOutputs;
  static constexpr index_t kScratchBytes = kRun * kMostStoring * 16 + 16384;
  // A run of elements along one axis: its beginning, step and length.
  struct Piece {
    std::array<index_t, kMaxOperands> offset;
    int along;
    index_t jump, length;
  };

  void prepare(std::span<const ConstView> inputs, std::span<const MutableView> stored, bool reads,
               std::uint32_t read_late);
  bool is_read_late(int r, std::uint32_t read_late) const;
  void place_in_scratch();
  Piece piece_at(index_t element, index_t step, index_t n) const;

  index_t item_of(int r) const {
    return static_cast<index_t>(item_size(program_.dtype_of_register(r)));
  }

  const ElementwiseProgram& program_;
  StridedLoop<kMaxOperands> loop_;  // operand 0: element numbers; then inputs; then stored outputs
  TilePlan plan_;
  std::array<CopyRow, kMaxInputs> copy_;
  std::array<CopyRow, ElementwiseProgram::kMaxOutputs> store_;
  int n_stored_ = 0;
  std::array<bool, kMaxInputs> still_;      // one element for the whole array
  std::array<bool, kMaxInputs> row_still_;  // one element per row: blocks end with their rows
  bool has_row_still_ = false;
  std::array<bool, kMaxInputs> is_as_computed_;  // has the dtype of its register
  std::array<index_t, kMaxInputs> copies_;       // offsets in scratch of the copies of an input
  std::array<int, kMaxInputs> filter_of_;        // by input; -1: none
  std::array<std::optional<FilteredRows>, kMostFiltered> filters_;
  index_t slots_ = 0, slot_bytes_ = 0;  // offset of the slots in scratch; bytes of a slot
  index_t block_ = 1, item_ = 1;        // elements computed at once; bytes of the largest
};

/// Reader of a thread. About 190 KiB; most programs touch a tenth of it.
class ComputedRows::Reader {
 public:
  explicit Reader(const ComputedRows& rows);
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  /// Writes n elements first, first + step, ... (row-major numbers) densely to `to`.
  void read(index_t first, index_t step, index_t n, std::byte* to);
  /// Prepares the inputs for n <= block() elements from `first` on.
  void bring(index_t first, index_t n) { bring_inputs(first, 1, n); }
  /// Computes and stores the elements that bring() prepared.
  void compute(index_t first, index_t n);
  /// Output k as compute() left it, dense, valid until the next bring(). For an output that is an
  /// input: also after bring().
  const std::byte* output(int k) const;

 private:
  void bring_inputs(index_t first, index_t step, index_t n);

  const ComputedRows& rows_;
  std::array<std::byte*, TilePlan::kMaxRegisters> registers_;
  std::array<const std::byte*, kMaxInputs> row_element_{};  // current element of a row_still_ input
  alignas(64) std::array<std::byte, kScratchBytes> scratch_;
  alignas(64) std::array<std::byte, TilePlan::kMaxConstants * TilePlan::kConstantBytes> constants_;
};

}  // namespace palimpsest
