// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/elementwise/scalar_op.hpp"

#include <cassert>
#include <string>

namespace palimpsest {
namespace {

// Conversion of an op's operands, and dtype of its result; p is the promotion of the operands.
enum class Rule : std::uint8_t {
  number,             // p -> p
  not_bool,           // p -> p, no bool
  ordered,            // p -> p, not complex
  power,              // p, bool as int8 -> the same
  division,           // power, not complex
  inexact,            // p if inexact, else float64 -> the same
  floating,           // inexact, not complex
  equality,           // p -> bool
  order,              // p -> bool, not complex
  logic,              // bool -> bool
  bits,               // p -> p, bool and integers only
  real_part,          // p -> its real type
  real_power,         // power -> its real type
  inexact_real_part,  // inexact -> its real type
  pair,               // floating -> its complex type
  choice,             // bool, p, p -> p, p of the last two
};

struct Entry {
  std::string_view name;
  int arity;
  Rule rule;
};
constexpr Entry kTable[] = {
#define PALIMPSEST_ENTRY(name, arity, rule) {#name, arity, Rule::rule},
    PALIMPSEST_FOR_EACH_SCALAR_OP(PALIMPSEST_ENTRY)
#undef PALIMPSEST_ENTRY
};
static_assert(std::size(kTable) == kScalarOpCount);

const Entry& entry(ScalarOp op) { return kTable[static_cast<std::size_t>(op)]; }

[[noreturn]] void refuse(ScalarOp op, std::span<const DType> operands, std::string_view expected) {
  std::string text = "[" + std::string(name_of(op)) + "] got ";
  for (std::size_t i = 0; i < operands.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::string(name_of(operands[i]));
  }
  throw DTypeError(text + ", expected " + std::string(expected));
}

// The dtype in which a rule computes, before a real part or a comparison is taken.
DType working_dtype(ScalarOp op, DType p, std::span<const DType> operands) {
  const Rule rule = entry(op).rule;
  switch (rule) {
    case Rule::logic:
      return DType::bool_;
    case Rule::not_bool:
      if (is_bool(p)) refuse(op, operands, "numbers. Try logical_xor, logical_not or a cast");
      return p;
    case Rule::bits:
      if (is_inexact(p)) refuse(op, operands, "bools or integers");
      return p;
    case Rule::ordered:
    case Rule::order:
      if (is_complex(p)) refuse(op, operands, "real numbers, which have an order. Try abs or real");
      return p;
    case Rule::power:
    case Rule::real_power:
    case Rule::division:
      if (rule == Rule::division && is_complex(p)) refuse(op, operands, "real numbers");
      return is_bool(p) ? DType::int8 : p;
    case Rule::inexact:
    case Rule::inexact_real_part:
    case Rule::floating:
    case Rule::pair:
      if (is_complex(p) && (rule == Rule::floating || rule == Rule::pair)) {
        refuse(op, operands, "real numbers");
      }
      return is_inexact(p) ? p : DType::float64;
    case Rule::number:
    case Rule::equality:
    case Rule::real_part:
    case Rule::choice:
      return p;
  }
  throw InternalError("scalar_op_types: not a rule");
}

}  // namespace

int arity(ScalarOp op) { return entry(op).arity; }
std::string_view name_of(ScalarOp op) { return entry(op).name; }

ScalarOpTypes scalar_op_types(ScalarOp op, std::span<const DType> operands) {
  assert(operands.size() == static_cast<std::size_t>(arity(op)));
  const Rule rule = entry(op).rule;
  const std::size_t first = rule == Rule::choice ? 1 : 0;
  DType p = operands[first];
  for (std::size_t i = first + 1; i < operands.size(); ++i) p = promote(p, operands[i]);
  const DType working = working_dtype(op, p, operands);
  ScalarOpTypes types{{working, working, working}, working};
  switch (rule) {
    case Rule::equality:
    case Rule::order:
      types.result = DType::bool_;
      break;
    case Rule::real_part:
    case Rule::real_power:
    case Rule::inexact_real_part:
      types.result = real_of(working);
      break;
    case Rule::pair:
      types.result = complex_of(working);
      break;
    case Rule::choice:
      types.sources[0] = DType::bool_;
      break;
    default:
      break;
  }
  return types;
}

DType result_dtype(ScalarOp op, std::span<const DType> operands) {
  return scalar_op_types(op, operands).result;
}

}  // namespace palimpsest
