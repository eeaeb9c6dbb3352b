// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <complex>

#include "palimpsest/tensor/tensor.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using Complex = std::complex<float>;

TEST(TensorBitcast, ShowsComplexNumbersAsPairs) {
  Tensor t = Tensor::from<Complex>({{1, 2}, {3, 4}, {5, 6}, {7, 8}}, Extents{2, 2});
  Tensor real = t.transpose().view_as_real();
  EXPECT_EQ(real.shape(), (Extents{2, 2, 2}));
  EXPECT_EQ(real.dtype(), DType::float32);
  EXPECT_EQ(real.to_vector<float>(), (std::vector<float>{1, 2, 5, 6, 3, 4, 7, 8}));
  real(ellipsis, 1).fill(0.0F);
  EXPECT_EQ(t.at<Complex>({1, 1}), (Complex{7, 0}));
  EXPECT_TRUE(equal(real.view_as_complex(), t.transpose()));
  EXPECT_EQ(t(1, 1).view_as_real().shape(), (Extents{2}));
}

TEST(TensorBitcast, ShowsPairsAsComplexNumbers) {
  const Tensor t = Tensor::arange(12, DType::float64).view({3, 4});
  const Tensor pairs = t(all, slice(2, 4)).view_as_complex();
  EXPECT_EQ(pairs.dtype(), DType::complex128);
  EXPECT_EQ(pairs.at<std::complex<double>>({1}), (std::complex<double>{6, 7}));
  expect_error<ShapeError>([&] { t(all, slice(1, 3)).view_as_complex(); }, "dense and aligned");
  expect_error<ShapeError>([&] { t(all, slice({}, {}, 2)).view_as_complex(); },
                           "dense and aligned");
  expect_error<ShapeError>([&] { t.view_as_complex(); }, "last axis: got shape (3, 4)");
  expect_error<ShapeError>(
      [] {
        Tensor::arange(6, DType::float64).as_strided({2, 2}, {3, 1}, 0).view_as_complex();
      },
      "dense and aligned");
  expect_error<DTypeError>([&] { t.view_as_real(); }, "[Tensor.view_as_real] got float64");
  expect_error<DTypeError>([] { Tensor::arange(2).view_as_complex(); }, "got int64");
  expect_error<ShapeError>([] { Tensor::empty(Extents(16, 1), DType::complex64).view_as_real(); },
                           "too many axes: got 16, expected at most 15");
}

TEST(TensorBitcast, ShowsTheSameBytes) {
  const Tensor t = Tensor::from<std::uint32_t>({0x3f800000, 0x40000000});
  EXPECT_EQ(t.bitcast(DType::float32).to_vector<float>(), (std::vector<float>{1, 2}));
  const Tensor bytes = t.bitcast(DType::uint8);
  EXPECT_EQ(bytes.shape(), (Extents{8}));
  EXPECT_EQ(bytes.at<int>({3}), 0x3f);
  EXPECT_TRUE(equal(bytes.bitcast(DType::uint32), t));
  EXPECT_EQ(Tensor::scalar(1.0F).bitcast(DType::int32).item<std::int32_t>(), 0x3f800000);
  EXPECT_EQ(Tensor::zeros({3, 0}).bitcast(DType::int8).shape(), (Extents{3, 0}));
}

TEST(TensorBitcast, RescalesStridesAndOffsets) {
  const Tensor t = Tensor::arange(8, DType::int32).view({4, 2})(slice({}, {}, -2), all);
  const Tensor wide = t.bitcast(DType::int64);
  EXPECT_EQ(wide.shape(), (Extents{2, 1}));
  EXPECT_TRUE(equal(wide.bitcast(DType::int32), t));
  EXPECT_TRUE(equal(t.bitcast(DType::int16).bitcast(DType::int32), t));
}

TEST(TensorBitcast, RefusesWhatDoesNotDivide) {
  const Tensor t = Tensor::arange(12, DType::int32).view({4, 3});
  const auto refused = [](const Tensor& tensor, const char* text) {
    expect_error<ShapeError>([&] { tensor.bitcast(DType::int64); }, text);
  };
  refused(t, "[Tensor.bitcast] the last axis does not divide: got shape (4, 3)");
  refused(t(all, slice(0, 2)), "the strides or the offset do not divide");
  refused(t(0, slice(1, 3)), "the strides or the offset do not divide");
  refused(t(all, slice({}, {}, 2)), "the last axis must be dense");
  refused(t(0, 0), "items of another size need an axis");
}

TEST(TensorBitcast, RefusesMisalignedMemory) {
  alignas(8) std::array<std::int32_t, 5> memory{};
  const Tensor t = Tensor::from_blob(memory.data() + 1, DType::int32, {4}, {1}, {}, true);
  expect_error<ValueError>([&] { t.bitcast(DType::int64); }, "[Tensor.bitcast] misaligned");
  EXPECT_NO_THROW(t.clone().bitcast(DType::int64));
}

// It does not depend on sharing, copies, take-overs or read-only foreign memory either.
TEST(TensorBitcast, CannotTellWhetherAMisalignedCloneHasBeenWritten) {
  alignas(8) std::array<float, 9> memory{};
  const auto is_possible = [](const Tensor& t) {
    try {
      return t.bitcast(DType::float64).shape() == Extents{4};
    } catch (const ValueError&) {
      return false;
    }
  };
  for (const index_t first : {index_t{0}, index_t{1}}) {
    const Slice part = slice(first, first + 8);
    const Tensor owned = Tensor::arange(9, DType::float32);
    const Tensor read_only =
        Tensor::from_blob(memory.data() + first, DType::float32, {8}, {1}, {}, false);
    for (Tensor t : {owned(part).lazy_clone(), owned(part).lazy_clone().reshape({8}),
                     owned(part).contiguous(), read_only, read_only.lazy_clone()}) {
      const bool before = is_possible(t);
      EXPECT_EQ(before, first == 0);
      EXPECT_TRUE(is_possible(t.clone()));
      const Tensor other = t.lazy_clone();
      t.set({0}, 1.0F);
      EXPECT_EQ(is_possible(t), before);
      EXPECT_EQ(is_possible(other), before);
      t.fill(2.0F);
      EXPECT_EQ(is_possible(t), before);
    }
  }
}

TEST(TensorBitcast, SurvivesMaterialization) {
  Tensor t = Tensor::arange(4, DType::int32);
  const Tensor clone = t.lazy_clone();
  Tensor bytes = t.bitcast(DType::uint8);
  bytes.fill(std::uint8_t{0});
  EXPECT_EQ(t.to_vector<int>(), (std::vector<int>{0, 0, 0, 0}));
  EXPECT_EQ(clone.to_vector<int>(), (std::vector<int>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace palimpsest
