// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <complex>
#include <random>

#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/tensor/tensor.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using Values = std::vector<double>;

Tensor counted(Extents shape) {
  return Tensor::arange(element_count(shape), DType::float64).view(shape);
}
Values values(const Tensor& t) { return t.to_vector<double>(); }

TEST(TensorCopies, ALazyCloneIsIndependentAndFree) {
  Tensor t = counted({2, 3});
  const MemoryScope scope;
  Tensor clone = t.lazy_clone();
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_TRUE(t.is_shared() && clone.is_shared());
  EXPECT_EQ(clone.raw_data(), t.raw_data());
  clone.set({0, 0}, 9.0);
  EXPECT_EQ(scope.calls(), 1u);
  EXPECT_EQ(values(t), (Values{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values(clone), (Values{9, 1, 2, 3, 4, 5}));
  EXPECT_FALSE(t.is_shared() || clone.is_shared());
}

TEST(TensorCopies, ALazyCloneOfAViewCoversTheExtentOfTheView) {
  const Tensor t = counted({10, 10});
  const Tensor view = t(slice(2, 5), slice(8, 3, -2));
  Tensor clone = view.lazy_clone();
  EXPECT_EQ(clone.strides(), view.strides());
  EXPECT_EQ(clone.storage().nbytes(), (20 + 5) * sizeof(double));
  EXPECT_TRUE(equal(clone, view));
  const MemoryScope scope;
  clone.set({0, 0}, -1.0);
  EXPECT_EQ(scope.allocated_bytes(), 25 * sizeof(double));
  EXPECT_EQ(clone.at<double>({2, 2}), view.at<double>({2, 2}));
  EXPECT_EQ(view.at<double>({0, 0}), 28.0);
}

TEST(TensorCopies, ALazyCloneOfNothingHoldsNothing) {
  const Tensor t = counted({4, 0});
  const Tensor clone = t.lazy_clone();
  EXPECT_EQ(clone.shape(), t.shape());
  EXPECT_EQ(clone.storage().nbytes(), 0u);
  EXPECT_EQ(counted({3})(slice(2, 2)).lazy_clone().numel(), 0);
}

TEST(TensorCopies, ALazyCloneKeepsBroadcasts) {
  const Tensor t = counted({3}).expand({4, 3});
  const Tensor clone = t.lazy_clone();
  EXPECT_EQ(clone.strides(), (Strides{0, 1}));
  EXPECT_EQ(clone.storage().nbytes(), 24u);
  EXPECT_TRUE(equal(clone, t));
}

TEST(TensorCopies, ACloneIsDenseAndImmediate) {
  const Tensor t = counted({2, 3}).transpose();
  const Tensor clone = t.clone();
  EXPECT_EQ(clone.strides(), (Strides{2, 1}));
  EXPECT_FALSE(clone.is_shared());
  EXPECT_TRUE(equal(clone, t));
}

TEST(TensorCopies, ContiguousIsLazyWhereItCan) {
  const Tensor t = counted({2, 3});
  EXPECT_TRUE(t.contiguous().is_shared());
  EXPECT_FALSE(shares_storage(t.contiguous(), t));
  const Tensor dense = t.transpose().contiguous();
  EXPECT_FALSE(dense.is_shared());
  EXPECT_TRUE(dense.is_contiguous());
}

TEST(TensorCopies, ReshapeNeverAliases) {
  Tensor t = counted({2, 6});
  Tensor lazy = t.reshape({3, -1});
  EXPECT_EQ(lazy.shape(), (Extents{3, 4}));
  EXPECT_TRUE(lazy.is_shared());
  Tensor copied = t.transpose().reshape({12});
  EXPECT_FALSE(copied.is_shared());
  EXPECT_EQ(copied.at<double>({1}), 6.0);
  t.fill(0.0);
  EXPECT_EQ(lazy.at<double>({0, 1}), 1.0);
  EXPECT_TRUE(t(0, slice({}, {}, 2)).reshape({3, 1}).is_shared());
  expect_error<ShapeError>([&] { t.reshape({5, -1}); }, "[Tensor.reshape] the extent -1");
  expect_error<ShapeError>([&] { t.reshape({7}); }, "expected 12 elements");
  expect_error<ShapeError>([&] { t.reshape(Extents(17, 1)); }, "[Tensor.reshape] the number");
  expect_error<ShapeError>([&] { t.reshape({-3, -4}); }, "[Tensor.reshape]");
}

TEST(TensorCopies, ConvertsTheDType) {
  const Tensor t = Tensor::from<double>({-1.5, 0, 300});
  EXPECT_EQ(t.to(DType::int32).to_vector<int>(), (std::vector<int>{-1, 0, 300}));
  EXPECT_EQ(t.to(DType::uint8).to_vector<int>(), (std::vector<int>{255, 0, 44}));
  EXPECT_EQ(t.to(DType::bool_).to_vector<bool>(), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(t.to(DType::complex64).dtype(), DType::complex64);
  EXPECT_TRUE(t.to(DType::float64).is_shared());
  expect_error<DTypeError>([] { Tensor::zeros({1}, DType::complex64).to(DType::float32); },
                           "[Tensor.to] imaginary parts would be lost: got complex64");
  EXPECT_TRUE(Tensor::ones({1}, DType::complex64).to(DType::bool_).item<bool>());
}

TEST(TensorCopies, MovesToAnotherMemorySpace) {
  const Device other{DeviceType::cpu, 1};
  const Tensor t = counted({2, 3}).transpose();
  const Tensor moved = t.to(other);
  EXPECT_EQ(moved.device(), other);
  EXPECT_EQ(values(moved), values(t));
  EXPECT_TRUE(moved.to(other).is_shared());
  const Device absent{DeviceType::cuda, 99};
  expect_error<DeviceError>([&] { t.to(absent); }, "; devices: cpu:0");
}

TEST(TensorCopies, CopyFromBroadcastsAndConverts) {
  Tensor t = Tensor::zeros({2, 3}, DType::complex64);
  t.copy_from(Tensor::from<std::int16_t>({1, 2, 3}));
  EXPECT_EQ(t.at<std::complex<float>>({1, 2}), std::complex<float>(3));
  t(all, 0).copy_from(Tensor::scalar(7.0));
  EXPECT_EQ(t.at<std::complex<float>>({1, 0}), std::complex<float>(7));
  Tensor& same = t.copy_from(t);
  EXPECT_EQ(&same, &t);
}

TEST(TensorCopies, CopyFromRefusesWhatDoesNotFit) {
  Tensor t = Tensor::zeros({2, 3});
  expect_error<ShapeError>([&] { t.copy_from(Tensor::zeros({2})); },
                           "[Tensor.copy_from] shapes do not fit: got (2,), expected to broadcast "
                           "to (2, 3)");
  expect_error<DTypeError>([&] { t.copy_from(Tensor::zeros({3}, DType::complex128)); },
                           "[Tensor.copy_from] imaginary parts");
  expect_error<DeviceError>(
      [&] {
        t.copy_from(Tensor::zeros({3}, DType::float64, Device{DeviceType::cpu, 1}));
      },
      "[Tensor.copy_from] devices differ: got cpu:1, expected cpu");
  expect_error<ValueError>([&] { t.copy_from(Tensor()); }, "undefined");
}

TEST(TensorCopies, OfMemoryThatTheHostCannotReachAreRefused) {
  std::array<double, 4> memory{1, 2, 3, 4};
  const auto elsewhere = [&](std::size_t first) {
    return Tensor::from_blob(&memory[first], DType::float64, {2}, {1}, {}, true,
                             Device{DeviceType::cuda, 99});
  };
  Tensor t = elsewhere(0);
  const char* const text = "; devices: cpu:0";  // this one is not here
  const char* const unreachable = "the host cannot reach cuda:99";
  expect_error<DeviceError>([&] { t.copy_from(elsewhere(2)); }, text);
  expect_error<DeviceError>([&] { t.clone(); }, text);
  expect_error<DeviceError>([&] { t.to(DType::int32); }, text);
  expect_error<DeviceError>([&] { t.to(Device{}); }, text);
  expect_error<DeviceError>([&] { t.fill(5.0); }, text);
  expect_error<DeviceError>([&] { t.at<double>({0}); }, unreachable);
  expect_error<DeviceError>([&] { t(0).item<double>(); }, text);
  expect_error<DeviceError>([&] { t.set({0}, 5.0); }, unreachable);
  expect_error<DeviceError>([&] { t.to_vector<double>(); }, text);
  expect_error<DeviceError>([&] { t.data<double>(); }, unreachable);
  expect_error<DeviceError>([&] { t.mutable_data<double>(); }, unreachable);
  EXPECT_EQ(memory[0], 1.0);
  // No memory is allocated to make a sparse one dense either.
  Tensor sparse = Tensor::from_blob(memory.data(), DType::float64, {100}, {100}, {}, false,
                                    Device{DeviceType::cuda, 99});
  expect_error<DeviceError>([&] { sparse.set({0}, 5.0); }, unreachable);
  expect_error<DeviceError>([&] { sparse.fill(5.0); }, text);
}

TEST(TensorCopies, CopyFromIsRightForOverlappingSides) {
  Tensor t = counted({6});
  t(slice(1, 6)).copy_from(t(slice(0, 5)));
  EXPECT_EQ(values(t), (Values{0, 0, 1, 2, 3, 4}));
  t.copy_from(t.flip(Axes{0}));
  EXPECT_EQ(values(t), (Values{4, 3, 2, 1, 0, 0}));
  Tensor square = counted({3, 3});
  square.copy_from(square.transpose());
  EXPECT_EQ(values(square), (Values{0, 3, 6, 1, 4, 7, 2, 5, 8}));
  square.copy_from(square(1, all));
  EXPECT_EQ(values(square), (Values{1, 4, 7, 1, 4, 7, 1, 4, 7}));
}

TEST(TensorCopies, CopyFromSharedDataWithItselfKeepsTheClone) {
  Tensor t = counted({4});
  const Tensor clone = t.lazy_clone();
  t.copy_from(t(slice({}, {}, -1)));
  EXPECT_EQ(values(t), (Values{3, 2, 1, 0}));
  EXPECT_EQ(values(clone), (Values{0, 1, 2, 3}));
  const CopyStats stats;
  Tensor other = clone.lazy_clone();
  other.copy_from(t);
  EXPECT_EQ(stats.counts().copies, 0u);
  EXPECT_EQ(values(other), (Values{3, 2, 1, 0}));
  // The source shares data, but not its storage, with the destination.
  Tensor back = other.lazy_clone();
  back.copy_from(other.flip(Axes{0}));
  EXPECT_EQ(values(back), (Values{0, 1, 2, 3}));
  EXPECT_EQ(values(other), (Values{3, 2, 1, 0}));
}

TEST(TensorCopies, CopyFromAnyViewOfTheSameStorageEqualsCopyFromAClone) {
  std::mt19937 random(3);
  const auto any_view = [&random](const Tensor& t) {
    Tensor v = t;
    const auto start = static_cast<index_t>(random() % 3);
    v = v.narrow(0, start, 4).narrow(1, static_cast<index_t>(random() % 3), 4);
    if (random() % 2 == 0) v = v.transpose();
    if (random() % 2 == 0) v = v.flip(Axes{0});
    if (random() % 2 == 0) v = v.flip(Axes{1});
    return v;
  };
  for (int round = 0; round < 500; ++round) {
    Tensor actual = counted({6, 6});
    Tensor expected = actual.clone();
    const auto seed = random();
    const auto run = [&](Tensor t, bool through_clone) {
      random.seed(seed);
      Tensor to = any_view(t);
      const Tensor from = any_view(t);
      to.copy_from(through_clone ? from.clone() : from);
    };
    run(actual, false);
    run(expected, true);
    random.seed(seed + 1);
    ASSERT_TRUE(equal(actual, expected)) << actual << "\n" << expected;
  }
}

TEST(TensorCopies, CopyFromForeignMemoryThatOverlapsIsRight) {
  std::array<double, 5> memory{0, 1, 2, 3, 4};
  const auto import = [&](std::size_t first) {
    return Tensor::from_blob(memory.data() + first, DType::float64, {4}, {1}, {}, true);
  };
  import(1).copy_from(import(0));
  EXPECT_EQ(memory, (std::array<double, 5>{0, 0, 1, 2, 3}));
}

TEST(TensorCopies, ForeignWritableMemoryIsClonedAtOnce) {
  std::array<double, 2> memory{1, 2};
  const Tensor t = Tensor::from_blob(memory.data(), DType::float64, {2}, {1}, {}, true);
  const Tensor clone = t.lazy_clone(), reshaped = t.reshape({2, 1});
  memory[0] = 9;
  EXPECT_EQ(values(clone), (Values{1, 2}));
  EXPECT_EQ(values(reshaped), (Values{1, 2}));
}

}  // namespace
}  // namespace palimpsest
