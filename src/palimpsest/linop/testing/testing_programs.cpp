// SPDX-License-Identifier: Apache-2.0
// Checks that compile functions of their own: gradients, steps in place.
#include <algorithm>
#include <cmath>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/testing/testing_inputs.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/gradient.hpp"
#include "palimpsest/ops/products/products.hpp"
#include "palimpsest/ops/reduce/reduce.hpp"

namespace palimpsest {
namespace {

// Five-point differences are exact, but for rounding, for polynomials of degree 4: the losses of an
// operator that is linear in its parameters, and of its normal operator. For higher degrees the
// error is of order h^4.
constexpr double kStep = 1e-3, kDifferenceTolerance = 1e-7;

Variable real_sum(const Variable& y) {
  return ops::sum(is_complex(y.dtype()) ? ops::real(y) : y, {});
}

double real_inner(const Tensor& a, const Tensor& b) {
  const auto u = wide(a), v = wide(b);
  double sum = 0;
  for (std::size_t i = 0; i < u.size(); ++i) sum += (std::conj(u[i]) * v[i]).real();
  return sum;
}

double input_gradient_error(const NamedLinop& A, const Tensor& x) {
  const Variable in = make_input({x.dtype(), x.shape(), x.device()}, "x");
  const Variable y = A(in);
  const Variable g = grad(real_sum(y), in, {.disconnected = Disconnected::zero});
  const Tensor gradient =
      function({in}, {Out(g)}, {.name = "gradient", .on_unused_input = Reaction::ignore})(x)[0];
  const Tensor ones = Tensor::ones(y.type().shape, y.dtype());
  const Tensor expected = with_sizes_of(A, x).H()(ones);
  // A real input receives the real part.
  if (is_complex(gradient.dtype()) || !is_complex(expected.dtype())) {
    return relative_difference(gradient, expected);
  }
  std::vector<double> real;
  for (const auto& z : wide(expected)) real.push_back(z.real());
  return relative_difference(gradient, Tensor::from(real, expected.shape()));
}

// The error of the gradient of the loss |A x|^2 / 2 as a function of one parameter.
double parameter_gradient_error(const NamedLinop& A, const Parameter& p, const Tensor& x) {
  const Variable in = make_input({x.dtype(), x.shape(), x.device()}, "x");
  const Variable value = make_input(p.type(), "p");
  const Variable loss = ops::norm2(A(in)) * 0.5;
  const Variable g = grad(loss, p.var(), {.disconnected = Disconnected::zero});
  const Variable outs[] = {loss, g}, from[] = {in, p.var()}, to[] = {in, value};
  const std::vector<Variable> moved = clone_graph(outs, from, to);
  const Function f = function({in, value}, {Out(moved[0]), Out(moved[1])},
                              {.name = "parameter gradient", .on_unused_input = Reaction::ignore});
  const Tensor center = p.value();
  const Tensor direction = Tensor::random_normal(p.shape(), p.dtype(), {77, 0});
  const auto at = [&](double step) {
    auto values = wide(center);
    const auto d = wide(direction);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += step * d[i];
    Tensor moved_to = Tensor::from(values, center.shape());
    if (!is_complex(p.dtype())) {
      std::vector<double> real;
      for (const auto& z : values) real.push_back(z.real());
      moved_to = Tensor::from(real, center.shape());
    }
    return f(x, moved_to.to(p.dtype()));
  };
  const Tensor gradient = at(0)[1];
  const auto loss_at = [&](double step) { return at(step)[0].item<double>(); };
  // Relative to the size of the parameter, but not for sizes near 1: their steps stay round.
  const double size = norm_of(center) / std::max(norm_of(direction), 1e-300);
  const bool is_usual = size == 0 || (size > 1e-2 && size < 1e2);
  const double h = is_usual ? kStep : kStep * size;
  const double difference =
      (8 * (loss_at(h) - loss_at(-h)) - (loss_at(2 * h) - loss_at(-2 * h))) / (12 * h);
  const double slope = real_inner(gradient, direction);
  const double scale = norm_of(gradient) * norm_of(direction);
  return scale == 0 ? std::abs(difference) : std::abs(difference - slope) / scale;
}

bool has_gradient(const Parameter& p) {
  return p.present() && !p.is_derived() && real_of(p.dtype()) == DType::float64 &&
         is_inexact(p.dtype());
}

// The operator with all parameters marked as trainable, and these parameters, each once.
NamedLinop trainable(const NamedLinop& A, std::vector<Parameter>& parameters) {
  NamedLinop B = A;
  for (const auto& [name, p] : A.params()) {
    if (!has_gradient(p)) continue;
    B.set_param(name, p.as_trainable());
    const auto same = [&, &of = p](const Parameter& other) { return other.is(of); };
    if (std::none_of(parameters.begin(), parameters.end(), same)) {
      parameters.push_back(p.as_trainable());
    }
  }
  std::vector<NamedLinop> children;
  for (const NamedLinop& child : A.linops()) children.push_back(trainable(child, parameters));
  if (!children.empty()) B.set_linops(std::move(children));
  return B;
}

}  // namespace

GradientTest check_gradient(const NamedLinop& A, const TestOptions& options) {
  const Tensor x = test_input(A, options, 0);
  GradientTest result;
  result.error = input_gradient_error(A, x);
  result.ok = result.error <= test_tolerance(x.dtype(), x.numel());
  if (real_of(x.dtype()) != DType::float64) return result;
  std::vector<Parameter> parameters;
  const NamedLinop B = trainable(A, parameters);
  for (const Parameter& p : parameters) {
    try {
      const double error = parameter_gradient_error(B, p, x);
      result.error = std::max(result.error, error);
      result.ok = result.ok && error <= kDifferenceTolerance;
    } catch (const NotSupported&) {
      // A parameter that has no gradient, such as locations, says so.
    }
  }
  return result;
}

InplaceTest check_inplace(const NamedLinop& A, const TestOptions& options) {
  const Tensor x = test_input(A, options, 0), before = x.clone();
  const Variable in = make_input({x.dtype(), x.shape(), x.device()}, "x");
  const Function plain =
      function({in}, {Out(A(in))}, {.name = "plain", .on_unused_input = Reaction::ignore});
  const Variable lent = make_input({x.dtype(), x.shape(), x.device()}, "x");
  const Function consuming = function({In(lent, {.is_mutable = true})}, {Out(A(lent))},
                                      {.name = "consuming", .on_unused_input = Reaction::ignore});
  const Tensor expected = plain(x)[0];
  const Tensor shared = x.lazy_clone();
  InplaceTest result;
  result.same_bits = equal(consuming(shared)[0], expected) && equal(A(x), expected);
  result.untouched = equal(x, before);
  return result;
}

}  // namespace palimpsest
