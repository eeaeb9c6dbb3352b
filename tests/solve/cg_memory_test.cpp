// SPDX-License-Identifier: Apache-2.0
// Allocations of the solver: the announced bytes, and none after the first iteration.
#include <gtest/gtest.h>

#include <ostream>

#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/operators/scalar.hpp"
#include "palimpsest/linop/transforms/fft.hpp"
#include "palimpsest/linop/transforms/sampling.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"
#include "support/malloc_counter.hpp"

namespace palimpsest {
namespace {

TensorType type_of(const Tensor& t) { return {t.dtype(), t.shape(), t.device()}; }

NamedLinop sense(DType dtype, index_t n) {
  const Tensor maps = Tensor::random_normal({4, n, n}, dtype, {1, 0});
  Tensor mask = Tensor::zeros({n, n}, DType::bool_);
  mask(slice({}, {}, 3)).fill(true);
  return Chain(Dense(maps, "C Ny Nx,Ny Nx->C Ny Nx"),
               Fft(2, {.batch = "C", .grid = Grid{"NyNx", "KyKx"}, .centered = true}),
               SamplingFromMask(mask, {.batch = "C"}));
}

struct Case {
  std::string name;
  std::function<NamedLinop()> make;
  Extents shape;
  DType dtype;
  CgOptions options;
  friend std::ostream& operator<<(std::ostream& stream, const Case& c) { return stream << c.name; }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  CgOptions plain{.tolerance = 0, .max_iterations = 6};
  CgOptions with_x0 = plain;
  with_x0.x0 = Tensor::random_normal({24, 24}, DType::complex64, {2, 0});
  CgOptions with_m = plain;
  with_m.M = Scalar(0.25);
  CgOptions refreshing = with_x0;
  refreshing.refresh = 2;
  const auto regularized = [] { return sense(DType::complex64, 24).N() + 0.1 * Identity("Ny Nx"); };
  all.push_back({"Sense", regularized, {24, 24}, DType::complex64, plain});
  all.push_back({"SenseFromX0", regularized, {24, 24}, DType::complex64, with_x0});
  all.push_back({"SensePreconditioned", regularized, {24, 24}, DType::complex64, with_m});
  all.push_back({"SenseRefreshing", regularized, {24, 24}, DType::complex64, refreshing});
  all.push_back({"RealRightHandSide", regularized, {24, 24}, DType::float32, refreshing});
  const auto diagonal = [] { return Diagonal(Tensor::linspace(1, 5, 500, DType::float64), "A"); };
  all.push_back({"Diagonal", diagonal, {500}, DType::float64, plain});
  return all;
}

class CgMemory : public ::testing::TestWithParam<Case> {};

TEST_P(CgMemory, PlannedPeakIsTheMeasuredOne) {
  const Case& c = GetParam();
  const NamedLinop A = c.make();
  const Tensor b = Tensor::random_normal(c.shape, c.dtype, {3, 0});
  const SolvePlan plan = plan_conjugate_gradients(A, type_of(b), c.options);
  const MemoryScope scope;
  const SolveResult result = conjugate_gradients(A, b, c.options);
  EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes);
  EXPECT_EQ(result.iterations, 6);
  EXPECT_EQ(plan.peak_bytes, plan.state_bytes + std::max(plan.setup_bytes, plan.step_bytes));
  // Only the iterate remains.
  EXPECT_EQ(scope.live_bytes(), result.x.nbytes());
}

TEST_P(CgMemory, NothingIsAllocatedAfterTheFirstIteration) {
  Case c = GetParam();
  const NamedLinop A = c.make();
  const Tensor b = Tensor::random_normal(c.shape, c.dtype, {3, 0});
  std::vector<std::size_t> mallocs(8);
  std::vector<std::uint64_t> allocations(8);
  c.options.callback = [&](const CgInfo& info) {
    const auto k = static_cast<std::size_t>(info.iteration());
    mallocs[k] = testing::count_of_mallocs();
    allocations[k] = Allocator::of({}).stats().calls;
    return true;
  };
  // Another thread allocates memory when it first gets work, which may be late.
  const ConfigScope alone({.threads = 1});
  conjugate_gradients(A, b, c.options);
  EXPECT_EQ(allocations[6], allocations[1]);
  // The function of a refreshing iteration is set up when it runs first.
  const std::size_t first = c.options.refresh > 0 ? 2 : 1;
  if (testing::kKeepsHandles) {
    EXPECT_EQ(mallocs[6] - mallocs[first], 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CgMemory, ::testing::ValuesIn(cases()),
                         [](const auto& tested) { return tested.param.name; });

TEST(CgMemory, ARefreshUsesTheWorkspaceOfAStep) {
  const NamedLinop A = sense(DType::complex64, 24).N() + 0.1 * Identity("Ny Nx");
  const TensorType b{DType::complex64, {24, 24}, {}};
  const SolvePlan plain = plan_conjugate_gradients(A, b);
  const SolvePlan refreshing = plan_conjugate_gradients(A, b, {.refresh = 5});
  const index_t image = 24 * 24 * 8;
  EXPECT_GT(plain.step_bytes, image);
  // A x, which is subtracted from b while the direction waits, and the recurred residual, which is
  // compared with the true one.
  EXPECT_LE(refreshing.step_bytes, plain.step_bytes + 2 * image + 256);
}

TEST(CgMemory, TheStateIsUpdatedInPlace) {
  const NamedLinop A = sense(DType::complex64, 24).N();
  const SolvePlan plan = plan_conjugate_gradients(A, {DType::complex64, {24, 24}, {}});
  const index_t image = 24 * 24 * 8;
  // Iterate, residual, direction, and a few numbers.
  EXPECT_GE(plan.state_bytes, 3 * image);
  EXPECT_LT(plan.state_bytes, 3 * image + 256);
  // An image for A p and its coil images.
  EXPECT_LE(plan.step_bytes, image + 4 * image + 4096);
}

TEST(CgMemory, AKeptIterateCostsOneCopyAndStaysWhatItWas) {
  const NamedLinop A = Diagonal(Tensor::linspace(1, 2, 50, DType::float64), "A");
  std::vector<Tensor> kept;
  CgOptions options{.tolerance = 0, .max_iterations = 4};
  options.callback = [&](const CgInfo& info) {
    kept.push_back(info.x());
    return true;
  };
  const SolveResult result = conjugate_gradients(A, Tensor::ones({50}), options);
  ASSERT_EQ(kept.size(), 4u);
  EXPECT_TRUE(equal(kept[3], result.x));
  for (int k = 1; k <= 4; ++k) {
    options.callback = {};
    options.max_iterations = k;
    const Tensor x = conjugate_gradients(A, Tensor::ones({50}), options).x;
    EXPECT_TRUE(equal(kept[static_cast<std::size_t>(k) - 1], x)) << k;
  }
}

}  // namespace
}  // namespace palimpsest
