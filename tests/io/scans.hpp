// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>

#include "palimpsest/io/cartesian.hpp"

namespace palimpsest::testing {

/// k-space (coil, kz, ky, kx) in which all elements differ.
inline Tensor some_kspace(const Extents& shape) {
  std::vector<std::complex<float>> values;
  for (index_t i = 0; i < element_count(shape); ++i) values.emplace_back(float(i), float(-3 * i));
  return Tensor::from(values, shape);
}

inline Tensor checkerboard(index_t n_z, index_t n_y) {
  Tensor mask = Tensor::zeros({n_z, n_y}, DType::bool_);
  for (index_t z = 0; z < n_z; ++z) {
    for (index_t y = 0; y < n_y; ++y) mask.set({z, y}, (z + y) % 2 == 0);
  }
  return mask;
}

inline RawScanHeader some_header() {
  RawScanHeader header;
  header.recon.matrix = {4, 6, 5};
  header.encoded.field_of_view_mm = {480, 240, 10};
  header.recon.field_of_view_mm = {240, 240, 10};
  header.h1_frequency_hz = 123e6;
  header.institution = "Nowhere";
  return header;
}

/// 3 coils, 5 x 6 phase encodings of which every other was measured, 8 samples per readout, and a
/// noise readout.
inline RawScan some_scan() {
  RawScan scan = cartesian_scan(some_kspace({3, 5, 6, 8}), checkerboard(5, 6), some_header());
  add_noise_readout(scan, some_kspace({3, 16}));
  return scan;
}

}  // namespace palimpsest::testing
