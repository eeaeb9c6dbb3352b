// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/inspect/debug/guarded_memory.hpp"

#include <gtest/gtest.h>

#if defined(__linux__)
#include <signal.h>
#include <sys/mman.h>
#endif

#include <cstring>
#include <thread>
#include <vector>

namespace palimpsest {
namespace {

// Hidden from the compiler, which sees that these accesses are wrong.
volatile std::byte* reach(GuardedMemory& memory, std::size_t buffer, index_t offset) {
  return memory.data(buffer) + offset;
}

struct GuardedMemoryTest : ::testing::Test {
  void SetUp() override {
    if (!GuardedMemory::has_pages()) GTEST_SKIP() << "no page protection on this system";
  }
  std::vector<GuardedMemory::Request> requests{{100, 4}, {16, 16}, {0, 1}};
};

TEST_F(GuardedMemoryTest, LetsAlonePassWhatIsAllowed) {
  for (const Side side : {Side::lower, Side::upper}) {
    GuardedMemory memory(requests, side, true);
    memory.set_read_only(1);
    memory.start();
    std::memset(memory.data(0), 7, 100);
    EXPECT_EQ(std::byte{*reach(memory, 0, 99)}, std::byte{7});
    static_cast<void>(*reach(memory, 1, 15));
    memory.stop();
    EXPECT_TRUE(memory.faults().empty());
    EXPECT_TRUE(memory.changed_zones().empty());
  }
}

TEST_F(GuardedMemoryTest, RecordsWritesToWhatIsReadOnlyAndGoesOn) {
  GuardedMemory memory(requests, Side::lower, true);
  *memory.data(1) = std::byte{5};
  memory.set_read_only(1);
  memory.start();
  const std::byte old = *reach(memory, 1, 3);
  *reach(memory, 1, 3) = std::byte{9};
  *reach(memory, 1, 3) = old;  // restoring the old value does not help
  memory.stop();
  ASSERT_EQ(memory.faults().size(), 1U);
  EXPECT_EQ(memory.faults()[0].buffer, 1U);
  EXPECT_EQ(memory.faults()[0].offset, 3);
  EXPECT_EQ(memory.faults()[0].kind, MemoryFault::Kind::write);
  EXPECT_EQ(*memory.data(1), std::byte{5});
}

TEST_F(GuardedMemoryTest, RecordsAccessesAtBothEnds) {
  GuardedMemory lower(requests, Side::lower, true);
  lower.start();
  static_cast<void>(*reach(lower, 0, -1));
  lower.stop();
  ASSERT_EQ(lower.faults().size(), 1U);
  EXPECT_EQ(lower.faults()[0].buffer, 0U);
  EXPECT_EQ(lower.faults()[0].offset, -1);
  EXPECT_EQ(lower.faults()[0].kind, MemoryFault::Kind::read);

  GuardedMemory upper(requests, Side::upper, true);
  upper.start();
  *reach(upper, 0, 100) = std::byte{1};
  upper.stop();
  ASSERT_EQ(upper.faults().size(), 1U);
  EXPECT_EQ(upper.faults()[0].buffer, 0U);
  EXPECT_EQ(upper.faults()[0].offset, 100);
  EXPECT_EQ(upper.faults()[0].kind, MemoryFault::Kind::write);
}

TEST_F(GuardedMemoryTest, EndsAreFoundForAnySize) {
  constexpr std::size_t kPage = 4096;
  for (const std::size_t bytes : {std::size_t{1}, kPage - 1, kPage, kPage + 1, 3 * kPage}) {
    for (const Side side : {Side::lower, Side::upper}) {
      const bool is_lower = side == Side::lower;
      GuardedMemory memory(std::vector<GuardedMemory::Request>{{bytes, 1}, {bytes, 1}}, side, true);
      memory.start();
      for (const std::size_t k : {0, 1}) {
        std::memset(memory.data(k), 1, bytes);
        static_cast<void>(*reach(memory, k, is_lower ? -1 : static_cast<index_t>(bytes)));
      }
      memory.stop();
      ASSERT_EQ(memory.faults().size(), 2U) << bytes;
      for (const std::size_t k : {0, 1}) {
        EXPECT_EQ(memory.faults()[k].buffer, k);
        EXPECT_EQ(memory.faults()[k].offset, is_lower ? -1 : static_cast<index_t>(bytes));
      }
      EXPECT_TRUE(memory.changed_zones().empty());
    }
  }
}

TEST_F(GuardedMemoryTest, FindsChangedBytesBesideBuffers) {
  for (const bool use_pages : {true, false}) {
    GuardedMemory memory(requests, Side::lower, use_pages);
    memory.start();
    *reach(memory, 0, 100) = std::byte{1};
    memory.stop();
    ASSERT_EQ(memory.changed_zones().size(), 1U);
    EXPECT_EQ(memory.changed_zones()[0].buffer, 0U);
    EXPECT_EQ(memory.changed_zones()[0].offset, 100);
  }
}

TEST_F(GuardedMemoryTest, EndsAreAligned) {
  GuardedMemory memory(std::vector<GuardedMemory::Request>{{100, 64}, {24, 8}}, Side::upper, true);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data(0)) % 64, 0U);
  EXPECT_EQ((reinterpret_cast<std::uintptr_t>(memory.data(1)) + 24) % 4096, 0U);
  EXPECT_EQ(memory.buffer_at(memory.data(1)), 1);
  EXPECT_EQ(memory.buffer_at(&requests), -1);
}

TEST_F(GuardedMemoryTest, ThreadsAreToldApart) {
  std::vector<std::thread> threads;
  std::vector<int> found(8);
  for (std::size_t t = 0; t < found.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        GuardedMemory memory(requests, Side::upper, true);
        memory.start();
        static_cast<void>(*reach(memory, 0, 100 + static_cast<index_t>(t)));
        memory.stop();
        const bool right = memory.faults().size() == 1 &&
                           memory.faults()[0].offset == 100 + static_cast<index_t>(t);
        found[t] += right ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, std::vector<int>(8, 50));
}

TEST_F(GuardedMemoryTest, RecordsAccessesToBuffersThatAreGone) {
  volatile std::byte* gone = nullptr;
  {
    const GuardedMemory first(requests, Side::lower, true);
    gone = first.data(0) + 3;
  }
  for (int round = 0; round < 3; ++round) {  // the addresses stay taken
    GuardedMemory memory(requests, Side::lower, true);
    memory.start();
    EXPECT_EQ(std::byte{*gone}, std::byte{0});
    *gone = std::byte{1};
    memory.stop();
    ASSERT_EQ(memory.faults().size(), 1U);
    EXPECT_TRUE(memory.faults()[0].is_stale);
    EXPECT_EQ(memory.faults()[0].address, const_cast<const std::byte*>(gone));
    EXPECT_EQ(memory.faults()[0].kind, MemoryFault::Kind::read);
  }
  StaleWatch watch;
  *gone = std::byte{2};
  const auto fault = watch.stop();
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, MemoryFault::Kind::write);
  EXPECT_FALSE(watch.stop());
}

#if defined(__linux__)
TEST_F(GuardedMemoryTest, RecordsAccessesOfItsThreadToAddressesWithoutMemory) {
  constexpr std::size_t kPages = 2, kBytes = kPages * 4096;
  void* const pages =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  munmap(pages, kBytes);
  auto* const bytes = static_cast<volatile std::byte*>(pages);
  StaleWatch watch;
  for (std::size_t i = 0; i < kPages; ++i) static_cast<void>(bytes[i * 4096]);
  const auto fault = watch.stop();
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->address, pages);
  unsigned char resident = 0;
  EXPECT_EQ(mincore(pages, 4096, &resident), -1);  // nothing stays there
}

volatile sig_atomic_t foreign_faults = 0;
void note_foreign(int, siginfo_t*, void*);

TEST_F(GuardedMemoryTest, ThePreviousHandlerGetsItsFaultsAndComesBack) {
  struct sigaction mine {
  }, original{}, now{};
  mine.sa_sigaction = note_foreign;
  mine.sa_flags = SA_SIGINFO;
  sigemptyset(&mine.sa_mask);
  ASSERT_EQ(sigaction(SIGSEGV, &mine, &original), 0);
  {
    GuardedMemory memory(requests, Side::upper, true);
    memory.start();
    sigaction(SIGSEGV, nullptr, &now);
    EXPECT_NE(now.sa_sigaction, mine.sa_sigaction);
    raise(SIGSEGV);
    static_cast<void>(*reach(memory, 0, 100));
    memory.stop();
    EXPECT_EQ(foreign_faults, 1);
    EXPECT_EQ(memory.faults().size(), 1U);
  }
  sigaction(SIGSEGV, nullptr, &now);
  EXPECT_EQ(now.sa_sigaction, mine.sa_sigaction);
  sigaction(SIGSEGV, &original, nullptr);
}

void note_foreign(int, siginfo_t*, void*) { foreign_faults = foreign_faults + 1; }
#endif

}  // namespace
}  // namespace palimpsest
