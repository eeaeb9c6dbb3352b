// SPDX-License-Identifier: Apache-2.0
// Conversion of values for each type of input.
#include <gtest/gtest.h>

#include <limits>

#include "palimpsest/base/config.hpp"
#include "palimpsest/run/value.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

TensorType vector_of(DType dtype, Device device = {}) { return {dtype, {kUnknown}, device}; }
TensorType scalar_of(DType dtype) { return {dtype, {}, {}}; }
Tensor filtered(const TensorType& type, const Value& value, FilterOptions options = {}) {
  return filter(type, value, options, "x");
}

TEST(Filter, TensorOfTheTypeIsUsedByReferenceWithAnyStrides) {
  const Tensor t = Tensor::arange(10, DType::float64), view = t(slice(8, 0, -3));
  const Tensor result = filtered(vector_of(DType::float64), view);
  EXPECT_TRUE(shares_storage(result, t));
  EXPECT_EQ(result.raw_data(), view.raw_data());
  EXPECT_EQ(result.strides(), view.strides());
}

TEST(Filter, TensorOfAnotherDeviceIsMovedUnlessStrict) {
  const Device other = Device::parse("cpu:1");
  const Tensor t = Tensor::ones({2});
  const Tensor moved = filtered(vector_of(DType::float64, other), t);
  EXPECT_EQ(moved.device(), other);
  EXPECT_EQ(moved.to_vector<double>(), t.to_vector<double>());
  expect_error<DeviceError>(
      [&] { filtered(vector_of(DType::float64, other), t, {.strict = true}); }, "cpu:1");
}

TEST(Filter, DTypeThatConvertsWithoutLossIsConverted) {
  const auto converts = [](DType from, DType to) {
    const Tensor result = filtered(vector_of(to), Tensor::ones({2}, from));
    EXPECT_EQ(result.dtype(), to);
    EXPECT_EQ(result.to_vector<std::complex<double>>()[1], std::complex<double>(1));
  };
  converts(DType::int8, DType::int32);
  converts(DType::int32, DType::float64);
  converts(DType::float32, DType::float64);
  converts(DType::float64, DType::complex128);
}

TEST(Filter, AnyOtherDTypeIsRefusedWhateverItsValues) {
  expect_error<DTypeError>(
      [] { filtered(vector_of(DType::int8), Tensor::ones({2}, DType::int32)); },
      "[x] dtype: got "
      "int32, expected "
      "int8");
  expect_error<DTypeError>(
      [] { filtered(vector_of(DType::float32), Tensor::ones({2}, DType::float64)); }, "float64");
}

TEST(Filter, AnyOtherDTypeIsConvertedIfDowncastsAreAllowedButComplexToRealNever) {
  const FilterOptions allowed{.allow_downcast = true};
  const Tensor t = filtered(vector_of(DType::int8), Tensor::full<std::int32_t>({1}, 300), allowed);
  EXPECT_EQ(t.at<std::int8_t>({0}), 44);  // wraps
  EXPECT_EQ(filtered(vector_of(DType::float32), Tensor::ones({2}), allowed).dtype(),
            DType::float32);
  expect_error<DTypeError>(
      [&] { filtered(vector_of(DType::float64), Tensor::ones({2}, DType::complex64), allowed); },
      "real part");
}

TEST(Filter, NumberIsConvertedIfItSurvivesExactly) {
  EXPECT_EQ(filtered(scalar_of(DType::float64), 3).item<double>(), 3.0);
  EXPECT_EQ(filtered(scalar_of(DType::int8), 127).item<std::int8_t>(), 127);
  EXPECT_EQ(filtered(scalar_of(DType::int32), 7.0).item<std::int32_t>(), 7);
  EXPECT_EQ(filtered(scalar_of(DType::float32), 0.5).item<float>(), 0.5f);
  EXPECT_EQ(filtered(scalar_of(DType::complex64), 2.0).item<std::complex<float>>(), 2.0f);
  EXPECT_TRUE(filtered(scalar_of(DType::bool_), 1).item<bool>());
  EXPECT_EQ(filtered(scalar_of(DType::uint64), std::numeric_limits<std::uint64_t>::max())
                .item<std::uint64_t>(),
            std::numeric_limits<std::uint64_t>::max());
}

TEST(Filter, NumberOutOfRangeIsAnOverflow) {
  const auto overflows = [](DType dtype, const Value& value) {
    expect_error<OverflowError>([&] { filtered(scalar_of(dtype), value); }, "out of range");
  };
  overflows(DType::int8, 128);
  overflows(DType::int8, -129);
  overflows(DType::uint8, -1);
  overflows(DType::uint64, -1);
  overflows(DType::int64, std::numeric_limits<std::uint64_t>::max());
  overflows(DType::int64, 9223372036854775808.0);
  overflows(DType::bool_, 2);
  overflows(DType::int8, 300.5);
  overflows(DType::float32, 1e300);
}

TEST(Filter, NumberThatWouldBeRoundedIsRefused) {
  const auto refused = [](DType dtype, const Value& value) {
    expect_error<DTypeError>([&] { filtered(scalar_of(dtype), value); }, "does not survive");
  };
  refused(DType::int32, 3.5);
  refused(DType::float64, (std::int64_t{1} << 53) + 1);
  refused(DType::float32, 16777217);
  refused(DType::int64, std::numeric_limits<double>::quiet_NaN());
  expect_error<DTypeError>([] { filtered(scalar_of(DType::float64), std::complex<double>(1, 0)); },
                           "real part");
}

TEST(Filter, NumberWrapsOrRoundsIfDowncastsAreAllowed) {
  const FilterOptions allowed{.allow_downcast = true};
  EXPECT_EQ(filtered(scalar_of(DType::int8), 300, allowed).item<std::int8_t>(), 44);
  EXPECT_EQ(filtered(scalar_of(DType::int32), 3.7, allowed).item<std::int32_t>(), 3);
  EXPECT_EQ(filtered(scalar_of(DType::float32), 0.1, allowed).item<float>(), 0.1f);
  expect_error<DTypeError>(
      [&] { filtered(scalar_of(DType::float64), std::complex<double>(1, 0), allowed); },
      "real part");
}

// Example: 0.1 for a float32 scalar input.
TEST(Filter, FloatingNumberForFloat32DependsOnAllowDowncastAndTheDefaultFloat) {
  const TensorType type = scalar_of(DType::float32);
  EXPECT_EQ(filtered(type, 0.1, {.allow_downcast = true}).item<float>(), 0.1f);
  expect_error<DTypeError>([&] { filtered(type, 0.1, {.allow_downcast = false}); }, "0.1");
  expect_error<DTypeError>([&] { filtered(type, 0.1); }, "allow_downcast");
  const ConfigScope scope({.default_float = DType::float32});
  EXPECT_EQ(filtered(type, 0.1).item<float>(), 0.1f);
  expect_error<DTypeError>([&] { filtered(type, 0.1, {.allow_downcast = false}); }, "0.1");
  expect_error<DTypeError>([&] { filtered(type, 16777217); }, "16777217");  // not exact as float32
}

TEST(Filter, WrongRankOrExtentIsAShapeErrorWithBothShapes) {
  expect_error<ShapeError>(
      [] {
        filtered(vector_of(DType::float64), Tensor::ones({2, 3}));
      },
      "got (2, 3), expected float64 (?,)");
  const TensorType fixed{DType::float64, {kUnknown, 3}, {}};
  expect_error<ShapeError>(
      [&] {
        filtered(fixed, Tensor::ones({2, 4}));
      },
      "got (2, 4), expected float64 (?, 3)");
  expect_error<ShapeError>([] { filtered(vector_of(DType::float64), 3.0); }, "got ()");
}

TEST(Filter, VariableMustBeEvaluatedFirst) {
  const Variable v = make_input(scalar_of(DType::float64), "v");
  expect_error<TypeError>([&] { filtered(scalar_of(DType::float64), v); },
                          "got the Variable v, expected a value of float64 (). Try to evaluate it "
                          "first");
}

TEST(Filter, UndefinedTensorIsATypeError) {
  expect_error<TypeError>([] { filtered(scalar_of(DType::float64), Tensor()); }, "undefined");
}

// Example: an int32 tensor for a float64 input is converted; with strict it is a TypeError.
TEST(Filter, StrictTakesOnlyWhatIsExactlyRight) {
  const TensorType type = vector_of(DType::float64);
  const Tensor ints = Tensor::ones({2}, DType::int32);
  EXPECT_EQ(filtered(type, ints).dtype(), DType::float64);
  expect_error<DTypeError>([&] { filtered(type, ints, {.strict = true}); }, "got int32");
  expect_error<DTypeError>([&] { filtered(scalar_of(DType::float64), 3, {.strict = true}); },
                           "got int64");
  EXPECT_EQ(filtered(scalar_of(DType::float64), 3.0, {.strict = true}).item<double>(), 3.0);
  EXPECT_NO_THROW(filtered(type, Tensor::ones({2}), {.strict = true}));
}

// Example: a list of ints in range for an int8 vector is accepted; an int32 tensor is not.
TEST(Filter, ListOfNumbersIsWeakAndATensorIsNot) {
  const TensorType type = vector_of(DType::int8);
  EXPECT_EQ(filtered(type, std::vector<int>{1, -2, 127}).to_vector<int>(),
            (std::vector<int>{1, -2, 127}));
  expect_error<OverflowError>([&] { filtered(type, std::vector<int>{1, 128}); }, "128");
  expect_error<DTypeError>([&] { filtered(type, Tensor::ones({2}, DType::int32)); }, "int32");
  EXPECT_EQ(filtered(vector_of(DType::bool_), std::vector<bool>{true, false}).to_vector<bool>(),
            (std::vector<bool>{true, false}));
}

TEST(Value, NumbersHaveTheTypesOfTheTable) {
  EXPECT_EQ(Value(3).tensor().dtype(), DType::int64);
  EXPECT_EQ(Value(3u).tensor().dtype(), DType::uint64);
  EXPECT_EQ(Value(7.0).tensor().dtype(), DType::float64);
  EXPECT_EQ(Value(7.0f).tensor().dtype(), DType::float32);
  EXPECT_EQ(Value(true).tensor().dtype(), DType::bool_);
  EXPECT_EQ(Value(std::complex<float>(1, 2)).tensor().dtype(), DType::complex64);
  EXPECT_EQ(Value(std::vector<float>{1, 2}).tensor().shape(), (Extents{2}));
}

}  // namespace
}  // namespace palimpsest
