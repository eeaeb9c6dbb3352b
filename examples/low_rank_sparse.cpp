// SPDX-License-Identifier: Apache-2.0
// A series of images from a quarter of its k-space, as the sum of a part that changes little (a
// matrix of low rank) and of one that moves (sparse: it is zero in most points).
#include <iostream>

#include "pictures.hpp"

using namespace palimpsest;

int main(int argc, char** argv) {
  const index_t n = 64, frames = 24;
  Tensor series = Tensor::zeros({frames, n, n}, DType::complex64);
  const Tensor head = pictures::phantom(n);
  for (index_t t = 0; t < frames; ++t) {
    const double angle = 2 * std::numbers::pi * double(t) / double(frames);
    const auto row = static_cast<index_t>(std::lround(28 + 6 * std::sin(angle)));
    Tensor frame = series(t);
    frame.copy_from(head);
    frame(slice(row, row + 8), slice(26, 34)).fill(0.8F);
  }

  // Other lines in each frame, those of the centre in all.
  Tensor mask = Tensor::zeros({frames, n, n}, DType::bool_);
  const Tensor draw = Tensor::random_uniform({frames, n}, DType::float32, {4});
  for (index_t k = 0; k < frames * n; ++k) {
    const index_t line = k % n;
    const bool is_center = line >= n / 2 - 4 && line < n / 2 + 4;
    if (is_center || draw.data<float>()[k] < 0.15F) mask(k / n)(line).fill(true);
  }
  const NamedLinop F = Fft(2, {.batch = "T", .grid = Grid{"Ny Nx", "Ky Kx"}, .centered = true});
  const NamedLinop E = SamplingFromMask(mask, {.input = Dims("T Ky Kx")}) * F;
  const Tensor b = E(series);

  // x[0] is of low rank, x[1] is sparse, and E(x[0] + x[1]) was measured.
  const NamedLinop A = Stack({E, E}, {.in = {"P", 0}});
  const Dims all = "P T Ny Nx";
  const Prox parts = stacked({Nuclear(0.3, "Ny Nx", "T", all), L1(0.009)}, "P", {1, 1}, all);
  const SolveResult found =
      fista(A, parts, b, {.tolerance = 1e-4, .max_iterations = 300, .L = 2.0});

  const Tensor low_rank = found.x(0), sparse = found.x(1), sum = low_rank + sparse;
  const Tensor filled = E.H()(b);
  const double before = pictures::error_of(filled, series), after = pictures::error_of(sum, series);
  std::cout << "error filled with zeros " << before << ", low rank + sparse " << after << "\n";
  if (argc > 1) {
    pictures::show(argv[1], {series(6), filled(6), sum(6), low_rank(6), sparse(6)}, 0.8);
  }
  return after < 0.4 * before ? 0 : 1;
}
