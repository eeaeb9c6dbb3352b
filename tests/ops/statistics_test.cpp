// SPDX-License-Identifier: Apache-2.0
// Positions of extrema, cumulative sums, and reductions composed of others.
#include <gtest/gtest.h>

#include <complex>

#include "ops/op_runner.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/ops/reduce/reduce_op.hpp"
#include "samples/op_samples.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::evaluate;
using testing::expect_error;
using C = std::complex<double>;
using V = std::vector<double>;
using I = std::vector<int>;

// The value of f on an array whose extents are unknown in the graph, and on one where they are
// known: they must agree.
template <class F>
Tensor value_of(F&& f, const Tensor& t) {
  const Variable known = testing::input_like(t), unknown = testing::input_like(t, false);
  const Tensor result = evaluate(f(known), {{known, t}});
  EXPECT_TRUE(equal(evaluate(f(unknown), {{unknown, t}}), result));
  return result;
}

const Tensor kMatrix = Tensor::from<double>({3, 1, 2, 3, -4, 0}, Extents{2, 3});

TEST(ArgReduce, FindsTheFirstExtremum) {
  EXPECT_EQ(value_of([](auto& x) { return ops::argmax(x); }, kMatrix).item<int>(), 0);
  EXPECT_EQ(value_of([](auto& x) { return ops::argmin(x); }, kMatrix).item<int>(), 4);
  EXPECT_EQ(value_of(
                [](auto& x) {
                  return ops::argmax(x, {Axes{0}, false});
                },
                kMatrix)
                .to_vector<int>(),
            (I{0, 0, 0}));
  const Tensor rows = value_of([](auto& x) { return ops::argmin(x, {Axes{1}, true}); }, kMatrix);
  EXPECT_EQ(rows.shape(), (Extents{2, 1}));
  EXPECT_EQ(rows.to_vector<int>(), (I{1, 1}));
}

TEST(ArgReduce, NanWinsAndTheFirstOfThem) {
  const Tensor t = Tensor::from<double>({1, NAN, 7, NAN});
  EXPECT_EQ(value_of([](auto& x) { return ops::argmax(x); }, t).item<int>(), 1);
  EXPECT_EQ(value_of([](auto& x) { return ops::argmin(x); }, t).item<int>(), 1);
}

TEST(ArgReduce, CountsRowMajorOverSeveralAxesWhateverTheLayout) {
  const Tensor t = ops::sample_values({3, 4, 5}, DType::float64);
  for (const Tensor& x : {t, testing::column_major(t), testing::with_negative_strides(t)}) {
    const Tensor got = value_of([](auto& v) { return ops::argmax(v, {Axes{0, 2}, false}); }, x);
    for (index_t j = 0; j < 4; ++j) {
      index_t best = 0;
      for (index_t p = 0; p < 15; ++p) {
        if (t.at<double>({p / 5, j, p % 5}) > t.at<double>({best / 5, j, best % 5})) best = p;
      }
      EXPECT_EQ(got.at<index_t>({j}), best);
    }
  }
}

TEST(ArgReduce, RefusesComplexNumbersAndNoElements) {
  const Variable z = zvector("z"), x = make_input({DType::float64, {2, 0}, {}});
  expect_error<DTypeError>([&] { ops::argmax(z); }, "[max] got complex128");
  expect_error<ValueError>(
      [&] {
        ops::argmin(x, {Axes{1}, false});
      },
      "[ArgMin] axis 1: got no elements");
  EXPECT_EQ(ops::argmin(x, {Axes{0}, false}).type().shape, Extents{0});
}

TEST(Scan, AddsAndMultipliesAlongAnAxis) {
  EXPECT_EQ(value_of([](auto& x) { return ops::cumsum(x, 1); }, kMatrix).to_vector<double>(),
            (V{3, 4, 6, 3, -1, -1}));
  EXPECT_EQ(value_of([](auto& x) { return ops::cumprod(x, 0); }, kMatrix).to_vector<double>(),
            (V{3, 1, 2, 9, -4, 0}));
  EXPECT_EQ(value_of([](auto& x) { return ops::cumsum(x); }, kMatrix).to_vector<double>(),
            (V{3, 4, 6, 9, 5, 5}));
  EXPECT_EQ(value_of([](auto& x) { return ops::cumsum(x, -1); }, kMatrix).shape(), (Extents{2, 3}));
  EXPECT_EQ(ops::cumsum(bvector("x")).dtype(), DType::int64);
  EXPECT_EQ(ops::cumprod(make_input({DType::uint8, {3}, {}})).dtype(), DType::uint64);
  expect_error<ShapeError>([] { ops::cumsum(dvector("x"), 1); }, "[cumsum]");
}

TEST(Scan, OfLongLinesAndManyLines) {
  for (const Extents& shape : {Extents{2, 3000}, Extents{3000, 2}, Extents{300, 300}}) {
    const Tensor t = ops::sample_values(shape, DType::float64);
    for (index_t axis : {0, 1}) {
      const Tensor sums = value_of([&](auto& x) { return ops::cumsum(x, axis); }, t);
      const Tensor total = value_of([&](auto& x) { return ops::sum(x, {Axes{axis}, false}); }, t);
      const Tensor last = sums.select(axis, shape[static_cast<std::size_t>(axis)] - 1);
      EXPECT_LE(testing::distance(last, total), 1e-12);
    }
  }
}

TEST(Scan, RunsInPlaceOnlyInItsOwnDType) {
  const Variable n = ivector("n"), x = dvector("x");
  const Apply of_integers = ops::cumsum(n, 0).owner();
  EXPECT_EQ(of_integers.op().inplace_on_inputs(of_integers, {0}), nullptr);
  expect_error<ValueError>(
      [&] {
        ops::Scan(ReduceOp::sum, 0, true).make_node({&n, 1});
      },
      "[CumSumInPlace] got n, expected an array of int64");
  const Variable wide = ops::broadcast_to(make_input({DType::float64, {1}, {}}), {4});
  expect_error<ValueError>(
      [&] {
        ops::Scan(ReduceOp::sum, 0, true).make_node({&wide, 1});
      },
      "that can be overwritten");
}

TEST(Scan, TheGradientOfAProductIsRightAroundZeros) {
  for (const V& numbers : {V{2, 3, 4}, V{2, 0, 4}, V{0, 3, 0}, V{0, 0, 5}}) {
    const Variable x = dvector("x"), w = constant(V{1, 10, 100});
    const V got = evaluate(grad(ops::sum(ops::cumprod(x, 0) * w), x), {{x, Tensor::from(numbers)}})
                      .to_vector<double>();
    const V product =
        evaluate(grad(ops::prod(x), x), {{x, Tensor::from(numbers)}}).to_vector<double>();
    for (std::size_t i = 0; i < 3; ++i) {
      double expected = 0, weight = 1, others = 1;
      for (std::size_t k = 0; k < 3; ++k, weight *= 10) {
        others *= k == i ? 1 : numbers[k];
        if (k >= i) expected += weight * others;
      }
      EXPECT_DOUBLE_EQ(got[i], expected);
      EXPECT_DOUBLE_EQ(product[i], others);
    }
  }
}

TEST(Statistics, MeanVarianceAndDeviation) {
  const auto over_rows = [](auto f) { return [=](auto& x) { return f(x, {Axes{1}, false}); }; };
  EXPECT_EQ(
      value_of([](auto& x) { return ops::var(x, {Axes{1}}); }, kMatrix).to_vector<double>()[0],
      2.0 / 3);
  EXPECT_EQ(value_of([](auto& x) { return ops::var(x, {.axes = Axes{1}, .ddof = 1}); }, kMatrix)
                .to_vector<double>()[0],
            1);
  EXPECT_DOUBLE_EQ(value_of([](auto& x) { return ops::std(x); }, kMatrix).item<double>(),
                   std::sqrt((39.0 - 25.0 / 6) / 6));
  EXPECT_EQ(value_of([](auto& x) { return ops::var(x, {.keepdims = true}); }, kMatrix).shape(),
            (Extents{1, 1}));
  const Tensor z = Tensor::from<C>({C(1, 1), C(-1, -1)});
  const Tensor variance = value_of([](auto& x) { return ops::var(x); }, z);
  EXPECT_EQ(variance.dtype(), DType::float64);
  EXPECT_EQ(variance.item<double>(), 2);
  EXPECT_EQ(
      value_of(over_rows([](auto& x, const ops::ReduceOptions& o) { return ops::mean(x, o); }),
               kMatrix)
          .to_vector<double>()[0],
      2);
}

TEST(Statistics, NormsOfEveryOrder) {
  const Tensor t = Tensor::from<double>({3, -4, 0});
  const auto norm = [&](double order) {
    return value_of([=](auto& x) { return ops::norm(x, {.order = order}); }, t).item<double>();
  };
  EXPECT_EQ(norm(2), 5);
  EXPECT_EQ(norm(1), 7);
  EXPECT_EQ(norm(INFINITY), 4);
  EXPECT_EQ(norm(-INFINITY), 0);
  EXPECT_NEAR(norm(3), std::cbrt(27 + 64), 1e-14);
  const Tensor z = Tensor::from<C>({C(3, 4), C(0, 0)});
  EXPECT_EQ(value_of([](auto& x) { return ops::norm(x); }, z).item<double>(), 5);
  EXPECT_EQ(value_of([](auto& x) { return ops::norm(x, {.axes = Axes{1}}); }, kMatrix)
                .to_vector<double>()[1],
            5);
  expect_error<ValueError>([] { ops::norm(dvector("x"), {.order = 0}); }, "[norm] order: got 0");
}

TEST(Statistics, TheNormHasTheGradientZeroAtZero) {
  const Variable z = zvector("z");
  const Tensor zero = Tensor::zeros({2}, DType::complex128);
  EXPECT_TRUE(equal(evaluate(grad(ops::norm(z), z), {{z, zero}}), zero));
  const Tensor t = Tensor::from<C>({C(3, 0), C(0, 4)});
  EXPECT_LE(testing::distance(evaluate(grad(ops::norm(z), z), {{z, t}}),
                              Tensor::from<C>({C(0.6, 0), C(0, 0.8)})),
            1e-15);
}

TEST(Statistics, LogSumExpDoesNotOverflow) {
  const Tensor t = Tensor::from<double>({1000, 1000, -INFINITY, -INFINITY}, Extents{2, 2});
  const V got = value_of(
                    [](auto& x) {
                      return ops::logsumexp(x, {Axes{1}, false});
                    },
                    t)
                    .to_vector<double>();
  EXPECT_DOUBLE_EQ(got[0], 1000 + std::log(2.0));
  EXPECT_EQ(got[1], -INFINITY);
  EXPECT_EQ(value_of(
                [](auto& x) {
                  return ops::logsumexp(x, {Axes{0, 1}, true});
                },
                kMatrix)
                .shape(),
            (Extents{1, 1}));
  // Its gradient is the softmax.
  const Variable x = dvector("x");
  const V softmax = evaluate(grad(ops::logsumexp(x), x), {{x, Tensor::from<double>({0, 0, 0, 0})}})
                        .to_vector<double>();
  EXPECT_EQ(softmax, (V{0.25, 0.25, 0.25, 0.25}));
}

TEST(Statistics, SoftmaxDoesNotOverflow) {
  const Tensor t = Tensor::from<double>({1000, 1000, -INFINITY, 3}, Extents{2, 2});
  const V rows = value_of([](auto& x) { return ops::softmax(x, Axes{1}); }, t).to_vector<double>();
  EXPECT_EQ(rows, (V{0.5, 0.5, 0, 1}));
  const V all = value_of([](auto& x) { return ops::softmax(x); }, t).to_vector<double>();
  EXPECT_EQ(all, (V{0.5, 0.5, 0, 0}));
  // Integers are converted.
  const Tensor ints = Tensor::from<std::int64_t>({7, 7}, Extents{2});
  EXPECT_EQ(value_of([](auto& x) { return ops::softmax(x); }, ints).to_vector<double>(),
            (V{0.5, 0.5}));
  expect_error<ShapeError>([] { ops::softmax(dvector("x"), Axes{1}); }, "[softmax]");
}

TEST(Statistics, GradientsOfComposedReductionsAgreeWithDifferences) {
  using F = std::function<Variable(const Variable&)>;
  const std::vector<F> costs{
      [](const Variable& x) { return ops::sum(ops::var(x, {Axes{0}})); },
      [](const Variable& x) { return ops::std(x); },
      [](const Variable& x) { return ops::norm(x, {.order = 3}); },
      [](const Variable& x) { return ops::norm(x, {.order = INFINITY}); },
      [](const Variable& x) {
        return ops::sum(ops::real(ops::logsumexp(x, {Axes{1}, false})));
      },
      [](const Variable& x) { return ops::sum(ops::real(ops::square(ops::softmax(x, Axes{0})))); },
      [](const Variable& x) { return ops::real(ops::prod(x)); }};
  for (const DType dtype : {DType::float64, DType::complex128}) {
    const Tensor at = ops::sample_values({3, 2}, dtype, 5),
                 v = ops::sample_values({3, 2}, dtype, 6);
    for (const F& cost : costs) {
      const Variable x = testing::input_like(at, false), y = cost(x);
      const double h = 1e-6;
      const auto shifted = [&](double s) {
        const Variable moved = constant(at) + constant(v) * s;
        return evaluate(cost(moved)).item<double>();
      };
      const double expected = (shifted(h) - shifted(-h)) / (2 * h);
      EXPECT_NEAR(testing::real_inner(evaluate(grad(y, x), {{x, at}}), v), expected, 1e-7);
    }
  }
}

}  // namespace
}  // namespace palimpsest
