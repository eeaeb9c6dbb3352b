// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/parking.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace palimpsest {
namespace {

using Word = std::atomic<std::uint64_t>;

// A bucket with a condition variable scripted by the test.
struct ScriptedBucket {
  struct Condition {
    void wait(std::unique_lock<std::mutex>& lock) {
      EXPECT_TRUE(lock.owns_lock());
      ++n_waits;
      during_wait();
    }
    void notify_all() { ++n_all; }
    void notify_one() { ++n_one; }

    std::function<void()> during_wait = [] {};
    int n_waits = 0, n_all = 0, n_one = 0;
  };

  std::mutex mutex;
  Condition changed;
};

TEST(Parking, DoesNotSleepOnAWordThatHasChanged) {
  ScriptedBucket bucket;
  parking::sleep_in(bucket, Word(2), 1);
  EXPECT_EQ(bucket.changed.n_waits, 0);
}

TEST(Parking, SleepsOnWhenItIsWokenForAnotherWord) {
  ScriptedBucket bucket;
  Word word(1);
  bucket.changed.during_wait = [&] {
    if (bucket.changed.n_waits == 3) word = 2;
  };
  parking::sleep_in(bucket, word, 1);
  EXPECT_EQ(bucket.changed.n_waits, 3);
}

TEST(Parking, WakesAllOfABucketSinceSomeSleepOnOtherWords) {
  ScriptedBucket bucket;
  parking::wake_all_in(bucket);
  EXPECT_EQ(bucket.changed.n_all, 1);
  EXPECT_EQ(bucket.changed.n_one, 0);
  EXPECT_TRUE(bucket.mutex.try_lock()) << "it holds nothing afterwards";
  bucket.mutex.unlock();
}

// A bucket that pauses the sleeper between reading the word and sleeping, where a notification
// would be lost, until the waker has notified or cannot proceed.
struct WatchedBucket {
  struct Mutex {
    void lock() {
      if (sleeper_has_looked) waker_is_here = true;
      real.lock();
    }
    void unlock() { real.unlock(); }

    std::mutex real;
    std::atomic<bool> sleeper_has_looked{false}, waker_is_here{false};
  };

  struct Condition {
    explicit Condition(Mutex& mutex_) : mutex(mutex_) {}
    void wait(std::unique_lock<Mutex>& lock) {
      mutex.sleeper_has_looked = true;
      while (!mutex.waker_is_here && !has_notified) std::this_thread::yield();
      is_lost = has_notified.load();
      if (!is_lost) real.wait(lock);
    }
    void notify_all() {
      has_notified = true;
      real.notify_all();
    }

    Mutex& mutex;
    std::condition_variable_any real;
    std::atomic<bool> has_notified{false}, is_lost{false};
  };

  Mutex mutex;
  Condition changed{mutex};
};

TEST(Parking, NoWakeUpIsLostBetweenTheLookAtTheWordAndTheSleep) {
  WatchedBucket bucket;
  Word word(1);
  std::thread waker([&] {
    while (!bucket.mutex.sleeper_has_looked) std::this_thread::yield();
    word = 2;
    parking::wake_all_in(bucket);
  });
  parking::sleep_in(bucket, word, 1);
  waker.join();
  EXPECT_FALSE(bucket.changed.is_lost);
}

// More words than buckets, so that some buckets are shared.
TEST(Parking, EachSleeperWakesForItsOwnWord) {
  constexpr std::size_t kThreads = 100;
  const auto words = std::make_unique<std::array<Word, kThreads>>();
  std::vector<std::thread> threads;
  for (Word& word : *words) threads.emplace_back([&word] { park(word, 0); });
  for (std::size_t k = 0; k < kThreads; ++k) {
    (*words)[k] = 1;
    unpark(&(*words)[k]);
    threads[k].join();
  }
}

TEST(Parking, SleepsUntilTheWordHasChangedAndSomebodySaysSo) {
  std::atomic<std::uint64_t> word{1};
  std::atomic<bool> is_awake{false};
  std::thread sleeper([&] {
    park(word, 1);
    is_awake = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(is_awake);
  word = 2;
  unpark(&word);
  sleeper.join();
  EXPECT_TRUE(is_awake);
}

}  // namespace
}  // namespace palimpsest
