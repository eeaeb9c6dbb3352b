// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "palimpsest/base/error.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/memory/storage.hpp"
#include "support/expect_error.hpp"
#include "support/long_run.hpp"

namespace palimpsest {
namespace {

constexpr std::size_t kWords = 24;

std::uint64_t next(std::uint64_t& state) {  // splitmix64
  std::uint64_t z = state += 0x9e37'79b9'7f4a'7c15U;
  z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9U;
  z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11ebU;
  return z ^ (z >> 31);
}

// The expected contents of a Storage. Views of one Storage have one of these, too.
struct Plain {
  std::array<std::uint32_t, kWords> words{};
  std::size_t n = kWords;
};

struct Item {
  Storage storage;
  std::shared_ptr<Plain> plain;

  bool is_intact() const {
    return storage.nbytes() == plain->n * 4 &&
           std::memcmp(storage.data(), plain->words.data(), plain->n * 4) == 0;
  }
  // An independent item: a clone in the plain model.
  Item clone(std::size_t first, std::size_t n) const {
    auto copy = std::make_shared<Plain>();
    copy->n = n;
    std::copy_n(plain->words.begin() + static_cast<std::ptrdiff_t>(first), n, copy->words.begin());
    return {n == plain->n ? storage.lazy_clone() : storage.lazy_clone(first * 4, n * 4), copy};
  }
  Item clone() const { return clone(0, plain->n); }
};

Item make_item(std::uint32_t value) {
  Item item{Storage::allocate(kWords * 4), std::make_shared<Plain>()};
  item.plain->words.fill(value);
  std::memcpy(item.storage.overwrite_data(), item.plain->words.data(), kWords * 4);
  return item;
}

// Foreign memory that counts how often it was given back.
Item make_foreign_item(std::uint32_t value, std::atomic<int>& alive) {
  auto plain = std::make_shared<Plain>();
  plain->words.fill(value);
  auto memory = std::make_unique<Plain>(*plain);
  void* const data = memory->words.data();
  ++alive;
  return {Storage::from_foreign(
              data, kWords * 4, Device{}, false,
              [memory = std::shared_ptr<Plain>(std::move(memory)), &alive] { --alive; }),
          plain};
}

// Storages that threads exchange: from then on they are only read, by several threads at once.
class Exchange {
 public:
  Exchange() {
    for (std::uint32_t i = 0; i < kSlots; ++i) slots_[i].item = make_item(i);
  }
  void put(std::size_t slot, Item item) {
    const std::lock_guard lock(slots_[slot % kSlots].mutex);
    std::swap(slots_[slot % kSlots].item, item);
  }
  // Another handle on the same storage.
  Item get(std::size_t slot) {
    const std::lock_guard lock(slots_[slot % kSlots].mutex);
    return slots_[slot % kSlots].item;
  }

 private:
  static constexpr std::size_t kSlots = 4;
  struct Slot {
    std::mutex mutex;
    Item item;
  };
  std::array<Slot, kSlots> slots_;
};

struct Shared {
  std::optional<Exchange> exchange{std::in_place};
  std::atomic<int> broken{0}, foreign_alive{0};
  std::atomic<std::uint64_t> failures{0};
};

// A thread: it owns its family of views; the data below are shared by all threads.
class Worker {
 public:
  Worker(Shared& shared, std::uint64_t seed) : shared_(shared), random_(seed) {}

  void run(int operations) {
    for (int i = 0; i < operations; ++i) {
      try {
        step();
      } catch (const OutOfMemory&) {
        shared_.failures.fetch_add(1, std::memory_order_relaxed);
      }
    }
    for (const Item& item : items_) check(item);
  }

 private:
  std::uint64_t any(std::uint64_t n) { return (next(random_) >> 32) * n >> 32; }
  Item& any_item() { return items_[any(items_.size())]; }
  void check(const Item& item) {
    if (!item.is_intact()) ++shared_.broken;
  }
  void add(Item item) {
    if (items_.size() == kMostItems) items_.resize(kMostItems / 2);
    items_.push_back(std::move(item));
  }

  void step() {
    const std::uint64_t what = any(32);
    if (items_.empty() || what < 4) return add(shared_.exchange->get(any(64)).clone());
    if (what < 8) return write(any_item());
    if (what < 11) return check(any_item());
    if (what < 14) return add(any_item().clone());
    if (what < 16) return clone_range(any_item());
    if (what < 18) return add(Item(any_item()));  // a view
    if (what < 20) return overwrite(any_item());
    if (what < 22) return shared_.exchange->put(any(64), any_item().clone());
    if (what < 23) return export_or_end();
    if (what < 25) return write_through_export();
    if (what == 25) return add(make_item(static_cast<std::uint32_t>(next(random_))));
    if (what == 26) return add(make_foreign_item(7, shared_.foreign_alive));
    std::swap(any_item(), items_.back());
    items_.pop_back();
  }

  void write(Item& item) {
    const std::size_t at = any(item.plain->n);
    const auto value = static_cast<std::uint32_t>(next(random_));
    std::memcpy(item.storage.mutable_data() + at * 4, &value, 4);
    item.plain->words[at] = value;
  }

  void overwrite(Item& item) {
    std::byte* const data = item.storage.overwrite_data();
    item.plain->words.fill(static_cast<std::uint32_t>(next(random_)));
    std::memcpy(data, item.plain->words.data(), item.plain->n * 4);
  }

  void clone_range(const Item& item) {
    const std::size_t first = any(item.plain->n);
    add(item.clone(first, 1 + any(item.plain->n - first)));
  }

  // A pinned address, for a consumer without knowledge of copy-on-write.
  void export_or_end() {
    if (exports_.size() == kMostExports) return exports_.clear();
    Item& item = any_item();
    exports_.push_back({item.storage.pin(), item.plain});
    if (exports_.back().pin.data() != item.storage.data()) ++shared_.broken;
  }

  void write_through_export() {
    if (exports_.empty()) return;
    Export& to = exports_[any(exports_.size())];
    const std::size_t at = any(to.plain->n);
    to.plain->words[at] = static_cast<std::uint32_t>(next(random_));
    std::memcpy(to.pin.data() + at * 4, &to.plain->words[at], 4);
  }

  struct Export {
    Storage::Pin pin;
    std::shared_ptr<Plain> plain;
  };
  static constexpr std::size_t kMostItems = 20, kMostExports = 3;

  Shared& shared_;
  std::uint64_t random_;
  std::vector<Item> items_;
  std::vector<Export> exports_;
};

// Runs random operations in several threads. Returns the number of those that found no memory.
std::uint64_t run_workers(int n_threads, int operations_in_all, std::uint64_t seed) {
  Shared shared;
  {
    std::vector<std::thread> threads;
    for (int t = 0; t < n_threads; ++t) {
      threads.emplace_back([&shared, seed, t, n = operations_in_all / n_threads] {
        Worker(shared, seed + static_cast<std::uint64_t>(t)).run(n);
      });
    }
    for (std::thread& thread : threads) thread.join();
    shared.exchange.reset();
  }
  EXPECT_EQ(shared.broken, 0) << "seed " << seed;
  EXPECT_EQ(shared.foreign_alive, 0) << "seed " << seed;
  return shared.failures;
}

TEST(StorageStress, RandomOperationsOfSeveralThreadsKeepAllContents) {
  const int operations = testing::longer(2'600'000);
  const auto start = std::chrono::steady_clock::now();
  for (const int n_threads : {2, 3, 5, 8}) {
    const MemoryScope leaks;
    EXPECT_EQ(run_workers(n_threads, operations, 1000U * static_cast<unsigned>(n_threads)), 0u);
    EXPECT_EQ(leaks.live_bytes(), 0) << n_threads << " threads";
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  std::cout << 4 * operations << " operations, " << 4 * operations / time.count() / 1e6
            << " million per second\n";
}

// A limit just above the live bytes fails an allocation sometimes, in any thread.
TEST(StorageStress, AllocationsThatFailLoseNothing) {
  const int operations = testing::longer(400'000);
  std::uint64_t failures = 0;
  for (const int n_threads : {2, 4}) {
    const MemoryScope leaks;
    const MemoryLimit limit(Device{}, Allocator::of(Device{}).stats().live_bytes + 1500);
    failures += run_workers(n_threads, operations, 77);
    EXPECT_EQ(leaks.live_bytes(), 0);
  }
  EXPECT_GT(failures, 1000u);
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
