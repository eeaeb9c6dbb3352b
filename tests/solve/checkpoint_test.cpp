// SPDX-License-Identifier: Apache-2.0
// An interrupted run continues bit for bit.
#include "palimpsest/solve/frame/checkpoint.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/operators/scalar.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"
#include "palimpsest/solve/gradient_methods.hpp"
#include "palimpsest/solve/objective.hpp"
#include "palimpsest/solve/prox/norms.hpp"
#include "solve/first_order_options.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::as;
using testing::expect_error;

struct Killed {};

class Checkpoints : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // A run that ends without notice after iteration k.
  void kill_after(int k, CgOptions options) const {
    options.checkpoint = {.path = path(), .every_iterations = 1};
    options.callback = [k](const SolveInfo& info) {
      if (info.iteration() == k + 1) throw Killed{};
      return true;
    };
    EXPECT_THROW(conjugate_gradients(A_, b_, options), Killed);
  }

  std::string path() const { return folder_ + "/run.pal"; }

  const std::string folder_ =
      (std::filesystem::temp_directory_path() / ("palimpsest_solve_" + std::to_string(getpid())))
          .string();
  const NamedLinop A_ =
      Dense(Tensor::random_normal({23, 20}, DType::complex64, {5, 0}), "MN,N->M").N() +
      Identity("N");
  const Tensor b_ = Tensor::random_normal({20}, DType::complex64, {5, 1});
};

TEST_F(Checkpoints, ContinueBitForBit) {
  CgOptions options{.M = Scalar(0.5, "N"), .tolerance = 0, .max_iterations = 9, .refresh = 4};
  const SolveResult whole = conjugate_gradients(A_, b_, options);
  for (int k = 1; k < 9; ++k) {
    kill_after(k, options);
    CgOptions again = options;
    again.resume = path();
    const SolveResult rest = conjugate_gradients(A_, b_, again);
    EXPECT_TRUE(equal(rest.x, whole.x)) << k;
    EXPECT_EQ(rest.status, whole.status);
    EXPECT_EQ(rest.iterations, whole.iterations);
    EXPECT_EQ(rest.applications, whole.applications);
    ASSERT_EQ(rest.history.size(), whole.history.size());
    for (std::size_t i = 0; i < whole.history.size(); ++i) {
      EXPECT_EQ(rest.history[i].residual, whole.history[i].residual) << k << " " << i;
      EXPECT_EQ(rest.history[i].objective, whole.history[i].objective) << k << " " << i;
    }
  }
}

// A run of few iterations continues to more, unless its iterates depend on their number.
TEST_F(Checkpoints, OfProximalMethodsGoOnToMoreIterations) {
  const auto run = [&](auto solve) {
    solve(FistaOptions{.tolerance = 0,
                       .max_iterations = 3,
                       .L = 1e4,
                       .checkpoint = CheckpointOptions{.path = path(), .every_iterations = 1}});
    const SolveResult rest =
        solve(FistaOptions{.tolerance = 0, .max_iterations = 9, .L = 1e4, .resume = path()});
    const SolveResult whole = solve(FistaOptions{.tolerance = 0, .max_iterations = 9, .L = 1e4});
    EXPECT_TRUE(equal(rest.x, whole.x));
    EXPECT_EQ(rest.iterations, 9);
  };
  run([&](const FistaOptions& o) { return fista(A_, L1(0.1), b_, o); });
  run([&](const FistaOptions& o) { return ista(A_, L1(0.1), b_, as<IstaOptions>(o)); });
  run([&](const FistaOptions& o) { return nesterov(A_, b_, o); });
  run([&](const FistaOptions& o) {
    return minimize({.A = A_, .h = L1(0.1)}, b_,
                    {.tolerance = 0,
                     .max_iterations = o.max_iterations,
                     .L = o.L,
                     .checkpoint = o.checkpoint,
                     .resume = o.resume});
  });
  expect_error<ValueError>(
      [&] {
        run([&](const FistaOptions& o) { return pogm(A_, L1(0.1), b_, as<PogmOptions>(o)); });
      },
      "max_iterations");
}

TEST_F(Checkpoints, AreWrittenWhenARunIsBrokenOff) {
  CgOptions options{.tolerance = 0, .max_iterations = 9};
  const SolveResult whole = conjugate_gradients(A_, b_, options);
  options.checkpoint = {.path = path()};
  options.callback = [](const SolveInfo& info) { return info.iteration() < 3; };
  EXPECT_EQ(conjugate_gradients(A_, b_, options).status, Status::stopped);
  CgOptions again{.tolerance = 0, .max_iterations = 9};
  again.resume = path();
  EXPECT_TRUE(equal(conjugate_gradients(A_, b_, again).x, whole.x));
  again.max_iterations = 2;
  const SolveResult at_three = conjugate_gradients(A_, b_, again);
  EXPECT_EQ(at_three.status, Status::max_iterations);
  EXPECT_EQ(at_three.iterations, 3);
}

TEST_F(Checkpoints, OfFarUnitsAndOfBatches) {
  const Tensor weights = Tensor::linspace(1, 3, 60, DType::float32).reshape({3, 20});
  const NamedLinop A = Diagonal(weights, "S N");
  const Tensor b = Tensor::linspace(1e-25, 7e-25, 60, DType::float32).reshape({3, 20});
  CgOptions options{.tolerance = 1e-4};
  options.batch = "S";
  const SolveResult whole = conjugate_gradients(A, b, options);
  CgOptions first = options, again = options;
  first.max_iterations = 3;
  first.checkpoint = {.path = path()};
  conjugate_gradients(A, b, first);
  again.resume = path();
  const SolveResult rest = conjugate_gradients(A, b, again);
  EXPECT_TRUE(equal(rest.x, whole.x));
  EXPECT_EQ(rest.batch_iterations, whole.batch_iterations);
}

// Steps of twice the length that is allowed grow until the run ends.
TEST_F(Checkpoints, KeepHowLongStepsHaveGrown) {
  const NamedLinop A = Scalar(1.0, "N");
  IstaOptions options{.tolerance = 0, .max_iterations = 100, .L = 0.4};
  const SolveResult whole = gradient_descent(A, b_, options);
  EXPECT_EQ(whole.status, Status::diverged);
  options.checkpoint = CheckpointOptions{.path = path(), .every_iterations = 1};
  options.callback = [](const SolveInfo& info) { return info.iteration() < 10; };
  gradient_descent(A, b_, options);
  options.callback = {};
  options.resume = path();
  const SolveResult rest = gradient_descent(A, b_, options);
  EXPECT_EQ(rest.status, Status::diverged);
  EXPECT_EQ(rest.iterations, whole.iterations);
  EXPECT_TRUE(equal(rest.x, whole.x));
}

// After a claim of convergence that the true residual refutes, the recurrence begins anew.
TEST_F(Checkpoints, OfStartsFarFromTheSolution) {
  Tensor x0 = Tensor::full<std::complex<float>>({20}, 1e4F);
  CgOptions options{.tolerance = 1e-6, .max_iterations = 200};
  options.x0 = x0;
  const SolvePlan plan = plan_conjugate_gradients(A_, {b_.dtype(), b_.shape(), {}}, options);
  const SolveResult whole = conjugate_gradients(A_, b_, options);
  EXPECT_EQ(whole.status, Status::converged);
  const Tensor r = b_ - A_(whole.x);
  EXPECT_LE(norm(r).item<float>(), 2e-6F * norm(b_).item<float>());
  EXPECT_GT(whole.applications.at("A"), whole.iterations + 2);
  EXPECT_LE(whole.applications.at("A"), whole.iterations + 4);
  // Starts near b pay nothing, and no memory is needed beyond the plan.
  CgOptions near = options;
  near.x0 = Tensor::full<std::complex<float>>({20}, 1e-2F);
  const SolveResult cheap = conjugate_gradients(A_, b_, near);
  EXPECT_EQ(cheap.applications.at("A"), cheap.iterations + 1);
  const MemoryScope scope;
  conjugate_gradients(A_, b_, options);
  EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes);
  for (const int k : {1, whole.iterations / 2, whole.iterations - 1}) {
    kill_after(k, options);
    for (const bool has_x0 : {false, true}) {
      CgOptions again = options;
      if (!has_x0) again.x0.reset();
      again.resume = path();
      const SolveResult rest = conjugate_gradients(A_, b_, again);
      EXPECT_TRUE(equal(rest.x, whole.x)) << k;
      EXPECT_EQ(rest.iterations, whole.iterations) << k;
      EXPECT_EQ(rest.applications, whole.applications) << k;
    }
  }
}

TEST_F(Checkpoints, TakeNoMemory) {
  CgOptions options{.tolerance = 0, .max_iterations = 3};
  const SolvePlan plan = plan_conjugate_gradients(A_, {b_.dtype(), b_.shape(), {}}, options);
  options.checkpoint = {.path = path(), .every_iterations = 1};
  const MemoryScope scope;
  conjugate_gradients(A_, b_, options);
  EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes);
}

TEST_F(Checkpoints, RefuseWhatDoesNotFit) {
  CgOptions options{.tolerance = 0, .max_iterations = 9};
  kill_after(3, options);
  options.resume = path();
  const auto expect_misfit = [&](const NamedLinop& A, const Tensor& b, const char* what) {
    expect_error<ValueError>([&] { conjugate_gradients(A, b, options); },
                             std::string("does not fit: ") + what);
  };
  Tensor other = b_.clone();
  other.set<std::complex<float>>({7}, {1, 2});
  expect_misfit(A_, other, "data of b");
  expect_misfit(A_ + Identity("N"), b_, "operator A");
  options.refresh = 2;
  expect_misfit(A_, b_, "refresh");
}

// Proximal functions are part of the problem: weights and types are compared bit for bit.
TEST_F(Checkpoints, RefuseOtherFunctionsAndNumbers) {
  const auto run = [&](const Prox& h, double L, bool resumes) {
    FistaOptions options{.tolerance = 0, .max_iterations = 3, .L = L};
    if (resumes) {
      options.resume = path();
    } else {
      options.checkpoint = {.path = path(), .every_iterations = 1};
    }
    return fista(A_, h, b_, options).iterations;
  };
  run(L1(0.1), 1e4, false);
  EXPECT_EQ(run(L1(0.1), 1e4, true), 3);
  expect_error<ValueError>([&] { run(L1(0.2), 1e4, true); }, "does not fit: function h");
  expect_error<ValueError>([&] { run(L1(0.1 * (1 + 1e-15)), 1e4, true); },
                           "does not fit: function h");
  expect_error<ValueError>([&] { run(L2(0.1), 1e4, true); }, "does not fit: function h");
  expect_error<ValueError>([&] { run(L1(Tensor::full<double>({}, 0.1)), 1e4, true); },
                           "does not fit: function h");
  expect_error<ValueError>([&] { run(L1(0.1), 1e4 * (1 + 1e-15), true); }, "does not fit: L");
  const Tensor weights = Tensor::linspace(1, 2, 20), others = Tensor::linspace(1, 3, 20);
  run(L1(0.1, {.weights = weights}), 1e4, false);
  EXPECT_EQ(run(L1(0.1, {.weights = weights.clone()}), 1e4, true), 3);
  expect_error<ValueError>([&] { run(L1(0.1, {.weights = others}), 1e4, true); },
                           "does not fit: function h");
}

TEST_F(Checkpoints, RefuseDamagedAndForeignFiles) {
  CgOptions options{.tolerance = 0, .max_iterations = 9};
  kill_after(3, options);
  options.resume = path();
  std::string bytes;
  {
    std::ifstream file(path(), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  const auto solve_of = [&](const std::string& text) {
    std::ofstream(path(), std::ios::binary).write(text.data(), static_cast<long>(text.size()));
    return conjugate_gradients(A_, b_, options).iterations;
  };
  EXPECT_EQ(solve_of(bytes), 9);
  for (std::size_t at = 0; at < bytes.size(); at += 97) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    // Padding between the parts of the file is ignored.
    try {
      EXPECT_EQ(solve_of(damaged), 9) << at;
    } catch (const FormatError& error) {
      EXPECT_NE(std::string(error.what()).find("checkpoint"), std::string::npos) << error.what();
    }
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{10}, bytes.size() / 2}) {
    EXPECT_THROW(solve_of(bytes.substr(0, size)), FormatError) << size;
  }
}

TEST_F(Checkpoints, RefuseAnotherVersionOfTheSolver) {
  kill_after(3, {.tolerance = 0, .max_iterations = 9});
  SolverType newer = *find_solver("conjugate_gradients");
  newer.version = 2;
  expect_error<FormatError>([&] { read_checkpoint(path(), newer, {}); },
                            "version: got 1, expected 2");
}

}  // namespace
}  // namespace palimpsest
