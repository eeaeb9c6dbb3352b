// SPDX-License-Identifier: Apache-2.0
// Derivatives of the scalar operations. For y = f(x) analytic, the adjoint of dy = f'(x) dx under
// Re<u, v> is w -> conj(f'(x)) w.
#include <numbers>

#include "palimpsest/ops/elementwise/elementwise_op.hpp"
#include "palimpsest/ops/gradient.hpp"
#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/shape/shape_op.hpp"

namespace palimpsest::ops {
namespace {

// w conj(slope)
Variable along(const Variable& w, const Variable& slope) { return w * conj(slope); }

// (cos(pi x) - sinc(x)) / x; near 0, where the difference has few digits, the first terms of
// Taylor's series -pi^2/3 x + pi^4/30 x^3 - pi^6/840 x^5.
Variable sinc_slope(const Variable& x, const Variable& y) {
  constexpr double kPi2 = std::numbers::pi * std::numbers::pi;
  const double near = real_of(x.dtype()) == DType::float32 ? 0.1 : 0.01;
  const Variable is_near = lt(abs(x), near);
  const Variable x2 = x * x;
  const Variable series =
      x * (x2 * (x2 * (-kPi2 * kPi2 * kPi2 / 840) + kPi2 * kPi2 / 30) - kPi2 / 3);
  return where(is_near, series, (cos(x * std::numbers::pi) - y) / where(is_near, 1, x));
}

// The cotangent of x for a transcendental op; undefined for other ops.
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
      return along(w, cos(x));
    case ScalarOp::cos:
      return -along(w, sin(x));
    case ScalarOp::tan:
      return along(w, y * y + 1);
    case ScalarOp::sinh:
      return along(w, cosh(x));
    case ScalarOp::cosh:
      return along(w, sinh(x));
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
    case ScalarOp::arcsinh:
      return w / conj(sqrt(x * x + 1));
    case ScalarOp::arccosh:  // of complex numbers the product is the branch that arccosh takes
      return w / conj(sqrt(x - 1) * sqrt(x + 1));
    case ScalarOp::arctanh:
      return w / conj(1 - x * x);
    case ScalarOp::sinc:
      return along(w, sinc_slope(x, y));
    case ScalarOp::sigmoid:
      return along(w, y * (1 - y));
    default:
      return {};
  }
}

// y = z/|z| moves along the circle: the part of w that points outwards is lost. 0 at 0.
Variable sign_cotangent(const Variable& z, const Variable& y, const Variable& w) {
  const Variable size = abs(z), is_zero = eq(size, 0);
  const Variable along_circle = w - y * real(conj(y) * w);
  return where(is_zero, 0, along_circle / where(is_zero, 1, size));
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
      return {w * sign(x)};
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
      if (is_complex(x.dtype())) return {sign_cotangent(x, y, w)};
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

// a^b: b a^(b-1) and log(a) a^b; 0 where a factor of 0 meets an infinite one.
std::vector<Variable> power_cotangents(const Variable& a, const Variable& b, const Variable& y,
                                       const Variable& w) {
  const Variable exponent = astype(b, y.dtype());
  const Variable lowered = where(eq(exponent, 0), 0, exponent - 1);
  const Variable base = astype(a, y.dtype()), is_zero = eq(base, 0);
  const Variable log_base = where(is_zero, 0, log(where(is_zero, 1, base)));
  return {along(w, exponent * pow(base, lowered)), along(w, y * log_base)};
}

// Whichever of x, low and high the result is.
std::vector<Variable> clip_cotangents(const Apply& apply, const Variable& w) {
  const Variable &x = apply.input(0), &low = apply.input(1), &high = apply.input(2);
  const Variable raised = maximum(x, low);
  const Variable is_high = gt(raised, high), is_low = lt(x, low);
  const Variable rest = masked(is_high, w, false);
  return {masked(is_low, rest, false), masked(is_low, rest, true), masked(is_high, w, true)};
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
      return power_cotangents(a, b, y, w);
    case ScalarOp::clip:
      return clip_cotangents(apply, w);
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

std::vector<Variable> unrolled(const ElementwiseProgram& program,
                               std::span<const Variable> inputs) {
  std::vector<Variable> registers(static_cast<std::size_t>(program.n_registers()));
  const auto at = [&](int r) -> Variable& { return registers[static_cast<std::size_t>(r)]; };
  for (std::size_t i = 0; i < inputs.size(); ++i) at(program.inputs()[i]) = inputs[i];
  for (const ElementwiseProgram::Instruction& step : program.instructions()) {
    std::vector<Variable> operands;
    for (const std::int16_t r : step.sources) {
      if (r >= 0) operands.push_back(at(r));
    }
    at(step.destination) = step.op == ScalarOp::identity ? astype(operands[0], step.dtype)
                                                         : elementwise(step.op, operands);
  }
  std::vector<Variable> results;
  for (const int r : program.outputs()) results.push_back(at(r));
  return results;
}

std::vector<Variable> pullback_of_steps(
    const Apply& apply, std::span<const Variable> cotangents,
    const std::function<std::vector<Variable>(std::span<const Variable>)>& outputs_of) {
  // Stand-ins, so that a variable that is several inputs has a cotangent for each.
  std::vector<Variable> inputs;
  for (const Variable& v : apply.inputs()) {
    inputs.push_back(std::make_shared<ExpandDims>(Axes())->make_node({&v, 1}).output(0));
  }
  const std::vector<Variable> outputs = outputs_of(inputs);
  std::vector<Variable> result = palimpsest::pullback(outputs, inputs, cotangents);
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (!is_inexact(inputs[i].dtype())) result[i] = Variable();
  }
  return result;
}

}  // namespace palimpsest::ops
