// SPDX-License-Identifier: Apache-2.0
// Blocks and stencils, against their definitions.
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>

#include "ops/op_runner.hpp"
#include "palimpsest/ops/linear.hpp"
#include "palimpsest/ops/shape/blocks.hpp"
#include "palimpsest/ops/transforms/stencil.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::distance;
using testing::evaluate;
using testing::expect_error;
using testing::input_like;
using testing::real_inner;

Tensor noise(Extents shape, DType dtype = DType::complex128, std::uint64_t stream = 0) {
  return Tensor::random_normal(std::move(shape), dtype, {21, stream});
}

Variable input(Extents shape, DType dtype = DType::float64) {
  return make_input({dtype, std::move(shape), {}});
}

// Compares both builders on data, and checks that they are adjoint.
template <class Forward, class Adjoint>
void expect_adjoint(const Tensor& x, Forward&& forward, Adjoint&& adjoint) {
  const Variable vx = input_like(x);
  const Variable y = forward(vx);
  const Tensor value = evaluate(y, {{vx, x}});
  const Tensor w = noise(value.shape(), value.dtype(), 1);
  const Variable vw = input_like(w);
  const Tensor back = evaluate(adjoint(vw), {{vw, w}});
  EXPECT_EQ(back.shape(), x.shape());
  EXPECT_NEAR(real_inner(value, w), real_inner(x, back), 1e-12 * static_cast<double>(x.numel()));
  EXPECT_LE(distance(evaluate(linear_adjoint(y, vx, vw), {{vx, x}, {vw, w}}), back), 1e-14);
}

TEST(Blocks, AreTheElementsOfTheArray) {
  const Tensor x = noise({2, 7, 6});
  const Variable vx = input_like(x);
  const Tensor y = evaluate(ops::array_to_blocks(vx, {3, 2}, {2, 1}), {{vx, x}});
  ASSERT_EQ(y.shape(), (Extents{2, 3, 5, 3, 2}));
  using C = std::complex<double>;
  for (index_t b = 0; b < 2; ++b) {
    for (index_t m = 0; m < 15; ++m) {
      for (index_t p = 0; p < 6; ++p) {
        EXPECT_EQ(y.at<C>({b, m / 5, m % 5, p / 2, p % 2}),
                  x.at<C>({b, m / 5 * 2 + p / 2, m % 5 + p % 2}));
      }
    }
  }
}

TEST(Blocks, AddUpInTheAdjoint) {
  const auto check = [](Extents image, Extents block, Extents stride) {
    expect_adjoint(
        noise(image), [&](const Variable& x) { return ops::array_to_blocks(x, block, stride); },
        [&](const Variable& y) { return ops::blocks_to_array(y, image, block, stride); });
  };
  check({11}, {4}, {1});
  check({11}, {4}, {3});
  check({11}, {2}, {5});
  check({9, 8}, {3, 3}, {1, 2});
  check({9, 8}, {2, 3}, {4, 1});
  check({5, 6, 7}, {2, 3, 4}, {1, 2, 3});
  expect_error<ValueError>([] { ops::array_to_blocks(input({4}), {5}, {1}); }, "block");
  expect_error<ShapeError>([] { ops::array_to_blocks(input({4}), {2, 2}, {1, 1}); }, "axes");
  expect_error<ShapeError>([] { ops::array_to_blocks(input({kUnknown}), {2}, {1}); },
                           "specify_shape");
  expect_error<ShapeError>([] { ops::blocks_to_array(input({2, 2}), {4}, {2}, {1}); }, "expected");
  expect_error<DTypeError>(
      [] {
        ops::blocks_to_array(input({3, 2}, DType::int64), {4}, {2}, {1});
      },
      "floating");
}

// y[i] = sum_m t[m] x[step i + offset + m] along axis 1 of three.
Tensor by_definition(const Tensor& x, const Stencil& s) {
  const index_t n = x.shape(1), count = n / s.step;
  Tensor y = Tensor::zeros({x.shape(0), count, x.shape(2)}, x.dtype());
  using C = std::complex<double>;
  for (index_t a = 0; a < x.shape(0); ++a) {
    for (index_t i = 0; i < count; ++i) {
      for (index_t c = 0; c < x.shape(2); ++c) {
        C sum = 0;
        for (std::size_t m = 0; m < s.taps.size(); ++m) {
          index_t j = s.step * i + s.offset + static_cast<index_t>(m);
          if (s.edge == StencilEdge::periodic) j = ((j % n) + n) % n;
          if (s.edge == StencilEdge::nearest) j = std::clamp<index_t>(j, 0, n - 1);
          if (j >= 0 && j < n) sum += s.taps[m] * x.at<C>({a, j, c});
        }
        y.set<C>({a, i, c}, sum);
      }
    }
  }
  return y;
}

TEST(Stencil, FollowsItsDefinition) {
  for (const StencilEdge edge : {StencilEdge::periodic, StencilEdge::nearest, StencilEdge::zero}) {
    for (const index_t step : {1, 2}) {
      for (const index_t offset : {-9, -2, 0, 3, 7}) {
        for (const std::size_t n_taps : {1U, 2U, 5U, 12U}) {
          Stencil s{.axis = 1, .taps = {}, .offset = offset, .step = step, .edge = edge};
          for (std::size_t m = 0; m < n_taps; ++m)
            s.taps.push_back(1.0 / (2.0 + static_cast<double>(m)));
          for (const Extents& shape : {Extents{2, 8, 3}, Extents{3, 8, 1}}) {
            const Tensor x = noise(shape);
            const Variable vx = input_like(x);
            const Tensor expected = by_definition(x, s);
            EXPECT_LE(distance(evaluate(ops::stencil(vx, s), {{vx, x}}), expected), 1e-14);
            // The filtered axis has the smallest stride.
            const Tensor turned = x.permute({0, 2, 1}).clone().permute({0, 2, 1});
            EXPECT_LE(distance(evaluate(ops::stencil(vx, s), {{vx, turned}}), expected), 1e-14);
            expect_adjoint(
                x, [&](const Variable& v) { return ops::stencil(v, s); },
                [&](const Variable& v) { return ops::stencil_adjoint(v, s); });
          }
          const Tensor line = noise({6, 8});
          Stencil along = s;
          expect_adjoint(
              line, [&](const Variable& v) { return ops::stencil(v, along); },
              [&](const Variable& v) { return ops::stencil_adjoint(v, along); });
        }
      }
    }
  }
}

TEST(Stencil, StartsWhereItIsTold) {
  const auto moved = [](const Tensor& x, index_t start) {  // x[j + start]
    Tensor y = Tensor::empty(x.shape(), x.dtype());
    const index_t n = x.shape()[1];
    for (index_t j = 0; j < n; ++j) {
      y.narrow(1, j, 1).copy_from(x.narrow(1, (((j + start) % n) + n) % n, 1));
    }
    return y;
  };
  const Variable start = input({}, DType::int64);
  for (const Extents& shape : {Extents{2, 12, 3}, Extents{3, 12, 1}}) {
    for (const index_t n_taps : {2, 5, 14}) {
      Stencil s{.axis = 1, .taps = {}, .offset = -1, .step = 2, .edge = StencilEdge::periodic};
      for (index_t m = 0; m < n_taps; ++m) s.taps.push_back(1.0 / (2.0 + static_cast<double>(m)));
      const Tensor x = noise(shape);
      const Tensor y = noise({shape[0], shape[1] / 2, shape[2]});
      const Variable vx = input_like(x), vy = input_like(y);
      for (const index_t at : {-25, -12, -7, -1, 0, 1, 5, 6, 11, 40}) {
        const Tensor t = Tensor::scalar(at);
        const Tensor forward = evaluate(ops::stencil(vx, s, start), {{vx, x}, {start, t}});
        EXPECT_LE(distance(forward, evaluate(ops::stencil(vx, s), {{vx, moved(x, at)}})), 1e-15);
        const Tensor back = evaluate(ops::stencil_adjoint(vy, s, start), {{vy, y}, {start, t}});
        const Tensor expected = moved(evaluate(ops::stencil_adjoint(vy, s), {{vy, y}}), -at);
        EXPECT_LE(distance(back, expected), 1e-14);
      }
    }
  }
}

TEST(Stencil, ErrorsSayWhatIsWrong) {
  const Stencil s{.axis = 0, .taps = {1, 1}, .offset = 0, .step = 2, .edge = StencilEdge::zero};
  expect_error<ShapeError>([&] { ops::stencil(input({5}), s); }, "divisible");
  expect_error<DTypeError>([&] { ops::stencil(input({4}, DType::int64), s); }, "floating");
  expect_error<ShapeError>([&] { ops::stencil(input({}), s); }, "stencil");
  Stencil none = s;
  none.taps.clear();
  expect_error<ValueError>([&] { ops::stencil(input({4}), none); }, "taps");
  expect_error<ValueError>([&] { ops::stencil_adjoint(input({4}), none); }, "taps");
  Stencil around = s;
  around.edge = StencilEdge::periodic;
  const Variable at = input({}, DType::int64);
  expect_error<ValueError>([&] { ops::stencil(input({4}), s, at); }, "expected periodic");
  expect_error<DTypeError>([&] { ops::stencil(input({4}), around, input({})); }, "start: got");
  expect_error<ShapeError>(
      [&] { ops::stencil_adjoint(input({4}), around, input({2}, DType::int64)); }, "start: got");
  EXPECT_EQ(ops::stencil(input({kUnknown}), s).type().shape, (Extents{kUnknown}));
  EXPECT_EQ(ops::stencil_adjoint(input({3}), s).type().shape, (Extents{6}));
}

}  // namespace
}  // namespace palimpsest
