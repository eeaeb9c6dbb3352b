// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "palimpsest/ops/common.hpp"
#include "palimpsest/ops/create.hpp"
#include "palimpsest/ops/elementwise.hpp"
#include "palimpsest/ops/elementwise_op.hpp"

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

// The dtype that a weak number takes next to an operand of dtype `other`.
DType dtype_next_to(int kind, DType other) {
  if (kind == 2) return complex_of(other);
  if (kind == 1) return is_inexact(other) ? other : DType::float64;
  return is_bool(other) ? DType::int64 : other;
}

Variable weak_constant(const WeakNumber& number, DType other, Device device) {
  const DType dtype = dtype_next_to(number.kind, other);
  if (number.kind == 0) return constant(integer_scalar(number.integer, dtype, device));
  if (number.kind == 1) return constant(Tensor::scalar(number.value.real(), device).to(dtype));
  return constant(Tensor::scalar(number.value, device).to(dtype));
}

Variable next_to(const WeakNumber& number, const Variable& x) {
  return weak_constant(number, x.dtype(), x.type().device);
}

}  // namespace

Variable WeakNumber::as_variable(DType other) const { return weak_constant(*this, other, {}); }

namespace ops {

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

Variable add(const Variable& a, const Variable& b) { return elementwise(ScalarOp::add, {a, b}); }
Variable sub(const Variable& a, const Variable& b) { return elementwise(ScalarOp::sub, {a, b}); }
Variable mul(const Variable& a, const Variable& b) { return elementwise(ScalarOp::mul, {a, b}); }
Variable div(const Variable& a, const Variable& b) { return elementwise(ScalarOp::div, {a, b}); }
Variable neg(const Variable& x) { return elementwise(ScalarOp::neg, {x}); }
Variable abs(const Variable& x) { return elementwise(ScalarOp::abs, {x}); }
Variable abs2(const Variable& x) { return elementwise(ScalarOp::abs2, {x}); }
Variable sqrt(const Variable& x) { return elementwise(ScalarOp::sqrt, {x}); }
Variable reciprocal(const Variable& x) { return elementwise(ScalarOp::reciprocal, {x}); }
Variable square(const Variable& x) { return elementwise(ScalarOp::square, {x}); }
Variable exp(const Variable& x) { return elementwise(ScalarOp::exp, {x}); }
Variable conj(const Variable& x) {
  return is_complex(x.dtype()) ? elementwise(ScalarOp::conj, {x}) : x;
}

Variable real(const Variable& x) {
  if (!is_complex(x.dtype())) return x;
  return std::make_shared<ComplexPart>(false)->make_node({&x, 1}).output(0);
}
Variable imag(const Variable& x) {
  if (!is_complex(x.dtype())) return zeros_like(x);
  return std::make_shared<ComplexPart>(true)->make_node({&x, 1}).output(0);
}

Variable make_complex(const Variable& re, const Variable& im) {
  return elementwise(ScalarOp::make_complex, {re, im});
}
Variable where(const Variable& condition, const Variable& a, const Variable& b) {
  return elementwise(ScalarOp::where, {condition, a, b});
}
Variable minimum(const Variable& a, const Variable& b) {
  return elementwise(ScalarOp::minimum, {a, b});
}
Variable maximum(const Variable& a, const Variable& b) {
  return elementwise(ScalarOp::maximum, {a, b});
}

Variable astype(const Variable& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  const auto op = Elementwise::cast(x.dtype(), dtype);
  if (x.is_constant()) return constant(x.constant_value().to(dtype), x.name());
  return op->make_node({&x, 1}).output(0);
}

}  // namespace ops

Variable operator+(const Variable& a, const Variable& b) { return ops::add(a, b); }
Variable operator-(const Variable& a, const Variable& b) { return ops::sub(a, b); }
Variable operator*(const Variable& a, const Variable& b) { return ops::mul(a, b); }
Variable operator/(const Variable& a, const Variable& b) { return ops::div(a, b); }
Variable operator-(const Variable& x) { return ops::neg(x); }
Variable operator+(const Variable& a, WeakNumber b) { return ops::add(a, next_to(b, a)); }
Variable operator-(const Variable& a, WeakNumber b) { return ops::sub(a, next_to(b, a)); }
Variable operator*(const Variable& a, WeakNumber b) { return ops::mul(a, next_to(b, a)); }
Variable operator/(const Variable& a, WeakNumber b) { return ops::div(a, next_to(b, a)); }
Variable operator+(WeakNumber a, const Variable& b) { return ops::add(next_to(a, b), b); }
Variable operator-(WeakNumber a, const Variable& b) { return ops::sub(next_to(a, b), b); }
Variable operator*(WeakNumber a, const Variable& b) { return ops::mul(next_to(a, b), b); }
Variable operator/(WeakNumber a, const Variable& b) { return ops::div(next_to(a, b), b); }

}  // namespace palimpsest
