// SPDX-License-Identifier: Apache-2.0
// Strides and offsets at the ends of 64 bits, from possibly malicious producers. Strides of axes
// with one element are ignored: these tensors are legal. Tensors that reach too far are refused.
// The undefined-behaviour sanitizer checks sums and products for overflow.
#include <array>
#include <cstdint>
#include <limits>

#include "palimpsest/base/error.hpp"
#include "palimpsest/tensor/tensor.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

constexpr std::array kExtremes{std::numeric_limits<index_t>::min(),
                               std::numeric_limits<index_t>::min() + 1,
                               -(index_t{1} << 62),
                               -(index_t{1} << 56),
                               -(index_t{1} << 50),
                               index_t{1} << 50,
                               index_t{1} << 56,
                               index_t{1} << 62,
                               std::numeric_limits<index_t>::max()};

TEST(TensorFarStrides, BetweenElementsAreRefused) {
  std::array<std::byte, 64> memory{};
  for (const index_t stride : kExtremes) {
    if (stride > 0 && stride < index_t{1} << 57) continue;  // may be real memory one day
    for (const DType dtype : {DType::int8, DType::complex128}) {
      for (const Extents& shape : {Extents{2}, Extents{3, 2}, Extents{2, 1}}) {
        Strides strides(shape.size());
        strides[0] = stride;
        EXPECT_THROW(Tensor::from_blob(memory.data(), dtype, shape, strides, {}, true), ValueError)
            << stride;
        EXPECT_THROW(Tensor::zeros({4}, dtype).as_strided(shape, strides, 1), Error) << stride;
      }
    }
  }
  expect_error<ShapeError>(
      [&] { Tensor::from_blob(memory.data(), DType::int8, {2}, {-(index_t{1} << 50)}, {}, true); },
      "elements outside of all memory");
}

// No byte is touched.
TEST(TensorFarStrides, MayReachTheEndsOfAllAddressesAndNotBeyond) {
  const auto blob = [](std::uintptr_t address, index_t n, index_t stride) {
    return Tensor::from_blob(reinterpret_cast<void*>(address), DType::int8, {n}, {stride}, {},
                             true);
  };
  EXPECT_EQ(blob(16, 17, -1).numel(), 17);
  expect_error<ShapeError>([&] { blob(16, 18, -1); }, "outside of all memory");
  EXPECT_EQ(blob(16, 3, -8).numel(), 3);
  expect_error<ShapeError>([&] { blob(15, 3, -8); }, "outside of all memory");
  constexpr std::uintptr_t kEnd = std::uintptr_t{1} << 57;
  EXPECT_EQ(blob(kEnd - 10, 10, 1).numel(), 10);
  expect_error<ShapeError>([&] { blob(kEnd - 10, 11, 1); }, "outside of all memory");
}

TEST(TensorFarStrides, WithoutNeighboursMeanNothing) {
  for (const index_t far : kExtremes) {
    Tensor t = Tensor::arange(24, DType::float64).as_strided({1, 3, 1}, {far, 2, far}, 3);
    t.fill(1.0);
    t.copy_from(t.flip(Axes{0, 1, 2}));
    EXPECT_EQ(t.lazy_clone().to_vector<double>(), (std::vector<double>{1, 1, 1}));
    EXPECT_EQ(t.flip(Axes{0}).flip(Axes{0}).at<double>({0, 2, 0}), 1.0);
    EXPECT_EQ(t.diagonal(0, 0, 2).shape(), (Extents{3, 1}));
    EXPECT_EQ(t.diagonal(0, 0, 1).numel(), 1);
    EXPECT_EQ(t.unfold(0, 1, std::numeric_limits<index_t>::max()).numel(), 3);
    EXPECT_EQ(t.narrow(0, 1, 0).narrow(2, 1, 0).numel(), 0);
    EXPECT_EQ(t(slice(1, {}), ellipsis, slice({}, {}, -1)).numel(), 0);
    EXPECT_EQ(t.expand({5, 3, 4}).at<double>({4, 1, 3}), 1.0);
    EXPECT_EQ(t.bitcast(DType::uint8).shape(), (Extents{1, 3, 8}));
    EXPECT_EQ(t.reshape({3}).numel(), 3);
    EXPECT_TRUE(overlaps(t, t.select(2, 0)));
    EXPECT_FALSE(has_internal_overlap(t));
    EXPECT_FALSE(to_string(t).empty());
    Tensor complex = t.to(DType::complex64);
    EXPECT_EQ(complex.view_as_real().view_as_complex().numel(), 3);
  }
}

// Offsets are kept up to 2^48 elements.
TEST(TensorFarStrides, WithoutNeighboursAreForgotten) {
  constexpr index_t kFar = index_t{1} << 48;
  const auto kept = [](Extents shape, index_t stride) {
    const Strides strides(shape.size(), stride);
    return Tensor::zeros({4}).as_strided(std::move(shape), strides, 0).strides()[0];
  };
  for (const index_t sign : {1, -1}) {
    EXPECT_EQ(kept({1}, sign * kFar), sign * kFar);
    EXPECT_EQ(kept({1}, sign * (kFar + 1)), 0);
    EXPECT_EQ(kept({4, 0}, sign * (kFar / 4)), sign * (kFar / 4));
    EXPECT_EQ(kept({4, 0}, sign * (kFar / 4 + 1)), 0);
    EXPECT_EQ(kept({0, 4}, sign * kFar), sign * kFar);
    std::array<std::byte, 8> memory{};
    const index_t far = sign * (kFar + 1);
    const Tensor blob = Tensor::from_blob(memory.data(), DType::int8, {1, 8}, {far, 1}, {}, true);
    EXPECT_EQ(blob.strides(), (Strides{0, 1}));
  }
}

TEST(TensorFarStrides, OfTensorsWithoutElementsMeanNothing) {
  constexpr index_t kMany = index_t{1} << 30;
  for (const index_t far : kExtremes) {
    const Tensor t = Tensor::zeros({4}).as_strided({kMany, 0, kMany}, {far, far, far}, 2);
    EXPECT_EQ(t.select(0, kMany - 1).select(1, kMany - 1).numel(), 0);
    EXPECT_EQ(t(kMany - 1, ellipsis, kMany - 1).numel(), 0);
    EXPECT_EQ(t.narrow(0, kMany / 2, 3).numel(), 0);
    EXPECT_EQ(t(slice(kMany / 2, {}, 1000)).numel(), 0);
    EXPECT_EQ(t.flip(Axes{0, 1, 2}).numel(), 0);
    EXPECT_EQ(t.diagonal(-kMany / 2, 0, 2).numel(), 0);
    EXPECT_EQ(t.unfold(2, 5, kMany / 2).numel(), 0);
    EXPECT_EQ(t.clone().numel(), 0);
    EXPECT_FALSE(overlaps(t, t));
  }
}

TEST(TensorFarStrides, DiagonalsBeyondTheCornersAreEmpty) {
  const Tensor t = Tensor::zeros({3, 4});
  for (const index_t offset : kExtremes) EXPECT_EQ(t.diagonal(offset).numel(), 0);
  EXPECT_EQ(t.diagonal(3).numel(), 1);
  EXPECT_EQ(t.diagonal(4).numel(), 0);
  EXPECT_EQ(t.diagonal(-2).numel(), 1);
  EXPECT_EQ(t.diagonal(-3).numel(), 0);
}

TEST(TensorFarStrides, MoreElementsThanNumbersAreRefused) {
  std::array<std::byte, 8> memory{};
  const Extents shape{index_t{1} << 40, index_t{1} << 40};
  const Strides still{0, 0};
  EXPECT_THROW(Tensor::from_blob(memory.data(), DType::int8, shape, still, {}, true),
               OverflowError);
  EXPECT_THROW(Tensor::zeros({4}).as_strided(shape, still, 0), OverflowError);
}

}  // namespace
}  // namespace palimpsest
