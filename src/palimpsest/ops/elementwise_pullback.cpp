// SPDX-License-Identifier: Apache-2.0
// Derivatives of the scalar operations. For y = f(x) analytic, the adjoint of dy = f'(x) dx under
// Re<u, v> is w -> conj(f'(x)) w.
#include "palimpsest/ops/common.hpp"
#include "palimpsest/ops/elementwise.hpp"
#include "palimpsest/ops/elementwise_op.hpp"
#include "palimpsest/ops/products.hpp"
#include "palimpsest/ops/shape_ops.hpp"

namespace palimpsest::ops {
namespace {

Variable scalar(ScalarOp op, const Variable& x) { return elementwise(op, {x}); }

// w conj(slope)
Variable along(const Variable& w, const Variable& slope) { return w * conj(slope); }

// Undefined for what is not transcendental.
Variable transcendental(ScalarOp op, const Variable& x, const Variable& y, const Variable& w) {
  switch (op) {
    case ScalarOp::exp:
      return along(w, y);
    case ScalarOp::expm1:
      return along(w, y + 1);
    case ScalarOp::log:
      return w / conj(x);
    case ScalarOp::log1p:
      return w / conj(x + 1);
    case ScalarOp::log2:
      return w / (conj(x) * 0.693147180559945309417);
    case ScalarOp::log10:
      return w / (conj(x) * 2.302585092994045684018);
    case ScalarOp::sin:
      return along(w, scalar(ScalarOp::cos, x));
    case ScalarOp::cos:
      return -along(w, scalar(ScalarOp::sin, x));
    case ScalarOp::tan:
      return along(w, y * y + 1);
    case ScalarOp::sinh:
      return along(w, scalar(ScalarOp::cosh, x));
    case ScalarOp::cosh:
      return along(w, scalar(ScalarOp::sinh, x));
    case ScalarOp::tanh:
      return along(w, 1 - y * y);
    case ScalarOp::arcsin:
      return w / conj(sqrt(1 - x * x));
    case ScalarOp::arccos:
      return -(w / conj(sqrt(1 - x * x)));
    case ScalarOp::erf:  // 2/sqrt(pi) exp(-x^2)
      return w * exp(-(x * x)) * 1.128379167095512573896;
    case ScalarOp::arctan:
      return w / conj(x * x + 1);
    case ScalarOp::sigmoid:
      return along(w, y * (1 - y));
    default:
      return {};
  }
}

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
    case ScalarOp::angle:
      if (!is_complex(x.dtype())) return {Variable()};
      return {w * x / abs2(x) * WeakNumber(std::complex<double>(0, 1))};
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
  Variable result = transcendental(op, x, y, w);
  if (!result.defined()) {
    throw NotSupported("[" + std::string(name_of(op)) + "] has no derivative");
  }
  return {std::move(result)};
}

// w where the condition holds, else zero; of w's dtype.
Variable masked(const Variable& condition, const Variable& w, bool where_true) {
  const Variable zero =
      with_rank(constant(Tensor::zeros({}, w.dtype(), w.type().device)), w.rank());
  return where_true ? where(condition, w, zero) : where(condition, zero, w);
}

// The cotangent of x in y = x * other. Where x was broadcast the products are summed: one pass
// without an array of products.
Variable product_cotangent(const Variable& x, const Variable& other, const Variable& w) {
  if (!is_inexact(x.dtype())) return {};
  SmallVector<int, 8> labels, of_other, kept;
  Axes summed, stretched;
  for (std::size_t k = 0; k < x.rank(); ++k) {
    const int label = static_cast<int>(k);
    const bool is_wide = w.type().shape[k] != 1;
    labels.push_back(label);
    if (is_wide && x.type().shape[k] == 1) {
      summed.push_back(label);
    } else {
      kept.push_back(label);
    }
    if (is_wide && other.type().shape[k] == 1) {
      stretched.push_back(label);
    } else {
      of_other.push_back(label);
    }
  }
  if (summed.empty()) return along(w, other);
  const Variable sums = contract(squeeze(other, stretched), of_other, w, labels, kept,
                                 {.conj_a = true, .conj_b = false});
  return expand_dims(sums, summed);
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
      return {product_cotangent(a, b, w), product_cotangent(b, a, w)};
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
