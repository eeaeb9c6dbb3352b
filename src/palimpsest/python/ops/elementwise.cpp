// SPDX-License-Identifier: Apache-2.0
// ops: elementwise functions and reductions.
#include "palimpsest/ops/inplace.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/python/families.hpp"

namespace palimpsest::python {
namespace {

void bind_arithmetic(nb::module_& m) {
  m.def("add", &ops::add, "a"_a, "b"_a, "a + b.");
  m.def("sub", &ops::sub, "a"_a, "b"_a, "a - b.");
  m.def("mul", &ops::mul, "a"_a, "b"_a, "a b.");
  m.def("div", &ops::div, "a"_a, "b"_a, "a / b; of integers a float64.");
  m.def("true_div", &ops::div, "a"_a, "b"_a, "a / b; of integers a float64.");
  m.def("floor_div", &ops::floor_div, "a"_a, "b"_a,
        "a / b rounded towards minus infinity; integers by zero give 0.");
  m.def("mod", &ops::mod, "a"_a, "b"_a, "a - b floor_div(a, b), of the sign of b.");
  m.def("pow", &ops::pow, "a"_a, "b"_a, "a to the power of b.");
  m.def("fma", &ops::fma, "a"_a, "b"_a, "c"_a, "a b + c, both steps rounded.");
  m.def("minimum", &ops::minimum, "a"_a, "b"_a, "The smaller one; NaN wins.");
  m.def("maximum", &ops::maximum, "a"_a, "b"_a, "The larger one; NaN wins.");
  m.def("clip", &ops::clip, "x"_a, "low"_a, "high"_a, "minimum(maximum(x, low), high).");
  m.def("where", &ops::where, "condition"_a, "a"_a, "b"_a, "a where the condition holds, else b.");
  m.def("switch", &ops::where, "condition"_a, "a"_a, "b"_a,
        "Elements of a where the condition holds, of b elsewhere, as where().");
  m.def("arctan2", &ops::atan2, "y"_a, "x"_a, "The angle of the point (x, y).");
  m.def("atan2", &ops::atan2, "y"_a, "x"_a, "The angle of the point (x, y).");
  m.def("hypot", &ops::hypot, "a"_a, "b"_a, "sqrt(a^2 + b^2) without overflow.");
  m.def("complex", &ops::complex, "re"_a, "im"_a, "The complex number re + i im.");
  m.def("make_complex", &ops::make_complex, "re"_a, "im"_a, "re + i im.");
}

void bind_comparisons(nb::module_& m) {
#define PALIMPSEST_BINARY(name, doc) m.def(#name, &ops::name, "a"_a, "b"_a, doc);
  PALIMPSEST_BINARY(eq, "a == b, elementwise.")
  PALIMPSEST_BINARY(ne, "a != b, elementwise.")
  PALIMPSEST_BINARY(lt, "a < b, elementwise.")
  PALIMPSEST_BINARY(le, "a <= b, elementwise.")
  PALIMPSEST_BINARY(gt, "a > b, elementwise.")
  PALIMPSEST_BINARY(ge, "a >= b, elementwise.")
  PALIMPSEST_BINARY(logical_and, "Of any dtype: numbers other than 0 are true.")
  PALIMPSEST_BINARY(logical_or, "Of any dtype: numbers other than 0 are true.")
  PALIMPSEST_BINARY(logical_xor, "Of any dtype: numbers other than 0 are true.")
  PALIMPSEST_BINARY(bitwise_and, "Of bools and integers.")
  PALIMPSEST_BINARY(bitwise_or, "Of bools and integers.")
  PALIMPSEST_BINARY(bitwise_xor, "Of bools and integers.")
#undef PALIMPSEST_BINARY
}

// Operands that are numbers alone become constants.
template <Variable (*f)(const Variable&)>
void def_unary(nb::module_& m, const char* name, const char* doc) {
  m.def(
      name, [](Variable x) { return f(x); }, "x"_a, doc);
}

void bind_scalar_functions(nb::module_& m) {
#define PALIMPSEST_UNARY(name, doc) def_unary<&ops::name>(m, #name, doc);
  PALIMPSEST_UNARY(neg, "-x.")
  PALIMPSEST_UNARY(abs, "The absolute value, real.")
  PALIMPSEST_UNARY(sign, "-1, 0 or 1; z/|z| of a complex z.")
  PALIMPSEST_UNARY(reciprocal, "1 / x.")
  PALIMPSEST_UNARY(square, "x x.")
  PALIMPSEST_UNARY(sqrt, "The square root.")
  PALIMPSEST_UNARY(round, "The nearest integer, of halves the even one.")
  PALIMPSEST_UNARY(isnan, "True where x is not a number.")
  PALIMPSEST_UNARY(isinf, "True where x is infinite.")
  PALIMPSEST_UNARY(isfinite, "True where x is finite.")
  PALIMPSEST_UNARY(logical_not, "Is it 0?")
  PALIMPSEST_UNARY(bitwise_not, "Of bools and integers.")
  PALIMPSEST_UNARY(exp, "e to the power of x.")
  PALIMPSEST_UNARY(expm1, "exp(x) - 1, also where x is small.")
  PALIMPSEST_UNARY(log, "The natural logarithm.")
  PALIMPSEST_UNARY(log1p, "log(1 + x), also where x is small.")
  PALIMPSEST_UNARY(log2, "The logarithm to base 2.")
  PALIMPSEST_UNARY(log10, "The logarithm to base 10.")
  PALIMPSEST_UNARY(sin, "The sine.")
  PALIMPSEST_UNARY(cos, "The cosine.")
  PALIMPSEST_UNARY(tan, "The tangent.")
  PALIMPSEST_UNARY(arcsin, "The inverse of the sine.")
  PALIMPSEST_UNARY(arccos, "The inverse of the cosine.")
  PALIMPSEST_UNARY(arctan, "The inverse of the tangent.")
  PALIMPSEST_UNARY(sinh, "The hyperbolic sine.")
  PALIMPSEST_UNARY(cosh, "The hyperbolic cosine.")
  PALIMPSEST_UNARY(tanh, "The hyperbolic tangent.")
  PALIMPSEST_UNARY(arcsinh, "The inverse of the hyperbolic sine.")
  PALIMPSEST_UNARY(arccosh, "The inverse of the hyperbolic cosine.")
  PALIMPSEST_UNARY(arctanh, "The inverse of the hyperbolic tangent.")
  PALIMPSEST_UNARY(sinc, "sin(pi x) / (pi x), 1 at 0.")
  PALIMPSEST_UNARY(erf, "The error function, real.")
  PALIMPSEST_UNARY(sigmoid, "1 / (1 + exp(-x)).")
  PALIMPSEST_UNARY(conj, "The complex conjugate.")
  PALIMPSEST_UNARY(angle, "The angle in (-pi, pi], real.")
  PALIMPSEST_UNARY(abs2, "The squared magnitude |x|^2, real.")
  PALIMPSEST_UNARY(real, "The real part; of a complex array a view.")
  PALIMPSEST_UNARY(imag, "The imaginary part; of a complex array a view.")
  PALIMPSEST_UNARY(view_as_real, "Complex (..) as real (.., 2): a view.")
  PALIMPSEST_UNARY(view_as_complex, "Real (.., 2) as complex (..): a view.")
  PALIMPSEST_UNARY(stop_gradient, "x, without a derivative.")
#undef PALIMPSEST_UNARY
  m.def("astype", &ops::astype, "x"_a, "dtype"_a, "Converted; complex to real is a DTypeError.");
  m.def("cast", &ops::astype, "x"_a, "dtype"_a, "The elements as another dtype, as astype().");
  m.def("cast_like", &ops::cast_like, "x"_a, "like"_a, "In the dtype of another Variable.");
}

template <Variable (*f)(const Variable&, const ops::ReduceOptions&)>
void def_reduction(nb::module_& m, const char* name, const char* doc) {
  m.def(
      name,
      [](Variable x, AxesArgument axis, bool keepdims) {
        return f(x, {.axes = axis, .keepdims = keepdims});
      },
      "x"_a, "axis"_a.none() = nb::none(), "keepdims"_a = false, doc);
}

void bind_reductions(nb::module_& m) {
  def_reduction<&ops::sum>(m, "sum", "The sum over some axes, or over all.");
  def_reduction<&ops::prod>(m, "prod", "The product over some axes, or over all.");
  def_reduction<&ops::max>(m, "max", "The largest element; NaN wins.");
  def_reduction<&ops::min>(m, "min", "The smallest element; NaN wins.");
  def_reduction<&ops::any>(m, "any", "True if an element is not 0.");
  def_reduction<&ops::all_of>(m, "all", "True if no element is 0.");
  def_reduction<&ops::argmax>(m, "argmax", "The position of the first largest element.");
  def_reduction<&ops::argmin>(m, "argmin", "The position of the first smallest element.");
  def_reduction<&ops::mean>(m, "mean", "The mean; of integers in float64.");
  def_reduction<&ops::logsumexp>(m, "logsumexp", "log(sum(exp(x))) without overflow.");
  m.def("softmax", &ops::softmax, "x"_a, "axis"_a.none() = nb::none(),
        "exp(x) / sum(exp(x)) without overflow, over some axes or over all.");
  m.def(
      "var",
      [](Variable x, AxesArgument axis, bool keepdims, index_t ddof) {
        return ops::var(x, {.axes = axis, .keepdims = keepdims, .ddof = ddof});
      },
      "x"_a, "axis"_a.none() = nb::none(), "keepdims"_a = false, "ddof"_a = 0,
      "The mean of |x - mean(x)|^2, real.");
  m.def(
      "std",
      [](Variable x, AxesArgument axis, bool keepdims, index_t ddof) {
        return ops::std(x, {.axes = axis, .keepdims = keepdims, .ddof = ddof});
      },
      "x"_a, "axis"_a.none() = nb::none(), "keepdims"_a = false, "ddof"_a = 0,
      "The square root of var.");
  m.def(
      "norm",
      [](Variable x, AxesArgument axis, bool keepdims, double order) {
        return ops::norm(x, {.axes = axis, .keepdims = keepdims, .order = order});
      },
      "x"_a, "axis"_a.none() = nb::none(), "keepdims"_a = false, "order"_a = 2.0,
      "(sum |x|^order)^(1/order), real.");
  m.def("cumsum", &ops::cumsum, "x"_a, "axis"_a.none() = nb::none(), "Sums up to each element.");
  m.def("cumprod", &ops::cumprod, "x"_a, "axis"_a.none() = nb::none(),
        "Products up to each element.");
}

void bind_inplace(nb::module_ m) {
// An example for all of them.
#define PALIMPSEST_DOC(name)                                                    \
#name                                                                         \
      " in the memory of its first argument.\n\nExamples\n--------\n"           \
      ">>> x = ps.dvector('x')\n"                                               \
      ">>> y = ps.ops.inplace.exp_inplace(x)\n"                                 \
      ">>> f = ps.function([ps.In(x, mutable=True)], y, accept_inplace=True)\n" \
      ">>> f(np.zeros(2))\narray([1., 1.])"
#define PALIMPSEST_INPLACE_1(name) \
  m.def(#name "_inplace", &inplace::name##_inplace, "x"_a, PALIMPSEST_DOC(name));
#define PALIMPSEST_INPLACE_2(name) \
  m.def(#name "_inplace", &inplace::name##_inplace, "x"_a, "y"_a, PALIMPSEST_DOC(name));
#define PALIMPSEST_INPLACE_3(name) \
  m.def(#name "_inplace", &inplace::name##_inplace, "x"_a, "y"_a, "z"_a, PALIMPSEST_DOC(name));
#define PALIMPSEST_INPLACE(name, arity, rule) PALIMPSEST_INPLACE_##arity(name)
  PALIMPSEST_FOR_EACH_SCALAR_OP(PALIMPSEST_INPLACE)
#undef PALIMPSEST_INPLACE
#undef PALIMPSEST_INPLACE_1
#undef PALIMPSEST_INPLACE_2
#undef PALIMPSEST_INPLACE_3
#undef PALIMPSEST_DOC
}

}  // namespace

void bind_ops_elementwise(nb::module_& m) {
  nb::module_ ops = m.def_submodule("ops", "Builders of graphs.");
  bind_arithmetic(ops);
  bind_comparisons(ops);
  bind_scalar_functions(ops);
  bind_reductions(ops);
  bind_inplace(ops.def_submodule("inplace", "Ops that overwrite their first operand."));
}

}  // namespace palimpsest::python
