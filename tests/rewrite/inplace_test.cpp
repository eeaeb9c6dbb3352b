// SPDX-License-Identifier: Apache-2.0
// The in-place passes: the inputs that they choose, the nodes that they leave alone, and their
// report.
#include "palimpsest/rewrite/passes/inplace.hpp"

#include <gtest/gtest.h>

#include "graph/toy_ops.hpp"
#include "palimpsest/graph/inplace_query.hpp"
#include "palimpsest/ops/ops.hpp"
#include "rewrite/all_in_place.hpp"

namespace palimpsest {
namespace {

using testing::run_in_place;

struct InplaceTest : ::testing::Test {
  Variable x = make_input({DType::float64, {40}, {}}, "x");
  Variable y = make_input({DType::float64, {40}, {}}, "y");
  Variable m = make_input({DType::float64, {6, 8}, {}}, "m");
  std::vector<InplaceRefusal> refusals;
  RewriteHints hints{{}, &refusals};

  static FunctionGraph graph_of(std::vector<Variable> in, std::vector<Variable> out) {
    FunctionGraph graph(std::move(in), std::move(out));
    for (const Variable& v : graph.inputs()) graph.protect(v);
    return graph;
  }
  // The op of an output, and its overwritten inputs.
  static std::string name_at(const FunctionGraph& graph, std::size_t output = 0) {
    return graph.outputs()[output].owner().op().name();
  }
  static std::set<int> overwritten_at(const FunctionGraph& graph, std::size_t output = 0) {
    return overwritten_inputs(graph.outputs()[output].owner());
  }
  // Runs all passes on a graph of one output of x, y and m.
  int run(const std::vector<Variable>& outputs, std::set<int>* overwritten = nullptr) {
    FunctionGraph graph = graph_of({x, y, m}, outputs);
    refusals.clear();
    const int applied = run_in_place(graph, hints);
    EXPECT_TRUE(graph.consistent());
    if (overwritten) *overwritten = overwritten_at(graph);
    return applied;
  }
};

// -- which ops -----------------------------------------------------------------------------------

TEST_F(InplaceTest, EveryFamilyHasItsPass) {
  const Variable t = ops::roll(x, 1, 0), u = ops::roll(m, 1, 0);
  const Variable z = ops::astype(u, DType::complex128), k = constant(Tensor::from<index_t>({1, 2}));
  const std::vector<std::pair<Variable, decltype(&run_in_place)>> cases = {
      {ops::set_subtensor(t, {slice(0, 3)}, y(slice(0, 3))), run_updates_in_place},
      {ops::inc_subtensor(t, {slice({}, {}, -2)}, constant(1.0)), run_updates_in_place},
      {t[k].set(2.0), run_updates_in_place},
      {ops::gemm(u, 1, m, ops::dot(m.T(), m), 1), run_products_in_place},
      {ops::gemv(ops::roll(x(slice(0, 6)), 1, 0), 1, m, y(slice(0, 8)), 1), run_products_in_place},
      {ops::ger(u, 0.1, x(slice(0, 6)), y(slice(0, 8))), run_products_in_place},
      {ops::fft(z, {0, 1}), run_transforms_in_place},
      {ops::ifft(z, {1}), run_transforms_in_place},
      {ops::exp(t), run_elementwise_in_place},
      {ops::where(ops::gt(y, 0), t, y), run_elementwise_in_place},
      {ops::clip(t, 0, 1), run_elementwise_in_place},
      {ops::cumsum(u, 0), run_elementwise_in_place},
      {ops::cumprod(u, 1), run_elementwise_in_place},
      {ops::astype(t, DType::int64), run_elementwise_in_place},
  };
  for (const auto& [v, pass] : cases) {
    SCOPED_TRACE(v.owner().op().str());
    for (const auto other : {run_updates_in_place, run_products_in_place, run_transforms_in_place,
                             run_elementwise_in_place, run_keys_in_place}) {
      FunctionGraph graph = graph_of({x, y, m}, {v});
      other(graph, {});
      EXPECT_EQ(overwritten_at(graph).empty(), other != pass);
      EXPECT_EQ(other(graph, {}), 0) << "a second run has nothing to do";
    }
  }
}

TEST_F(InplaceTest, ReductionsAndRearrangementsAllocate) {
  const Variable t = ops::exp(x);
  for (const Variable& v :
       {t.sum(), ops::roll(t, 1, 0), ops::take(t, constant(Tensor::from<index_t>({3, 1}))),
        ops::pad(t, {{1, 1}}), ops::join(0, std::vector{t, y}), ops::tile(t, {2})}) {
    FunctionGraph graph = graph_of({x, y}, {v});
    run_in_place(graph, hints);
    EXPECT_TRUE(overwritten_at(graph).empty()) << name_at(graph);
  }
}

TEST_F(InplaceTest, ItemSizesCountAndNotDtypes) {
  std::set<int> overwritten;
  EXPECT_EQ(run({ops::astype(ops::roll(x, 1, 0), DType::int64)}, &overwritten), 1);
  EXPECT_EQ(overwritten, std::set<int>{0});
  EXPECT_EQ(run({ops::astype(ops::roll(x, 1, 0), DType::float32)}), 0);
  EXPECT_EQ(run({ops::gt(ops::roll(x, 1, 0), 0.5)}), 0);
}

TEST_F(InplaceTest, TheSameOperandTwiceIsOverwrittenOnce) {
  const Variable t = ops::roll(x, 1, 0);
  std::set<int> overwritten;
  EXPECT_EQ(run({t + t}, &overwritten), 1);
  EXPECT_EQ(overwritten.size(), 1u);
}

TEST_F(InplaceTest, FactorsMayShareMemoryButNotWithTheAccumulator) {
  const Variable a = make_input({DType::float64, {5, 5}, {}}, "a");
  const auto runs = [&](const Variable& v) {
    FunctionGraph graph = graph_of({a}, {v});
    const int applied = run_in_place(graph, hints);
    EXPECT_TRUE(graph.consistent());
    return applied;
  };
  const Variable z = ops::roll(a, 1, 0), f = ops::roll(a, 2, 0);
  EXPECT_EQ(runs(ops::gemm(z, 1, f, f.T(), 1)), 1);
  EXPECT_EQ(runs(ops::gemm(z, 1, z, f, 1)), 0);
  EXPECT_EQ(runs(ops::gemm(z, 1, f, z.T(), 1)), 0);
  // Disjoint parts are different memory.
  const Variable w = ops::roll(ops::join(0, std::vector{a, a, a}), 1, 0);
  const auto rows = [&](index_t from) { return w(slice(from, from + 5)); };
  FunctionGraph graph = graph_of({a}, {ops::gemm(rows(0), 1, rows(5), rows(10), 1), w.sum()});
  run_in_place(graph, hints);
  EXPECT_EQ(name_at(graph), "Gemm") << "it is a part of what may be read later";
}

// -- which input ---------------------------------------------------------------------------------

TEST_F(InplaceTest, TheMemoryOfAnUpdateComesFirst) {
  FunctionGraph graph(std::vector<Variable>{x, y}, {ops::roll(y, 1, 0) + x * 2.0});
  graph.protect(graph.inputs()[1]);
  hints.preferred_memory.emplace_back(graph.outputs()[0], graph.inputs()[0]);
  EXPECT_EQ(run_in_place(graph, hints), 2);
  EXPECT_EQ(overwritten_at(graph), std::set<int>{1});
  EXPECT_EQ(overwritten_inputs(graph.outputs()[0].owner().input(1).owner()), std::set<int>{0});
}

TEST_F(InplaceTest, ChainsThatLeadToAnUpdateComeBeforeOthers) {
  // The sum is not the new value itself, but could become it.
  const Variable sum = ops::roll(y, 1, 0) + x;
  FunctionGraph graph(std::vector<Variable>{x, y}, {ops::exp(ops::sin(sum))});
  graph.protect(graph.inputs()[1]);
  hints.preferred_memory.emplace_back(graph.outputs()[0], graph.inputs()[0]);
  EXPECT_EQ(run_in_place(graph, hints), 3);
  const Apply add = graph.outputs()[0].owner().input(0).owner().input(0).owner();
  EXPECT_EQ(overwritten_inputs(add), std::set<int>{1});
}

TEST_F(InplaceTest, ThenTheBiggest) {
  const Variable small = make_input({DType::float64, {3}, {}}, "small");
  const Variable big = make_input({DType::float64, {300}, {}}, "big");
  FunctionGraph graph(std::vector<Variable>{small, big},
                      {toy::apply(toy::make("A"), {small, big, small})});
  EXPECT_EQ(run_in_place(graph, hints), 1);
  EXPECT_EQ(overwritten_at(graph), std::set<int>{1});
}

TEST_F(InplaceTest, ThenWhatNobodyReadsLater) {
  const Variable a = ops::roll(x, 1, 0), b = ops::roll(y, 1, 0);
  FunctionGraph graph = graph_of({x, y}, {a + b, ops::roll(a, 3, 0)});
  EXPECT_EQ(run_in_place(graph, hints), 1);
  EXPECT_EQ(overwritten_at(graph), std::set<int>{1});
  FunctionGraph other = graph_of({x, y}, {a + b, ops::roll(b, 3, 0)});
  EXPECT_EQ(run_in_place(other, hints), 1);
  EXPECT_EQ(overwritten_at(other), std::set<int>{0});
}

// Overwrites as many inputs as allowed.
class Exchange final : public Op {
 public:
  explicit Exchange(std::set<int> overwritten = {}) : overwritten_(std::move(overwritten)) {}
  std::string name() const override { return "Exchange"; }
  std::string parameters() const override {
    std::string text;
    for (int i : overwritten_) text += std::to_string(i);
    return text;
  }
  Apply make_node(std::span<const Variable> inputs) const override {
    return node(inputs, {inputs[0].type(), inputs[1].type()});
  }
  AliasMap destroy_map(const Apply&) const override {
    AliasMap map;
    for (int i : overwritten_) map[i] = {i};
    return map;
  }
  OpPtr inplace_on_inputs(const Apply&, const std::set<int>& allowed) const override {
    return overwritten_.empty() ? std::make_shared<Exchange>(allowed) : nullptr;
  }
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> in) const override {
    return {in[0], in[1]};
  }
  void run(RunContext&) const override {}

 private:
  std::set<int> overwritten_;
};

TEST_F(InplaceTest, SeveralInputsAtOnceWhereTheOpCan) {
  const auto exchanged = [&](const Variable& a, const Variable& b) {
    const Variable inputs[] = {a, b};
    const auto outs = std::make_shared<const Exchange>()->make_node(inputs).outputs();
    return graph_of({x, y}, {outs[0], outs[1]});
  };
  const Variable a = ops::roll(x, 1, 0), b = ops::roll(y, 1, 0);
  FunctionGraph both = exchanged(a, b);
  EXPECT_EQ(run_in_place(both, hints), 1);
  EXPECT_EQ(overwritten_at(both), (std::set<int>{0, 1}));
  FunctionGraph one = exchanged(x, b);
  EXPECT_EQ(run_in_place(one, hints), 1);
  EXPECT_EQ(overwritten_at(one), std::set<int>{1});
}

// Inputs that a Feature refuses together may be allowed one by one.
class AtMostOne final : public Feature {
 public:
  void on_validate(const FunctionGraph& graph) override {
    if (graph.overwritten_count() > 1) {
      throw InconsistencyError("[AtMostOne] two", InconsistencyKind::refused_by_feature);
    }
  }
};

TEST_F(InplaceTest, OneInputAtATimeWhereAllAreRefused) {
  const Variable inputs[] = {ops::roll(x, 1, 0), ops::roll(y, 1, 0)};
  const auto outs = std::make_shared<const Exchange>()->make_node(inputs).outputs();
  FunctionGraph graph = graph_of({x, y}, {outs[0], outs[1]});
  graph.add_feature(std::make_shared<AtMostOne>());
  EXPECT_EQ(run_in_place(graph, hints), 1);
  EXPECT_EQ(overwritten_at(graph), std::set<int>{0});
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].input, -1);
  EXPECT_EQ(refusals[0].str(), "Exchange: several inputs: refused_by_feature");
}

// -- what is left alone --------------------------------------------------------------------------

TEST_F(InplaceTest, RefusalsSayWhichInputAndWhy) {
  const Variable a = ops::roll(x, 1, 0), e = ops::exp(a);
  EXPECT_EQ(run({x + e}), 2);
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].kind, InconsistencyKind::destroys_protected);
  EXPECT_EQ(refusals[0].input, 0);
  EXPECT_EQ(refusals[0].variable, "x");
  EXPECT_EQ(refusals[0].str(), "Add{float64, float64 -> float64}: input 0 x: destroys_protected");
  EXPECT_EQ(run({e, ops::sin(e)}), 1);
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].kind, InconsistencyKind::destroys_output);
  EXPECT_EQ(run({ops::sin(e), ops::cos(e), ops::atan2(e, a)}), 2);
  ASSERT_EQ(refusals.size(), 2u);
  EXPECT_EQ(refusals[0].kind, InconsistencyKind::ordering_cycle);
  EXPECT_EQ(refusals[1].kind, InconsistencyKind::multiple_destroyers);
  EXPECT_EQ(run({ops::exp(constant(Tensor::full({3}, 1.0)))}), 0);
  EXPECT_EQ(refusals.at(0).kind, InconsistencyKind::destroys_constant);
}

TEST_F(InplaceTest, TheKindIsThatOfTheRefusedReplacement) {
  const Variable a = ops::roll(x, 1, 0), e = ops::exp(a);
  FunctionGraph graph = graph_of({x}, {e + a});
  const std::string before = graph.str();
  for (const Apply& node : graph.toposort()) {
    for (const InplaceCandidate& c : inplace_candidates(graph, node)) {
      const Apply variant = c.op->make_node(node.inputs());
      EXPECT_EQ(inplace_refusal(graph, node, variant, c.input), c.refusal.kind);
    }
  }
  EXPECT_EQ(graph.str(), before);
}

TEST_F(InplaceTest, APartOfADyingBufferIsLeftAlone) {
  const Variable t = ops::roll(x, 1, 0);
  const Variable part = t(slice(0, 4));
  EXPECT_EQ(run({ops::exp(part)}), 0);
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].kind, InconsistencyKind::none);
  EXPECT_EQ(refusals[0].str(),
            "Exp{float64 -> float64}: input 0 " + part.str() + ": part of a bigger buffer");
  // A buffer that lives longer anyway costs nothing.
  EXPECT_EQ(run({ops::exp(part).sum() + t(slice(4, {})).sum()}), 2);
  // Nor does another view of all of it.
  EXPECT_EQ(run({ops::exp(ops::reshape(t, {5, 8}).T())}), 1);
}

TEST_F(InplaceTest, APartOfWhatWasLentIsOverwritten) {
  FunctionGraph graph(std::vector<Variable>{x}, {ops::exp(x(slice(0, 4)))});
  EXPECT_EQ(run_in_place(graph, hints), 1);
}

TEST_F(InplaceTest, KeysAreOverwrittenInContainersOnly) {
  const Variable key = make_input({DType::uint64, {2}, {}}, "key");
  FunctionGraph temporary(std::vector<Variable>{key}, {ops::next_key(ops::next_key(key))});
  EXPECT_EQ(run_in_place(temporary, hints), 0);
  FunctionGraph updated(std::vector<Variable>{key}, {ops::next_key(key)});
  hints.preferred_memory.emplace_back(updated.outputs()[0], updated.inputs()[0]);
  EXPECT_EQ(run_in_place(updated, hints), 1);
}

TEST_F(InplaceTest, AValueThatShowsTheTargetIsReadFirst) {
  const Variable t = ops::roll(x, 1, 0);
  FunctionGraph graph = graph_of({x}, {ops::set_subtensor(t, {slice(1, 5)}, t(slice(0, 4)))});
  EXPECT_EQ(run_in_place(graph, hints), 1);
  EXPECT_EQ(name_at(graph), "SetSubtensorInPlace");
  EXPECT_NE(graph.outputs()[0].owner().op().parameters().find("buffered"), std::string::npos);
  FunctionGraph apart = graph_of({x}, {ops::set_subtensor(t, {slice(1, 5)}, x(slice(0, 4)))});
  EXPECT_EQ(run_in_place(apart, hints), 1);
  EXPECT_EQ(apart.outputs()[0].owner().op().parameters().find("buffered"), std::string::npos);
}

TEST_F(InplaceTest, ShapeArithmeticInPlaceStaysSortable) {
  const Variable n = ops::shape(m, 0) * 2 + ops::shape(m, 1);
  FunctionGraph graph = graph_of({m}, {ops::zeros({n}, DType::float64), n + 1});
  run_in_place(graph, hints);
  EXPECT_TRUE(graph.consistent());
  EXPECT_FALSE(graph.toposort().empty());
}

}  // namespace
}  // namespace palimpsest
