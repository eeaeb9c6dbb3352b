// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/profile.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "palimpsest/compile/function.hpp"
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
