// SPDX-License-Identifier: Apache-2.0
// Fills in an image with half of its pixels missing: it is sparse in wavelets.
#include <iostream>

#include "pictures.hpp"

using namespace palimpsest;

int main(int argc, char** argv) {
  const Tensor image = pictures::phantom(128);
  const Tensor known = Tensor::random_uniform({128, 128}, DType::float32, {2}) < 0.5;
  const NamedLinop A = SamplingFromMask(known, {.input = Dims("Ny Nx")});
  const Tensor b = A(image);

  // Shifts of the wavelets, drawn anew in each iteration, leave no blocks behind.
  const Prox sparse = L1Wavelet(0.003, "Ny Nx", {.family = "db2", .shift = Shift::random});
  const SolveResult filled = fista(A, sparse, b, {.tolerance = 0, .max_iterations = 300, .L = 1.0});

  const double before = pictures::error_of(A.H()(b), image);
  const double after = pictures::error_of(filled.x, image);
  std::cout << "error of the known pixels alone " << before << ", filled in " << after << "\n";
  if (argc > 1) pictures::show(argv[1], {image, A.H()(b), filled.x}, 0.5);
  return after < 0.65 * before ? 0 : 1;
}
