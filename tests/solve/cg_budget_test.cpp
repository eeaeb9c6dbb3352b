// SPDX-License-Identifier: Apache-2.0
// Conjugate gradients within a budget: 3-D SENSE, 32^3, 18 coils, maps in memory or in a file.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "palimpsest/palimpsest.hpp"
#include "support/difference.hpp"

namespace palimpsest {
namespace {

using testing::difference;

constexpr index_t kN = 32, kCoils = 18;
constexpr index_t kVolumeBytes = kN * kN * kN * 8;

Tensor random(Extents shape, DType dtype, std::uint64_t stream) {
  return Tensor::random_normal(std::move(shape), dtype, {17, stream});
}

NamedLinop normal_operator(const Tensor& maps) {
  const NamedLinop A =
      Chain(Dense(maps, "CNzNyNx,NzNyNx->CNzNyNx"),
            Fft(3, {.batch = "C", .grid = Grid{"NzNyNx", "KzKyKx"}, .centered = true}),
            Diagonal(Tensor::random_uniform({kN, kN, kN}, DType::float32, {4, 0}), "CKzKyKx"));
  return A.N() + 0.05 * Identity("NzNyNx");
}

class CgBudget : public ::testing::Test {
 protected:
  const Tensor maps = random({kCoils, kN, kN, kN}, DType::complex64, 1);
  const Tensor b = random({kN, kN, kN}, DType::complex64, 2);
  const TensorType type{DType::complex64, {kN, kN, kN}, {}};
  const CgOptions options{.tolerance = 0, .max_iterations = 2};

  CgOptions with(index_t budget) const {
    CgOptions own = options;
    own.budget_bytes = budget;
    return own;
  }

  SolvePlan uncut_plan(const NamedLinop& A) const {
    const ConfigScope scope({.rewrites_excluding = std::vector<std::string>{"cache_tiles"}});
    return plan_conjugate_gradients(A, type, options);
  }
};

TEST_F(CgBudget, EveryBudgetIsKeptAndTheImageStays) {
  const NamedLinop A = normal_operator(maps);
  const SolvePlan whole = uncut_plan(A);
  const Tensor expected = conjugate_gradients(A, b, options).x;
  EXPECT_TRUE(whole.sizes.empty());
  index_t smallest = 0;
  try {
    plan_conjugate_gradients(A, type, with(1));
  } catch (const BudgetError& error) {
    const std::string text = error.what(), before = "found is ";
    ASSERT_NE(text.find(before), std::string::npos) << text;
    smallest = std::stoll(text.substr(text.find(before) + before.size()));
  }
  ASSERT_GT(smallest, 0);
  // State, sum, one coil and the workspace of its transform, besides maps and weights.
  EXPECT_LE(smallest, operator_bytes(A) + 8 * kVolumeBytes);
  EXPECT_LT(smallest, whole.total_bytes());
  for (const index_t budget :
       {whole.total_bytes(), (whole.total_bytes() + smallest) / 2, smallest}) {
    const SolvePlan plan = plan_conjugate_gradients(A, type, with(budget));
    EXPECT_LE(plan.total_bytes(), budget);
    const MemoryScope scope;
    const Tensor x = conjugate_gradients(A, b, with(budget)).x;
    EXPECT_LE(static_cast<index_t>(scope.peak_bytes()) + plan.operator_bytes, budget);
    EXPECT_LE(difference(x, expected), 1e-5) << budget;
  }
}

// An object plans, compiles and runs: a run compiles nothing, not even with another value of the
// maps.
TEST_F(CgBudget, APlannedSolveRunsAgainAndAgainWithoutCompiling) {
  int graphs = 0;
  const NamedLinop counted = SimpleLinop({.fn =
                                              [&graphs](const Variable& x) {
                                                ++graphs;
                                                return x * 1.0F;
                                              },
                                          .adj_fn =
                                              [&graphs](const Variable& x) {
                                                ++graphs;
                                                return x * 1.0F;
                                              },
                                          .ishape = "NzNyNx"});
  const SharedVariable values(TensorType{DType::complex64, maps.shape(), {}}, maps);
  const NamedLinop coils = Dense(Parameter(values), "CNzNyNx,NzNyNx->CNzNyNx");
  const NamedLinop A = Chain(coils, coils.H()) + counted;
  const index_t budget = smallest_cg_budget(A, type, options);
  ConjugateGradients solve(A, type, with(budget));
  EXPECT_GT(solve.plan().tiles, 1);
  const int planned = graphs;
  EXPECT_GT(planned, 0);
  const MemoryScope scope;
  const Tensor first = solve.run(b).x, again = solve.run(b).x;
  EXPECT_TRUE(equal(first, again));
  SharedVariable(values).set_value(random(maps.shape(), DType::complex64, 7));
  const Tensor other = solve.run(b).x;
  EXPECT_EQ(graphs, planned);
  EXPECT_GT(difference(other, first), 1e-2);
  EXPECT_TRUE(equal(other, conjugate_gradients(A, b, with(budget)).x));
  // Between runs only the caller's data are held.
  EXPECT_EQ(scope.live_bytes(), 3 * b.nbytes() + maps.nbytes());
}

TEST_F(CgBudget, MapsInAFileAreStreamed) {
  const std::string path =
      ::testing::TempDir() + "palimpsest_cg_budget_" + std::to_string(getpid()) + ".npy";
  write_npy(path, maps);
  {
    const NamedLinop A = normal_operator(map_npy(path));
    const SolvePlan whole = uncut_plan(A);
    EXPECT_EQ(whole.streamed_bytes, maps.nbytes());
    const index_t budget = 9 * kVolumeBytes;
    const SolvePlan plan = plan_conjugate_gradients(A, type, with(budget));
    EXPECT_LE(plan.total_bytes(), budget);
    EXPECT_LT(plan.streamed_bytes, maps.nbytes());
    const MemoryScope scope;
    const Tensor x = conjugate_gradients(A, b, with(budget)).x;
    EXPECT_LE(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes);
    EXPECT_LE(difference(x, conjugate_gradients(normal_operator(maps), b, options).x), 1e-5);
  }
  std::filesystem::remove(path);
}

// The message names the solver, the bytes given, and a budget that is enough.
TEST(Budgets, EveryRefusalNamesOneThatWorks) {
  const Tensor maps = random({2, 8, 8}, DType::complex64, 1);
  const NamedLinop A = Chain(Dense(maps, "C Ny Nx,Ny Nx->C Ny Nx"),
                             Fft(2, {.batch = "C", .grid = Grid{"Ny Nx", "Ky Kx"}}));
  const Tensor b = random({2, 8, 8}, DType::complex64, 2), x = random({8, 8}, DType::complex64, 3);
  const NamedLinop dense = Dense(maps, "C Ny Nx,Ny Nx->C Ny");
  const Objective smooth{.A = A},
      joint{.A = A, .terms = {tv_term(0.1, "Ny Nx"), {.g = L1(0.1), .K = Scalar(2.0, "Ny Nx")}}};
  const auto with = [](auto options, index_t budget) {
    options.max_iterations = 2;
    options.budget_bytes = budget;
    return options;
  };
  const auto expect_named = [](const std::string& who, const auto& run) {
    try {
      run(1000);
      ADD_FAILURE() << who;
    } catch (const BudgetError& error) {
      const std::string text = error.what(), before = "Try a budget of ";
      EXPECT_EQ(text.find("[" + who + "]"), 0u) << text;
      EXPECT_NE(text.find("got 1000 bytes"), std::string::npos) << text;
      ASSERT_NE(text.find(before), std::string::npos) << text;
      const index_t enough = std::stoll(text.substr(text.find(before) + before.size()));
      EXPECT_NO_THROW(run(enough)) << text;
      EXPECT_THROW(run(enough - 1), BudgetError) << text;
    }
  };
  expect_named("conjugate_gradients",
               [&](index_t n) { conjugate_gradients(A.N(), x, with(CgOptions{}, n)); });
  expect_named("cg_normal", [&](index_t n) { cg_normal(A, b, with(CgOptions{}, n)); });
  expect_named("gmres", [&](index_t n) { gmres(A.N(), x, with(GmresOptions{.restart = 3}, n)); });
  expect_named("cgls", [&](index_t n) { cgls(A, b, with(CglsOptions{}, n)); });
  expect_named("svd", [&](index_t n) { svd(dense, 2, with(SvdOptions{.dense_side = 0}, n)); });
  expect_named("fista", [&](index_t n) { fista(A, L1(0.1), b, with(FistaOptions{.L = 4.0}, n)); });
  expect_named("minimize", [&](index_t n) { minimize(smooth, b, with(MinimizeOptions{}, n)); });
  expect_named("pdhg", [&](index_t n) { pdhg(L2(1.0), joint, b, with(PdhgOptions{}, n)); });
}

TEST_F(CgBudget, TheConfigIsAsGoodAsTheOption) {
  const NamedLinop A = normal_operator(maps);
  const index_t budget = uncut_plan(A).total_bytes() * 8 / 10;
  const ConfigScope scope({.budget = budget});
  const SolvePlan plan = plan_conjugate_gradients(A, type, options);
  EXPECT_LE(plan.total_bytes(), budget);
  EXPECT_TRUE(plan.sizes.contains("C"));
  EXPECT_GT(plan.tiles, 1);
}

}  // namespace
}  // namespace palimpsest
