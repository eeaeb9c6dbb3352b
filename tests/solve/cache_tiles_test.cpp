// SPDX-License-Identifier: Apache-2.0
// Solvers on operators that are cut for caches, if the machine has caches of the usual sizes.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "palimpsest/base/config.hpp"
#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/operators/scalar.hpp"
#include "palimpsest/linop/transforms/fft.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"

namespace palimpsest {
namespace {

constexpr index_t kSide = 320;

NamedLinop sense(index_t coils) {
  return Chain(Dense(Tensor::random_normal({coils, kSide, kSide}, DType::complex64, {1}),
                     "CNyNx,NyNx->CNyNx"),
               Fft(2, {.batch = "C", .grid = Grid{"NyNx", "KyKx"}}),
               Diagonal(Tensor::random_uniform({kSide, kSide}, DType::float32, {2}), "CKyKx"));
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() &&
         std::memcmp(a.raw_data(), b.raw_data(), static_cast<std::size_t>(a.nbytes())) == 0;
}

TEST(CacheTilesOfSolvers, TakeLessAndFindTheSame) {
  const NamedLinop A = sense(20), N = A.N() + 0.1 * Identity("NyNx");
  const Tensor b = A.H()(A(Tensor::random_normal({kSide, kSide}, DType::complex64, {3})));
  const CgOptions options{.tolerance = 0, .max_iterations = 3};
  const auto solved = [&] {
    const NamedLinop fresh = N.copy();
    const index_t announced =
        plan_conjugate_gradients(fresh, {b.dtype(), b.shape(), b.device()}, options).peak_bytes;
    const MemoryScope memory;
    const SolveResult result = conjugate_gradients(fresh, b, options);
    EXPECT_EQ(static_cast<index_t>(memory.peak_bytes()), announced);
    return std::pair(result.x, announced);
  };
  const auto whole = [&] {
    const ConfigScope scope({.rewrites_excluding = std::vector<std::string>{"cache_tiles"}});
    return solved();
  }();
  for (const index_t threads : {1, 2, 4}) {
    const ConfigScope scope({.threads = threads});
    const auto tiled = solved();
    EXPECT_TRUE(same_bits(tiled.first, whole.first)) << threads;
    EXPECT_LE(tiled.second, whole.second) << threads;
  }
}

}  // namespace
}  // namespace palimpsest
