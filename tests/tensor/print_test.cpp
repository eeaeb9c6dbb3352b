// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <complex>
#include <limits>
#include <sstream>

#include "palimpsest/tensor/tensor.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

TEST(TensorPrint, AlignsRowsAndColumns) {
  EXPECT_EQ(to_string(Tensor::arange(12, DType::float64).view({3, 4})),
            "tensor([[ 0.,  1.,  2.,  3.],\n"
            "        [ 4.,  5.,  6.,  7.],\n"
            "        [ 8.,  9., 10., 11.]], dtype=float64, device=cpu)");
  EXPECT_EQ(to_string(Tensor::from<int>({-1, 20, 3})),
            "tensor([-1, 20,  3], dtype=int32, device=cpu)");
  EXPECT_EQ(to_string(Tensor::from<bool>({true, false})),
            "tensor([ True, False], dtype=bool, device=cpu)");
  EXPECT_EQ(to_string(Tensor::scalar(3.5F)), "tensor(3.5, dtype=float32, device=cpu)");
  EXPECT_EQ(
      to_string(Tensor::zeros({2, 2, 1}, DType::int8, Device{DeviceType::cpu, 1})),
      "tensor([[[0],\n         [0]],\n\n        [[0],\n         [0]]], dtype=int8, device=cpu:1)");
}

TEST(TensorPrint, AlignsDecimals) {
  EXPECT_EQ(to_string(Tensor::from<double>({0, 0.5, 1, -3.25})),
            "tensor([ 0.  ,  0.5 ,  1.  , -3.25], dtype=float64, device=cpu)");
  EXPECT_EQ(to_string(Tensor::from<double>({1.0 / 3})),
            "tensor([0.333333], dtype=float64, device=cpu)");
  EXPECT_EQ(to_string(Tensor::from<double>({1.0 / 3}), {.precision = 2}),
            "tensor([0.33], dtype=float64, device=cpu)");
  EXPECT_EQ(to_string(Tensor::from<float>({330.43707F})),
            "tensor([330.43707], dtype=float32, device=cpu)")
      << "the digits that tell it from other float32";
}

TEST(TensorPrint, UsesExponentsForWideRanges) {
  EXPECT_EQ(to_string(Tensor::from<double>({0.5, 1e-9, 300})),
            "tensor([5.e-01, 1.e-09, 3.e+02], dtype=float64, device=cpu)");
  EXPECT_EQ(to_string(Tensor::from<double>({1.5e10, -2.25e10})),
            "tensor([ 1.50e+10, -2.25e+10], dtype=float64, device=cpu)");
  EXPECT_EQ(to_string(Tensor::from<double>({1e300})),
            "tensor([1.e+300], dtype=float64, device=cpu)");
  EXPECT_EQ(to_string(Tensor::from<double>({1e300, 2})),
            "tensor([1.e+300, 2.e+000], dtype=float64, device=cpu)");
}

TEST(TensorPrint, UsesExponentsForNumbersFarFromOne) {
  const auto has_exponent = [](double value) {
    const std::string text = to_string(Tensor::from<double>({value}));
    return text.find("e-0") != std::string::npos || text.find("e+0") != std::string::npos;
  };
  EXPECT_FALSE(has_exponent(1e-4));
  EXPECT_TRUE(has_exponent(9.9e-5));
  EXPECT_TRUE(has_exponent(2e-5));
  EXPECT_FALSE(has_exponent(9.9e7));
  EXPECT_TRUE(has_exponent(1e8));
}

TEST(TensorPrint, ShowsWhatIsNoNumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(to_string(Tensor::from<double>({nan, inf, 1.5})),
            "tensor([nan, inf, 1.5], dtype=float64, device=cpu)");
  EXPECT_EQ(to_string(Tensor::from<double>({-inf})), "tensor([-inf], dtype=float64, device=cpu)");
}

TEST(TensorPrint, ShowsComplexNumbers) {
  EXPECT_EQ(to_string(Tensor::from<std::complex<double>>({{1, 2}, {3.5, -1.25}})),
            "tensor([1. +2.j  , 3.5-1.25j], dtype=complex128, device=cpu)");
  EXPECT_EQ(to_string(Tensor::from<std::complex<double>>({{1, 2}, {1, 10}})),
            "tensor([1. +2.j, 1.+10.j], dtype=complex128, device=cpu)");
  EXPECT_EQ(to_string(Tensor::from<std::complex<double>>({{1, -2}, {1, -10}})),
            "tensor([1. -2.j, 1.-10.j], dtype=complex128, device=cpu)");
  EXPECT_EQ(to_string(Tensor::from<std::complex<float>>({{330.43707F, -0.1F}})),
            "tensor([330.43707-0.1j], dtype=complex64, device=cpu)");
}

TEST(TensorPrint, KeepsBigIntegersExact) {
  EXPECT_EQ(to_string(Tensor::from<std::uint64_t>({~std::uint64_t{0}})),
            "tensor([18446744073709551615], dtype=uint64, device=cpu)");
  EXPECT_EQ(to_string(Tensor::from<std::int64_t>({std::numeric_limits<std::int64_t>::min()})),
            "tensor([-9223372036854775808], dtype=int64, device=cpu)");
}

TEST(TensorPrint, SummarizesLongTensors) {
  EXPECT_EQ(to_string(Tensor::arange(1001)),
            "tensor([   0,    1,    2, ...,  998,  999, 1000], shape=(1001,), dtype=int64, "
            "device=cpu)");
  EXPECT_EQ(to_string(Tensor::arange(9).view({3, 3}), {.summarize_above = 5, .edge_items = 1}),
            "tensor([[0, ..., 2],\n        ...,\n        [6, ..., 8]], shape=(3, 3), dtype=int64, "
            "device=cpu)");
  EXPECT_EQ(to_string(Tensor::arange(1000)).find("..."), std::string::npos);
}

TEST(TensorPrint, KeepsShortAxesOfLongTensors) {
  const std::string text = to_string(Tensor::arange(2000).view({1000, 2}));
  EXPECT_NE(text.find("[   0,    1]"), std::string::npos) << text;
  EXPECT_NE(text.find("[1998, 1999]"), std::string::npos) << text;
  EXPECT_EQ(text.find(" 7]"), std::string::npos) << text;
}

TEST(TensorPrint, BreaksLongLines) {
  const std::string text = to_string(Tensor::arange(40));
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16,");
  EXPECT_EQ(to_string(Tensor::arange(4), {.line_width = 13}),
            "tensor([0, 1,\n        2, 3], dtype=int64, device=cpu)");
}

TEST(TensorPrint, ShowsTheShapeOfWhatHasNoElements) {
  EXPECT_EQ(to_string(Tensor::zeros({0, 3})),
            "tensor([], shape=(0, 3), dtype=float64, device=cpu)");
  EXPECT_EQ(to_string(Tensor::zeros({0})), "tensor([], dtype=float64, device=cpu)");
  EXPECT_EQ(to_string(Tensor()), "tensor(undefined)");
  float memory = 0;
  EXPECT_EQ(to_string(Tensor::from_blob(&memory, DType::float32, {1}, {1}, {}, false,
                                        Device{DeviceType::cuda, 99})),
            "tensor(out of reach, shape=(1,), dtype=float32, device=cuda:99)");
}

TEST(TensorPrint, GoesToStreams) {
  std::ostringstream stream;
  stream << Tensor::scalar(1);
  EXPECT_EQ(stream.str(), "tensor(1, dtype=int32, device=cpu)");
}

}  // namespace
}  // namespace palimpsest
