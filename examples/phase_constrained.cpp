// SPDX-License-Identifier: Apache-2.0
// An image from 5/8 of its k-space: the phase is smooth and known from the lines around the centre,
// and what is left to find is real.
#include <complex>
#include <iostream>

#include "pictures.hpp"

using namespace palimpsest;

int main(int argc, char** argv) {
  const index_t n = 128, first = 48;  // lines 48 .. 127 are measured, 64 is the centre
  const Variable x = constant(Tensor::linspace(-1, 1, n)), y = ops::reshape(x, {n, 1});
  const Variable phase = 1.2 * x * y + 0.8 * y - 0.5 * x * x;
  const Variable turned = ops::complex(ops::cos(phase), ops::sin(phase));
  const Tensor image =
      function({}, ops::astype(turned, DType::complex64) * constant(pictures::phantom(n)))();

  Tensor mask = Tensor::zeros({n, n}, DType::bool_), center = Tensor::zeros({n, 1}, DType::float32);
  mask(slice(first, n)).fill(true);
  for (index_t k = first; k <= n - first; ++k) {  // smoothly to zero, against ringing
    center(k).fill(0.5 +
                   0.5 * std::cos(std::numbers::pi * double(2 * k - n) / double(n - 2 * first)));
  }
  const NamedLinop F = Fft(2, {.grid = Grid{"Ny Nx", "Ky Kx"}, .centered = true});
  const NamedLinop lines = SamplingFromMask(mask, {.input = Dims("Ky Kx")}) * F;
  const Tensor b =
      lines(image) + 0.002 * Tensor::random_normal({lines(image).shape(0)}, DType::complex64, {3});

  // The phase of the image of low resolution.
  const NamedLinop low = F.H() * Diagonal(center, "Ky Kx") * F;
  const Tensor blurred = low(lines.H()(b));
  const Variable v = constant(blurred);
  const Tensor unit = function({}, v / ops::maximum(ops::abs(v), 1e-6))();

  const NamedLinop A = lines * Diagonal(unit, "Ny Nx");
  const SolveResult found =
      fista(A, RealValued(), b, {.tolerance = 1e-4, .max_iterations = 500, .L = 1.0});
  const Tensor filled = lines.H()(b), result = Diagonal(unit, "Ny Nx")(found.x);

  const double before = pictures::error_of(filled, image),
               after = pictures::error_of(result, image);
  std::cout << "error filled with zeros " << before << ", phase-constrained " << after << " ("
            << name_of(found.status) << ")\n";
  if (argc > 1) pictures::show(argv[1], {image, filled, result}, 0.5);
  return after < 0.7 * before ? 0 : 1;
}
