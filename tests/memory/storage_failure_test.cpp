// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "palimpsest/base/error.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/memory/file_pages.hpp"
#include "palimpsest/memory/memory_map.hpp"
#include "palimpsest/memory/storage.hpp"
#include "support/every_allocation.hpp"
#include "support/expect_error.hpp"
#include "support/new_counter.hpp"

namespace palimpsest {
namespace {

constexpr std::size_t kBytes = 3 << 20;  // several pieces of a copy

struct Scene {
  std::array<std::byte, 64> foreign_memory{};
  int given_back = 0;
  Storage original = Storage::allocate(kBytes);
  Storage clone, range, read_only, writable, pinned_one, shared;
  std::vector<Storage::Pin> pins;
  // More than the freed handles that a thread keeps, so that the next ones come from the heap.
  std::vector<Storage> many;

  Scene() {
    std::memset(original.mutable_data(), 5, kBytes);
    clone = original.lazy_clone();
    range = original.lazy_clone(7, 1 << 20);
    const auto count = [this] { ++given_back; };
    read_only = Storage::from_foreign(foreign_memory.data(), 64, Device{}, false, count);
    writable = Storage::from_foreign(foreign_memory.data(), 64, Device{}, true, count);
    pinned_one = Storage::allocate(100);
    pins.push_back(pinned_one.pin());
    shared = Storage::shared_memory(100);
    many.push_back(Storage::allocate(1));
    while (many.size() < 70) many.push_back(many.front().lazy_clone());
  }

  void check() const {
    EXPECT_EQ(original.references(), 3u);
    EXPECT_TRUE(original.shares_data(clone));
    EXPECT_EQ(range.data(), original.data() + 7);
    EXPECT_EQ(original.data()[kBytes - 1], std::byte{5});
    EXPECT_EQ(read_only.state(), StorageState::foreign_read_only);
    EXPECT_EQ(read_only.data(), foreign_memory.data());
    EXPECT_EQ(writable.state(), StorageState::foreign_writable);
    EXPECT_EQ(pinned_one.state(), StorageState::pinned);
    EXPECT_EQ(pins.front().data(), pinned_one.data());
    EXPECT_EQ(shared.use_count(), 1u);
    EXPECT_EQ(given_back, 0);
  }
};

using Action = std::function<void(Scene&)>;

// Failures of memory for data, and of the heap. At least one of them is used.
void expect_survives_failures(const Action& action) {
  const MemoryScope leaks, leaks_elsewhere(Device{DeviceType::cpu, 1});
  const std::size_t n = testing::survived_failures<FailingAllocator, OutOfMemory>(action) +
                        testing::survived_failures<testing::FailingNew, std::bad_alloc>(action);
  EXPECT_GT(n, 0u) << "nothing was allocated";
  EXPECT_EQ(leaks.live_bytes(), 0);
  EXPECT_EQ(leaks_elsewhere.live_bytes(), 0);
}

TEST(StorageFailure, OfAWriteLeavesSharedDataShared) {
  expect_survives_failures([](Scene& scene) { scene.original.mutable_data()[0] = std::byte{9}; });
  expect_survives_failures([](Scene& scene) { scene.clone.mutable_data()[0] = std::byte{9}; });
  expect_survives_failures([](Scene& scene) { scene.range.mutable_data()[0] = std::byte{9}; });
}

TEST(StorageFailure, OfAnOverwriteLeavesSharedDataShared) {
  expect_survives_failures([](Scene& scene) { scene.original.overwrite_data(); });
  expect_survives_failures([](Scene& scene) { scene.range.overwrite_data(); });
  expect_survives_failures([](Scene& scene) { scene.read_only.overwrite_data(); });
}

TEST(StorageFailure, OfAWriteLeavesForeignDataWhereItIs) {
  expect_survives_failures([](Scene& scene) { scene.read_only.mutable_data(); });
}

TEST(StorageFailure, OfAPinLeavesTheStorageUnpinned) {
  expect_survives_failures([](Scene& scene) { scene.original.pin(); });
}

// More than the used rooms that a thread keeps, so that some need the heap.
void clone_often(const Storage& storage, std::size_t offset, std::size_t bytes) {
  std::array<Storage, 70> clones;
  for (Storage& clone : clones) clone = storage.lazy_clone(offset, bytes);
}

TEST(StorageFailure, OfALazyCloneLeavesNothing) {
  expect_survives_failures([](Scene& scene) { clone_often(scene.original, 0, 100); });
  expect_survives_failures([](Scene& scene) { clone_often(scene.range, 10, 10); });
  expect_survives_failures([](Scene& scene) { clone_often(scene.read_only, 0, 64); });
}

TEST(StorageFailure, OfALazyCloneIsNotCounted) {
  const Storage storage = Storage::allocate(100);
  std::vector<Storage> held(70, Storage());
  for (Storage& clone : held) clone = storage.lazy_clone();  // no used rooms remain
  const CopyStats stats;
  {
    const testing::FailingNew failing(0);
    EXPECT_THROW(storage.lazy_clone(), std::bad_alloc);
  }
  EXPECT_EQ(stats.counts().lazy_clones, 0u);
  EXPECT_EQ(stats.counts().lazy_bytes, 0u);
}

// A failure of the heap is not an Error: see base/error.hpp.
TEST(StorageFailure, OfTheHeapIsBadAllocAndOfMemoryAnError) {
  Storage storage = Storage::allocate(100);
  const Storage clone = storage.lazy_clone();
  {
    const FailingAllocator failing(0);
    testing::expect_error<OutOfMemory>([&] { storage.mutable_data(); }, "injected failure");
  }
  const testing::FailingNew failing(0);
  EXPECT_THROW(Storage::shared_memory(10), std::bad_alloc);
}

TEST(StorageFailure, OfAnEagerCloneLeavesNothing) {
  expect_survives_failures([](Scene& scene) { scene.writable.lazy_clone(); });
  expect_survives_failures([](Scene& scene) { scene.pinned_one.lazy_clone(10, 10); });
  expect_survives_failures([](Scene& scene) { scene.shared.lazy_clone(); });
}

TEST(StorageFailure, OfAnAllocationLeavesNothing) {
  expect_survives_failures([](Scene&) { Storage::allocate(10); });
  expect_survives_failures(
      [](Scene&) { Storage::allocate(10, {}, "a name of some length, on the heap"); });
  expect_survives_failures([](Scene&) { Storage::allocate(6 << 20, {DeviceType::cpu, 1}, "big"); });
}

TEST(StorageFailure, OfAnImportLeavesTheMemoryToItsOwner) {
  expect_survives_failures([](Scene& scene) {
    std::array<int*, 4> captured{&scene.given_back};
    Storage::from_foreign(scene.foreign_memory.data(), 64, Device{}, false,
                          [captured] { static_cast<void>(captured); });
  });
  expect_survives_failures([](Scene&) { Storage::shared_memory(10); });
  expect_survives_failures(
      [](Scene& scene) { Storage::attach_shared_memory(scene.shared.shared_descriptor()); });
}

TEST(StorageFailure, OfAMappedFileLeavesNothing) {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("palimpsest_storage_failure_" + std::to_string(getpid()));
  std::ofstream(path) << "some bytes in a file";
  // The next mapping has the address of the failed one.
  const std::byte* const place = Storage::from_file(path, 0, 10).data();
  expect_survives_failures([&path, place](Scene&) {
    EXPECT_FALSE(is_file_mapped(place, 1));
    Storage::from_file(path, 5, 10);
  });
  expect_survives_failures(
      [&path](Scene&) { Storage::from_file(path, 5, 10).mutable_data()[0] = std::byte{9}; });
  std::filesystem::remove(path);
}

TEST(StorageFailure, OfAMapOfSharingLeavesTheSources) {
  const auto add_all = [](Scene& scene) {
    MemoryMap map;
    map.add(scene.original, {.offset = 3, .shape = {5, 2}, .strides = {100, 1}});
    map.add(scene.original, {.offset = 0, .shape = {8}, .strides = {1}});
    map.add(scene.range, {.offset = 100, .shape = {10}, .strides = {1}});
    return map;
  };
  expect_survives_failures([=](Scene& scene) { add_all(scene).copy(); });
  expect_survives_failures([=](Scene& scene) { add_all(scene).lazy_copy(); });
  expect_survives_failures([=](Scene& scene) { add_all(scene).to(Device{DeviceType::cpu, 1}); });
}

TEST(StorageFailure, NeverKeepsMemoryFromBeingGivenBack) {
  const MemoryScope leaks;
  for (std::size_t n = 0; n < 3; ++n) {
    Scene scene;
    const testing::FailingNew no_heap(n);
    const FailingAllocator no_memory(0);
    scene.original = scene.clone = scene.range = Storage();
    scene.read_only = scene.writable = scene.shared = Storage();
    scene.pins.clear();
    scene.pinned_one = Storage();
    scene.many.clear();
    EXPECT_FALSE(no_memory.has_failed());
    EXPECT_EQ(scene.given_back, 2);
    EXPECT_EQ(leaks.live_bytes(), 0);
  }
}

TEST(StorageFailure, ALimitLetsTheLastOwnerWriteInPlace) {
  Storage storage = Storage::allocate(1000);
  Storage clone = storage.lazy_clone();
  const MemoryLimit limit(Device{}, Allocator::of(Device{}).stats().live_bytes + 999);
  EXPECT_THROW(storage.mutable_data(), OutOfMemory);
  clone = Storage();
  EXPECT_NO_THROW(storage.mutable_data());
}

}  // namespace
}  // namespace palimpsest
