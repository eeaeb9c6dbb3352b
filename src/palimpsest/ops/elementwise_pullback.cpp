// SPDX-License-Identifier: Apache-2.0
// Derivatives of the scalar operations. For y = f(x) analytic, the adjoint of dy = f'(x) dx under
// Re<u, v> is w -> conj(f'(x)) w.
#include "palimpsest/ops/common.hpp"
#include "palimpsest/ops/elementwise.hpp"
#include "palimpsest/ops/elementwise_op.hpp"

namespace palimpsest::ops {
namespace {

Variable scalar(ScalarOp op, const Variable& x) { return elementwise(op, {x}); }

// w conj(slope)
Variable along(const Variable& w, const Variable& slope) { return w * conj(slope); }

std::vector<Variable> unary(ScalarOp op, const Variable& x, const Variable& y, const Variable& w) {
  switch (op) {
    case ScalarOp::neg:
      return {-w};
    case ScalarOp::identity:
      return {w};
    case ScalarOp::conj:
      return {conj(w)};
    case ScalarOp::real:
      return {w};
    case ScalarOp::imag:
      if (!is_complex(x.dtype())) return {Variable()};
      return {w * WeakNumber(std::complex<double>(0, 1))};
    case ScalarOp::abs:
      return {w * scalar(ScalarOp::sign, x)};
    case ScalarOp::abs2:
      return {w * x * 2};
    case ScalarOp::reciprocal:
      return {-along(w, y * y)};
    case ScalarOp::square:
      return {along(w, x) * 2};
    case ScalarOp::sqrt:
      return {w / (conj(y) * 2)};
    case ScalarOp::exp:
      return {along(w, y)};
    case ScalarOp::expm1:
      return {along(w, y + 1)};
    case ScalarOp::log:
      return {w / conj(x)};
    case ScalarOp::log1p:
      return {w / conj(x + 1)};
    case ScalarOp::log2:
      return {w / (conj(x) * 0.693147180559945309417)};
    case ScalarOp::log10:
      return {w / (conj(x) * 2.302585092994045684018)};
    case ScalarOp::sin:
      return {along(w, scalar(ScalarOp::cos, x))};
    case ScalarOp::cos:
      return {-along(w, scalar(ScalarOp::sin, x))};
    case ScalarOp::tan:
      return {along(w, y * y + 1)};
    case ScalarOp::sinh:
      return {along(w, scalar(ScalarOp::cosh, x))};
    case ScalarOp::cosh:
      return {along(w, scalar(ScalarOp::sinh, x))};
    case ScalarOp::tanh:
      return {along(w, 1 - y * y)};
    case ScalarOp::arcsin:
      return {w / conj(sqrt(1 - x * x))};
    case ScalarOp::arccos:
      return {-(w / conj(sqrt(1 - x * x)))};
    case ScalarOp::erf:  // 2/sqrt(pi) exp(-x^2)
      return {w * exp(-(x * x)) * 1.128379167095512573896};
    case ScalarOp::angle:
      if (!is_complex(x.dtype())) return {Variable()};
      return {w * x / abs2(x) * WeakNumber(std::complex<double>(0, 1))};
    case ScalarOp::arctan:
      return {w / conj(x * x + 1)};
    case ScalarOp::sigmoid:
      return {along(w, y * (1 - y))};
    case ScalarOp::sign:
      if (is_complex(x.dtype())) break;
      return {Variable()};
    case ScalarOp::round:
    case ScalarOp::isnan:
    case ScalarOp::isinf:
    case ScalarOp::isfinite:
    case ScalarOp::logical_not:
    case ScalarOp::bitwise_not:
      return {Variable()};
    default:
      break;
  }
  throw NotSupported("[" + std::string(name_of(op)) + "] has no derivative");
}

// w where the condition holds, else zero; of w's dtype.
Variable masked(const Variable& condition, const Variable& w, bool where_true) {
  const Variable zero =
      with_rank(constant(Tensor::zeros({}, w.dtype(), w.type().device)), w.rank());
  return where_true ? where(condition, w, zero) : where(condition, zero, w);
}

std::vector<Variable> several(ScalarOp op, const Apply& apply, const Variable& w) {
  const Variable &a = apply.input(0), &b = apply.input(1);
  const Variable y = apply.output(0);
  switch (op) {
    case ScalarOp::add:
      return {w, w};
    case ScalarOp::sub:
      return {w, -w};
    case ScalarOp::mul:
      return {along(w, b), along(w, a)};
    case ScalarOp::div:
      return {w / conj(b), -along(w / conj(b), y)};
    case ScalarOp::fma:
      return {along(w, b), along(w, a), w};
    case ScalarOp::pow:
      return {along(w, b * elementwise(op, {a, b - 1})), along(w, y * scalar(ScalarOp::log, a))};
    case ScalarOp::make_complex:
      return {real(w), imag(w)};
    case ScalarOp::where:
      return {Variable(), masked(a, w, true), masked(a, w, false)};
    case ScalarOp::minimum:
    case ScalarOp::maximum: {
      const ScalarOp order = op == ScalarOp::minimum ? ScalarOp::le : ScalarOp::ge;
      const Variable first = elementwise(order, {a, b});
      return {masked(first, w, true), masked(first, w, false)};
    }
    case ScalarOp::hypot:
      return {w * (a / y), w * (b / y)};
    case ScalarOp::arctan2: {
      const Variable r2 = a * a + b * b;
      return {w * (b / r2), -(w * (a / r2))};
    }
    case ScalarOp::mod:
      return {w, -(w * elementwise(ScalarOp::floor_div, {a, b}))};
    case ScalarOp::floor_div:
    case ScalarOp::eq:
    case ScalarOp::ne:
    case ScalarOp::lt:
    case ScalarOp::le:
    case ScalarOp::gt:
    case ScalarOp::ge:
    case ScalarOp::logical_and:
    case ScalarOp::logical_or:
    case ScalarOp::logical_xor:
    case ScalarOp::bitwise_and:
    case ScalarOp::bitwise_or:
    case ScalarOp::bitwise_xor:
      return std::vector<Variable>(apply.input_count());
    default:
      break;
  }
  throw NotSupported("[" + std::string(name_of(op)) + "] has no derivative");
}

}  // namespace

std::vector<Variable> scalar_pullback(ScalarOp op, const Apply& apply, const Variable& w) {
  if (apply.input_count() > 1) return several(op, apply, w);
  return unary(op, apply.input(0), apply.output(0), w);
}

}  // namespace palimpsest::ops
