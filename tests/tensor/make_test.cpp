// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <complex>

#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/tensor/tensor.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

TEST(TensorMake, EmptyAllocatesWhatItsElementsNeed) {
  const MemoryScope scope(Device{DeviceType::cpu, 1});
  const Tensor t = Tensor::empty({5, 7}, DType::complex64, Device{DeviceType::cpu, 1});
  EXPECT_EQ(scope.live_bytes(), 5 * 7 * 8);
  EXPECT_EQ(scope.calls(), 1u);
  EXPECT_EQ(Tensor::empty({}).numel(), 1);
  EXPECT_EQ(Tensor::empty({3, 0}).nbytes(), 0);
}

TEST(TensorMake, EmptyRefusesImpossibleShapes) {
  expect_error<ShapeError>([] { Tensor::empty({2, -1}); }, "negative extent on axis 1");
  expect_error<ShapeError>([] { Tensor::empty(Extents(17, 1)); }, "too many axes");
  expect_error<OverflowError>(
      [] {
        Tensor::empty({index_t{1} << 40, index_t{1} << 40});
      },
      "63 bits");
  expect_error<OutOfMemory>([] { Tensor::empty({index_t{1} << 57}, DType::int8, {}, "image"); },
                            "for image");
  EXPECT_EQ(Tensor::empty(Extents(16, 1)).rank(), 16u);
}

TEST(TensorMake, FillsWithNumbers) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const Tensor zeros = Tensor::zeros({3}, dtype), ones = Tensor::ones({3}, dtype);
    EXPECT_EQ(zeros.dtype(), dtype);
    EXPECT_EQ(zeros.to_vector<std::complex<double>>(), (std::vector<std::complex<double>>(3, 0)));
    EXPECT_EQ(ones.to_vector<std::complex<double>>(), (std::vector<std::complex<double>>(3, 1)));
  }
  EXPECT_EQ(Tensor::full({2}, std::int8_t{-3}).to_vector<int>(), (std::vector<int>{-3, -3}));
  EXPECT_EQ(Tensor::full({}, 2.5F).dtype(), DType::float32);
  EXPECT_EQ(Tensor::scalar(std::complex<float>(1, 2)).item<std::complex<float>>(),
            (std::complex<float>(1, 2)));
}

TEST(TensorMake, CountsAndSpacesEvenly) {
  EXPECT_EQ(Tensor::arange(4).to_vector<index_t>(), (std::vector<index_t>{0, 1, 2, 3}));
  EXPECT_EQ(Tensor::arange(3, DType::float32).to_vector<float>(), (std::vector<float>{0, 1, 2}));
  EXPECT_EQ(Tensor::arange(0).numel(), 0);
  EXPECT_EQ(Tensor::linspace(1, 2, 5).to_vector<double>(),
            (std::vector<double>{1, 1.25, 1.5, 1.75, 2}));
  EXPECT_EQ(Tensor::linspace(0.1, 0.7, 7).at<double>({6}), 0.7);
  EXPECT_EQ(Tensor::linspace(3, 9, 1, DType::float32).item<float>(), 3.0F);
  EXPECT_EQ(Tensor::linspace(3, 9, 0).numel(), 0);
  expect_error<ValueError>([] { Tensor::arange(-1); }, "[Tensor.arange] count: got -1");
  expect_error<ValueError>([] { Tensor::linspace(0, 1, -1); }, "[Tensor.linspace] count: got -1");
}

TEST(TensorMake, EyeHasOnesOnTheDiagonal) {
  EXPECT_EQ(Tensor::eye(2).to_vector<double>(), (std::vector<double>{1, 0, 0, 1}));
  EXPECT_EQ(Tensor::eye(0).numel(), 0);
}

TEST(TensorMake, TakesValues) {
  const Tensor t = Tensor::from<double>({1, 2, 3, 4, 5, 6}, Extents{2, -1});
  EXPECT_EQ(t.shape(), (Extents{2, 3}));
  EXPECT_EQ(t.at<double>({1, 0}), 4.0);
  EXPECT_EQ(Tensor::from<bool>({true, false}).to_vector<bool>(), (std::vector<bool>{true, false}));
  EXPECT_EQ(Tensor::from<float>({}).shape(), (Extents{0}));
  expect_error<ShapeError>(
      [] {
        Tensor::from<float>({1, 2, 3}, Extents{2, 2});
      },
      "[Tensor.from] the number of elements differs: got shape (2, 2)");
}

TEST(TensorMake, UsesMemoryOfSomebodyElse) {
  std::array<float, 6> memory{0, 1, 2, 3, 4, 5};
  int releases = 0;
  {
    Tensor t = Tensor::from_blob(
        memory.data() + 5, DType::float32, {2, 3}, {-3, -1}, [&] { ++releases; }, true);
    EXPECT_EQ(t.to_vector<float>(), (std::vector<float>{5, 4, 3, 2, 1, 0}));
    t.set({0, 0}, 50.0F);
    EXPECT_EQ(memory[5], 50.0F);
    const Tensor view = t(0, all);
    t = Tensor();
    EXPECT_EQ(releases, 0);
  }
  EXPECT_EQ(releases, 1);
}

TEST(TensorMake, NeverWritesReadOnlyMemory) {
  const std::array<float, 3> memory{1, 2, 3};
  std::array<float, 3> given = memory;
  Tensor t = Tensor::from_blob(given.data(), DType::float32, {3}, {1}, {}, false);
  EXPECT_EQ(t.raw_data(), given.data());
  t.fill(0.0F);
  EXPECT_EQ(given, memory);
  EXPECT_EQ(t.to_vector<float>(), (std::vector<float>{0, 0, 0}));
}

TEST(TensorMake, AFailedImportDoesNotReleaseTheMemory) {
  std::array<double, 4> memory{};
  int releases = 0;
  const auto import = [&](void* data, Extents shape, Strides strides) {
    Tensor::from_blob(
        data, DType::float64, std::move(shape), std::move(strides), [&] { ++releases; }, true);
  };
  expect_error<ShapeError>([&] { import(memory.data(), {2}, {1, 1}); }, "one stride per axis");
  expect_error<ValueError>([&] { import(nullptr, {2}, {1}); }, "got no memory, expected 16 bytes");
  void* const odd = reinterpret_cast<std::byte*>(memory.data()) + 4;
  expect_error<ValueError>([&] { import(odd, {2}, {1}); }, "[Tensor.from_blob] misaligned");
  expect_error<OverflowError>([&] { import(memory.data(), {3}, {index_t{1} << 61}); }, "63 bits");
  EXPECT_EQ(releases, 0);
  import(nullptr, {0}, {1});
  EXPECT_EQ(releases, 1);
}

TEST(TensorMake, RandomNumbersDependOnKeyAndPositionAlone) {
  const RandomKey key{7, 8};
  const Tensor t = Tensor::random_normal({4, 5}, DType::float64, key);
  EXPECT_TRUE(equal(t, Tensor::random_normal({20}, DType::float64, key).view({4, 5})));
  EXPECT_FALSE(equal(t, Tensor::random_normal({4, 5}, DType::float64, {7, 9})));
  const Tensor u = Tensor::random_uniform({100}, DType::float32, key, Device{DeviceType::cpu, 1});
  for (const float x : u.to_vector<float>()) EXPECT_TRUE(x >= 0 && x < 1);
  expect_error<DTypeError>([&] { Tensor::random_normal({2}, DType::int32, key); },
                           "[random_normal] got int32");
}

}  // namespace
}  // namespace palimpsest
