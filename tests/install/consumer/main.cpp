// SPDX-License-Identifier: Apache-2.0
// What a project of its own does with the installed package: a tensor through an operator and back.
#include <palimpsest/palimpsest.hpp>
#include <palimpsest/testing.hpp>

int main() {
  using namespace palimpsest;
  const NamedLinop F = Fft(2);
  const Tensor x = Tensor::random_normal({3, 8, 8}, DType::complex128, {1});
  const bool keeps_the_law = dot_test(F, {.extents = x.shape()}).ok;
  return allclose(F.H()(F(x)), x) && F.N()(x).shape() == x.shape() && keeps_the_law ? 0 : 1;
}
