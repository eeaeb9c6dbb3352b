// SPDX-License-Identifier: Apache-2.0
// The list of passes: which of them run, their order, and their failures.
#include "palimpsest/rewrite/pipeline.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

struct PipelineTest : ::testing::Test {
  Variable x = make_input({DType::float64, {4}, {}}, "x");
  Variable y = make_input({DType::float64, {4}, {}}, "y");
  RewriteHints none;
  std::vector<std::string> ran;

  static RewriteSelection nothing() {
    RewriteSelection selection;
    selection.including.clear();
    return selection;
  }
  Rewrite noting(std::string name, double position, std::set<std::string> tags = {}) {
    const auto run = [this, name](FunctionGraph&, const RewriteHints&) {
      ran.push_back(name);
      return RewriteResult();
    };
    return {name, position, std::move(tags), run};
  }
  static std::vector<std::string> names(const RewriteSelection& selection) {
    std::vector<std::string> result;
    for (const Rewrite& rewrite : selection.list()) result.push_back(rewrite.name);
    return result;
  }
  // x + y -> y + x, then an arbitrary action.
  Rewrite failing(std::function<void(FunctionGraph&)> then, double position = 2) {
    return {"failing", position, {}, [this, then](FunctionGraph& graph, const RewriteHints&) {
              const Variable old = graph.outputs()[0];
              graph.replace(old, old.owner().input(1) + old.owner().input(0), "failing");
              then(graph);
              return RewriteResult(1);
            }};
  }
};

TEST_F(PipelineTest, LibraryListIsOrderedNamedAndDescribed) {
  double last = -1;
  for (const Rewrite& rewrite : rewrite_list()) {
    EXPECT_GE(rewrite.position, last) << rewrite.name;
    last = rewrite.position;
    EXPECT_FALSE(rewrite.what.empty()) << rewrite.name;
    EXPECT_TRUE(rewrite.has_tag("fast_run")) << rewrite.name;
    EXPECT_TRUE(rewrite.has_tag("all"));
    EXPECT_TRUE(rewrite.has_tag(rewrite.name));
    EXPECT_EQ(rewrite.has_tag("inplace"), rewrite.position >= kFirstInplacePosition)
        << rewrite.name;
  }
}

TEST_F(PipelineTest, TagsChoose) {
  RewriteSelection selection = nothing();
  EXPECT_TRUE(names(selection).empty());
  selection.including = {"merge"};
  for (const std::string& name : names(selection)) EXPECT_EQ(name, "merge_duplicates");
  selection.including = {"fast_run"};
  EXPECT_EQ(names(selection).size(), rewrite_list().size());
  selection.excluding = {"merge", "inplace"};
  for (const Rewrite& rewrite : selection.list()) {
    EXPECT_FALSE(rewrite.has_tag("merge") || rewrite.has_tag("inplace")) << rewrite.name;
  }
  selection.requiring = {"merge"};
  EXPECT_TRUE(names(selection).empty());
  selection.excluding.clear();
  EXPECT_FALSE(names(selection).empty());
  selection.including = {"all"};
  selection.requiring = {"run_keys_in_place"};
  EXPECT_EQ(names(selection), (std::vector<std::string>{"run_keys_in_place"}));
}

TEST_F(PipelineTest, AddedPassesRunAtTheirPositionUnlessExcluded) {
  RewriteSelection selection = nothing();
  selection.add(noting("b", 2, {"mine"}));
  selection.add(noting("c", 2));
  selection.add(noting("a", 1));
  FunctionGraph graph({x, y}, {x + y});
  rewrite_graph(graph, none, {.selection = selection});
  EXPECT_EQ(ran, (std::vector<std::string>{"a", "b", "c"}));
  selection.excluding = {"mine", "c"};
  EXPECT_EQ(names(selection), (std::vector<std::string>{"a"}));
  selection.excluding.clear();
  selection.requiring = {"mine"};
  EXPECT_EQ(names(selection), (std::vector<std::string>{"b"}));
}

TEST_F(PipelineTest, AddedPassTakesThePlaceOfThoseWithItsName) {
  RewriteSelection selection;
  selection.add(noting("merge_duplicates", 3));
  const std::vector<Rewrite> list = selection.list();
  const auto n = std::count_if(list.begin(), list.end(),
                               [](const auto& r) { return r.name == "merge_duplicates"; });
  EXPECT_EQ(n, 1);
}

TEST_F(PipelineTest, RegisteringChecksPositionsAndNames) {
  RewriteSelection selection;
  expect_error<ValueError>([&] { selection.add(noting("p", 49.4, {"inplace"})); },
                           "p introduces ops that overwrite inputs: got position 49.4");
  EXPECT_NO_THROW(selection.add(noting("p", 49.5, {"inplace"})));
  const auto nothing_to_do = [](const FunctionGraph&, const Apply&) { return Replacements(); };
  expect_error<ValueError>(
      [&] {
        selection.add(NodeRewrite{"q", nothing_to_do, true}, 49.4, {});
      },
      "q introduces ops that overwrite inputs: got position 49.4");
  expect_error<ValueError>([&] { selection.add(noting("", 1)); }, "the rewrite has no name");
  expect_error<ValueError>([&] { selection.add(noting("p", -1)); },
                           "position of p: got -1.000000, expected 0 or more");
  expect_error<ValueError>([&] { selection.add(Rewrite{"p", 1, {}, {}}); }, "p has nothing to run");
  expect_error<ValueError>(
      [&] {
        selection.add(NodeRewrite{"q", {}}, 1, {});
      },
      "q has nothing to apply");
}

TEST_F(PipelineTest, FailureLeavesTheGraphAsItWas) {
  for (const Reaction reaction : {Reaction::raise, Reaction::warn, Reaction::ignore}) {
    RewriteSelection selection = nothing();
    selection.add(failing([](FunctionGraph&) { throw std::runtime_error("oh"); }));
    selection.add(noting("next", 3));
    FunctionGraph graph({x, y}, {x + y});
    const Variable before = graph.outputs()[0];
    ran.clear();
    std::vector<RewriteProfile> reports;
    const RewriteOptions options{selection, reaction, {}};
    if (reaction == Reaction::raise) {
      EXPECT_THROW(rewrite_graph(graph, none, options, &reports), std::runtime_error);
      EXPECT_TRUE(ran.empty());
    } else {
      rewrite_graph(graph, none, options, &reports);
      EXPECT_EQ(ran, (std::vector<std::string>{"next"}));
      EXPECT_EQ(reports.size(), 1u);
    }
    EXPECT_EQ(graph.outputs()[0], before);
    EXPECT_EQ(graph.node_count(), 1u);
  }
}

TEST_F(PipelineTest, ChangedTypesAreFailures) {
  RewriteSelection selection = nothing();
  selection.add(failing([](FunctionGraph& graph) {
    graph.replace(graph.outputs()[0], ops::expand_dims(graph.outputs()[0], {0}), "failing");
  }));
  FunctionGraph graph({x, y}, {x + y});
  expect_error<TypeError>([&] { rewrite_graph(graph, none, {.selection = selection}); },
                          "[replace]");
  const Apply sum = graph.outputs()[0].owner();
  EXPECT_EQ(sum.input(0), graph.inputs()[0]);
}

// It was not registered as a pass that overwrites.
TEST_F(PipelineTest, OverwritingTooEarlyIsAFailure) {
  const auto overwrite = [](FunctionGraph& graph) {
    const Apply node = graph.outputs()[0].owner();
    const OpPtr op = node.op().inplace_on_inputs(node, {0});
    graph.replace(node.output(0), op->make_node(node.inputs()).output(0), "failing");
  };
  FunctionGraph graph({x, y}, {x + y});
  RewriteSelection selection = nothing();
  selection.add(failing(overwrite, 49.4));
  expect_error<InternalError>(
      [&] { rewrite_graph(graph, none, {.selection = selection}); },
      "[failing] introduced an op that overwrites an input at position 49.4");
  EXPECT_EQ(graph.overwritten_count(), 0u);
  selection = nothing();
  selection.add(failing(overwrite, 49.5));
  rewrite_graph(graph, none, {.selection = selection});
  EXPECT_EQ(graph.overwritten_count(), 1u);
  // If this breaks a Feature, it is a failure at any position.
  FunctionGraph guarded({x, y}, {x + y});
  for (const Variable& v : guarded.inputs()) guarded.protect(v);
  expect_error<InconsistencyError>([&] { rewrite_graph(guarded, none, {.selection = selection}); },
                                   "destroys_protected");
  EXPECT_TRUE(guarded.consistent());
}

struct CountingFeature final : Feature {
  int changes = 0;
  void on_change_input(const FunctionGraph&, const Use&, const Variable&, const Variable&,
                       std::string_view) override {
    ++changes;
  }
};

TEST_F(PipelineTest, FeaturesFollowFromTheirPositionOn) {
  const auto feature = std::make_shared<CountingFeature>();
  for (const double position : {1.0, 2.0, 3.0}) {
    feature->changes = 0;
    RewriteSelection selection = nothing();
    selection.add(failing([](FunctionGraph&) {}, 2));
    selection.features.emplace_back(position, [&] { return feature; });
    FunctionGraph graph({x, y}, {x + y});
    rewrite_graph(graph, none, {.selection = selection});
    EXPECT_EQ(feature->changes, position <= 2 ? 1 : 0);
    // This edit stays.
    graph.replace(graph.outputs()[0], graph.inputs()[0] * graph.inputs()[1], "later");
    EXPECT_EQ(feature->changes, position <= 2 ? 2 : 1);
  }
}

TEST_F(PipelineTest, ReportsTellAppliedRefusedAndTimes) {
  RewriteSelection selection = nothing();
  const auto on = [](int input) {
    return NodeRewrite{"overwrite" + std::to_string(input),
                       [input](const FunctionGraph&, const Apply& node) -> Replacements {
                         const OpPtr op = node.op().inplace_on_inputs(node, {input});
                         if (!op) return {};
                         return op->make_node(node.inputs()).outputs();
                       },
                       true};
  };
  selection.add(on(1), 50, {});
  selection.add(on(0), 51, {});
  FunctionGraph graph({x, y}, {ops::exp(x) + y});
  for (const Variable& v : graph.inputs()) graph.protect(v);
  std::vector<RewriteProfile> reports;
  rewrite_graph(graph, none, {.selection = selection}, &reports);
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].name, "overwrite1");
  EXPECT_EQ(reports[0].applied, 0);
  EXPECT_EQ(reports[0].refused, 1);  // y is protected
  EXPECT_EQ(reports[1].applied, 1);
  EXPECT_EQ(reports[1].refused, 1);  // x is protected
  for (const RewriteProfile& report : reports) {
    EXPECT_GT(report.validation_seconds, 0) << report.name;
    EXPECT_GE(report.seconds, report.validation_seconds) << report.name;
  }
}

TEST_F(PipelineTest, TraceTellsAttemptsAndRefusals) {
  RewriteSelection selection = nothing();
  selection.add(NodeRewrite{"overwrite",
                            [](const FunctionGraph&, const Apply& node) -> Replacements {
                              const OpPtr op = node.op().inplace_on_inputs(node, {0});
                              if (!op) return {};
                              return op->make_node(node.inputs()).outputs();
                            },
                            true},
                50, {});
  FunctionGraph graph({x}, {ops::exp(x)});
  graph.protect(graph.inputs()[0]);
  std::vector<std::string> lines;
  rewrite_graph(graph, none,
                {.selection = selection, .trace = [&](const auto& s) { lines.push_back(s); }});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "rewrite overwrite: <float64 (4,)> of Exp -> <float64 (4,)> of ExpInPlace");
  EXPECT_NE(lines[1].find("rewrite overwrite: refused at ExpInPlace: "), std::string::npos);
}

}  // namespace
}  // namespace palimpsest
