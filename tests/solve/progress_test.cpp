// SPDX-License-Identifier: Apache-2.0
// The test of progress: the relative change of the objective over 10 iterations.
#include <gtest/gtest.h>

#include <cmath>

#include "io/files.hpp"
#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/solve/gradient_methods.hpp"
#include "palimpsest/solve/objective.hpp"
#include "palimpsest/solve/prox/norms.hpp"
#include "palimpsest/solve/prox/total_variation.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

class Progress : public ::testing::Test {
 protected:
  const NamedLinop A_ =
      Dense(Tensor::random_normal({30, 20}, DType::float64, {3, 0}) * Tensor::linspace(0.1, 1, 20),
            "MN,N->M");
  const Tensor b_ = Tensor::random_normal({30}, DType::float64, {3, 1});
  const Prox h_ = L1(0.3);
  const Objective terms_{.A = A_, .terms = {tv_term(0.2, "N"), {.g = L1(0.1)}}};

  double objective(const Tensor& x) const {
    const double miss = norm(A_(x) - b_).item<double>();
    return miss * miss / 2 + h_.value(x);
  }
};

TEST_F(Progress, EndsWhereTheObjectiveChangesLittle) {
  const FistaOptions options{.tolerance = 0, .max_iterations = 5000, .progress_tolerance = 1e-4};
  const SolveResult result = fista(A_, h_, b_, options);
  ASSERT_EQ(result.status, Status::converged);
  EXPECT_EQ(result.reason, "the objective changed by less than 0.0001 of itself in 10 iterations");
  ASSERT_EQ(result.iterations % 10, 0);
  // The objective is there every 10 iterations, for one N more.
  EXPECT_EQ(result.applications.at("N"), result.iterations + result.iterations / 10);
  double before = std::nan("");
  for (const Record& record : result.history) {
    EXPECT_EQ(std::isnan(record.objective), record.iteration % 10 != 0) << record.iteration;
    if (record.iteration % 10 != 0) continue;
    const bool is_steady = std::abs(before - record.objective) <= 1e-4 * record.objective;
    EXPECT_EQ(is_steady, record.iteration == result.iterations) << record.iteration;
    before = record.objective;
  }
  EXPECT_NEAR(before, objective(result.x), 1e-12 * before);
}

TEST_F(Progress, ChangesNoIterate) {
  FistaOptions options{.tolerance = 0, .max_iterations = 25};
  const Tensor plain = fista(A_, h_, b_, options).x;
  options.progress_tolerance = 1e-14;
  EXPECT_TRUE(equal(fista(A_, h_, b_, options).x, plain));
}

TEST_F(Progress, OfAllMethodsWithAnObjective) {
  const auto expect = [&](const char* name, const SolveResult& result) {
    EXPECT_EQ(result.status, Status::converged) << name;
    EXPECT_TRUE(result.reason.starts_with("the objective changed")) << name << result.reason;
  };
  const MinimizeOptions by_progress{
      .tolerance = 0, .max_iterations = 9000, .progress_tolerance = 1e-5};
  expect("condat_vu", condat_vu(terms_, b_, by_progress));
  expect("admm",
         admm(terms_, b_, {.tolerance = 0, .max_iterations = 9000, .progress_tolerance = 1e-5}));
  expect("pdhg", pdhg(SquaredL2(1.0), terms_, b_,
                      {.tolerance = 0, .max_iterations = 9000, .progress_tolerance = 1e-5}));
  expect("ista",
         ista(A_, h_, b_, {.tolerance = 0, .max_iterations = 9000, .progress_tolerance = 1e-5}));
  expect("pogm",
         pogm(A_, h_, b_, {.tolerance = 0, .max_iterations = 9000, .progress_tolerance = 1e-5}));
  // Also where the objective is recorded in each iteration.
  MinimizeOptions recorded = by_progress;
  recorded.objective = RecordObjective::always;
  const SolveResult always = condat_vu(terms_, b_, recorded);
  expect("recorded", always);
  EXPECT_EQ(always.iterations, condat_vu(terms_, b_, by_progress).iterations);
}

TEST_F(Progress, TakesWhatThePlanSays) {
  const MinimizeOptions options{
      .tolerance = 0, .max_iterations = 40, .progress_tolerance = 1e-12, .L = 100.0};
  const SolvePlan plan = plan_minimize(terms_, {b_.dtype(), b_.shape(), {}}, options);
  const MemoryScope scope;
  minimize(terms_, b_, options);
  EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes);
}

TEST_F(Progress, GoesOnFromACheckpoint) {
  const testing::TemporaryDirectory folder;
  FistaOptions options{.tolerance = 0, .max_iterations = 5000, .progress_tolerance = 1e-4};
  const SolveResult whole = fista(A_, h_, b_, options);
  for (const int k : {15, 20}) {
    options.max_iterations = k;
    options.checkpoint = CheckpointOptions{.path = folder / "state", .every_iterations = k};
    fista(A_, h_, b_, options);
    options.checkpoint.reset();
    options.max_iterations = 5000;
    options.resume = folder / "state";
    const SolveResult rest = fista(A_, h_, b_, options);
    EXPECT_EQ(rest.iterations, whole.iterations) << k;
    EXPECT_EQ(rest.reason, whole.reason) << k;
    EXPECT_TRUE(equal(rest.x, whole.x)) << k;
    options.resume.clear();
  }
}

TEST_F(Progress, EveryEndHasAReason) {
  const auto reason = [&](const FistaOptions& o) { return fista(A_, h_, b_, o).reason; };
  EXPECT_EQ(reason({.tolerance = 0, .max_iterations = 7}), "not converged after 7 iterations");
  EXPECT_EQ(reason({.tolerance = 1e-3, .max_iterations = 900}), "the residual is at most 0.001");
  EXPECT_EQ(reason({.tolerance = 0, .callback = [](const SolveInfo&) { return false; }}),
            "the caller ended it");
  EXPECT_EQ(reason({.tolerance = 0, .time_limit_s = 1e-9}), "the time limit has passed");
  CancelToken token;
  token.cancel();
  EXPECT_EQ(reason({.tolerance = 0, .cancel = token}), "it was cancelled");
  expect_error<ValueError>([&] { reason({.progress_tolerance = -1}); }, "progress_tolerance");
}

}  // namespace
}  // namespace palimpsest
