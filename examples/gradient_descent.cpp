// SPDX-License-Identifier: Apache-2.0
// A least-squares fit by gradient descent: the decay of a complex signal, sampled with noise.
//
//     s(t) = a exp(-r t)       a complex, r real; minimize sum |s(t) - y(t)|^2
//
// The parameters are shared variables. One call of the function takes one step: it returns the cost
// and replaces both parameters, in their own memory, by better ones.
#include <cmath>
#include <complex>
#include <iostream>
#include <palimpsest/palimpsest.hpp>

using namespace palimpsest;

int main() {
  const std::complex<double> true_a(2.0, -1.0);
  const double true_r = 3.0;
  const index_t n = 200;
  const Tensor t = Tensor::linspace(0, 1, n);

  // The measured data: the decay plus noise of standard deviation 0.05.
  const Variable time = constant(t);
  const Variable decay = constant(Tensor::scalar(true_a)) * ops::exp(time * -true_r);
  const Variable noise = constant(Tensor::random_normal({n}, DType::complex128, {7}));
  const Tensor y = function({}, decay + noise * 0.05)();

  SharedVariable a = shared(Tensor::scalar(std::complex<double>(1, 0)), {.name = "a"});
  SharedVariable r = shared(Tensor::scalar(1.0), {.name = "r"});
  const Variable model = a.var() * ops::exp(time * -r.var());
  const Variable cost = ops::sum(ops::abs2(model - constant(y))) / static_cast<double>(n);

  const std::vector<Variable> gradient = grad(cost, {a.var(), r.var()});
  const Function step = function(
      {}, cost, {.updates = {{a, a.var() - gradient[0] * 1.0}, {r, r.var() - gradient[1] * 1.0}}});

  double last = 0;
  for (int i = 0; i < 400; ++i) last = step().tensor().item<double>();

  const auto fitted_a = a.get_value().item<std::complex<double>>();
  const auto fitted_r = r.get_value().item<double>();
  std::cout << "cost " << last << ", a " << fitted_a << ", r " << fitted_r << "\n" << step.dprint();
  const bool close = std::abs(fitted_a - true_a) < 0.05 && std::abs(fitted_r - true_r) < 0.1;
  return close && last < 2 * 0.05 * 0.05 ? 0 : 1;
}
