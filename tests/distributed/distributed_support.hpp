// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <optional>
#include <utility>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/distributed/distribute.hpp"
#include "palimpsest/distributed/dtensor.hpp"
#include "palimpsest/graph/inputs.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/core/total.hpp"
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

/// <A x, y> = <x, A^H y>, summed over the ranks as solvers do. Parts differ between ranks;
/// replicated values are equal. `seeds`: of input and output, for ranks with equal values.
inline ::testing::AssertionResult is_adjoint(const NamedLinop& A, DType dtype,
                                             std::optional<Extents> extents = {},
                                             std::optional<std::pair<int, int>> seeds = {}) {
  const auto summed = [&](VectorSide side, double number) {
    const Variable v = tensor(DType::float64, {}, "v");
    const Variable sum = total(A, side, v);
    return std::pair(sum.node() == v.node()
                         ? number
                         : function({v}, sum)(Tensor::full({}, number)).item<double>(),
                     sum.node() != v.node());
  };
  const auto seed_of = [&](VectorSide side) -> std::uint64_t {
    const int rank = summed(side, 0).second ? Team::world().rank() : -1;
    const int given = seeds ? side == VectorSide::input ? seeds->first : seeds->second : rank;
    return static_cast<std::uint64_t>(given + 100);
  };
  Extents shape;
  if (extents) {
    shape = *extents;
  } else {
    for (const ND& d : A.ishape()) shape.push_back(*A.size(d));
  }
  const Tensor x = random_values(shape, dtype, seed_of(VectorSide::input));
  const Tensor Ax = A(x);
  const Tensor y = random_values(Ax.shape(), dtype, seed_of(VectorSide::output) + 7);
  const Tensor Ay = A.H()(y);
  if (Ay.shape() != x.shape()) {
    return ::testing::AssertionFailure() << "the adjoint gives " << to_string(Ay.shape());
  }
  const auto inner = [](const Tensor& a, const Tensor& b) {
    const auto u = a.to(DType::complex128).to_vector<std::complex<double>>(),
               v = b.to(DType::complex128).to_vector<std::complex<double>>();
    std::complex<double> sum = 0;
    for (std::size_t i = 0; i < u.size(); ++i) sum += std::conj(u[i]) * v[i];
    return sum;
  };
  const auto both = [&](VectorSide side, std::complex<double> z) {
    return std::complex(summed(side, z.real()).first, summed(side, z.imag()).first);
  };
  const std::complex<double> left = both(VectorSide::output, inner(Ax, y)),
                             right = both(VectorSide::input, inner(x, Ay));
  const double scale = std::sqrt(both(VectorSide::output, inner(Ax, Ax)).real() *
                                 both(VectorSide::output, inner(y, y)).real());
  const double tolerance = (real_of(dtype) == DType::float32 ? 1e-5 : 1e-13) * scale;
  if (std::abs(left - right) <= tolerance) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << left << " and " << right;
}

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
