// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/storage.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "palimpsest/base/error.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/memory/byte_layout.hpp"
#include "palimpsest/memory/thread_local_state.hpp"
#include "support/expect_error.hpp"
#include "support/in_child.hpp"
#include "support/new_counter.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::in_child;

constexpr std::size_t kBytes = 256;

Storage filled(std::byte value, std::size_t bytes = kBytes) {
  Storage storage = Storage::allocate(bytes);
  std::memset(storage.mutable_data(), static_cast<int>(value), bytes);
  return storage;
}

bool holds(const Storage& storage, std::byte value) {
  return std::all_of(storage.data(), storage.data() + storage.nbytes(),
                     [value](std::byte b) { return b == value; });
}

constexpr std::byte kOld{1}, kNew{2};

TEST(Storage, IsOwnedWhenMade) {
  const Storage storage = Storage::allocate(kBytes, Device{DeviceType::cpu, 3});
  EXPECT_TRUE(storage.defined());
  EXPECT_EQ(storage.state(), StorageState::owned);
  EXPECT_EQ(storage.nbytes(), kBytes);
  EXPECT_EQ(storage.device(), (Device{DeviceType::cpu, 3}));
  EXPECT_EQ(storage.references(), 1u);
  EXPECT_FALSE(storage.is_shared());
}

TEST(Storage, OfZeroBytesIsLegal) {
  Storage storage = Storage::allocate(0);
  Storage clone = storage.lazy_clone();
  EXPECT_TRUE(clone.is_shared());
  EXPECT_NE(clone.mutable_data(), nullptr);
  EXPECT_EQ(storage.overwrite_data(), storage.data());
}

TEST(Storage, AnEmptyHandleHasNothingToShow) {
  Storage none;
  EXPECT_FALSE(none.defined());
  EXPECT_EQ(none.use_count(), 0u);
  EXPECT_TRUE(none.is(Storage()));
  expect_error<ValueError>([&] { none.nbytes(); }, "empty handle");
  expect_error<ValueError>([&] { none.data(); }, "empty handle");
  expect_error<ValueError>([&] { none.mutable_data(); }, "empty handle");
  expect_error<ValueError>([&] { none.overwrite_data(); }, "empty handle");
  expect_error<ValueError>([&] { none.lazy_clone(); }, "empty handle");
  expect_error<ValueError>([&] { none.pin(); }, "empty handle");
  expect_error<ValueError>([&] { none.state(); }, "empty handle");
}

TEST(Storage, CopyingAHandleAliasesAndAllocatesNothing) {
  Storage storage = filled(kOld);
  const MemoryScope scope;
  Storage alias = storage;
  EXPECT_TRUE(alias.is(storage));
  EXPECT_EQ(storage.use_count(), 2u);
  EXPECT_EQ(storage.state(), StorageState::owned);
  std::memset(alias.mutable_data(), static_cast<int>(kNew), kBytes);
  EXPECT_TRUE(holds(storage, kNew));
  Storage moved = std::move(alias);
  EXPECT_FALSE(alias.defined());  // NOLINT(bugprone-use-after-move): a moved-from handle is empty
  alias = moved;
  alias = *&alias;
  EXPECT_EQ(storage.use_count(), 3u);
  alias = Storage();
  moved = Storage();
  EXPECT_EQ(storage.use_count(), 1u);
  EXPECT_EQ(scope.calls(), 0u);
}

TEST(Storage, ALazyCloneSharesTheDataAndAllocatesNoBlock) {
  const Storage storage = filled(kOld);
  const MemoryScope scope;
  const Storage clone = storage.lazy_clone();
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_FALSE(clone.is(storage));
  EXPECT_TRUE(clone.shares_data(storage));
  EXPECT_EQ(clone.data(), storage.data());
  EXPECT_EQ(clone.references(), 2u);
  EXPECT_EQ(storage.state(), StorageState::shared);
  EXPECT_EQ(clone.state(), StorageState::shared);
}

TEST(Storage, WritingTheCloneCopiesFirst) {
  const Storage storage = filled(kOld);
  Storage clone = storage.lazy_clone();
  const std::byte* const address = storage.data();
  std::memset(clone.mutable_data(), static_cast<int>(kNew), kBytes);
  EXPECT_TRUE(holds(storage, kOld));
  EXPECT_TRUE(holds(clone, kNew));
  EXPECT_EQ(storage.data(), address);
  EXPECT_EQ(storage.state(), StorageState::owned);
  EXPECT_EQ(clone.state(), StorageState::owned);
  EXPECT_FALSE(clone.shares_data(storage));
}

TEST(Storage, WritingTheOriginalCopiesFirstAndLeavesTheDataToTheClone) {
  Storage storage = filled(kOld);
  const std::byte* const address = storage.data();
  Storage clone = storage.lazy_clone();
  std::memset(storage.mutable_data(), static_cast<int>(kNew), kBytes);
  EXPECT_TRUE(holds(clone, kOld));
  EXPECT_NE(storage.data(), address);
  EXPECT_EQ(clone.mutable_data(), address);
}

TEST(Storage, NSharersMakeNMinusOneCopiesAndTheLastKeepsTheAddress) {
  constexpr std::size_t kSharers = 5;
  std::vector<Storage> sharers{filled(kOld)};
  const std::byte* const address = sharers.front().data();
  while (sharers.size() < kSharers) sharers.push_back(sharers.front().lazy_clone());
  const CopyStats stats;
  const MemoryScope scope;
  for (Storage& storage : sharers) storage.mutable_data()[0] = kNew;
  EXPECT_EQ(stats.counts().copies, kSharers - 1);
  EXPECT_EQ(stats.counts().copied_bytes, (kSharers - 1) * kBytes);
  EXPECT_EQ(scope.calls(), kSharers - 1);
  EXPECT_EQ(sharers.back().data(), address);
}

TEST(Storage, IsOwnedAgainWhenItsPartnersAreGone) {
  Storage storage = filled(kOld);
  const std::byte* const address = storage.data();
  { const Storage a = storage.lazy_clone(), b = a.lazy_clone(); }
  EXPECT_EQ(storage.state(), StorageState::owned);
  const MemoryScope scope;
  EXPECT_EQ(storage.mutable_data(), address);
  EXPECT_EQ(scope.calls(), 0u);
}

TEST(Storage, ACloneOutlivesTheOriginal) {
  Storage clone;
  {
    const Storage storage = filled(kOld);
    clone = storage.lazy_clone();
  }
  EXPECT_TRUE(holds(clone, kOld));
  EXPECT_EQ(clone.state(), StorageState::owned);
}

TEST(Storage, ACloneOfARangeCopiesOnlyThatRange) {
  Storage storage = filled(kOld);
  storage.mutable_data()[100] = kNew;
  Storage clone = storage.lazy_clone(96, 16);
  EXPECT_EQ(clone.nbytes(), 16u);
  EXPECT_EQ(clone.data(), storage.data() + 96);
  Storage inner = clone.lazy_clone(4, 1);
  EXPECT_EQ(inner.data()[0], kNew);
  const MemoryScope scope;
  inner.mutable_data();
  clone.mutable_data();
  EXPECT_EQ(scope.allocated_bytes(), 17u);
  EXPECT_EQ(clone.data()[4], kNew);
}

TEST(Storage, ACloneOfARangeThatIsLastTakesTheWholeBlockOver) {
  Storage storage = filled(kOld);
  Storage clone = storage.lazy_clone(64, 8);
  const std::byte* const address = clone.data();
  storage = Storage();
  EXPECT_EQ(clone.mutable_data(), address);
  EXPECT_EQ(clone.nbytes(), 8u);
}

TEST(Storage, ARangeOutsideIsRefused) {
  const Storage storage = filled(kOld);
  expect_error<ValueError>([&] { storage.lazy_clone(0, kBytes + 1); }, "range outside");
  expect_error<ValueError>([&] { storage.lazy_clone(kBytes + 1, 0); }, "expected at most 256");
  expect_error<ValueError>([&] { storage.lazy_clone(1, ~std::size_t{0}); }, "range outside");
  EXPECT_EQ(storage.references(), 1u);
  EXPECT_EQ(storage.lazy_clone(kBytes, 0).nbytes(), 0u);
}

// So dtypes allowed at an address are the same before and after a copy.
TEST(Storage, ACopyLiesAsFarBehindAnAlignedPlaceAsItsSource) {
  const auto place = [](const Storage& storage) {
    return reinterpret_cast<std::uintptr_t>(storage.data()) % 8;
  };
  alignas(8) std::array<std::byte, 64> memory{};
  for (std::size_t offset = 0; offset < 16; ++offset) {
    Storage base = filled(kOld, 100);
    Storage written = base.lazy_clone(offset, 40), overwritten = base.lazy_clone(offset, 40);
    Storage dense = base.lazy_clone(offset, 40),
            read_only = Storage::from_foreign(memory.data() + offset, 40, Device{}, false);
    const MemoryScope scope;
    written.mutable_data();
    overwritten.overwrite_data();
    read_only.mutable_data();
    EXPECT_EQ(scope.allocated_bytes(), 120u) << "what lies in front is not counted";
    EXPECT_TRUE(dense.materialize_densely(
        {.offset = 2, .shape = {10}, .strides = {3}, .item_size = 1}, false));
    EXPECT_EQ(place(written), offset % 8);
    EXPECT_EQ(place(overwritten), offset % 8);
    EXPECT_EQ(place(read_only), offset % 8);
    EXPECT_EQ(place(dense), (offset + 2) % 8);
    const Storage::Pin pin = base.pin();
    EXPECT_EQ(place(base.lazy_clone(offset, 40)), offset % 8);
    EXPECT_TRUE(holds(written, kOld));
    EXPECT_EQ(scope.live_bytes(), 130);
  }
}

TEST(Storage, OverwritingSharedDataCopiesNothing) {
  Storage storage = filled(kOld);
  Storage clone = storage.lazy_clone();
  const CopyStats stats;
  std::memset(clone.overwrite_data(), static_cast<int>(kNew), kBytes);
  EXPECT_EQ(stats.counts().bytes_copied(), 0u);
  EXPECT_EQ(stats.counts().overwrites, 1u);
  EXPECT_TRUE(holds(storage, kOld));
  EXPECT_TRUE(holds(clone, kNew));
  const std::byte* const address = storage.data();
  EXPECT_EQ(storage.overwrite_data(), address);
}

class ForeignStorage : public ::testing::Test {
 protected:
  Storage import(bool writable) {
    memory_.fill(kOld);
    return Storage::from_foreign(memory_.data(), kBytes, Device{}, writable,
                                 [this] { ++releases_; });
  }

  std::array<std::byte, kBytes> memory_{};
  int releases_ = 0;
};

TEST_F(ForeignStorage, ReadOnlyIsCopiedByTheFirstWrite) {
  Storage storage = import(false);
  EXPECT_EQ(storage.state(), StorageState::foreign_read_only);
  EXPECT_EQ(storage.data(), memory_.data());
  std::memset(storage.mutable_data(), static_cast<int>(kNew), kBytes);
  EXPECT_EQ(releases_, 1);
  EXPECT_EQ(storage.state(), StorageState::owned);
  EXPECT_TRUE(holds(storage, kNew));
  EXPECT_EQ(memory_[0], kOld);
}

TEST_F(ForeignStorage, ReadOnlyIsClonedAtOnceWhereOthersMayWrite) {
  Storage storage = import(false);
  EXPECT_FALSE(storage.is_cloned_eagerly());
  storage.expect_writes_of_others();
  EXPECT_TRUE(storage.is_cloned_eagerly());
  EXPECT_EQ(storage.state(), StorageState::foreign_read_only);
  EXPECT_EQ(storage.data(), memory_.data());
  const Storage clone = storage.lazy_clone();
  memory_.fill(kNew);
  EXPECT_TRUE(holds(clone, kOld));
  EXPECT_TRUE(holds(storage, kNew));
  std::memset(storage.mutable_data(), static_cast<int>(kOld), kBytes);
  EXPECT_EQ(memory_[0], kNew);
  EXPECT_TRUE(holds(storage, kOld));
}

TEST_F(ForeignStorage, ReadOnlyIsClonedLazilyAndNeverTakenOver) {
  Storage storage = import(false);
  Storage clone = storage.lazy_clone();
  EXPECT_EQ(clone.data(), memory_.data());
  EXPECT_TRUE(clone.is_shared());
  EXPECT_EQ(clone.state(), StorageState::foreign_read_only);
  storage = Storage();
  EXPECT_EQ(releases_, 0);
  const CopyStats stats;
  EXPECT_NE(clone.mutable_data(), memory_.data());
  EXPECT_EQ(stats.counts().copies, 1u);
  EXPECT_EQ(releases_, 1);
}

TEST_F(ForeignStorage, ReadOnlyIsReplacedWhenOverwritten) {
  Storage storage = import(false);
  const CopyStats stats;
  EXPECT_NE(storage.overwrite_data(), memory_.data());
  EXPECT_EQ(stats.counts().bytes_copied(), 0u);
  EXPECT_EQ(releases_, 1);
  EXPECT_EQ(storage.state(), StorageState::owned);
}

TEST_F(ForeignStorage, WritableIsWrittenInPlace) {
  {
    Storage storage = import(true);
    EXPECT_EQ(storage.state(), StorageState::foreign_writable);
    EXPECT_EQ(storage.mutable_data(), memory_.data());
    EXPECT_EQ(storage.overwrite_data(), memory_.data());
    const Storage alias = storage;
    EXPECT_EQ(releases_, 0);
  }
  EXPECT_EQ(releases_, 1);
}

TEST_F(ForeignStorage, WritableIsClonedAtOnce) {
  const Storage storage = import(true);
  const CopyStats stats;
  const Storage clone = storage.lazy_clone(16, 32);
  memory_.fill(kNew);
  EXPECT_EQ(clone.state(), StorageState::owned);
  EXPECT_TRUE(holds(clone, kOld));
  EXPECT_EQ(stats.counts().eager_copies, 1u);
  EXPECT_EQ(stats.counts().eager_copied_bytes, 32u);
  EXPECT_EQ(stats.counts().lazy_clones, 0u);
}

TEST_F(ForeignStorage, WithoutBytesIsGivenBackOnceToo) {
  for (void* const address : {static_cast<void*>(memory_.data()), static_cast<void*>(nullptr)}) {
    for (const bool writable : {false, true}) {
      releases_ = 0;
      {
        Storage storage =
            Storage::from_foreign(address, 0, Device{}, writable, [this] { ++releases_; });
        const Storage clone = storage.lazy_clone();
        EXPECT_EQ(storage.nbytes(), 0u);
        if (!writable) storage.mutable_data();
      }
      EXPECT_EQ(releases_, 1) << writable;
    }
  }
}

TEST_F(ForeignStorage, TheDeleterIsNotRunByAFailedImport) {
  Storage storage = import(false);
  const Storage clone = storage.lazy_clone();
  {
    const FailingAllocator failing(0);
    EXPECT_THROW(storage.mutable_data(), OutOfMemory);
  }
  EXPECT_EQ(releases_, 0);
  EXPECT_EQ(storage.data(), memory_.data());
}

TEST_F(ForeignStorage, OfAnotherDeviceIsNotWrittenWithoutItsAllocator) {
  Storage storage =
      Storage::from_foreign(memory_.data(), kBytes, Device{DeviceType::cuda, 0}, false);
  EXPECT_THROW(storage.mutable_data(), DeviceError);
  EXPECT_EQ(storage.state(), StorageState::foreign_read_only);
}

TEST(StoragePin, KeepsTheAddressAndForbidsLaziness) {
  Storage storage = filled(kOld);
  {
    Storage::Pin pin = storage.pin();
    EXPECT_EQ(storage.state(), StorageState::pinned);
    const Storage clone = storage.lazy_clone();
    EXPECT_FALSE(clone.is_shared());
    std::memset(pin.data(), static_cast<int>(kNew), kBytes);
    EXPECT_TRUE(holds(clone, kOld));
    EXPECT_TRUE(holds(storage, kNew));
    EXPECT_EQ(storage.mutable_data(), pin.data());
    Storage::Pin second = storage.pin();
    pin = std::move(second);
    EXPECT_EQ(storage.state(), StorageState::pinned);
  }
  EXPECT_EQ(storage.state(), StorageState::owned);
  EXPECT_TRUE(storage.lazy_clone().shares_data(storage));
}

TEST(StoragePin, AssignedEndsAndTakesTheOtherOver) {
  Storage first = filled(kOld), second = filled(kNew);
  Storage::Pin pin = first.pin();
  pin = second.pin();
  EXPECT_EQ(first.state(), StorageState::owned);
  EXPECT_EQ(second.state(), StorageState::pinned);
  EXPECT_EQ(pin.data(), second.data());
}

TEST(StoragePin, ReadersMayJoinOneAndRaiseNone) {
  const Storage storage = filled(kOld);
  EXPECT_FALSE(storage.join_pin());
  EXPECT_EQ(storage.state(), StorageState::owned);
  std::optional<Storage::Pin> first = Storage(storage).pin();
  std::optional<Storage::Pin> joined = storage.join_pin();
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->data(), storage.data());
  first.reset();
  EXPECT_EQ(storage.state(), StorageState::pinned);
  joined.reset();
  EXPECT_EQ(storage.state(), StorageState::owned);
  expect_error<ValueError>([] { Storage().join_pin(); }, "empty handle");
}

TEST(StoragePin, MaterializesFirst) {
  Storage storage = filled(kOld);
  const Storage clone = storage.lazy_clone();
  const Storage::Pin pin = storage.pin();
  EXPECT_FALSE(storage.shares_data(clone));
  std::memset(pin.data(), static_cast<int>(kNew), kBytes);
  EXPECT_TRUE(holds(clone, kOld));
}

TEST(StoragePin, KeepsTheStorageAlive) {
  Storage storage = filled(kOld);
  const Storage::Pin pin = storage.pin();
  storage = Storage();
  EXPECT_EQ(pin.data()[0], kOld);
}

TEST(StorageState, HasNames) {
  EXPECT_EQ(name_of(StorageState::owned), "owned");
  EXPECT_EQ(name_of(StorageState::shared), "shared");
  EXPECT_EQ(name_of(StorageState::foreign_read_only), "foreign read-only");
  EXPECT_EQ(name_of(StorageState::foreign_writable), "foreign writable");
  EXPECT_EQ(name_of(StorageState::pinned), "pinned");
}

TEST(CopyStats, CountsWhatLazinessAvoided) {
  const CopyStats stats;
  {
    const Storage storage = filled(kOld);
    Storage a = storage.lazy_clone(), b = storage.lazy_clone(0, 100);
    b.mutable_data();
  }
  EXPECT_EQ(stats.counts().lazy_clones, 2u);
  EXPECT_EQ(stats.counts().lazy_bytes, kBytes + 100);
  EXPECT_EQ(stats.counts().bytes_copied(), 100u);
  EXPECT_EQ(stats.counts().bytes_avoided(), kBytes);
  EXPECT_GE(CopyStats::process().lazy_clones, 2u);
}

// Also threads whose first operation is a lazy clone.
TEST(CopyStats, CountsOtherThreadsWhileTheyRunAndAfterThat) {
  const Storage storage = filled(kOld);
  const CopyStats stats;
  std::barrier step(2);
  std::thread other([&] {
    storage.lazy_clone();
    step.arrive_and_wait();
    step.arrive_and_wait();
    storage.lazy_clone(0, 10);
  });
  step.arrive_and_wait();
  EXPECT_EQ(stats.counts().lazy_clones, 1u);
  EXPECT_EQ(stats.counts().lazy_bytes, kBytes);
  step.arrive_and_wait();
  other.join();
  EXPECT_EQ(stats.counts().lazy_clones, 2u);
  EXPECT_EQ(stats.counts().lazy_bytes, kBytes + 10);
}

// Static storages may be cloned after all other objects of a thread have ended.
TEST(CopyStats, CountsWhatAThreadDoesAtItsVeryEnd) {
  struct Late {
    const Storage* storage = nullptr;
    ~Late() {
      if (storage == nullptr) return;
      Storage clone = storage->lazy_clone();
      clone.mutable_data();
    }
  };
  const Storage storage = filled(kOld);
  const CopyStats stats;
  std::thread([&] {
    thread_local Late late;  // made before the counters, so it ends after them
    late.storage = &storage;
    storage.lazy_clone();
  }).join();
  EXPECT_EQ(stats.counts().lazy_clones, 2u);
  EXPECT_EQ(stats.counts().lazy_bytes, 2 * kBytes);
  EXPECT_EQ(stats.counts().copies, 1u);
}

// Destructors of keys run in rounds: one that sets another key runs after everything else has
// ended.
TEST(CopyStats, CountsWhatComesAfterTheEndOfAThread) {
  static const Storage* cloned = nullptr;
  static pthread_key_t key;
  ASSERT_EQ(pthread_key_create(&key,
                               [](void* rounds) {
                                 const auto left = reinterpret_cast<std::uintptr_t>(rounds) - 1;
                                 pthread_setspecific(key, reinterpret_cast<void*>(left));
                                 if (left > 0) return;
                                 Storage clone = cloned->lazy_clone();
                                 clone.mutable_data();
                               }),
            0);
  const Storage storage = filled(kOld);
  cloned = &storage;
  const CopyStats stats;
  std::thread([&] {
    pthread_setspecific(key, reinterpret_cast<void*>(std::uintptr_t{3}));
    storage.lazy_clone();
  }).join();
  EXPECT_EQ(stats.counts().lazy_clones, 2u);
  EXPECT_EQ(stats.counts().copies, 1u);
  pthread_key_delete(key);
}

// Rooms of handles are reused: those dropped last, up to the number that a thread keeps.
TEST(StorageRooms, AreKeptForTheNextHandles) {
  if (kMostPooled == 0) GTEST_SKIP() << "a sanitizer is to see each handle";
  const Storage storage = filled(kOld);
  for (int round = 0; round < 3; ++round) {
    std::vector<Storage> many(200);
    for (Storage& clone : many) clone = storage.lazy_clone();
    many.assign(200, Storage());
    const testing::NewCounter news;
    for (int k = 0; k < 1000; ++k) storage.lazy_clone();
    EXPECT_EQ(news.count(), 0u);
    for (std::size_t k = 0; k < kMostPooled; ++k) many[k] = storage.lazy_clone();
    EXPECT_EQ(news.count(), 0u);
    many[kMostPooled] = storage.lazy_clone();
    EXPECT_EQ(news.count(), 1u);
  }
}

// Every other of n floats.
ByteLayout every_other(std::int64_t n) { return {4, {n}, {8}, 4}; }

TEST(StorageDensely, CopiesTheElementsOfTheViewOnly) {
  Storage original = Storage::allocate(4000);
  for (std::size_t k = 0; k < 4000; ++k) original.mutable_data()[k] = static_cast<std::byte>(k);
  Storage clone = original.lazy_clone();
  const CopyStats stats;
  EXPECT_TRUE(clone.materialize_densely(every_other(400), false));
  EXPECT_EQ(clone.nbytes(), 1600u);
  EXPECT_EQ(stats.counts().copied_bytes, 1600u);
  for (std::size_t k = 0; k < 1600; ++k) {
    ASSERT_EQ(clone.data()[k], original.data()[4 + k / 4 * 8 + k % 4]);
  }
  EXPECT_EQ(original.state(), StorageState::owned);
  EXPECT_EQ(clone.state(), StorageState::owned);
}

TEST(StorageDensely, CopiesElementsOfAnySize) {
  for (const std::int64_t size : {1, 2, 3, 4, 6, 8, 12, 16, 24}) {
    Storage original = Storage::allocate(static_cast<std::size_t>(40 * size));
    for (std::int64_t k = 0; k < 40 * size; ++k) {
      original.mutable_data()[k] = static_cast<std::byte>(k % 251);
    }
    Storage clone = original.lazy_clone();
    ASSERT_TRUE(clone.materialize_densely({size, {9}, {4 * size}, static_cast<int>(size)}, false));
    for (std::int64_t k = 0; k < 9 * size; ++k) {
      ASSERT_EQ(clone.data()[k], original.data()[size + k / size * 4 * size + k % size]) << size;
    }
  }
}

TEST(StorageDensely, CopiesASingleElement) {
  Storage original = Storage::allocate(400);
  for (std::size_t k = 0; k < 400; ++k) original.mutable_data()[k] = static_cast<std::byte>(k);
  Storage clone = original.lazy_clone();
  EXPECT_TRUE(clone.materialize_densely({40, {}, {}, 2}, false));
  EXPECT_EQ(clone.nbytes(), 2u);
  EXPECT_EQ(clone.data()[0], std::byte{40});
  EXPECT_EQ(clone.data()[1], std::byte{41});
}

// More than one piece of a copy, with a last one that is smaller.
TEST(StorageDensely, CopiesManyRowsInPieces) {
  constexpr std::int64_t kRows = 3000, kStep = 4096, kRow = 1200;
  Storage original = Storage::allocate(kRows * kStep);
  std::byte* const data = original.mutable_data();
  for (std::int64_t k = 0; k < kRows * kStep; ++k) data[k] = static_cast<std::byte>(k * 7 % 251);
  Storage clone = original.lazy_clone();
  EXPECT_TRUE(clone.materialize_densely({5, {kRows, kRow}, {kStep, 1}, 1}, false));
  EXPECT_EQ(clone.nbytes(), static_cast<std::size_t>(kRows * kRow));
  for (std::int64_t row = 0; row < kRows; ++row) {
    ASSERT_EQ(std::memcmp(clone.data() + row * kRow, data + 5 + row * kStep, kRow), 0) << row;
  }
}

TEST(StorageDensely, CopiesNothingToOverwrite) {
  const Storage original = Storage::allocate(4000);
  Storage clone = original.lazy_clone();
  const CopyStats stats;
  EXPECT_TRUE(clone.materialize_densely(every_other(400), true));
  EXPECT_EQ(clone.nbytes(), 1600u);
  EXPECT_EQ(stats.counts().bytes_copied(), 0u);
  EXPECT_EQ(stats.counts().overwrites, 1u);
}

TEST(StorageDensely, LeavesWhatIsOwnedAsItIs) {
  Storage storage = Storage::allocate(4000);
  const std::byte* const data = storage.data();
  EXPECT_FALSE(storage.materialize_densely(every_other(400), false));
  EXPECT_EQ(storage.data(), data);
  EXPECT_EQ(storage.nbytes(), 4000u);
}

TEST(StorageDensely, RefusesAViewOutside) {
  const Storage original = Storage::allocate(100);
  Storage clone = original.lazy_clone();
  expect_error<AliasError>([&] { clone.materialize_densely(every_other(13), false); },
                           "view reaches outside its storage: got bytes 4 .. 104");
  expect_error<AliasError>(
      [&] {
        clone.materialize_densely({0, {2}, {-4}, 4}, false);
      },
      "got bytes -4 .. 4");
  EXPECT_EQ(clone.state(), StorageState::shared);
}

TEST(Storage, IsClaimedUntilEachClaimIsGivenUp) {
  Storage storage = Storage::allocate(8);
  EXPECT_FALSE(storage.is_claimed());
  storage.claim();
  EXPECT_TRUE(storage.is_claimed());
  EXPECT_FALSE(storage.claim_if_free());
  storage.claim();
  storage.give_up_claim();
  EXPECT_TRUE(storage.is_claimed());
  storage.give_up_claim();
  EXPECT_FALSE(storage.is_claimed());
  EXPECT_TRUE(storage.claim_if_free());
  EXPECT_TRUE(storage.is_claimed());
  storage.give_up_claim();
  EXPECT_FALSE(storage.is_claimed());
}

// A bitcast must find the same alignment before and after.
TEST(Storage, ACopyIsMisplacedAsMuchAsItsOriginal) {
  const Storage whole = Storage::allocate(200);
  for (std::size_t offset = 0; offset < 80; ++offset) {
    Storage part = whole.lazy_clone(offset, 40);
    const auto place_of = [&] { return reinterpret_cast<std::uintptr_t>(part.data()) % 8; };
    const std::uintptr_t before = place_of();
    part.mutable_data();
    EXPECT_EQ(place_of(), before) << offset;
  }
}

TEST(CopyStats, OfEachKindCountWhatComesAfterTheirStart) {
  const auto act = [] {
    Storage storage = filled(kOld);
    Storage clone = storage.lazy_clone();
    clone.mutable_data();  // copied
    clone = storage.lazy_clone();
    clone.overwrite_data();  // overwritten
    Storage::Pin pin = storage.pin();
    storage.lazy_clone();  // copied at once
    CopyStats::add_import_copy();
  };
  act();
  const CopyStats stats;
  const auto all = [&] {
    const CopyCounts now = stats.counts();
    return std::vector<std::uint64_t>{now.lazy_clones,   now.lazy_bytes,         now.copies,
                                      now.copied_bytes,  now.overwrites,         now.eager_copies,
                                      now.import_copies, now.eager_copied_bytes, now.take_overs};
  };
  EXPECT_EQ(all(), std::vector<std::uint64_t>(9, 0));
  act();
  EXPECT_EQ(all(), (std::vector<std::uint64_t>{2, 2 * kBytes, 1, kBytes, 1, 1, 1, kBytes, 0}));
}

TEST(CopyStats, BeginAtZeroAndAddUpWhatWasMoved) {
  const CopyCounts none;
  EXPECT_EQ(none.lazy_clones + none.lazy_bytes + none.copies + none.copied_bytes, 0u);
  EXPECT_EQ(none.take_overs + none.overwrites + none.eager_copies + none.eager_copied_bytes, 0u);
  EXPECT_EQ(none.import_copies, 0u);
  CopyCounts some;
  some.copied_bytes = 100;
  some.eager_copied_bytes = 10;
  some.lazy_bytes = 300;
  EXPECT_EQ(some.bytes_copied(), 110u);
  EXPECT_EQ(some.bytes_avoided(), 200u);
}

TEST(Storage, WritableDataAreThoseOfASoleOwner) {
  EXPECT_EQ(Storage().writable_data(), nullptr);
  Storage storage = Storage::allocate(8);
  EXPECT_EQ(storage.writable_data(), storage.data());
  const Storage clone = storage.lazy_clone();
  EXPECT_EQ(storage.writable_data(), nullptr);
}

TEST(CopyStats, OfAChildHaveWhatThreadsCountedThatItLacks) {
  const Storage storage = Storage::allocate(8);
  storage.lazy_clone();
  std::atomic<bool> has_cloned{false}, may_end{false};
  std::thread other([&] {
    for (int k = 0; k < 100; ++k) storage.lazy_clone();
    has_cloned = true;
    while (!may_end) std::this_thread::yield();
  });
  while (!has_cloned) std::this_thread::yield();
  const std::uint64_t before = CopyStats::process().lazy_clones;
  EXPECT_EQ(in_child([&] { return CopyStats::process().lazy_clones == before; }), 0);
  may_end = true;
  other.join();
}

// The thread that forks counted before another thread, which the child lacks, did.
TEST(CopyStats, OfAThreadThatEndsInAChildAreCountedOnce) {
  static std::uint64_t before;
  const Storage storage = Storage::allocate(8);
  storage.lazy_clone();
  std::atomic<bool> has_cloned{false}, may_end{false};
  std::thread other([&] {
    storage.lazy_clone();
    has_cloned = true;
    while (!may_end) std::this_thread::yield();
  });
  while (!has_cloned) std::this_thread::yield();
  before = CopyStats::process().lazy_clones;
  const auto child = [] {
    // Runs after the thread's data have been destroyed.
    std::atexit([] { _exit(CopyStats::process().lazy_clones == before ? 0 : 1); });
    std::exit(2);
    return 3;
  };
  EXPECT_EQ(in_child(child), 0);
  may_end = true;
  other.join();
}

}  // namespace
}  // namespace palimpsest
