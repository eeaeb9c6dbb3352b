// SPDX-License-Identifier: Apache-2.0
// The laws of every solver: it uses the announced bytes, allocates nothing after the first
// iteration, continues from a checkpoint bit for bit, ends on request, and gives the same bits for
// any number of threads. A solver that is registered and not listed here fails a test.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <complex>
#include <csignal>
#include <filesystem>
#include <limits>
#include <set>

#include "palimpsest/base/config.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/solve/frame/solver.hpp"
#include "palimpsest/solve/plan_solve.hpp"
#include "solve/solver_samples.hpp"
#include "support/difference.hpp"
#include "support/expect_error.hpp"
#include "support/long_run.hpp"
#include "support/malloc_counter.hpp"
#include "support/window.hpp"

namespace palimpsest {
namespace {

using Sample = testing::SolverSample;
using testing::solver_samples;

Tensor random(Extents shape, DType dtype, std::uint64_t stream) {
  return Tensor::random_normal(std::move(shape), dtype, {41, stream});
}

class DriverLaws : public ::testing::TestWithParam<Sample> {
 protected:
  const SolverType& type() const { return *find_solver(GetParam().solver); }
  Problem problem(DType dtype) const { return GetParam().problem(dtype); }
  Tensor data(DType dtype) const { return random(GetParam().data, dtype, 2); }
  static SolveOptions options(int iterations) {
    return {.tolerance = 0, .max_iterations = iterations};
  }
  // For solvers without a convergence test, which continue.
  SolveResult solved(DType dtype, const SolveOptions& with) const {
    return solve(type(), problem(dtype), data(dtype), with);
  }
};

constexpr std::array kDTypes = {DType::float32, DType::float64, DType::complex64,
                                DType::complex128};

TEST_P(DriverLaws, ThePlannedPeakIsTheMeasuredOne) {
  for (const DType dtype : kDTypes) {
    for (const bool has_x0 : {false, true}) {
      SolveOptions with = options(4);
      const Problem p = problem(dtype);
      if (has_x0) {
        Problem resolved = p;
        resolved.resolve({}, false, type().name);
        with.x0 = random(resolved.x().type().shape, dtype, 3);
      }
      const Tensor b = data(dtype);
      const SolvePlan plan = plan_solve(type(), p, with);
      EXPECT_EQ(plan_solve([&] { solve(type(), p, b, with); }).peak_bytes, plan.peak_bytes);
      const MemoryScope scope;
      const SolveResult result = solve(type(), p, b, with);
      EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes)
          << name_of(dtype) << has_x0;
      EXPECT_EQ(result.peak_bytes, plan.peak_bytes);
      EXPECT_EQ(result.x.dtype(), dtype);
    }
  }
}

// Data and start lie in larger arrays, with strides of all kinds.
TEST_P(DriverLaws, NothingOfTheCallerIsWritten) {
  const int n_layouts = static_cast<int>(kWindowLayouts.size());
  for (int k = 0; k < testing::longer(n_layouts); ++k) {
    const DType dtype = kDTypes[static_cast<std::size_t>(k) % kDTypes.size()];
    const auto number = static_cast<std::uint64_t>(k);
    const Problem p = problem(dtype);
    Problem resolved = p;
    resolved.resolve({}, false, type().name);
    const Tensor b = random(GetParam().data, dtype, 2 + number);
    const Tensor x0 = random(resolved.x().type().shape, dtype, 3 + number);
    testing::Window data(b.shape(), dtype, testing::window_layout(number));
    testing::Window start(x0.shape(), dtype, testing::window_layout(number / 2));
    data.tensor().copy_from(b);
    start.tensor().copy_from(x0);
    SolveOptions with = options(3);
    with.x0 = x0;
    const Tensor expected = solve(type(), p, b, with).x;
    with.x0 = start.tensor();
    Tensor x = solve(type(), p, data.tensor(), with).x;
    // Sums of elements that lie apart may be rounded otherwise.
    const double tolerance = real_of(dtype) == DType::float32 ? 1e-3 : 1e-9;
    EXPECT_LE(testing::difference(x, expected), tolerance) << name_of(dtype) << k;
    x.fill(7.0);
    EXPECT_TRUE(equal(data.tensor(), b)) << k;
    EXPECT_TRUE(equal(start.tensor(), x0)) << k;
  }
}

TEST_P(DriverLaws, NothingIsAllocatedAfterTheFirstIterations) {
  // Another thread allocates memory when it first gets work, which may be late.
  const ConfigScope alone({.threads = 1});
  std::array<std::size_t, 11> mallocs{};
  std::array<std::uint64_t, 11> allocations{};
  SolveOptions with = options(10);
  with.callback = [&](const SolveInfo& info) {
    const auto k = static_cast<std::size_t>(info.iteration());
    mallocs[k] = testing::count_of_mallocs();
    allocations[k] = Allocator::of({}).stats().calls;
    return true;
  };
  const SolveResult result = solved(DType::complex64, with);
  const auto last = static_cast<std::size_t>(result.iterations);
  ASSERT_GE(last, 4u);
  EXPECT_EQ(allocations[last], allocations[1]);
  // The function of a variant is set up when it runs first.
  if (testing::kKeepsHandles && last > 5) {
    EXPECT_EQ(mallocs[last] - mallocs[5], 0u);
  }
}

TEST_P(DriverLaws, ACheckpointContinuesBitForBit) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("palimpsest_laws_" + std::to_string(getpid())))
          .string();
  for (const DType dtype : {DType::float32, DType::complex128}) {
    const SolveResult whole = solved(dtype, options(6));
    for (int k = 1; k < 6; ++k) {
      SolveOptions first = options(6), again = options(6);
      first.checkpoint = {.path = path, .every_iterations = 1};
      first.callback = [k](const SolveInfo& info) { return info.iteration() < k; };
      again.resume = path;
      solved(dtype, first);
      const SolveResult rest = solved(dtype, again);
      EXPECT_TRUE(equal(rest.x, whole.x)) << k;
      EXPECT_EQ(rest.iterations, whole.iterations) << k;
      EXPECT_EQ(rest.status, whole.status) << k;
      EXPECT_EQ(rest.history.size(), whole.history.size()) << k;
      // Some solvers have no residual: NaN, whose bits are compared as well.
      EXPECT_EQ(std::bit_cast<std::uint64_t>(rest.history.back().residual),
                std::bit_cast<std::uint64_t>(whole.history.back().residual))
          << k;
    }
  }
  std::filesystem::remove(path);
}

// A process that is killed in iteration k + 1 leaves the checkpoint of iteration k.
TEST_P(DriverLaws, AKilledRunContinuesBitForBit) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("palimpsest_killed_" + std::to_string(getpid())))
          .string();
  const SolveResult whole = solved(DType::complex64, options(5));
  for (int k = 1; k < whole.iterations; ++k) {
    const pid_t child = fork();
    if (child == 0) {
      SolveOptions first = options(5);
      first.checkpoint = {.path = path, .every_iterations = 1};
      first.callback = [k](const SolveInfo& info) {
        if (info.iteration() == k + 1) kill(getpid(), SIGKILL);
        return true;
      };
      solved(DType::complex64, first);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << k;
    SolveOptions again = options(5);
    again.resume = path;
    const SolveResult rest = solved(DType::complex64, again);
    EXPECT_TRUE(equal(rest.x, whole.x)) << k;
    EXPECT_EQ(rest.iterations, whole.iterations) << k;
    EXPECT_EQ(rest.status, whole.status) << k;
  }
  std::filesystem::remove(path);
}

TEST_P(DriverLaws, EndsWhenItIsTold) {
  SolveOptions with = options(50);
  with.cancel = CancelToken();
  CancelToken token = *with.cancel;
  with.callback = [&](const SolveInfo& info) {
    if (info.iteration() == 2) token.cancel();
    return true;
  };
  const SolveResult cancelled = solved(DType::complex64, with);
  EXPECT_EQ(cancelled.status, Status::cancelled);
  EXPECT_EQ(cancelled.iterations, 2);
  const SolveResult two = solved(DType::complex64, options(2));
  EXPECT_TRUE(equal(cancelled.x, two.x));
  EXPECT_EQ(cancelled.applications, two.applications);
  with = options(50);
  with.time_limit_s = 1e-9;
  EXPECT_EQ(solved(DType::complex64, with).status, Status::time_limit);
  const SolveResult none = solved(DType::complex64, options(0));
  EXPECT_EQ(none.iterations, 0);
  EXPECT_EQ(none.status, Status::max_iterations);
}

TEST_P(DriverLaws, DataThatAreNotFiniteDiverge) {
  const Problem p = problem(DType::float64);
  std::vector<double> values = data(DType::float64).to_vector<double>();
  values[7] = std::numeric_limits<double>::quiet_NaN();
  const Tensor b = Tensor::from<double>(values).reshape(GetParam().data);
  SolveOptions with = options(4);
  const SolveResult result = solve(type(), p, b, with);
  EXPECT_EQ(result.status, Status::diverged);
  EXPECT_EQ(result.iterations, 0);
  static const std::set<std::string> of_spectra{"svd", "dense_svd", "power_method", "lanczos"};
  if (of_spectra.contains(GetParam().solver)) return;
  EXPECT_TRUE(equal(result.x, Tensor::zeros(result.x.shape(), DType::float64)));
  with.x0 = random(result.x.shape(), DType::float64, 3);
  EXPECT_TRUE(equal(solve(type(), p, b, with).x, *with.x0));
}

// Writes NaN into the first parameter of an operator or a function; all that hold it see this.
// False where there is none.
template <class Named>
bool spoil(const Named& of) {
  for (const auto& [name, p] : of.params()) {
    if (!p.present() || p.is_derived()) continue;
    Tensor value = p.value();
    value.fill(std::numeric_limits<double>::quiet_NaN());
    Parameter(p).set_value(value);
    return true;
  }
  return std::any_of(of.linops().begin(), of.linops().end(),
                     [](const NamedLinop& child) { return spoil(child); });
}

TEST_P(DriverLaws, AnOperatorThatTurnsToNaNLeavesTheLastFiniteIterate) {
  static const std::set<std::string> closed{"Closed", "Diagonal"};  // A before the first step only
  const bool is_closed = closed.contains(GetParam().variant);
  const Tensor expected = solved(DType::complex64, options(3)).x;
  const auto expect_last_finite = [&](const std::string& name, auto part_of) {
    const Problem p = problem(DType::complex64);
    bool is_spoiled = true;
    SolveOptions with = options(8);
    with.callback = [&](const SolveInfo& info) {
      if (info.iteration() == 3) is_spoiled = spoil(part_of(p));
      return true;
    };
    const SolveResult result = solve(type(), p, data(DType::complex64), with);
    if (!is_spoiled) return;
    EXPECT_EQ(result.status, Status::diverged) << name;
    EXPECT_EQ(result.iterations, 3) << name;
    if (name == "M" && type().result != nullptr) return;  // which makes x
    EXPECT_TRUE(equal(result.x, expected)) << name;
  };
  const Problem whole = problem(DType::complex64);
  for (const auto& [name, unused] : whole.ops()) {
    if (is_closed && (name == "A" || name == "N")) continue;
    expect_last_finite(name, [&name](const Problem& p) { return p.op(name); });
  }
  for (const auto& [name, unused] : whole.proxes()) {
    expect_last_finite(name, [&name](const Problem& p) { return p.prox(name); });
  }
}

// Counts how often an iteration and the setup apply each operator: the table of docs/solvers.md.
std::map<std::string, std::int64_t> counts_of(const std::string& solver, const Problem& p,
                                              std::int64_t k) {
  std::map<std::string, std::int64_t> counts;
  const auto add = [&](const std::string& name, std::int64_t times) {
    if (times > 0 && p.has_op(name.substr(0, name.find('^')))) counts[name] += times;
  };
  static const std::set<std::string> square{"conjugate_gradients", "minres",       "gmres",
                                            "chebyshev",           "power_method", "lanczos"};
  static const std::set<std::string> both{"cgls", "lsqr", "lsmr"};
  const bool is_dual = solver == "condat_vu" || solver == "pdhg";
  if (square.contains(solver)) {
    const index_t refresh = p.integer("refresh", 0), restart = p.integer("restart", 0);
    add("A", k + (refresh > 0 ? k / refresh : 0) + (restart > 0 ? (k - 1) / restart : 0));
    add("M", k + (solver == "minres" ? 1 : 0) + (restart > 0 ? (k - 1) / restart : 0));
  } else if (solver == "bicgstab") {
    add("A", 2 * k);
    add("M", 2 * k);
  } else if (both.contains(solver)) {
    add("A", k);
    add("A^H", k + 1);
  } else if (solver == "pdhg") {
    add("A", k * (p.flag("objective") ? 2 : 1));
    add("A^H", k);
  } else {
    const std::int64_t times = k * (p.flag("objective") && is_dual ? 2 : 1);
    add(p.has_op("N") ? "N" : "A", times);
    add("A^H", p.has_op("N") ? 1 : times + 1);
  }
  for (int i = 0; is_dual && i < p.integer("terms", 0); ++i) {
    const std::string K = "K" + std::to_string(i);
    add(K, k * (p.flag("objective") ? 2 : 1));
    add(K + "^H", k);
  }
  return counts;
}

TEST_P(DriverLaws, AppliesWhatTheTableSays) {
  if (GetParam().solver == "admm" || GetParam().solver.ends_with("svd")) {
    GTEST_SKIP() << "as many as inner steps or restarts take: tested with the solver";
  }
  const Problem p = problem(DType::complex128);
  SolveResult result = solve(type(), p, data(DType::complex128), options(7));
  result.applications.erase("setup");
  EXPECT_EQ(result.iterations, 7);
  EXPECT_EQ(result.applications, counts_of(GetParam().solver, p, 7));
}

// The smallest budget: the announced bytes are used, and the iterates are the same.
TEST_P(DriverLaws, KeepsTheSmallestBudget) {
  if (GetParam().variant == "WithL" || GetParam().variant == "Damped") {
    GTEST_SKIP() << "cut as the solver without it";
  }
  const Problem p = problem(DType::complex128);
  const Tensor b = data(DType::complex128);
  SolveOptions with = options(3);
  const SolveResult whole = solve(type(), p, b, with);
  const index_t least = smallest_solve_budget(type(), p, with);
  EXPECT_LE(least, plan_solve(type(), p, with).total_bytes());
  with.budget_bytes = least;
  const SolvePlan plan = plan_solve(type(), p, with);
  EXPECT_LE(plan.total_bytes(), least);
  const MemoryScope scope;
  const SolveResult cut = solve(type(), p, b, with);
  EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes);
  // Shorter sums round differently; inner loops may end at another step.
  EXPECT_TRUE(allclose(cut.x, whole.x, 1e-3, 1e-3));
  with.budget_bytes = least - 1;
  testing::expect_error<BudgetError>([&] { plan_solve(type(), p, with); },
                                     "The state takes " + std::to_string(plan.state_bytes));
}

// b and x0 lie in one buffer, which is overwritten while the solve runs, as are the iterates given
// to the callback. Results are overwritten too, and passed as data.
TEST_P(DriverLaws, WritesOfTheCallerChangeNothing) {
  Problem p = problem(DType::complex64), resolved = p;
  resolved.resolve({}, false, type().name);
  const Extents shape = resolved.x().type().shape;
  const Tensor b0 = data(DType::complex64), x0 = random(shape, DType::complex64, 3);
  SolveOptions with = options(5);
  with.x0 = x0;
  const SolveResult plain = solve(type(), p, b0, with);
  for (const bool is_foreign : {false, true}) {
    std::vector<std::complex<float>> memory(static_cast<std::size_t>(b0.numel() + x0.numel()));
    const Extents all{b0.numel() + x0.numel()};
    Tensor buffer = is_foreign
                        ? Tensor::from_blob(memory.data(), DType::complex64, all, {1}, {}, true)
                        : Tensor::zeros(all, DType::complex64);
    Tensor b = buffer(slice(0, b0.numel())).reshape(b0.shape());
    Tensor start = buffer(slice(b0.numel(), all[0])).reshape(shape);
    b.copy_from(b0);
    start.copy_from(x0);
    with.x0 = start;
    with.callback = [&](const SolveInfo& info) {
      info.x().fill(7.0F);
      buffer.fill(-3.0F);
      return true;
    };
    EXPECT_TRUE(equal(solve(type(), p, b, with).x, plain.x)) << is_foreign;
  }
  with.callback = {};
  with.x0 = x0;
  Solver solver(type(), p, with);
  const Tensor first = solver.run(b0).x, kept = first.clone();
  Tensor(first).fill(9.0F);
  EXPECT_TRUE(equal(kept, plain.x));
  if (kept.shape() != shape) return;  // vectors and numbers
  solver.set_x0(kept);
  const Tensor again = solver.run(b0).x;
  with.x0 = kept.clone();
  EXPECT_TRUE(equal(again, solve(type(), p, b0, with).x));
  EXPECT_TRUE(equal(kept, plain.x));
  if (b0.shape() != shape) return;
  EXPECT_TRUE(equal(solver.run(kept).x, solve(type(), p, kept.clone(), with).x));
  EXPECT_TRUE(equal(kept, plain.x));
}

TEST_P(DriverLaws, ThreadsChangeNoBit) {
  Tensor x;
  for (const int threads : {1, 4}) {
    ConfigOverrides overrides;
    overrides.threads = threads;
    overrides.parallel_grain = 1;
    const ConfigScope scope(overrides);
    const SolveResult result = solved(DType::complex64, options(5));
    if (threads == 1) {
      x = result.x;
    } else {
      EXPECT_TRUE(equal(result.x, x));
    }
  }
}

// Samples whose elements can be solved separately. Step sizes found for the whole block differ from
// those of an element, so the sample must give them.
std::vector<Sample> batch_solver_samples() {
  std::vector<Sample> list = solver_samples();
  std::erase_if(list, [](const Sample& s) {
    const bool finds_steps =
        find_solver(s.solver)->prepare != nullptr && !s.problem(DType::complex128).has_attr("L");
    return !s.has_batch || finds_steps;
  });
  return list;
}

class DriverBatchLaws : public DriverLaws {};

// Independent slices, solved at once and one by one.
TEST_P(DriverBatchLaws, ABatchIsItsElements) {
  SolveOptions with = options(4);
  with.batch = "S";
  const Problem p = problem(DType::complex128);
  const Tensor b = data(DType::complex128);
  const SolveResult batch = solve(type(), p, b, with);
  const index_t axis = GetParam().data.size() == 3 ? 1 : 0;
  for (index_t s = 0; s < 2; ++s) {
    Problem part(TensorType{DType::complex128, b.narrow(axis, s, 1).shape(), {}});
    for (const auto& [name, A] : p.ops()) part.set(name, A.split({{"S", slice(s, s + 1)}}));
    for (const auto& [name, g] : p.proxes()) part.set(name, g);
    for (const auto& [name, a] : p.attrs()) part.set(name, a);
    const SolveResult own = solve(type(), part, b.narrow(axis, s, 1), options(4));
    EXPECT_TRUE(allclose(batch.x.narrow(0, s, 1), own.x, 1e-10, 1e-12)) << s;
  }
}

INSTANTIATE_TEST_SUITE_P(Solvers, DriverLaws, ::testing::ValuesIn(solver_samples()),
                         [](const auto& c) { return c.param.solver + c.param.variant; });
INSTANTIATE_TEST_SUITE_P(Solvers, DriverBatchLaws, ::testing::ValuesIn(batch_solver_samples()),
                         [](const auto& c) { return c.param.solver + c.param.variant; });

TEST(DriverLaws, EverySolverIsListed) {
  std::set<std::string> listed;
  for (const Sample& s : solver_samples()) listed.insert(s.solver);
  for (const std::string& name : solver_names()) EXPECT_TRUE(listed.contains(name)) << name;
}

}  // namespace
}  // namespace palimpsest
