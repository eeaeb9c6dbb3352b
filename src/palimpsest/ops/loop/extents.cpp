// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/loop/extents.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "palimpsest/ops/create/create_op.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/elementwise/elementwise_op.hpp"
#include "palimpsest/ops/index/index_op.hpp"
#include "palimpsest/ops/loop/run_time_extent_op.hpp"

namespace palimpsest::ops {
namespace {

index_t floor_divided(index_t a, index_t b) {
  if (b == 0) return 0;
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

index_t combined(ExtentProgram::Code code, index_t a, index_t b) {
  using Code = ExtentProgram::Code;
  switch (code) {
    case Code::add:
      return checked_add(a, b);
    case Code::sub:
      return checked_add(a, -b);
    case Code::mul:
      return checked_multiply(a, b);
    case Code::floor_div:
      return floor_divided(a, b);
    case Code::mod:
      return b == 0 ? 0 : a - b * floor_divided(a, b);
    case Code::minimum:
      return std::min(a, b);
    case Code::maximum:
      return std::max(a, b);
    default:
      throw InternalError("[ExtentProgram] no operation of two numbers");
  }
}

std::optional<ExtentProgram::Code> code_of(ScalarOp op) {
  using Code = ExtentProgram::Code;
  switch (op) {
    case ScalarOp::add:
      return Code::add;
    case ScalarOp::sub:
      return Code::sub;
    case ScalarOp::mul:
      return Code::mul;
    case ScalarOp::floor_div:
      return Code::floor_div;
    case ScalarOp::mod:
      return Code::mod;
    case ScalarOp::minimum:
      return Code::minimum;
    case ScalarOp::maximum:
      return Code::maximum;
    case ScalarOp::neg:
      return Code::neg;
    default:
      return {};
  }
}

// Translates graphs of integers with extents as leaves.
class Translator {
 public:
  Translator(std::vector<Variable> arrays, std::string_view who)
      : arrays_(std::move(arrays)), who_(who) {}

  ExtentProgram program_of(const Operand& extent) {
    ExtentProgram result;
    if (!extent.is_number()) {
      const Variable& v = extent.variable();
      if (!is_number(v)) {
        throw DTypeError("[" + who_ + "] extent " + v.str() + ": got " + v.type().str() +
                         ", expected an integer of no axes");
      }
      const std::size_t n_arrays = arrays_.size();
      if (add(v, result)) return result;
      // Only running tells: then it is the extent of an array that is there for that.
      arrays_.resize(n_arrays);
      result = {};
      add_extent(measured(v), 0, result);
    } else if (extent.number().kind != 0) {
      throw DTypeError("[" + who_ + "] extent: got a number that is not an integer");
    } else {
      result.number(extent.number().integer);
    }
    return result;
  }
  std::vector<Variable> take_arrays() { return std::move(arrays_); }

 private:
  std::size_t position_of(const Variable& array) {
    const auto at = std::find(arrays_.begin(), arrays_.end(), array);
    if (at == arrays_.end()) {
      arrays_.push_back(array);
      return arrays_.size() - 1;
    }
    return static_cast<std::size_t>(at - arrays_.begin());
  }

  void add_extent(const Variable& array, std::size_t axis, ExtentProgram& program) {
    const index_t known = array.type().shape[axis];
    if (known != kUnknown) return program.number(known);
    program.extent(position_of(array), axis);
  }

  void add_extents(const Variable& array, const Axes& axes, ExtentProgram& program) {
    program.number(1);
    for (index_t axis : axes) {
      add_extent(array, static_cast<std::size_t>(axis), program);
      program.apply(ExtentProgram::Code::mul);
    }
  }

  Variable measured(const Variable& v) {
    Variable& array = measured_[v.node()];
    if (!array.defined()) {
      const Variable n = astype(v, DType::int64);
      array = std::make_shared<RunTimeExtent>()->make_node({&n, 1}).output(0);
    }
    return array;
  }

  static bool is_number(const Variable& v) { return is_integer(v.dtype()) && v.rank() == 0; }

  // False if it needs more than extents.
  bool add(const Variable& v, ExtentProgram& program) {
    if (!is_number(v)) return false;
    if (v.is_constant()) {
      program.number(v.constant_value().item<index_t>());
      return true;
    }
    const Apply owner = v.owner();
    const Op* op = owner.defined() ? &owner.op() : nullptr;
    if (const auto* count = dynamic_cast<const AxisCount*>(op)) {
      add_extents(owner.input(0), count->axes(), program);
      return true;
    }
    if (const auto* element = dynamic_cast<const Subtensor*>(op)) {
      const Apply shape = owner.input(0).owner();
      const auto* i = std::get_if<index_t>(&element->index().entries()[0]);
      if (shape.defined() && dynamic_cast<const ShapeOf*>(&shape.op()) && i) {
        const auto rank = static_cast<index_t>(shape.input(0).rank());
        add_extent(shape.input(0), static_cast<std::size_t>(*i < 0 ? *i + rank : *i), program);
        return true;
      }
    }
    const auto* scalar = dynamic_cast<const Elementwise*>(op);
    return scalar && scalar->scalar_op() && add_operation(*scalar->scalar_op(), owner, program);
  }

  bool add_operation(ScalarOp op, const Apply& owner, ExtentProgram& program) {
    const std::optional<ExtentProgram::Code> code = code_of(op);
    if (!code && op != ScalarOp::identity) return false;
    for (const Variable& input : owner.inputs()) {
      if (!add(input, program)) return false;
    }
    if (code) program.apply(*code);
    return true;
  }

  std::vector<Variable> arrays_;
  std::string who_;
  std::unordered_map<const VariableNode*, Variable> measured_;  // arrays of so many elements
};

}  // namespace

ExtentProgram ExtentProgram::of_input(std::size_t input, std::size_t axis) {
  ExtentProgram result;
  result.extent(input, axis);
  return result;
}

void ExtentProgram::number(index_t value) { tokens_.push_back({Code::number, value, 0}); }
void ExtentProgram::extent(std::size_t input, std::size_t axis) {
  tokens_.push_back({Code::extent, static_cast<index_t>(input), axis});
}

// Numbers are combined at once, so that equal extents have equal programs.
void ExtentProgram::apply(Code code) {
  const std::size_t n = tokens_.size(), n_operands = code == Code::neg ? 1 : 2;
  const bool folds =
      n >= n_operands &&
      std::all_of(tokens_.end() - static_cast<std::ptrdiff_t>(n_operands), tokens_.end(),
                  [](const Token& t) { return t.code == Code::number; });
  if (!folds) {
    tokens_.push_back({code, 0, 0});
    return;
  }
  const index_t b = tokens_.back().value;
  if (code == Code::neg) {
    tokens_.back().value = -b;
    return;
  }
  tokens_.pop_back();
  tokens_.back().value = combined(code, tokens_.back().value, b);
}

std::optional<index_t> ExtentProgram::evaluate(std::span<const Extents> inputs) const {
  SmallVector<index_t, 16> stack;
  for (const Token& token : tokens_) {
    if (token.code == Code::number) {
      stack.push_back(token.value);
    } else if (token.code == Code::extent) {
      const auto input = static_cast<std::size_t>(token.value);
      if (input >= inputs.size() || token.axis >= inputs[input].size()) {
        throw ShapeError("[extents] axis " + std::to_string(token.axis) + " of input " +
                         std::to_string(input) + " does not exist");
      }
      const index_t extent = inputs[input][token.axis];
      if (extent == kUnknown) return {};
      stack.push_back(extent);
    } else if (token.code == Code::neg) {
      stack.back() = -stack.back();
    } else {
      const index_t b = stack.back();
      stack.pop_back();
      stack.back() = combined(token.code, stack.back(), b);
    }
  }
  return stack.back();
}

std::string ExtentProgram::str() const {
  static constexpr const char* kSigns[] = {"", "", "+", "-", "*", "//", "%", "min", "max", "neg"};
  std::string text;
  for (const Token& token : tokens_) {
    if (!text.empty()) text += " ";
    if (token.code == Code::number) {
      text += std::to_string(token.value);
    } else if (token.code == Code::extent) {
      text += "i" + std::to_string(token.value) + "[" + std::to_string(token.axis) + "]";
    } else {
      text += kSigns[static_cast<std::size_t>(token.code)];
    }
  }
  return text;
}

ExtentPrograms numbers(std::span<const index_t> extents) {
  ExtentPrograms result;
  for (index_t extent : extents) result.emplace_back(extent);
  return result;
}

std::string text_of(const ExtentPrograms& programs) {
  std::string text = "(";
  for (std::size_t k = 0; k < programs.size(); ++k) {
    text += (k > 0 ? ", " : "") + programs[k].str();
  }
  return text + (programs.size() == 1 ? ",)" : ")");
}

Extents evaluate(const ExtentPrograms& programs, std::span<const Extents> inputs,
                 std::string_view who) {
  Extents result;
  for (const ExtentProgram& program : programs) {
    const std::optional<index_t> extent = program.evaluate(inputs);
    const bool is_open = extent == kUnknown && program.is_number();
    if (extent && *extent < 0 && !is_open) {
      throw ShapeError("[" + std::string(who) + "] extent " + std::to_string(result.size()) +
                       ": got " + std::to_string(*extent) + ", expected none negative");
    }
    result.push_back(extent.value_or(kUnknown));
  }
  return result;
}

Extents evaluate(const ExtentPrograms& programs, std::span<const Variable> inputs,
                 std::string_view who) {
  std::vector<Extents> shapes;
  for (const Variable& v : inputs) shapes.push_back(v.type().shape);
  return evaluate(programs, shapes, who);
}

void check_known_numbers(const ExtentPrograms& programs, std::string_view who) {
  for (std::size_t k = 0; k < programs.size(); ++k) {
    if (programs[k].is_number() && *programs[k].evaluate({}) < 0) {
      throw ShapeError("[" + std::string(who) + "] extent " + std::to_string(k) + ": got " +
                       programs[k].str() + ", expected none negative");
    }
  }
}

SymbolicShape symbolic_shape(const ShapeArgument& shape, std::vector<Variable> arrays,
                             std::string_view who) {
  Translator translator(std::move(arrays), who);
  SymbolicShape result;
  for (const Operand& extent : shape.extents()) {
    result.extents.push_back(translator.program_of(extent));
  }
  result.arrays = translator.take_arrays();
  return result;
}

}  // namespace palimpsest::ops
