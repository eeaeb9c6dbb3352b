// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/tensor/dlpack.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <thread>
#include <utility>

#include "palimpsest/memory/allocator.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

// A receiver: reads the structure and calls the deleter once.
struct Received {
  explicit Received(dlpack::ManagedTensorVersioned* managed_) : managed(managed_) {}
  Received(const Received&) = delete;
  Received& operator=(const Received&) = delete;
  ~Received() { managed->deleter(managed); }

  bool is_read_only() const { return (managed->flags & dlpack::kReadOnly) != 0; }
  template <class T>
  T* data() const {
    return static_cast<T*>(managed->view.data);
  }

  dlpack::ManagedTensorVersioned* managed;
};

TEST(Dlpack, DescribesTheTensor) {
  const Tensor t = Tensor::arange(24, DType::float32).view({4, 6});
  const Tensor view = t(slice(1, 4), slice({}, {}, -2));
  const Received received(to_dlpack(view));
  const dlpack::TensorView& shown = received.managed->view;
  EXPECT_EQ(received.managed->version.major, 1u);
  EXPECT_EQ(shown.device.kind, dlpack::kCpu);
  EXPECT_EQ(shown.device.index, 0);
  EXPECT_EQ(shown.dtype.code, dlpack::kFloat);
  EXPECT_EQ(shown.dtype.bits, 32);
  EXPECT_EQ(shown.dtype.lanes, 1);
  ASSERT_EQ(shown.rank, 2);
  EXPECT_EQ(shown.shape[0], 3);
  EXPECT_EQ(shown.shape[1], 3);
  EXPECT_EQ(shown.strides[0], 6);
  EXPECT_EQ(shown.strides[1], -2);
  EXPECT_EQ(shown.byte_offset, 0u);
  EXPECT_EQ(shown.data, view.raw_data()) << "nothing is copied";
}

TEST(Dlpack, EveryDTypeGoesOutAndComesBack) {
  for (int k = 0; k < kDTypeCount; ++k) {
    const auto dtype = static_cast<DType>(k);
    const Tensor t = Tensor::zeros({2, 3}, dtype);
    const Tensor back = from_dlpack(to_dlpack(t));
    EXPECT_EQ(back.dtype(), dtype);
    EXPECT_EQ(back.raw_data(), t.raw_data());
    EXPECT_TRUE(equal(back, t));
  }
}

// Reads a const tensor: only the number of references changes.
TEST(Dlpack, AnExportIsReadOnlyUnlessAskedFor) {
  Tensor t = Tensor::arange(4);
  const Tensor view = t;
  const void* const data = view.raw_data();
  {
    const Received received(to_dlpack(t));
    EXPECT_TRUE(received.is_read_only());
    EXPECT_EQ(received.managed->view.data, data);
    EXPECT_EQ(t.storage().state(), StorageState::shared);
    EXPECT_EQ(view.raw_data(), data);
    t.set({0}, 5);
    EXPECT_EQ(received.data<std::int64_t>()[0], 0);
  }
  EXPECT_EQ(t.storage().state(), StorageState::owned);
}

TEST(Dlpack, OwnedDataAreWrittenBySeveralHandsAndStayInPlace) {
  Tensor t = Tensor::zeros({4});
  const void* const data = std::as_const(t).raw_data();
  {
    const Received received(to_dlpack(t, DlpackAccess::automatic));
    EXPECT_FALSE(received.is_read_only());
    EXPECT_EQ(t.storage().state(), StorageState::pinned);
    received.data<double>()[2] = 5;
    t.set({3}, 6.0);
    EXPECT_EQ(received.data<double>()[3], 6.0);
    const CopyStats stats;
    const Tensor clone = t.lazy_clone();
    EXPECT_EQ(stats.counts().eager_copies, 1u);
    received.data<double>()[2] = 7;
    EXPECT_EQ(clone.at<double>({2}), 5.0) << "a clone shows no write of the receiver";
  }
  EXPECT_EQ(t.storage().state(), StorageState::owned);
  EXPECT_EQ(std::as_const(t).raw_data(), data);
  EXPECT_EQ(t.at<double>({2}), 7.0);
}

TEST(Dlpack, SharedDataGoOutReadOnlyAndShowNoLaterWrite) {
  Tensor t = Tensor::arange(4), clone = t.lazy_clone();
  const MemoryScope scope;
  const Received received(to_dlpack(t, DlpackAccess::automatic));
  EXPECT_TRUE(received.is_read_only());
  EXPECT_EQ(received.data<std::int64_t>(), t.data<std::int64_t>());
  EXPECT_EQ(scope.calls(), 0u);
  t.fill(index_t{9});
  clone.fill(index_t{8});
  for (std::int64_t k = 0; k < 4; ++k) EXPECT_EQ(received.data<std::int64_t>()[k], k);
}

TEST(Dlpack, AReadOnlyExportOfOwnedDataIsALazyClone) {
  Tensor t = Tensor::arange(4);
  const void* const data = std::as_const(t).raw_data();
  {
    const Received received(to_dlpack(t, DlpackAccess::read_only));
    EXPECT_TRUE(received.is_read_only());
    EXPECT_TRUE(t.is_shared());
    EXPECT_EQ(received.managed->view.data, data);
  }
  EXPECT_FALSE(t.is_shared());
}

TEST(Dlpack, AWritableExportOfSharedDataCopiesFirst) {
  const Tensor t = Tensor::arange(4);
  Tensor clone = t.lazy_clone();
  const CopyStats stats;
  {
    const Received received(to_dlpack(clone, DlpackAccess::writable));
    EXPECT_FALSE(received.is_read_only());
    received.data<std::int64_t>()[0] = 77;
  }
  EXPECT_EQ(stats.counts().copies, 1u);
  EXPECT_EQ(clone.at<std::int64_t>({0}), 77);
  EXPECT_EQ(t.at<std::int64_t>({0}), 0);
}

TEST(Dlpack, ReadOnlyMemoryGoesOutReadOnly) {
  const std::array<float, 3> memory{1, 2, 3};
  Tensor t =
      Tensor::from_blob(const_cast<float*>(memory.data()), DType::float32, {3}, {1}, {}, false);
  const Received received(to_dlpack(t, DlpackAccess::automatic));
  EXPECT_TRUE(received.is_read_only());
  EXPECT_EQ(received.managed->view.data, memory.data());
  const Received writable(to_dlpack(t, DlpackAccess::writable));
  EXPECT_NE(writable.managed->view.data, memory.data());
  writable.data<float>()[0] = 5;
  EXPECT_EQ(memory[0], 1.0F);
  EXPECT_EQ(received.data<float>()[0], 1.0F);
}

TEST(Dlpack, WhatCannotBeClonedLazilyGoesOutWithoutACopy) {
  std::array<float, 3> memory{1, 2, 3};
  const Tensor foreign = Tensor::from_blob(memory.data(), DType::float32, {3}, {1}, {}, true);
  Tensor pinned = Tensor::zeros({3});
  const Storage::Pin pin = pinned.storage().pin();
  for (Tensor t : {foreign, pinned}) {
    const CopyStats stats;
    const Received received(to_dlpack(t)), automatic(to_dlpack(t, DlpackAccess::automatic));
    EXPECT_TRUE(received.is_read_only());
    EXPECT_FALSE(automatic.is_read_only());
    EXPECT_EQ(received.managed->view.data, t.raw_data());
    EXPECT_EQ(stats.counts().bytes_copied(), 0u);
  }
}

TEST(Dlpack, StridedDataAreWritableIfTheyAreDistinct) {
  Tensor t = Tensor::arange(12).view({3, 4});
  for (Tensor view : {t(all, slice({}, {}, 2)), t.transpose(), t.flip(Axes{1})}) {
    const Received received(to_dlpack(view, DlpackAccess::automatic));
    EXPECT_FALSE(received.is_read_only());
  }
}

// An export for reading stays valid, with the same elements, after the pin that it joined ends.
TEST(Dlpack, AReadOnlyExportOfPinnedDataKeepsThemInPlace) {
  Tensor t = Tensor::arange(4);
  std::optional<Storage::Pin> pin = t.storage().pin();
  {
    const Received received(to_dlpack(std::as_const(t)));
    pin.reset();
    EXPECT_EQ(t.storage().state(), StorageState::pinned);
    const Tensor clone = t.lazy_clone();
    t.set({0}, 7);
    EXPECT_EQ(received.data<std::int64_t>()[0], 7) << "an alias, where no clone can be lazy";
    EXPECT_EQ(clone.at<std::int64_t>({0}), 0);
  }
  EXPECT_EQ(t.storage().state(), StorageState::owned);
}

// Others may write these data: no promise that they stay as they are.
TEST(Dlpack, AReadOnlyAliasOfOursComesBackAsACopy) {
  std::array<double, 4> memory{0, 1, 2, 3};
  const Tensor foreign = Tensor::from_blob(memory.data(), DType::float64, {4}, {1}, {}, true);
  Tensor pinned = Tensor::arange(4, DType::float64);
  const Storage::Pin pin = pinned.storage().pin();
  for (Tensor t : {foreign, pinned}) {
    const MemoryScope leaks;
    {
      const Tensor back = from_dlpack(to_dlpack(std::as_const(t)));
      const Tensor clone = back.lazy_clone();
      t.fill(5.0);
      EXPECT_EQ(back.at<double>({1}), 1.0);
      EXPECT_EQ(clone.at<double>({1}), 1.0);
      dlpack::ManagedTensorVersioned* const managed = to_dlpack(std::as_const(t));
      const FailingAllocator failing(0);
      EXPECT_THROW(from_dlpack(managed), OutOfMemory);
      managed->deleter(managed);
    }
    EXPECT_EQ(leaks.live_bytes(), 0);
  }
}

TEST(Dlpack, ElementsThatOverlapAreForReading) {
  Tensor t = Tensor::arange(3).expand({2, 3});
  const Received received(to_dlpack(t, DlpackAccess::automatic));
  EXPECT_TRUE(received.is_read_only());
  EXPECT_EQ(received.managed->view.strides[0], 0);
  expect_error<AliasError>([&] { to_dlpack(t, DlpackAccess::writable); }, "overlap one another");
  expect_error<AliasError>([&] { to_unversioned_dlpack(t); }, "overlap one another");
}

TEST(Dlpack, AnExportKeepsTheDataAliveInAnyThread) {
  const MemoryScope leaks;
  for (const DlpackAccess access : {DlpackAccess::read_only, DlpackAccess::writable}) {
    dlpack::ManagedTensorVersioned* managed = nullptr;
    {
      Tensor t = Tensor::arange(100)(slice(50, 60));
      managed = to_dlpack(t, access);
    }
    EXPECT_GT(leaks.live_bytes(), 0);
    EXPECT_EQ(*static_cast<const std::int64_t*>(managed->view.data), 50);
    std::thread([managed] { managed->deleter(managed); }).join();
    EXPECT_EQ(leaks.live_bytes(), 0);
  }
}

TEST(Dlpack, TheFormBeforeOneIsWritable) {
  Tensor t = Tensor::arange(4);
  const Tensor clone = t.lazy_clone();
  dlpack::ManagedTensor* const managed = to_unversioned_dlpack(t);
  static_cast<std::int64_t*>(managed->view.data)[1] = 11;
  EXPECT_EQ(t.at<std::int64_t>({1}), 11);
  EXPECT_EQ(clone.at<std::int64_t>({1}), 1);
  {
    Tensor back = from_dlpack(managed);
    EXPECT_EQ(back.storage().state(), StorageState::foreign_writable);
    EXPECT_EQ(t.storage().state(), StorageState::pinned);
    back.set({2}, 12);
  }
  EXPECT_EQ(t.storage().state(), StorageState::owned);
  EXPECT_EQ(t.at<std::int64_t>({2}), 12);
}

TEST(Dlpack, WithAsManyAxesAsATensorMayHave) {
  const Tensor t = Tensor::arange(2).view([] {
    Extents shape(kMaxRank, 1);
    shape[3] = 2;
    return shape;
  }());
  EXPECT_TRUE(equal(from_dlpack(to_dlpack(t)), t));
}

TEST(Dlpack, WithoutElementsOrAxes) {
  const Tensor scalar = from_dlpack(to_dlpack(Tensor::scalar(2.5)));
  EXPECT_EQ(scalar.item<double>(), 2.5);
  const Tensor empty = from_dlpack(to_dlpack(Tensor::zeros({0, 3})));
  EXPECT_EQ(empty.shape(), (Extents{0, 3}));
  // Without elements, any address is allowed.
  dlpack::ManagedTensorVersioned* const managed = to_dlpack(Tensor::zeros({0, 3}));
  void* const data = managed->view.data;
  for (void* const address : {static_cast<void*>(nullptr), static_cast<void*>(&managed->flags)}) {
    managed->view.data = address;
    managed->view.byte_offset = 1;
    const auto deleter = std::exchange(managed->deleter, nullptr);
    EXPECT_EQ(from_dlpack(managed).shape(), (Extents{0, 3}));
    managed->deleter = deleter;
  }
  managed->view.data = data;
  managed->deleter(managed);
}

// A structure from another library, whose deleter counts its calls.
struct Foreign {
  std::array<float, 12> memory{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  std::array<std::int64_t, 2> shape{2, 3}, strides{6, -2};
  int deleted = 0;
  dlpack::ManagedTensorVersioned managed{};

  Foreign() {
    managed.version = {1, 7};
    managed.context = this;
    managed.deleter = [](dlpack::ManagedTensorVersioned* me) {
      ++static_cast<Foreign*>(me->context)->deleted;
    };
    managed.view = {memory.data(), {dlpack::kCpu, 0}, 2, {dlpack::kFloat, 32, 1},
                    shape.data(),  strides.data(),    16};
  }
};

TEST(Dlpack, ImportsUseTheMemoryAndGiveItBackOnce) {
  Foreign foreign;
  {
    const Tensor t = from_dlpack(&foreign.managed);
    EXPECT_EQ(t.to_vector<float>(), (std::vector<float>{4, 2, 0, 10, 8, 6}));
    EXPECT_EQ(t.raw_data(), &foreign.memory[4]);
    EXPECT_EQ(t.storage().state(), StorageState::foreign_writable);
    Tensor part = t(1, all);
    part.fill(0.0F);
    EXPECT_EQ(foreign.memory[10], 0.0F);
    EXPECT_EQ(foreign.memory[9], 9.0F);
    EXPECT_EQ(foreign.deleted, 0);
  }
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(Dlpack, AReadOnlyImportIsCopiedByTheFirstWrite) {
  Foreign foreign;
  foreign.managed.flags = dlpack::kReadOnly;
  Tensor t = from_dlpack(&foreign.managed);
  EXPECT_EQ(t.storage().state(), StorageState::foreign_read_only);
  const Tensor clone = t.lazy_clone();
  t.fill(1.0F);
  EXPECT_EQ(foreign.memory[4], 4.0F);
  EXPECT_EQ(foreign.deleted, 0) << "the clone still shows it";
  EXPECT_EQ(clone.at<float>({0, 0}), 4.0F);
}

TEST(Dlpack, ImportsComeFromDevicesThatAreHere) {
  struct Case {
    std::int32_t kind, index;
    std::optional<Device> expected;
  };
  for (const auto& [kind, index, expected] :
       {Case{dlpack::kCpu, 0, Device{}}, Case{dlpack::kCudaHost, 0, Device{}},
        Case{dlpack::kCuda, 32768, std::nullopt}, Case{dlpack::kOpenCl, -1, std::nullopt}}) {
    Foreign foreign;
    foreign.managed.view.device = {kind, index};
    if (expected) {
      EXPECT_EQ(from_dlpack(&foreign.managed).device(), *expected);
    } else {
      EXPECT_THROW(from_dlpack(&foreign.managed), NotSupported);
    }
  }
  Foreign foreign;
  foreign.managed.view.device = {dlpack::kCuda, 32767};
  expect_error<DeviceError>([&] { from_dlpack(&foreign.managed); }, "cuda:32767");
}

TEST(Dlpack, AbsentStridesMeanRowMajorAndAnAbsentDeleterNothing) {
  Foreign foreign;
  foreign.managed.view.strides = nullptr;
  foreign.managed.view.byte_offset = 0;
  foreign.managed.deleter = nullptr;
  const Tensor t = from_dlpack(&foreign.managed);
  EXPECT_EQ(t.strides(), (Strides{3, 1}));
  EXPECT_EQ(t.at<float>({1, 2}), 5.0F);
}

TEST(Dlpack, RefusesWhatNoTensorCanShowAndLeavesItToTheCaller) {
  const auto refused = [](auto error, const char* text, auto change) {
    Foreign foreign;
    change(foreign.managed);
    expect_error<decltype(error)>([&] { from_dlpack(&foreign.managed); }, text);
    EXPECT_EQ(foreign.deleted, 0);
  };
  using Managed = dlpack::ManagedTensorVersioned;
  refused(NotSupported(""), "version: got 2.7", [](Managed& m) { m.version.major = 2; });
  refused(NotSupported(""), "device: got kind 10", [](Managed& m) { m.view.device.kind = 10; });
  refused(NotSupported(""), "element type: got code 4, 16 bits", [](Managed& m) {
    m.view.dtype = {4, 16, 1};
  });
  refused(NotSupported(""), "4 lanes", [](Managed& m) { m.view.dtype.lanes = 4; });
  refused(ShapeError(""), "number of axes: got 17", [](Managed& m) { m.view.rank = 17; });
  refused(ShapeError(""), "number of axes: got 1,", [](Managed& m) {
    m.view.rank = 1;
    m.view.shape = nullptr;
  });
  refused(ShapeError(""), "number of axes: got -1", [](Managed& m) { m.view.rank = -1; });
  refused(ShapeError(""), "[from_dlpack] negative extent",
          [](Managed& m) { m.view.shape[0] = -2; });
  refused(ValueError(""), "[from_dlpack] got no memory", [](Managed& m) { m.view.data = nullptr; });
  refused(ValueError(""), "[from_dlpack] misaligned", [](Managed& m) { m.view.byte_offset = 2; });
  refused(ValueError(""), "byte offset: got", [](Managed& m) { m.view.byte_offset = 1ULL << 63; });
  refused(ShapeError(""), "outside of all memory",
          [](Managed& m) { m.view.strides[0] = -(std::int64_t{1} << 60); });
  for (const std::int64_t stride : {INT64_MIN, INT64_MAX, INT64_MIN + 1}) {
    Foreign foreign;
    foreign.strides[0] = stride;
    EXPECT_THROW(from_dlpack(&foreign.managed), OverflowError);
    EXPECT_EQ(foreign.deleted, 0);
  }
  expect_error<DeviceError>(
      [] {
        to_dlpack(Tensor::zeros({2}, DType::float32, Device{DeviceType::cpu, 1}));
      },
      "DLPack has no name for");
  expect_error<ValueError>([] { to_dlpack(Tensor()); }, "undefined");
}

// Each import keeps the previous one alive. Writes at the end of the chain are discarded.
TEST(Dlpack, AChainOfManyImportsEnds) {
  const MemoryScope leaks;
  {
    const Tensor first = Tensor::arange(4);
    Tensor t = first;
    for (int k = 0; k < 200'000; ++k) t = from_dlpack(to_dlpack(t, DlpackAccess::read_only));
    t.set({1}, 5);
    EXPECT_EQ(first.at<std::int64_t>({1}), 1);
    EXPECT_EQ(first.storage().state(), StorageState::owned)
        << "the chain has ended with that write";
    for (int k = 0; k < 200'000; ++k) t = from_dlpack(to_dlpack(t, DlpackAccess::writable));
    t.set({1}, 6);
  }
  EXPECT_EQ(leaks.live_bytes(), 0);
}

TEST(Dlpack, AFailedWritableExportLeavesTheSharing) {
  Tensor t = Tensor::arange(4);
  const Tensor clone = t.lazy_clone();
  {
    const FailingAllocator failing(0);
    EXPECT_THROW(to_dlpack(t, DlpackAccess::writable), OutOfMemory);
  }
  EXPECT_EQ(t.storage().state(), StorageState::shared);
  EXPECT_TRUE(t.storage().shares_data(clone.storage()));
}

}  // namespace
}  // namespace palimpsest
