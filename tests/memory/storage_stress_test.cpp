// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <barrier>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/memory/storage.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

constexpr std::size_t kWords = 48;
using Words = std::vector<std::uint32_t>;

// A storage and what it must contain.
struct Item {
  Storage storage;
  Words expected;

  bool is_intact() const {
    return storage.nbytes() == expected.size() * sizeof(std::uint32_t) &&
           std::memcmp(storage.data(), expected.data(), storage.nbytes()) == 0;
  }
};

Item make_item(std::uint32_t value) {
  Item item{Storage::allocate(kWords * sizeof(std::uint32_t)), Words(kWords, value)};
  std::memcpy(item.storage.overwrite_data(), item.expected.data(), item.storage.nbytes());
  return item;
}

// Storages that threads hand to one another; several may clone one of them at the same time.
class Exchange {
 public:
  Exchange() {
    for (std::uint32_t i = 0; i < kSlots; ++i) slots_[i].item = make_item(i);
  }
  void put(std::size_t slot, Item item) {
    const std::lock_guard lock(slots_[slot].mutex);
    std::swap(slots_[slot].item, item);
  }
  Item take(std::size_t slot, std::size_t first, std::size_t count) {
    std::unique_lock lock(slots_[slot].mutex);
    const Item item = slots_[slot].item;  // another handle on the same storage
    lock.unlock();
    count = std::min(count, item.expected.size());
    first = std::min(first, item.expected.size() - count);
    const auto begin = item.expected.begin() + static_cast<std::ptrdiff_t>(first);
    return {item.storage.lazy_clone(first * 4, count * 4),
            Words(begin, begin + static_cast<std::ptrdiff_t>(count))};
  }
  static constexpr std::size_t kSlots = 4;

 private:
  struct Slot {
    std::mutex mutex;
    Item item;
  };
  std::array<Slot, kSlots> slots_;
};

void work(Exchange& exchange, unsigned seed, int operations, std::atomic<int>& broken) {
  std::mt19937 random(seed);
  std::vector<Item> items;
  const auto any = [&random](std::size_t n) { return random() % n; };
  for (int i = 0; i < operations; ++i) {
    if (items.empty() || any(8) == 0) {
      items.push_back(exchange.take(any(Exchange::kSlots), any(kWords), 1 + any(kWords)));
      continue;
    }
    Item& item = items[any(items.size())];
    switch (any(6)) {
      case 0: {
        Item clone{item.storage.lazy_clone(), item.expected};
        items.push_back(std::move(clone));
        break;
      }
      case 1: {
        const std::size_t at = any(item.expected.size());
        item.expected[at] = static_cast<std::uint32_t>(random());
        std::memcpy(item.storage.mutable_data() + at * 4, &item.expected[at], 4);
        break;
      }
      case 2:
        std::fill(item.expected.begin(), item.expected.end(), random());
        std::memcpy(item.storage.overwrite_data(), item.expected.data(), item.storage.nbytes());
        break;
      case 3:
        // A storage in the exchange is only read from then on.
        exchange.put(any(Exchange::kSlots), {item.storage.lazy_clone(), item.expected});
        break;
      case 4:
        if (!item.is_intact()) ++broken;
        break;
      default:
        std::swap(item, items.back());
        items.pop_back();
    }
    if (items.size() > 20) items.erase(items.begin(), items.begin() + 10);
  }
  for (const Item& item : items) {
    if (!item.is_intact()) ++broken;
  }
}

TEST(StorageStress, RandomOperationsOfSeveralThreadsKeepAllContents) {
  constexpr int kThreads = 4, kOperations = 300'000;
  const MemoryScope leaks;
  std::atomic<int> broken{0};
  {
    Exchange exchange;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] { work(exchange, 1000 + t, kOperations, broken); });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(broken, 0);
  EXPECT_EQ(leaks.live_bytes(), 0);
}

TEST(StorageStress, ConcurrentWritersMakeNMinusOneCopiesAndOneTakesOver) {
  constexpr std::size_t kBytes = (2 << 20) + 100;
  for (const int n_threads : {2, 3, 4}) {
    for (int round = 0; round < 25; ++round) {
      Storage first = Storage::allocate(kBytes);
      std::memset(first.mutable_data(), 7, kBytes);
      const std::byte* const address = first.data();
      std::vector<Storage> sharers{std::move(first)};
      while (sharers.size() < static_cast<std::size_t>(n_threads)) {
        sharers.push_back(sharers.front().lazy_clone());
      }
      const CopyStats stats;
      const MemoryScope scope;
      std::barrier start(n_threads);
      std::vector<std::thread> threads;
      for (Storage& storage : sharers) {
        threads.emplace_back([&start, &storage] {
          start.arrive_and_wait();
          storage.mutable_data()[kBytes - 1] = std::byte{9};
        });
      }
      for (std::thread& thread : threads) thread.join();
      EXPECT_EQ(stats.counts().copies, sharers.size() - 1);
      EXPECT_EQ(scope.calls(), sharers.size() - 1);
      int keepers = 0;
      for (const Storage& storage : sharers) {
        keepers += storage.data() == address ? 1 : 0;
        EXPECT_EQ(storage.state(), StorageState::owned);
        EXPECT_EQ(storage.data()[kBytes - 2], std::byte{7});
        EXPECT_EQ(storage.data()[kBytes - 1], std::byte{9});
      }
      EXPECT_EQ(keepers, 1);
    }
  }
}

TEST(StorageStress, AWriterAndADropperNeverLeakNorCopyTwice) {
  constexpr std::size_t kBytes = 4 << 20;
  for (int round = 0; round < 50; ++round) {
    const MemoryScope scope;
    {
      Storage writer = Storage::allocate(kBytes);
      std::memset(writer.mutable_data(), 7, kBytes);
      Storage dropper = writer.lazy_clone();
      std::barrier start(2);
      std::thread thread([&] {
        start.arrive_and_wait();
        dropper = Storage();
      });
      start.arrive_and_wait();
      writer.mutable_data()[0] = std::byte{9};
      thread.join();
      EXPECT_EQ(writer.state(), StorageState::owned);
      EXPECT_EQ(writer.data()[kBytes - 1], std::byte{7});
      EXPECT_LE(scope.calls(), 2u);
    }
    EXPECT_EQ(scope.live_bytes(), 0);
  }
}

TEST(StorageStress, ConcurrentClonesOfOneStorageAreReads) {
  const Storage storage = make_item(3).storage;
  const std::byte* const address = storage.data();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&storage] {
      for (int i = 0; i < 20'000; ++i) {
        Storage clone = storage.lazy_clone();
        if (i % 4 == 0) clone.mutable_data()[0] = std::byte{9};
        const Storage alias = storage;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(storage.state(), StorageState::owned);
  EXPECT_EQ(storage.data(), address);
  EXPECT_EQ(storage.use_count(), 1u);
  EXPECT_EQ(storage.data()[0], std::byte{3});
}

}  // namespace
}  // namespace palimpsest
