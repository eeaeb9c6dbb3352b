// SPDX-License-Identifier: Apache-2.0
// The bytes that a sparse lazy clone copies when it is written.
#include <functional>

#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/tensor/tensor.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

Tensor counted(Extents shape) {
  return Tensor::arange(element_count(shape), DType::float64).view(shape);
}

constexpr index_t kRows = 100, kColumns = 50;
constexpr auto kColumnBytes = static_cast<std::size_t>(kRows) * sizeof(double);

struct Scene {
  Tensor base = counted({kRows, kColumns});
  Tensor column = base(all, slice(7, 8)).lazy_clone();  // 800 of 39608 bytes
  Tensor before = base(all, slice(7, 8)).clone();
};

// Every write that may change the strides.
const std::vector<std::function<void(Tensor&)>>& writes() {
  static const std::vector<std::function<void(Tensor&)>> list{
      [](Tensor& t) {
        t.set({3, 0}, -1.0);
      },
      [](Tensor& t) { t.fill(-1.0); },
      [](Tensor& t) { t.copy_from(Tensor::full({1}, -1.0)); },
      [](Tensor& t) {
        const MutableView view = t.mutable_view();
        static_cast<double*>(view.data)[3 * view.strides[0]] = -1.0;
      },
  };
  return list;
}

TEST(TensorCompact, ASparseCloneCopiesItsElementsOnly) {
  for (std::size_t k = 0; k < writes().size(); ++k) {
    Scene scene;
    const MemoryScope scope;
    const CopyStats stats;
    writes()[k](scene.column);
    EXPECT_EQ(scope.live_bytes(), static_cast<std::int64_t>(kColumnBytes)) << k;
    EXPECT_EQ(scene.column.storage().nbytes(), kColumnBytes);
    EXPECT_TRUE(scene.column.is_contiguous());
    EXPECT_EQ(scene.column.at<double>({3, 0}), -1.0);
    const bool keeps_others = k == 0 || k == 3;
    EXPECT_EQ(scene.column.at<double>({99, 0}), keeps_others ? 99.0 * kColumns + 7 : -1.0);
    EXPECT_EQ(stats.counts().copied_bytes, keeps_others ? kColumnBytes : 0);
    EXPECT_TRUE(equal(scene.base(all, slice(7, 8)), scene.before));
    EXPECT_FALSE(scene.base.is_shared());
  }
}

TEST(TensorCompact, KeepsTheValuesOfAnyLayout) {
  const Tensor base = Tensor::random_normal({40, 30, 20}, DType::complex64, {});
  const std::vector<Tensor> views{
      base(slice({}, {}, -3), slice(1, {}, 4)),
      base(all, slice(0, 2), slice({}, {}, -1)).permute({2, 0, 1}),
      base.view_as_real()(ellipsis, 1)(slice({}, {}, 2)),
      base(all, 3, 4),
      base.diagonal(0, 0, 1),
      base.bitcast(DType::uint16)(all, slice(0, {}, 3), slice(0, {}, 2)),
      base(slice(0, 40, 39), 2),
  };
  for (const Tensor& view : views) {
    Tensor clone = view.lazy_clone();
    ASSERT_LT(2 * static_cast<std::size_t>(clone.nbytes()), clone.storage().nbytes());
    clone.mutable_view();
    EXPECT_EQ(static_cast<std::size_t>(clone.nbytes()), clone.storage().nbytes());
    EXPECT_TRUE(equal(clone, view));
  }
}

TEST(TensorCompact, MutableDataKeepsTheStrides) {
  Scene scene;
  const Strides strides = scene.column.strides();
  scene.column.mutable_data<double>()[3 * strides[0]] = -1;
  EXPECT_EQ(scene.column.strides(), strides);
  EXPECT_EQ(scene.column.at<double>({3, 0}), -1.0);
  EXPECT_EQ(scene.column.storage().nbytes(), (kRows - 1) * kColumns * 8 + 8u);
}

TEST(TensorCompact, OtherViewsOfTheStorageKeepTheirLayout) {
  Scene scene;
  const Tensor part = scene.column(slice(50, {}));
  scene.column.set({60, 0}, -1.0);
  EXPECT_EQ(part.at<double>({10, 0}), -1.0);
  EXPECT_TRUE(shares_storage(part, scene.column));
  EXPECT_EQ(scene.column.strides(), (Strides{kColumns, 1}));
}

TEST(TensorCompact, WhatIsDenseEnoughOrSmallKeepsItsStrides) {
  const Tensor base = counted({100, 100}), small = counted({10, 10});
  Tensor half = base(all, slice(0, {}, 2)).lazy_clone();
  half.set({0, 0}, -1.0);
  EXPECT_EQ(half.strides(), (Strides{100, 2}));
  Tensor column = small(all, 0).lazy_clone();
  column.set({0}, -1.0);
  EXPECT_EQ(column.strides(), (Strides{10}));
}

// From 4096 bytes on, if less than half of them are visible.
TEST(TensorCompact, ItsBoundsAreExact) {
  const Tensor base = Tensor::arange(2000);
  const auto is_compacted = [&](index_t stride, index_t n) {
    Tensor t = base.as_strided({n}, {stride}, 0).lazy_clone();
    const auto bytes = t.storage().nbytes();
    t.set({0}, 1);
    EXPECT_EQ(t.storage().nbytes(), t.strides()[0] == 1 ? static_cast<std::size_t>(8 * n) : bytes);
    return t.strides()[0] == 1;
  };
  EXPECT_FALSE(is_compacted(510, 2)) << "511 elements";
  EXPECT_TRUE(is_compacted(511, 2)) << "512 elements, 4096 bytes";
  EXPECT_FALSE(is_compacted(2, 500)) << "500 of 999 elements";
  EXPECT_TRUE(is_compacted(3, 400)) << "400 of 1198 elements";
  for (const index_t n : {500, 499}) {
    Tensor t(base.storage().lazy_clone(0, 8000), DType::int64, {n}, {2});
    t.set({0}, 1);
    EXPECT_EQ(t.strides()[0], n == 500 ? 2 : 1) << "half of 1000 elements is enough";
  }
}

TEST(TensorCompact, TheLastOwnerTakesOverWithoutACopy) {
  Scene scene;
  const void* const data = scene.column.raw_data();
  scene.base = Tensor();
  const MemoryScope scope;
  scene.column.fill(1.0);
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_EQ(std::as_const(scene.column).raw_data(), data);
  EXPECT_EQ(scene.column.strides(), (Strides{kColumns, 1}));
}

TEST(TensorCompact, SeveralSparseClonesOfOneBlockMakeNMinusOneCopies) {
  Scene scene;
  std::vector<Tensor> clones{scene.base(0, all).lazy_clone()};
  for (index_t k = 0; k < 4; ++k) clones.push_back(scene.base(all, slice(k, k + 1)).lazy_clone());
  scene.base = scene.column = Tensor();
  const CopyStats stats;
  for (Tensor& t : clones) t.mutable_view();
  EXPECT_EQ(stats.counts().copies, clones.size() - 1);
  EXPECT_EQ(stats.counts().copied_bytes, kColumns * 8 + 3 * kColumnBytes);
}

TEST(TensorCompact, AFailureLeavesLayoutAndSharing) {
  for (const auto& write : writes()) {
    Scene scene;
    const Strides strides = scene.column.strides();
    {
      const FailingAllocator failing(0);
      EXPECT_THROW(write(scene.column), OutOfMemory);
    }
    EXPECT_EQ(scene.column.strides(), strides);
    EXPECT_TRUE(scene.column.is_shared());
    EXPECT_TRUE(equal(scene.column, scene.before));
    write(scene.column);
    EXPECT_EQ(scene.column.at<double>({3, 0}), -1.0);
  }
}

TEST(TensorCompact, AnErrorLeavesLayoutAndSharing) {
  Scene scene;
  expect_error<ShapeError>([&] { scene.column.set({100, 0}, 1.0); }, "index out of range");
  expect_error<DTypeError>(
      [&] {
        scene.column.set({0, 0}, std::complex<double>(1));
      },
      "[Tensor.set]");
  expect_error<DTypeError>([&] { scene.column.fill(std::complex<double>(1)); }, "[Tensor.fill]");
  expect_error<ShapeError>([&] { scene.column.copy_from(Tensor::zeros({3})); }, "do not fit");
  EXPECT_TRUE(scene.column.is_shared());
  EXPECT_EQ(scene.column.strides(), (Strides{kColumns, 1}));
}

TEST(TensorCompact, ASparseViewOfReadOnlyMemoryCopiesWhatItShows) {
  std::vector<float> memory(10'000, 1.0F);
  Tensor t = Tensor::from_blob(memory.data(), DType::float32, {100}, {100}, {}, false);
  const MemoryScope scope;
  t.fill(2.0F);
  EXPECT_EQ(scope.live_bytes(), 400);
  EXPECT_EQ(memory[0], 1.0F);
}

}  // namespace
}  // namespace palimpsest
