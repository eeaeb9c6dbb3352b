// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/shape/strided.hpp"

#include <gtest/gtest.h>

#include <complex>

#include "ops/op_runner.hpp"
#include "palimpsest/graph/op.hpp"
#include "palimpsest/ops/common.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/gradient.hpp"
#include "palimpsest/ops/reduce/reduce.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::evaluate;
using testing::expect_error;
using testing::input_like;

Tensor counted(Extents shape) {
  return Tensor::arange(element_count(shape)).to(DType::float64).reshape(shape);
}

TEST(Strided, ShowsWhatTheTensorOfTheseStridesShows) {
  const Tensor x = counted({3, 4});
  const Variable v = input_like(x);
  const auto shown = [&](Extents extents, Strides strides, index_t offset) {
    return evaluate(ops::as_strided(v, extents, strides, offset), {{v, x}}).to_vector<double>();
  };
  EXPECT_EQ(shown({2, 2}, {4, 1}, 5), std::vector<double>({5, 6, 9, 10}));
  EXPECT_EQ(shown({3}, {-4}, 11), std::vector<double>({11, 7, 3}));
  EXPECT_EQ(shown({2, 3}, {1, 1}, 0), std::vector<double>({0, 1, 2, 1, 2, 3}));
  EXPECT_EQ(shown({2, 2}, {0, 3}, 2), std::vector<double>({2, 5, 2, 5}));
  EXPECT_EQ(shown({}, {}, 7), std::vector<double>({7}));
  EXPECT_EQ(shown({0, 2}, {9, 9}, 99), std::vector<double>());
}

// Elements are numbered in row-major order, for any strides.
TEST(Strided, OfAnArrayThatIsNotDenseCountsItsElements) {
  const Tensor x = counted({4, 3}).transpose(0, 1);
  ASSERT_FALSE(x.is_contiguous());
  const Variable v = input_like(x);
  const Tensor y = evaluate(ops::as_strided(v, {3}, {4}, 1), {{v, x}});
  EXPECT_EQ(y.to_vector<double>(), std::vector<double>({3, 4, 5}));
  const Tensor every_other = counted({8}).narrow(0, 0, 8)(slice({}, {}, 2));
  const Variable w = input_like(every_other);
  const Tensor pairs =
      evaluate(ops::as_strided(w, {2}, {1}, 0, DType::complex128), {{w, every_other}});
  EXPECT_EQ(pairs.to_vector<std::complex<double>>(),
            (std::vector<std::complex<double>>{{0, 2}, {4, 6}}));
}

TEST(Strided, RefusesExtentsAndStridesThatFitNoArray) {
  const Variable v = make_input({DType::float64, {6}, {}});
  EXPECT_THROW(ops::as_strided(v, {-1}, {3}, 0), ShapeError);
  EXPECT_THROW(ops::as_strided(v, {2, -3}, {1, 1}, 0), ShapeError);
  EXPECT_THROW(ops::as_strided(v, {2}, {1, 1}, 0), ShapeError);
}

TEST(Strided, ReadsBytesAsAnotherKindOfNumber) {
  const Tensor z = Tensor::from<std::complex<float>>({{1, 2}, {3, 4}, {5, 6}});
  const Variable v = input_like(z);
  const Tensor imaginary = evaluate(ops::as_strided(v, {3}, {2}, 1, DType::float32), {{v, z}});
  EXPECT_EQ(imaginary.to_vector<float>(), std::vector<float>({2, 4, 6}));
  const Tensor bytes = evaluate(ops::as_strided(v, {24}, {1}, 0, DType::uint8), {{v, z}});
  EXPECT_EQ(bytes.to_vector<std::uint8_t>(), z.bitcast(DType::uint8).to_vector<std::uint8_t>());
}

TEST(Strided, ItsGradientAddsUpWhatOverlaps) {
  const Tensor x = counted({4});
  const Variable v = input_like(x);
  const Variable y = ops::as_strided(v, {3, 2}, {1, 1}, 0);
  const Variable g = grad(ops::sum(y * y, {}) * 0.5, v);
  EXPECT_EQ(evaluate(g, {{v, x}}).to_vector<double>(), std::vector<double>({0, 2, 4, 3}));
  // Also for the parts of complex numbers.
  const Tensor z = Tensor::from<std::complex<double>>({{1, 2}, {3, 4}});
  const Variable c = input_like(z);
  const Variable part = ops::as_strided(c, {2}, {2}, 1, DType::float64);
  const Variable h = grad(ops::sum(part * part, {}) * 0.5, c);
  EXPECT_EQ(evaluate(h, {{c, z}}).to_vector<std::complex<double>>(),
            (std::vector<std::complex<double>>{{0, 2}, {0, 4}}));
}

TEST(Strided, WhatOverlapsItselfIsNeverOverwritten) {
  const Variable v = make_input({DType::float64, {6}, {}});
  EXPECT_TRUE(ops::may_overlap_itself(ops::as_strided(v, {3, 2}, {1, 1}, 0)));
  EXPECT_TRUE(ops::may_overlap_itself(ops::as_strided(v, {3}, {0}, 0)));
  EXPECT_FALSE(ops::may_overlap_itself(ops::as_strided(v, {3, 2}, {2, 1}, 0)));
  EXPECT_FALSE(ops::may_overlap_itself(ops::as_strided(v, {2, 3}, {-1, 2}, 1)));
}

TEST(Strided, SaysWhatIsWrong) {
  const Variable v = make_input({DType::float64, {6}, {}});
  expect_error<ShapeError>([&] { ops::as_strided(v, {3}, {3}, 0); }, "outside");
  expect_error<ShapeError>([&] { ops::as_strided(v, {2}, {-1}, 0); }, "outside");
  expect_error<ShapeError>([&] { ops::as_strided(v, {4}, {1}, 0, DType::complex128); }, "outside");
  expect_error<ShapeError>([&] { ops::as_strided(v, {4, 1}, {1}, 0); }, "as many");
  const Variable open = make_input({DType::float64, {kUnknown}, {}});
  expect_error<ShapeError>([&] { ops::as_strided(open, {1}, {1}, 0); }, "known extent");
}

}  // namespace
}  // namespace palimpsest
