// SPDX-License-Identifier: Apache-2.0
// Stencils computed in the step that reads them.
#include <gtest/gtest.h>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/graph/op_registry.hpp"
#include "palimpsest/inspect/debug/debug_mode.hpp"
#include "palimpsest/ops/elementwise/elementwise_sums.hpp"
#include "palimpsest/ops/elementwise/one_pass.hpp"
#include "palimpsest/ops/gradient.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/ops/registry.hpp"
#include "palimpsest/ops/transforms/stencil.hpp"
#include "rewrite/rewrite_runner.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::ops_in;
using testing::same_bits;

using Names = std::vector<std::string>;

struct FuseFilters : ::testing::Test {
  const Extents shape{3, 19, 17};
  const TensorType type{DType::complex64, shape, {}};
  const Variable x = make_input(type, "x"), u = make_input(type, "u");
  const Tensor at_x = Tensor::random_normal(shape, DType::complex64, {1, 0}),
               at_u = Tensor::random_normal(shape, DType::complex64, {2, 0});
  const Stencil rows{.axis = 1, .taps = {-1, 1}, .edge = StencilEdge::nearest},
      columns{.axis = 2, .taps = {-1, 1}, .edge = StencilEdge::periodic};

  // The arrays of one pass and the norms over them.
  std::vector<Variable> pass(const std::vector<Variable>& arrays,
                             const std::vector<Variable>& leaves) const {
    const ops::Pass made = ops::one_pass(arrays, {arrays[0]}, leaves);
    std::vector<Variable> results = made.arrays;
    results.insert(results.end(), made.norms.begin(), made.norms.end());
    return results;
  }
  // The ops of the function; checks that it gives the bits of the function with stored stencils.
  Names ops_of(const std::vector<Variable>& results) const {
    const std::vector<Variable> inputs = testing::inputs_of(results);
    std::vector<Tensor> arguments;
    for (const Variable& v : inputs) arguments.push_back(v == x ? at_x : at_u);
    const auto values = [&](const Mode& mode) {
      const Function f = function(std::vector<In>(inputs.begin(), inputs.end()),
                                  std::vector<Out>(results.begin(), results.end()), {.mode = mode});
      std::vector<Tensor> made(f.output_count());
      f.call(arguments, made);
      return made;
    };
    const std::vector<Tensor> expected = values(FastRun().excluding({"fuse_filters"}));
    for (const Mode& mode : {FastRun(), FastRun().exact(), DebugMode({.patience = 1})}) {
      const std::vector<Tensor> got = values(mode);
      for (std::size_t k = 0; k < got.size(); ++k) EXPECT_TRUE(same_bits(got[k], expected[k])) << k;
    }
    return ops_in(inputs, results, "FastRun");
  }
};

TEST_F(FuseFilters, AStencilIsComputedWhereItIsRead) {
  const Variable Dx = ops::stencil(x, rows), Du = ops::stencil_adjoint(u, columns);
  EXPECT_EQ(ops_of(pass({Dx + Du}, {Dx, Du})), Names{"ElementwiseSums"});
  // Also of an array that is read unfiltered too.
  EXPECT_EQ(ops_of(pass({x - Dx * 0.5F}, {x, Dx})), Names{"ElementwiseSums"});
}

TEST_F(FuseFilters, AxesOfOneElementAreSeenThrough) {
  const Variable Dx = ops::expand_dims(ops::stencil(x, rows), {0, 2});
  const Variable v = ops::expand_dims(u, {0, 2});
  EXPECT_EQ(ops_of(pass({Dx * v}, {Dx, v})), Names{"ElementwiseSums"});
}

TEST_F(FuseFilters, WhatIsReadElsewhereIsStored) {
  const Variable Dx = ops::stencil(x, rows);
  std::vector<Variable> results = pass({Dx + u}, {Dx, u});
  results.push_back(Dx);
  EXPECT_EQ(ops_of(results), (Names{"Stencil", "ElementwiseSums"}));
  const Variable twice = ops::stencil(ops::stencil(x, rows), rows);
  // The second stencil reads an array that the first step stores.
  EXPECT_EQ(ops_of(pass({twice + u}, {twice, u})), (Names{"Stencil", "ElementwiseSums"}));
}

TEST_F(FuseFilters, AnArrayThatIsFilteredIsNotOverwritten) {
  // y could be overwritten here, but its neighbours are still read.
  const Variable y = ops::exp(u * 0.1F), Dy = ops::stencil(y, rows);
  const Names names = ops_of(pass({y + Dy}, {y, Dy}));
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names.back(), "ElementwiseSums");
  // Also if the filtered input is another view of it.
  const Variable Dv = ops::stencil(ops::flip(y, {1}), rows);
  EXPECT_EQ(ops_of(pass({y + Dv}, {y, Dv})).back(), "ElementwiseSums");
  // Another input can be.
  const Variable z = ops::exp(x * 0.1F), Dx = ops::stencil(u, columns);
  EXPECT_EQ(ops_of(pass({z + Dx}, {z, Dx})).back(), "ElementwiseSumsInPlace");
}

TEST_F(FuseFilters, NoMoreThanFour) {
  std::vector<Variable> leaves;
  Variable sum = u;
  for (const index_t offset : {-2, -1, 0, 1, 2}) {
    Stencil s = rows;
    s.offset = offset;
    leaves.push_back(ops::stencil(x, s));
    sum = sum + leaves.back();
  }
  leaves.push_back(u);
  const Names names = ops_of(pass({sum}, leaves));
  EXPECT_EQ(std::count(names.begin(), names.end(), "Stencil"), 1);
}

// The step can be differentiated and saved.
TEST_F(FuseFilters, TheStepIsAnOpAsOthers) {
  const Variable a = make_input({DType::float64, {4, 5}, {}}, "a");
  const Stencil first{.axis = 0, .taps = {-1, 1}, .edge = StencilEdge::nearest};
  ElementwiseProgram program(ScalarOp::add, std::array{DType::float64, DType::float64});
  const auto op = std::make_shared<ops::ElementwiseSums>(
      program, 1, std::vector<SumOfOutputs>{{SumOfOutputs::Kind::norm2, 0, 0}},
      ops::Elementwise::Overwrites(), std::vector<FilteredInput>{{1, first, false}});
  const Apply step = op->make_node(std::array{a, a});
  const Variable plain = a + ops::stencil(a, first);
  const Tensor at_a = Tensor::random_normal({4, 5}, DType::float64, {3, 0});
  const auto gradient_of = [&](const Variable& y) {
    return function({a}, grad(ops::sum(y * y), a))(at_a);
  };
  EXPECT_TRUE(testing::nearly_equal(gradient_of(step.output(0)), gradient_of(plain)));
  const Variable norm = step.output(1);
  EXPECT_TRUE(testing::nearly_equal(function({a}, grad(norm, a))(at_a), gradient_of(plain)));
  ops::register_library_ops();
  const OpPtr again = restore_op(op->name(), op->parameters());
  EXPECT_EQ(again->parameters(), op->parameters());
  EXPECT_TRUE(*again == *op);
  expect_error<FormatError>([&] { restore_op("ElementwiseSumsInPlace", op->parameters()); },
                            "in place");
  const auto refused = [&](std::vector<FilteredInput> filtered, ops::Elementwise::Overwrites over) {
    expect_error<ValueError>(
        [&] { ops::ElementwiseSums(program, 1, op->sums(), std::move(over), std::move(filtered)); },
        "filters");
  };
  refused({{2, first, false}}, {});
  refused({{0, first, false}, {0, first, true}}, {});
  refused({{0, first, false}}, {0});
  Stencil halves = first;
  halves.step = 2;
  refused({{0, halves, false}}, {});
  expect_error<ShapeError>(
      [&] {
        op->make_node(std::array{a, make_input({DType::float64, {1, 5}, {}}, "b")});
      },
      "filtered input 1");
}

}  // namespace
}  // namespace palimpsest
