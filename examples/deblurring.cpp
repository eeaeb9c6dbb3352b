// SPDX-License-Identifier: Apache-2.0
// Removes a blur and noise from an image with total variation, and compares with least squares.
#include <iostream>

#include "pictures.hpp"

using namespace palimpsest;

int main(int argc, char** argv) {
  const Tensor image = pictures::phantom(128);
  Tensor kernel = Tensor::zeros({11, 11}, DType::float32);  // a Gaussian of sum 1
  for (index_t i = 0; i < 121; ++i) {
    const double x = double(i % 11 - 5), y = double(i / 11 - 5);
    kernel.mutable_data<float>()[i] =
        static_cast<float>(std::exp(-(x * x + y * y) / 4.5) / (4.5 * std::numbers::pi));
  }
  const NamedLinop A = Convolution(kernel, {.grid = Dims("Ny Nx")});
  const Tensor b = A(image) + 0.01 * Tensor::random_normal({128, 128}, DType::float32, {1});

  const SolveResult tv = minimize({.A = A, .terms = {tv_term(1e-3, "Ny Nx")}, .h = NonNegative()},
                                  b, {.tolerance = 1e-3, .max_iterations = 500});
  const SolveResult ridge = minimize({.A = A, .quadratics = {{2e-3}}}, b);

  const double blurred = pictures::error_of(b, image);
  const double smooth = pictures::error_of(ridge.x, image), sharp = pictures::error_of(tv.x, image);
  std::cout << "error of the blurred image " << blurred << ", of least squares " << smooth
            << ", with total variation " << sharp << " (" << name_of(tv.status) << " after "
            << tv.iterations << " iterations)\n";
  if (argc > 1) pictures::show(argv[1], {image, b, ridge.x, tv.x}, 0.5);
  return sharp < 0.85 * smooth && smooth < blurred ? 0 : 1;
}
