// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/function_graph.hpp"

#include <gtest/gtest.h>

#include "graph/toy_ops.hpp"

namespace palimpsest {
namespace {

using toy::apply;

// The variables of a graph that was not cloned are those of the test.
FunctionGraph graph_of(std::vector<Variable> inputs, std::vector<Variable> outputs) {
  return FunctionGraph(std::move(inputs), std::move(outputs), {.clone = false});
}

std::string order_of(const FunctionGraph& graph) {
  std::string text;
  for (const Apply& node : graph.toposort()) text += node.op().name() + " ";
  return text;
}

struct FunctionGraphTest : testing::Test {
  Variable x = toy::input("x"), y = toy::input("y"), z = toy::input("z");
};

TEST_F(FunctionGraphTest, CloneLeavesTheUsersGraph) {
  const Variable s = apply(toy::S, {x});
  const FunctionGraph graph({x}, {s});
  EXPECT_FALSE(graph.inputs()[0] == x);
  EXPECT_EQ(graph.inputs()[0].name(), "x");
  EXPECT_EQ(graph.str(), "FunctionGraph(S(x))");
}

TEST_F(FunctionGraphTest, MissingInputNamesItAndAPath) {
  try {
    FunctionGraph({x}, {apply(toy::A, {x, y})});
    FAIL();
  } catch (const MissingInputError& e) {
    EXPECT_NE(std::string(e.what()).find("y"), std::string::npos);
  }
}

TEST_F(FunctionGraphTest, UsesListEveryUse) {
  const Variable s = apply(toy::S, {x}), a = apply(toy::A, {s, s});
  const FunctionGraph graph = graph_of({x}, {a, s});
  EXPECT_EQ(graph.uses(s).size(), 3u);
  EXPECT_EQ(graph.uses(x).size(), 1u);
  EXPECT_TRUE(graph.is_output(s));
  EXPECT_EQ(graph.node_count(), 2u);
}

TEST_F(FunctionGraphTest, ReplaceRedirectsAllUsesAndPrunes) {
  const Variable s = apply(toy::S, {x}), a = apply(toy::A, {s, s});
  FunctionGraph graph = graph_of({x, y}, {a});
  graph.replace(s, y);
  EXPECT_EQ(graph.str(), "FunctionGraph(A(y, y))");
  EXPECT_EQ(graph.node_count(), 1u);
  EXPECT_TRUE(graph.uses(x).empty());
}

TEST_F(FunctionGraphTest, VariableMayBeReplacedByAFunctionOfItself) {
  const Variable s = apply(toy::S, {x});
  FunctionGraph graph = graph_of({x, y}, {s});
  graph.replace(x, apply(toy::A, {x, y}));
  EXPECT_EQ(graph.str(), "FunctionGraph(S(A(x, y)))");
}

TEST_F(FunctionGraphTest, DataCycleIsRefusedAndLeavesNoTrace) {
  const Variable s = apply(toy::S, {x}), d = apply(toy::D, {s});
  FunctionGraph graph = graph_of({x}, {d});
  EXPECT_THROW(graph.replace(x, d), CycleError);
  EXPECT_EQ(graph.str(), "FunctionGraph(D(S(x)))");
  EXPECT_EQ(graph.uses(x).size(), 1u);
  EXPECT_EQ(order_of(graph), "S D ");
}

TEST_F(FunctionGraphTest, WrongTypeIsRefused) {
  FunctionGraph graph = graph_of({x}, {apply(toy::S, {x})});
  const Variable other = make_input({DType::float32, {kUnknown}, {}}, "f");
  EXPECT_THROW(graph.replace(x, other), TypeError);
}

TEST_F(FunctionGraphTest, RefusedReplacementRestoresEverything) {
  const Variable v = apply(toy::V, {x}), a = apply(toy::A, {x, y}), d = apply(toy::D, {a, v});
  FunctionGraph graph = graph_of({x, y}, {d, x});
  const std::string before = graph.str();
  const std::vector<Use> uses = graph.uses(x);
  EXPECT_THROW(graph.replace_validate(a, apply(toy::A_destroys, {x, y})), InconsistencyError);
  EXPECT_EQ(graph.str(), before);
  EXPECT_EQ(graph.uses(x), uses);
  EXPECT_EQ(graph.node_count(), 3u);
}

TEST_F(FunctionGraphTest, ReadersOfADestroyedValueComeFirst) {
  const Variable log1 = apply(toy::S, {x}), r2 = apply(toy::A_destroys, {x, y});
  const Variable log3 = apply(toy::D, {x}), log4 = apply(toy::S, {r2});
  const FunctionGraph graph = graph_of({x, y}, {log4, r2, log3, log1});
  const std::string order = order_of(graph);
  EXPECT_LT(order.find("D "), order.find("A! "));
  EXPECT_LT(order.find("S "), order.find("A! "));
}

// -- the worked examples of a consistent or inconsistent graph ---------------------------------

InconsistencyKind verdict(std::vector<Variable> inputs, std::vector<Variable> outputs,
                          std::vector<Variable> keep = {}) {
  FunctionGraph graph = graph_of(std::move(inputs), std::move(outputs));
  for (const Variable& v : keep) graph.protect(v);
  return graph.check().kind;
}

TEST_F(FunctionGraphTest, DestroyingAnIndestructibleValueThroughAViewIsRefused) {
  x.set_indestructible();
  const Variable view = apply(toy::V, {x});
  FunctionGraph graph = graph_of({x, y}, {apply(toy::A_destroys, {view, y})});
  EXPECT_EQ(graph.check().kind, InconsistencyKind::destroys_indestructible);
  graph.replace_validate(view, apply(toy::S, {x}));
  EXPECT_TRUE(graph.consistent());
}

TEST_F(FunctionGraphTest, SameVariableTwiceNeedsTolerance) {
  EXPECT_EQ(verdict({x}, {apply(toy::A_destroys, {x, x})}), InconsistencyKind::input_aliasing);
  EXPECT_EQ(verdict({x}, {apply(toy::A_same, {x, x})}), InconsistencyKind::none);
  EXPECT_EQ(verdict({x}, {apply(toy::A_aliased, {x, x})}), InconsistencyKind::none);
  const Variable view = apply(toy::V, {x});
  EXPECT_EQ(verdict({x}, {apply(toy::A_same, {x, view})}), InconsistencyKind::input_aliasing);
  EXPECT_EQ(verdict({x}, {apply(toy::A_aliased, {x, view})}), InconsistencyKind::none);
}

TEST_F(FunctionGraphTest, ReaderThatNeedsTheResultClosesACycle) {
  const Variable a = apply(toy::A_destroys, {x, z});
  FunctionGraph graph = graph_of({x, z}, {apply(toy::D, {a, x})});
  EXPECT_EQ(graph.check().kind, InconsistencyKind::ordering_cycle);
  const Variable b = apply(toy::A_destroys, {x, y});
  FunctionGraph viewed = graph_of({x, y}, {apply(toy::D, {b, apply(toy::V, {x})})});
  EXPECT_EQ(viewed.check().kind, InconsistencyKind::ordering_cycle);
  viewed.replace_validate(b, apply(toy::A, {x, y}));
  EXPECT_TRUE(viewed.consistent());
}

TEST_F(FunctionGraphTest, ConstantsMayBeReadButNotDestroyed) {
  const Variable c = constant(Tensor::full<double>({3}, 1.0));
  EXPECT_EQ(verdict({x}, {apply(toy::A_destroys, {x, c})}), InconsistencyKind::none);
  EXPECT_EQ(verdict({x}, {apply(toy::A_destroys, {c, x})}), InconsistencyKind::destroys_constant);
}

TEST_F(FunctionGraphTest, ProtectedInputsAndOutputsStay) {
  const Variable a = apply(toy::A_destroys, {x, y});
  EXPECT_EQ(verdict({x, y}, {a}, {x}), InconsistencyKind::destroys_protected);
  EXPECT_EQ(verdict({x, y}, {a, x}), InconsistencyKind::destroys_output);
  EXPECT_EQ(verdict({x, y}, {a, apply(toy::V, {x})}), InconsistencyKind::destroys_output);
  EXPECT_EQ(verdict({x, y}, {a}, {y}), InconsistencyKind::none);
}

TEST_F(FunctionGraphTest, OneOutputMayOverwriteSeveralInputs) {
  const OpPtr both = toy::make("both", {}, {{0, {0, 1}}});
  EXPECT_EQ(verdict({x, y}, {apply(both, {x, y})}), InconsistencyKind::none);
  EXPECT_EQ(verdict({x, y}, {apply(both, {x, y})}, {y}), InconsistencyKind::destroys_protected);
}

TEST_F(FunctionGraphTest, ViewOfSeveralInputsIsReadBeforeEitherIsDestroyed) {
  const OpPtr joined = toy::make("joined", {{0, {0, 1}}});
  const Variable view = apply(joined, {x, y}), read = apply(toy::S, {view});
  const Variable a = apply(toy::A_destroys, {y, z});
  EXPECT_EQ(verdict({x, y, z}, {a, read}), InconsistencyKind::none);
  EXPECT_EQ(order_of(graph_of({x, y, z}, {a, read})), "joined S A! ");
  EXPECT_EQ(verdict({x, y, z}, {apply(toy::D, {a, view})}), InconsistencyKind::ordering_cycle);
}

TEST_F(FunctionGraphTest, ChainOfInPlaceStepsIsConsistent) {
  Variable v = x;
  for (int i = 0; i < 20; ++i) v = apply(toy::A_destroys, {v, y});
  EXPECT_EQ(verdict({x, y}, {v}), InconsistencyKind::none);
}

TEST_F(FunctionGraphTest, TwoDestroyersOfOneValueContradictEachOther) {
  const Variable a = apply(toy::A_destroys, {x, y}), b = apply(toy::A_destroys, {x, z});
  EXPECT_EQ(verdict({x, y, z}, {a, b}), InconsistencyKind::destroys_output);
  EXPECT_EQ(verdict({x, y, z}, {apply(toy::S, {a}), apply(toy::S, {b})}),
            InconsistencyKind::multiple_destroyers);
  EXPECT_EQ(graph_of({x, y, z}, {a, b}).destroyers(x).size(), 2u);
}

TEST_F(FunctionGraphTest, FaultNamesTheDestroyerAndTheValue) {
  FunctionGraph graph = graph_of({x, y}, {apply(toy::A_destroys, {x, y})});
  graph.protect(x);
  try {
    graph.validate();
    FAIL();
  } catch (const InconsistencyError& e) {
    EXPECT_STREQ(e.what(), "[validate] destroys_protected: A! destroys x");
  }
}

}  // namespace
}  // namespace palimpsest
