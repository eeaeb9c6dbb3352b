// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>
#include <functional>

#include "palimpsest/base/error.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/memory/storage.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

constexpr std::size_t kBytes = 3 << 20;  // several pieces of a copy

struct Scene {
  std::array<std::byte, 64> foreign_memory{};
  Storage original = Storage::allocate(kBytes);
  Storage clone, range, read_only, writable;

  Scene() {
    std::memset(original.mutable_data(), 5, kBytes);
    clone = original.lazy_clone();
    range = original.lazy_clone(7, 1 << 20);
    read_only = Storage::from_foreign(foreign_memory.data(), 64, Device{}, false);
    writable = Storage::from_foreign(foreign_memory.data(), 64, Device{}, true);
  }

  void check() const {
    EXPECT_EQ(original.references(), 3u);
    EXPECT_TRUE(original.shares_data(clone));
    EXPECT_EQ(range.data(), original.data() + 7);
    EXPECT_EQ(original.data()[kBytes - 1], std::byte{5});
    EXPECT_EQ(read_only.state(), StorageState::foreign_read_only);
    EXPECT_EQ(read_only.data(), foreign_memory.data());
    EXPECT_EQ(writable.state(), StorageState::foreign_writable);
  }
};

// Fails every allocation of an action in turn: the scene must be as before, and a retry must work.
void expect_survives_failures(const std::function<void(Scene&)>& action) {
  const MemoryScope leaks;
  for (std::uint64_t n = 0;; ++n) {
    ASSERT_LT(n, 100u);
    Scene scene;
    {
      const FailingAllocator failing(n);
      try {
        action(scene);
      } catch (const OutOfMemory&) {
      }
      if (!failing.has_failed()) break;
    }
    scene.check();
    EXPECT_NO_THROW(action(scene));
  }
  EXPECT_EQ(leaks.live_bytes(), 0);
}

TEST(StorageFailure, OfAWriteLeavesSharedDataShared) {
  expect_survives_failures([](Scene& scene) { scene.original.mutable_data()[0] = std::byte{9}; });
  expect_survives_failures([](Scene& scene) { scene.clone.mutable_data()[0] = std::byte{9}; });
  expect_survives_failures([](Scene& scene) { scene.range.mutable_data()[0] = std::byte{9}; });
}

TEST(StorageFailure, OfAnOverwriteLeavesSharedDataShared) {
  expect_survives_failures([](Scene& scene) { scene.original.overwrite_data(); });
  expect_survives_failures([](Scene& scene) { scene.read_only.overwrite_data(); });
}

TEST(StorageFailure, OfAWriteLeavesForeignDataWhereItIs) {
  expect_survives_failures([](Scene& scene) { scene.read_only.mutable_data(); });
}

TEST(StorageFailure, OfAPinLeavesTheStorageUnpinned) {
  expect_survives_failures([](Scene& scene) { scene.original.pin(); });
}

TEST(StorageFailure, OfAnEagerCloneLeavesNothing) {
  expect_survives_failures([](Scene& scene) { scene.writable.lazy_clone(); });
}

TEST(StorageFailure, OfAnAllocationLeavesNothing) {
  expect_survives_failures([](Scene&) { Storage::allocate(10); });
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
