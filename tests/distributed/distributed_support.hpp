// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <utility>

#include "palimpsest/distributed/distribute.hpp"
#include "palimpsest/distributed/dtensor.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/transforms/fft.hpp"
#include "palimpsest/memory/allocator.hpp"

namespace palimpsest::testing {

inline Tensor random_values(const Extents& shape, DType dtype, std::uint64_t seed) {
  return Tensor::random_normal(shape, dtype, RandomKey(seed));
}

/// |a - b| / |b|, in double precision.
inline double distance(const Tensor& a, const Tensor& b) {
  const auto wide = [](const Tensor& t) {
    return t.to(DType::complex128).to_vector<std::complex<double>>();
  };
  const auto x = wide(a), y = wide(b);
  EXPECT_EQ(a.shape(), b.shape());
  double off = 0, size = 0;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    off += std::norm(x[i] - y[i]);
    size += std::norm(y[i]);
  }
  return size == 0 ? std::sqrt(off) : std::sqrt(off / size);
}

inline TensorType type_of(DType dtype, Extents shape) { return {dtype, std::move(shape), {}}; }

/// Coils of a parallel imaging experiment: x (Nx, Ny) -> samples (C, Kx, Ky) on a mask.
inline NamedLinop sense(index_t coils, index_t nx, index_t ny, DType dtype) {
  const Tensor maps = random_values({coils, nx, ny}, dtype, 3);
  Tensor mask = Tensor::zeros({nx, ny}, real_of(dtype));
  for (index_t k = 0; k < nx; k += 2) mask.select(0, k).fill(1.0);
  return Chain(Dense(Parameter(maps), {"C", "Nx", "Ny"}, {"Nx", "Ny"}, {"C", "Nx", "Ny"}),
               Fft(2, {.batch = "C"}),
               Diagonal(Parameter(mask), {"C", "Kx", "Ky"}, {.weight_shape = Dims{"Kx", "Ky"}}));
}

}  // namespace palimpsest::testing
