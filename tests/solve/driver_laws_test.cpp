// SPDX-License-Identifier: Apache-2.0
// What holds for every solver: it takes what it announced, allocates nothing after the first
// iteration, continues from a checkpoint bit for bit, ends when it is told to, and gives the same
// bits for any number of threads. A solver that is registered and not listed here fails a test.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <filesystem>
#include <limits>
#include <ostream>
#include <set>

#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/solve/frame/solver.hpp"
#include "palimpsest/solve/prox/constraints.hpp"
#include "palimpsest/solve/prox/total_variation.hpp"
#include "palimpsest/solve/prox/wavelets.hpp"
#include "palimpsest/solve/solvers/objective_problem.hpp"
#include "support/expect_error.hpp"
#include "support/malloc_counter.hpp"

namespace palimpsest {
namespace {

struct Sample {
  std::string solver, variant;
  std::function<Problem(DType)> problem;
  Extents data;
  bool has_batch = true;
  friend std::ostream& operator<<(std::ostream& stream, const Sample& s) {
    return stream << s.solver << s.variant;
  }
};

Tensor random(Extents shape, DType dtype, std::uint64_t stream) {
  return Tensor::random_normal(std::move(shape), dtype, {41, stream});
}

constexpr index_t kN = 24;

// Maps of 3 coils on S slices of kN points: S N -> C S N, separable along S.
NamedLinop coils(DType dtype) { return Dense(random({3, 2, kN}, dtype, 1), "C S N,S N->C S N"); }
NamedLinop positive(DType dtype) { return coils(dtype).N() + 0.5 * Identity("S N"); }
TensorType square_type(DType dtype) { return {dtype, {2, kN}, {}}; }
TensorType data_type(DType dtype) { return {dtype, {3, 2, kN}, {}}; }

Problem square(DType dtype) { return Problem(square_type(dtype)).set("A", positive(dtype)); }
Problem square_with_m(DType dtype) {
  Tensor weights = Tensor::linspace(0.1, 0.4, 2 * kN, real_of(dtype)).reshape({2, kN});
  return square(dtype).set("M", Diagonal(weights, "S N"));
}
Problem rectangular(DType dtype) { return Problem(data_type(dtype)).set("A", coils(dtype)); }
Problem with_h(DType dtype) {
  Problem p = objective_problem({.A = coils(dtype), .h = L1(0.05)}, data_type(dtype));
  return p.set("restart", true).set("max_iterations", 1000);
}
Objective with_terms(DType dtype) {
  return {.A = coils(dtype), .terms = {tv_term(0.05, "N"), {.g = L1(0.05)}}, .h = NonNegative()};
}

std::vector<Sample> samples() {
  const Extents b{2, kN}, y{3, 2, kN};
  std::vector<Sample> list;
  for (const char* name : {"conjugate_gradients", "minres", "bicgstab"}) {
    list.push_back({name, "", square, b});
    list.push_back({name, "WithM", square_with_m, b});
  }
  list.push_back({"conjugate_gradients", "Refreshing",
                  [](DType d) { return square_with_m(d).set("refresh", 3); }, b});
  list.push_back({"gmres", "", square, b});
  const auto restarting = [](DType d) { return square_with_m(d).set("restart", 3); };
  list.push_back({"gmres", "Restarting", restarting, b});
  const auto bounded = [](DType d) {
    return square(d).set("lower", 0.4).set("upper", 20.0).set("residual", true);
  };
  list.push_back({"chebyshev", "", bounded, b});
  list.push_back({"power_method", "", square, b});
  list.push_back({"lanczos", "", square, b});
  const auto triplets = [](DType d) { return rectangular(d).set("k", 3); };
  const auto restarted = [](DType d) { return rectangular(d).set("k", 1).set("vectors", 4); };
  list.push_back({"dense_svd", "", triplets, y, false});
  list.push_back({"svd", "", triplets, y, false});
  list.push_back({"svd", "Restarted", restarted, y, false});
  for (const char* name : {"cgls", "lsqr", "lsmr"}) {
    list.push_back({name, "", rectangular, y});
    list.push_back({name, "Damped", [](DType d) { return rectangular(d).set("damp", 0.3); }, y});
  }
  for (const char* name : {"ista", "fista", "pogm", "gradient_descent", "nesterov"}) {
    list.push_back({name, "", with_h, y});
    list.push_back({name, "WithL", [](DType d) { return with_h(d).set("L", 40.0); }, y});
  }
  const auto averaged = [](DType d) {
    return with_h(d).set("average", 3).set("max_iterations", 6);
  };
  list.push_back({"fista", "Averaged", averaged, y});
  for (const char* name : {"ista", "fista", "nesterov"}) {
    const auto flagged = [](const char* flag) {
      return [flag](DType d) { return with_h(d).set("L", 40.0).set(flag, true); };
    };
    list.push_back({name, "Monotone", flagged("monotone"), y});
    list.push_back({name, "Backtracking", flagged("backtrack"), y});
  }
  const auto recording = [](DType d) {
    return with_h(d)
        .set("L", 4.0)
        .set("monotone", true)
        .set("backtrack", true)
        .set("objective", true);
  };
  list.push_back({"fista", "Recording", recording, y});
  list.push_back({"ista", "WithoutN",
                  [](DType d) { return rectangular(d).set("h", L1(0.05)).set("L", 40.0); }, y});
  const auto with_prox = [](DType d) {
    const Prox tv = TotalVariation(0.05, "N", {.dims = Dims("S N"), .inner = 5});
    return objective_problem({.A = coils(d), .h = tv}, data_type(d));
  };
  list.push_back({"fista", "TotalVariation", with_prox, y, false});
  const auto with_shifts = [](DType d) {
    const Prox h = L1Wavelet(0.05, "N", {.shift = Shift::random, .dims = Dims("S N")});
    return objective_problem({.A = coils(d), .h = h}, data_type(d));
  };
  list.push_back({"fista", "ShiftedWavelets", with_shifts, y, false});
  const auto split = [](DType d) {
    Objective f = with_terms(d);
    f.terms.push_back({.g = *f.h});
    f.h.reset();
    return objective_problem(f, data_type(d)).set("inner", 3).set("adapt", true);
  };
  list.push_back({"admm", "", split, y});
  list.push_back({"admm", "WithL", [split](DType d) { return split(d).set("L", 40.0); }, y});
  const auto periodic = [](DType d) {
    const Term tv =
        tv_term(0.05, "N", {.boundary = DifferenceBoundary::periodic, .dims = Dims("S N")});
    return objective_problem({.A = Identity("S N"), .terms = {tv, {.g = L1(0.05)}}},
                             square_type(d));
  };
  list.push_back({"admm", "Closed", [periodic](DType d) { return periodic(d).set("L", 1.0); }, b});
  const auto terms = [](DType d) { return objective_problem(with_terms(d), data_type(d)); };
  list.push_back({"condat_vu", "", terms, y});
  list.push_back(
      {"condat_vu", "Adapting", [terms](DType d) { return terms(d).set("adapt", true); }, y});
  list.push_back(
      {"condat_vu", "Recording", [terms](DType d) { return terms(d).set("objective", true); }, y});
  const auto generalized = [](DType d) {
    return objective_problem(tgv_objective(coils(d), 0.05, "N"), data_type(d));
  };
  list.push_back({"condat_vu", "Tgv", generalized, y, false});
  list.push_back({"pdhg", "", [terms](DType d) { return terms(d).set("f", SquaredL2(1.0)); }, y});
  const auto strong = [terms](DType d) {
    return terms(d).set("f", SquaredL2(1.0)).set("h", SquaredL2(0.5)).set("strong", 0.5);
  };
  list.push_back({"pdhg", "Strong", strong, y});
  const auto adapting = [terms](DType d) {
    return terms(d).set("f", SquaredL2(1.0)).set("adapt", true).set("objective", true);
  };
  list.push_back({"pdhg", "Adapting", adapting, y});
  return list;
}

class DriverLaws : public ::testing::TestWithParam<Sample> {
 protected:
  const SolverType& type() const { return *find_solver(GetParam().solver); }
  Problem problem(DType dtype) const { return GetParam().problem(dtype); }
  Tensor data(DType dtype) const { return random(GetParam().data, dtype, 2); }
  static SolveOptions options(int iterations) {
    return {.tolerance = 0, .max_iterations = iterations};
  }
  // Of the solvers that report no test of their own and go on.
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
      const MemoryScope scope;
      const SolveResult result = solve(type(), p, b, with);
      EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes)
          << name_of(dtype) << has_x0;
      EXPECT_EQ(result.peak_bytes, plan.peak_bytes);
      EXPECT_EQ(result.x.dtype(), dtype);
    }
  }
}

TEST_P(DriverLaws, NothingIsAllocatedAfterTheFirstIterations) {
  // Another thread takes memory for itself when it is first given work, which may be late.
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
  // A variant sets its own function up when it runs for the first time.
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

// Writes NaN into the first parameter of an operator, which all that hold it then see.
void spoil(const NamedLinop& A) {
  for (const auto& [name, p] : A.params()) {
    if (!p.present() || p.is_derived()) continue;
    Tensor value = p.value();
    value.fill(std::numeric_limits<double>::quiet_NaN());
    Parameter(p).set_value(value);
    return;
  }
  for (const NamedLinop& child : A.linops()) spoil(child);
}

TEST_P(DriverLaws, AnOperatorThatTurnsToNaNLeavesTheLastFiniteIterate) {
  if (GetParam().variant == "Closed") GTEST_SKIP() << "applies A before the first step only";
  const Problem p = problem(DType::complex64);
  SolveOptions with = options(8);
  with.callback = [&](const SolveInfo& info) {
    if (info.iteration() == 3) spoil(p.op("A"));
    return true;
  };
  const SolveResult result = solve(type(), p, data(DType::complex64), with);
  EXPECT_EQ(result.status, Status::diverged);
  EXPECT_EQ(result.iterations, 3);
  EXPECT_TRUE(equal(result.x, solved(DType::complex64, options(3)).x));
}

// How often an iteration applies each operator, and the setup: the table of docs/solvers.md.
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

// Cut as far as it goes: what is announced is taken, and the iterates stay.
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
  // Shorter sums, other roundings; inner loops may end at another step.
  EXPECT_TRUE(allclose(cut.x, whole.x, 1e-3, 1e-3));
  with.budget_bytes = least - 1;
  testing::expect_error<BudgetError>([&] { plan_solve(type(), p, with); },
                                     "The state takes " + std::to_string(plan.state_bytes));
}

// b and x0 lie in one buffer, which is overwritten while the solve runs, as are the iterates that
// the callback took; results are overwritten too, and given back as data.
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

// Samples whose elements can be solved alone. Step sizes that are found for the whole block are
// other ones than those of an element: then the sample has to give them.
std::vector<Sample> batch_samples() {
  std::vector<Sample> list = samples();
  std::erase_if(list, [](const Sample& s) {
    const bool finds_steps =
        find_solver(s.solver)->prepare != nullptr && !s.problem(DType::complex128).has_attr("L");
    return !s.has_batch || finds_steps;
  });
  return list;
}

class DriverBatchLaws : public DriverLaws {};

// Slices that do not touch each other, solved at once and one by one.
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

INSTANTIATE_TEST_SUITE_P(Solvers, DriverLaws, ::testing::ValuesIn(samples()),
                         [](const auto& c) { return c.param.solver + c.param.variant; });
INSTANTIATE_TEST_SUITE_P(Solvers, DriverBatchLaws, ::testing::ValuesIn(batch_samples()),
                         [](const auto& c) { return c.param.solver + c.param.variant; });

TEST(DriverLaws, EverySolverIsListed) {
  std::set<std::string> listed;
  for (const Sample& s : samples()) listed.insert(s.solver);
  for (const std::string& name : solver_names()) EXPECT_TRUE(listed.contains(name)) << name;
}

}  // namespace
}  // namespace palimpsest
