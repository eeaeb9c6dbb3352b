// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/inplace_query.hpp"

#include <gtest/gtest.h>

#include "graph/toy_ops.hpp"

namespace palimpsest {
namespace {

using toy::apply;

struct InplaceQuery : ::testing::Test {
  static FunctionGraph graph_of(std::vector<Variable> inputs, std::vector<Variable> outputs) {
    return FunctionGraph(std::move(inputs), std::move(outputs), {.clone = false});
  }
  static std::vector<int> possible(FunctionGraph& graph, const Variable& v) {
    const std::vector<int> all{0, 1};
    return fast_inplace_check(graph, v.owner(), all);
  }
  Variable x = toy::input("x"), y = toy::input("y"), z = toy::input("z");
};

TEST_F(InplaceQuery, NamesKindAndCulpritOfARefusal) {
  const Variable a = apply(toy::A, {x, y});
  FunctionGraph graph = graph_of({x, y}, {a, apply(toy::V, {y})});
  graph.protect(x);
  const std::vector<InplaceCandidate> found = inplace_candidates(graph, a.owner());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].refusal.kind, InconsistencyKind::destroys_protected);
  EXPECT_EQ(found[0].refusal.other, x);
  EXPECT_EQ(found[1].refusal.kind, InconsistencyKind::destroys_output);
  EXPECT_EQ(graph.str(), "FunctionGraph(A(x, y), V(y))");
}

TEST_F(InplaceQuery, AReaderThatNeedsTheResultRefuses) {
  const Variable a = apply(toy::A, {x, y}), d = apply(toy::D, {a, apply(toy::V, {x})});
  FunctionGraph graph = graph_of({x, y}, {d});
  EXPECT_EQ(possible(graph, a), std::vector<int>{1});
  EXPECT_EQ(inplace_candidates(graph, a.owner())[0].refusal.kind,
            InconsistencyKind::ordering_cycle);
}

TEST_F(InplaceQuery, SeesCyclesThroughOtherConstraints) {
  // D overwrites y after A has read it; A cannot overwrite z, which is read after D.
  const Variable a = apply(toy::A, {z, y});
  const Variable d = apply(toy::A_destroys, {y, x}), e = apply(toy::D, {d, z});
  FunctionGraph graph = graph_of({x, y, z}, {apply(toy::S, {a}), e});
  EXPECT_TRUE(graph.consistent());
  EXPECT_TRUE(possible(graph, a).empty());
  EXPECT_EQ(possible(graph, e), (std::vector<int>{0, 1}));
}

// Thousands of nodes move to one position in the order.
TEST_F(InplaceQuery, AnyNumberOfReadersCanPrecedeOneWriter) {
  constexpr int kReaders = 5000;
  std::vector<Variable> ends;
  for (int i = 0; i < kReaders; ++i) ends.push_back(apply(toy::D, {apply(toy::S, {x})}));
  FunctionGraph graph = graph_of({x}, ends);
  const Apply first = ends[0].owner().input(0).owner();
  const Variable written = apply(toy::A_destroys, {x});
  graph.replace_validate(first.output(0), written);
  EXPECT_TRUE(graph.consistent());
  const std::vector<Apply> order = graph.toposort();
  int n_readers = 0;
  for (const Apply& node : order) {
    if (node == written.owner()) break;
    n_readers += node.op().name() == "S" ? 1 : 0;
  }
  EXPECT_EQ(n_readers, kReaders - 1);
  // A reader that depends on the write, and one more writer, are still refused.
  const Apply last = ends.back().owner().input(0).owner();
  EXPECT_EQ(inplace_refusal(graph, last, apply(toy::A_destroys, {x}).owner(), 0),
            InconsistencyKind::multiple_destroyers);
  EXPECT_THROW(graph.replace_validate(ends[1], apply(toy::D, {written, x})), InconsistencyError);
  EXPECT_TRUE(graph.consistent());
}

// x is protected, y is free, z is read by a node that depends on a result.
TEST_F(InplaceQuery, SaysOfEachInputOfAVariantWhyItWouldBeRefusedAlone) {
  const auto several = [](AliasMap destroys) {
    return toy::make(toy::Spec{.name = "E", .destroys = std::move(destroys), .n_outputs = 3});
  };
  const Variable inputs[] = {x, y, z};
  const Apply node = several({})->make_node(inputs);
  FunctionGraph graph = graph_of({x, y, z}, {node.output(0), apply(toy::D, {node.output(1), z})});
  graph.protect(x);
  const auto all = several({{0, {0}}, {1, {1}}, {2, {2}}})->make_node(inputs);
  const auto refusals = inplace_refusals(graph, node, all);
  ASSERT_EQ(refusals.size(), 3u);
  EXPECT_EQ(refusals.at(0), InconsistencyKind::destroys_protected);
  EXPECT_EQ(refusals.at(1), InconsistencyKind::none);
  EXPECT_EQ(refusals.at(2), InconsistencyKind::ordering_cycle);
  for (const auto& [input, refusal] : refusals) {
    const Apply alone = several({{input, {input}}})->make_node(inputs);
    EXPECT_EQ(inplace_refusal(graph, node, alone, input), refusal) << input;
  }
  // If two outputs overwrite one input, only a trial decides.
  const auto twice = several({{0, {1}}, {1, {1}}, {2, {0, 2}}})->make_node(inputs);
  for (const auto& [input, refusal] : inplace_refusals(graph, node, twice)) {
    EXPECT_FALSE(refusal.has_value()) << input;
  }
}

TEST_F(InplaceQuery, UnknownNodeIsAnError) {
  FunctionGraph graph = graph_of({x}, {apply(toy::S, {x})});
  try {
    inplace_candidates(graph, apply(toy::S, {x}).owner());
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("S is not in the graph"), std::string::npos);
  }
}

}  // namespace
}  // namespace palimpsest
