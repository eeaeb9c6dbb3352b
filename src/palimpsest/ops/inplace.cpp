// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/inplace.hpp"

#include <string>

#include "palimpsest/ops/common.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/index/index.hpp"
#include "palimpsest/ops/products/products.hpp"

namespace palimpsest::inplace {
namespace {

bool fits_into(const TensorType& result, const TensorType& target) {
  if (result.rank() != target.rank()) return false;
  for (std::size_t k = 0; k < result.rank(); ++k) {
    if (target.shape[k] == 1 && result.shape[k] != 1) return false;
  }
  return true;
}

// The node of a pure result, made to overwrite this input, which must be x.
Variable in_place(const Variable& result, const Variable& x, int input, std::string_view who) {
  const Apply node = result.owner();
  const auto text = [&] { return "[" + std::string(who) + "] "; };
  const std::string does_not_fit = "the result does not fit the operand that it is to overwrite: ";
  const bool is_converted = node.input(static_cast<std::size_t>(input)) != x;
  if (result.dtype() != x.dtype()) {
    throw DTypeError(text() + does_not_fit + "got " + result.type().str() + ", expected " +
                     x.type().str() + ". Try astype on the other operands");
  }
  if (is_converted || !fits_into(result.type(), x.type())) {
    throw ShapeError(text() + does_not_fit + "got " + result.type().str() + ", expected " +
                     x.type().str());
  }
  const OpPtr op = node.op().inplace_on_inputs(node, {input});
  if (!op) {
    throw ValueError(text() + "got " + x.str() +
                     ", a broadcast view or one that shares memory with another operand, expected "
                     "an array that can be overwritten. Try a copy");
  }
  return op->make_node(node.inputs()).output(0);
}

Variable elementwise_of_operands(ScalarOp op, std::initializer_list<Operand> operands) {
  const int target = op == ScalarOp::where ? 1 : 0;
  const std::string who = std::string(name_of(op)) + "_inplace";
  const Operand& x = operands.begin()[target];
  if (x.is_number()) throw TypeError("[" + who + "] got a number, expected an array to overwrite");
  return in_place(ops::elementwise_of(op, operands), x.variable(), target, who);
}

// The update of an array, and which array that is.
Variable in_its_place(const Variable& result, std::string_view who) {
  return in_place(result, result.owner().input(0), 0, who);
}

}  // namespace

#define PALIMPSEST_INPLACE_1(name)                       \
  Variable name##_inplace(const Variable& x) {           \
    return elementwise_of_operands(ScalarOp::name, {x}); \
  }
#define PALIMPSEST_INPLACE_2(name)                               \
  Variable name##_inplace(const Variable& x, const Operand& y) { \
    return elementwise_of_operands(ScalarOp::name, {x, y});      \
  }
#define PALIMPSEST_INPLACE_3(name)                                                 \
  Variable name##_inplace(const Variable& x, const Operand& y, const Operand& z) { \
    return elementwise_of_operands(ScalarOp::name, {x, y, z});                     \
  }
#define PALIMPSEST_INPLACE(name, arity, rule) PALIMPSEST_INPLACE_##arity(name)
PALIMPSEST_FOR_EACH_SCALAR_OP(PALIMPSEST_INPLACE)

Variable set_subtensor_inplace(const Variable& x, std::vector<Index> index, const Variable& value) {
  return in_its_place(ops::set_subtensor(x, std::move(index), value), "set_subtensor_inplace");
}
Variable inc_subtensor_inplace(const Variable& x, std::vector<Index> index, const Variable& value) {
  return in_its_place(ops::inc_subtensor(x, std::move(index), value), "inc_subtensor_inplace");
}
Variable set_subtensor_inplace(const Variable& y, const Operand& value) {
  return in_its_place(ops::set_subtensor(y, value), "set_subtensor_inplace");
}
Variable inc_subtensor_inplace(const Variable& y, const Operand& value) {
  return in_its_place(ops::inc_subtensor(y, value), "inc_subtensor_inplace");
}

Variable gemm_inplace(const Variable& z, const Operand& alpha, const Variable& x, const Variable& y,
                      const Operand& beta) {
  return in_place(ops::gemm(z, alpha, x, y, beta), z, 0, "gemm_inplace");
}
Variable gemv_inplace(const Variable& z, const Operand& alpha, const Variable& x, const Variable& y,
                      const Operand& beta) {
  return in_place(ops::gemv(z, alpha, x, y, beta), z, 0, "gemv_inplace");
}
Variable ger_inplace(const Variable& z, const Operand& alpha, const Variable& x,
                     const Variable& y) {
  return in_place(ops::ger(z, alpha, x, y), z, 0, "ger_inplace");
}

}  // namespace palimpsest::inplace
