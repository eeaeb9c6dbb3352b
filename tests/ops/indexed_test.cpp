// SPDX-License-Identifier: Apache-2.0
// Brackets on variables: basic entries, arrays, masks; reading and writing.
#include <gtest/gtest.h>

#include "ops/op_runner.hpp"
#include "palimpsest/ops/index/gather_op.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::evaluate;
using testing::expect_error;
using V = std::vector<double>;
using I = std::vector<index_t>;

struct Brackets : ::testing::Test {
  Variable x = make_input({DType::float64, {3, 4}, {}}, "x");
  Variable u = dmatrix("u");  // the same with unknown extents
  Variable t = make_input({DType::float64, {2, 3, 4}, {}}, "t");
  Variable i = lvector("i");
  Variable k = lscalar("k");
  Tensor matrix = Tensor::arange(12, DType::float64).reshape({3, 4});
  testing::Bindings bindings{{x, matrix},
                             {u, matrix},
                             {t, Tensor::arange(24, DType::float64).reshape({2, 3, 4})},
                             {i, Tensor::from<index_t>({2, 0, 2})},
                             {k, Tensor::scalar<index_t>(-1)}};
  V of(const Variable& v) const { return evaluate(v, bindings).to_vector<double>(); }
};

TEST_F(Brackets, TakeNumbersSlicesAndNewAxes) {
  EXPECT_EQ(x(1, slice(0, 4, 2)).type().str(), "float64 (2,)");
  EXPECT_EQ(of(x(1, slice(0, 4, 2))), (V{4, 6}));
  EXPECT_EQ(x(newaxis, ellipsis, 0).type().str(), "float64 (1, 3)");
  EXPECT_EQ(of(x[-1]), (V{8, 9, 10, 11}));
  EXPECT_EQ(of(u(all, -1)), (V{3, 7, 11}));
  EXPECT_EQ(x(1).owner().op().name(), "Subtensor");
  EXPECT_EQ(of(x()), matrix.to_vector<double>());
  EXPECT_EQ(of(x(Index(slice(2, {})))), (V{8, 9, 10, 11}));
}

TEST_F(Brackets, TakeIntegerArrays) {
  EXPECT_EQ(of(u[i]), (V{8, 9, 10, 11, 0, 1, 2, 3, 8, 9, 10, 11}));
  EXPECT_EQ(x(all, i).type().str(), "float64 (3, ?)");
  EXPECT_EQ(of(x(1, i)), (V{6, 4, 6}));
  EXPECT_EQ(of(x(i, i)), (V{10, 0, 10}));
  EXPECT_EQ(of(u[k]), (V{8, 9, 10, 11}));
  EXPECT_EQ(u[k].rank(), 1U);
  EXPECT_EQ(of(x(slice(1, {}), constant(I{0}))), (V{4, 8}));
}

// The rule of NumPy: the axes replace the arrays, or come first if a basic index is between them.
TEST_F(Brackets, PlaceTheAxesOfArraysAsNumPyDoes) {
  const Variable two = constant(Tensor::from<index_t>({0, 1}, Extents{2, 1}));
  const Variable three = constant(I{0, 2, 1});
  EXPECT_EQ(t(all, three).type().str(), "float64 (2, 3, 4)");
  EXPECT_EQ(t(all, two, three).type().str(), "float64 (2, 2, 3)");
  EXPECT_EQ(t(two, all, three).type().str(), "float64 (2, 3, 3)");
  EXPECT_EQ(t(0, all, three).type().str(), "float64 (3, 3)");
  EXPECT_EQ(of(t(0, all, three)), (V{0, 4, 8, 2, 6, 10, 1, 5, 9}));
  EXPECT_EQ(t(ellipsis, three, newaxis).type().str(), "float64 (2, 3, 3, 1)");
  EXPECT_EQ(t(newaxis, three[0], 0).type().str(), "float64 (1, 4)");
  EXPECT_EQ(of(t(three[0], ellipsis, 0)), (V{0, 4, 8}));
}

TEST_F(Brackets, TakeConstantMasks) {
  const Variable mask = constant(Tensor::from<bool>({true, false, true}));
  EXPECT_EQ(x[mask].type().str(), "float64 (2, 4)");
  EXPECT_EQ(of(x[mask]), (V{0, 1, 2, 3, 8, 9, 10, 11}));
  const Tensor flags = Tensor::from<bool>(
      {false, true, false, false, false, false, true, false, false, false, false, true},
      Extents{3, 4});
  EXPECT_EQ(of(x[constant(flags)]), (V{1, 6, 11}));
  EXPECT_EQ(of(x[constant(flags)].set(-1)), (V{0, -1, 2, 3, 4, 5, -1, 7, 8, 9, 10, -1}));
  const Variable late = make_input({DType::bool_, {3}, {}}, "mask");
  EXPECT_EQ(x[late].type().str(), "float64 (?, 4)");
  const Variable too_long = make_input({DType::bool_, {4}, {}}, "mask");
  expect_error<ShapeError>([&] { x[too_long]; }, "[index] axis 0: got a mask bool (4,)");
  expect_error<DTypeError>([&] { ops::nonzero(x); }, "[nonzero] mask: got float64");
  expect_error<ShapeError>([&] { ops::nonzero(constant(true)); }, "expected at least one axis");
  const Variable wrong = constant(Tensor::from<bool>({true, false}));
  expect_error<ShapeError>([&] { x[wrong]; }, "[index] axis 0: got a mask bool (2,)");
}

TEST_F(Brackets, SetAndIncWriteWhatWasRead) {
  const Variable z = dvector("z");
  bindings.push_back({z, Tensor::from<double>({1, 2, 3, 4})});
  const auto of_z = [&](const Variable& v) { return of(v); };
  EXPECT_EQ(of_z(z[1].set(9)), (V{1, 9, 3, 4}));
  EXPECT_EQ(of_z(z(slice(1, 3)).inc(10)), (V{1, 12, 13, 4}));
  EXPECT_EQ(of_z(z().set(0)), (V{0, 0, 0, 0}));
  EXPECT_EQ(of_z(z[i].set(constant(V{10, 20, 30}))), (V{20, 2, 30, 4}));
  EXPECT_EQ(of_z(z[i].inc(constant(V{10, 20, 30}))), (V{21, 2, 43, 4}));
  EXPECT_EQ(of_z(z[k].inc(0.5)), (V{1, 2, 3, 4.5}));
  EXPECT_EQ(of_z(ops::set_subtensor(z[0], 7)), (V{7, 2, 3, 4}));
  EXPECT_EQ(of_z(ops::inc_subtensor(z[0], 7)), (V{8, 2, 3, 4}));
  EXPECT_EQ(of(x(slice(1, {}), constant(I{0, -1})).set(0)),
            (V{0, 1, 2, 3, 0, 5, 6, 0, 0, 9, 10, 0}));
  EXPECT_EQ(of(x(slice({}, {}, 2), i).inc(100)), (V{100, 1, 202, 3, 4, 5, 6, 7, 108, 9, 210, 11}));
  // For an index of an index the last one is written: the result is the base of that.
  const Variable row = x[1];
  EXPECT_EQ(of(row[i].set(0)), (V{0, 5, 0, 7}));
}

TEST_F(Brackets, SetOnlyWhatWasRead) {
  expect_error<ValueError>([&] { x.set(1); }, "[set_subtensor] x: got a value that is not indexed");
  expect_error<ValueError>([&] { (x[0] * 2).inc(1); }, "[inc_subtensor]");
  const Variable n = lvector("n");
  expect_error<DTypeError>([&] { n(slice(0, 1)).inc(1.5); }, "[inc_subtensor] value: got");
  expect_error<DTypeError>([&] { n[i].inc(1.5); }, "Try astype");
  expect_error<ShapeError>(
      [&] {
        x[i].set(constant(Tensor::zeros({2, 2, 2})));
      },
      "[set] number of axes of the value");
  expect_error<ShapeError>([&] { x(0, 0, 0); }, "too many entries: got 3");
  expect_error<ShapeError>([&] { x(i, i, i); }, "[index] too many entries: got 3");
  expect_error<DTypeError>([&] { x[dvector("f")]; }, "[index] index array: got float64");
  expect_error<ValueError>([&] { x[constant(I{3})]; }, "range");
  expect_error<ValueError>([&] { of(x(all, i * 2)); }, "range");
}

TEST_F(Brackets, GradientsReachEveryOccurrence) {
  const Variable w = constant(V{1, 10, 100});
  const auto gradient = [&](const Variable& y, const Variable& v) {
    return of(grad(ops::sum(y), v));
  };
  const Variable z = dvector("z"), value = dvector("value");
  bindings.push_back({z, Tensor::from<double>({1, 2, 3, 4})});
  bindings.push_back({value, Tensor::from<double>({5, 6, 7})});
  EXPECT_EQ(gradient(z[i] * w, z), (V{10, 0, 101, 0}));
  // Position 2 is written twice: only the last value remains.
  const Variable set = z[i].set(value) * constant(V{1, 2, 3, 4});
  EXPECT_EQ(gradient(set, z), (V{0, 2, 0, 4}));
  EXPECT_EQ(gradient(set, value), (V{0, 1, 3}));
  const Variable inc = z[i].inc(value) * constant(V{1, 2, 3, 4});
  EXPECT_EQ(gradient(inc, z), (V{1, 2, 3, 4}));
  EXPECT_EQ(gradient(inc, value), (V{3, 1, 3}));
  const Variable fixed = z[constant(I{1, -3, 0})].set(value);
  EXPECT_EQ(gradient(fixed, value), (V{0, 1, 1}));
  EXPECT_EQ(gradient(z[constant(I{1, 0})].set(value(slice(0, 2))), value), (V{1, 1, 0}));
}

TEST_F(Brackets, InPlaceOverwritesOnlyWhatMayBe) {
  const Variable y = x[i].set(0.0);
  const Apply node = y.owner();
  EXPECT_EQ(node.op().inplace_on_inputs(node, {0})->name(), "AdvancedSetInPlace");
  const Variable wide = ops::broadcast_to(make_input({DType::float64, {1, 4}, {}}), {3, 4});
  const Apply on_wide = wide[i].inc(1).owner();
  EXPECT_EQ(on_wide.op().inplace_on_inputs(on_wide, {0}), nullptr);
  const auto in_place = std::make_shared<ops::UpdateAt>(
      ops::UpdateAt::Kind::set, ops::ArrayIndex{{0}, 0, false}, DType::float64, true);
  const Variable inputs[] = {wide, ops::zeros({1, 4}), i};
  expect_error<ValueError>([&] { in_place->make_node(inputs); }, "a broadcast view");
  const Variable floats[] = {x, ops::zeros({1, 4}, DType::float32), i};
  expect_error<DTypeError>([&] { in_place->make_node(floats); }, "expected float64");
  const Variable flat[] = {x, ops::zeros({4}), i};
  expect_error<ShapeError>([&] { in_place->make_node(flat); }, "expected 2");
  const Variable two[] = {x, ops::zeros({1, 4}), i, i};
  expect_error<ValueError>([&] { in_place->make_node(two); }, "number of index arrays: got 2");
}

TEST_F(Brackets, TakeAlongAnAxis) {
  const Variable two = constant(Tensor::from<index_t>({0, 3, 3, 1}, Extents{2, 2}));
  EXPECT_EQ(ops::take(x, two, 1).type().str(), "float64 (3, 2, 2)");
  EXPECT_EQ(of(ops::take(x, constant(I{11, 0}))), (V{11, 0}));
  EXPECT_EQ(of(ops::take(u, i, 0)), of(u[i]));
  EXPECT_EQ(of(ops::take(u, i)), (V{2, 0, 2}));
  EXPECT_EQ(of(ops::take(x, k, -1)), (V{3, 7, 11}));
  expect_error<ShapeError>([&] { ops::take(x, i, 2); }, "[take]");
}

}  // namespace
}  // namespace palimpsest
