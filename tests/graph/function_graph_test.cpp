// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/function_graph.hpp"

#include <gtest/gtest.h>

#include "graph/toy_ops.hpp"
#include "palimpsest/base/config.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
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

struct FunctionGraphTest : ::testing::Test {
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
  const Variable s = apply(toy::S, {x}), d = apply(toy::D, {s}).named("d");
  FunctionGraph graph = graph_of({x}, {d});
  expect_error<CycleError>([&] { graph.replace(x, d); },
                           "[replace] x by d would close a data cycle: S D");
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
    EXPECT_STREQ(
        e.what(),
        "[validate] destroys_protected: A! destroys x; x must keep its value, as an input "
        "that is not lent to a function. Try to lend it, In(x, {.is_mutable = true}), or an op "
        "that overwrites nothing");
  }
}

TEST_F(FunctionGraphTest, AViewOfADestroyedInputStaysRefusedWhenItIsReplacedByIt) {
  const Variable view = apply(toy::V, {x});
  FunctionGraph graph = graph_of({x}, {apply(toy::A_destroys, {x, view})});
  EXPECT_EQ(graph.check().kind, InconsistencyKind::input_aliasing);
  graph.replace(view, x);
  EXPECT_EQ(graph.check().kind, InconsistencyKind::input_aliasing);
}

TEST_F(FunctionGraphTest, AnotherInputMayBecomeAConstant) {
  const Variable s = apply(toy::S, {y});
  FunctionGraph graph = graph_of({x, y}, {apply(toy::A_destroys, {x, s})});
  EXPECT_TRUE(graph.consistent());
  graph.replace_validate(s, constant(Tensor::full<double>({3}, 1.0)));
  EXPECT_TRUE(graph.consistent());
}

TEST_F(FunctionGraphTest, DisjointPartsDoNotConflictUnlessRegionsAreOff) {
  const Variable a = apply(toy::A_destroys, {apply(toy::part(0, 3), {x}), y});
  const std::vector<Variable> outputs{apply(toy::D, {a, apply(toy::part(3, 3), {x})})};
  EXPECT_TRUE(graph_of({x, y}, outputs).consistent());
  const FunctionGraph::Options off{.clone = false, .alias_regions = false};
  EXPECT_EQ(FunctionGraph({x, y}, outputs, off).check().kind, InconsistencyKind::ordering_cycle);
  const ConfigScope scope({.alias_regions = false});
  EXPECT_EQ(graph_of({x, y}, outputs).check().kind, InconsistencyKind::ordering_cycle);
}

TEST_F(FunctionGraphTest, SeveralOutputsMayOverwriteOneInput) {
  toy::Spec spec{"split", {}, {{0, {0}}, {1, {0}}}};
  spec.n_outputs = 2;
  const Apply split = toy::make(spec)->make_node(std::vector<Variable>{x});
  EXPECT_EQ(verdict({x}, {split.output(0), split.output(1)}), InconsistencyKind::none);
  // Both outputs share memory: one may be overwritten after the other has been read.
  const Variable a = apply(toy::A_destroys, {split.output(0), y});
  EXPECT_EQ(verdict({x, y}, {apply(toy::D, {a}), apply(toy::S, {split.output(1)})}),
            InconsistencyKind::none);
  EXPECT_EQ(verdict({x, y}, {apply(toy::D, {a, split.output(1)})}),
            InconsistencyKind::ordering_cycle);
}

TEST_F(FunctionGraphTest, OutputsOfOneHiddenBufferShareIt) {
  toy::Spec spec{"pair"};
  spec.n_outputs = 2;
  spec.output_aliases = {{0, 1}};
  const Apply pair = toy::make(spec)->make_node(std::vector<Variable>{x});
  const Variable a = apply(toy::A_destroys, {pair.output(0), y});
  EXPECT_EQ(verdict({x, y}, {apply(toy::D, {a, pair.output(1)})}),
            InconsistencyKind::ordering_cycle);
  EXPECT_EQ(verdict({x, y}, {a, pair.output(1)}), InconsistencyKind::destroys_output);
}

TEST_F(FunctionGraphTest, AnInputMayBeSpoiledWithoutAnOutputInIt) {
  toy::Spec spec{"spoil"};
  spec.destroyed = {0};
  const Variable s = apply(toy::make(spec), {x});
  EXPECT_EQ(verdict({x}, {s}), InconsistencyKind::none);
  EXPECT_EQ(verdict({x}, {apply(toy::D, {s, x})}), InconsistencyKind::ordering_cycle);
}

TEST_F(FunctionGraphTest, PartsOfAnAccumulatorMayBeOverwrittenOneByOne) {
  toy::Spec first{"first", {}, {{0, {0}}}}, second{"second", {}, {{0, {0}}}};
  first.write_regions.emplace(0, toy::slice(0, 3));
  second.write_regions.emplace(0, toy::slice(3, 3));
  const Variable low = apply(toy::make(first), {x}), part = apply(toy::part(3, 3), {x});
  // The upper part is read by the old name of the memory, which was not written there.
  EXPECT_EQ(verdict({x}, {apply(toy::D, {low, part})}), InconsistencyKind::none);
  EXPECT_EQ(verdict({x}, {apply(toy::D, {apply(toy::make(second), {low}), part})}),
            InconsistencyKind::ordering_cycle);
}

TEST_F(FunctionGraphTest, ErrorTellsKindNodesAndCycle) {
  const Variable a = apply(toy::A_destroys, {x, z}), d = apply(toy::D, {a, x});
  const FunctionGraph graph = graph_of({x, z}, {d});
  try {
    graph.validate();
    FAIL();
  } catch (const InconsistencyError& e) {
    EXPECT_EQ(e.kind(), InconsistencyKind::ordering_cycle);
    EXPECT_EQ(e.node(), a.owner());
    EXPECT_EQ(e.variable(), x);
    EXPECT_EQ(e.other(), x);
    EXPECT_EQ(e.other_node(), d.owner());
    EXPECT_EQ(e.cycle().size(), 2u);
    EXPECT_NE(std::string(e.what()).find("A! destroys x, but D reads x after it"),
              std::string::npos);
  }
}

TEST_F(FunctionGraphTest, TheGravestFaultComesFirst) {
  const Variable c = constant(Tensor::full<double>({3}, 1.0));
  const Variable a = apply(toy::A_destroys, {x, x}), b = apply(toy::A_destroys, {c, y});
  const FunctionGraph graph = graph_of({x, y}, {a, b});
  EXPECT_EQ(graph.check().kind, InconsistencyKind::destroys_constant);
  EXPECT_EQ(graph.check().node, b.owner());
}

// -- edits -------------------------------------------------------------------------------------

TEST_F(FunctionGraphTest, RevertIsExactAndEndsNewerMarks) {
  const Variable s = apply(toy::S, {x}), d = apply(toy::D, {s, x});
  FunctionGraph graph = graph_of({x, y}, {d});
  const auto first = graph.checkpoint();
  graph.replace(s, y);
  const auto second = graph.checkpoint();
  graph.protect(x);
  graph.replace(d, apply(toy::A, {x, y}));
  graph.revert(second);
  EXPECT_EQ(graph.str(), "FunctionGraph(D(y, x))");
  EXPECT_FALSE(graph.is_protected(x));
  graph.revert(first);
  EXPECT_EQ(graph.str(), "FunctionGraph(D(S(x), x))");
  EXPECT_EQ(graph.uses(x), (std::vector<Use>{{s.owner(), 0}, {d.owner(), 1}}));
  try {
    graph.revert(second);
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("mark has ended"), std::string::npos);
  }
}

TEST_F(FunctionGraphTest, MarksThatHaveEndedStayEndedWhenOthersAreMade) {
  const Variable s = apply(toy::S, {x});
  FunctionGraph graph = graph_of({x, y}, {s});
  const auto first = graph.checkpoint();
  graph.replace(s, y);
  const auto second = graph.checkpoint();
  graph.revert(first);
  const auto third = graph.checkpoint();
  expect_error<ValueError>([&] { graph.revert(second); }, "[revert] the mark has ended");
  graph.release(second);  // no mark: nothing ends
  EXPECT_NO_THROW(graph.revert(third));
  graph.commit();
  const auto fourth = graph.checkpoint();
  for (const auto ended : {first, second, third}) {
    expect_error<ValueError>([&] { graph.revert(ended); }, "[revert] the mark has ended");
  }
  EXPECT_NO_THROW(graph.revert(fourth));
  EXPECT_EQ(graph.str(), "FunctionGraph(S(x))");
}

TEST_F(FunctionGraphTest, ANodeThatMustGoButIsStillUsedIsAnError) {
  const Variable s = apply(toy::S, {x}).named("s"), d = apply(toy::D, {s, s});
  FunctionGraph graph = graph_of({x, y}, {d, s});
  const std::vector<std::pair<Variable, Variable>> pairs{{d, apply(toy::A, {s, y})}};
  const std::vector<Apply> gone{d.owner()}, stays{s.owner()};
  expect_error<ReplaceError>([&] { graph.replace_all_validate_remove(pairs, stays); },
                             "[replace] S is to be removed but its result s is still used");
  EXPECT_EQ(graph.str(), "FunctionGraph(D(S(x), S(x)), S(x))");
  graph.replace_all_validate_remove(pairs, gone);
  EXPECT_EQ(graph.str(), "FunctionGraph(A(S(x), y), S(x))");
}

TEST_F(FunctionGraphTest, WhatIsNotInTheGraphCannotBeReplaced) {
  FunctionGraph graph = graph_of({x}, {apply(toy::S, {x})});
  EXPECT_THROW(graph.replace(apply(toy::S, {x}), x), ValueError);
  EXPECT_THROW(graph.replace(toy::input("w"), x), ValueError);
  EXPECT_THROW(graph.protect(apply(toy::S, {x})), ValueError);
  EXPECT_THROW(graph.redirect({Apply(), 7}, x), ValueError);
}

TEST_F(FunctionGraphTest, AllPairsAreReplacedAtOnce) {
  FunctionGraph graph = graph_of({x, y}, {apply(toy::A, {x, y})});
  const std::vector<std::pair<Variable, Variable>> swap{{x, y}, {y, x}};
  graph.replace_all(swap);
  EXPECT_EQ(graph.str(), "FunctionGraph(A(y, x))");
}

TEST_F(FunctionGraphTest, AnInconsistentGraphStaysEditable) {
  const Variable a = apply(toy::A, {x, y});
  FunctionGraph graph = graph_of({x, y}, {apply(toy::D, {a, x})});
  const Variable b = apply(toy::A_destroys, {x, y});
  graph.replace(a, b);
  EXPECT_FALSE(graph.consistent());
  EXPECT_THROW(graph.toposort(), InconsistencyError);
  graph.replace(b, a);
  EXPECT_TRUE(graph.consistent());
}

TEST_F(FunctionGraphTest, WhatCanFailComesBeforeWhatOverwritesLast) {
  toy::Spec spec{"F"};
  spec.can_fail = true;
  const OpPtr F = toy::make(spec);
  const Variable stepped = toy::apply(toy::A_destroys, {x, y});
  FunctionGraph graph({x, y}, {toy::apply(toy::S, {stepped}), toy::apply(F, {y})},
                      {.clone = false});
  EXPECT_TRUE(graph.order_constraints().empty());
  graph.overwrite_last(x);
  EXPECT_TRUE(graph.is_overwritten_last(x));
  EXPECT_EQ(graph.order_constraints().size(), 1U);
  EXPECT_EQ(graph.toposort().front().op().name(), "F");
  EXPECT_THROW(graph.overwrite_last(stepped), ValueError);
}

TEST_F(FunctionGraphTest, NothingThatCanFailMayNeedWhatOverwroteTheLast) {
  toy::Spec spec{"F"};
  spec.can_fail = true;
  const OpPtr F = toy::make(spec);
  spec.name = "F!";
  spec.destroys = {{0, {0}}};
  const OpPtr F_destroys = toy::make(spec);
  const Variable stepped = toy::apply(toy::A_destroys, {x, y});
  FunctionGraph graph({x, y}, {toy::apply(F, {stepped})}, {.clone = false});
  const FunctionGraph::Token mark = graph.checkpoint();
  graph.overwrite_last(x);
  const Inconsistency fault = graph.check();
  EXPECT_EQ(fault.kind, InconsistencyKind::transaction);
  EXPECT_EQ(fault.node, stepped.owner());
  EXPECT_EQ(fault.other_node.op().name(), "F");
  EXPECT_EQ(fault.cycle.size(), 2U);
  EXPECT_NE(fault.text.find("A! destroys"), std::string::npos) << fault.text;
  EXPECT_NE(fault.text.find("F, which comes later, can fail"), std::string::npos) << fault.text;
  EXPECT_THROW(graph.toposort(), InconsistencyError);

  graph.replace(graph.outputs()[0], toy::apply(F_destroys, {x, y}));
  EXPECT_EQ(graph.check().kind, InconsistencyKind::transaction);
  EXPECT_NE(graph.check().text.find("can fail halfway"), std::string::npos) << graph.check().text;
  graph.revert(mark);
  EXPECT_FALSE(graph.is_overwritten_last(x));
  EXPECT_TRUE(graph.consistent());
}

TEST_F(FunctionGraphTest, DestroyersAreThoseOfTheViewedMemory) {
  const Variable view = apply(toy::V, {x}), a = apply(toy::A_destroys, {view, y});
  const Variable b = apply(toy::A_destroys, {a, y});
  const FunctionGraph graph = graph_of({x, y}, {b});
  EXPECT_EQ(graph.destroyers(x), std::vector<Apply>{a.owner()});
  EXPECT_EQ(graph.destroyers(a), std::vector<Apply>{b.owner()});
  EXPECT_TRUE(graph.has_destroyers(std::vector<Variable>{y, view}));
  EXPECT_FALSE(graph.has_destroyers(std::vector<Variable>{y}));
}

}  // namespace
}  // namespace palimpsest
