// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/inspect/print.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/ops/ops.hpp"

namespace palimpsest {
namespace {

TensorType vector_type() { return {DType::float64, {kUnknown}, {}}; }
Variable input(const std::string& name) { return make_input(vector_type(), name); }

std::size_t count(const std::string& text, const std::string& piece) {
  std::size_t n = 0;
  for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) {
    ++n;
  }
  return n;
}

struct PrintTest : ::testing::Test {
  Variable a = input("A"), b = input("B"), d = input("D"), e = input("E");
  Variable c = named(a + b, "C");
  Variable sum = c + (d + e);

  static Variable named(Variable v, const std::string& name) {
    v.node()->name = name;
    return v;
  }
};

TEST_F(PrintTest, ShowsTheTreeOfADocument) {
  EXPECT_EQ(debugprint(sum),
            "Add [id A]\n"
            " ├─ Add [id B] 'C'\n"
            " │  ├─ A [id C]\n"
            " │  └─ B [id D]\n"
            " └─ Add [id E]\n"
            "    ├─ D [id F]\n"
            "    └─ E [id G]\n");
}

TEST_F(PrintTest, OptionsChangeWhatIsShown) {
  EXPECT_EQ(debugprint(sum, {.depth = 1}), "Add [id A]\n");
  EXPECT_EQ(debugprint(sum, {.depth = 2}), "Add [id A]\n ├─ Add [id B] 'C'\n └─ Add [id C]\n");
  EXPECT_EQ(debugprint(sum, {.stop_on_name = true}),
            "Add [id A]\n"
            " ├─ Add [id B] 'C'\n"
            " └─ Add [id C]\n"
            "    ├─ D [id D]\n"
            "    └─ E [id E]\n");
  EXPECT_EQ(debugprint(c, {.id_type = IdType::none}), "Add 'C'\n ├─ A\n └─ B\n");
  EXPECT_EQ(debugprint(c, {.id_type = IdType::integers}),
            "Add [id 0] 'C'\n ├─ A [id 1]\n └─ B [id 2]\n");
  EXPECT_EQ(debugprint(c, {.print_type = true, .id_type = IdType::none}),
            "Add <float64 (?,)> 'C'\n ├─ A <float64 (?,)>\n └─ B <float64 (?,)>\n");
}

TEST_F(PrintTest, WhatWasShownIsItsLineAndDots) {
  EXPECT_EQ(debugprint(c * c),
            "Mul [id A]\n"
            " ├─ Add [id B] 'C'\n"
            " │  ├─ A [id C]\n"
            " │  └─ B [id D]\n"
            " └─ Add [id B] 'C'\n"
            "    └─ ···\n");
  // Numbering continues through a list.
  EXPECT_EQ(debugprint(std::vector<Variable>{c, c}),
            "Add [id A] 'C'\n ├─ A [id B]\n └─ B [id C]\nAdd [id A] 'C'\n └─ ···\n");
}

TEST_F(PrintTest, IdsAfterZHaveTwoLetters) {
  Variable v = a;
  for (int i = 0; i < 27; ++i) v = ops::exp(v);
  const std::string text = debugprint(v);
  EXPECT_NE(text.find("Exp [id Z]"), std::string::npos) << text;
  EXPECT_NE(text.find("Exp [id BA]"), std::string::npos) << text;
}

TEST_F(PrintTest, DeepGraphsAreNoProblem) {
  Variable v = a;
  for (int i = 0; i < 20000; ++i) v = ops::exp(v);
  EXPECT_EQ(count(debugprint(v, {.depth = 3}), "\n"), 3u);
}

TEST_F(PrintTest, FunctionsTellOrderDestroysAndViews) {
  const Function f = function({a}, {ops::reshape(ops::roll(ops::exp(a), 1, 0) * 2.0, {-1, 1})});
  const std::string text = f.dprint();
  EXPECT_EQ(text, debugprint(f));
  EXPECT_EQ(f.dprint({.print_type = true}), debugprint(f, {.print_type = true}));
  EXPECT_EQ(text,
            "Reshape [id A] v={0: [0]} 3\n"
            " └─ MulInPlace [id B] d={0: [0]} 2\n"
            "    ├─ Roll [id C] 1\n"
            "    │  └─ Exp [id D] 0\n"
            "    │     └─ A [id E]\n"
            "    └─ 2. [id F]\n");
  const std::string plain =
      f.dprint({.print_destroy_map = false, .print_view_map = false, .print_order = false});
  EXPECT_EQ(plain.find("={"), std::string::npos) << plain;
  EXPECT_NE(plain.find("Exp [id D]\n"), std::string::npos) << plain;
  EXPECT_EQ(debugprint(f.graph()), text);
}

TEST_F(PrintTest, RegionsAreShownWhenAskedFor) {
  const Variable part = a(slice(1, 3));
  EXPECT_EQ(debugprint(part).find(" r="), std::string::npos);
  const std::string text = debugprint(part, {.print_regions = true});
  EXPECT_NE(text.find(" r=0<-0:"), std::string::npos) << text;
}

TEST_F(PrintTest, BodiesOfLoopsFollowBelow) {
  const ops::LoopResult r = ops::loop(
      [](const std::vector<Variable>& v) { return std::vector<Variable>{ops::exp(v[0])}; },
      {.states = {a}, .n_steps = 3});
  const std::string text = debugprint(r.last(0));
  EXPECT_NE(text.find("\ninside of Loop [id "), std::string::npos) << text;
  EXPECT_NE(text.find("Exp"), std::string::npos) << text;
  EXPECT_EQ(debugprint(r.last(0), {.print_inner_graphs = false}).find("inside of"),
            std::string::npos);
}

TEST_F(PrintTest, StepsAreTheNodesInOrder) {
  const Function f = function({a}, {ops::roll(ops::exp(a), 1, 0)});
  ASSERT_EQ(f.steps().size(), 2u);
  EXPECT_EQ(f.steps()[0].op().name(), "Exp");
  EXPECT_EQ(f.steps()[1].op().name(), "Roll");
}

TEST_F(PrintTest, MemoryIsShownOncePlanned) {
  const Function f = function({a}, {ops::roll(ops::exp(a), 1, 0)});
  EXPECT_EQ(f.dprint({.print_memory = true}), f.dprint());
  f(Tensor::ones({100}));
  EXPECT_NE(f.dprint({.print_memory = true}).find(" @0+800"), std::string::npos)
      << f.dprint({.print_memory = true});
}

TEST_F(PrintTest, DotColoursEdgesByWhatHappens) {
  const SharedVariable s = shared(Tensor::ones({3}), {.name = "S"});
  const Variable value = ops::reshape(ops::roll(ops::exp(a), 1, 0) * 2.0 + s.var(), {-1, 1});
  const Function f = function({a, In(b)}, {value}, {.on_unused_input = Reaction::ignore});
  const std::string text = to_dot(f);
  EXPECT_EQ(text.rfind("digraph {", 0), 0u);
  EXPECT_EQ(text.back(), '\n');
  EXPECT_NE(text.find("color=red"), std::string::npos) << text;
  EXPECT_NE(text.find("color=blue"), std::string::npos) << text;
  EXPECT_NE(text.find("label=\"S\", shape=box, style=filled, fillcolor=cyan"), std::string::npos)
      << text;
  EXPECT_NE(text.find("label=\"B\""), std::string::npos) << "an unused input is missing: " << text;
  EXPECT_NE(text.find("output 0"), std::string::npos) << text;
  EXPECT_EQ(count(text, "{"), count(text, "}"));
  f(Tensor::ones({3}), Tensor::ones({3}));
  EXPECT_EQ(to_dot(f).find("subgraph cluster_"), std::string::npos);
  const std::string with_memory = to_dot(f, {.print_memory = true});
  EXPECT_NE(with_memory.find("subgraph cluster_"), std::string::npos) << with_memory;
  EXPECT_NE(with_memory.find("arena 24 @0"), std::string::npos) << with_memory;
  EXPECT_NE(to_dot(sum).find("fillcolor=lightpink"), std::string::npos);
}

TEST_F(PrintTest, DotShowsEveryOutput) {
  const std::string text = to_dot(function({a}, {a * 2.0, a * 3.0, a * 4.0}));
  for (const char* name : {"output 0", "output 1", "output 2"}) {
    EXPECT_NE(text.find(name), std::string::npos) << text;
  }
}

TEST_F(PrintTest, DotShowsOrderingConstraints) {
  // The update overwrites S only after the roll has read it.
  const SharedVariable s = shared(Tensor::ones({3}), {.name = "S"});
  const Function f = function({}, {ops::roll(s.var(), 1, 0)}, {.updates = {{s, s.var() * 2.0}}});
  EXPECT_EQ(count(to_dot(f), "style=dashed"), f.graph().order_constraints().size());
  EXPECT_EQ(f.graph().order_constraints().size(), 1u);
}

TEST_F(PrintTest, FormulasHaveTheParenthesesTheyNeed) {
  EXPECT_EQ(pprint((a + b) * ops::exp(d)), "(A + B) * exp(D)");
  EXPECT_EQ(pprint(a - (b - d)), "A - (B - D)");
  EXPECT_EQ(pprint(a / (b * d)), "A / (B * D)");
  EXPECT_EQ(pprint(a * b / d), "A * B / D");
  EXPECT_EQ(pprint(-(a + b)), "-(A + B)");
  EXPECT_EQ(pprint(a * 2.0), "A * 2.");
  Variable v = a;
  for (int i = 0; i < 100; ++i) v = v * v;
  EXPECT_LT(pprint(v).size(), 50000u);
}

}  // namespace
}  // namespace palimpsest
