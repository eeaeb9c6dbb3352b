// SPDX-License-Identifier: Apache-2.0
// Restores elementwise ops from their texts. restore_op() compares the text of the result with the
// given text, so these readers need not be strict.
#include <string_view>
#include <utility>

#include "palimpsest/ops/elementwise/elementwise_op.hpp"

namespace palimpsest::ops {
namespace {

constexpr std::string_view kInPlace = "InPlace";

ScalarOp scalar_op_of(std::string_view name) {
  for (int i = 0; i < kScalarOpCount; ++i) {
    const auto op = static_cast<ScalarOp>(i);
    if (name_of(op) == name || camel_case(name_of(op)) == name) return op;
  }
  throw FormatError("no scalar function '" + std::string(name) + "'");
}

int register_number(ParameterText& text) {
  text.expect("r");
  const index_t number = text.integer();
  if (number < 0 || number >= ElementwiseProgram::kMaxRegisters) {
    throw FormatError("register " + std::to_string(number));
  }
  return static_cast<int>(number);
}

// `float64, float32 -> float64`
ElementwiseProgram brief_program_of(ScalarOp op, ParameterText& text) {
  std::vector<DType> dtypes;
  do {
    dtypes.push_back(text.dtype());
  } while (text.take(", "));
  text.expect(" -> ");
  const DType result = text.dtype();
  if (op != ScalarOp::identity) {
    if (static_cast<int>(dtypes.size()) != arity(op)) throw FormatError("number of operands");
    return ElementwiseProgram(op, dtypes);
  }
  ElementwiseProgram program;
  program.output(program.cast(program.input(dtypes[0]), result));
  return program;
}

}  // namespace

// Registers get their numbers in the order in which they are made, inputs among the results.
template <>
ElementwiseProgram read_value<ElementwiseProgram>(ParameterText& text) {
  std::vector<std::pair<int, DType>> inputs;
  while (!text.take(";")) {
    if (!inputs.empty()) text.expect(", ");
    const int number = register_number(text);
    text.expect(":");
    inputs.emplace_back(number, text.dtype());
  }
  ElementwiseProgram program;
  auto next_input = inputs.begin();
  const auto add_inputs = [&] {
    while (next_input != inputs.end() && next_input->first == program.n_registers()) {
      program.input((next_input++)->second);
    }
  };
  const auto source = [&] {
    const int number = register_number(text);
    if (number >= program.n_registers()) throw FormatError("a register before it is made");
    return number;
  };
  add_inputs();
  text.expect(" ");
  while (!text.take("->")) {
    register_number(text);
    text.expect("=");
    const ScalarOp op = scalar_op_of(text.word());
    text.expect("(");
    std::vector<int> sources;
    while (!text.take(")")) {
      if (!sources.empty()) text.expect(", ");
      sources.push_back(source());
    }
    text.expect(":");
    const DType dtype = text.dtype();
    if (op == ScalarOp::identity) {
      if (sources.size() != 1) throw FormatError("a cast of several registers");
      program.cast(sources[0], dtype);
    } else {
      if (static_cast<int>(sources.size()) != arity(op)) throw FormatError("number of operands");
      program.apply(op, sources);
    }
    add_inputs();
    text.expect("; ");
  }
  while (text.take(" ")) program.output(source());
  return program;
}

std::vector<std::string> Elementwise::names() {
  std::vector<std::string> names{"Cast", "Fused"};
  for (int i = 0; i < kScalarOpCount; ++i) {
    const auto op = static_cast<ScalarOp>(i);
    if (op != ScalarOp::identity) names.push_back(camel_case(name_of(op)));
  }
  const std::size_t n = names.size();
  for (std::size_t i = 0; i < n; ++i) names.push_back(names[i] + std::string(kInPlace));
  // The op that views a complex number restores these two names.
  std::erase_if(names, [](const std::string& name) { return name == "Real" || name == "Imag"; });
  return names;
}

OpPtr Elementwise::restored(std::string_view name, ParameterText& text) {
  const bool in_place = name.ends_with(kInPlace);
  const std::string_view op = name.substr(0, name.size() - (in_place ? kInPlace.size() : 0));
  ElementwiseProgram program;
  if (text.rest().find(';') != std::string_view::npos) {
    program = read_value<ElementwiseProgram>(text);
  } else {
    program = brief_program_of(op == "Cast" ? ScalarOp::identity : scalar_op_of(op), text);
  }
  if (program.outputs().empty()) throw FormatError("a program without outputs");
  Elementwise::Overwrites overwrites;
  if (in_place) {
    text.expect(", ");
    if (program.outputs().size() == 1) {
      overwrites.push_back(text.integer("overwrites"));
    } else {
      for (const index_t i : text.integers("overwrites")) overwrites.push_back(i);
    }
  }
  return std::make_shared<Elementwise>(std::move(program), overwrites);
}

OpPtr ComplexPart::restored(std::string_view name, ParameterText& text) {
  if (!text.is_at_end()) return Elementwise::restored(name, text);
  return std::make_shared<ComplexPart>(name == "Imag");
}

}  // namespace palimpsest::ops
