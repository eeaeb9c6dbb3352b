// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cassert>
#include <string>

#include "palimpsest/kernels/elementwise/elementwise.hpp"

namespace palimpsest {

ElementwiseProgram::ElementwiseProgram(ScalarOp op, std::span<const DType> input_dtypes) {
  std::vector<int> sources;
  for (const DType dtype : input_dtypes) sources.push_back(input(dtype));
  output(apply(op, sources));
}

void ElementwiseProgram::change_version() {
  static std::atomic<std::uint64_t> last{0};
  version_ = last.fetch_add(1, std::memory_order_relaxed) + 1;
}

int ElementwiseProgram::add_register(DType dtype) {
  if (n_registers() == kMaxRegisters) {
    throw ValueError("[ElementwiseProgram] too many registers: got " +
                     std::to_string(kMaxRegisters + 1) + ", expected at most " +
                     std::to_string(kMaxRegisters) + ". Try two programs");
  }
  change_version();
  dtypes_.push_back(dtype);
  return n_registers() - 1;
}

int ElementwiseProgram::input(DType dtype) {
  if (n_inputs() == kMaxInputs) {
    throw ValueError("[ElementwiseProgram] too many inputs: got " + std::to_string(kMaxInputs + 1) +
                     ", expected at most " + std::to_string(kMaxInputs) + ". Try two programs");
  }
  inputs_.push_back(add_register(dtype));
  return inputs_.back();
}

namespace {

// True for operands that have no common integer type.
bool compares_both_kinds_of_int64(ScalarOp op, std::span<const DType> dtypes) {
  const bool is_comparison = op >= ScalarOp::eq && op <= ScalarOp::ge;
  return is_comparison && dtypes[0] != dtypes[1] &&
         (dtypes[0] == DType::int64 || dtypes[1] == DType::int64) &&
         (dtypes[0] == DType::uint64 || dtypes[1] == DType::uint64);
}

// A number below zero is less than every unsigned one; others are compared as unsigned numbers.
int compare_exactly(ElementwiseProgram& program, ScalarOp op, int a, int b) {
  const bool a_is_signed = program.dtype_of_register(a) == DType::int64;
  const int number = a_is_signed ? a : b;
  const int zero = program.apply(ScalarOp::bitwise_xor, {number, number});
  const int same =
      program.apply(op, {program.cast(a, DType::uint64), program.cast(b, DType::uint64)});
  const bool holds_below_zero =
      op == ScalarOp::ne || (a_is_signed ? op == ScalarOp::lt || op == ScalarOp::le
                                         : op == ScalarOp::gt || op == ScalarOp::ge);
  if (holds_below_zero) {
    return program.apply(ScalarOp::logical_or, {same, program.apply(ScalarOp::lt, {number, zero})});
  }
  return program.apply(ScalarOp::logical_and, {same, program.apply(ScalarOp::ge, {number, zero})});
}

}  // namespace

int ElementwiseProgram::apply(ScalarOp op, std::span<const int> sources) {
  assert(sources.size() == static_cast<std::size_t>(arity(op)));
  if (op == ScalarOp::identity) return cast(sources[0], dtype_of_register(sources[0]));
  std::array<DType, kMaxArity> dtypes{};
  for (std::size_t i = 0; i < sources.size(); ++i) dtypes[i] = dtype_of_register(sources[i]);
  if (compares_both_kinds_of_int64(op, dtypes))
    return compare_exactly(*this, op, sources[0], sources[1]);
  const ScalarOpTypes types = scalar_op_types(op, std::span(dtypes.data(), sources.size()));
  Instruction instruction{op, types.result, -1, {-1, -1, -1}};
  for (std::size_t i = 0; i < sources.size(); ++i) {
    instruction.sources[i] = static_cast<std::int16_t>(cast(sources[i], types.sources[i]));
  }
  instruction.destination = static_cast<std::int16_t>(add_register(types.result));
  instructions_.push_back(instruction);
  return instruction.destination;
}

int ElementwiseProgram::apply(ScalarOp op, std::initializer_list<int> sources) {
  return apply(op, std::span(sources.begin(), sources.size()));
}

int ElementwiseProgram::cast(int source, DType dtype) {
  assert(source >= 0 && source < n_registers());
  if (dtype_of_register(source) == dtype) return source;
  for (const Instruction& earlier : instructions_) {
    if (earlier.op == ScalarOp::identity && earlier.sources[0] == source &&
        earlier.dtype == dtype) {
      return earlier.destination;
    }
  }
  const auto destination = static_cast<std::int16_t>(add_register(dtype));
  instructions_.push_back(
      {ScalarOp::identity, dtype, destination, {static_cast<std::int16_t>(source), -1, -1}});
  return destination;
}

void ElementwiseProgram::output(int source) {
  assert(source >= 0 && source < n_registers());
  if (static_cast<int>(outputs_.size()) == kMaxOutputs) {
    throw ValueError("[ElementwiseProgram] too many outputs: got " +
                     std::to_string(kMaxOutputs + 1) + ", expected at most " +
                     std::to_string(kMaxOutputs) + ". Try two programs");
  }
  change_version();
  outputs_.push_back(source);
}

std::vector<int> ElementwiseProgram::append(const ElementwiseProgram& other,
                                            std::span<const int> inputs) {
  assert(inputs.size() == other.inputs_.size());
  std::vector<int> here(other.dtypes_.size(), -1);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const int there = other.inputs_[i];
    here[static_cast<std::size_t>(there)] = cast(inputs[i], other.dtype_of_register(there));
  }
  const auto at = [&](int r) { return here[static_cast<std::size_t>(r)]; };
  for (const Instruction& step : other.instructions_) {
    int& result = here[static_cast<std::size_t>(step.destination)];
    if (step.op == ScalarOp::identity) {
      result = cast(at(step.sources[0]), step.dtype);
      continue;
    }
    std::array<int, kMaxArity> sources{};
    const auto n = static_cast<std::size_t>(arity(step.op));
    for (std::size_t i = 0; i < n; ++i) sources[i] = at(step.sources[i]);
    result = apply(step.op, std::span(sources.data(), n));
  }
  std::vector<int> outputs;
  for (const int r : other.outputs_) outputs.push_back(at(r));
  return outputs;
}

}  // namespace palimpsest
