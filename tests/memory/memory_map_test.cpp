// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/memory_map.hpp"

#include <cstring>
#include <stdexcept>

#include "palimpsest/base/error.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

Storage counted(std::size_t bytes) {
  Storage storage = Storage::allocate(bytes);
  std::byte* const data = storage.mutable_data();
  for (std::size_t k = 0; k < bytes; ++k) data[k] = static_cast<std::byte>(k % 251 + 1);
  return storage;
}

ByteLayout bytes_at(std::int64_t offset, std::int64_t n) { return {offset, {n}, {1}, 1}; }

std::byte byte_of(const Storage& storage, std::int64_t at) { return storage.data()[at]; }

// Are the first n bytes of both views equal?
::testing::AssertionResult shows_the_same(const MemoryMap& map, const Storage& storage,
                                          const ByteLayout& view, std::int64_t n) {
  const auto [copy, layout] = map.map(storage, view);
  if (std::memcmp(copy.data() + layout.offset, storage.data() + view.offset,
                  static_cast<std::size_t>(n)) == 0) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "other bytes";
}

TEST(MemoryExtent, GoesFromTheLowestToTheHighestByte) {
  EXPECT_EQ(memory_extent({80, {10}, {8}, 8}), (Extent{80, 160}));
  EXPECT_EQ(memory_extent({80, {10}, {-8}, 8}), (Extent{8, 88}));
  EXPECT_EQ(memory_extent({80, {10, 1000}, {16, 0}, 4}), (Extent{80, 228}));
  EXPECT_EQ(memory_extent({80, {}, {}, 8}), (Extent{80, 88}));
  const Extent empty = memory_extent({80, {0, 3, 224}, {1, 1, 1}, 8});
  EXPECT_EQ(empty.lo, empty.hi);
  EXPECT_THROW(memory_extent({0, {3, 3}, {index_t{1} << 62, 1}, 1}), OverflowError);
}

TEST(MemoryMap, DisjointViewsThatUseHalfKeepTheirDistance) {
  const Storage storage = counted(8000);
  const ByteLayout a{0, {10}, {8}, 8}, b{160, {10}, {8}, 8};
  MemoryMap map;
  map.add(storage, a);
  map.add(storage, b);
  EXPECT_EQ(map.bytes(), 240);
  const MemoryScope scope;
  map.copy();
  EXPECT_EQ(scope.live_bytes(), 240);
  EXPECT_EQ(scope.calls(), 1u);
  const auto [copy_a, layout_a] = map.map(storage, a);
  const auto [copy_b, layout_b] = map.map(storage, b);
  EXPECT_TRUE(copy_a.is(copy_b));
  EXPECT_EQ(copy_a.nbytes(), 240u);
  EXPECT_EQ(layout_b.offset - layout_a.offset, 160);
  EXPECT_TRUE(shows_the_same(map, storage, a, 80));
  EXPECT_TRUE(shows_the_same(map, storage, b, 80));
  EXPECT_EQ(byte_of(copy_a, layout_a.offset + 80), std::byte{0}) << "bytes of no view are zero";
}

TEST(MemoryMap, DisjointViewsThatUseLessThanHalfLeaveTheGapsOut) {
  const Storage storage = counted(8000);
  const ByteLayout a = bytes_at(8, 100), b = bytes_at(4000, 100), c = bytes_at(7900, 100);
  MemoryMap map;
  for (const ByteLayout& view : {a, b, c}) map.add(storage, view);
  const std::int64_t bytes = map.bytes();
  EXPECT_LE(bytes, 3 * (100 + 63));
  const MemoryScope scope;
  map.copy();
  EXPECT_EQ(scope.live_bytes(), bytes);
  for (const ByteLayout& view : {a, b, c}) {
    EXPECT_TRUE(shows_the_same(map, storage, view, 100));
    const auto [copy, layout] = map.map(storage, view);
    EXPECT_TRUE(copy.is(map.map(storage, a).first));
    EXPECT_EQ(layout.offset % 64, view.offset % 64);
  }
}

TEST(MemoryMap, TakesAnyNumberOfStorages) {
  std::vector<Storage> storages;
  MemoryMap map;
  for (int k = 0; k < 1000; ++k) {
    storages.push_back(counted(64));
    map.add(storages.back(), bytes_at(k % 32, 8));
  }
  EXPECT_EQ(map.groups().size(), 1000u);
  map.copy();
  for (int k = 0; k < 1000; ++k) {
    EXPECT_TRUE(shows_the_same(map, storages[static_cast<std::size_t>(k)], bytes_at(k % 32, 8), 8));
  }
}

TEST(MemoryMap, OneViewTakesItsExtentAndItsAlignment) {
  const Storage storage = counted(8000);
  const ByteLayout view{80, {10}, {8}, 8};
  MemoryMap map;
  map.add(storage, view);
  map.copy();
  EXPECT_EQ(map.bytes(), 96);
  EXPECT_EQ(map.map(storage, view).second.offset, 16);
  EXPECT_TRUE(shows_the_same(map, storage, view, 80));
}

TEST(MemoryMap, OverlappingViewsAndRepeatedOnesAreCopiedOnce) {
  const Storage storage = counted(1024);
  const ByteLayout a = bytes_at(0, 600), b = bytes_at(500, 524);
  MemoryMap map;
  map.add(storage, a);
  map.add(storage, b);
  map.add(storage, a);
  map.copy();
  EXPECT_EQ(map.bytes(), 1024);
  EXPECT_EQ(map.groups().size(), 1u);
  EXPECT_EQ(map.groups()[0].views, 3);
  EXPECT_EQ(map.groups()[0].used, 1024);
  auto [copy, layout_a] = map.map(storage, a);
  const auto layout_b = map.map(storage, b).second;
  copy.mutable_data()[layout_a.offset + 550] = std::byte{0};
  EXPECT_EQ(byte_of(copy, layout_b.offset + 50), std::byte{0});
  EXPECT_NE(byte_of(storage, 550), std::byte{0});
}

TEST(MemoryMap, StridesOfAnySignAndZeroStay) {
  const Storage storage = counted(1024);
  const ByteLayout repeated{128, {5, 1000}, {8, 0}, 8}, backwards{1000, {8}, {-16}, 8};
  MemoryMap map;
  map.add(storage, repeated);
  map.add(storage, backwards);
  map.copy();
  const auto [copy, layout] = map.map(storage, repeated);
  EXPECT_EQ(layout.strides, repeated.strides);
  EXPECT_TRUE(shows_the_same(map, storage, repeated, 40));
  const auto [other, reversed] = map.map(storage, backwards);
  EXPECT_EQ(reversed.strides, backwards.strides);
  for (std::int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(byte_of(other, reversed.offset - 16 * i), byte_of(storage, 1000 - 16 * i));
  }
  EXPECT_LE(map.bytes(), 40 + 120 + 2 * 63);
}

TEST(MemoryMap, ViewsWithoutElementsAllocateNothing) {
  const Storage storage = counted(1024);
  const ByteLayout empty{512, {0, 3, 224}, {672, 224, 1}, 1};
  for (const bool is_lazy : {false, true}) {
    MemoryMap map;
    map.add(storage, empty);
    EXPECT_EQ(map.bytes(), 0);
    const MemoryScope scope;
    is_lazy ? map.lazy_copy() : map.copy();
    EXPECT_EQ(scope.live_bytes(), 0);
    const auto [copy, layout] = map.map(storage, empty);
    EXPECT_EQ(copy.nbytes(), 0u);
    EXPECT_EQ(layout.shape, empty.shape);
    EXPECT_EQ(layout.strides, empty.strides);
    EXPECT_FALSE(copy.shares_data(storage));
  }
}

TEST(MemoryMap, AnEmptyViewLiesAtTheStartOfItsCopy) {
  const Storage storage = counted(100);
  MemoryMap map;
  map.add(storage, bytes_at(40, 0));
  map.copy();
  const auto [copy, layout] = map.map(storage, bytes_at(40, 0));
  EXPECT_EQ(layout.offset, 0);
  EXPECT_EQ(copy.nbytes(), 0u);
}

TEST(MemoryMap, AnEmptyViewDoesNotWidenTheSpan) {
  const Storage storage = counted(1024);
  MemoryMap map;
  map.add(storage, bytes_at(64, 10));
  map.add(storage, bytes_at(900, 0));
  map.copy();
  EXPECT_EQ(map.bytes(), 10);
  EXPECT_TRUE(
      map.map(storage, bytes_at(900, 0)).first.is(map.map(storage, bytes_at(64, 10)).first));
}

TEST(MemoryMap, LazyCopiesShareUntilWrittenAndKeepOnlyWhatIsUsed) {
  Storage storage = counted(1 << 20);
  const ByteLayout a = bytes_at(1000, 100), b = bytes_at(2000, 100);
  MemoryMap map;
  map.add(storage, a);
  map.add(storage, b);
  const MemoryScope scope;
  const CopyStats stats;
  map.lazy_copy();
  EXPECT_EQ(scope.live_bytes(), 0);
  EXPECT_EQ(map.bytes(), 0);
  EXPECT_EQ(stats.counts().lazy_clones, 1u);
  auto [copy, layout] = map.map(storage, a);
  EXPECT_TRUE(copy.shares_data(storage));
  EXPECT_TRUE(copy.is(map.map(storage, b).first));
  EXPECT_EQ(layout.offset % 64, 1000 % 64);
  copy.mutable_data()[layout.offset] = std::byte{0};
  EXPECT_NE(byte_of(storage, 1000), std::byte{0});
  EXPECT_LE(scope.live_bytes(), 1100 + 63);
  EXPECT_TRUE(shows_the_same(map, storage, b, 100));
}

TEST(MemoryMap, LazyClonesOfOneAnotherShareTheirCopyLazily) {
  const Storage storage = counted(4096);
  const Storage clone = storage.lazy_clone(), range = storage.lazy_clone(1001, 2000);
  const ByteLayout all = bytes_at(0, 4096), part = bytes_at(7, 1500), none = bytes_at(5, 0);
  const Storage empty_user = storage.lazy_clone();
  MemoryMap map;
  map.add(storage, all);
  map.add(clone, all);
  map.add(range, part);
  map.add(empty_user, none);
  const MemoryScope scope;
  map.copy();
  EXPECT_EQ(scope.calls(), 1u);
  EXPECT_EQ(scope.live_bytes(), map.bytes());
  EXPECT_LE(map.bytes(), 4096 + 64);
  EXPECT_TRUE(shows_the_same(map, storage, all, 4096));
  EXPECT_TRUE(shows_the_same(map, clone, all, 4096));
  EXPECT_TRUE(shows_the_same(map, range, part, 1500));
  EXPECT_EQ(map.map(range, part).second.offset % 64, 7);
  Storage first = map.map(storage, all).first, second = map.map(clone, all).first;
  EXPECT_FALSE(first.is(second));
  EXPECT_TRUE(first.shares_data(second));
  first.mutable_data()[0] = std::byte{0};
  EXPECT_NE(byte_of(second, map.map(clone, all).second.offset), std::byte{0});
  EXPECT_EQ(map.groups()[1].buffer, 0);
  EXPECT_EQ(map.groups()[0].buffer, map.bytes());
}

TEST(MemoryMap, MovingCopiesWhatIsElsewhereAndLeavesTheRest) {
  const Device other{DeviceType::cpu, 1};
  const Storage here = counted(1000), there = Storage::allocate(500, other);
  MemoryMap map;
  map.add(here, bytes_at(0, 1000));
  map.add(there, bytes_at(10, 20));
  const MemoryScope scope(other), at_home;
  map.to(other);
  EXPECT_EQ(map.bytes(), 1000);
  EXPECT_EQ(scope.live_bytes(), 1000);
  EXPECT_EQ(at_home.live_bytes(), 0);
  EXPECT_EQ(map.map(here, bytes_at(0, 1000)).first.device(), other);
  EXPECT_TRUE(shows_the_same(map, here, bytes_at(0, 1000), 1000));
  EXPECT_EQ(map.groups()[0].buffer, 1000);
  EXPECT_EQ(map.groups()[1].buffer, 0);
  EXPECT_TRUE(map.map(there, bytes_at(10, 20)).first.is(there));
  EXPECT_EQ(map.map(there, bytes_at(10, 20)).second.offset, 10);
}

TEST(MemoryMap, WhatThePreparationThrowsLeavesItAsItWas) {
  const Device other{DeviceType::cpu, 1};
  const Storage here = counted(1000), there = Storage::allocate(500, other);
  const MemoryScope scope(other);
  MemoryMap map;
  map.add(here, bytes_at(0, 1000));
  map.add(there, bytes_at(10, 20));
  const auto fail = [&] {
    EXPECT_TRUE(map.is_done());
    EXPECT_EQ(map.map(here, bytes_at(0, 1000)).first.device(), other);
    throw std::runtime_error("not now");
  };
  for (int k = 0; k < 2; ++k) {
    EXPECT_THROW(map.move_to(other, fail), std::runtime_error);
    EXPECT_FALSE(map.is_done());
    EXPECT_EQ(scope.live_bytes(), 0);
    expect_error<ValueError>([&] { map.map(here, bytes_at(0, 1000)); }, "nothing is copied yet");
    expect_error<ValueError>([&] { map.map(there, bytes_at(10, 20)); }, "nothing is copied yet");
  }
  map.add(here, bytes_at(5, 7));
  map.move_to(other, [] {});
  EXPECT_TRUE(shows_the_same(map, here, bytes_at(0, 1000), 1000));
  EXPECT_TRUE(shows_the_same(map, here, bytes_at(5, 7), 7));
  EXPECT_TRUE(map.map(there, bytes_at(10, 20)).first.is(there));
}

TEST(MemoryMap, CompactStoresSparseSingleViewsDensely) {
  const Storage storage = counted(8192);
  const ByteLayout sparse{128, {4, 8, 2}, {1024, 64, 0}, 4}, dense = bytes_at(8000, 100);
  for (const bool compact : {false, true}) {
    MemoryMap map(compact);
    map.add(storage, sparse);
    map.add(storage, sparse);
    map.add(storage, dense);
    map.copy();
    if (compact) {
      EXPECT_LE(map.bytes(), 4 * 8 * 4 + 100 + 2 * 63);
    }
    const auto [copy, layout] = map.map(storage, sparse);
    EXPECT_EQ(layout.shape, sparse.shape);
    EXPECT_EQ(layout.strides[2], 0);
    for (std::int64_t i = 0; i < 4; ++i) {
      for (std::int64_t j = 0; j < 8; ++j) {
        const std::int64_t from = sparse.offset + i * 1024 + j * 64;
        const std::int64_t to = layout.offset + i * layout.strides[0] + j * layout.strides[1];
        EXPECT_EQ(std::memcmp(copy.data() + to, storage.data() + from, 4), 0);
      }
    }
    EXPECT_TRUE(shows_the_same(map, storage, dense, 100));
  }
}

// Also for a view of clones of a range whose first byte is not the first of the block.
TEST(MemoryMap, CompactStoresASparseViewOfSeveralClonesOnce) {
  const Storage storage = counted(32768);
  const Storage first = storage.lazy_clone(1024, 4096), second = storage.lazy_clone(1024, 4096);
  const ByteLayout sparse{128, {4, 8}, {1000, 64}, 4}, dense = bytes_at(32000, 100);
  MemoryMap map(true);
  map.add(storage, dense);
  map.add(first, sparse);
  map.add(second, sparse);
  map.copy();
  EXPECT_LE(map.bytes(), 4 * 8 * 4 + 100 + 2 * 63);
  for (const Storage* source : {&first, &second}) {
    const auto [copy, layout] = map.map(*source, sparse);
    for (std::int64_t i = 0; i < 4; ++i) {
      for (std::int64_t j = 0; j < 8; ++j) {
        const std::int64_t from = sparse.offset + i * 1000 + j * 64;
        const std::int64_t to = layout.offset + i * layout.strides[0] + j * layout.strides[1];
        EXPECT_EQ(std::memcmp(copy.data() + to, source->data() + from, 4), 0);
      }
    }
  }
}

TEST(MemoryMap, CompactKeepsTheStridesOfWhatFillsHalf) {
  const Storage storage = counted(8192);
  for (const std::int64_t offset : {0, 4096}) {
    for (const index_t stride : {9, 11, 12, 13}) {
      // 8 of stride + 4 bytes.
      const ByteLayout view{offset, {2}, {stride}, 4};
      MemoryMap map(true);
      map.add(storage, view);
      map.copy();
      EXPECT_EQ(map.map(storage, view).second.strides[0], stride <= 12 ? stride : 4);
      EXPECT_EQ(map.bytes(), stride <= 12 ? stride + 4 : 8);
    }
  }
}

TEST(MemoryMap, ForeignWritableMemoryIsCopiedAtOnce) {
  std::byte memory[256] = {};
  const Storage storage = Storage::from_foreign(memory, 256, Device{}, true);
  MemoryMap map;
  map.add(storage, bytes_at(0, 256));
  map.lazy_copy();
  EXPECT_EQ(map.bytes(), 256);
  memory[0] = std::byte{1};
  EXPECT_EQ(byte_of(map.map(storage, bytes_at(0, 256)).first, 0), std::byte{0});
}

TEST(MemoryMap, ManyTinyViewsOfOneStorageAreQuick) {
  const Storage storage = counted(1 << 20);
  MemoryMap map(true);
  for (std::int64_t k = 0; k < 10'000; ++k) map.add(storage, bytes_at(k * 104, 4));
  map.copy();
  EXPECT_LE(map.bytes(), 10'000 * (4 + 63));
  for (std::int64_t k = 0; k < 10'000; k += 97) {
    EXPECT_TRUE(shows_the_same(map, storage, bytes_at(k * 104, 4), 4));
  }
}

TEST(MemoryMap, SaysWhatIsWrong) {
  const Storage storage = counted(100), stranger = counted(100);
  MemoryMap map;
  expect_error<AliasError>([&] { map.add(storage, bytes_at(50, 51)); }, "outside its storage");
  expect_error<AliasError>([&] { map.add(storage, {8, {3}, {-8}, 1}); }, "got bytes -8 .. 9");
  map.add(storage, bytes_at(0, 50));
  expect_error<ValueError>([&] { map.map(storage, bytes_at(0, 50)); }, "nothing is copied yet");
  map.copy();
  expect_error<ValueError>([&] { map.map(stranger, bytes_at(0, 50)); }, "not registered");
  expect_error<ValueError>([&] { map.map(storage, bytes_at(0, 40)); }, "not registered");
  expect_error<ValueError>([&] { map.add(storage, bytes_at(0, 50)); }, "made already");
  expect_error<ValueError>([&] { map.add(storage, bytes_at(0, 50)); }, "not registered");
  expect_error<ValueError>([&] { map.copy(); }, "made already");
  expect_error<ValueError>([&] { map.lazy_copy(); }, "made already");
  expect_error<ValueError>([&] { map.to(Device{}); }, "made already");
}

TEST(MemoryMap, AFailedAllocationLeavesItAsItWas) {
  const Storage a = counted(100), b = counted(200);
  std::byte memory[64] = {};
  const Storage foreign = Storage::from_foreign(memory, 64, Device{}, true);
  const Device other{DeviceType::cpu, 1};
  for (int action = 0; action < 3; ++action) {
    const MemoryScope leaks, leaks_there(other);
    for (std::uint64_t n = 0;; ++n) {
      ASSERT_LT(n, 10u);
      MemoryMap map;
      map.add(a, bytes_at(0, 100));
      map.add(b, bytes_at(0, 200));
      map.add(foreign, bytes_at(0, 64));
      const auto run = [&] {
        action == 0 ? map.copy() : action == 1 ? map.lazy_copy() : map.to(other);
      };
      bool has_failed = false;
      {
        const FailingAllocator failing(n);
        try {
          run();
        } catch (const OutOfMemory&) {
        }
        has_failed = failing.has_failed();
      }
      if (!has_failed) break;
      EXPECT_EQ(leaks.live_bytes() + leaks_there.live_bytes(), 0);
      EXPECT_NO_THROW(run());
      EXPECT_TRUE(shows_the_same(map, b, bytes_at(0, 200), 200));
    }
    EXPECT_EQ(leaks.live_bytes() + leaks_there.live_bytes(), 0);
  }
}

}  // namespace
}  // namespace palimpsest
