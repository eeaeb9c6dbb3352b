// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/index/index.hpp"

#include <gtest/gtest.h>

#include "ops/op_runner.hpp"
#include "palimpsest/ops/index/gather_op.hpp"
#include "palimpsest/ops/index/index_op.hpp"
#include "palimpsest/ops/linear.hpp"
#include "palimpsest/ops/shape/rearrange_op.hpp"
#include "palimpsest/ops/shape/shape_ops.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::evaluate;
using testing::expect_error;
using V = std::vector<double>;

Variable input(Extents shape, DType dtype = DType::float64) {
  return make_input({dtype, std::move(shape), {}});
}

Tensor count(Extents shape) {
  return Tensor::arange(element_count(shape), DType::float64).reshape(shape);
}

Variable indices(std::vector<index_t> values) { return constant(Tensor::from(values)); }

TEST(BasicIndex, SelectsWhatTheTensorSelects) {
  const Tensor value = count({4, 5, 3});
  const Variable x = input({4, 5, 3}), u = input({kUnknown, kUnknown, kUnknown});
  const std::vector<std::vector<Index>> indices = {{index_t{2}},
                                                   {index_t{-1}, all, index_t{0}},
                                                   {slice(1, 3), slice({}, {}, 2)},
                                                   {slice({}, {}, -1), ellipsis, slice(2, {}, -2)},
                                                   {newaxis, ellipsis, newaxis, index_t{1}},
                                                   {slice(3, 1)},
                                                   {slice(-100, 100), slice(4, -100, -3)},
                                                   {ellipsis, slice(2, 2)}};
  for (const auto& where : indices) {
    const Tensor expected = value.index_with(where);
    const Variable y = ops::index(x, where);
    EXPECT_EQ(y.type().shape, expected.shape());
    EXPECT_TRUE(equal(evaluate(y, {{x, value}}), expected)) << y.owner().op().str();
    EXPECT_TRUE(equal(evaluate(ops::index(u, where), {{u, value}}), expected));
  }
}

TEST(BasicIndex, OfEverythingIsTheVariableItself) {
  const Variable x = input({4, kUnknown});
  EXPECT_EQ(ops::index(x, {}), x);
  EXPECT_EQ(ops::index(x, {all, slice({}, {})}), x);
  EXPECT_EQ(ops::index(x, {slice(0, {}), ellipsis}), x);
}

TEST(BasicIndex, PrintsItsEntries) {
  const Variable x = input({4, 5, 3});
  EXPECT_EQ(ops::index(x, {index_t{-1}, newaxis, slice(1, {}, 2)}).owner().op().str(),
            "Subtensor{-1, None, 1::2, :}");
}

TEST(BasicIndex, RefusesWhatDoesNotFit) {
  const Variable x = input({4, 5});
  const auto at = [&](std::vector<Index> where) { ops::index(x, std::move(where)); };
  expect_error<ShapeError>([&] { at({index_t{4}}); },
                           "[index] axis 0: element out of range: got 4, expected -4 .. 3");
  expect_error<ShapeError>([&] { at({all, index_t{-6}}); }, "axis 1: element out of range: got -6");
  expect_error<ShapeError>([&] { at({all, all, all}); }, "[index] too many entries: got 3");
  expect_error<ShapeError>([&] { at({ellipsis, ellipsis}); }, "several '...'");
  expect_error<ValueError>([&] { at({slice(0, 1, 0)}); }, "step of a slice: got 0");
  const Variable y = ops::index(input({kUnknown}), {index_t{3}});
  expect_error<ShapeError>(
      [&] { y.owner().op().infer_shapes(y.owner(), std::vector<Extents>{{3}}); },
      "element out of range: got 3");
}

TEST(BasicIndex, AdjointOfABlockIsAPadAndOfOthersASet) {
  const Variable x = input({4, 5}), block = ops::index(x, {slice(1, 3), index_t{-1}});
  const Variable w = input({2});
  const Variable adjoint = linear_adjoint(block, x, w);
  EXPECT_NE(dynamic_cast<const ops::Pad*>(&adjoint.owner().op()), nullptr);
  EXPECT_EQ(adjoint.type().shape, (Extents{4, 5}));
  const Variable strided = ops::index(x, {slice({}, {}, 2), index_t{0}});
  const Variable other = linear_adjoint(strided, x, w);
  EXPECT_NE(dynamic_cast<const ops::UpdateSubtensor*>(&other.owner().op()), nullptr);
}

TEST(SetSubtensor, ReplacesAndIncreases) {
  const Variable x = input({2, 3}), v = input({2});
  const testing::Bindings bindings{{x, count({2, 3})}, {v, Tensor::from<double>({10, 20})}};
  EXPECT_EQ(
      evaluate(ops::set_subtensor(x, {index_t{1}, slice(1, {})}, v), bindings).to_vector<double>(),
      (V{0, 1, 2, 3, 10, 20}));
  EXPECT_EQ(
      evaluate(ops::inc_subtensor(x, {all, slice({}, {}, -2)}, v), bindings).to_vector<double>(),
      (V{20, 1, 12, 23, 4, 15}));
  EXPECT_EQ(evaluate(ops::set_subtensor(x, {}, constant(Tensor::scalar(7))), bindings)
                .to_vector<double>(),
            (V(6, 7)));
}

TEST(SetSubtensor, RefusesValuesThatDoNotFit) {
  const Variable x = input({2, 3});
  expect_error<ShapeError>([&] { ops::set_subtensor(x, {index_t{0}}, input({2})); },
                           "[SetSubtensor] axis 0: extents differ: got (2,) and (3,)");
  expect_error<ShapeError>(
      [&] {
        ops::inc_subtensor(x, {index_t{0}}, input({1, 3}));
      },
      "[inc_subtensor] number of axes of the value: got float64 (1, 3)");
  expect_error<DTypeError>([&] { ops::set_subtensor(x, {}, input({3}, DType::complex64)); },
                           "[astype] complex numbers to real ones");
  using ops::UpdateSubtensor;
  const ops::BasicIndex first({index_t{0}}, 2);
  const auto make = [&](const Variable& target, const Variable& value, bool in_place) {
    const Variable inputs[] = {target, value};
    std::make_shared<UpdateSubtensor>(UpdateSubtensor::Kind::set, first, DType::float64, in_place)
        ->make_node(inputs);
  };
  expect_error<DTypeError>([&] { make(x, input({3}, DType::float32), false); },
                           "[SetSubtensor] got float64 (2, 3) and float32 (3,), expected float64");
  expect_error<ShapeError>([&] { make(x, input({}), false); },
                           "number of axes of the value: got float64 (), expected 1");
  expect_error<ValueError>(
      [&] {
        make(ops::broadcast_to(input({1, 3}), {2, 3}), input({3}), true);
      },
      "a broadcast view");
  const Variable y = ops::set_subtensor(x, {index_t{0}}, input({kUnknown}));
  expect_error<ShapeError>(
      [&] {
        y.owner().op().infer_shapes(y.owner(), std::vector<Extents>{{2, 3}, {1}});
      },
      "extents differ: got (1,) and (3,)");
}

TEST(Gather, ReadsPointsNegativeOnesFromTheEnd) {
  const Variable x = input({2, 3});
  const Variable at[] = {indices({0, -1, 1}), indices({2, 0, -3})};
  EXPECT_EQ(evaluate(ops::gather(x, at), {{x, count({2, 3})}}).to_vector<double>(), (V{2, 3, 3}));
  EXPECT_FALSE(ops::gather(x, at).owner().op().can_fail());
}

TEST(Gather, ConvertsIntegersAndBroadcastsIndexArrays) {
  const Variable x = input({2, 3});
  const Variable rows = constant(Tensor::from<std::int8_t>({0, 1}, Extents{2, 1}));
  const Variable at[] = {rows, indices({2, 0})};
  const Variable y = ops::gather(x, at);
  EXPECT_EQ(y.type().shape, (Extents{2, 2}));
  EXPECT_EQ(evaluate(y, {{x, count({2, 3})}}).to_vector<double>(), (V{2, 0, 5, 3}));
}

TEST(Gather, IndicesOutOfRangeAreFoundAsSoonAsSizesAreKnown) {
  const Variable bad = indices({0, 3});
  expect_error<ValueError>([&] { ops::gather(input({3}), {&bad, 1}); }, "range");
  const Variable late = ops::gather(input({kUnknown}), {&bad, 1});
  const std::vector<Extents> shapes{{3}, {2}};
  expect_error<ValueError>([&] { late.owner().op().infer_shapes(late.owner(), shapes); }, "range");
  const Variable x = input({3}), at = input({2}, DType::int64);
  const Variable y = ops::gather(x, {&at, 1});
  EXPECT_TRUE(y.owner().op().can_fail());
  expect_error<ValueError>(
      [&] {
        evaluate(y, {{x, count({3})}, {at, Tensor::from<index_t>({0, -4})}});
      },
      "range");
  expect_error<ValueError>([&] { ops::scatter_add(input({2}), {&bad, 1}, {3}); }, "range");
  const Variable s = ops::scatter_add(input({2}), {&at, 1}, {3});
  EXPECT_TRUE(s.owner().op().can_fail());
  expect_error<ValueError>(
      [&] {
        testing::run_op(s.owner(), {count({2}), Tensor::from<index_t>({0, 3})});
      },
      "range");
}

TEST(Gather, RefusesWhatDoesNotFit) {
  const Variable x = input({3}), at = indices({0});
  expect_error<ValueError>([&] { ops::gather(x, {}); }, "[gather] got no index array");
  const Variable floats = input({2});
  expect_error<DTypeError>(
      [&] {
        ops::gather(x, {&floats, 1});
      },
      "[gather] index array: got float64 (2,), expected integers");
  const Variable two[] = {at, at};
  expect_error<ShapeError>([&] { ops::gather(x, two); }, "[gather] number of index arrays: got 2");
  const Variable uneven[] = {indices({0, 1}), indices({0, 1, 2})};
  expect_error<ShapeError>([&] { ops::gather(input({3, 3}), uneven); }, "extents differ");
  const auto last = [](bool constant) { return ops::ArrayIndex{{0}, 0, constant}; };
  const Variable varying[] = {x, input({2}, DType::int64)};
  expect_error<ValueError>([&] { std::make_shared<ops::Gather>(last(true))->make_node(varying); },
                           "expected a constant");
  const Variable wrong[] = {x, input({2}, DType::int32)};
  expect_error<DTypeError>([&] { std::make_shared<ops::Gather>(last(false))->make_node(wrong); },
                           "expected int64 of 1 axes");
}

TEST(Gather, HasADerivativeWhereExtentsAreUnknown) {
  const Variable u = input({kUnknown}), at = indices({0, 2, 2}), y = ops::gather(u, {&at, 1});
  const Variable w = constant(V{1, 10, 100});
  const Variable g = pullback({&y, 1}, {&u, 1}, {&w, 1})[0];
  EXPECT_EQ(evaluate(g, {{u, count({4})}}).to_vector<double>(), (V{1, 0, 110, 0}));
}

TEST(ScatterAdd, AccumulatesRepeatedPoints) {
  const Variable y = input({4}), at = indices({1, 1, -1, 1});
  EXPECT_EQ(evaluate(ops::scatter_add(y, {&at, 1}, {3}), {{y, Tensor::from<double>({1, 2, 4, 8})}})
                .to_vector<double>(),
            (V{0, 11, 4}));
}

TEST(ScatterAdd, RefusesWhatDoesNotFit) {
  const Variable at = indices({0, 1});
  expect_error<ShapeError>(
      [&] {
        ops::scatter_add(input({3}), {&at, 1}, {3});
      },
      "[scatter_add] axis 0: values and points differ: got (3,) and (2,)");
  expect_error<ShapeError>(
      [&] {
        ops::scatter_add(input({2}), {&at, 1}, {3, 3});
      },
      "expected one array per extent of (3, 3)");
  expect_error<ShapeError>(
      [&] {
        ops::scatter_add(input({2}), {&at, 1}, {-1});
      },
      "negative extent");
}

}  // namespace
}  // namespace palimpsest
