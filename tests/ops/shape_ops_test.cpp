// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/shape/shape_ops.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "ops/op_runner.hpp"
#include "palimpsest/ops/linear.hpp"
#include "palimpsest/ops/shape/rearrange_op.hpp"
#include "palimpsest/ops/shape/shape_op.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::evaluate;
using testing::expect_error;

Variable input(Extents shape, DType dtype = DType::float64) {
  return make_input({dtype, std::move(shape), {}});
}

Tensor count(Extents shape) {
  return Tensor::arange(element_count(shape), DType::float64).reshape(shape);
}

std::vector<double> run(const Variable& y, const Variable& x, const Tensor& value) {
  return evaluate(y, {{x, value}}).to_vector<double>();
}

using V = std::vector<double>;

TEST(Reshape, InfersOneExtentNowOrWhenItIsKnown) {
  const Variable x = input({3, 4});
  EXPECT_EQ(ops::reshape(x, {2, -1}).type().shape, (Extents{2, 6}));
  EXPECT_EQ(ops::reshape(x, {3, 4}), x);
  const Variable u = input({kUnknown, 4});
  const Variable y = ops::reshape(u, {2, -1});
  EXPECT_EQ(y.type().shape, (Extents{2, kUnknown}));
  EXPECT_EQ(evaluate(y, {{u, count({3, 4})}}).shape(), (Extents{2, 6}));
}

TEST(Reshape, KeepsRowMajorOrderOfAnyLayout) {
  const Variable x = input({4, 6});
  const Tensor value = count({6, 4}).permute({1, 0});
  const std::vector<double> expected = value.to_vector<double>();
  EXPECT_EQ(run(ops::reshape(x, {3, 8}), x, value), expected);
  // With gaps in the destination, neither side can be viewed with the extents of the other.
  const Variable y = ops::reshape(x, {3, 8});
  EXPECT_EQ(
      testing::run_op(y.owner(), {value}, {.layout = WindowLayout::strided}).to_vector<double>(),
      expected);
}

TEST(Reshape, RefusesWhatDoesNotFit) {
  expect_error<ShapeError>(
      [] {
        ops::reshape(input({3, 4}), {5, -1});
      },
      "[reshape] numbers of elements differ: got (3, 4)");
  expect_error<ShapeError>([] { ops::reshape(input({3, 4}), {11}); }, "as many as in (11,)");
  expect_error<ShapeError>([] { ops::reshape(input({0, 4}), {0, -1}); }, "[reshape]");
  expect_error<ShapeError>(
      [] {
        ops::reshape(input({3, 4}), {-1, -1});
      },
      "expected at most one -1");
  expect_error<ShapeError>(
      [] {
        ops::reshape(input({3, 4}), {-2, 6});
      },
      "expected at most one -1 and none below");
  expect_error<ShapeError>([] { ops::reshape(input({1}), Extents(17, 1)); },
                           "[reshape] number of axes: got 17, expected at most 16");
  const Variable u = input({kUnknown}), y = ops::reshape(u, {2, 3});
  expect_error<ShapeError>(
      [&] { y.owner().op().infer_shapes(y.owner(), std::vector<Extents>{{7}}); },
      "numbers of elements differ: got (7,)");
}

TEST(Reshape, HasADerivativeWhereExtentsAreUnknown) {
  const Variable u = input({kUnknown, kUnknown}), y = ops::reshape(u, {6}), w = input({6});
  const Variable g = pullback({&y, 1}, {&u, 1}, {&w, 1})[0];
  EXPECT_EQ(g.rank(), 2U);
  EXPECT_TRUE(equal(testing::evaluate(g, {{u, count({2, 3})}, {w, count({6})}}), count({2, 3})));
}

TEST(Transpose, PermutesAndChecksItsOrder) {
  const Variable x = input({2, 3});
  EXPECT_EQ(ops::transpose(x, {0, 1}), x);
  EXPECT_EQ(run(ops::transpose(x, {1, 0}), x, count({2, 3})), (V{0, 3, 1, 4, 2, 5}));
  expect_error<ShapeError>([&] { ops::transpose(x, {0}); }, "[transpose] number of axes");
  expect_error<ShapeError>([&] { ops::transpose(x, {0, 0}); }, "repeated axis");
  expect_error<ShapeError>([&] { ops::transpose(x, {0, 2}); }, "axis out of range: got 2");
}

TEST(ExpandDims, PutsAxesAtPositionsOfTheResult) {
  const Variable x = input({2, 3});
  EXPECT_EQ(ops::expand_dims(x, {0, 2}).type().shape, (Extents{1, 2, 1, 3}));
  EXPECT_EQ(ops::expand_dims(x, {}), x);
  expect_error<ShapeError>([&] { ops::expand_dims(x, {4}); }, "[expand_dims] axis out of range");
  expect_error<ShapeError>([] { ops::expand_dims(input(Extents(16, 1)), {0}); },
                           "[expand_dims] number of axes: got 17");
}

TEST(Squeeze, WantsExtentOne) {
  EXPECT_EQ(ops::squeeze(input({2, 1, 3}), {1}).type().shape, (Extents{2, 3}));
  expect_error<ShapeError>(
      [] {
        ops::squeeze(input({2, 1, 3}), {0});
      },
      "[squeeze] axis 0: got extent 2 in (2, 1, 3), expected 1");
  const Variable y = ops::squeeze(input({kUnknown, 2}), {0});
  expect_error<ShapeError>(
      [&] {
        y.owner().op().infer_shapes(y.owner(), std::vector<Extents>{{4, 2}});
      },
      "got extent 4");
}

TEST(BroadcastTo, StretchesOnesAndAddsLeadingAxes) {
  const Variable x = input({2, 1});
  EXPECT_EQ(run(ops::broadcast_to(x, {2, 2}), x, count({2, 1})), (V{0, 0, 1, 1}));
  EXPECT_EQ(ops::broadcast_to(x, {3, -1, -1}).type().shape, (Extents{3, 2, 1}));
  EXPECT_EQ(ops::broadcast_to(x, {2, 1}), x);
  expect_error<ShapeError>(
      [&] {
        ops::broadcast_to(x, {3, 2});
      },
      "[broadcast_to] axis 0: got (2, 1)");
  expect_error<ShapeError>([&] { ops::broadcast_to(x, {2}); },
                           "[broadcast_to] number of axes: got (2, 1), expected at most 1");
  const Variable y = ops::broadcast_to(input({kUnknown}), {3});
  expect_error<ShapeError>(
      [&] { y.owner().op().infer_shapes(y.owner(), std::vector<Extents>{{1}}); },
      "only an axis known to be 1");
}

TEST(BroadcastLike, CopiesWhereTheExtentsAreUnknownInTheGraph) {
  const Variable w = input({1, 2}), x = input({kUnknown, 2});
  const Variable y = ops::broadcast_like(w, x);
  EXPECT_TRUE(y.owner().op().view_map(y.owner()).empty());
  const Tensor value = evaluate(y, {{w, count({1, 2})}, {x, count({3, 2})}});
  EXPECT_EQ(value.to_vector<double>(), (V{0, 1, 0, 1, 0, 1}));
  expect_error<ShapeError>([&] { ops::broadcast_like(input({2}), x); },
                           "[BroadcastLike] numbers of axes differ");
  expect_error<ShapeError>([&] { ops::broadcast_like(input({1, 5}), x); }, "extents differ");
}

TEST(SpecifyShape, FixesWhatIsUnknownAndChecksTheRest) {
  const Variable x = input({kUnknown, 3});
  const Variable y = ops::specify_shape(x, {2, kUnknown});
  EXPECT_EQ(y.type().shape, (Extents{2, 3}));
  EXPECT_EQ(ops::specify_shape(y, {2, 3}), y);
  expect_error<ShapeError>(
      [&] {
        ops::specify_shape(x, {2, 4});
      },
      "[specify_shape] axis 1: extents differ: got (?, 3), expected (2, 4)");
  expect_error<ShapeError>([&] { ops::specify_shape(x, {2}); },
                           "[specify_shape] numbers of axes differ");
  expect_error<ShapeError>(
      [&] {
        y.owner().op().infer_shapes(y.owner(), std::vector<Extents>{{5, 3}});
      },
      "[specify_shape] axis 0: extents differ: got (5, 3)");
}

TEST(Flip, ReversesAxes) {
  const Variable x = input({2, 2});
  EXPECT_EQ(run(ops::flip(x, {-1}), x, count({2, 2})), (V{1, 0, 3, 2}));
  EXPECT_EQ(run(ops::flip(x, {0, 1}), x, count({2, 2})), (V{3, 2, 1, 0}));
  EXPECT_EQ(ops::flip(x, {}), x);
  expect_error<ShapeError>([&] { ops::flip(x, {0, -2}); }, "[flip] repeated axis");
}

TEST(Pad, PutsABorderOfOneValue) {
  const Variable x = input({2, 1});
  EXPECT_EQ(run(ops::pad(x, {{0, 1}, {2, 0}}, 9), x, count({2, 1})),
            (V{9, 9, 0, 9, 9, 1, 9, 9, 9}));
  EXPECT_EQ(ops::pad(x, {{0, 0}, {0, 0}}), x);
  EXPECT_EQ(ops::pad(input({kUnknown}), {{1, 2}}).type().shape, (Extents{kUnknown}));
}

TEST(Pad, RefusesNegativeWidthsAndValuesThatDoNotFit) {
  expect_error<ValueError>(
      [] {
        ops::pad(input({2}), {{-1, 0}});
      },
      "[pad] width: got (-1, 0), expected none negative");
  expect_error<ShapeError>(
      [] {
        ops::pad(input({2, 2}), {{1, 0}});
      },
      "[pad] number of widths: got 1");
  expect_error<DTypeError>(
      [] {
        ops::pad(input({2}, DType::int8), {{1, 0}}, 128);
      },
      "[pad] value: got 128, expected one that fits int8");
  expect_error<DTypeError>([] { ops::pad(input({2}, DType::int8), {{1, 0}}, 0.5); }, "got 0.5");
  expect_error<DTypeError>([] { ops::pad(input({2}, DType::uint8), {{1, 0}}, -1); }, "fits uint8");
  expect_error<DTypeError>([] { ops::pad(input({2}, DType::bool_), {{1, 0}}, 2); }, "fits bool");
  EXPECT_EQ(ops::pad(input({2}, DType::int8), {{1, 0}}, -128).dtype(), DType::int8);
}

TEST(Pad, ValuesAreToldApart) {
  const Variable x = input({2});
  EXPECT_FALSE(ops::pad(x, {{1, 0}}, 0.1).owner().op() ==
               ops::pad(x, {{1, 0}}, 0.1 + 1e-17 + 1e-16).owner().op());
}

TEST(Roll, RotatesByAnyShift) {
  const Variable x = input({4}), u = input({kUnknown});
  EXPECT_EQ(run(ops::roll(x, 1, 0), x, count({4})), (V{3, 0, 1, 2}));
  EXPECT_EQ(run(ops::roll(x, -5, 0), x, count({4})), (V{1, 2, 3, 0}));
  EXPECT_EQ(run(ops::roll(u, 9, 0), u, count({4})), (V{3, 0, 1, 2}));
  EXPECT_EQ(ops::roll(x, 8, 0), x);
  expect_error<ShapeError>([&] { ops::roll(x, 1, 1); }, "[roll] axis out of range");
}

TEST(Join, JoinsAndConverts) {
  const Variable x = input({2}), y = input({3}, DType::float32);
  const Variable parts[] = {x, y};
  const Variable z = ops::join(0, parts);
  EXPECT_EQ(z.type().shape, (Extents{5}));
  const Tensor value = evaluate(z, {{x, count({2})}, {y, count({3}).to(DType::float32)}});
  EXPECT_EQ(value.to_vector<double>(), (V{0, 1, 0, 1, 2}));
  EXPECT_EQ(ops::join(0, {&x, 1}), x);
}

TEST(Join, RefusesPartsThatDoNotFit) {
  const auto join = [](std::vector<Variable> parts, index_t axis) { ops::join(axis, parts); };
  expect_error<ValueError>([&] { join({}, 0); }, "[join] got no parts");
  expect_error<ShapeError>(
      [&] {
        join({input({2}), input({2, 2})}, 0);
      },
      "[join] numbers of axes differ");
  expect_error<ShapeError>(
      [&] {
        join({input({2, 2}), input({2, 3})}, 0);
      },
      "[join] axis 1: extents differ: got (2, 2) and (2, 3)");
  expect_error<ShapeError>([&] { join({input({2})}, 1); }, "[join] axis out of range");
  const Variable mixed[] = {input({2}), input({2}, DType::int8)};
  expect_error<DTypeError>([&] { std::make_shared<ops::Join>(0)->make_node(mixed); },
                           "[join] dtypes of parts: got float64 and int8");
  const Variable parts[] = {input({kUnknown}), input({2})};
  EXPECT_EQ(ops::join(0, parts).type().shape, (Extents{kUnknown}));
}

}  // namespace
}  // namespace palimpsest
