// SPDX-License-Identifier: Apache-2.0
// Two elementwise steps with sums joined to one: the second one filters results of the first.
#include "palimpsest/ops/elementwise/joined_passes.hpp"

#include <gtest/gtest.h>

#include <random>

#include "palimpsest/base/config.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/graph/op_registry.hpp"
#include "palimpsest/inspect/debug/debug_mode.hpp"
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

Stencil difference(std::size_t axis, index_t offset = 0, StencilEdge edge = StencilEdge::nearest) {
  return {.axis = axis, .taps = {-1, 1}, .offset = offset, .edge = edge};
}

// A pass that computes `handed` and u' from x and u, and one that computes x' from x and filters of
// `handed`, with norms of all.
struct Passes {
  explicit Passes(const Extents& shape, DType dtype = DType::complex64)
      : x(make_input({dtype, shape, {}}, "x")), u(make_input({dtype, shape, {}}, "u")) {
    made = ops::one_pass({x * 0.5F - u, u + x * 0.25F}, {u * 2.0F}, std::vector<Variable>{x, u});
  }
  void then(const std::vector<Variable>& filtered) {
    std::vector<Variable> leaves = filtered;
    leaves.push_back(x);
    Variable sum = x;
    for (const Variable& v : filtered) sum = sum + v;
    const ops::Pass second = ops::one_pass({sum}, {sum, sum - x}, leaves);
    results = {made.arrays[1], made.norms[0]};
    results.insert(results.end(), second.arrays.begin(), second.arrays.end());
    results.insert(results.end(), second.norms.begin(), second.norms.end());
  }
  Names ops() const { return ops_in({x, u}, results, "FastRun"); }
  // The function gives the bits of the unjoined one; arguments are kept or lent.
  void expect_same_bits() const {
    const Tensor at_x = Tensor::random_normal(x.type().shape, x.dtype(), {1, 0}),
                 at_u = Tensor::random_normal(x.type().shape, x.dtype(), {2, 0});
    const auto values = [&](const Mode& mode, bool lent) {
      const Function f = function({In(x, {.is_mutable = lent}), In(u, {.is_mutable = lent})},
                                  std::vector<Out>(results.begin(), results.end()), {.mode = mode});
      const std::vector<Tensor> arguments{at_x.clone(), at_u.clone()};
      std::vector<Tensor> got(f.output_count());
      f.call(arguments, got);
      return got;
    };
    const std::vector<Tensor> expected = values(FastRun().excluding({"join_passes"}), false);
    for (const bool lent : {false, true}) {
      const std::vector<Tensor> got = values(FastRun(), lent);
      for (std::size_t k = 0; k < got.size(); ++k) EXPECT_TRUE(same_bits(got[k], expected[k])) << k;
    }
  }

  Variable x, u;
  ops::Pass made;
  std::vector<Variable> results;
};

TEST(JoinedPasses, AreOneStepWithTheBitsOfTwo) {
  for (const Extents& shape : {Extents{19, 17}, {300, 257}, {40, 60, 50}, {1, 80000}}) {
    for (const std::size_t axis : {std::size_t{0}, shape.size() - 1}) {
      for (const index_t offset : {0, -1, -3}) {
        for (const bool is_adjoint : {false, true}) {
          Passes passes(shape);
          const Variable c = passes.made.arrays[0];
          const Stencil s = difference(axis, offset);
          passes.then({is_adjoint ? ops::stencil_adjoint(c, s) : ops::stencil(c, s)});
          ASSERT_EQ(passes.ops(), Names{"JoinedPasses"});
          passes.expect_same_bits();
        }
      }
    }
  }
}

TEST(JoinedPasses, OfAllTypesAndEdges) {
  using enum StencilEdge;
  for (const DType dtype : {DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    for (const StencilEdge edge : {nearest, zero, nearest_then_zero, zero_then_nearest}) {
      Passes passes({350, 300}, dtype);
      passes.then({ops::stencil_adjoint(passes.made.arrays[0], difference(0, -1, edge))});
      ASSERT_EQ(passes.ops(), Names{"JoinedPasses"});
      passes.expect_same_bits();
    }
  }
}

TEST(JoinedPasses, OnAnyNumberOfThreadsAndInDebugMode) {
  Passes passes({400, 300});
  passes.then({ops::stencil_adjoint(passes.made.arrays[0], difference(0))});
  for (const int threads : {1, 2, 4}) {
    const ConfigScope scope({.threads = threads});
    passes.expect_same_bits();
  }
  const Function f = function({In(passes.x), In(passes.u)}, {Out(passes.results[2])},
                              {.mode = DebugMode({.patience = 1})});
  EXPECT_NO_THROW(f(Tensor::random_normal({400, 300}, DType::complex64, {1, 0}),
                    Tensor::random_normal({400, 300}, DType::complex64, {2, 0})));
}

TEST(JoinedPasses, ViewsInOtherExtentsAreSeenThrough) {
  Passes passes({1, 30, 20});
  const Variable c = passes.made.arrays[0](0);
  passes.then({ops::expand_dims(ops::stencil_adjoint(c, difference(0)), {0})});
  EXPECT_EQ(passes.ops(), Names{"JoinedPasses"});
  passes.expect_same_bits();
}

TEST(JoinedPasses, NotWhereFiltersWrapAroundOrReachFar) {
  const Names apart{"ElementwiseSums", "ElementwiseSums"};
  Passes wraps({30, 20});
  wraps.then({ops::stencil(wraps.made.arrays[0], difference(0, 0, StencilEdge::periodic))});
  EXPECT_EQ(wraps.ops(), apart);
  Passes far({3, 300, 300});  // 90,000 elements of 8 bytes
  far.then({ops::stencil(far.made.arrays[0], difference(0))});
  EXPECT_EQ(far.ops(), apart);
  // The filter reaches as far as a thread's part: all of it would be computed twice.
  Passes twice({10, 30000}, DType::float32);
  twice.then({ops::stencil(twice.made.arrays[0], difference(0))});
  EXPECT_EQ(twice.ops(), apart);
}

TEST(JoinedPasses, NotWhatIsReadElsewhere) {
  Passes passes({30, 20});
  const Variable c = passes.made.arrays[0];
  passes.then({ops::stencil(c, difference(0))});
  passes.results.push_back(c);
  EXPECT_EQ(passes.ops(), (Names{"ElementwiseSums", "ElementwiseSums"}));
  // The second step reads another array of the first one unfiltered.
  Passes both({30, 20});
  both.then({ops::stencil(both.made.arrays[0], difference(0)), both.made.arrays[1]});
  EXPECT_EQ(both.ops(), (Names{"ElementwiseSums", "ElementwiseSums"}));
  both.expect_same_bits();
}

// The step can be differentiated and saved.
TEST(JoinedPasses, AreAnOpAsOthers) {
  const TensorType type{DType::float64, {4, 5}, {}};
  const Variable x = make_input(type, "x"), u = make_input(type, "u");
  const std::vector<SumOfOutputs> norm{{SumOfOutputs::Kind::norm2, 0, 0}};
  ElementwiseProgram first;
  const int a = first.input(DType::float64), b = first.input(DType::float64);
  first.output(first.apply(ScalarOp::add, {a, b}));
  first.output(first.apply(ScalarOp::mul, {a, b}));
  const ElementwiseProgram second(ScalarOp::sub, std::array{DType::float64, DType::float64});
  const auto one = std::make_shared<const ops::ElementwiseSums>(first, 1, norm);
  const auto two_of = [&](const Stencil& s) {
    return std::make_shared<const ops::ElementwiseSums>(
        second, 1, norm, ops::Elementwise::Overwrites(), std::vector<FilteredInput>{{1, s, true}});
  };
  const auto two = two_of(difference(0));
  const auto op = std::make_shared<const ops::JoinedPasses>(one, two, std::vector<HandedOn>{{1, 1}},
                                                            Extents{4, 5});
  const Apply step = op->make_node(std::array{x, u, x});
  const Variable plain = x - ops::stencil_adjoint(x * u, difference(0));
  const Tensor at_x = Tensor::random_normal({4, 5}, DType::float64, {3, 0}),
               at_u = Tensor::random_normal({4, 5}, DType::float64, {4, 0});
  const auto gradient_of = [&](const Variable& y, const Variable& of) {
    return function({x, u}, grad(ops::sum(y * y), of))(at_x, at_u);
  };
  for (const Variable& of : {x, u}) {
    EXPECT_TRUE(testing::nearly_equal(gradient_of(step.output(1), of), gradient_of(plain, of)));
    EXPECT_TRUE(
        testing::nearly_equal(gradient_of(step.output(3), of), gradient_of(ops::norm2(plain), of)));
    EXPECT_TRUE(testing::nearly_equal(gradient_of(step.output(0), of), gradient_of(x + u, of)));
  }
  ops::register_library_ops();
  const OpPtr again = restore_op(op->name(), op->parameters());
  EXPECT_TRUE(*again == *op);
  const OpPtr in_place = op->inplace_on_inputs(op->make_node(std::array{x, u, plain}), {1, 2});
  ASSERT_NE(in_place, nullptr);
  EXPECT_EQ(in_place->name(), "JoinedPassesInPlace");
  EXPECT_TRUE(*restore_op(in_place->name(), in_place->parameters()) == *in_place);
  EXPECT_TRUE(*in_place->pure() == *op);
  expect_error<FormatError>([&] { restore_op("JoinedPasses", in_place->parameters()); },
                            "in place");
  const auto refused = [&](std::vector<HandedOn> handed, const Stencil& s) {
    expect_error<ValueError>(
        [&] {
          ops::JoinedPasses(one, two_of(s), std::move(handed), Extents{4, 5});
        },
        "[JoinedPasses]");
  };
  refused({{0, 1}}, difference(0));  // an array
  refused({{1, 0}}, difference(0));  // not filtered
  refused({}, difference(0));
  refused({{1, 1}}, difference(0, 0, StencilEdge::periodic));
  expect_error<ShapeError>(
      [&] {
        const Variable other = make_input({DType::float64, {5, 5}, {}});
        op->make_node(std::array{other, other, x});
      },
      "elements");
}

}  // namespace
}  // namespace palimpsest
