// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/fork.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "palimpsest/base/call_lock.hpp"
#include "palimpsest/base/immortal.hpp"
#include "support/in_child.hpp"

#ifdef __SANITIZE_THREAD__
// A child cannot join the threads of its parent; they are not its leaks.
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() { return "report_thread_leaks=0"; }
#endif

namespace palimpsest {
namespace {

using testing::in_child;

// Threads that repeat an action while the object lives.
class Busy {
 public:
  template <class Work>
  Busy(int n, Work work) {
    for (int i = 0; i < n; ++i) {
      threads_.emplace_back([this, work] {
        while (!stop_) {
          work();
          ++rounds_;
        }
      });
    }
    while (rounds_ < n) std::this_thread::yield();
  }
  ~Busy() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> rounds_{0};
  std::vector<std::thread> threads_;
};

TEST(Fork, AChildFindsLocksFreeAndWhatTheyGuardWhole) {
  struct {
    Mutex mutex;
    SharedMutex shared;
    std::atomic<int> first{0}, second{0}, third{0}, fourth{0};
  } it;
  const Busy busy(3, [&it] {
    {
      const std::lock_guard guard(it.mutex);
      ++it.first;
      std::this_thread::yield();
      ++it.second;
    }
    {
      const std::lock_guard guard(it.shared);
      ++it.third;
      std::this_thread::yield();
      ++it.fourth;
    }
    const std::shared_lock guard(it.shared);
  });
  for (int i = 0; i < 60; ++i) {
    ASSERT_EQ(in_child([&it] {
                const std::lock_guard guard(it.mutex);
                const std::lock_guard shared(it.shared);
                return it.first == it.second && it.third == it.fourth;
              }),
              0)
        << i;
  }
}

TEST(Fork, WaitsUntilOtherThreadsAreOutsideOfTheirSections) {
  std::atomic<bool> is_inside{false}, is_awaited{false}, has_left{false};
  std::thread other([&] {
    const ForkSection outer;
    const ForkSection inner;
    is_inside = true;
    while (!is_awaited) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    has_left = true;
  });
  while (!is_inside) std::this_thread::yield();
  is_awaited = true;
  EXPECT_EQ(in_child([&] { return has_left.load(); }), 0);
  EXPECT_TRUE(has_left);
  other.join();
}

TEST(Fork, DoesNotWaitForTheSectionOfItsOwnThread) {
  Mutex mutex;
  const ForkSection section;
  const std::lock_guard guard(mutex);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(in_child([] { return true; }), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(8));
}

TEST(Fork, ThreadsOfAChildHaveSectionsToo) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer refuses threads in such a child";
#endif
  const Busy busy(2, [] { const ForkSection section; });
  EXPECT_EQ(in_child([] {
              Mutex mutex;
              int n = 0;
              {
                const Busy more(2, [&] {
                  const std::lock_guard guard(mutex);
                  ++n;
                });
                for (int i = 0; i < 5; ++i) {
                  if (in_child([&] { return mutex.try_lock(); }) != 0) return false;
                }
              }
              return n > 0;
            }),
            0);
}

TEST(Fork, ChildrenKnowThatTheyAreChildren) {
  { const ForkSection section; }
  const unsigned mine = process_generation();
  EXPECT_EQ(in_child([&] { return process_generation() == mine + 1; }), 0);
  EXPECT_EQ(process_generation(), mine);
  static std::atomic<int> calls{0};
  after_fork_in_child([]() noexcept { ++calls; });
  EXPECT_EQ(in_child([] { return calls == 1; }), 0);
  EXPECT_EQ(calls, 0);
}

TEST(Mutex, IsTakenByOneThreadAtATime) {
  Mutex mutex;
  ASSERT_TRUE(mutex.try_lock());
  std::thread([&] { EXPECT_FALSE(mutex.try_lock()); }).join();
  mutex.unlock();
  std::thread([&] {
    EXPECT_TRUE(mutex.try_lock());
    mutex.unlock();
  }).join();
}

TEST(CallLock, ReadersShareAndAWriterIsAlone) {
  CallLock lock;
  int n = 0;
  std::atomic<int> readers{0}, most{0}, wrong{0};
  {
    const Busy writers(2, [&] {
      const std::lock_guard guard(lock);
      if (readers != 0) ++wrong;
      ++n;
    });
    const Busy readers_too(3, [&] {
      const std::shared_lock guard(lock);
      const int now = ++readers;
      if (now > most) most = now;
      std::this_thread::yield();
      --readers;
    });
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(n, 0);
  lock.lock_shared();
  lock.lock_shared();
  lock.unlock_shared();
  lock.unlock_shared();
}

TEST(CallLock, AChildIsRidOfHoldersThatItLacks) {
  CallLock read, written;
  std::atomic<int> holding{0};
  std::atomic<bool> stop{false};
  const auto hold = [&](auto take, auto give) {
    return std::thread([&holding, &stop, take, give] {
      take();
      ++holding;
      while (!stop) std::this_thread::yield();
      give();
    });
  };
  std::thread reader = hold([&] { read.lock_shared(); }, [&] { read.unlock_shared(); });
  std::thread writer = hold([&] { written.lock(); }, [&] { written.unlock(); });
  while (holding < 2) std::this_thread::yield();
  EXPECT_EQ(in_child([&] {
              read.lock();
              const bool is_whole = !read.is_torn();
              read.unlock();
              written.lock();
              const bool was_torn = written.is_torn();
              written.heal();
              const bool is_healed = !written.is_torn();
              written.unlock();
              written.lock_shared();
              return is_whole && was_torn && is_healed;
            }),
            0);
  EXPECT_EQ(in_child([&] {
              written.lock_shared();
              const bool was_torn = written.is_torn();
              written.unlock_shared();
              return was_torn && in_child([&] {
                                   written.lock();
                                   return written.is_torn();
                                 }) == 0;
            }),
            0);
  stop = true;
  reader.join();
  writer.join();
  read.lock();
  EXPECT_FALSE(read.is_torn());
  read.unlock();
}

TEST(CallLock, TheThreadThatForkedMayKeepWhatItHeld) {
  CallLock read, written;
  read.lock_shared();
  written.lock();
  EXPECT_EQ(in_child([&] {
              read.keep_shared();
              written.keep();
              bool is_free = false;
              std::thread other([&] {
                read.lock_shared();
                read.unlock_shared();
                written.lock_shared();
                is_free = true;
                written.unlock_shared();
              });
              const bool was_kept = !is_free;
              written.unlock();
              other.join();
              read.unlock_shared();
              read.lock();
              return was_kept && is_free && !written.is_torn() && !read.is_torn();
            }),
            0);
  read.unlock_shared();
  written.unlock();
}

TEST(Immortal, IsMadeOnceForEachPlace) {
  static std::atomic<int> n{0};
  const auto one = []() -> int& { return immortal([] { return ++n; }); };
  const auto two = []() -> int& { return immortal([] { return ++n; }); };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { EXPECT_EQ(one(), one()); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(&one(), &two());
  EXPECT_EQ(n, 2);
}

}  // namespace
}  // namespace palimpsest
