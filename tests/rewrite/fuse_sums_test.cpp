// SPDX-License-Identifier: Apache-2.0
// Norms and inner products computed in the step that makes their operand.
#include <gtest/gtest.h>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/inspect/debug/debug_mode.hpp"
#include "palimpsest/ops/ops.hpp"
#include "rewrite/rewrite_runner.hpp"
#include "rewrite/sums_in_steps.hpp"

namespace palimpsest {
namespace {

using testing::nearly_equal;
using testing::op_names;
using testing::sums_in_steps;

using Names = std::vector<std::string>;

struct FuseSums : ::testing::Test {
  static constexpr index_t kN = 1000;
  Variable x = make_input({DType::complex64, {kN}, {}}, "x");
  Variable y = make_input({DType::complex64, {kN}, {}}, "y");
  Variable a = make_input({DType::float32, {}, {}}, "a");
  Tensor at_x = Tensor::random_normal({kN}, DType::complex64, {1, 0});
  Tensor at_y = Tensor::random_normal({kN}, DType::complex64, {2, 0});

  // The ops of the optimized function; checks that its results equal the plain one's, in DebugMode
  // too.
  Names ops_of(const std::vector<Variable>& results) const {
    const std::vector<Variable> inputs = testing::inputs_of(results);
    std::vector<Tensor> arguments;
    for (const Variable& v : inputs) {
      arguments.push_back(v == x ? at_x : v == y ? at_y : Tensor::scalar(0.5F));
    }
    std::vector<In> ins(inputs.begin(), inputs.end());
    std::vector<Out> outs(results.begin(), results.end());
    const auto values = [&](const Mode& mode) {
      const Function f = function(ins, outs, {.mode = mode});
      std::vector<Tensor> made(f.output_count());
      f.call(arguments, made);
      return made;
    };
    const std::vector<Tensor> expected = values(NoRewrite());
    const Mode fused = sums_in_steps(FastRun(), 64);
    for (const Mode& mode : {fused, DebugMode({.base = fused, .patience = 1})}) {
      const std::vector<Tensor> got = values(mode);
      for (std::size_t k = 0; k < got.size(); ++k) {
        EXPECT_TRUE(nearly_equal(got[k], expected[k])) << k;
      }
    }
    return op_names(function(ins, outs, {.mode = fused}).graph());
  }
};

TEST_F(FuseSums, ANormIsTakenWhereItsOperandIsMade) {
  EXPECT_EQ(ops_of({ops::norm2(x - y)}), Names{"ElementwiseSums"});
  const Variable r = x - a * y;
  EXPECT_EQ(ops_of({r, ops::norm2(r)}), Names{"ElementwiseSums"});
}

TEST_F(FuseSums, SoAreProductsOfWhatIsMadeAndWhatIsRead) {
  const Variable r = x + y;
  EXPECT_EQ(ops_of({r, ops::vdot(r, x), ops::vdot(y, r), ops::sum(r)}), Names{"ElementwiseSums"});
}

TEST_F(FuseSums, ANormOfWhatIsReadJoinsTheReader) {
  EXPECT_EQ(ops_of({x * 2.0 + y, ops::norm2(x)}), Names{"ElementwiseSums"});
}

TEST_F(FuseSums, WhatANormIsNeededForComesAfterIt) {
  const Variable r = x - y, size = ops::norm2(r);
  EXPECT_EQ(ops_of({r / size}), (Names{"ElementwiseSums", "DivInPlace"}));
}

TEST_F(FuseSums, NormsOfFewElementsAndOfInputsStay) {
  const Variable few = make_input({DType::float32, {7}, {}}, "few");
  const Mode fused = sums_in_steps(FastRun(), 64);
  EXPECT_EQ(op_names(function({few}, ops::norm2(few - 1.0), {.mode = fused}).graph()),
            (Names{"Sub", "Norm2"}));
  EXPECT_EQ(ops_of({ops::norm2(x)}), Names{"Norm2"});
}

// If gathered, terms that are added one by one would all be live at once.
TEST_F(FuseSums, TermsAreNotGathered) {
  std::vector<Variable> inputs;
  Variable total;
  for (int k = 0; k < 6; ++k) {
    inputs.push_back(make_input({DType::complex64, {kN}, {}}, "t" + std::to_string(k)));
    const Variable term = ops::fft(inputs.back(), {0});
    total = total.defined() ? total + term : term;
  }
  const std::vector<In> ins(inputs.begin(), inputs.end());
  const std::vector<Out> outs{Out(total, {.borrow = true}), Out(ops::norm2(total))};
  const std::vector<Tensor> arguments(6, at_x);
  EXPECT_LE(function(ins, outs, {.mode = sums_in_steps(FastRun(), 64)}).plan(arguments).peak_bytes,
            3 * kN * 8 + 64);
}

// An array whose readers wait for the sum would lie in memory meanwhile, also if it is not taken.
TEST_F(FuseSums, NoArrayIsMadeBeforeWhatItsReadersWaitFor) {
  const Variable limit = ops::norm2(x) > a;
  const Variable chosen = ops::ifelse(limit, x * 2.0 + y, ops::fft(y, {0}));
  const Names names = ops_of({ops::fft(chosen, {0})});
  EXPECT_EQ(std::count(names.begin(), names.end(), "Norm2"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "ElementwiseSums"), 0);
  EXPECT_EQ(ops_of({x * 2.0 + y, ops::ifelse(limit, y, x)})[0], "ElementwiseSums");
}

TEST_F(FuseSums, ExactModesKeepTheOrderOfTheTerms) {
  const Function f =
      function({x, y}, ops::norm2(x - y), {.mode = sums_in_steps(FastRun(), 64).exact()});
  EXPECT_EQ(f.dprint().find("ElementwiseSums"), std::string::npos) << f.dprint();
}

}  // namespace
}  // namespace palimpsest
