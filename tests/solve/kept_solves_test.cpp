// SPDX-License-Identifier: Apache-2.0
// An operator keeps the programs of solves with it.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/operators/simple.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"
#include "palimpsest/solve/least_squares.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

Tensor random(Extents shape, std::uint64_t stream, DType dtype = DType::float64) {
  return Tensor::random_normal(std::move(shape), dtype, {23, stream});
}

// Counts how often its graph is built.
struct Counted {
  std::shared_ptr<std::atomic<int>> graphs = std::make_shared<std::atomic<int>>(0);
  NamedLinop A = SimpleLinop({.fn =
                                  [n = graphs](const Variable& v) {
                                    ++*n;
                                    return 3 * v - ops::roll(v, 1, -1) - ops::roll(v, -1, -1);
                                  },
                              .adj_fn =
                                  [n = graphs](const Variable& v) {
                                    ++*n;
                                    return 3 * v - ops::roll(v, 1, -1) - ops::roll(v, -1, -1);
                                  },
                              .ishape = "N"});
};

TEST(KeptSolves, TheSecondSolveBuildsNoGraph) {
  const Counted counted;
  const Tensor b = random({40}, 1), c = random({40}, 2);
  const LeastSquaresOptions options{.atol = 0, .btol = 0, .max_iterations = 30};
  const SolveResult first = lsqr(counted.A, b, options);
  const int built = *counted.graphs;
  EXPECT_GT(built, 0);
  const SolveResult again = lsqr(counted.A, b, options), other = lsqr(counted.A, c, options);
  EXPECT_EQ(*counted.graphs, built);
  EXPECT_TRUE(equal(again.x, first.x));
  EXPECT_EQ(again.status, first.status);
  EXPECT_EQ(again.applications, first.applications);
  EXPECT_EQ(again.history.size(), first.history.size());
  EXPECT_TRUE(equal(other.x, lsqr(Counted().A, c, options).x));
  // Another start, damping, batch or dtype needs another program.
  LeastSquaresOptions damped = options;
  damped.damp = 0.5;
  EXPECT_TRUE(equal(lsqr(counted.A, b, damped).x, lsqr(Counted().A, b, damped).x));
  LeastSquaresOptions started = options;
  started.x0 = c;
  EXPECT_TRUE(equal(lsqr(counted.A, b, started).x, lsqr(Counted().A, b, started).x));
  const Tensor narrow = random({40}, 3, DType::float32);
  EXPECT_TRUE(equal(lsqr(counted.A, narrow, options).x, lsqr(Counted().A, narrow, options).x));
  EXPECT_TRUE(equal(lsqr(counted.A, b, options).x, first.x));
}

TEST(KeptSolves, BadOptionsAreRefusedByAKeptOneToo) {
  const Counted counted;
  const Tensor b = random({20}, 1);
  CgOptions options;
  options.x0 = random({20}, 2);
  conjugate_gradients(counted.A, b, options);
  options.x0 = random({21}, 2);
  testing::expect_error<ShapeError>([&] { conjugate_gradients(counted.A, b, options); }, "x0");
  options.x0 = random({20}, 2);
  options.callback_every = 0;
  testing::expect_error<ValueError>([&] { conjugate_gradients(counted.A, b, options); },
                                    "callback_every");
  options.callback_every = 1;
  options.callback = [](const SolveInfo&) -> bool { throw ValueError("mine"); };
  testing::expect_error<ValueError>([&] { conjugate_gradients(counted.A, b, options); }, "mine");
  options.callback = {};
  EXPECT_EQ(conjugate_gradients(counted.A, b, options).status, Status::converged);
}

TEST(KeptSolves, SeeTheParametersAsTheyAre) {
  SharedVariable weights = shared(Tensor::full<double>({16}, 2.0));
  const NamedLinop A = Diagonal(Parameter(weights), "N");
  const Tensor b = random({16}, 1);
  const Tensor x = conjugate_gradients(A, b).x;
  for (index_t i = 0; i < 16; ++i) EXPECT_NEAR(x.at<double>({i}), b.at<double>({i}) / 2, 1e-9);
  weights.set_value(Tensor::full<double>({16}, 4.0));
  const Tensor half = conjugate_gradients(A, b).x;
  for (index_t i = 0; i < 16; ++i) EXPECT_NEAR(half.at<double>({i}), b.at<double>({i}) / 4, 1e-9);
}

TEST(KeptSolves, KeepNeitherOperatorsNorVectors) {
  const MemoryScope scope;
  {
    NamedLinop A;
    {
      const Tensor matrix = random({300, 200}, 1);
      A = Dense(matrix, "MN,N->M");
    }
    const Tensor b = random({300}, 2);
    lsqr(A, b);
    lsmr(A, b);
    // The matrix, b, and constants of programs.
    EXPECT_LT(scope.live_bytes(), (300 * 200 + 300) * 8 + 4096);
  }
  EXPECT_EQ(scope.live_bytes(), 0);
}

TEST(KeptSolves, WithinASolveThereIsAnother) {
  const Counted counted;
  const Tensor b = random({24}, 1);
  const Tensor expected = conjugate_gradients(Counted().A, b).x;
  CgOptions options;
  int inner = 0;
  options.callback = [&](const SolveInfo&) {
    inner += equal(conjugate_gradients(counted.A, b).x, expected) ? 1 : 0;
    return true;
  };
  const SolveResult outer = conjugate_gradients(counted.A, b, options);
  EXPECT_EQ(inner, outer.iterations);
  EXPECT_TRUE(equal(outer.x, expected));
}

TEST(KeptSolves, ThreadsNeverShareOne) {
  const Counted counted;
  std::vector<Tensor> data, expected;
  for (std::uint64_t k = 0; k < 4; ++k) {
    data.push_back(random({50}, k));
    expected.push_back(conjugate_gradients(Counted().A, data.back()).x);
  }
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (std::size_t k = 0; k < 4; ++k) {
    threads.emplace_back([&, k] {
      for (int i = 0; i < 20; ++i) {
        if (!equal(conjugate_gradients(counted.A, data[k]).x, expected[k])) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(KeptSolves, ConfigDecidesHowMany) {
  const Counted counted;
  const Tensor b = random({24}, 1);
  const auto built_by = [&] {
    const int before = *counted.graphs;
    lsqr(counted.A, b);
    return *counted.graphs - before;
  };
  EXPECT_GT(built_by(), 0);
  EXPECT_EQ(built_by(), 0);
  {
    ConfigOverrides overrides;
    overrides.mode = "FastCompile";
    const ConfigScope scope(overrides);
    EXPECT_GT(built_by(), 0);
    EXPECT_EQ(built_by(), 0);
  }
  EXPECT_EQ(built_by(), 0);
  ConfigOverrides overrides;
  overrides.function_cache = 0;
  const ConfigScope scope(overrides);
  EXPECT_GT(built_by(), 0);
  EXPECT_GT(built_by(), 0);
}

}  // namespace
}  // namespace palimpsest
