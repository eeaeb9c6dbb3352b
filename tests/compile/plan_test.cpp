// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/plan.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/ops/ops.hpp"

namespace palimpsest {
namespace {

struct PlanTest : ::testing::Test {
  Variable x = make_input({DType::complex64, {kUnknown, kUnknown}, {}}, "x");
  TensorType type{DType::complex64, {16, 32}, {}};
  Function f = function({x}, {ops::sum(ops::abs2(ops::fft(x, {0, 1})))});
};

TEST_F(PlanTest, IsMadeForATypeWithoutRunning) {
  const Plan& plan = f.plan(std::vector<TensorType>{type});
  EXPECT_EQ(plan.peak_bytes, plan.arena_bytes + plan.output_bytes + plan.update_bytes);
  EXPECT_EQ(plan.output_bytes, 4);
  EXPECT_GE(plan.arena_bytes, plan.lower_bound_bytes);
  EXPECT_LE(plan.peak_bytes, plan.no_reuse_bytes);
  EXPECT_EQ(&plan, &f.plan(std::vector<TensorType>{type}));
  EXPECT_THROW(f.plan(std::vector<TensorType>{x.type()}), ShapeError);
}

TEST_F(PlanTest, PrintsBuffersAndSteps) {
  const std::string text = f.plan(std::vector<TensorType>{type}).to_string();
  EXPECT_NE(text.find("peak "), std::string::npos) << text;
  EXPECT_NE(text.find("Fft"), std::string::npos) << text;
  EXPECT_NE(text.find("argument"), std::string::npos) << text;
}

TEST_F(PlanTest, JsonHoldsTheSameNumbers) {
  const Plan& plan = f.plan(std::vector<TensorType>{type});
  const auto json = nlohmann::json::parse(plan.to_json());
  EXPECT_EQ(json["peak_bytes"], plan.peak_bytes);
  EXPECT_EQ(json["steps"].size(), plan.steps.size());
  EXPECT_EQ(json["buffers"].size(), plan.buffers.size());
}

TEST_F(PlanTest, BuffersThatAreLiveTogetherAreDisjoint) {
  const Variable k = ops::fft(x, {0, 1}), a = k * 2.0, b = ops::roll(k, 1, 0), c = a + b;
  const Function g = function({x}, {ops::sum(ops::abs2(c)), ops::sum(ops::abs2(b))});
  const Plan& plan = g.plan(std::vector<TensorType>{type});
  for (const PlannedBuffer& p : plan.buffers) {
    for (const PlannedBuffer& q : plan.buffers) {
      if (&p == &q || p.kind != BufferKind::arena || q.kind != BufferKind::arena) continue;
      const bool together = p.first_step <= q.last_step && q.first_step <= p.last_step;
      const bool disjoint = p.offset + p.bytes <= q.offset || q.offset + q.bytes <= p.offset;
      EXPECT_TRUE(!together || disjoint) << plan.to_string();
    }
  }
}

}  // namespace
}  // namespace palimpsest
