// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/inspect/debug/monitor_mode.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

struct MonitorTest : ::testing::Test {
  Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
  Tensor values = Tensor::from(std::vector<double>{0.0, 1.0, 2.0});
};

TEST_F(MonitorTest, CallsBackBeforeAndAfterEveryStepInPlanOrder) {
  std::vector<std::string> events;
  const auto log = [&](const char* when) {
    return
        [&events, when](const FunctionGraph& graph, int step, const Apply& node, const StepView&) {
          EXPECT_TRUE(graph.contains(node));
          events.push_back(when + std::to_string(step) + node.op().name());
        };
  };
  const Function f = function({x}, ops::roll(x * 2.0, 1, 0) + x.reshape({3}),
                              {.mode = MonitorMode({.pre = log("<"), .post = log(">")})});
  f(values);
  EXPECT_EQ(events, (std::vector<std::string>{"<0Mul", ">0Mul", "<1Roll", ">1Roll", "<2AddInPlace",
                                              ">2AddInPlace"}));
  events.clear();
  f(values);
  f(values);
  EXPECT_EQ(events.size(), 2 * 2 * f.latest_plan()->steps.size());
}

TEST_F(MonitorTest, ShowsTheValuesOfTheStep) {
  std::vector<double> before, after;
  const Variable y = x(slice({}, {}, -1)) * 3.0;
  const Function f = function(
      {x}, y,
      {.mode = MonitorMode(
           {.pre = [&](const auto&, int, const Apply&,
                       const StepView& v) { before = v.input(0).template to_vector<double>(); },
            .post =
                [&](const auto&, int, const Apply&, const StepView& v) {
                  EXPECT_EQ(v.input_count(), 2U);
                  EXPECT_EQ(v.output_count(), 1U);
                  after = v.output(0).template to_vector<double>();
                  EXPECT_EQ(v.output(0).storage().nbytes(), 3 * sizeof(double));
                }})});
  f(values);
  EXPECT_EQ(before, (std::vector<double>{2, 1, 0}));
  EXPECT_EQ(after, (std::vector<double>{6, 3, 0}));
}

TEST_F(MonitorTest, WhatACallbackThrowsEndsTheCallAndChangesNothing) {
  SharedVariable s = shared(values.clone(), {.name = "s"});
  const auto fail = [](const FunctionGraph&, int step, const Apply&, const StepView&) {
    if (step == 0) throw ValueError("enough");
  };
  const Function f =
      function({}, {}, {.updates = {{s, s.var() + 1.0}}, .mode = MonitorMode({.post = fail})});
  expect_error<ValueError>([&] { f(); }, "enough\n  in step 0: Add");
  EXPECT_EQ(s.get_value().to_vector<double>(), values.to_vector<double>());
}

TEST_F(MonitorTest, AForeignExceptionBecomesAnOpError) {
  const auto fail = [](const FunctionGraph&, int, const Apply&, const StepView&) {
    throw std::runtime_error("foreign");
  };
  const Function f = function({x}, x + 1.0, {.mode = MonitorMode({.pre = fail})});
  try {
    f(values);
    FAIL() << "no error";
  } catch (const OpError& error) {
    EXPECT_NE(std::string(error.what()).find("foreign"), std::string::npos) << error.what();
  }
}

// The example of the specification: it fires, also without fusion or in-place steps.
TEST_F(MonitorTest, DetectNanFindsTheStep) {
  for (const std::vector<std::string>& excluded :
       {std::vector<std::string>{}, {"fusion"}, {"inplace"}, {"fusion", "inplace"}}) {
    const ConfigScope scope({.rewrites_excluding = excluded});
    const Function f = function({x}, ops::log(x) * x, {.mode = MonitorMode({.post = detect_nan})});
    expect_error<AssertionError>([&] { f(values); }, "[detect_nan] NaN in output 0 of ");
    expect_error<AssertionError>([&] { f(values); }, "1 of 3 elements, the first at (0,)");
    EXPECT_TRUE(std::isfinite(f(values(slice(1, 3))).tensor().at<double>({0})));
  }
}

TEST_F(MonitorTest, TheModeOfRewritingIsTheBase) {
  int calls = 0;
  const auto count = [&](const FunctionGraph&, int, const Apply&, const StepView&) { ++calls; };
  const Function f = function({x}, -(x + 1.0) * x,
                              {.mode = MonitorMode({.pre = count, .base = Mode::no_rewrite})});
  EXPECT_EQ(f.mode(), Mode::no_rewrite);
  f(values);
  EXPECT_EQ(calls, 3);
  const Function copy = f.copy();
  copy(values);
  EXPECT_EQ(calls, 6);
}

TEST_F(MonitorTest, EmptyAndScalarValuesAreShown) {
  const Variable a = make_input({DType::float64, {}, {}}, "a");
  std::vector<index_t> sizes;
  const auto note = [&](const FunctionGraph&, int, const Apply&, const StepView& v) {
    sizes.push_back(v.output(0).numel());
  };
  function({x}, x + 1.0, {.mode = MonitorMode({.post = note})})(Tensor::ones({0}));
  function({a}, a + 1.0, {.mode = MonitorMode({.post = note})})(2.0);
  EXPECT_EQ(sizes, (std::vector<index_t>{0, 1}));
}

}  // namespace
}  // namespace palimpsest
