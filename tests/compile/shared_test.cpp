// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/shared.hpp"

#include <gtest/gtest.h>

#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

TEST(SharedVariable, BorrowsOnlyWhenAsked) {
  Tensor ones = Tensor::ones({2});
  const SharedVariable by_default = shared(ones), lent = shared(ones, {.borrow = true});
  ones.fill(2.0);
  EXPECT_EQ(by_default.get_value().at<double>({0}), 1.0);
  EXPECT_EQ(lent.get_value().at<double>({0}), 2.0);
}

TEST(SharedVariable, GetValueIsIndependentUnlessBorrowed) {
  const SharedVariable s = shared(Tensor::ones({2}));
  Tensor copy = s.get_value();
  copy.fill(5.0);
  EXPECT_EQ(s.get_value().at<double>({0}), 1.0);
  Tensor lent = s.get_value({.borrow = true});
  lent.fill(5.0);
  EXPECT_EQ(s.get_value().at<double>({0}), 5.0);
}

TEST(SharedVariable, TypeHasUnknownExtentsUnlessFixed) {
  EXPECT_EQ(shared(Tensor::ones({1, 3})).type().str(), "float64 (?, ?)");
  EXPECT_EQ(shared(Tensor::ones({1, 3}), {.shape = Extents{kUnknown, 3}}).type().str(),
            "float64 (?, 3)");
}

TEST(SharedVariable, SetValueOfAnotherTypeChangesNothing) {
  SharedVariable s = shared(Tensor::ones({2}), {.name = "w", .shape = Extents{2}});
  const auto version = s.version();
  expect_error<ShapeError>([&] { s.set_value(Tensor::ones({3})); }, "'w'");
  expect_error<DTypeError>([&] { s.set_value(Tensor::ones({2}, DType::float32)); }, "float32");
  expect_error<DeviceError>(
      [&] { s.set_value(Tensor::ones({2}, DType::float64, Device::parse("cpu:1"))); }, "device");
  EXPECT_EQ(s.version(), version);
  EXPECT_EQ(s.get_value().at<double>({1}), 1.0);
}

TEST(SharedVariable, EveryChangeRaisesTheVersion) {
  SharedVariable s = shared(Tensor::ones({2}));
  const auto version = s.version();
  s.set_value(Tensor::zeros({2}));
  EXPECT_EQ(s.version(), version + 1);
  s.modify([](Tensor& t) { t.fill(3.0); });
  EXPECT_EQ(s.version(), version + 2);
  EXPECT_EQ(s.get_value().at<double>({0}), 3.0);
  s.container()->touch();
  EXPECT_EQ(s.version(), version + 3);
}

TEST(SharedVariable, ExchangeReturnsTheOldStorage) {
  SharedVariable s = shared(Tensor::ones({2}));
  const void* address = s.get_value({.borrow = true}).raw_data();
  const Tensor old = s.exchange(Tensor::zeros({2}));
  EXPECT_EQ(old.raw_data(), address);
  EXPECT_EQ(s.get_value().at<double>({0}), 0.0);
}

TEST(SharedVariable, ValueWithOverlappingElementsIsMadeDense) {
  const SharedVariable s = shared(Tensor::ones({1}).expand({4}));
  EXPECT_FALSE(has_internal_overlap(s.get_value()));
}

}  // namespace
}  // namespace palimpsest
