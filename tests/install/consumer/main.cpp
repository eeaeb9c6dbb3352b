// SPDX-License-Identifier: Apache-2.0
// What a project of its own does with the installed package: a tensor through an operator and back,
// arithmetic on tensors, a graph saved and restored.
#include <cstdio>
#include <palimpsest/palimpsest.hpp>
#include <palimpsest/testing.hpp>

int main() {
  using namespace palimpsest;
  const NamedLinop F = Fft(2);
  const Tensor x = Tensor::random_normal({3, 8, 8}, DType::complex128, {1});
  const bool keeps_the_law = dot_test(F, {.extents = x.shape()}).ok;
  if (!allclose(F.H()(F(x)), x) || F.N()(x).shape() != x.shape() || !keeps_the_law) return 1;
  if (norm(F.H()(F(x)) - x).item<double>() > 1e-12 * norm(x).item<double>()) return 2;

  const Variable v = dvector("v"), w = dvector("w");
  const FunctionGraph graph({v, w}, {ops::exp(v) * w + 1.0});
  save_graph("consumer_graph.pal", graph);
  const FunctionGraph restored = load_graph("consumer_graph.pal");
  std::remove("consumer_graph.pal");
  const Function f = function({restored.inputs()[0], restored.inputs()[1]}, restored.outputs()[0]);
  const double one = f({0.0}, {0.0});
  return restored.str() == graph.str() && one == 1.0 ? 0 : 3;
}
