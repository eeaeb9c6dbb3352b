// SPDX-License-Identifier: Apache-2.0
// Simulated scans for tests, by direct sums.
#pragma once

#include <complex>
#include <numbers>
#include <string>
#include <vector>

#include "palimpsest/imaging/coil_maps.hpp"
#include "palimpsest/imaging/phantom.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest::testing {

using Sample = std::complex<float>;

/// `#` means true.
inline Tensor mask_of(const std::vector<std::string>& rows) {
  Tensor mask = Tensor::zeros(
      {static_cast<index_t>(rows.size()), static_cast<index_t>(rows.front().size())}, DType::bool_);
  for (std::size_t y = 0; y < rows.size(); ++y) {
    for (std::size_t x = 0; x < rows[y].size(); ++x) {
      mask.set<bool>({static_cast<index_t>(y), static_cast<index_t>(x)}, rows[y][x] == '#');
    }
  }
  return mask;
}

/// The centred unitary Fourier transform of every axis but the first.
inline Tensor transformed(const Tensor& coil_images) {
  std::vector<std::complex<double>> now;
  for (const Sample v : coil_images.to_vector<Sample>()) now.emplace_back(v);
  const Extents shape = coil_images.shape();
  for (std::size_t axis = 1; axis < shape.size(); ++axis) {
    const index_t n = shape[axis];
    index_t before = 1, after = 1;
    for (std::size_t k = 0; k < axis; ++k) before *= shape[k];
    for (std::size_t k = axis + 1; k < shape.size(); ++k) after *= shape[k];
    std::vector<std::complex<double>> next(now.size()), turns;
    for (index_t k = 0; k < n * n; ++k) {
      const auto angle = static_cast<double>((k / n - n / 2) * (k % n - n / 2));
      turns.push_back(std::polar(1 / std::sqrt(static_cast<double>(n)),
                                 -2 * std::numbers::pi * angle / static_cast<double>(n)));
    }
    for (index_t b = 0; b < before; ++b) {
      for (index_t q = 0; q < n; ++q) {
        for (index_t j = 0; j < n; ++j) {
          const std::complex<double> turn = turns[static_cast<std::size_t>(q * n + j)];
          for (index_t a = 0; a < after; ++a) {
            next[static_cast<std::size_t>((b * n + q) * after + a)] +=
                turn * now[static_cast<std::size_t>((b * n + j) * after + a)];
          }
        }
      }
    }
    now = std::move(next);
  }
  std::vector<Sample> result;
  for (const std::complex<double> v : now) result.emplace_back(v);
  return Tensor::from(result, shape);
}

/// k-space of a real image (y, x) seen by coils (C, y, x).
inline Tensor coil_kspace(const Tensor& image, const Tensor& maps) {
  std::vector<Sample> coils = maps.to_vector<Sample>();
  const std::vector<float> values = image.to_vector<float>();
  for (std::size_t i = 0; i < coils.size(); ++i) coils[i] *= values[i % values.size()];
  return transformed(Tensor::from(coils, maps.shape()));
}

/// The head of Shepp and Logan, seen by coils on a ring.
inline Tensor head_kspace(index_t n_coils, index_t ny, index_t nx) {
  return coil_kspace(ellipse_image(modified_shepp_logan(), ny, nx),
                     ring_coil_maps(n_coils, ny, nx));
}

}  // namespace palimpsest::testing
