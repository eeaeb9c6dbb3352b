// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/parameter.hpp"

#include "linop/linop_support.hpp"
#include "palimpsest/ops/elementwise.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

TEST(Parameter, AbsentOnesAreTheSame) {
  const Parameter none;
  EXPECT_FALSE(none.present());
  EXPECT_TRUE(none.is(Parameter()));
  EXPECT_FALSE(none.is(Parameter(Tensor::ones({2}))));
  expect_error<ValueError>([&] { none.var(); }, "absent");
  expect_error<ValueError>([&] { none.value(); }, "absent");
}

TEST(Parameter, IsIndependentOfTheTensorItWasMadeFrom) {
  Tensor t = Tensor::ones({3});
  Parameter p = t;
  t.fill(2.0);
  EXPECT_TRUE(equal(p.value(), Tensor::ones({3})));
  Tensor out = p.value();
  out.fill(5.0);
  EXPECT_TRUE(equal(p.value(), Tensor::ones({3})));
  const Parameter borrowed = Parameter::borrow(t);
  t.fill(3.0);
  EXPECT_EQ(borrowed.value().at<double>({0}), 3.0);
  EXPECT_TRUE(borrowed.shares_storage(borrowed));
  EXPECT_FALSE(borrowed.shares_storage(p));
}

TEST(Parameter, WritesAreSeenByEveryHandleAndRaiseTheVersion) {
  Parameter p = Tensor::ones({3});
  const Parameter q = p;
  const auto version = q.version();
  p.set_value(Tensor::zeros({3}));
  EXPECT_TRUE(equal(q.value(), Tensor::zeros({3})));
  EXPECT_GT(q.version(), version);
  p.modify([](Tensor& t) { t.fill(7.0); });
  EXPECT_EQ(q.value().at<double>({1}), 7.0);
  const auto later = q.version();
  p.touch();
  EXPECT_GT(q.version(), later);
}

TEST(Parameter, KeepsItsType) {
  Parameter p = Tensor::ones({3});
  EXPECT_EQ(p.shape(), Extents{3});
  EXPECT_EQ(p.dtype(), DType::float64);
  expect_error<ShapeError>([&] { p.set_value(Tensor::ones({4})); }, "(4,)");
  expect_error<DTypeError>([&] { p.set_value(Tensor::ones({3}, DType::float32)); }, "float32");
  EXPECT_TRUE(equal(p.value(), Tensor::ones({3})));
}

TEST(Parameter, TakesVariablesOfFixedShape) {
  const SharedVariable fixed = shared(Tensor::ones({3}), {.shape = Extents{3}});
  EXPECT_TRUE(Parameter(fixed).variable().is(fixed));
  const SharedVariable open = shared(Tensor::ones({3}));
  expect_error<ValueError>([&] { Parameter p(open); }, "an extent is open");
  expect_error<ValueError>([&] { Parameter p{Tensor()}; }, "undefined");
}

TEST(Parameter, DerivedValuesFollowTheirSources) {
  Parameter w = Tensor::from<double>({1, -2, 3});
  const Parameter squares = Parameter::derived(ops::abs2(w.var()));
  EXPECT_TRUE(squares.is_derived());
  EXPECT_FALSE(w.is_derived());
  EXPECT_EQ(squares.value().to_vector<double>(), (std::vector<double>{1, 4, 9}));
  const auto version = squares.version();
  squares.refresh();
  EXPECT_EQ(squares.version(), version);
  w.set_value(Tensor::from<double>({2, 2, 2}));
  squares.refresh();
  EXPECT_EQ(squares.value().to_vector<double>(), (std::vector<double>{4, 4, 4}));
}

}  // namespace
}  // namespace palimpsest
