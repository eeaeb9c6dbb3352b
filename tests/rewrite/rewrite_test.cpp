// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "palimpsest/ops/ops.hpp"
#include "palimpsest/rewrite/passes/fusion/fusion.hpp"
#include "palimpsest/rewrite/passes/linear_identities.hpp"
#include "palimpsest/rewrite/passes/merge.hpp"
#include "palimpsest/rewrite/passes/resolve_slices.hpp"
#include "palimpsest/rewrite/pipeline.hpp"
#include "rewrite/all_in_place.hpp"

namespace palimpsest {
namespace {

using testing::run_in_place;

struct RewriteTest : ::testing::Test {
  Variable x = make_input({DType::complex64, {8, 6}, {}}, "x");
  Variable y = make_input({DType::complex64, {8, 6}, {}}, "y");
  RewriteHints none;

  static FunctionGraph graph_of(std::vector<Variable> in, std::vector<Variable> out) {
    FunctionGraph graph(std::move(in), std::move(out));
    for (const Variable& v : graph.inputs()) graph.protect(v);
    return graph;
  }
  static int destroyers(const FunctionGraph& graph) {
    int count = 0;
    for (const Apply& node : graph.toposort()) count += overwritten_inputs(node).empty() ? 0 : 1;
    return count;
  }
};

TEST_F(RewriteTest, ListIsOrderedAndDestroyersComeLate) {
  double last = -1;
  for (const Rewrite& rewrite : rewrite_list()) {
    EXPECT_GE(rewrite.position, last) << rewrite.name;
    last = rewrite.position;
    FunctionGraph graph = graph_of({x, y}, {ops::fft(x * y, {0}) + x});
    rewrite.run(graph, none);
    if (rewrite.position < 49.5) {
      EXPECT_EQ(destroyers(graph), 0) << rewrite.name;
    }
  }
}

TEST_F(RewriteTest, EqualExpressionsAreComputedOnce) {
  FunctionGraph graph = graph_of({x, y}, {x * y + x * y, x * y});
  EXPECT_EQ(merge_duplicates(graph, none), 2);
  EXPECT_EQ(graph.node_count(), 2u);
  EXPECT_EQ(merge_duplicates(graph, none), 0);
}

TEST_F(RewriteTest, EqualConstantsAreMerged) {
  FunctionGraph graph = graph_of({x}, {x * 2.0 + (x * 2.0)});
  merge_duplicates(graph, none);
  EXPECT_EQ(graph.node_count(), graph_of({x}, {x * 2.0}).node_count() + 1);
}

TEST_F(RewriteTest, ConstantsAreComparedByTheirBytes) {
  const Variable r = make_input({DType::float64, {3}, {}}, "r");
  const auto merged = [&](double a, double b) {
    FunctionGraph graph = graph_of({r}, {r + constant(a), r + constant(b)});
    merge_duplicates(graph, none);
    return graph.node_count() <= graph_of({r}, {r + constant(a)}).node_count();
  };
  EXPECT_TRUE(merged(1, 1));
  EXPECT_FALSE(merged(0.0, -0.0));
  EXPECT_TRUE(merged(std::nan(""), std::nan("")));
}

// Two equal values, one of them overwritten, are merged if the order allows it; two that are both
// overwritten are never tried.
TEST_F(RewriteTest, DestroyedDuplicatesAreMergedWhenValidationAllows) {
  const auto overwritten = [](const Variable& v) {
    const Variable inputs[] = {v};
    return ops::exp(v)
        .owner()
        .op()
        .inplace_on_inputs(ops::exp(v).owner(), {0})
        ->make_node(inputs)
        .output(0);
  };
  FunctionGraph one = graph_of({x}, {overwritten(ops::sin(x)), ops::sum(ops::sin(x))});
  EXPECT_EQ(merge_duplicates(one, none), 1);
  EXPECT_TRUE(one.consistent());
  EXPECT_EQ(one.node_count(), 3u);
  FunctionGraph output = graph_of({x}, {overwritten(ops::sin(x)), ops::sin(x)});
  EXPECT_EQ(merge_duplicates(output, none), 0);  // an output cannot be overwritten
  EXPECT_EQ(output.node_count(), 3u);
  FunctionGraph both = graph_of({x}, {overwritten(ops::sin(x)), overwritten(ops::sin(x))});
  std::vector<std::string> lines;
  both.set_trace([&](const std::string& line) { lines.push_back(line); });
  EXPECT_EQ(merge_duplicates(both, none), 0);
  EXPECT_TRUE(lines.empty());
  EXPECT_TRUE(both.consistent());
}

TEST_F(RewriteTest, DifferentParametersAreNotMerged) {
  FunctionGraph graph = graph_of({x}, {ops::fft(x, {0}), ops::fft(x, {1})});
  EXPECT_EQ(merge_duplicates(graph, none), 0);
}

TEST_F(RewriteTest, EqualOpsAreFoundAmongThoseThatReadTheSame) {
  FunctionGraph graph = graph_of(
      {x}, {ops::fft(x, {0}), ops::fft(x, {1}), ops::fft(x, {1}), ops::exp(x), ops::fft(x, {0})});
  EXPECT_EQ(merge_duplicates(graph, none), 2);
  EXPECT_EQ(graph.outputs()[1], graph.outputs()[2]);
  EXPECT_EQ(graph.outputs()[0], graph.outputs()[4]);
  EXPECT_EQ(graph.node_count(), 3u);
}

TEST_F(RewriteTest, TransformAndItsInverseCancel) {
  for (const FftNorm norm : {FftNorm::ortho, FftNorm::backward, FftNorm::forward}) {
    for (const bool centered : {false, true}) {
      const FftOptions options{norm, centered};
      FunctionGraph graph =
          graph_of({x}, {ops::ifft(ops::fft(x, {0, 1}, options), {0, 1}, options)});
      EXPECT_GE(apply_linear_identities(graph, none).applied, 1);
      EXPECT_EQ(graph.outputs()[0], graph.inputs()[0]);
      FunctionGraph back = graph_of({x}, {ops::fft(ops::ifft(x, {1}, options), {1}, options)});
      apply_linear_identities(back, none);
      EXPECT_EQ(back.outputs()[0], back.inputs()[0]);
    }
  }
}

TEST_F(RewriteTest, AdjointOfAnUnscaledTransformLeavesTheNumberOfPoints) {
  FunctionGraph graph = graph_of({x}, {ops::fft_adjoint(ops::fft(x, {0, 1}), {0, 1})});
  EXPECT_GE(apply_linear_identities(graph, none).applied, 1);
  for (const Apply& node : graph.toposort())
    EXPECT_EQ(node.op().name().find("Fft"), std::string::npos);
}

TEST_F(RewriteTest, OtherPairsOfTransformsStay) {
  const FftOptions centered{FftNorm::ortho, true}, plain{FftNorm::ortho, false};
  for (const Variable& v : {ops::ifft(ops::fft(x, {0}, plain), {1}, plain),
                            ops::ifft(ops::fft(x, {0}, plain), {0}, centered),
                            ops::fft(ops::fft(x, {0}, plain), {0}, plain)}) {
    FunctionGraph graph = graph_of({x}, {v});
    EXPECT_EQ(apply_linear_identities(graph, none).applied, 0);
  }
}

TEST_F(RewriteTest, ElementwiseChainBecomesOnePass) {
  FunctionGraph graph = graph_of({x, y}, {ops::conj(x * y) * 2.0 + x});
  EXPECT_GE(fuse_elementwise(graph, none), 3);
  EXPECT_EQ(
      graph.node_count() -
          [&] {
            std::size_t views = 0;  // the constant 2 gets its axes by a view
            for (const Apply& node : graph.toposort())
              views += node.op().view_map(node).empty() ? 0u : 1u;
            return views;
          }(),
      1u);
}

TEST_F(RewriteTest, WhatIsFusedTogetherIsOneReplacement) {
  Variable v = x;
  for (int i = 0; i < 40; ++i) v = i % 2 == 0 ? v * y : ops::conj(v);
  FunctionGraph graph = graph_of({x, y}, {v});
  int replacements = 0;
  graph.set_trace([&](const std::string&) { ++replacements; });
  const int fused = fuse_elementwise(graph, none);
  // A step does not have enough registers for all.
  EXPECT_GT(graph.node_count(), 1u);
  EXPECT_EQ(graph.node_count(), 40u - static_cast<std::size_t>(fused));
  EXPECT_EQ(replacements, static_cast<int>(graph.node_count()));
  EXPECT_EQ(fuse_elementwise(graph, none), 0);
}

TEST_F(RewriteTest, ValueWithAnotherReaderIsNotFused) {
  const Variable t = x * y;
  FunctionGraph graph = graph_of({x, y}, {ops::fft(t, {0}), t + x});
  EXPECT_EQ(fuse_elementwise(graph, none), 0);
}

TEST_F(RewriteTest, ResultsThatReadTheSameArrayAreOnePass) {
  const Variable t = x * y, u = t + x;
  for (const std::vector<Variable>& results :
       {std::vector{t, t + x}, {x + y, x - y}, {x + y, x - y, ops::exp(x)}, {t, u, u * y}}) {
    FunctionGraph graph = graph_of({x, y}, results);
    EXPECT_EQ(fuse_elementwise(graph, none), static_cast<int>(results.size()) - 1);
    EXPECT_EQ(graph.node_count(), 1u);
    EXPECT_EQ(graph.outputs()[0].owner().output_count(), results.size());
    EXPECT_EQ(fuse_elementwise(graph, none), 0);
  }
}

TEST_F(RewriteTest, ResultsStayApartWhereThatIsBetterOrNecessary) {
  const Variable row = make_input({DType::complex64, {1, 6}, {}}, "row");
  const Variable p = ops::fft(x, {0}), q = ops::fft(y, {0}), t = x * y;
  for (const std::vector<Variable>& results :
       {std::vector{x + row, y + row},  // they share the broadcast operand
        {x + row, row * 2.0},           // other extents
        {ops::eq(p, x), q * x},         // p, which has no truth values, would have to wait
        {t, ops::fft(t, {0}) + x},      // through the transform
        {ops::fft(x, {0}), ops::fft(x, {1})}}) {
    FunctionGraph graph = graph_of({x, y, row}, results);
    const std::string before = graph.str();
    EXPECT_EQ(fuse_elementwise(graph, none), 0) << before;
    EXPECT_EQ(graph.str(), before);
  }
}

TEST_F(RewriteTest, SeveralResultsOverwriteSeveralInputs) {
  const Variable p = ops::fft(x, {0}), q = ops::fft(y, {0});
  for (const std::vector<Variable>& results :
       {std::vector{x + y, x * y}, {p * x, q * x}, {p - q, q + p, p * q}}) {
    FunctionGraph graph({x, y}, results);
    graph.protect(graph.inputs()[0]);
    EXPECT_EQ(fuse_elementwise(graph, none), static_cast<int>(results.size()) - 1);
    run_in_place(graph, none);
    EXPECT_TRUE(graph.consistent());
    const Apply node = graph.outputs()[0].owner();
    EXPECT_EQ(node.output_count(), results.size());
  }
  FunctionGraph lent({x, y}, {x + y, x * y});
  EXPECT_EQ(fuse_elementwise(lent, none), 1);
  EXPECT_EQ(run_in_place(lent, none), 1);
  EXPECT_EQ(overwritten_inputs(lent.outputs()[0].owner()), (std::set<int>{0, 1}));
}

// Kernels prepared for a step are shared by program.
TEST_F(RewriteTest, StepsThatComputeTheSameShareOneOp) {
  const Variable z = make_input(x.type(), "z"), r = dmatrix("r"), s = dmatrix("s");
  const auto chain = [](const Variable& a, const Variable& b) { return ops::exp(a * b) + a; };
  FunctionGraph graph = graph_of(
      {x, y, z, r, s}, {ops::roll(chain(x, y), 1, 0), ops::roll(chain(y, z), 1, 0),
                        ops::roll(ops::sin(x * z) + x, 1, 0), ops::roll(chain(r, s), 1, 0)});
  EXPECT_GT(fuse_elementwise(graph, none), 0);
  const auto made_by = [&](std::size_t k) {
    const Apply node = graph.outputs()[k].owner();
    return &(node.input_count() == 1 ? node.input(0).owner() : node).op();
  };
  EXPECT_EQ(made_by(0), made_by(1));
  EXPECT_NE(made_by(0), made_by(2));  // another operation
  EXPECT_NE(made_by(0), made_by(3));  // of another dtype

  const Variable w = make_input(x.type(), "w");
  FunctionGraph pairs = graph_of({x, y, z, w}, {x + y, x * y, z + w, z * w});
  EXPECT_EQ(fuse_elementwise(pairs, none), 2);
  const Apply first = pairs.outputs()[0].owner(), second = pairs.outputs()[2].owner();
  EXPECT_NE(first, second);
  EXPECT_EQ(&first.op(), &second.op());
}

TEST_F(RewriteTest, BroadcastValueIsNotComputedAgainPerElement) {
  const Variable row = make_input({DType::complex64, {1, 6}, {}}, "row");
  FunctionGraph graph = graph_of({x, row}, {ops::exp(row) * x});
  EXPECT_EQ(fuse_elementwise(graph, none), 0);
}

TEST_F(RewriteTest, InPlacePassNeverTouchesWhatIsReadLaterOrProtected) {
  const Variable a = x * y, b = ops::fft(a, {0}), c = b + a;
  FunctionGraph graph = graph_of({x, y}, {c});
  run_in_place(graph, none);
  EXPECT_TRUE(graph.consistent());
  EXPECT_EQ(destroyers(graph), 1);  // only the sum: a is read after the transform
}

TEST_F(RewriteTest, InPlacePassUsesPreferredMemory) {
  FunctionGraph graph(std::vector<Variable>{x, y}, {x + ops::fft(y, {0})});
  graph.protect(graph.inputs()[1]);
  RewriteHints hints;
  hints.preferred_memory.emplace_back(graph.outputs()[0], graph.inputs()[0]);
  EXPECT_EQ(run_in_place(graph, hints), 1);
  const Apply node = graph.outputs()[0].owner();
  EXPECT_EQ(overwritten_inputs(node), (std::set<int>{0}));
}

TEST_F(RewriteTest, CuttingWhatWasPaddedLeavesNothingOfThePadding) {
  const Variable v = make_input({DType::float64, {4, 5}, {}}, "v");
  const Variable padded = ops::pad(v, {{2, 1}, {0, 3}});
  FunctionGraph whole = graph_of({v}, {ops::index(padded, {slice(2, 6), slice(0, 5)}) * 2.0});
  EXPECT_EQ(resolve_slices(whole, none).applied, 1);
  FunctionGraph part = graph_of({v}, {ops::index(padded, {slice(3, 5), slice(1, 4)}) * 2.0});
  EXPECT_EQ(resolve_slices(part, none).applied, 1);
  for (const FunctionGraph* graph : {&whole, &part}) {
    for (const Apply& node : graph->toposort()) EXPECT_NE(node.op().name(), "Pad");
  }
}

TEST_F(RewriteTest, SameOperandTwiceRunsInPlace) {
  const Variable t = ops::fft(x, {0});
  FunctionGraph graph = graph_of({x}, {t + t});
  EXPECT_EQ(run_in_place(graph, none), 1);
}

}  // namespace
}  // namespace palimpsest
