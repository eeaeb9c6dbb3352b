// SPDX-License-Identifier: Apache-2.0
// Texts of errors at run time.
#include <gtest/gtest.h>

#include <algorithm>
#include <exception>
#include <stdexcept>

#include "compile/hook_op.hpp"
#include "palimpsest/base/stack_trace.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"
#include "support/vectors.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::hooked;

using testing::vector_of;

struct ErrorTest : ::testing::Test {
  Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
  Variable y = make_input({DType::float64, {kUnknown}, {}}, "y");
};

template <class F>
std::string text_of(F&& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(ErrorTest, ErrorOfAStepKeepsItsClassAndNamesNodeStepAndInputs) {
  const Variable v = hooked(ops::roll(x, 1, 0).named("shifted"),
                            [] { throw ShapeError("[kernel] no such axis"); });
  const Function f = function({x}, v);
  const auto call = [&] { f(vector_of({1, 2, 3, 4, 5, 6, 7})); };
  EXPECT_THROW(call(), ShapeError);
  const std::string text = text_of(call);
  EXPECT_EQ(text.find("[kernel] no such axis"), 0u) << text;
  EXPECT_NE(text.find("in step 1: Hook(shifted)"), std::string::npos) << text;
  EXPECT_NE(text.find("input 0: shifted: float64 shape (7,) strides (1,)"), std::string::npos)
      << text;
  EXPECT_NE(text.find(" = [7., 1., 2., 3., 4.] of 7"), std::string::npos) << text;
}

// Infers these shapes, whatever its inputs are.
class WrongShapes final : public Op {
 public:
  explicit WrongShapes(std::vector<Extents> shapes) : shapes_(std::move(shapes)) {}
  std::string name() const override { return "WrongShapes"; }
  std::string parameters() const override {
    return std::to_string(reinterpret_cast<std::uintptr_t>(this));
  }
  Apply make_node(std::span<const Variable> inputs) const override {
    return node(inputs, {inputs[0].type()});
  }
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents>) const override {
    return shapes_;
  }
  void run(RunContext&) const override {}

 private:
  std::vector<Extents> shapes_;
};

TEST_F(ErrorTest, InferredShapesThatDoNotFitTheOutputsNameTheOp) {
  const Variable fixed = make_input({DType::float64, {3}, {}}, "fixed");
  const auto expect_refusal = [&](const Variable& v, std::vector<Extents> shapes,
                                  const std::string& text) {
    const auto op = std::make_shared<const WrongShapes>(std::move(shapes));
    const Variable bad = op->make_node({&v, 1}).output(0);
    const Variable last = ops::loop(
                              [&](const auto& w) -> std::vector<Variable> {
                                return {op->make_node({&w[0], 1}).output(0) * 2.0};
                              },
                              {.states = {v}, .n_steps = 2})
                              .last(0);
    const Variable branch = ops::ifelse(ops::gt(ops::sum(v), 0.0), bad, v);
    for (const Variable& out : {bad * 2.0, last, branch}) {
      const Function f = function({v}, out);
      const auto call = [&] { f(Tensor::ones({3})); };
      EXPECT_THROW(call(), ShapeError);
      EXPECT_EQ(text_of(call).find("[WrongShapes] infer_shapes: " + text), 0u) << text_of(call);
    }
    EXPECT_NO_THROW(function({v}, branch)(Tensor::full({3}, -1.0)));
  };
  expect_refusal(x, {}, "got 0 shapes, expected one for each output, 1");
  expect_refusal(x, {{3}, {3}}, "got 2 shapes, expected one for each output, 1");
  expect_refusal(x, {{3, 3}}, "got (3, 3) for output 0, expected a shape that its type admits");
  expect_refusal(x, {{}}, "got () for output 0, expected a shape that its type admits");
  expect_refusal(fixed, {{2}}, "got (2,) for output 0, expected a shape that its type admits");
}

TEST_F(ErrorTest, BigInputsAreNotPrinted) {
  const Function f = function({x}, hooked(x, [] { throw ValueError("no"); }));
  const std::string text = text_of([&] { f(Tensor::ones({100000})); });
  EXPECT_NE(text.find("shape (100000,)"), std::string::npos) << text;
  EXPECT_EQ(text.find(" = ["), std::string::npos) << text;
}

TEST_F(ErrorTest, ForeignExceptionBecomesANestedOpError) {
  const Function f = function({x}, hooked(x, [] { throw std::out_of_range("beyond"); }));
  try {
    f(vector_of({1}));
    FAIL() << "no exception";
  } catch (const OpError& error) {
    EXPECT_NE(std::string(error.what()).find("[Hook] step 0 failed: beyond"), std::string::npos);
    try {
      std::rethrow_if_nested(error);
      FAIL() << "nothing nested";
    } catch (const std::out_of_range& cause) {
      EXPECT_STREQ(cause.what(), "beyond");
    }
  }
}

TEST_F(ErrorTest, WhatIsNoExceptionBecomesAnOpErrorToo) {
  const Function f = function({x}, hooked(x, [] { throw 7; }));
  EXPECT_NE(
      text_of([&] { f(vector_of({1})); }).find("step 0 threw an object that is not an exception"),
      std::string::npos);
}

TEST_F(ErrorTest, ShapesThatDoNotFitNameOpAxisBothShapesAndNode) {
  const Function f = function({x, y}, x * y);
  const auto call = [&] { f(vector_of({1, 2}), vector_of({1, 2, 3})); };
  expect_error<ShapeError>(call, "[Mul] axis 0");
  expect_error<ShapeError>(call, "got (2,) and (3,)");
  expect_error<ShapeError>(call, "in Mul(x, y) with shapes (2,) (3,)");
}

TEST_F(ErrorTest, HighVerbosityShowsThePlan) {
  const Function f = function({x}, hooked(x, [] { throw ValueError("no"); }));
  EXPECT_EQ(text_of([&] { f(vector_of({1})); }).find("buffer"), std::string::npos);
  const ConfigScope scope({.exception_verbosity = Verbosity::high});
  const std::string text = text_of([&] { f(vector_of({1})); });
  const std::string plan = f.plan(std::vector<TensorType>{{DType::float64, {1}, {}}}).to_string();
  EXPECT_NE(text.find("\n  plan:\n" + plan.substr(0, 40)), std::string::npos) << text;
  EXPECT_NE(text.find("buffer   0  argument"), std::string::npos) << text;
}

Variable built_here(const Variable& x) {
  return hooked(x, [] { throw ValueError("no"); });
}

TEST_F(ErrorTest, MediumVerbosityTellsWhereAnOpWasBuilt) {
  const std::string low = text_of([&] { function({x}, built_here(x))(vector_of({1})); });
  EXPECT_EQ(low.find("built in"), std::string::npos) << low;
  const ConfigScope scope({.exception_verbosity = Verbosity::medium, .traceback_limit = 3});
  const Variable built = built_here(x);
  ASSERT_NE(built.owner().node()->built_at, nullptr);
  EXPECT_FALSE(built.owner().node()->built_at->empty());
  const std::string text = text_of([&] { function({x}, built)(vector_of({1})); });
  const std::size_t at = text.find("built in:\n");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), '\n'), 4)
      << text;
}

std::shared_ptr<const StackTrace> lines_of_a_script(std::size_t limit) {
  std::vector<std::string> lines{"scan.py:42 in sense", "scan.py:7"};
  lines.resize(std::min(limit, lines.size()));
  return std::make_shared<const StackTrace>(StackTrace::of_lines(std::move(lines)));
}

TEST_F(ErrorTest, OriginSourceTellsTheLineOfAnotherLanguage) {
  set_origin_source(lines_of_a_script);
  const Function f = function({x}, built_here(ops::roll(x, 1, 0)));
  const ConfigScope scope({.exception_verbosity = Verbosity::medium});
  const Function medium = function({x}, built_here(ops::roll(x, 1, 0)));
  set_origin_source(nullptr);
  const std::string text = text_of([&] { medium(vector_of({1})); });
  EXPECT_NE(text.find("input 0 was built in:\nscan.py:42 in sense\nscan.py:7\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\n  built in:\nscan.py:42 in sense\nscan.py:7\n"), std::string::npos)
      << text;
  const ConfigScope low({.exception_verbosity = Verbosity::low});
  const std::string line = text_of([&] { f(vector_of({1})); });
  EXPECT_TRUE(line.ends_with("\n  built at scan.py:42 in sense")) << line;
  EXPECT_EQ(line.find("was built"), std::string::npos) << line;
}

TEST_F(ErrorTest, NodesWithoutALineOfAnotherLanguageHaveThatOfCxx) {
  set_origin_source([](std::size_t) -> std::shared_ptr<const StackTrace> { return nullptr; });
  const ConfigScope scope({.exception_verbosity = Verbosity::medium});
  const Variable built = built_here(x);
  set_origin_source(nullptr);
  ASSERT_NE(built.owner().node()->built_at, nullptr);
  EXPECT_TRUE(built.owner().node()->built_at->lines().empty());
}

TEST_F(ErrorTest, MediumVerbosityTellsWhereInputsWereBuiltToo) {
  const ConfigScope scope({.exception_verbosity = Verbosity::medium, .traceback_limit = 2});
  const Variable first = ops::roll(x, 1, 0), last = built_here(first);
  const std::string text = text_of([&] { function({x}, last)(vector_of({1})); });
  const std::size_t at = text.find("input 0 was built in:\n");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_EQ(text.find(first.owner().node()->built_at->str(), at), text.find('\n', at) + 1) << text;
}

TEST_F(ErrorTest, ReplacementsWereBuiltWhereTheirOriginalsWere) {
  const ConfigScope scope({.exception_verbosity = Verbosity::medium});
  const Variable built = ops::exp(x * 2.0) + 1.0;
  const auto where = built.owner().node()->built_at;
  const Function f = function({x}, built);
  const auto found = f.graph().outputs()[0].owner().node()->built_at;
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->str(), where->str()) << f.dprint();
}

// A rewrite that replaces a step by two failing ones.
Mode failing_rewrite() {
  const NodeRewrite rewrite{
      "make_it_fail", [](const FunctionGraph&, const Apply& node) -> Replacements {
        if (node.op().name() != "Sinc") return {};
        return {ops::roll(hooked(node.input(0), [] { throw ValueError("no"); }), 1, 0)};
      }};
  return Mode(Mode::fast_run).with_rewrite(rewrite, 3, {});
}

TEST_F(ErrorTest, ErrorOfANodeThatARewriteIntroducedNamesTheRewrite) {
  const Function f = function({x}, ops::sinc(x), {.mode = failing_rewrite()});
  const auto call = [&] { f(vector_of({1, 2})); };
  expect_error<ValueError>(call, "introduced by the rewrite make_it_fail");
  EXPECT_EQ(text_of(call).find("built in"), std::string::npos);
  // A user's node is from no rewrite.
  const Function plain = function({x}, hooked(x, [] { throw ValueError("no"); }));
  EXPECT_EQ(text_of([&] { plain(vector_of({1})); }).find("rewrite"), std::string::npos);
}

TEST_F(ErrorTest, ReplacementTellsWhereTheOriginalWasBuilt) {
  const ConfigScope scope({.exception_verbosity = Verbosity::medium, .traceback_limit = 2});
  const Variable built = ops::sinc(x);
  const Function f = function({x}, built, {.mode = failing_rewrite()});
  const std::string text = text_of([&] { f(vector_of({1, 2})); });
  EXPECT_NE(text.find("introduced by the rewrite make_it_fail\n  built in:\n" +
                      built.owner().node()->built_at->str()),
            std::string::npos)
      << text;
}

TEST_F(ErrorTest, LaterRewritesAreNamedInPlaceOfEarlierOnes) {
  // Fused, then put in place: the error names the last rewrite.
  const Variable v = ops::exp(ops::cumsum(x, 0) * 2.0);
  const Function f = function({x}, v);
  const Apply node = f.graph().outputs()[0].owner();
  ASSERT_FALSE(overwritten_inputs(node).empty()) << f.dprint();
  EXPECT_EQ(node.node()->built_at->rewrite(), "run_elementwise_in_place");
}

TEST_F(ErrorTest, StepsInLoopsAndInStagesNameTheirRewritesToo) {
  const Mode mode = failing_rewrite();
  const auto repeated = ops::loop(
      [](const std::vector<Variable>& v) { return std::vector<Variable>{ops::sinc(v[0])}; },
      {.states = {x}, .n_steps = 2});
  const Function in_loop = function({x}, repeated.last(0), {.mode = mode});
  expect_error<ValueError>([&] { in_loop(vector_of({1})); },
                           "introduced by the rewrite make_it_fail");
  const Function staged = function({x}, ops::sinc(x[ops::gt(x, 0.0)]), {.mode = mode});
  expect_error<ValueError>(
      [&] {
        staged(vector_of({1, -1}));
      },
      "introduced by the rewrite make_it_fail");
}

TEST_F(ErrorTest, ShapesThatARewriteGotWrongNameItToo) {
  const NodeRewrite rewrite{"widen", [](const FunctionGraph&, const Apply& node) -> Replacements {
                              if (node.op().name() != "Sinc") return {};
                              return {node.input(0) * constant(Tensor::ones({3}))};
                            }};
  const Function f =
      function({x}, ops::sinc(x), {.mode = Mode(Mode::fast_run).with_rewrite(rewrite, 3, {})});
  expect_error<ShapeError>([&] { f(vector_of({1, 2})); }, "introduced by the rewrite widen");
}

TEST_F(ErrorTest, OneSentOnceIsNotedOnce) {
  // A function called within a step of another one adds its own note.
  const Function inner = function({x}, hooked(x, [] { throw ValueError("deep"); }));
  const Function outer = function({x}, hooked(
                                           x, [&] { inner(vector_of({1})); }, true, 1));
  const std::string text = text_of([&] { outer(vector_of({1})); });
  EXPECT_EQ(text.find("deep"), 0u);
  const std::size_t first = text.find("in step 0");
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(text.find("in step 0", first + 1), std::string::npos) << text;
}

TEST(ErrorTree, ClassesDeriveAsDocumented) {
  EXPECT_TRUE((std::is_base_of_v<Error, TypeError>));
  EXPECT_TRUE((std::is_base_of_v<TypeError, DTypeError>));
  EXPECT_TRUE((std::is_base_of_v<TypeError, DeviceError>));
  EXPECT_TRUE((std::is_base_of_v<ValueError, ShapeError>));
  EXPECT_TRUE((std::is_base_of_v<ValueError, OverflowError>));
  EXPECT_TRUE((std::is_base_of_v<ValueError, UnusedInputError>));
  EXPECT_TRUE((std::is_base_of_v<ValueError, DisconnectedError>));
  EXPECT_TRUE((std::is_base_of_v<OutOfMemory, BudgetError>));
  EXPECT_TRUE((std::is_base_of_v<Error, StateError>));
  EXPECT_TRUE((std::is_base_of_v<Error, OpError>));
}

}  // namespace
}  // namespace palimpsest
