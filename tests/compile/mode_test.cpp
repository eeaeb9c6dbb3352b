// SPDX-License-Identifier: Apache-2.0
// Modes as values: which rewrites they choose, and rewrites and features of users.
#include "palimpsest/run/mode.hpp"

#include <gtest/gtest.h>

#include "io/files.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/inspect/debug/debug_mode.hpp"
#include "palimpsest/inspect/debug/monitor_mode.hpp"
#include "palimpsest/inspect/debug/nan_guard.hpp"
#include "palimpsest/inspect/mode_named.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

struct ModeTest : ::testing::Test {
  Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
  Tensor a = Tensor::from(std::vector<double>{0.5, -1, 2});

  static bool has(const Mode& mode, std::string_view name) {
    for (const Rewrite& rewrite : mode.rewrites()) {
      if (rewrite.name == name) return true;
    }
    return false;
  }
  static std::vector<std::string> ops_of(const Function& f) {
    std::vector<std::string> result;
    for (const Apply& node : f.steps()) result.push_back(node.op().name());
    return result;
  }
  // Sin(v) -> Cos(v): wrong, to be detected.
  static NodeRewrite sin_to_cos() {
    return {"sin_to_cos", [](const FunctionGraph&, const Apply& node) -> Replacements {
              if (node.op().name() != "Sin") return {};
              return {ops::cos(node.input(0))};
            }};
  }
  static NodeRewrite throwing() {
    return {"throwing", [](const FunctionGraph&, const Apply&) -> Replacements {
              throw NotSupported("[throwing] never");
            }};
  }
  double first(const Function& f) const { return f(a).tensor().at<double>({0}); }
};

TEST_F(ModeTest, PresetsChooseByTag) {
  EXPECT_EQ(FastRun().rewrites().size(), rewrite_list().size());
  EXPECT_TRUE(NoRewrite().rewrites().empty());
  for (const Rewrite& rewrite : FastCompile().rewrites()) {
    EXPECT_FALSE(rewrite.has_tag("inplace") || rewrite.has_tag("fusion")) << rewrite.name;
  }
  EXPECT_TRUE(has(FastCompile(), "merge_duplicates"));
  EXPECT_EQ(FastRun().name(), "FastRun");
  EXPECT_EQ(FastCompile().preset(), Mode::fast_compile);
  EXPECT_EQ(mode_named("NoRewrite"), NoRewrite());
  expect_error<ValueError>([] { mode_named("Slow"); }, "[config mode] got 'Slow'");
}

TEST_F(ModeTest, ChangesGiveOtherModes) {
  const Mode mode = FastRun(), without = mode.excluding({"fusion"});
  EXPECT_TRUE(has(mode, "fuse_elementwise"));
  EXPECT_FALSE(has(without, "fuse_elementwise"));
  EXPECT_TRUE(has(without.including({"fusion"}), "fuse_elementwise"));
  EXPECT_FALSE(has(FastCompile(), "fuse_elementwise"));
  EXPECT_TRUE(has(FastCompile().including({"fusion"}), "fuse_elementwise"));
  EXPECT_FALSE(
      has(FastCompile().including({"fusion"}).excluding({"fast_run"}), "fuse_elementwise"));
  for (const Rewrite& rewrite : mode.requiring({"inplace"}).rewrites()) {
    EXPECT_TRUE(rewrite.has_tag("inplace"));
  }
  for (const Rewrite& rewrite : mode.exact().rewrites()) {
    EXPECT_FALSE(rewrite.has_tag("reorders")) << rewrite.name;
  }
  EXPECT_FALSE(mode == without);
  EXPECT_EQ(without, FastRun().excluding({"fusion"}));
  EXPECT_EQ(NoRewrite().including({"fast_run"}).rewrites().size(), FastRun().rewrites().size());
}

TEST_F(ModeTest, RewriteOfAUserRuns) {
  const Variable v = ops::sin(x) * 2.0;
  for (const Mode& base : {NoRewrite(), FastCompile(), FastRun()}) {
    const Function f = function({x}, v, {.mode = base.with_rewrite(sin_to_cos(), 2)});
    EXPECT_DOUBLE_EQ(first(f), 2 * std::cos(0.5)) << base.name();
  }
  const Mode mode = NoRewrite().with_rewrite(sin_to_cos(), 2, {"mine"});
  EXPECT_EQ(ops_of(function({x}, ops::sin(x) + ops::sin(x), {.mode = mode})),
            (std::vector<std::string>{"Cos", "Cos", "Add"}));
  EXPECT_DOUBLE_EQ(first(function({x}, v, {.mode = mode.excluding({"mine"})})), 2 * std::sin(0.5));
  const ConfigScope scope({.rewrites_excluding = std::vector<std::string>{"sin_to_cos"}});
  EXPECT_DOUBLE_EQ(first(function({x}, v, {.mode = mode})), 2 * std::sin(0.5));
}

TEST_F(ModeTest, PassOfAUserRuns) {
  int runs = 0;
  const Rewrite pass{"pass", 48.5, {}, [&](FunctionGraph& graph, const RewriteHints&) {
                       ++runs;
                       return RewriteResult(static_cast<int>(graph.node_count()));
                     }};
  const Function f =
      function({x}, ops::sin(x), {.mode = NoRewrite().with_rewrite(pass), .profile = true});
  EXPECT_EQ(runs, 1);
  ASSERT_EQ(f.profile().rewrites.size(), 1u);
  EXPECT_EQ(f.profile().rewrites[0].name, "pass");
  EXPECT_EQ(f.profile().rewrites[0].applied, 1);
}

TEST_F(ModeTest, RewriteThatOverwritesTooEarlyIsRefusedWhenRegistered) {
  NodeRewrite rewrite = sin_to_cos();
  rewrite.introduces_destroyers = true;
  expect_error<ValueError>([&] { FastRun().with_rewrite(rewrite, 49); }, "49.5 or later");
  EXPECT_NO_THROW(FastRun().with_rewrite(rewrite, 49.5));
}

TEST_F(ModeTest, RewritesReachBodiesOfLoops) {
  const auto body = [](const std::vector<Variable>& v) { return std::vector{ops::sin(v[0])}; };
  const auto r = ops::loop(body, {.states = {x}, .n_steps = 2});
  const Function f = function({x}, r.last(0),
                              {.mode = NoRewrite().with_rewrite(sin_to_cos(), 2), .profile = true});
  EXPECT_DOUBLE_EQ(first(f), std::cos(std::cos(0.5)));
  ASSERT_EQ(f.profile().rewrites.size(), 1u);
  EXPECT_EQ(f.profile().rewrites[0].applied, 1);
}

TEST_F(ModeTest, RewriteThatThrowsIsLeftOutWarnedAboutOrRaised) {
  const Mode mode = FastRun().with_rewrite(throwing(), 2).with_rewrite(sin_to_cos(), 3);
  {
    const ConfigScope scope({.on_opt_error = Reaction::raise});
    expect_error<NotSupported>([&] { function({x}, ops::sin(x), {.mode = mode}); }, "never");
  }
  for (const Reaction reaction : {Reaction::warn, Reaction::ignore}) {
    const ConfigScope scope({.on_opt_error = reaction});
    ::testing::internal::CaptureStderr();
    const Function f = function({x}, ops::sin(x), {.mode = mode});
    const std::string text = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(
        text.find("rewrite throwing failed and is left out: [throwing] never") != std::string::npos,
        reaction == Reaction::warn)
        << text;
    EXPECT_DOUBLE_EQ(first(f), std::cos(0.5));
  }
}

TEST_F(ModeTest, TracePrintsEveryAttempt) {
  const ConfigScope scope({.rewrite_trace = true});
  ::testing::internal::CaptureStderr();
  function({x}, ops::sin(x), {.mode = NoRewrite().with_rewrite(sin_to_cos(), 2)});
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("rewrite sin_to_cos: <float64 (?,)> of Sin -> <float64 (?,)> of Cos"),
            std::string::npos)
      << text;
}

TEST_F(ModeTest, FeaturesFollowTheGraphOfTheFunction) {
  const auto history = std::make_shared<History>();
  const auto make = [&] { return history; };
  function({x}, ops::sin(x),
           {.mode = NoRewrite().with_rewrite(sin_to_cos(), 2).with_feature(make, 1)});
  EXPECT_EQ(history->size(), 1u);
  const auto veto = [] { return std::make_shared<NoOutputFromInplace>(std::set<int>{0}); };
  const Variable v = ops::roll(x, 1, 0) + 1.0;
  EXPECT_EQ(ops_of(function({x}, v)).back(), "AddInPlace");
  EXPECT_EQ(ops_of(function({x}, v, {.mode = FastRun().with_feature(veto, 0)})).back(), "Add");
  expect_error<ValueError>([] { FastRun().with_feature({}, 0); }, "nothing that makes a feature");
}

TEST_F(ModeTest, ModesThatLookAtCallsWorkOnAnyBase) {
  const Mode base = NoRewrite().with_rewrite(sin_to_cos(), 2);
  int calls = 0;
  const auto count = [&](const FunctionGraph&, int, const Apply&, const StepView&) { ++calls; };
  for (const Mode& mode : {MonitorMode({.post = count, .base = base}), NanGuardMode({.base = base}),
                           MonitorMode({.post = count}).with_rewrite(sin_to_cos(), 2)}) {
    const Function f = function({x}, ops::sin(x), {.mode = mode});
    EXPECT_DOUBLE_EQ(first(f), std::cos(0.5));
    EXPECT_EQ(f.mode(), mode.base());
  }
  EXPECT_EQ(calls, 2);
  // The rewrite changes a value.
  expect_error<BadOptimization>(
      [&] { function({x}, ops::sin(x), {.mode = DebugMode({.base = base, .patience = 1})})(a); },
      "the rewrite sin_to_cos replaced a variable by one of another value");
  const Mode debug = DebugMode({.patience = 1}).excluding({"fusion"});
  EXPECT_EQ(
      ops_of(function({x}, ops::sin(x) * 2.0, {.mode = debug})).size(),
      ops_of(function({x}, ops::sin(x) * 2.0, {.mode = FastRun().excluding({"fusion"})})).size());
  expect_error<ValueError>([&] { MonitorMode({.base = NanGuardMode()}); },
                           "[MonitorMode] base: got a mode in which NanGuardMode looks");
}

// A rewrite declared as exact must keep every bit.
TEST_F(ModeTest, DebugModeHoldsExactRewritesToEveryBit) {
  const NodeRewrite nudge{"nudge", [](const FunctionGraph&, const Apply& node) -> Replacements {
                            if (node.op().name() != "Sin") return {};
                            return {ops::cos(node.input(0) - 1.5707963267948966)};
                          }};
  const auto run = [&](const Mode::Tags& tags) {
    const Mode base = NoRewrite().with_rewrite(nudge, 2, tags);
    function({x}, ops::sin(x), {.mode = DebugMode({.base = base, .patience = 1})})(a);
  };
  EXPECT_NO_THROW(run({}));
  EXPECT_THROW(run({"exact"}), BadOptimization);
}

// A reason that is not the name of a rewrite implies nothing about the replacement.
TEST_F(ModeTest, DebugModeAllowsRoundingForReasonsOfOnesOwn) {
  const Rewrite whole{"whole", 2, {"exact"}, [](FunctionGraph& graph, const RewriteHints&) {
                        const Variable old = graph.outputs()[0];
                        if (old.owner().op().name() != "Sin") return RewriteResult{};
                        graph.replace(old, ops::cos(old.owner().input(0) - 1.5707963267948966),
                                      "mine");
                        return RewriteResult{};
                      }};
  const Mode base = NoRewrite().with_rewrite(whole);
  const Function f = function({x}, ops::sin(x), {.mode = DebugMode({.base = base, .patience = 1})});
  EXPECT_NO_THROW(f(a));
  EXPECT_EQ(ops_of(f).back(), "Cos");
}

TEST_F(ModeTest, SavedFunctionKeepsThePreset) {
  const testing::TemporaryDirectory directory;
  const std::string path = directory / "f.pal";
  const Function f =
      function({x}, ops::sin(x), {.mode = FastCompile().with_rewrite(sin_to_cos(), 2)});
  f.save(path);
  const Function g = Function::load(path);
  EXPECT_EQ(g.mode(), FastCompile());
  EXPECT_DOUBLE_EQ(first(g), std::cos(0.5));
}

}  // namespace
}  // namespace palimpsest
