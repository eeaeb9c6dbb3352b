// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/feature.hpp"

#include <gtest/gtest.h>

#include "graph/toy_ops.hpp"
#include "palimpsest/graph/function_graph.hpp"

namespace palimpsest {
namespace {

using toy::apply;

struct FeatureTest : ::testing::Test {
  static FunctionGraph graph_of(std::vector<Variable> inputs, std::vector<Variable> outputs) {
    return FunctionGraph(std::move(inputs), std::move(outputs), {.clone = false});
  }
  Variable x = toy::input("x"), y = toy::input("y");
};

TEST_F(FeatureTest, HistoryGoesBackAndForthAndStopsAtBothEnds) {
  const Variable s = apply(toy::S, {x});
  FunctionGraph graph = graph_of({x, y}, {apply(toy::D, {s})});
  const auto history = std::make_shared<History>();
  graph.add_feature(history);
  graph.replace(s, apply(toy::A, {x, y}));
  graph.replace(y, x);
  EXPECT_EQ(graph.str(), "FunctionGraph(D(A(x, x)))");
  history->prev(graph);
  EXPECT_EQ(graph.str(), "FunctionGraph(D(A(x, y)))");
  history->start(graph);
  history->prev(graph);
  EXPECT_EQ(graph.str(), "FunctionGraph(D(S(x)))");
  history->next(graph);
  EXPECT_EQ(history->step(), 1u);
  history->goto_step(graph, 99);
  EXPECT_EQ(graph.str(), "FunctionGraph(D(A(x, x)))");
  history->end(graph);
  EXPECT_EQ(history->size(), 2u);
}

TEST_F(FeatureTest, HistoryForgetsAnEditThatWasRolledBack) {
  const Variable a = apply(toy::A, {x, y});
  FunctionGraph graph = graph_of({x, y}, {a, x});
  const auto history = std::make_shared<History>();
  graph.add_feature(history);
  EXPECT_THROW(graph.replace_validate(a, apply(toy::A_destroys, {x, y})), InconsistencyError);
  EXPECT_EQ(history->size(), 0u);
}

TEST_F(FeatureTest, VetoOfAnInPlaceOutputRollsBack) {
  const Variable a = apply(toy::A, {x, y});
  FunctionGraph graph = graph_of({x, y}, {a});
  const auto veto = std::make_shared<NoOutputFromInplace>(std::set<int>{0});
  graph.add_feature(veto);
  try {
    graph.replace_validate(a, apply(toy::A_destroys, {x, y}));
    FAIL();
  } catch (const InconsistencyError& e) {
    EXPECT_EQ(e.kind(), InconsistencyKind::refused_by_feature);
    EXPECT_NE(std::string(e.what()).find("output 0 must not come from"), std::string::npos);
  }
  EXPECT_EQ(graph.str(), "FunctionGraph(A(x, y))");
  graph.remove_feature(veto);
  graph.replace_validate(a, apply(toy::A_destroys, {x, y}));
  EXPECT_EQ(graph.str(), "FunctionGraph(A!(x, y))");
}

TEST_F(FeatureTest, OutputsInTheMemoryOfAnInputCanBeVetoed) {
  const Variable s = apply(toy::S, {x});
  FunctionGraph graph = graph_of({x, y}, {s});
  graph.add_feature(std::make_shared<NoOutputInplaceOnInput>(std::set<int>{0}));
  try {
    graph.replace_validate(s, apply(toy::S, {apply(toy::V, {x})}));
    graph.replace_validate(graph.outputs()[0], apply(toy::V, {apply(toy::V, {x})}));
    FAIL();
  } catch (const InconsistencyError& e) {
    EXPECT_NE(std::string(e.what()).find("memory of x"), std::string::npos);
  }
}

TEST_F(FeatureTest, NamesPassToReplacements) {
  const Variable s = apply(toy::S, {x}).named("s"), a = apply(toy::A, {x, y});
  FunctionGraph graph = graph_of({x, y}, {s});
  graph.add_feature(std::make_shared<PreserveNames>());
  graph.replace(s, a);
  EXPECT_EQ(a.name(), "s");
}

// Lets D come before S.
class FirstD : public Feature {
 public:
  std::vector<std::pair<Apply, Apply>> orderings(const FunctionGraph& graph) override {
    std::vector<std::pair<Apply, Apply>> result;
    const std::vector<Apply> nodes = applications_of(graph.outputs(), graph.inputs());
    for (const Apply& a : nodes) {
      for (const Apply& b : nodes) {
        if (a.op().name() == "D" && b.op().name() == "S") result.emplace_back(a, b);
      }
    }
    return result;
  }
};

TEST_F(FeatureTest, MayAddOrderingConstraints) {
  const Variable s = apply(toy::S, {x}), d = apply(toy::D, {y});
  FunctionGraph graph = graph_of({x, y}, {s, d});
  EXPECT_EQ(graph.toposort()[0].op().name(), "S");
  graph.add_feature(std::make_shared<FirstD>());
  EXPECT_EQ(graph.toposort()[0].op().name(), "D");
  EXPECT_THROW(graph.replace_validate(y, s), InconsistencyError);  // D would read S
  EXPECT_EQ(graph.str(), "FunctionGraph(S(x), D(y))");
}

TEST_F(FeatureTest, TraceTellsOfAttemptsAndRefusals) {
  const Variable a = apply(toy::A, {x, y}).named("a");
  FunctionGraph graph = graph_of({x, y}, {a, x});
  std::vector<std::string> lines;
  graph.set_trace([&](const std::string& line) { lines.push_back(line); });
  EXPECT_THROW(graph.replace_validate(a, apply(toy::A_destroys, {x, y}).named("b"), "test"),
               InconsistencyError);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "rewrite test: a of A -> b of A!");
  EXPECT_EQ(lines[1], "rewrite test: refused at A!: [validate] destroys_output: A! destroys x");
}

}  // namespace
}  // namespace palimpsest
