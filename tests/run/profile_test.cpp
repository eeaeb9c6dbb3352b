// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/run/profile.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/inspect/debug/debug_mode.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

struct ProfileTest : ::testing::Test {
  Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
  Function f = function({x}, {ops::roll(x * 2.0, 1, 0) + x}, {.name = "f", .profile = true});
};

TEST_F(ProfileTest, CountsCallsAndStepsPerPlan) {
  for (int i = 0; i < 3; ++i) f(Tensor::ones({100}));
  f(Tensor::ones({7}));
  const Profile profile = f.profile();
  EXPECT_EQ(profile.calls, 4u);
  EXPECT_GT(profile.call_seconds, 0);
  EXPECT_GT(profile.step_seconds, 0);
  EXPECT_LE(profile.step_seconds, profile.call_seconds);
  EXPECT_GT(profile.compile_seconds, 0);
  ASSERT_EQ(profile.plans.size(), 2u);
  EXPECT_EQ(profile.plans[0].calls, 3u);
  EXPECT_EQ(profile.plans[0].signature, "(float64(100,))");
  EXPECT_EQ(profile.plans[0].steps.size(), 3u);
  double classes = 0;
  for (const auto& [name, seconds] : profile.seconds_by_class()) classes += seconds;
  EXPECT_NEAR(classes, profile.step_seconds, 1e-12);
  EXPECT_TRUE(profile.seconds_by_class().contains("Roll"));
}

TEST_F(ProfileTest, MeasuredPeakIsThePlannedOne) {
  const ConfigScope scope({.profile = true, .profile_memory = true});
  SharedVariable s = shared(Tensor::ones({100}));
  const std::vector<Function> functions = {
      function({x}, {ops::roll(x * 2.0, 1, 0) + x}),
      function({x}, {Out(ops::roll(x, 1, 0), {.borrow = true})}),
      function({x}, {x}, {.updates = {{s, ops::roll(s.var() + x, 1, 0)}}})};
  for (const Function& g : functions) {
    for (int i = 0; i < 3; ++i) {
      g(Tensor::ones({100}));
      const PlanProfile plan = g.profile().plans.at(0);
      EXPECT_EQ(plan.measured_peak_bytes, plan.peak_bytes) << i;
    }
  }
}

TEST_F(ProfileTest, HoldsTheNumbersOfThePlan) {
  f(Tensor::ones({100}));
  const PlanProfile got = f.profile().plans.at(0);
  const Plan& plan = f.plan(std::vector<TensorType>{{DType::float64, {100}, {}}});
  EXPECT_GT(plan.arena_bytes, 0);
  EXPECT_EQ(got.peak_bytes, plan.peak_bytes);
  EXPECT_EQ(got.arena_bytes, plan.arena_bytes);
  EXPECT_EQ(got.output_bytes, plan.output_bytes);
  EXPECT_EQ(got.entry_copy_bytes, plan.entry_copy_bytes);
  EXPECT_EQ(got.lower_bound_bytes, plan.lower_bound_bytes);
  EXPECT_EQ(got.no_reuse_bytes, plan.no_reuse_bytes);
  EXPECT_EQ(got.saved_by_view_bytes, plan.saved_by_view_bytes);
  EXPECT_EQ(got.saved_by_inplace_bytes, plan.saved_by_inplace_bytes);
}

TEST_F(ProfileTest, StepsTellNewAndInPlaceBytes) {
  f(Tensor::ones({100}));
  const PlanProfile plan = f.profile().plans.at(0);
  EXPECT_EQ(plan.steps[0].op_class, "Mul");
  EXPECT_EQ(plan.steps[0].allocated_bytes, 800);
  EXPECT_EQ(plan.steps[2].op_class, "AddInPlace");
  EXPECT_EQ(plan.steps[2].in_place_bytes, 800);
  EXPECT_EQ(plan.steps[2].allocated_bytes, 0);
  EXPECT_EQ(plan.saved_by_inplace_bytes, 800);
  const Function views = function({x}, {ops::reshape(x, {-1, 1}) * 2.0}, {.profile = true});
  views(Tensor::ones({100}));
  EXPECT_EQ(views.profile().plans.at(0).saved_by_view_bytes, 800);
}

TEST_F(ProfileTest, RewritesAreListedWithWhatTheyDid) {
  const Function g = function({x}, {ops::exp(x) * ops::sin(ops::exp(x))}, {.profile = true});
  int merged = 0, fused = 0;
  for (const RewriteProfile& r : g.profile().rewrites) {
    if (r.name == "merge_duplicates") merged += r.applied;
    if (r.name == "fuse_elementwise") fused += r.applied;
    EXPECT_GE(r.seconds, 0);
  }
  EXPECT_GT(merged, 0);
  EXPECT_GT(fused, 0);
}

TEST_F(ProfileTest, AChoiceIsProfiled) {
  const Variable a = dscalar("a"), b = dscalar("b");
  const Function g = function({a, b}, ops::ifelse(ops::lt(a, b), 2 * a, 2 * b), {.profile = true});
  EXPECT_EQ(g(1.0, 3.0)[0].item<double>(), 2);
  EXPECT_EQ(g(4.0, 3.0)[0].item<double>(), 6);
  const std::string text = g.profile().summary();
  EXPECT_NE(text.find("2 calls"), std::string::npos) << text;
  EXPECT_NE(text.find("Mul"), std::string::npos) << text;
  // The plan has the steps of both branches.
  EXPECT_EQ(g.profile().plans.at(0).steps.size(), 3u) << text;
}

TEST_F(ProfileTest, StepsInsideOfLoopsAreListed) {
  const auto inner = [](const std::vector<Variable>& v) {
    return std::vector<Variable>{ops::cumsum(v[0]) * 0.5};
  };
  const auto outer = [&](const std::vector<Variable>& v) {
    const Variable u = ops::loop(inner, {.states = {v[0]}, .n_steps = 3}).last(0);
    return std::vector<Variable>{ops::roll(u, 1, 0)};
  };
  const Variable v = ops::loop(outer, {.states = {x}, .n_steps = 5}).last(0);
  for (const Mode& mode : {Mode(Mode::fast_run), Mode(DebugMode({.patience = 1}))}) {
    const Function g = function({x}, ops::flip(v, {0}) * 2.0, {.mode = mode, .profile = true});
    for (int i = 0; i < 2; ++i) g(Tensor::ones({20000}));
    const Profile profile = g.profile();
    std::vector<std::string> names;
    double total = 0;
    for (const StepProfile& step : profile.plans.at(0).steps) {
      names.push_back(step.op.substr(0, step.op.find('{')));
      total += step.seconds;
      if (step.op_class != "CumSumInPlace") continue;
      EXPECT_GT(step.seconds, 0);
      EXPECT_EQ(step.in_place_bytes, 160000);
    }
    EXPECT_EQ(names.size(), 6u) << profile.summary();
    EXPECT_NE(profile.summary().find("Loop > Loop"), std::string::npos) << profile.summary();
    EXPECT_TRUE(profile.seconds_by_class().contains("CumSumInPlace")) << profile.summary();
    EXPECT_TRUE(profile.seconds_by_class().contains("Roll")) << profile.summary();
    // The own seconds of a loop exclude the steps of its body.
    EXPECT_NEAR(total, profile.step_seconds, 1e-9);
    EXPECT_LE(total, profile.call_seconds);
  }
}

TEST_F(ProfileTest, SummaryAndJsonHoldTheNumbers) {
  f(Tensor::ones({100}));
  const std::string text = f.profile().summary();
  EXPECT_NE(text.find("profile of f\n1 calls"), std::string::npos) << text;
  EXPECT_NE(text.find("Roll"), std::string::npos) << text;
  EXPECT_NE(text.find("run_elementwise_in_place"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(f.profile().to_json());
  EXPECT_EQ(json["calls"], 1);
  EXPECT_EQ(json["plans"][0]["steps"].size(), 3u);
  EXPECT_EQ(json["plans"][0]["peak_bytes"], f.profile().plans[0].peak_bytes);
}

TEST_F(ProfileTest, FunctionWithoutProfileHasNone) {
  const Function g = function({x}, {x * 2.0}, {.name = "g"});
  testing::expect_error<ValueError>([&] { g.profile(); }, "[g] is not profiled");
  EXPECT_TRUE(f.copy().profile().plans.empty());
  EXPECT_NO_THROW(g.copy({.profile = true}).profile());
}

}  // namespace
}  // namespace palimpsest
