// SPDX-License-Identifier: Apache-2.0
// Walkers, fixed points, substitution: their effect on a graph, and their refusals.
#include "palimpsest/rewrite/node_rewrite.hpp"

#include <gtest/gtest.h>

#include "palimpsest/base/config.hpp"
#include "palimpsest/base/stack_trace.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

struct NodeRewriteTest : ::testing::Test {
  Variable x = make_input({DType::float64, {4}, {}}, "x");
  Variable y = make_input({DType::float64, {4}, {}}, "y");

  static bool is(const Apply& node, const std::string& op) {
    return node.defined() && node.op().name() == op;
  }
  static std::vector<std::string> names(const FunctionGraph& graph) {
    std::vector<std::string> result;
    for (const Apply& node : graph.toposort()) result.push_back(node.op().name());
    return result;
  }
  // Neg(Neg(v)) -> v
  static Replacements cancel(const FunctionGraph&, const Apply& node) {
    if (!is(node, "Neg") || !is(node.input(0).owner(), "Neg")) return {};
    return {node.input(0).owner().input(0)};
  }
  // Exp(v) -> Sin(Cos(v))
  static Replacements expand(const FunctionGraph&, const Apply& node) {
    if (!is(node, "Exp")) return {};
    return {ops::sin(ops::cos(node.input(0)))};
  }
};

TEST_F(NodeRewriteTest, WalkReplacesWhatMatchesAndCounts) {
  FunctionGraph graph({x}, {ops::exp(x), -(-ops::log(x))});
  const NodeRewrite rewrites[] = {{"cancel", cancel}, {"expand", expand}};
  const RewriteResult result = walk(graph, rewrites);
  EXPECT_EQ(result.applied, 2);
  EXPECT_EQ(result.refused, 0);
  EXPECT_EQ(names(graph), (std::vector<std::string>{"Cos", "Sin", "Log"}));
  EXPECT_EQ(walk(graph, rewrites).applied, 0);
}

TEST_F(NodeRewriteTest, WalkDoesNotVisitWhatAReplacementBringsAlong) {
  const NodeRewrite again{"again", [](const FunctionGraph&, const Apply& node) -> Replacements {
                            if (!is(node, "Exp")) return {};
                            return {ops::exp(ops::exp(node.input(0)))};
                          }};
  FunctionGraph graph({x}, {ops::exp(x)});
  EXPECT_EQ(walk(graph, {&again, 1}).applied, 1);
  EXPECT_EQ(graph.node_count(), 2u);
  expect_error<InternalError>(
      [&] {
        walk_to_fixed_point(graph, {&again, 1});
      },
      "[again] replaces without end");
}

TEST_F(NodeRewriteTest, OrderOfAWalkIsChosen) {
  for (const WalkOrder order : {WalkOrder::inputs_first, WalkOrder::outputs_first}) {
    FunctionGraph graph({x}, {ops::exp(ops::log(x))});
    std::vector<std::string> seen;
    const NodeRewrite look{"look", [&](const FunctionGraph&, const Apply& node) {
                             seen.push_back(node.op().name());
                             return Replacements();
                           }};
    walk(graph, {&look, 1}, order);
    std::vector<std::string> expected{"Log", "Exp"};
    if (order == WalkOrder::outputs_first) std::swap(expected[0], expected[1]);
    EXPECT_EQ(seen, expected);
  }
}

// Four negations: the outer pairs match only after the inner one is removed.
TEST_F(NodeRewriteTest, FixedPointGoesOnUntilNothingIsLeft) {
  FunctionGraph graph({x}, {-(-(-(-(-x))))});
  const NodeRewrite rewrite{"cancel", cancel};
  EXPECT_EQ(walk_to_fixed_point(graph, {&rewrite, 1}).applied, 2);
  EXPECT_EQ(names(graph), (std::vector<std::string>{"Neg"}));
}

TEST_F(NodeRewriteTest, NamesTagsAndTracesPassToReplacements) {
  const Variable v = ops::exp(x);
  v.named("v");
  v.tags() = {true, false};
  const ConfigScope scope({.exception_verbosity = Verbosity::medium});
  const Variable traced = ops::exp(y);
  ASSERT_NE(traced.owner().node()->built_at, nullptr);
  FunctionGraph graph({x, y}, {v, traced});
  const ConfigScope plain({.exception_verbosity = Verbosity::low});
  const NodeRewrite rewrite{"expand", expand};
  EXPECT_EQ(walk(graph, {&rewrite, 1}).applied, 2);
  const Variable with = graph.outputs()[0], by = graph.outputs()[1];
  EXPECT_EQ(with.owner().op().name(), "Sin");
  EXPECT_EQ(with.name(), "v");
  EXPECT_EQ(with.tags(), (VariableTags{true, false}));
  // Also for the new nodes within the replacement.
  const auto& where = traced.owner().node()->built_at;
  for (const Apply& node : {by.owner(), by.owner().input(0).owner()}) {
    ASSERT_NE(node.node()->built_at, nullptr);
    EXPECT_EQ(node.node()->built_at->str(), where->str());
    EXPECT_EQ(node.node()->built_at->rewrite(), "expand");
  }
  EXPECT_EQ(where->rewrite(), "");
}

TEST_F(NodeRewriteTest, IndestructibleIsNotReplacedByWhatMayBeOverwritten) {
  const Variable inner = ops::log(x), v = -(-inner);
  v.set_indestructible();
  FunctionGraph graph({x}, {ops::exp(v)});
  const NodeRewrite rewrite{"cancel", cancel};
  EXPECT_EQ(walk(graph, {&rewrite, 1}).applied, 0);
  EXPECT_EQ(graph.node_count(), 4u);
}

TEST_F(NodeRewriteTest, UndefinedReplacementsKeepTheirOutput) {
  FunctionGraph graph({x}, {ops::exp(x)});
  const NodeRewrite rewrite{
      "none", [](const FunctionGraph&, const Apply&) { return Replacements{Variable()}; }};
  EXPECT_EQ(walk(graph, {&rewrite, 1}).applied, 0);
}

TEST_F(NodeRewriteTest, WrongReplacementsAreErrors) {
  FunctionGraph graph({x}, {ops::exp(x)});
  const std::string before = graph.str();
  const NodeRewrite two{"two", [&](const FunctionGraph&, const Apply& node) {
                          return Replacements{node.input(0), node.input(0)};
                        }};
  expect_error<ValueError>(
      [&] {
        walk(graph, {&two, 1});
      },
      "[two] replacements of Exp: got 2, expected 1");
  const NodeRewrite type{"type", [&](const FunctionGraph&, const Apply& node) {
                           return Replacements{node.input(0).astype(DType::int32)};
                         }};
  expect_error<TypeError>([&] { walk(graph, {&type, 1}); }, "[replace]");
  EXPECT_EQ(graph.str(), before);
}

TEST_F(NodeRewriteTest, RefusedReplacementsAreCountedAndLeaveNoTrace) {
  const Variable t = ops::exp(x);
  FunctionGraph graph({x, y}, {t + y, ops::log(t), ops::sin(y) + y});
  for (const Variable& v : graph.inputs()) graph.protect(v);
  const std::string before = graph.str();
  const Apply add = (x + y).owner();
  const OpPtr on_first = add.op().inplace_on_inputs(add, {0});
  const OpPtr on_second = add.op().inplace_on_inputs(add, {1});
  // y is protected everywhere.
  EXPECT_EQ(substitute(graph, add.op(), on_second).refused, 2);
  EXPECT_EQ(graph.str(), before);
  // exp(x) may be overwritten once its logarithm is taken, sin(y) at once.
  const RewriteResult result = substitute(graph, add.op(), on_first);
  EXPECT_EQ(result.applied, 2);
  EXPECT_EQ(result.refused, 0);
  EXPECT_TRUE(graph.consistent());
}

TEST_F(NodeRewriteTest, SubstitutePutsAnotherOpOnTheSameInputs) {
  FunctionGraph graph({x, y}, {x + y, ops::exp(x + x)});
  const OpPtr add = (x + y).owner().op_ptr(), mul = (x * y).owner().op_ptr();
  EXPECT_EQ(substitute(graph, *add, mul).applied, 2);
  EXPECT_EQ(names(graph), (std::vector<std::string>{"Mul", "Mul", "Exp"}));
  EXPECT_EQ(substitute(graph, *add, mul).applied, 0);
  EXPECT_EQ(substitute(graph, *mul, mul).applied, 0);
}

}  // namespace
}  // namespace palimpsest
