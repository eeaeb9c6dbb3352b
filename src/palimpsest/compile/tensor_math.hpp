// SPDX-License-Identifier: Apache-2.0
// Arithmetic on tensors outside of graphs, for convenience:
//
//     Tensor residual = y - A(x);
//     const double error = norm(residual).item<double>() / norm(y).item<double>();
//
// Each call runs one function. The function is compiled at the first call for operands of these
// dtypes, extents, strides and devices, and kept for later calls; the least recently used ones are
// dropped first. Its temporary memory is not kept. A repeated computation is better written as one
// function: it is fused, and its memory is planned.
//
// Results are tensors of their own: they share memory with no operand. Operands broadcast where an
// extent is 1; dtypes are promoted as in graphs, and a number takes the dtype of the tensor beside
// it if its kind fits. Errors are those of the functions in ops:: of the same name. The mode, the
// budget and the profile of the config do not matter here.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "palimpsest/base/api.hpp"
#include "palimpsest/kernels/elementwise/scalar_op.hpp"
#include "palimpsest/run/inputs.hpp"

namespace PALIMPSEST_API palimpsest {

/// Operand of tensor arithmetic: a tensor, or the only result of a call.
template <class T>
concept ActsAsTensor = std::same_as<T, Tensor> || std::same_as<T, Results>;
/// True if one of the types is a tensor and the other a tensor or a number.
template <class A, class B>
concept TensorArithmetic = (ActsAsTensor<A> && (ActsAsTensor<B> || Number<B>)) ||
                           (Number<A> && ActsAsTensor<B>);

/// An operand: a tensor, or a number that is weak beside one.
class TensorOperand {
 public:
  TensorOperand(const Tensor& tensor) : tensor_(tensor) {}
  TensorOperand(const Results& result) : tensor_(result.tensor()) {}
  template <Number T>
  TensorOperand(T number) : number_(number) {}
  /// The number as a tensor beside a tensor of this dtype.
  Tensor beside(DType dtype, Device device) const;
  bool is_number() const { return number_.has_value(); }
  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
  std::optional<WeakNumber> number_;
};

namespace tensor_detail {
Tensor apply(ScalarOp op, const TensorOperand& a, const TensorOperand& b);
/// a = a op b in the memory of a. ShapeError, DTypeError: the result is of another type than a.
Tensor& assign(ScalarOp op, Tensor& a, const TensorOperand& b);
/// The value of the graph that `build` makes of inputs like the operands. Equal graphs are compiled
/// once.
using Build = std::function<Variable(std::span<const Variable>)>;
Tensor computed(std::string_view what, std::span<const Tensor> operands, const Build& build);
}  // namespace tensor_detail

#define PALIMPSEST_OPERATOR(symbol, op)                                            \
  template <class A, class B>                                                      \
  requires TensorArithmetic<A, B> Tensor operator symbol(const A& a, const B& b) { \
    return tensor_detail::apply(ScalarOp::op, a, b);                               \
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

/// `t += b` writes into the memory of t, which every view of it sees. The extents and the dtype of
/// t stay: a result that does not fit is a ShapeError or a DTypeError, and nothing was written.
#define PALIMPSEST_OPERATOR(symbol, op)                               \
  inline Tensor& operator symbol(Tensor& t, const TensorOperand& b) { \
    return tensor_detail::assign(ScalarOp::op, t, b);                 \
  }
PALIMPSEST_OPERATOR(+=, add)
PALIMPSEST_OPERATOR(-=, sub)
PALIMPSEST_OPERATOR(*=, mul)
PALIMPSEST_OPERATOR(/=, div)
#undef PALIMPSEST_OPERATOR

// An overload for a tensor, and one for the only result of a call.
#define PALIMPSEST_UNARY(name)  \
  Tensor name(const Tensor& x); \
  inline Tensor name(const Results& x) { return name(x.tensor()); }
#define PALIMPSEST_BINARY(name, op)                                     \
  template <class A, class B>                                           \
  requires TensorArithmetic<A, B> Tensor name(const A& a, const B& b) { \
    return tensor_detail::apply(ScalarOp::op, a, b);                    \
  }
#define PALIMPSEST_REDUCTION(name)                                                             \
  Tensor name(const Tensor& x, const AxesArgument& axes = {}, bool keepdims = false);          \
  inline Tensor name(const Results& x, const AxesArgument& axes = {}, bool keepdims = false) { \
    return name(x.tensor(), axes, keepdims);                                                   \
  }

// -- elementwise -------------------------------------------------------------------------------

PALIMPSEST_UNARY(neg)
PALIMPSEST_UNARY(bitwise_not)
template <ActsAsTensor T>
Tensor operator-(const T& x) {
  return neg(x);
}
template <ActsAsTensor T>
Tensor operator~(const T& x) {
  return bitwise_not(x);
}

PALIMPSEST_BINARY(eq, eq)
PALIMPSEST_BINARY(ne, ne)
PALIMPSEST_BINARY(minimum, minimum)
PALIMPSEST_BINARY(maximum, maximum)
PALIMPSEST_BINARY(pow, pow)
/// condition ? a : b
Tensor where(const Tensor& condition, const TensorOperand& a, const TensorOperand& b);

PALIMPSEST_UNARY(abs)
PALIMPSEST_UNARY(sign)
PALIMPSEST_UNARY(square)
PALIMPSEST_UNARY(sqrt)
PALIMPSEST_UNARY(round)
PALIMPSEST_UNARY(exp)
PALIMPSEST_UNARY(log)
PALIMPSEST_UNARY(sin)
PALIMPSEST_UNARY(cos)
PALIMPSEST_UNARY(isnan)
PALIMPSEST_UNARY(isfinite)
PALIMPSEST_UNARY(conj)
PALIMPSEST_UNARY(real)
PALIMPSEST_UNARY(imag)
PALIMPSEST_UNARY(angle)
PALIMPSEST_UNARY(abs2)

// -- reductions: sum(x), sum(x, 0), sum(x, {0, 1}), sum(x, {0, 1}, true) -------------------------

PALIMPSEST_REDUCTION(sum)
PALIMPSEST_REDUCTION(prod)
PALIMPSEST_REDUCTION(mean)
PALIMPSEST_REDUCTION(max)
PALIMPSEST_REDUCTION(min)
PALIMPSEST_REDUCTION(any)
PALIMPSEST_REDUCTION(all_of)
PALIMPSEST_REDUCTION(argmax)
PALIMPSEST_REDUCTION(argmin)
/// Square root of the sum of |x|^2; real.
PALIMPSEST_REDUCTION(norm)

#undef PALIMPSEST_UNARY
#undef PALIMPSEST_BINARY
#undef PALIMPSEST_REDUCTION

// -- products ----------------------------------------------------------------------------------

namespace tensor_detail {
Tensor dot(const TensorOperand& a, const TensorOperand& b);
}  // namespace tensor_detail
template <class A, class B>
requires TensorArithmetic<A, B> Tensor dot(const A& a, const B& b) {
  return tensor_detail::dot(a, b);
}
Tensor matmul(const Tensor& a, const Tensor& b);
Tensor outer(const Tensor& a, const Tensor& b);
/// Sum of conj(a) b over all elements.
Tensor vdot(const Tensor& a, const Tensor& b);

namespace tensor_detail {
/// Largest number of compiled functions that are kept, and the present number.
inline constexpr std::size_t kMostFunctions = 256;
std::size_t function_count();
}  // namespace tensor_detail

}  // namespace palimpsest
