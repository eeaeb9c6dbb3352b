// SPDX-License-Identifier: Apache-2.0
// The solve of solve_bench.py in C++. Prints process seconds per iteration.
#include <algorithm>
#include <cstdio>
#include <ctime>

#include "palimpsest/palimpsest.hpp"

using namespace palimpsest;

int main() {
  const ConfigScope one({.threads = 1});
  const Tensor maps = Tensor::random_normal({8, 256, 256}, DType::complex64, {1});
  Tensor mask = Tensor::zeros({256, 256}, DType::bool_);
  mask(slice({}, {}, 4)).fill(true);
  const NamedLinop A = Chain(Dense(maps, "CNxNy,NxNy->CNxNy"), Fft(2, {.batch = "C"}),
                             SamplingFromMask(mask, {.batch = "C"}));
  const Tensor b = Tensor::ones({256, 256}, DType::complex64);
  double best = 1e9;
  int iterations = 0;
  for (int run = 0; run < 7; ++run) {
    const std::clock_t start = std::clock();
    iterations = conjugate_gradients(A.N(), b, {.tolerance = 0, .max_iterations = 20}).iterations;
    best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  std::printf("%.6f\n", best / iterations);
}
