// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "palimpsest/base/view.hpp"
#include "palimpsest/kernels/elementwise/scalar_op.hpp"

namespace palimpsest {

/// A straight-line program over scalars, run for every element of some arrays, tile by tile in
/// cache. Registers are numbered in the order of their creation; each is an input or the result of
/// an instruction. A single op is a program of one instruction; fusing two programs is `append`.
///
/// Cost     building allocates; running allocates nothing
class ElementwiseProgram {
 public:
  static constexpr int kMaxRegisters = 128, kMaxInputs = 48, kMaxOutputs = 16;

  /// Operands have the dtypes that scalar_op_types demands: casts are instructions of their own.
  struct Instruction {
    ScalarOp op;
    DType dtype;  // of the result
    std::int16_t destination;
    std::array<std::int16_t, kMaxArity> sources;  // unused ones are -1
    friend bool operator==(const Instruction&, const Instruction&) = default;
  };

  ElementwiseProgram() = default;
  /// An op on inputs of these dtypes; its result is the output.
  ElementwiseProgram(ScalarOp op, std::span<const DType> input_dtypes);

  /// A new input; returns its register. ValueError beyond kMaxInputs (output: kMaxOutputs).
  int input(DType dtype);
  /// Applies op after the casts that it requires; returns the register of the result. A comparison
  /// of int64 with uint64 takes several instructions, since no integer type holds both.
  /// Errors   DTypeError as scalar_op_types; ValueError beyond kMaxRegisters
  int apply(ScalarOp op, std::span<const int> sources);
  int apply(ScalarOp op, std::initializer_list<int> sources);
  /// Converts a register to dtype and returns the result: the register itself if it has that dtype,
  /// an earlier cast if there is one.
  int cast(int source, DType dtype);
  /// Makes a register the next output.
  void output(int source);
  /// Inlines `other`: `inputs` are the registers of this program that replace its inputs. Returns
  /// the registers of its outputs, without making them outputs here.
  std::vector<int> append(const ElementwiseProgram& other, std::span<const int> inputs);

  int n_inputs() const { return static_cast<int>(inputs_.size()); }
  int n_registers() const { return static_cast<int>(dtypes_.size()); }
  /// Registers of the inputs and of the outputs, in order.
  std::span<const int> inputs() const { return inputs_; }
  std::span<const int> outputs() const { return outputs_; }
  std::span<const Instruction> instructions() const { return instructions_; }
  DType dtype_of_register(int r) const { return dtypes_[static_cast<std::size_t>(r)]; }

  /// Identity stamp: kept by copies, renewed by every change. Equal stamps imply equal programs.
  std::uint64_t version() const { return version_; }

  friend bool operator==(const ElementwiseProgram& a, const ElementwiseProgram& b) {
    return a.dtypes_ == b.dtypes_ && a.inputs_ == b.inputs_ && a.outputs_ == b.outputs_ &&
           a.instructions_ == b.instructions_;
  }

 private:
  int add_register(DType dtype);
  void change_version();

  std::uint64_t version_ = 0;
  std::vector<DType> dtypes_;  // per register
  std::vector<int> inputs_, outputs_;
  std::vector<Instruction> instructions_;
};

/// Runs the program for every element.
///
/// Shapes   all views have the same extents; inputs broadcast by stride 0; outputs have no stride 0
///          along an axis of more than one element. Any strides otherwise
/// DTypes   an input view may have another dtype than its register, and so may an output view:
///          elements are converted (as strided_copy does)
/// Aliases  an output may share the memory of an input with the same strides and item size;
///          otherwise outputs are disjoint from the inputs and from each other
/// Cost     one pass over memory; at most 160 KiB of stack per thread; threads from oneTBB for big
///          arrays. The preparation for given dtypes, extents and strides is cached for about a
///          hundred programs. The result depends neither on the number of threads nor on alignment
void run_elementwise(const ElementwiseProgram& program, std::span<const ConstView> inputs,
                     std::span<const MutableView> outputs);

}  // namespace palimpsest
