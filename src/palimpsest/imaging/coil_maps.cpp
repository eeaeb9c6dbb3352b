// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/coil_maps.hpp"

#include <fmt/format.h>

#include <string>

#include "palimpsest/imaging/prelude.hpp"

namespace palimpsest {
namespace {

// Beyond the corners of the field of view, at sqrt(2).
constexpr double kSmallestRadius = 1.42;

// Pixel j of n lies at (j - floor(n/2)) pixels from the centre, as the centred transform has it.
double position(index_t j, index_t n) {
  return 2 * static_cast<double>(j - n / 2) / static_cast<double>(n);
}

}  // namespace

Tensor ring_coil_maps(index_t n_coils, index_t ny, index_t nx, double radius) {
  if (n_coils < 1 || ny < 1 || nx < 1) {
    throw ValueError("[coil maps] got the shape " + to_string(Extents{n_coils, ny, nx}) +
                     ", expected at least one coil and one pixel");
  }
  if (!(radius > kSmallestRadius)) {
    throw ValueError("[coil maps] wires lie inside the field of view: got radius " +
                     fmt::format("{}", radius) + ", expected more than 1.42 half fields of view");
  }
  Tensor maps = Tensor::empty({n_coils, ny, nx}, DType::complex64);
  auto* out = maps.mutable_data<std::complex<float>>();
  std::vector<std::complex<double>> direction, s(static_cast<std::size_t>(n_coils));
  for (index_t c = 0; c < n_coils; ++c) {
    direction.push_back(std::polar(
        1.0, 2 * std::numbers::pi * static_cast<double>(c) / static_cast<double>(n_coils)));
  }
  for (index_t y = 0; y < ny; ++y) {
    for (index_t x = 0; x < nx; ++x) {
      const std::complex<double> z(position(x, nx), position(y, ny));
      double energy = 0;
      for (std::size_t c = 0; c < s.size(); ++c) {
        s[c] = direction[c] / (z - radius * direction[c]);
        energy += std::norm(s[c]);
      }
      const double scale = 1 / std::sqrt(energy);
      for (std::size_t c = 0; c < s.size(); ++c) {
        out[(static_cast<index_t>(c) * ny + y) * nx + x] = std::complex<float>(s[c] * scale);
      }
    }
  }
  return maps;
}

}  // namespace palimpsest
