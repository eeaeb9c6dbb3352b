// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "palimpsest/ops/elementwise/elementwise_op.hpp"
#include "palimpsest/ops/prelude.hpp"

namespace palimpsest {
namespace {

Tensor integer_scalar(index_t value, DType dtype, Device device) {
  return visit_dtype(dtype, [&](auto tag) -> Tensor {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (!std::in_range<T>(value)) {
        throw OverflowError("[number] got " + std::to_string(value) + ", expected one that fits " +
                            std::string(name_of(dtype)));
      }
    }
    return Tensor::scalar<index_t>(value, device).to(dtype);
  });
}

Variable beside(const WeakNumber& number, const Variable& x) {
  return number.as_variable(x.dtype(), x.type().device);
}

}  // namespace

DType WeakNumber::dtype_next_to(DType other) const {
  if (kind == 2) return complex_of(other);
  if (kind == 1) return is_inexact(other) ? other : DType::float64;
  return is_bool(other) ? DType::int64 : other;
}

Variable WeakNumber::as_variable(DType other, Device device) const {
  const DType dtype = dtype_next_to(other);
  if (kind == 0) return constant(integer_scalar(integer, dtype, device));
  if (kind == 1) return constant(Tensor::scalar(value.real(), device).to(dtype));
  return constant(Tensor::scalar(value, device).to(dtype));
}

namespace ops {

std::vector<Variable> resolved(std::span<const Operand> operands) {
  std::optional<DType> dtype;
  Device device;
  for (const Operand& operand : operands) {
    if (operand.is_number()) continue;
    const TensorType& type = operand.variable().type();
    dtype = dtype ? promote(*dtype, type.dtype) : type.dtype;
    device = type.device;
  }
  // Numbers alone: the bool next to which each is a value of its own.
  std::vector<Variable> result;
  for (const Operand& operand : operands) {
    result.push_back(operand.is_number()
                         ? operand.number().as_variable(dtype.value_or(DType::bool_), device)
                         : operand.variable());
  }
  return result;
}

Variable elementwise(ScalarOp op, std::span<const Variable> inputs) {
  expect_inputs(inputs, static_cast<std::size_t>(arity(op)), name_of(op));
  const std::vector<Variable> operands = with_equal_ranks(inputs);
  SmallVector<DType, kMaxArity> dtypes;
  for (const Variable& v : operands) dtypes.push_back(v.dtype());
  return std::make_shared<Elementwise>(op, dtypes)->make_node(operands).output(0);
}
Variable elementwise(ScalarOp op, std::initializer_list<Variable> inputs) {
  return elementwise(op, std::span<const Variable>(inputs.begin(), inputs.size()));
}
Variable elementwise_of(ScalarOp op, std::initializer_list<Operand> operands) {
  return elementwise(op, resolved({operands.begin(), operands.size()}));
}

#define PALIMPSEST_UNARY(name, op) \
  Variable name(const Variable& x) { return elementwise(ScalarOp::op, {x}); }
PALIMPSEST_UNARY(neg, neg)
PALIMPSEST_UNARY(abs, abs)
PALIMPSEST_UNARY(sign, sign)
PALIMPSEST_UNARY(reciprocal, reciprocal)
PALIMPSEST_UNARY(square, square)
PALIMPSEST_UNARY(sqrt, sqrt)
PALIMPSEST_UNARY(round, round)
PALIMPSEST_UNARY(isnan, isnan)
PALIMPSEST_UNARY(isinf, isinf)
PALIMPSEST_UNARY(isfinite, isfinite)
PALIMPSEST_UNARY(logical_not, logical_not)
PALIMPSEST_UNARY(bitwise_not, bitwise_not)
PALIMPSEST_UNARY(exp, exp)
PALIMPSEST_UNARY(expm1, expm1)
PALIMPSEST_UNARY(log, log)
PALIMPSEST_UNARY(log1p, log1p)
PALIMPSEST_UNARY(log2, log2)
PALIMPSEST_UNARY(log10, log10)
PALIMPSEST_UNARY(sin, sin)
PALIMPSEST_UNARY(cos, cos)
PALIMPSEST_UNARY(tan, tan)
PALIMPSEST_UNARY(arcsin, arcsin)
PALIMPSEST_UNARY(arccos, arccos)
PALIMPSEST_UNARY(arctan, arctan)
PALIMPSEST_UNARY(sinh, sinh)
PALIMPSEST_UNARY(cosh, cosh)
PALIMPSEST_UNARY(tanh, tanh)
PALIMPSEST_UNARY(arcsinh, arcsinh)
PALIMPSEST_UNARY(arccosh, arccosh)
PALIMPSEST_UNARY(arctanh, arctanh)
PALIMPSEST_UNARY(sinc, sinc)
PALIMPSEST_UNARY(erf, erf)
PALIMPSEST_UNARY(sigmoid, sigmoid)
PALIMPSEST_UNARY(angle, angle)
PALIMPSEST_UNARY(abs2, abs2)
#undef PALIMPSEST_UNARY

#define PALIMPSEST_BINARY(name, op) \
  Variable name(const Operand& a, const Operand& b) { return elementwise_of(ScalarOp::op, {a, b}); }
PALIMPSEST_BINARY(add, add)
PALIMPSEST_BINARY(sub, sub)
PALIMPSEST_BINARY(mul, mul)
PALIMPSEST_BINARY(div, div)
PALIMPSEST_BINARY(floor_div, floor_div)
PALIMPSEST_BINARY(mod, mod)
PALIMPSEST_BINARY(pow, pow)
PALIMPSEST_BINARY(minimum, minimum)
PALIMPSEST_BINARY(maximum, maximum)
PALIMPSEST_BINARY(eq, eq)
PALIMPSEST_BINARY(ne, ne)
PALIMPSEST_BINARY(lt, lt)
PALIMPSEST_BINARY(le, le)
PALIMPSEST_BINARY(gt, gt)
PALIMPSEST_BINARY(ge, ge)
PALIMPSEST_BINARY(logical_and, logical_and)
PALIMPSEST_BINARY(logical_or, logical_or)
PALIMPSEST_BINARY(logical_xor, logical_xor)
PALIMPSEST_BINARY(bitwise_and, bitwise_and)
PALIMPSEST_BINARY(bitwise_or, bitwise_or)
PALIMPSEST_BINARY(bitwise_xor, bitwise_xor)
PALIMPSEST_BINARY(atan2, arctan2)
PALIMPSEST_BINARY(hypot, hypot)
PALIMPSEST_BINARY(complex, make_complex)
#undef PALIMPSEST_BINARY

Variable fma(const Operand& a, const Operand& b, const Operand& c) {
  return elementwise_of(ScalarOp::fma, {a, b, c});
}
Variable clip(const Operand& x, const Operand& low, const Operand& high) {
  return elementwise_of(ScalarOp::clip, {x, low, high});
}
Variable make_complex(const Variable& re, const Variable& im) { return complex(re, im); }

// The condition says nothing about the dtype of the result.
Variable where(const Operand& condition, const Operand& a, const Operand& b) {
  const Operand choices[] = {a, b};
  std::vector<Variable> inputs = resolved(choices);
  inputs.insert(inputs.begin(), resolved({&condition, 1})[0]);
  return elementwise(ScalarOp::where, inputs);
}

Variable conj(const Variable& x) {
  return is_complex(x.dtype()) ? elementwise(ScalarOp::conj, {x}) : x;
}

Variable astype(const Variable& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  const auto op = Elementwise::cast(x.dtype(), dtype);
  if (x.is_constant()) return constant(x.constant_value().to(dtype), x.name(), x.type().device);
  return op->make_node({&x, 1}).output(0);
}
Variable cast_like(const Variable& x, const Variable& like) { return astype(x, like.dtype()); }

}  // namespace ops

Variable operator-(const Variable& x) { return ops::neg(x); }
Variable operator~(const Variable& x) { return ops::bitwise_not(x); }
#define PALIMPSEST_OPERATOR(symbol, function)                       \
  Variable operator symbol(const Variable& a, const Variable& b) {  \
    return ops::elementwise(ScalarOp::function, {a, b});            \
  }                                                                 \
  Variable operator symbol(const Variable& a, WeakNumber b) {       \
    return ops::elementwise(ScalarOp::function, {a, beside(b, a)}); \
  }                                                                 \
  Variable operator symbol(WeakNumber a, const Variable& b) {       \
    return ops::elementwise(ScalarOp::function, {beside(a, b), b}); \
  }
PALIMPSEST_OPERATOR(+, add)
PALIMPSEST_OPERATOR(-, sub)
PALIMPSEST_OPERATOR(*, mul)
PALIMPSEST_OPERATOR(/, div)
PALIMPSEST_OPERATOR(%, mod)
PALIMPSEST_OPERATOR(<, lt)
PALIMPSEST_OPERATOR(<=, le)
PALIMPSEST_OPERATOR(>, gt)
PALIMPSEST_OPERATOR(>=, ge)
PALIMPSEST_OPERATOR(&, bitwise_and)
PALIMPSEST_OPERATOR(|, bitwise_or)
PALIMPSEST_OPERATOR(^, bitwise_xor)
#undef PALIMPSEST_OPERATOR

Variable& operator+=(Variable& v, const Operand& w) { return v = ops::add(v, w); }
Variable& operator-=(Variable& v, const Operand& w) { return v = ops::sub(v, w); }
Variable& operator*=(Variable& v, const Operand& w) { return v = ops::mul(v, w); }
Variable& operator/=(Variable& v, const Operand& w) { return v = ops::div(v, w); }

}  // namespace palimpsest
