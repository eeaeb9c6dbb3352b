// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/create/random.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <set>

#include "ops/op_runner.hpp"
#include "palimpsest/base/random.hpp"
#include "palimpsest/ops/create/random_op.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::evaluate;
using testing::expect_error;
using C = std::complex<double>;
using Words = std::vector<std::uint64_t>;

const Variable kKey = ops::random_key(1, 2);

TEST(Random, ElementsDependOnTheKeyAndTheirPositionAlone) {
  for (DType dtype : {DType::float32, DType::complex128}) {
    const Tensor flat = evaluate(ops::random_normal(kKey, {600}, dtype));
    for (const Extents& shape : {Extents{20, 30}, Extents{1, 600}, Extents{2, 1, 300}}) {
      EXPECT_TRUE(equal(evaluate(ops::random_normal(kKey, shape, dtype)).reshape({600}), flat));
    }
    EXPECT_TRUE(equal(evaluate(ops::random_normal(kKey, {100}, dtype)), flat.narrow(0, 0, 100)));
    EXPECT_TRUE(equal(flat, Tensor::random_normal({600}, dtype, {1, 2})));
  }
  const Tensor uniform = evaluate(ops::random_uniform(kKey, {40, 300}));
  EXPECT_TRUE(equal(uniform, Tensor::random_uniform({40, 300}, DType::float64, {1, 2})));
  EXPECT_EQ(evaluate(ops::random_bits(kKey, {3})).to_vector<std::uint64_t>()[2],
            random_bits(RandomKey{1, 2}, 2));
}

// Known answer of Philox 4x32-10: counter and key of zeros.
TEST(Random, BitsAreThoseOfPhilox) {
  const std::uint64_t first =
      evaluate(ops::random_bits(ops::random_key(0), {1})).item<std::uint64_t>();
  EXPECT_EQ(first & 0xFFFFFFFFU, 0x6627E8D5U);
  EXPECT_EQ(first >> 32, 0xE169C58DU);
}

struct Moments {
  double mean = 0, variance = 0, fourth = 0;
};
Moments moments(const std::vector<double>& x) {
  Moments m;
  const auto n = static_cast<double>(x.size());
  for (double v : x) m.mean += v / n;
  for (double v : x) {
    m.variance += (v - m.mean) * (v - m.mean) / n;
    m.fourth += std::pow(v - m.mean, 4) / n;
  }
  return m;
}

TEST(Random, NumbersHaveTheirMoments) {
  constexpr index_t kCount = 200000;
  const Moments normal = moments(evaluate(ops::random_normal(kKey, {kCount})).to_vector<double>());
  EXPECT_NEAR(normal.mean, 0, 0.01);
  EXPECT_NEAR(normal.variance, 1, 0.02);
  EXPECT_NEAR(normal.fourth, 3, 0.1);
  const Moments uniform =
      moments(evaluate(ops::random_uniform(kKey, {kCount}, DType::float32)).to_vector<double>());
  EXPECT_NEAR(uniform.mean, 0.5, 0.005);
  EXPECT_NEAR(uniform.variance, 1.0 / 12, 0.002);
  const Tensor z = evaluate(ops::random_normal(kKey, {kCount}, DType::complex64));
  double power = 0;
  C square = 0;
  for (const C& v : z.to(DType::complex128).to_vector<C>()) {
    power += std::norm(v) / kCount;
    square += v * v / double{kCount};
  }
  EXPECT_NEAR(power, 1, 0.02);
  EXPECT_LE(std::abs(square), 0.02);
  const Moments scaled = moments(
      evaluate(ops::random_normal(kKey, {kCount}, DType::float64, 5.0, 3.0)).to_vector<double>());
  EXPECT_NEAR(scaled.mean, 5, 0.05);
  EXPECT_NEAR(scaled.variance, 9, 0.2);
}

TEST(Random, IntegersAreEquallyLikely) {
  constexpr index_t kCount = 70000;
  const std::vector<int> x =
      evaluate(ops::random_integers(kKey, {kCount}, -3, 4, DType::int8)).to_vector<int>();
  std::vector<int> counts(7);
  for (int v : x) {
    ASSERT_GE(v, -3);
    ASSERT_LT(v, 4);
    ++counts[static_cast<std::size_t>(v + 3)];
  }
  for (int n : counts) EXPECT_NEAR(n, 10000, 500);
  constexpr index_t kLow = std::numeric_limits<index_t>::min(),
                    kHigh = std::numeric_limits<index_t>::max();
  std::set<int> signs;
  for (index_t v : evaluate(ops::random_integers(kKey, {50}, kLow, kHigh)).to_vector<index_t>()) {
    signs.insert(v < 0 ? -1 : 1);
  }
  EXPECT_EQ(signs.size(), 2U);
  const Variable low = lscalar("low");
  const Variable y = ops::random_integers(kKey, {3}, low, 5);
  EXPECT_TRUE(y.owner().op().can_fail());
  EXPECT_EQ(evaluate(y, {{low, Tensor::scalar<index_t>(4)}}).to_vector<int>(),
            (std::vector<int>{4, 4, 4}));
  expect_error<ValueError>(
      [&] {
        evaluate(y, {{low, Tensor::scalar<index_t>(5)}});
      },
      "[random_integers] got low 5 and high 5");
  expect_error<ValueError>([&] { ops::random_integers(kKey, {3}, 2, 1); },
                           "expected high above low");
  expect_error<DTypeError>([&] { ops::random_integers(kKey, {3}, 0.5, 1); },
                           "[random_integers] bound");
  expect_error<DTypeError>([&] { ops::random_integers(kKey, {3}, 0, 1, DType::float32); },
                           "expected integers");
}

TEST(RandomKeys, SplitIntoStreamsOfTheirOwn) {
  const std::vector<Variable> keys = ops::split_key(kKey, 3);
  std::set<Words> seen{evaluate(kKey).to_vector<std::uint64_t>(),
                       evaluate(ops::next_key(kKey)).to_vector<std::uint64_t>()};
  for (const Variable& key : keys) {
    EXPECT_EQ(key.type().str(), "uint64 (2,)");
    EXPECT_TRUE(seen.insert(evaluate(key).to_vector<std::uint64_t>()).second);
  }
  EXPECT_TRUE(equal(evaluate(ops::split_key(kKey, 2)[1]), evaluate(keys[1])));
  EXPECT_TRUE(equal(evaluate(ops::child_key(kKey, 2)), evaluate(keys[2])));
  expect_error<ValueError>([] { ops::child_key(kKey, -1); },
                           "[child_key] number of the key: got -1");
  const auto draw = [](const Variable& key) {
    return evaluate(ops::random_normal(key, {20000})).to_vector<double>();
  };
  const std::vector<double> a = draw(keys[0]), b = draw(keys[1]), c = draw(kKey);
  double ab = 0, ac = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[i] / 20000;
    ac += a[i] * c[i] / 20000;
  }
  EXPECT_NEAR(ab, 0, 0.03);
  EXPECT_NEAR(ac, 0, 0.03);
  expect_error<ValueError>([] { ops::split_key(kKey, 0); }, "[split_key] number of keys: got 0");
}

TEST(RandomKeys, ComeFromSeedsOfAGraph) {
  const Variable seed = iscalar("seed");
  const Tensor key = evaluate(ops::random_key(seed), {{seed, Tensor::scalar<std::int32_t>(7)}});
  EXPECT_TRUE(equal(key, evaluate(ops::random_key(7))));
  expect_error<TypeError>([] { ops::random_key(dscalar("x")); },
                          "[random_key] seed: got float64 ()");
}

TEST(RandomKeys, RefuseWhatIsNone) {
  expect_error<TypeError>(
      [] { ops::random_normal(dvector("x"), {2}); },
      "[RandomNormal] key: got float64 (?,), expected uint64 (2,). Try random_key");
  expect_error<DTypeError>([] { ops::random_normal(kKey, {2}, DType::int32); },
                           "Try random_integers");
  expect_error<DTypeError>([] { ops::random_bits(kKey, {2}, DType::float32); },
                           "expected integers");
  expect_error<DTypeError>([] { ops::random_normal(kKey, {2}, DType::float32, dscalar("mean")); },
                           "[random_normal] got a parameter float64 ()");
  expect_error<TypeError>([] { ops::split_key(lvector("x")); }, "[split_key] key");
  expect_error<TypeError>([] { ops::next_key(lvector("x")); }, "[next_key] key");
  const Variable late = make_input({DType::uint64, {kUnknown}, {}});
  const Variable y = ops::random_normal(late, {2});
  expect_error<ShapeError>(
      [&] { y.owner().op().infer_shapes(y.owner(), std::vector<Extents>{{3}}); },
      "[RandomNormal] key: got extents (3,)");
}

TEST(Random, HasNoGradientButItsScaleHas) {
  const Variable s = dscalar("s");
  const Variable cost = ops::sum(ops::random_normal(kKey, {4}, DType::float64, 0.0, s));
  const double slope = evaluate(grad(cost, s), {{s, Tensor::scalar(2.0)}}).item<double>();
  EXPECT_DOUBLE_EQ(slope, evaluate(ops::sum(ops::random_normal(kKey, {4}))).item<double>());
}

}  // namespace
}  // namespace palimpsest
