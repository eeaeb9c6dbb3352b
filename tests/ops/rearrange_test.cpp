// SPDX-License-Identifier: Apache-2.0
// Joining, splitting, repeating, borders, and shapes with unknown extents.
#include <gtest/gtest.h>

#include "ops/op_runner.hpp"
#include "palimpsest/graph/op_registry.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/ops/registry.hpp"
#include "samples/op_samples.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::evaluate;
using testing::expect_error;
using V = std::vector<double>;
using I = std::vector<int>;

// f of an array whose extents are unknown in the graph, and of one where they are known.
template <class F>
Tensor value_of(F&& f, const Tensor& t) {
  const Variable known = testing::input_like(t), unknown = testing::input_like(t, false);
  const Tensor result = evaluate(f(known), {{known, t}});
  EXPECT_TRUE(equal(evaluate(f(unknown), {{unknown, t}}), result));
  return result;
}

// The gradient of sum(f(x) * (1, 2, ..)) equals the adjoint of f on these numbers, for known and
// unknown extents.
template <class F>
V adjoint_of(F&& f, const Tensor& t) {
  const Variable known = testing::input_like(t);
  const Variable y = f(known);
  const Tensor value = evaluate(y, {{known, t}});
  const Tensor weights = Tensor::arange(value.numel(), DType::float64).reshape(value.shape());
  const auto gradient = [&](const Variable& x) {
    return evaluate(grad(ops::sum(f(x) * constant(weights)), x), {{x, t}})
        .template to_vector<double>();
  };
  const V result = gradient(known);
  EXPECT_EQ(gradient(testing::input_like(t, false)), result);
  return result;
}

const Tensor kMatrix = Tensor::from<double>({0, 1, 2, 3, 4, 5}, Extents{2, 3});
const Tensor kVector = Tensor::from<double>({1, 2, 3});

TEST(Reshape, TakesExtentsOfArrays) {
  const Variable x = dmatrix("x"), y = dtensor3("y");
  const Variable merged = x.reshape({x.shape(0) * x.shape(1)});
  EXPECT_EQ(merged.owner().op().name(), "Reshape");
  EXPECT_EQ(evaluate(merged, {{x, kMatrix}}).shape(), Extents{6});
  const Variable split = x.reshape({x.shape(0), -1, 1});
  EXPECT_EQ(evaluate(split, {{x, kMatrix}}).shape(), (Extents{2, 3, 1}));
  const Variable like = x.reshape({y.shape(0), y.shape(1)});
  EXPECT_EQ(evaluate(like, {{x, kMatrix}, {y, Tensor::zeros({3, 2, 9})}}).shape(), (Extents{3, 2}));
  expect_error<ShapeError>(
      [&] {
        evaluate(like, {{x, kMatrix}, {y, Tensor::zeros({4, 2, 9})}});
      },
      "[reshape] numbers of elements differ: got (2, 3)");
  const Variable n = lscalar("n"), by_value = x.reshape({n, -1});
  EXPECT_EQ(evaluate(by_value, {{x, kMatrix}, {n, Tensor::scalar<index_t>(3)}}).shape(),
            (Extents{3, 2}));
  EXPECT_EQ(x.ravel().rank(), 1U);
  EXPECT_EQ(kMatrix.reshape({6}).to_vector<double>(),
            adjoint_of(
                [](auto& v) {
                  return v.reshape({v.shape(1), v.shape(0)});
                },
                kMatrix));
}

TEST(Axes, Rearranged) {
  const Variable x = make_input({DType::float64, {kUnknown, 1, 3}, {}});
  EXPECT_EQ(x.T().type().str(), "float64 (3, 1, ?)");
  EXPECT_EQ(ops::swapaxes(x, 0, -1).type().str(), "float64 (3, 1, ?)");
  EXPECT_EQ(ops::moveaxis(x, 0, -1).type().str(), "float64 (1, 3, ?)");
  EXPECT_EQ(ops::dimshuffle(x, {2, std::nullopt, 0}).type().str(), "float64 (3, 1, ?)");
  EXPECT_EQ(ops::dimshuffle(x, {std::nullopt, 0, 1, 2}).type().str(), "float64 (1, ?, 1, 3)");
  EXPECT_EQ(ops::squeeze(x).type().str(), "float64 (?, 3)");
  expect_error<ShapeError>([&] { ops::dimshuffle(x, {0, 1}); }, "[dimshuffle] axis 2 is dropped");
  expect_error<ShapeError>([&] { ops::dimshuffle(x, {0, 0, 2}); }, "[dimshuffle]");
  const Variable z = zmatrix("z");
  EXPECT_EQ(z.H().owner().op().name(), "Conj");
  EXPECT_EQ(value_of([](auto& v) { return v.T(); }, kMatrix).to_vector<double>(),
            (V{0, 3, 1, 4, 2, 5}));
}

TEST(Stack, MakesANewAxis) {
  const auto twice = [](index_t axis) {
    return [=](auto& x) { return ops::stack({x, x * 10}, axis); };
  };
  EXPECT_EQ(value_of(twice(0), kVector).to_vector<double>(), (V{1, 2, 3, 10, 20, 30}));
  EXPECT_EQ(value_of(twice(-1), kVector).to_vector<double>(), (V{1, 10, 2, 20, 3, 30}));
  EXPECT_EQ(value_of(twice(1), kMatrix).shape(), (Extents{2, 2, 3}));
  expect_error<ValueError>([] { ops::stack(std::span<const Variable>()); }, "[stack] got no parts");
  expect_error<ShapeError>(
      [] {
        ops::stack({dvector("a"), dmatrix("b")});
      },
      "[stack] numbers of axes differ");
}

TEST(Join, HasAGradientWhereExtentsAreUnknown) {
  const Variable x = dvector("x"), y = dvector("y");
  const Variable w = constant(V{1, 2, 3, 4, 5}), both = ops::join(0, {x, y});
  const std::vector<Variable> g = grad(ops::sum(both * w), {x, y});
  const testing::Bindings bindings{{x, Tensor::zeros({2})}, {y, Tensor::zeros({3})}};
  EXPECT_EQ(evaluate(g[0], bindings).to_vector<double>(), (V{1, 2}));
  EXPECT_EQ(evaluate(g[1], bindings).to_vector<double>(), (V{3, 4, 5}));
}

TEST(Split, GivesViewsOfTheParts) {
  const auto part = [](std::size_t i) {
    return [=](auto& x) { return ops::split(x, {1, 2}, 1)[i]; };
  };
  EXPECT_EQ(value_of(part(0), kMatrix).to_vector<double>(), (V{0, 3}));
  EXPECT_EQ(value_of(part(1), kMatrix).to_vector<double>(), (V{1, 2, 4, 5}));
  const Variable x = make_input({DType::float64, {2, 6}, {}});
  const std::vector<Variable> halves = ops::split(x, 2, -1);
  ASSERT_EQ(halves.size(), 2U);
  EXPECT_EQ(halves[1].type().str(), "float64 (2, 3)");
  EXPECT_EQ(halves[1].owner().op().view_map(halves[1].owner()), (AliasMap{{0, {0}}}));
  expect_error<ShapeError>([&] { ops::split(x, 4, 1); }, "[split] axis 1");
  expect_error<ShapeError>([&] { ops::split(x, {2, 3}, 1); }, "got sizes of 5 in all, expected 6");
  expect_error<ShapeError>([&] { ops::split(x, {-1, 7}, 1); }, "[split] size: got -1");
  expect_error<ShapeError>([] { ops::split(dvector("v"), 2); }, "Try specify_shape");
}

TEST(Repeat, AndTile) {
  EXPECT_EQ(value_of([](auto& x) { return ops::repeat(x, 2, 0); }, kVector).to_vector<double>(),
            (V{1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(value_of([](auto& x) { return ops::repeat(x, 2, 1); }, kMatrix).to_vector<double>(),
            (V{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}));
  EXPECT_EQ(value_of([](auto& x) { return ops::repeat(x, 0, 0); }, kVector).shape(), Extents{0});
  EXPECT_EQ(value_of([](auto& x) { return ops::tile(x, {2}); }, kVector).to_vector<double>(),
            (V{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(value_of(
                [](auto& x) {
                  return ops::tile(x, {2, 1});
                },
                kVector)
                .shape(),
            (Extents{2, 3}));
  EXPECT_EQ(value_of(
                [](auto& x) {
                  return ops::tile(x, {2, 2});
                },
                kMatrix)
                .to_vector<double>(),
            (V{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5, 0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
  EXPECT_EQ(adjoint_of([](auto& x) { return ops::repeat(x, 2, 0); }, kVector), (V{1, 5, 9}));
  EXPECT_EQ(adjoint_of([](auto& x) { return ops::tile(x, {2}); }, kVector), (V{3, 5, 7}));
  expect_error<ValueError>([] { ops::repeat(dvector("x"), -1, 0); }, "[repeat] count: got -1");
  expect_error<ValueError>([] { ops::tile(dvector("x"), {-1}); }, "[tile] count: got -1");
}

TEST(PadAround, PutsEdgesWrapsAndReflects) {
  const auto padded = [](ops::PadMode mode) {
    return value_of(
               [=](auto& x) {
                 return ops::pad(x, {{2, 4}}, mode);
               },
               kVector)
        .to_vector<double>();
  };
  EXPECT_EQ(padded(ops::PadMode::edge), (V{1, 1, 1, 2, 3, 3, 3, 3, 3}));
  EXPECT_EQ(padded(ops::PadMode::wrap), (V{2, 3, 1, 2, 3, 1, 2, 3, 1}));
  EXPECT_EQ(padded(ops::PadMode::reflect), (V{3, 2, 1, 2, 3, 2, 1, 2, 3}));
  const Tensor corners = value_of(
      [](auto& x) {
        return ops::pad(x, {{1, 0}, {0, 1}}, ops::PadMode::edge);
      },
      kMatrix);
  EXPECT_EQ(corners.to_vector<double>(), (V{0, 1, 2, 2, 0, 1, 2, 2, 3, 4, 5, 5}));
  EXPECT_EQ(adjoint_of(
                [](auto& x) {
                  return ops::pad(x, {{1, 2}}, ops::PadMode::edge);
                },
                kVector),
            (V{0 + 1, 2, 3 + 4 + 5}));
  const Variable x = dvector("x");
  EXPECT_EQ(ops::pad(x, {{0, 0}}, ops::PadMode::wrap), x);
  const Variable flat = make_input({DType::float64, {0, 3}, {}});
  EXPECT_EQ(ops::pad(flat, {{0, 0}, {0, 0}}, ops::PadMode::edge), flat);
  for (const ops::PadMode mode : {ops::PadMode::edge, ops::PadMode::wrap, ops::PadMode::reflect}) {
    const Variable wider = ops::pad(flat, {{0, 0}, {1, 2}}, mode);
    EXPECT_EQ(evaluate(wider, {{flat, Tensor::zeros({0, 3})}}).shape(), (Extents{0, 6}));
  }
  const Variable none = make_input({DType::float64, {0}, {}});
  expect_error<ShapeError>(
      [&] {
        ops::pad(none, {{1, 0}}, ops::PadMode::edge);
      },
      "[pad] axis 0: got no elements");
  expect_error<ShapeError>([&] { ops::pad(x, {}, ops::PadMode::edge); }, "[pad] number of widths");
  expect_error<ValueError>([&] { ops::pad(x, {{-1, 0}}, ops::PadMode::edge); }, "none negative");
}

TEST(Roll, AlongSeveralAxesIsOneStep) {
  const Variable x = make_input({DType::float64, {2, 3}, {}}), u = dmatrix("u");
  EXPECT_EQ(ops::roll(u, {1, -2, 1}, Axes{1, 0, -1}).owner().op().str(),
            "Roll{shift=-2, axis=0, shift=2, axis=1}");
  EXPECT_EQ(ops::roll(x, {1, -1, 1}, Axes{1, 1, 0}).owner().op().str(), "Roll{shift=1, axis=0}");
  EXPECT_EQ(ops::roll(x, {2, -3}, Axes{0, 1}), x);
  EXPECT_EQ(ops::fftshift(x).owner().op().str(),
            "Roll{by half, shift=0, axis=0, by half, shift=0, axis=1}");
  EXPECT_EQ(adjoint_of(
                [](auto& v) {
                  return ops::roll(v, {1, 1}, Axes{0, 1});
                },
                kMatrix),
            (V{4, 5, 3, 1, 2, 0}));
}

TEST(Roll, IsRestoredFromTextsOfVersion01) {
  ops::register_library_ops();
  const Tensor odd = Tensor::arange(5, DType::float64);
  const Variable x = testing::input_like(odd);
  const auto value_of_text = [&](const char* text) {
    return evaluate(restore_op("Roll", text)->make_node({&x, 1}).output(0), {{x, odd}})
        .to_vector<double>();
  };
  EXPECT_EQ(value_of_text("shift=2, axis=0"), (V{3, 4, 0, 1, 2}));
  EXPECT_EQ(value_of_text("by half, shift=0, axis=0"), (V{3, 4, 0, 1, 2}));
  EXPECT_EQ(value_of_text("back by half, shift=0, axis=0"), (V{2, 3, 4, 0, 1}));
}

TEST(Roll, OverSeveralAxes) {
  EXPECT_EQ(value_of(
                [](auto& x) {
                  return ops::roll(x, {1, 1}, Axes{0, 1});
                },
                kMatrix)
                .to_vector<double>(),
            (V{5, 3, 4, 2, 0, 1}));
  expect_error<ValueError>(
      [] {
        ops::roll(dmatrix("x"), {1}, Axes{0, 1});
      },
      "[roll] number of shifts");
}

TEST(FftShift, RotatesByHalfAndBack) {
  const Tensor odd = Tensor::arange(5, DType::float64);
  EXPECT_EQ(value_of([](auto& x) { return ops::fftshift(x); }, odd).to_vector<double>(),
            (V{3, 4, 0, 1, 2}));
  EXPECT_EQ(
      value_of([](auto& x) { return ops::ifftshift(ops::fftshift(x)); }, odd).to_vector<double>(),
      odd.to_vector<double>());
  EXPECT_EQ(
      value_of([](auto& x) { return ops::fftshift(x, Axes{1}); }, kMatrix).to_vector<double>(),
      (V{2, 0, 1, 5, 3, 4}));
  EXPECT_EQ(adjoint_of([](auto& x) { return ops::fftshift(x); }, odd), (V{2, 3, 4, 0, 1}));
}

TEST(Rfft, IsHalfOfTheFft) {
  for (index_t n : {1, 2, 5, 6}) {
    const Tensor t = ops::sample_values({3, n}, DType::float64);
    const Variable x = testing::input_like(t);
    for (const Axes& axes : {Axes{-1}, Axes{0, 1}}) {
      const Variable half = ops::rfft(x, axes);
      EXPECT_EQ(half.type().shape, (Extents{3, n / 2 + 1}));
      const Tensor whole = evaluate(ops::fft(x, axes), {{x, t}});
      EXPECT_LE(testing::distance(evaluate(half, {{x, t}}), whole.narrow(1, 0, n / 2 + 1)), 1e-14);
      const Variable open = dmatrix("open");
      EXPECT_LE(testing::distance(evaluate(ops::rfft(open, axes), {{open, t}}),
                                  whole.narrow(1, 0, n / 2 + 1)),
                1e-14);
      for (FftNorm norm : {FftNorm::backward, FftNorm::ortho, FftNorm::forward}) {
        const FftOptions options{norm, false};
        const Variable back = ops::irfft(ops::rfft(x, axes, options), n, axes, options);
        EXPECT_EQ(back.dtype(), DType::float64);
        EXPECT_LE(testing::distance(evaluate(back, {{x, t}}), t), 1e-14);
        EXPECT_EQ(is_linear(back, x), Linearity::real);
      }
    }
  }
  expect_error<DTypeError>([] { ops::rfft(zvector("z")); }, "[rfft] got complex128");
  expect_error<NotSupported>([] { ops::rfft(dvector("x"), {0}, {.centered = true}); }, "Try fft");
  expect_error<ValueError>([] { ops::rfft(dvector("x"), {}); }, "[rfft] got no axes");
  expect_error<ShapeError>(
      [] {
        ops::irfft(make_input({DType::complex64, {4}, {}}), 5);
      },
      "[irfft] last axis: got complex64 (4,) for 5 elements, expected 3");
}

}  // namespace
}  // namespace palimpsest
