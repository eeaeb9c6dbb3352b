// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <complex>
#include <limits>

#include "palimpsest/tensor/tensor.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(TensorCompare, EqualComparesBits) {
  const Tensor t = Tensor::from<double>({1, kNan, 3, 4}, Extents{2, 2});
  EXPECT_TRUE(equal(t, t.clone()));
  EXPECT_TRUE(equal(t.transpose(), t.transpose().clone()));
  EXPECT_FALSE(equal(t, t.transpose()));
  EXPECT_FALSE(equal(t, t.view({4})));
  EXPECT_FALSE(equal(Tensor::zeros({2}), Tensor::zeros({2}, DType::float32)));
  EXPECT_FALSE(equal(Tensor::from<double>({0.0}), Tensor::from<double>({-0.0})));
  EXPECT_TRUE(equal(Tensor::zeros({0}), Tensor::zeros({0})));
  expect_error<DeviceError>(
      [&] {
        equal(t, t.to(Device{DeviceType::cpu, 1}));
      },
      "[equal] devices differ");
}

TEST(TensorCompare, AllcloseToleratesSmallDifferences) {
  const Tensor t = Tensor::from<double>({1, 2});
  EXPECT_TRUE(allclose(Tensor::from<double>({1.000001, 2}), t));
  EXPECT_FALSE(allclose(Tensor::from<double>({1.0001, 2}), t));
  EXPECT_TRUE(allclose(Tensor::from<double>({1.1, 2}), t, 0, 0.2));
  EXPECT_TRUE(allclose(Tensor::from<float>({1, 2}), t.expand({3, 2})));
  EXPECT_TRUE(allclose(Tensor::from<std::complex<float>>({{1, 1e-9F}, {2, 0}}), t));
  EXPECT_FALSE(allclose(Tensor::from<std::complex<float>>({{1, 1}, {2, 0}}), t));
  EXPECT_TRUE(allclose(Tensor::zeros({0}), Tensor::zeros({0})));
  // Tolerance: 1e-5 of the second tensor, plus 1e-8.
  EXPECT_TRUE(allclose(Tensor::scalar(0.99e-8), Tensor::scalar(0.0)));
  EXPECT_FALSE(allclose(Tensor::scalar(1.01e-8), Tensor::scalar(0.0)));
  EXPECT_TRUE(allclose(Tensor::scalar(1e6 + 9.9), Tensor::scalar(1e6)));
  EXPECT_FALSE(allclose(Tensor::scalar(1e6 + 10.1), Tensor::scalar(1e6)));
}

TEST(TensorCompare, AllcloseKnowsNanAndInfinity) {
  const auto one = [](double x) { return Tensor::scalar(x); };
  EXPECT_FALSE(allclose(one(kNan), one(kNan)));
  EXPECT_TRUE(allclose(one(kInf), one(kInf)));
  EXPECT_FALSE(allclose(one(kInf), one(-kInf)));
  EXPECT_FALSE(allclose(one(1), one(kInf)));
  EXPECT_FALSE(allclose(one(kInf), one(1)));
}

TEST(TensorCompare, AllcloseRefusesWhatDoesNotBroadcast) {
  expect_error<ShapeError>([] { allclose(Tensor::zeros({2}), Tensor::zeros({3})); }, "[allclose]");
  expect_error<DeviceError>(
      [] {
        allclose(Tensor::zeros({2}), Tensor::zeros({2}).to(Device{DeviceType::cpu, 1}));
      },
      "[allclose] devices differ: got cpu and cpu:1");
}

}  // namespace
}  // namespace palimpsest
